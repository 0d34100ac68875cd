"""A small project with tests and branches of work, as tests of the integration need them: `shelf.branch("work/one",
("Mend it", {"shelf.py": ...}))` makes a branch with a commit for each pair. Whatever is made here has the same ids
every time."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from tests.home import Home

BASE = {
    "shelf.py": """\
def total(prices):
    return sum(prices)


def biggest(prices):
    return min(prices)


def smallest(prices):
    return max(prices)


def mean(prices):
    return sum(prices) / 2
""",
    "tests/test_total.py": """\
from shelf import total


def test_total():
    assert total([1, 2]) == 3
""",
    "README.md": "# Shelf\n",
}
Files = dict[str, str | None]  # None: it is removed


def test_of(function: str, given: str, expected: str) -> str:
    """The text of a file with one test."""
    return f"from shelf import {function}\n\n\ndef test_{function}():\n    assert {function}({given}) == {expected}\n"


test_of.__test__ = False  # type: ignore[attr-defined]
BIGGEST: Files = {"shelf.py": BASE["shelf.py"].replace("return min", "return max", 1)}
SMALLEST: Files = {"shelf.py": BASE["shelf.py"].replace("return max", "return min", 1)}
MEAN: Files = {"shelf.py": BASE["shelf.py"].replace("/ 2", "/ len(prices)")}
OTHER_MEAN: Files = {"shelf.py": BASE["shelf.py"].replace("/ 2", "/ (len(prices) or 1)")}
BROKEN_TOTAL: Files = {"shelf.py": BASE["shelf.py"].replace("return sum(prices)\n", "return len(prices)\n", 1)}


class Shelf:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.top = home.root / "shelf"
        self.top.mkdir()
        self._seconds = 1_700_000_000
        self.git("init", "-q", "-b", "main")
        self.base = self.commit("Begin", dict(BASE))
        home.cwd = self.top

    def git(self, *words: str) -> str:
        who = {"NAME": "Ada", "EMAIL": "ada@example.com", "DATE": f"{self._seconds} +0000"}
        env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        env = {**self.home.env, **env}
        done = subprocess.run(["git", *words], cwd=self.top, env=env, text=True, capture_output=True)
        assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def commit(self, message: str, files: Files) -> str:
        for name, text in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        self._seconds += 60
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, *commits: tuple[str, Files], at: str = "main") -> list[str]:
        """Its commits; what is checked out afterwards is `main`."""
        self.git("checkout", "-q", "-b", name, at)
        made = [self.commit(message, files) for message, files in commits]
        self.git("checkout", "-q", "main")
        return made

    def subjects(self, branch: str, since: str = "main") -> list[str]:
        """Oldest first."""
        return self.git("log", "--reverse", "--format=%s", f"{since}..{branch}").splitlines()

    def commits(self, branch: str, since: str = "main") -> list[str]:
        return self.git("rev-list", "--reverse", f"{since}..{branch}").splitlines()

    def message(self, commit: str) -> str:
        return self.git("log", "-1", "--format=%B", commit)

    def paths(self, commit: str) -> list[str]:
        return self.git("diff-tree", "-r", "--no-commit-id", "--name-only", commit).splitlines()

    def show(self, branch: str, path: str) -> str:
        return self.git("show", f"{branch}:{path}") + "\n"

    def state(self) -> dict[str, str]:
        """Everything of the repository that a user could miss: references, index, HEAD, settings, files. Not objects
        that nothing refers to."""
        found = {"refs": self.git("for-each-ref", "--format=%(refname) %(objectname)")}
        places = [self.top / ".git" / name for name in ("HEAD", "index", "config", "FETCH_HEAD", "MERGE_HEAD")]
        for path in [*places, *(path for path in self.top.rglob("*") if ".git" not in path.parts)]:
            if path.is_file():
                about = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
                found[str(path.relative_to(self.top))] = about
        return found


def directory(report: dict[str, object]) -> Path:
    return Path(str(report["directory"]))
