"""What can be asked of an integration, by the command line or from Python. Nothing in here has been looked at yet:
asked.py does that."""

from __future__ import annotations

from mngr.process import quote
from mngr.record import Record


class Wanted(Record):
    branches: list[str] = []  # noqa: RUF012 - Record copies defaults; to take work from, names or patterns
    runs: list[str] | None = None  # in place of branches: what these runs have verified; empty: the latest one
    where: str = ""  # a directory of the repository; "": here. A run knows its own
    base: str = ""  # what is built on: HEAD, or where the run began
    into: str = ""  # the branch to make; a run has a name for it
    verify: bool = True
    setup: str | None = None  # None for these five: as the run had it, or as the configuration says
    copy: list[str] | None = None
    pytest: str | None = None
    flags: list[str] | None = None  # for pytest
    limit: float | None = None  # seconds for one test
    check: str | None = None  # a command in place of pytest
    workers: int = 0  # checkouts that tests are run in at once; 0: one for each core
    forget: bool = False  # how tests have ended before
    rank_file: str | None = None
    rank_agent: bool = False
    drop: list[str] = []  # noqa: RUF012 - names of changes
    agents: bool = True  # may one be asked about conflicts?
    type: str | None = None  # of that one
    args: list[str] = []  # noqa: RUF012
    env: dict[str, str] = {}  # noqa: RUF012
    push: bool = False
    remote: str = ""
    pull_request: bool = False
    resume: bool = False
    reintegrate: bool = False
    dry_run: bool = False

    def again(self, what: list[str]) -> str:
        """The command that makes the branch anew, of the same work and in the same way. `what` says where it is from.
        What was for once is left out: the push above all."""
        limit = None if self.limit is None else f"{self.limit:g}s"
        options = [
            *_option("--base", self.base or None),
            *_option("--into", self.into or None),
            *([] if self.verify else ["--no-verify"]),
            *_option("--setup", self.setup),
            *_option("--copy", *(self.copy or [])),
            *_option("--pytest", self.pytest),
            *_option("--test-timeout", limit),
            *_option("--check", self.check),
            *_option("--workers", str(self.workers) if self.workers else None),
            *_option("--rank-file", self.rank_file),
            *(["--rank-agent"] if self.rank_agent else []),
            *_option("--drop", *self.drop),
            *_option("--type", self.type),
            *(f"--agent-arg={word}" for word in self.args),
            *([] if self.agents else ["--no-agent"]),
        ]
        env = [f'--env "{key}=${key}"' for key in self.env if key.isidentifier()]  # pull requests show it: no secrets
        flags = ["--", *self.flags] if self.flags is not None else []
        return " ".join([*map(quote, ["mngr", *what, *options]), *env, "--reintegrate", *map(quote, flags)])


def _option(name: str, *values: str | None) -> list[str]:
    return [word for value in values if value is not None for word in (name, value)]
