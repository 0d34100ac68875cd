"""How tests have ended on trees, remembered in a file: tests are the one thing of an integration that is dear. A tree
is what it holds, so an outcome stays true whichever branches come later; only how tests are run must be the same.

Each line is whole or passed over, so whoever is interrupted loses what was being run, and nothing else."""

from __future__ import annotations

import os

from mngr import jsonline
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PASSED, SKIPPED, ERROR, FAILED, MISSING, TIMED_OUT = "passed", "skipped", "error", "failed", "missing", "timed out"


class Outcome(Record):
    word: str
    said: str = ""  # the first line

    @property
    def is_red(self) -> bool:
        return self.word in (FAILED, ERROR, TIMED_OUT)

    @property
    def is_green(self) -> bool:
        """One that is missing is neither."""
        return self.word in (PASSED, SKIPPED)


class Outcomes:
    """Those of tests that are run in one way. `turn` counts how often a test has been run on a tree: a second opinion
    is remembered beside the first one. `whole` is for runs of everything together, which are remembered apart: what a
    test comes to may depend on its company."""

    def __init__(self, path: str, how: str) -> None:
        self._path, self._how = path, how
        self._known: dict[tuple[str, int, bool], dict[str, Outcome]] = {}
        self._collected: dict[str, list[str]] = {}
        for line in _lines(path):
            self._take(line)

    def of(self, tree: str, tests: Iterable[str], turn: int, whole: bool = False) -> dict[str, Outcome]:
        """Those that are known. Of a run of everything, everything is known: what is not there was not run."""
        known = self._known.get((tree, turn, whole), {})
        if whole and known:
            return {test: known.get(test) or _of_function(known, test) for test in tests}
        return {test: known[test] for test in tests if test in known}

    def collected(self, tree: str) -> list[str] | None:
        return self._collected.get(tree)

    def add(self, tree: str, turn: int, found: Mapping[str, Outcome], whole: bool = False) -> None:
        outcomes = {test: [outcome.word, outcome.said] for test, outcome in found.items()}
        self._write({"how": self._how, "tree": tree, "turn": turn, "whole": whole, "outcomes": outcomes})

    def add_collected(self, tree: str, tests: list[str]) -> None:
        self._write({"how": self._how, "tree": tree, "collected": tests})

    def _write(self, line: dict[str, Any]) -> None:
        self._take(line)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        with open(self._path, "ab") as file:
            # The line before may have been cut off in the middle.
            file.write(b"\n" + jsonline.dumps(line).encode("ascii") + b"\n")

    def _take(self, line: dict[str, Any]) -> None:
        if line["how"] != self._how:
            return
        if "collected" in line:
            self._collected[line["tree"]] = list(line["collected"])
            return
        known = self._known.setdefault((line["tree"], line["turn"], bool(line.get("whole"))), {})
        for test, (word, said) in line["outcomes"].items():
            known[test] = Outcome(word=word, said=said)


def _of_function(known: Mapping[str, Outcome], test: str) -> Outcome:
    """Of its parameters, what matters most. A file that cannot be collected is the outcome of all in it."""
    outcomes = [outcome for name, outcome in known.items() if name.partition("[")[0] == test]
    outcomes = outcomes or [known[file] for file in [test.partition("::")[0]] if file in known]
    red = [outcome for outcome in outcomes if outcome.is_red]
    return next(iter([*red, *outcomes]), Outcome(word=MISSING))


def _lines(path: str) -> list[dict[str, Any]]:
    """Those that are whole, and of the form that we write."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii", errors="replace") as file:
        texts = file.read().split("\n")
    found = []
    for text in filter(None, texts):
        try:
            line = jsonline.loads(text)
        except (ValueError, RecursionError):
            continue
        if _is_ours(line):
            found.append(line)
    return found


def _is_ours(line: Any) -> bool:
    if not isinstance(line, dict) or not isinstance(line.get("how"), str) or not isinstance(line.get("tree"), str):
        return False
    if "collected" in line:
        return isinstance(line["collected"], list)
    outcomes = line.get("outcomes")
    return (
        isinstance(line.get("turn"), int)
        and isinstance(outcomes, dict)
        and all(isinstance(each, list) and list(map(type, each)) == [str, str] for each in outcomes.values())
    )
