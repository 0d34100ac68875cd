"""Which commits of another machine the user's repository has, and what a machine that lies can make of its answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from mngr.fleet.destroy import _read_new
from mngr.fleet.far_work import kept_here
from mngr.fleet.handover import _look
from mngr.hosts import git
from mngr.model import CLONE, Agent
from mngr.process import Done
from tests.home import each

if TYPE_CHECKING:
    from mngr.hosts import Host

NOBODY = ["-c", "user.name=t", "-c", "user.email=t@example.com"]


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *words: str) -> str:
        argv = ["git", "-C", str(self.path), *NOBODY, *words]
        return subprocess.run(argv, text=True, capture_output=True, check=True, timeout=60).stdout.strip()

    def commit(self, text: str) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")

    def new(self, base: str, tip: str = "HEAD") -> dict[str, list[str]]:
        """As the host lists it."""
        lines = self.git("rev-list", "--parents", tip, f"^{base}").splitlines()
        return {commit: parents for commit, *parents in map(str.split, lines)}


@pytest.fixture
def here(tmp_path: Path) -> Repository:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "here")], check=True, timeout=60)
    return Repository(tmp_path / "here")


@pytest.fixture
def base(here: Repository) -> str:
    return here.commit("Base")


@pytest.fixture
def there(tmp_path: Path, here: Repository, base: str) -> Repository:
    argv = ["git", "clone", "-q", str(here.path), str(tmp_path / "there")]
    subprocess.run(argv, check=True, timeout=60)
    return Repository(tmp_path / "there")


def clone_of(here: Repository, base: str) -> Agent:
    return Agent(
        id="0123456789ab",
        name="a",
        type="command",
        host="box.ssh",
        command=["sh"],
        work_dir="/nowhere",
        mode=CLONE,
        created=0.0,
        source=str(here.path),
        branch="mngr/a",
        base=base,
    )


def kept(here: Repository, there: Repository, base: str, doomed: list[str] | None = None) -> tuple[list[str], int, int]:
    agent = clone_of(here, base)
    found = kept_here([agent], {agent.id: there.new(base)}, doomed or [])[agent.id]
    return found.have, found.lost, found.unsafe


def test_what_was_never_pulled_is_lost(here: Repository, there: Repository, base: str) -> None:
    there.commit("One")
    there.commit("Two")
    assert kept(here, there, base) == ([base], 2, 0)


def test_of_what_was_pulled_the_newest_stands_for_all(here: Repository, there: Repository, base: str) -> None:
    there.commit("One")
    pulled = there.commit("Two")
    here.git("fetch", "-q", str(there.path), f"{pulled}:refs/heads/mngr/a")
    there.commit("Three")
    assert kept(here, there, base) == ([pulled], 1, 0)


def test_a_commit_that_no_ref_here_has_is_lost(here: Repository, there: Repository, base: str) -> None:
    pulled = there.commit("One")
    here.git("fetch", "-q", str(there.path), f"{pulled}:refs/heads/mngr/a")
    here.git("update-ref", "-d", "refs/heads/mngr/a")
    assert here.git("cat-file", "-t", pulled) == "commit"
    assert kept(here, there, base) == ([base], 1, 0)


def test_a_branch_that_goes_too_keeps_nothing(here: Repository, there: Repository, base: str) -> None:
    pulled = there.commit("One")
    here.git("fetch", "-q", str(there.path), f"{pulled}:refs/heads/mngr/a")
    assert kept(here, there, base) == ([pulled], 0, 0)
    assert kept(here, there, base, ["mngr/a"]) == ([base], 1, 0)


def test_tags_and_remotes_keep_too(here: Repository, there: Repository, base: str) -> None:
    tagged, followed = there.commit("One"), there.commit("Two")
    here.git("fetch", "-q", str(there.path), f"{tagged}:refs/tags/v1", f"{followed}:refs/remotes/origin/x")
    assert kept(here, there, base) == ([followed], 0, 0)


def test_a_base_that_is_not_here_counts_for_one(here: Repository, there: Repository, base: str) -> None:
    own = there.commit("Only there")
    assert kept(here, there, own) == ([], 0, 1)
    there.commit("More")
    assert kept(here, there, own) == ([], 1, 1)


def test_what_is_no_commit_is_passed_over() -> None:
    commit = "0123456789" * 4
    text = f"new a {commit} --output=x\nnew b {commit}\nnew a\nnew\nnew a {commit[:-1]}\nnew a {commit} {commit}\n"
    assert _read_new(text, {"a"}) == {"a": {commit: [commit]}}


class Liar:
    name, home, socket = "box.ssh", "/root/.mngr", "/tmp/s"

    def __init__(self, text: str) -> None:
        self.lines: Any = self
        self.text = text

    def run(self, script: str, *, deadline: float) -> Done:
        return Done(code=0, out=self.text, err="")


def test_a_host_that_lies_about_branches_gives_git_no_options(here: Repository) -> None:
    commit = "0123456789" * 4
    agent = clone_of(here, commit)
    lines = [
        f"tip {agent.id} --output=x refs/heads/x",
        f"tip {agent.id} {commit} --upload-pack=x",
        f"tip {agent.id} {commit} refs/heads/real",
        f"tip ffffffffffff {commit} refs/heads/x",
        f"work {agent.id} many {commit} main",
        f"work {agent.id} 1 --all (detached)",
        "work",
        "",
    ]
    work = _look(cast("Host", Liar("\n".join(lines))), [agent])[agent.id]
    assert (work.files, work.on, work.tips) == (0, "refs/heads/mngr/a", [(commit, "refs/heads/real")])


def test_of_several_who_send_the_same_commit_nobody_is_refused(tmp_path: Path) -> None:
    source, store = tmp_path / "source", tmp_path / "store.git"
    subprocess.run(["git", "init", "-q", source], check=True)
    commit = Repository(source).commit("One")
    subprocess.run(["git", "init", "-q", "--bare", store], check=True)
    codes: list[int] = []

    def send() -> None:
        words = ("push", "-q", "--", str(store), f"{commit}:refs/mngr/base/{commit}")
        codes.append(git.insist(str(source), *words, deadline=60).code)

    each([send] * 4)
    assert codes == [0] * 4
