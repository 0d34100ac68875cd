"""What the hot verbs import. Start-up time is mostly this, and unlike a time it can be asserted."""

from __future__ import annotations

import subprocess
import sys

from tests.home import Home, Mngr

HEAVY = {
    "argparse",
    "asyncio",
    "dataclasses",
    "importlib.metadata",
    "inspect",
    "logging",
    "pluggy",
    "subprocess",
    "tomllib",
    "typing",
}


def test_list_loads_nothing_heavy(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "foo", "command", "--", "sleep", "1000")
    loaded = imports(home, mngr.program, "list")
    assert "mngr.cli.list" in loaded
    assert loaded & HEAVY == set()


def test_list_in_an_empty_home_loads_nothing_heavy(mngr: Mngr, home: Home) -> None:
    loaded = imports(home, mngr.program, "list")
    assert "mngr.cli.list" in loaded
    assert loaded & HEAVY == set()


def test_version_loads_nothing_but_its_own_modules(mngr: Mngr, home: Home) -> None:
    loaded = imports(home, mngr.program, "--version") - imports(home, "-c", "pass")
    assert "mngr.version" in loaded
    assert {name for name in loaded if not name.startswith("mngr")} <= {"__future__", "gc"}  # which is in Python itself


def imports(home: Home, *words: str) -> set[str]:
    argv = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(argv, env=home.env, cwd=home.cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {row.split("|")[2].strip() for row in rows[1:]}
