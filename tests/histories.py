r"""Git histories for tests, written as objects: no work tree is needed, so that a name may be any bytes and a file
may be a link, a submodule or nothing but a mode.

    history = History(tmp_path / "repo")
    base = history.commit("main", {"a.py": "one\n", "run": ("100755", "#!/bin/sh\n"), "old.py": None})
    fix = history.commit("fix", {"a.py": "two\n"}, "Fix it", base)

`scratch(history)` is what an integration works in, `source(history, "fix")` a branch as it takes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mngr.config import Config, Setting
from mngr.integrate.change import Change, Source
from mngr.integrate.picking import read as reading
from mngr.integrate.picking.policy import Policy, policy
from mngr.integrate.picking.scratch import Scratch

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
NOW = 1_700_000_000
Content = str | bytes | tuple[str, str | bytes] | None  # of a file; with its mode; None: it goes


def environment(home: Path) -> dict[str, str]:
    """For git, with nothing of whoever runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    who = {f"GIT_{role}_{what}": "tester" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**kept, **who, "HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class History:
    def __init__(self, top: Path, *flags: str) -> None:
        self.top = top
        self.env = environment(top.parent)
        self._commits = 0
        top.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *flags)

    def git(self, *words: str, input: bytes = b"", code: int | None = 0) -> str:
        done = subprocess.run(["git", *words], cwd=self.top, env=self.env, input=input, capture_output=True)
        assert code is None or done.returncode == code, os.fsdecode(done.stderr)
        return os.fsdecode(done.stdout).removesuffix("\n")

    def commit(
        self,
        branch: str,
        files: Mapping[str, Content] | None = None,
        message: str | bytes = "A change",
        *parents: str,
        author: str = "Ann <ann@example.org>",
    ) -> str:
        """On its branch, or on the parents that are given. The id."""
        self._commits += 1
        if not parents:
            there = self.git("rev-parse", "-q", "--verify", f"refs/heads/{branch}", code=None)
            parents = (there,) if there else ()
        who = f"{author} {NOW + self._commits} +0100\n"
        said = [b"feature done\n", os.fsencode(f"commit refs/heads/{branch}\nmark :1\nauthor {who}committer {who}")]
        said += [_data(message), *(os.fsencode(line) for line in _of_parents(parents))]
        changed = dict(files or {})
        said += [b"D " + _path(path) + b"\n" for path, content in changed.items() if content is None]
        said += [_file(path, content) for path, content in changed.items() if content is not None]
        said += [b"\nget-mark :1\ndone\n"]
        return self.git("fast-import", "--quiet", "--force", input=b"".join(said))

    def tree(self, commit: str) -> str:
        return self.git("rev-parse", f"{commit}^{{tree}}")

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        """Every file below, those of git too: mode and content."""
        found = {}
        for directory, names, files in os.walk(os.fsencode(self.top)):
            for name in [*names, *files]:
                path = os.path.join(directory, name)
                about = os.lstat(path)
                if os.path.islink(path):
                    content = os.readlink(path)
                else:
                    content = Path(os.fsdecode(path)).read_bytes() if os.path.isfile(path) else b""
                found[os.fsdecode(path)] = (about.st_mode, content)
        return found


def _of_parents(parents: Sequence[str]) -> list[str]:
    return [f"{'merge' if number else 'from'} {parent}\n" for number, parent in enumerate(parents)]


def _data(text: str | bytes) -> bytes:
    content = os.fsencode(text)
    return b"data %d\n%s\n" % (len(content), content)


def _path(path: str) -> bytes:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return os.fsencode(f'"{quoted}"')


def _file(path: str, content: str | bytes | tuple[str, str | bytes]) -> bytes:
    mode, inner = content if isinstance(content, tuple) else (FILE, content)
    if mode == SUBMODULE:
        return b"M %s %s %s\n" % (mode.encode(), os.fsencode(inner), _path(path))
    return b"M %s inline %s\n%s" % (mode.encode(), _path(path), _data(inner))


def scratch(history: History, base: str = "main", directory: str = "integration") -> Scratch:
    return Scratch(str(history.top), base, str(history.top.parent / directory))


def source(history: History, branch: str, **more: Any) -> Source:
    return Source(branch=branch, head=history.git("rev-parse", f"refs/heads/{branch}"), **more)


def kinds(scratch: Scratch, **settings: list[str]) -> Policy:
    """As the configuration of `[integrate]` has it."""
    said = {f"integrate.{key}": Setting(value=value, origin="here") for key, value in settings.items()}
    return policy(scratch, Config(said))


def read(history: History, *branches: str, where: Scratch | None = None) -> list[Change]:
    """The changes of these branches."""
    there = where or scratch(history)
    return reading.read(there, [source(history, branch) for branch in branches], kinds(there)).changes
