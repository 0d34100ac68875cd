"""Branches that conflict, for tests of what is done about it: a base, and branches with one commit each upon it.

    clash = Clash(tmp_path, {"app.py": "one\\n"}, left={"app.py": "two\\n"}, right={"app.py": "three\\n"})
    (left,) = clash.stack().left

Files are written as in tests/histories.py. The first branch is in the stack; the others conflict with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mngr.integrate.change import Source
from mngr.integrate.picking.identity import groups
from mngr.integrate.picking.policy import Policy
from mngr.integrate.picking.rank import ranked
from mngr.integrate.picking.read import read
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.stack import Left, Plan, Stack, build
from mngr.integrate.solving.resolutions import Resolutions
from mngr.swarm.testing.kinds import rules
from tests.histories import Content, History


class Clash:
    def __init__(self, tmp_path: Path, base: Mapping[str, Content], **branches: Mapping[str, Content]) -> None:
        self.history, self.directory = History(tmp_path / "repo"), tmp_path / "integration"
        self.directory.mkdir()
        self.base = self.history.commit("main", base, "Base")
        self.sources: list[Source] = []
        for name, files in branches.items():
            self.add(name, files)
        self.told: list[str] = []
        self.begin()

    def add(self, name: str, files: Mapping[str, Content]) -> None:
        head = self.history.commit(name, files, f"What {name} does", self.base)
        self.sources.append(Source(branch=name, head=head, agent=name, test=f"tests/test_{name}.py::test_{name}"))

    def begin(self) -> None:
        """The integration, from its beginning: all but its directory is new."""
        self.scratch = Scratch(str(self.history.top), self.base, str(self.directory))
        self.resolutions = Resolutions(str(self.directory), self.scratch, self.told.append)

    def plan(self) -> Plan:
        found = groups(self.scratch, read(self.scratch, self.sources, Policy(rules=rules())).changes)
        fixes = [group for group in found if group.first.is_fix]
        by_key = {each.group.key: each for each in ranked(fixes, self.sources)}
        return Plan(
            rest=[group for group in found if not group.first.is_fix],
            fixes=[by_key[group.key] for group in fixes],
            solved=self.resolutions.solve,
        )

    def stack(self) -> Stack:
        return build(self.scratch, self.plan())

    def left(self) -> Left:
        """The only one there is."""
        (left,) = self.stack().left
        return left

    def content(self, tree: str, path: str) -> bytes | None:
        entry = self.scratch.entries(tree, [path])[path]
        return self.scratch.blob(entry[1]) if entry else None


def git(where: Path | str, *words: str, code: int | None = 0) -> str:
    """As somebody works there, with the settings of that repository alone."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", str(where), *words], env=env, capture_output=True)
    assert code is None or done.returncode == code, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
