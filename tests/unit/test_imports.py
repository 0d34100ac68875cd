"""Each module can be the first that is imported: verbs import what they use where they use it, in any order."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import mngr

# In a fork for each, so that none of them finds what another has brought. What Python brings they all find: it never
# imports one of ours.
EACH = """
import os, sys, traceback
modules, names = (line.split() for line in sys.stdin)
for name in modules:
    __import__(name)
for name in names:
    if not os.fork():
        code = 0
        try:
            __import__(name)
        except BaseException:
            print(name, traceback.format_exc(), file=sys.stderr)
            code = 1
        finally:
            os._exit(code)
    if os.wait()[1]:
        print(name)
"""
PROGRAMS = ("mngr.__main__", "mngr.swarm.testing.")  # which run when they are imported, or in a pytest of the user's


def test_each_module_can_be_imported_first() -> None:
    found = [module.name for module in pkgutil.walk_packages(mngr.__path__, "mngr.")]
    names = [name for name in found if not name.startswith(PROGRAMS)]
    assert len(names) > 200
    modules = [name for name in sys.modules if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"]
    text = f"{' '.join(modules)}\n{' '.join(names)}\n"
    done = subprocess.run([sys.executable, "-c", EACH], input=text, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
