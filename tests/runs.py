"""Runs of the swarm as tests write them: a log, event by event, without an orchestrator."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mngr.fleet.plan import Request
from mngr.swarm import settings
from mngr.swarm.begin import REQUEST
from mngr.swarm.log import Writer

BEGUN = 1_700_000_000.0  # when runs begin, unless a test says otherwise


class Log:
    """`with Log(home, "r1", {"one": "tests/test_a.py::test_one"}) as log: log("nudged", "one", why="standstill")`. As
    long as it is open, somebody works on the run. Every event comes a second after the one before."""

    def __init__(
        self,
        home: Path,
        run: str,
        tasks: dict[str, str],
        data: dict[str, Any] | None = None,
        plan: dict[str, Any] | None = None,
        **tuned: Any,
    ) -> None:
        """`plan` has what of it is not as usual."""
        self.directory = home / "runs" / run
        self.directory.mkdir(parents=True, exist_ok=True)
        self.now = BEGUN
        self._writer = Writer(str(self.directory))
        self._plan: dict[str, Any] = {
            "run": run,
            "project": "/home/ada/shelf",
            "recipe": "mngr.swarm.recipe:Recipe",
            "arguments": {},
            "type": "claude",
            "kind": "claude",
            "account": "claude",
            "places": ["local"],
            "settings": {**settings.defaults(), **{key.replace("_", "-"): value for key, value in tuned.items()}},
            "tasks": [
                {"task": id, "title": title, "name": f"{run}-{id}", "data": (data or {}).get(id, {})}
                for id, title in tasks.items()
            ],
            **(plan or {}),
        }

    def __enter__(self) -> Self:
        self._writer.__enter__()
        (self.directory / REQUEST).write_text(json.dumps(Request().to_dict()))
        self("planned", **self._plan)
        self("started", pid=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, value, trace)

    def __call__(self, event: str, task: str | None = None, **members: Any) -> None:
        whose = {} if task is None else {"task": task}
        self._writer.write({"time": self.now, "event": event, **whose, **members})
        self.now += 1.0

    def launch(self, *tasks: str, usd: float = 0.0) -> None:
        for task in tasks:
            name = f"{self.directory.name}-{task}"
            self("intended", task, name=name, host="local", usd=usd, tokens=0)
            self("launched", task, id=f"id-{task}", host="local", branch=f"mngr/{name}", base="b" * 40)

    def bring_home(self, task: str, head: str, commits: list[str]) -> None:
        self("ended", task, ending="", stage="result")
        self("home", task, head=head, base="b" * 40, commits=commits, dirty=0, left=[], exit="", stage="pull")

    def spend(self, task: str, usd: float, messages: int = 10, unpriced: int = 0) -> None:
        self(
            "spent",
            task,
            messages=messages,
            tokens=1000 * messages,
            usd=usd,
            unpriced=unpriced,
            stage="work",
        )

    def settle(self, task: str, outcome: str, why: str = "", **members: Any) -> None:
        self("settled", task, outcome=outcome, why=why, **members)
