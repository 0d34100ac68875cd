"""Settling a task: its one ending, with claim and check; and what the endings of many say together."""

from __future__ import annotations

import os

from mngr import jsonline, process
from mngr.errors import MngrError
from mngr.swarm import breaker, words
from mngr.swarm.recipe import Home, Judgement
from mngr.swarm.schema import MOST_BYTES, read_result, too_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.swarm.desk import Desk
    from mngr.swarm.state import Task


class Settlement:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def home(self, task: Task) -> Home:
        """What came home of it, for the recipe."""
        desk, found = self._desk, task.home
        value, flaw = self.result(task, found.get("result_bytes"))
        return Home(
            directory=desk.place(task),
            repo=desk.run.plan["project"],
            branch=task.branch if found.get("commits") else "",
            base=found.get("base", ""),
            head=found.get("head", ""),
            commits=found.get("commits", []),
            dirty=found.get("dirty", 0),
            result=value,
            flaw=flaw,
        )

    def result(self, task: Task, size: int | None) -> tuple[dict[str, Any] | None, str]:
        """`size` is what its agent has written: too much of it is not brought home."""
        if size is not None and size > MOST_BYTES:
            return None, too_long(size)
        return read_result(os.path.join(self._desk.place(task), "result.json"), self._desk.recipe.schema)

    def judge(self) -> None:
        """Those that have been checked. An ending that the agent came to counts before anything it claims."""
        for task in self._desk.free(words.CHECKED):
            home = self.home(task)
            if task.ending:
                self.settle(task, task.ending, task.why, claim=home.result or {})
            elif self._desk.run.cancelled and not task.check:
                why = f"the run was cancelled by {self._desk.run.cancelled} before it was checked"
                self.settle(task, words.CANCELLED, why, claim=home.result or {})
            elif home.result is None:
                self.settle(task, words.FAILED, f"its result is invalid: {home.flaw}")
            else:
                found = self._judgement(task, home)
                self.settle(task, found.outcome, found.why, claim=home.result, check=found.check, notes=found.notes)

    def _judgement(self, task: Task, home: Home) -> Judgement:
        """The recipe's. A mistake in it costs one task, and not the run."""
        try:
            found = self._desk.recipe.judge(task.data, home, task.check or None)
            if found.outcome not in words.ENDINGS:
                raise ValueError(f"{found.outcome!r} is no ending")
            jsonline.dumps(found.to_dict())
        except Exception as error:  # noqa: BLE001 - whatever it is
            why = f"the recipe cannot judge it: {type(error).__name__}: {error}"
            return Judgement(outcome=words.INFRASTRUCTURE, why=why)
        return found

    def settle(self, task: Task, outcome: str, why: str, **members: Any) -> None:
        desk = self._desk
        desk.note(
            "settled",
            task,
            outcome=outcome,
            why=why,
            usd=round(task.spend.usd, 6),
            tokens=task.spend.tokens,
            messages=task.spend.messages,
            seconds=round(desk.clocks.get(task.id, task.elapsed), 1),
            throttled=round(task.throttled, 1),
            **members,
        )
        desk.unhold(task)
        self._break_or_mend()
        for what, count in breaker.alerts(desk.run):
            self._alert(what, count)

    def _break_or_mend(self) -> None:
        desk, run = self._desk, self._desk.run
        if not run.paused:
            pattern = breaker.pattern(run)
            if pattern:
                desk.note("paused", why=pattern.why, since=pattern.since)
        elif run.paused_since is not None and (task := breaker.speaks_against(run, run.paused_since)):
            desk.note("unpaused", why=f"{task.title} has handed in a result")

    def _alert(self, pattern: str, count: int) -> None:
        desk = self._desk
        desk.note("alerted", pattern=pattern, count=count)
        command = desk.run.settings["alert-command"]
        if command:
            told = jsonline.dumps({"run": desk.run.id, "pattern": pattern, "count": count})
            env = {**os.environ, "MNGR_ALERT": told}
            desk.go(
                ("alert", pattern),
                [],
                lambda: process.run(["sh", "-c", command], deadline=60.0, env=env),
                lambda found: self._heard(pattern, found),
            )

    def _heard(self, pattern: str, found: process.Done | MngrError) -> None:
        """A command that fails changes nothing, but who waits for alerts in vain should find out why."""
        why = found.message if isinstance(found, MngrError) else f"it ended with {found.code}" if found.code else ""
        if why:
            self._desk.note("alert failed", pattern=pattern, why=why)
