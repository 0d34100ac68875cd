"""The recipe of `mngr swarm run`: an agent for each test, which runs it, mends what is broken and makes it verify just
what it promises; and what its work is worth, found out by running it."""

from __future__ import annotations

import os

from mngr import jsonline
from mngr.errors import MngrError, UsageError
from mngr.process import quote
from mngr.swarm.begin import top_of
from mngr.swarm.hands import git
from mngr.swarm.recipe import Piece, Recipe
from mngr.swarm.runs import known_runs, runs_directory
from mngr.swarm.state import load
from mngr.swarm.testing.collect import collect
from mngr.swarm.testing.judge import check_of, judge
from mngr.swarm.testing.keys import Key, audit, keys, parse_share, skips
from mngr.swarm.testing.prompt import prompt, template
from mngr.swarm.words import GOOD, SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from mngr.swarm.recipe import Check, Home, Judgement
    from mngr.swarm.state import Run
    from mngr.swarm.testing.collect import Found

LAST = "last"  # in place of a commit: the last run of this project
_OR_LAST = f"or --changed-since {LAST}: the last run"
_TUTORIAL = "tutorial.sh"
_VENV = ".venv/bin/python"


class TestRecipe(Recipe):
    __test__ = False  # whatever pytest thinks of its name
    name = "tests"

    def __init__(self, **asked: Any) -> None:
        """What was asked for, as `planned` finds it or the log has it."""
        self._asked = asked
        self.top: str = asked["top"]
        self.pytest: str = asked["pytest"]
        self.model: str = asked["model"]
        self.schema = schema()

    @classmethod
    def planned(
        cls,
        where: str,
        *,
        home: str,
        paths: Sequence[str] = (),
        flags: Sequence[str] = (),
        pytest: str | None = None,
        limit: float = 120.0,
        tutorial: str | None = None,
        base: str | None = None,
        since: str | None = None,
        program: Sequence[str] = (),
        audit: str = "5%",
        setup: str | None = None,
        here: bool = True,
    ) -> Self:
        """For the tests below `where`. Paths are relative to it, as they were typed; from here on to the top. `setup`
        is what is run in a new work dir; `here`: all of them are on this machine."""
        top = top_of(where)
        if tutorial is None:
            tutorial = _TUTORIAL if os.path.exists(os.path.join(top, _TUTORIAL)) else ""
        elif not os.path.exists(os.path.join(where, tutorial)):
            raise UsageError(f"there is no tutorial {tutorial}")
        else:
            tutorial = _below(top, where, tutorial)
        return cls(
            top=top,
            home=home,
            paths=[_below(top, where, path) for path in paths],
            flags=list(flags),
            pytest=pytest or usual_pytest(top, setup, here),
            limit=limit,
            tutorial=tutorial,
            base=_commit(top, base or "HEAD", "commit something first"),
            since=since or "",
            program=[_below(top, where, path) for path in program],
            audit=parse_share(audit),
            model="",
        )

    def arguments(self) -> dict[str, Any]:
        return {**self._asked, "model": self.model}

    # Before

    def pieces(self) -> list[Piece]:
        found = collect(self.top, self._asked["paths"], self._asked["flags"], self.pytest)
        now = self._keys(self._asked["base"], found)
        skipped = self._skips(found, now)
        audited = audit(skipped, self._asked["audit"], self._asked["base"]) if skipped else []
        pieces = []
        for test in found:
            data: dict[str, Any] = {"test": test.id, "file": test.file}
            if test.id in now:
                data["key"] = now[test.id].parts
            else:
                skipped[test.id] = "it is not committed: no agent would find it"
            if test.id in audited:
                data["audit"] = skipped[test.id]
            pieces.append(
                Piece(
                    title=test.id,
                    slug=test.name,
                    prompt=self._prompt(test),
                    data=data,
                    skip="" if test.id in audited else skipped.get(test.id, ""),
                )
            )
        return pieces

    def _prompt(self, test: Found) -> str:
        asked = self._asked
        return prompt(
            asked["home"],
            test,
            pytest=self.pytest,
            limit=asked["limit"],
            flags=asked["flags"],
            tutorial=asked["tutorial"],
        )

    def _keys(self, commit: str, found: list[Found]) -> dict[str, Key]:
        asked = self._asked
        return keys(self.top, commit, found, asked["program"], template(asked["home"]), self.model, asked["tutorial"])

    def _skips(self, found: list[Found], now: dict[str, Key]) -> dict[str, str]:
        since = self._asked["since"]
        if not since:
            return {}
        if since != LAST:
            return skips(now, self._keys(_commit(self.top, since, _OR_LAST), found))
        last = _last_run(self._asked["home"], self.top)
        before = {
            task.title: Key(parts=task.data["key"], at=f"run {last.id}")
            for task in last.tasks.values()
            if "key" in task.data
        }
        return skips(now, before, _well(last, self.top, self._asked["base"]))

    # After

    def check(self, data: dict[str, Any], home: Home) -> Check | None:
        asked = self._asked
        return check_of(
            home,
            data["test"],
            pytest=self.pytest,
            flags=asked["flags"],
            limit=asked["limit"],
            tutorial=asked["tutorial"],
        )

    def judge(self, data: dict[str, Any], home: Home, checked: dict[str, Any] | None) -> Judgement:
        assert home.result is not None
        return judge(home.result, home, checked or {}, data["test"], self._asked["tutorial"])


def schema() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "result.schema.json"), encoding="utf-8") as file:
        found: dict[str, Any] = jsonline.loads(file.read())
    return found


def _below(top: str, where: str, path: str) -> str:
    """As it is called at the top; the id of a test too."""
    file, separator, rest = path.partition("::")
    return os.path.relpath(os.path.realpath(os.path.join(where, file)), top) + separator + rest


def usual_pytest(top: str, setup: str | None, here: bool) -> str:
    """As a line for the shell of every work dir. A clone has no .venv unless its setup makes one; without a setup the
    one of this checkout serves them all, where it can be reached."""
    own = os.path.join(top, _VENV)
    if os.path.exists(own) and (setup or here):
        return f"{_VENV if setup else quote(own)} -m pytest"
    return "python3 -m pytest"


def _commit(top: str, rev: str, hint: str) -> str:
    try:
        return git(top, "rev-parse", "--verify", "-q", "--end-of-options", f"{rev}^{{commit}}")
    except MngrError:
        raise UsageError(f"{rev} is not a commit in {top}", hint) from None


def _last_run(home: str, top: str) -> Run:
    for name in reversed(known_runs(home)):
        try:
            run = load(os.path.join(runs_directory(home), name))
        except MngrError:
            continue
        if run.plan.get("project") == top and run.is_done and not run.cancelled:
            return run
    raise UsageError(f"no run of {top} has been finished yet", "--changed-since REV compares with a commit")


def _well(run: Run, top: str, base: str) -> list[str]:
    """The tests that ended well there, or had no need to be looked at, and whose changes, if there were any, have been
    merged since."""
    return [
        task.title
        for task in run.tasks.values()
        if task.outcome in (*GOOD, SKIPPED)
        and all(_is_merged(top, commit, base) for commit in task.home.get("commits", [])[-1:])
    ]


def _is_merged(top: str, commit: str, base: str) -> bool:
    try:
        git(top, "merge-base", "--is-ancestor", commit, base)
    except MngrError:
        return False
    return True
