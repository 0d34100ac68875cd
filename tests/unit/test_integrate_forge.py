"""Patches, pushes to a real remote on disk, and pull requests by a `gh` that is a script."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from mngr.errors import MngrError, UsageError
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.writing import forge
from mngr.integrate.writing.forge import Token, patches, pull_request, push, way_out, withhold

NO_TOKEN = Token({})
IDENTITY = {"user.name": "Ada", "user.email": "ada@example.org"}
# Writes down what it is called with, and answers what lies beside it.
GH = """#!/bin/sh
here=$(dirname "$0")
for word; do printf '%s\\0' "$word"; done >>"$here/words"
printf '\\n' >>"$here/words"
pwd >>"$here/places"
printf '%s\\n' "${GH_TOKEN-none}" >>"$here/tokens"
case "$2" in list) cat "$here/open" ;; create) echo "Creating pull request"; echo https://forge.example/pull/7 ;; esac
code=$(cat "$here/code-$2" 2>/dev/null || echo 0)
[ "$code" = 0 ] || cat "$here/says" >&2
exit "$code"
"""


class Forge:
    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.gh = str(place / "gh")
        (place / "gh").write_text(GH)
        (place / "gh").chmod(0o755)
        (place / "open").write_text("[]")
        (place / "body.md").write_text("# Body\n")

    def calls(self) -> list[list[str]]:
        return [line.split("\0")[:-1] for line in (self.place / "words").read_text().splitlines()]

    def fails(self, verb: str, code: int, says: str) -> None:
        (self.place / f"code-{verb}").write_text(str(code))
        (self.place / "says").write_text(says + "\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """With the branches main and `new`, which is two commits ahead, and a remote on disk that has main."""
    top = tmp_path / "repo"
    top.mkdir()
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(tmp_path / "remote.git"))
    git(top, "init", "-q", "-b", "main")
    commit(top, "base")
    git(top, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(top, "push", "-q", "origin", "main")
    git(top, "checkout", "-q", "-b", "new")
    commit(top, "one")
    commit(top, "two")
    git(top, "checkout", "-q", "main")
    return top


def git(top: Path, *words: str) -> str:
    settings = [word for key, value in IDENTITY.items() for word in ("-c", f"{key}={value}")]
    done = subprocess.run(["git", "-C", str(top), *settings, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(top: Path, name: str) -> str:
    (top / name).write_text(f"{name}\n")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", f"Add {name}")
    return git(top, "rev-parse", "HEAD")


def on_remote(top: Path, branch: str = "new") -> str:
    return git(top, "ls-remote", "origin", f"refs/heads/{branch}").partition("\t")[0]


# The token


def test_tokens_are_out_of_the_environment_until_they_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in forge.TOKENS:
        monkeypatch.setenv(name, f"secret of {name}")
    token = withhold()
    assert not set(forge.TOKENS) & set(os.environ)
    assert token.environment()["GH_TOKEN"] == "secret of GH_TOKEN"
    assert "secret" not in repr(token)
    token.give_back()
    assert os.environ["GITHUB_TOKEN"] == "secret of GITHUB_TOKEN"


# Patches


def test_patches_make_the_same_tree_again(repo: Path, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "new")
    (repo / "binary").write_bytes(bytes(range(256)))
    (repo / "link").symlink_to("one")
    (repo / "dos").write_bytes(b"one\r\ntwo\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Odd files\n\nKind: test")
    (repo / "dos").write_bytes(b"one\r\n2\r\n")
    subject = "[PATCH] [shop] Re: count, at last, with a subject that is longer than a line of mail"
    git(repo, "commit", "-q", "-a", "-m", subject)
    git(repo, "checkout", "-q", "main")
    scratch = Scratch(str(repo), "main", str(tmp_path / "integration"))
    found = patches(scratch, scratch.base, git(repo, "rev-parse", "new"), str(tmp_path / "patches"))
    assert [os.path.basename(path) for path in found] == [
        "0001-Add-one.patch",
        "0002-Add-two.patch",
        "0003-Odd-files.patch",
        "0004-PATCH-shop-Re-count-at-last-with-a-subject-that-is-l.patch",
    ]
    git(repo, "checkout", "-q", "-b", "again", "main")
    git(repo, "am", "-q", "-k", "--keep-cr", *found)
    assert git(repo, "rev-parse", "again^{tree}") == git(repo, "rev-parse", "new^{tree}")
    assert git(repo, "log", "--format=%B", "again") == git(repo, "log", "--format=%B", "new")


def test_patches_of_an_earlier_integration_are_removed(repo: Path, tmp_path: Path) -> None:
    scratch = Scratch(str(repo), "main", str(tmp_path / "integration"))
    base, one, two = (git(repo, "rev-parse", name) for name in ("main", "new~1", "new"))
    directory = str(tmp_path / "patches")
    assert len(patches(scratch, base, two, directory)) == 2
    assert len(patches(scratch, base, one, directory)) == 1
    assert len(os.listdir(directory)) == 1


# Pushing


def test_a_branch_is_pushed(repo: Path) -> None:
    push(str(repo), "origin", "new", [], NO_TOKEN)
    assert on_remote(repo) == git(repo, "rev-parse", "new")


def test_what_an_integration_has_written_is_overwritten(repo: Path) -> None:
    push(str(repo), "origin", "new", [], NO_TOKEN)
    ours = git(repo, "rev-parse", "new")
    git(repo, "update-ref", "refs/heads/new", "new~1")
    push(str(repo), "origin", "new", [ours], NO_TOKEN)
    assert on_remote(repo) == git(repo, "rev-parse", "new")


def test_a_branch_that_was_deleted_there_is_made_again(repo: Path, tmp_path: Path) -> None:
    push(str(repo), "origin", "new", [], NO_TOKEN)
    git(repo, "push", "-q", "origin", ":new")
    push(str(repo), "origin", "new", [], NO_TOKEN)
    assert on_remote(repo) == git(repo, "rev-parse", "new")


def test_what_somebody_else_pushed_is_left_alone(repo: Path, tmp_path: Path) -> None:
    push(str(repo), "origin", "new", [], NO_TOKEN)
    git(repo, "checkout", "-q", "--detach", "new")
    ours = git(repo, "rev-parse", "new")
    theirs = commit(repo, "theirs")
    git(repo, "push", "-q", "origin", "HEAD:new")
    git(repo, "update-ref", "refs/heads/new", "new~1")
    with pytest.raises(MngrError, match="new on origin has commits that no integration has written") as caught:
        push(str(repo), "origin", "new", [ours], NO_TOKEN)
    assert "--force-with-lease" in (caught.value.hint or "")
    assert on_remote(repo) == theirs


def test_a_refusal_of_the_remote_is_told_in_one_line(repo: Path, tmp_path: Path) -> None:
    hook = tmp_path / "remote.git" / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(MngrError, match=r"origin has refused new: .*hook declined") as caught:
        push(str(repo), "origin", "new", [], NO_TOKEN)
    assert f"git -C {repo} push origin new" in (caught.value.hint or "")
    assert "\n" not in caught.value.message


def test_a_remote_that_is_not_there_is_told_without_its_password(repo: Path, tmp_path: Path) -> None:
    git(repo, "remote", "set-url", "origin", "https://me:hunter2@localhost:1/nothing.git")
    with pytest.raises(MngrError, match="origin cannot be reached") as caught:
        push(str(repo), "origin", "new", [], NO_TOKEN)
    assert "hunter2" not in caught.value.message + (caught.value.hint or "")


def test_without_a_remote_there_is_no_way_out(repo: Path) -> None:
    assert way_out(str(repo), "", pull_request=False) == "origin"
    with pytest.raises(UsageError, match="there is no remote mine in"):
        way_out(str(repo), "mine", pull_request=False)
    git(repo, "remote", "remove", "origin")
    with pytest.raises(MngrError, match="has no remote to push to"):
        way_out(str(repo), "", pull_request=False)


def test_without_gh_there_is_no_way_out_for_a_pull_request(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(MngrError, match="is not installed, so there would be no pull request"):
        way_out(str(repo), "", pull_request=True, gh=str(tmp_path / "no-gh"))


def test_the_remote_that_git_pushes_to_comes_before_origin(repo: Path, tmp_path: Path) -> None:
    git(repo, "remote", "add", "mine", str(tmp_path / "remote.git"))
    git(repo, "config", "remote.pushDefault", "mine")
    assert way_out(str(repo), "", pull_request=False) == "mine"


# Pull requests


def test_a_pull_request_is_created(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    body = str(there.place / "body.md")
    token = Token({"GH_TOKEN": "t0ken"})
    url = pull_request(str(repo), "origin", "main", "new", "A title\nof two lines", body, token, gh=there.gh)
    assert url == "https://forge.example/pull/7"
    assert there.calls()[1] == [
        *["pr", "create", "--head", "new", "--base", "main", "--title", "A title of two lines", "--body-file", body]
    ]
    assert (there.place / "places").read_text().splitlines() == [str(repo)] * 2
    assert (there.place / "tokens").read_text().splitlines() == ["t0ken"] * 2


def test_one_that_is_open_gets_the_new_title_and_body(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    fork = {
        "number": 3,
        "url": "https://forge.example/pull/3",
        "isCrossRepository": True,
        "headRepositoryOwner": {"login": "x"},
    }
    own = {"number": 4, "url": "https://forge.example/pull/4", "isCrossRepository": False}
    (there.place / "open").write_text(json.dumps([fork, own]))
    body = str(there.place / "body.md")
    assert pull_request(str(repo), "origin", "", "new", "Title", body, NO_TOKEN, gh=there.gh) == own["url"]
    assert there.calls()[1:] == [["pr", "edit", "4", "--title", "Title", "--body-file", body]]


@pytest.mark.parametrize(
    "address",
    [
        "https://me@forge.example/Ada/project.git",
        "git@forge.example:Ada/project",
        "ssh://git@forge.example:22/Ada/project/",
    ],
)
def test_of_a_fork_it_is_said_whose_it_is(repo: Path, tmp_path: Path, address: str) -> None:
    there = Forge(tmp_path / "forge")
    git(repo, "remote", "set-url", "origin", "https://forge.example/team/project.git")
    git(repo, "remote", "add", "fork", address)
    others = [
        {"number": number, "url": f"https://forge.example/pull/{number}", "isCrossRepository": number != 3}
        | {"headRepositoryOwner": {"login": login}}
        for number, login in ((3, "team"), (4, "bob"))
    ]
    (there.place / "open").write_text(json.dumps(others))
    body = str(there.place / "body.md")
    pull_request(str(repo), "fork", "", "new", "Title", body, NO_TOKEN, gh=there.gh)
    assert there.calls()[1][:4] == ["pr", "create", "--head", "Ada:new"]
    own = {**others[1], "number": 5, "headRepositoryOwner": {"login": "ada"}}
    (there.place / "open").write_text(json.dumps([*others, own]))
    pull_request(str(repo), "fork", "", "new", "Title", body, NO_TOKEN, gh=there.gh)
    assert there.calls()[3][:3] == ["pr", "edit", "5"]


def test_a_remote_that_gh_takes_for_the_base_is_what_a_fork_is_compared_with(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    git(repo, "remote", "set-url", "origin", "https://forge.example/ada/project.git")
    git(repo, "remote", "add", "main-one", "https://forge.example/team/project.git")
    body = str(there.place / "body.md")
    pull_request(str(repo), "origin", "", "new", "Title", body, NO_TOKEN, gh=there.gh)
    assert there.calls()[1][3] == "new"
    git(repo, "config", "remote.main-one.gh-resolved", "base")
    pull_request(str(repo), "origin", "", "new", "Title", body, NO_TOKEN, gh=there.gh)
    assert there.calls()[3][3] == "ada:new"


def test_without_a_known_base_the_forge_decides(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    pull_request(str(repo), "origin", "", "new", "Title", str(there.place / "body.md"), NO_TOKEN, gh=there.gh)
    assert "--base" not in there.calls()[1]


def test_without_gh_the_command_is_told(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(MngrError, match="is not installed, so there is no pull request") as caught:
        pull_request(str(repo), "origin", "main", "new", "My title", "/body.md", NO_TOKEN, gh=str(tmp_path / "no-gh"))
    assert f"cd {repo} && gh pr create --head new --base main --title 'My title'" in (caught.value.hint or "")


def test_who_is_not_logged_in_is_told_how(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    there.fails("list", 4, "To get started with GitHub CLI, please run:  gh auth login")
    with pytest.raises(MngrError, match="gh is not logged in") as caught:
        pull_request(str(repo), "origin", "main", "new", "Title", str(there.place / "body.md"), NO_TOKEN, gh=there.gh)
    assert (caught.value.hint or "").startswith("gh auth login; then: cd ")


def test_what_gh_says_is_told_when_it_fails(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    there.fails("create", 1, "pull request create failed: No commits between main and new")
    with pytest.raises(MngrError, match=r"made no pull request: .*No commits between main and new"):
        pull_request(str(repo), "origin", "main", "new", "Title", str(there.place / "body.md"), NO_TOKEN, gh=there.gh)


def test_an_answer_that_is_no_list_is_not_acted_on(repo: Path, tmp_path: Path) -> None:
    there = Forge(tmp_path / "forge")
    (there.place / "open").write_text("<html>")
    with pytest.raises(MngrError, match="nobody understands"):
        pull_request(str(repo), "origin", "main", "new", "Title", str(there.place / "body.md"), NO_TOKEN, gh=there.gh)
    assert len(there.calls()) == 1
