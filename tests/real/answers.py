"""An agent that is asked about conflicts of tests/real/history.py, and knows the answers: in the tag `complete` of the
repository that it is given, everything is in. Where two branches do the same in two ways, it leaves the choice to a
person, whose choices are in the variable CHOSEN. It is run by its path, in the work dir of a conflict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.real.history import CODE, RIVALS, real_changes
from tests.real.pieces import Module

DECLINED = "two ways to do the same: a person must choose"


def main() -> None:
    subject = _git("log", "-1", "--format=%s", "CHERRY_PICK_HEAD")
    function, tests = next((function, tests) for _, function, tests in real_changes() if function in _words(subject))
    if function in RIVALS and function not in os.environ.get("CHOSEN", "").split():
        _answer(False, DECLINED)
        return
    for path in _git("diff", "--name-only", "--diff-filter=U").splitlines():
        module = Module(_git("show", f"HEAD:{path}"))
        module.take(
            function if path.startswith(CODE) else tests, Module(_git("-C", sys.argv[1], "show", f"complete:{path}"))
        )
        Path(path).write_text(module.text)
    _git("commit", "--quiet", "--all", "--no-edit")
    _answer(True, f"{function} as a person wants it")


def _words(subject: str) -> list[str]:
    return subject.replace(",", " ").split()


def _answer(resolved: bool, why: str) -> None:
    place = Path(os.environ["MNGR_RESULT"])
    draft = place.with_suffix(".draft")
    draft.write_text(json.dumps({"resolved": resolved, "why": why}))
    draft.replace(place)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
