"""Branches as a hundred agents leave them, on a repository of many files: fixes with their tests, now and then a page
of docs, a commit that mixes all, a fix that a neighbour has made too, and one that contradicts a neighbour's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

_WHO = "Bench <bench@example.com>"


class Branches:
    """`count` of them, named w0, w1, ..., each from main. The repository has `make_repository`'s files."""

    def __init__(self, top: Path, count: int, env: Mapping[str, str]) -> None:
        self.names = [f"w{number}" for number in range(count)]
        self.commits = 0
        self.apart: list[str] = []  # those whose commits go together with all others, for a bare cherry-pick
        self._clock = 1_700_000_000
        stream = "\n".join(line for number in range(count) for line in self._branch(number)) + "\n"
        line = ["git", "fast-import", "--quiet", "--force"]
        subprocess.run(line, cwd=top, env=env, input=stream, text=True, check=True)

    def _branch(self, number: int) -> Iterator[str]:
        """By its number: one in ten is a duplicate, one in fifty a contradiction, one in twenty mixes everything."""
        name = self.names[number]
        is_twin, is_rival, is_mixed = number % 10 == 7, number % 50 == 3, number % 20 == 11
        of = number - 1 if is_twin or is_rival else number
        fix = (f"d{of % 50:03}/f{of % 50 * 100 + of // 50}.py", _edited(of, "rival" if is_rival else "fixed"))
        test = (f"tests/test_{number}.py", f"def test_{number}() -> None:\n    assert {number} == {number}\n")
        page = (f"docs/page_{number}.md", f"# Page {number}\n")
        if not is_twin and not is_rival:
            self.apart.append(name)
        if is_mixed:
            yield from self._commit(name, f"Mend {number}, with all that belongs to it", "", fix, test, page)
            return
        yield from self._commit(name, f"Mend {of}", "implementation", fix, first=True)
        yield from self._commit(name, f"A test for {number}", "test", test)
        if number % 2 or number % 10 == 0:
            yield from self._commit(name, f"A page on {number}", "docs", page)

    def _commit(
        self, branch: str, subject: str, kind: str, *files: tuple[str, str], first: bool = False
    ) -> Iterator[str]:
        self.commits += 1
        self._clock += 1
        message = f"{subject}\n" + (f"\nKind: {kind}\n" if kind else "")
        yield f"commit refs/heads/{branch}"
        yield f"committer {_WHO} {self._clock} +0000"
        yield f"data {len(message)}\n{message}"
        if first or not kind:
            yield "from refs/heads/main"
        for path, text in files:
            yield f"M 644 inline {path}\ndata {len(text)}\n{text}"


def _edited(number: int, how: str) -> str:
    """What make_repository has written, with one line that is another."""
    file = number % 50 * 100 + number // 50
    lines = [f"# file {file}"] * 20
    lines[9] = f"# {how} by {number}"
    return "\n".join(lines) + "\n"
