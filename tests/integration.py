"""Repositories to integrate, from a description that fits into a test. A commit is a mapping of paths to contents, None
for a file that goes; a branch is a list of commits:

    project = Project(tmp_path, {"a.py": "x = 1\\n"}, one=[{"a.py": "x = 2\\n"}], two=[{"tests/test_a.py": "..."}])
    scratch = project.scratch()
    groups = project.groups()          # of all branches, in the order of the branches and their commits
    rest, fixes = project.sorted_out() # the same, by whether they are fixes

A content is text, bytes, or a pair of mode and content (`("100755", "#!/bin/sh\\n")`, `("120000", "target")`,
`("160000", 40 hex digits)`). A commit may also have `"": "its subject"`. `project.branch("three", [...], at="one")`
adds a branch later, also on top of another one.

The kind of a change is that of its paths, and mixed ones are fixes; changes that are described by the same mapping and
have the same kind are one group. Both is simpler than what mngr does, and enough for whatever comes after it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mngr.integrate.change import Change, Group, Ranked, Source
from mngr.integrate.picking.scratch import Scratch
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL, kind_of

Content = str | bytes | tuple[str, str | bytes] | None
Commit = Mapping[str, Content]
AUTHOR = "Agent <agent@localhost> 1700000000 +0000"


class Project:
    def __init__(self, path: Path, base: Commit, **branches: Sequence[Commit]) -> None:
        self.path = path / "project"
        self._places = path
        self._made: list[Change] = []
        self._what: dict[str, Commit] = {}  # by commit
        self.heads: dict[str, str] = {}
        self.git("init", "-q", "-b", "main", str(self.path), at=path)
        self.base = self._write("main", [{"": "Base", **base}], "")[-1]
        self.git("reset", "-q", "--hard")
        for name, commits in branches.items():
            self.branch(name, commits)

    def branch(self, name: str, commits: Sequence[Commit], at: str = "") -> list[str]:
        """The ids of its commits."""
        parent = self.heads.get(at, self.base)
        ids = self._write(name, commits, parent)
        for place, (id, commit) in enumerate(zip(ids, commits, strict=True)):
            self._made.append(self._change(name, place, id, parent, commit))
            self._what[id] = commit
            parent = id
        self.heads[name] = parent
        return ids

    def scratch(self, name: str = "integration") -> Scratch:
        return Scratch(str(self.path), "main", str(self._places / name))

    def changes(self) -> list[Change]:
        return list(self._made)

    def groups(self) -> list[Group]:
        found: dict[str, list[Change]] = {}
        for change in self._made:
            what = repr((change.is_fix, sorted((k, v) for k, v in self._what[change.id].items() if k)))
            found.setdefault(hashlib.sha256(what.encode()).hexdigest(), []).append(change)
        return [Group(key=key, changes=changes) for key, changes in found.items()]

    def sorted_out(self) -> tuple[list[Group], list[Ranked]]:
        """What is no fix, and the fixes, ranked as they come."""
        groups = self.groups()
        fixes = [Ranked(group=group, reasons=[]) for group in groups if group.first.is_fix]
        return [group for group in groups if not group.first.is_fix], fixes

    def sources(self) -> list[Source]:
        return [Source(branch=name, head=head) for name, head in self.heads.items()]

    def git(self, *words: str, at: Path | None = None, input: bytes = b"") -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *words], cwd=at or self.path, input=input, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def _change(self, branch: str, place: int, id: str, parent: str, commit: Commit) -> Change:
        paths = sorted(path for path in commit if path)
        kinds = {kind_of(path) for path in paths}
        kind = next(each for each in (IMPLEMENTATION, TEST, TUTORIAL, DOCS) if each in kinds)
        lines = sum(content.count("\n") for content in commit.values() if isinstance(content, str))
        return Change(
            id=id,
            commit=id,
            parent=parent,
            branch=branch,
            place=place,
            kind=kind,
            paths=paths,
            added=lines,
            subject=_subject(commit),
            author=AUTHOR,
        )

    def _write(self, branch: str, commits: Sequence[Commit], parent: str) -> list[str]:
        """All of them with one process."""
        ref = f"refs/heads/{branch}"
        lines = [] if parent else [b"reset %s\n" % ref.encode()]
        for number, commit in enumerate(commits, 1):
            lines.append(f"commit {ref}\nmark :{number}\ncommitter {AUTHOR}\n".encode())
            lines.append(_data(_subject(commit)))
            if number == 1 and parent:
                lines.append(f"from {parent}\n".encode())
            lines += [_entry(path, content) for path, content in commit.items() if path]
        marks = self._places / "marks"
        self.git("fast-import", "--quiet", "--force", f"--export-marks={marks}", input=b"".join(lines))
        ids = dict(line.split() for line in marks.read_text().splitlines())
        return [ids[f":{number}"] for number in range(1, len(commits) + 1)]


def plain_files(scratch: Scratch, tree: str) -> dict[str, str]:
    """What a tree holds: contents by path, of text files."""
    said = scratch.git("ls-tree", "-r", "-z", "--full-tree", tree)
    entries = [line.partition("\t") for line in said.split("\0")[:-1]]
    return {path: scratch.blob(about.split(" ")[2]).decode() for about, _, path in entries}


def _subject(commit: Commit) -> str:
    said = commit.get("") or f"Change {', '.join(sorted(path for path in commit if path))}"
    assert isinstance(said, str)
    return said


def _data(content: str | bytes) -> bytes:
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return b"data %d\n%s\n" % (len(raw), raw)


def _entry(path: str, content: Content) -> bytes:
    name = path.encode("utf-8", "surrogateescape")
    name = b'"' + name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    if content is None:
        return b"D %s\n" % name
    mode, content = content if isinstance(content, tuple) else ("100644", content)
    if mode == "160000":
        assert isinstance(content, str)
        return b"M 160000 %s %s\n" % (content.encode(), name)
    return b"M %s inline %s\n%s" % (mode.encode(), name, _data(content))
