"""What can be asked of an integration, by the command line or from Python. Nothing in here has been looked at yet:
asked.py does that."""

from __future__ import annotations

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
