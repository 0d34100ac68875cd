"""create: what an agent's work dir is made of. Modes, base and branch, uncommitted work, --from. What is added to it is
in test_create_setup.py, from where create can be called in test_create_places.py."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.agents import SLEEP, WEIRD_NAMES, agent, branches, commit, files, head, make, work_dir, worktrees
from tests.home import Home, Mngr


def users_git(home: Home, repo: Path) -> list[str]:
    """All that --dirty must not touch. Looking must not touch it either: git status likes to refresh the index."""
    index = hashlib.sha256((repo / ".git" / "index").read_bytes()).hexdigest()
    leftovers = [name for name in os.listdir(repo / ".git") if "mngr" in name or name.endswith(".lock")]
    looks = ["status --porcelain", "stash list", "rev-parse HEAD main", "symbolic-ref HEAD"]
    told = [home.run("git", "--no-optional-locks", *look.split(), cwd=repo) for look in looks]
    return [index, *told, *leftovers]


def make_dirty(home: Home, repo: Path) -> None:
    """Something of everything: staged, modified, deleted, untracked, renamed, a mode, links, weird names."""
    (repo / "gone").write_text("will be deleted\n")
    (repo / "old-name").write_text("will be renamed\n")
    commit(home, repo, "More files")
    (repo / "README.md").write_text("modified\n")
    (repo / "staged").write_text("staged\n")
    home.run("git", "add", "staged", cwd=repo)
    (repo / "staged").write_text("staged, then modified\n")
    (repo / "gone").unlink()
    home.run("git", "mv", "old-name", "new-name", cwd=repo)
    (repo / "src" / "app.py").chmod(0o755)
    (repo / "link").symlink_to("README.md")
    (repo / "broken").symlink_to("no/such/file")
    (repo / "new dir").mkdir()
    for name in WEIRD_NAMES:
        (repo / "new dir" / name).write_text(name)
        (repo / name).write_text(name)
    (repo / ".env").write_text("IGNORED=1\n")


# worktree, the default.


def test_the_default_is_a_worktree_on_a_new_branch_from_head(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr, "foo")
    record = agent(mngr, "foo")
    assert (record["mode"], record["branch"], record["base"]) == ("worktree", "mngr/foo", head(home, repo))
    assert f"{work}  " in home.run("git", "worktree", "list")
    assert home.run("git", "symbolic-ref", "HEAD", cwd=work) == "refs/heads/mngr/foo\n"
    assert files(work) == files(repo)
    assert home.run("git", "status", "--porcelain", cwd=work) == ""


def test_the_users_checkout_and_branches_stay_as_they_are(mngr: Mngr, home: Home, repo: Path) -> None:
    before = home.run("git", "symbolic-ref", "HEAD"), head(home, repo), home.run("git", "status", "--porcelain")
    make(mngr, "foo")
    assert before == (
        home.run("git", "symbolic-ref", "HEAD"),
        head(home, repo),
        home.run("git", "status", "--porcelain"),
    )
    assert branches(home) == ["main", "mngr/foo"]


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize("base", ["HEAD~1", "v1", "side", "full"])
def test_base_takes_any_name_of_a_commit(mngr: Mngr, home: Home, repo: Path, base: str, mode: str) -> None:
    home.run("git", "tag", "-a", "v1", "-m", "annotated")
    home.run("git", "branch", "side")
    first = head(home, repo)
    commit(home, repo, "Second commit")
    work = make(mngr, "foo", "--mode", mode, "--base", first if base == "full" else base)
    assert head(home, work) == first
    assert agent(mngr, "foo")["base"] == first


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_branch_names_the_new_branch(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    work = make(mngr, "foo", "--mode", mode, "--branch", "topic/ünï")
    assert home.run("git", "symbolic-ref", "HEAD", cwd=work) == "refs/heads/topic/ünï\n"
    assert agent(mngr, "foo")["branch"] == "topic/ünï"


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_an_existing_branch_is_worked_on_as_it_is(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    tip = make_topic(home, repo)
    work = make(mngr, "foo", "--branch", "topic", "--mode", mode)
    assert head(home, work) == tip
    assert home.run("git", "symbolic-ref", "HEAD", cwd=work) == "refs/heads/topic\n"
    assert agent(mngr, "foo")["base"] == tip, "what was there before is not the agent's work"
    mngr.ok("destroy", "foo", input="y\n")
    assert home.run("git", "rev-parse", "topic").strip() == tip, "a branch that create did not make is not removed"


@pytest.mark.parametrize("option", [("--base", "HEAD"), ("--dirty",), ("--from", "parent"), ("--from", "parent/x")])
def test_nothing_else_to_start_from_goes_with_an_existing_branch(
    mngr: Mngr, home: Home, repo: Path, option: tuple[str, str]
) -> None:
    make_topic(home, repo)
    if option[0] == "--from":
        make(mngr, "parent")
        mngr.ok("snapshot", "create", "parent", "x")
    result = mngr("create", "foo", "command", "--branch", "topic", *option, *SLEEP)
    assert result.code == 2
    assert result.err.startswith("mngr: the branch topic exists and is worked on as it is: ")


def make_topic(home: Home, repo: Path) -> str:
    """A branch that is not checked out, one commit ahead of main."""
    home.run("git", "switch", "-q", "-c", "topic")
    (repo / "topic").write_text("topic\n")
    tip = commit(home, repo, "On the topic")
    home.run("git", "switch", "-q", "main")
    return tip


@pytest.mark.parametrize("option", ["--branch=--detach", "--base=--all", "--base=--receive-pack=false"])
def test_a_branch_or_base_is_never_an_option_of_git(mngr: Mngr, repo: Path, option: str) -> None:
    result = mngr("create", "foo", "command", "--mode", "clone", option, *SLEEP)
    assert result.code in (1, 2)
    assert "is not a" in result.err
    assert mngr.json("list") == []


# clone.


def test_a_clone_has_its_own_branch_and_nobody_elses(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "branch", "side")
    home.run("git", "remote", "add", "origin", "https://example.com/sample.git")
    work = make(mngr, "foo", "--mode", "clone")
    assert home.run("git", "branch", "-a", "--format=%(refname)", cwd=work) == "refs/heads/mngr/foo\n"
    assert home.run("git", "remote", "get-url", "origin", cwd=work) == "https://example.com/sample.git\n"
    assert branches(home) == ["main", "side"]
    assert len(worktrees(home)) == 1
    commit(home, work, "Works")
    assert home.run("git", "fsck", cwd=work) == ""
    assert files(work) == files(repo)


def test_clones_borrow_their_objects_from_one_store(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / "large").write_bytes(os.urandom(3_000_000))
    commit(home, repo, "Large")
    mngr.ok("create", "foo", "command", "--mode", "clone", "--count", "3", *SLEEP)
    assert len(os.listdir(home.mngr_home / "repos")) == 1
    for name in ("foo-1", "foo-2", "foo-3"):
        objects = [path for path in (work_dir(mngr, name) / ".git" / "objects").rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in objects) < 10_000


def test_a_clone_lives_on_without_its_source(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr, "foo", "--mode", "clone")
    shutil.rmtree(repo)
    home.cwd = home.path
    assert home.run("git", "log", "--format=%s", cwd=work) == "First commit\n"
    assert home.run("git", "status", "--porcelain", cwd=work) == ""


def test_a_shallow_repository_has_no_clones_but_worktrees(mngr: Mngr, home: Home, repo: Path) -> None:
    commit(home, repo, "Second commit")
    home.cwd = home.root / "shallow"
    home.run("git", "clone", "-q", "--depth", "1", f"file://{repo}", str(home.cwd), cwd=home.root)
    make(mngr, "bar")
    for words in ((), ("--from", "bar")):
        result = mngr("create", "foo", "command", "--mode", "clone", *words, *SLEEP)
        assert result.code == 1
        assert result.err == (
            f"mngr: {home.cwd} is a shallow repository, which cannot be cloned\n"
            "hint: git fetch --unshallow there first, or use --mode worktree\n"
        )


# copy and none.


@pytest.fixture
def plain(home: Home) -> Path:
    """A directory that is no repository, with what is hard to copy in it."""
    home.cwd = home.root / "plain"
    (home.cwd / "sub").mkdir(parents=True)
    for name in WEIRD_NAMES:
        (home.cwd / "sub" / name).write_text(name)
    (home.cwd / "run.sh").write_text("#!/bin/sh\n")
    (home.cwd / "run.sh").chmod(0o755)
    (home.cwd / ".hidden").write_text("hidden\n")
    (home.cwd / "link").symlink_to("run.sh")
    (home.cwd / "broken").symlink_to("no/such/file")
    return home.cwd


def test_a_directory_that_is_no_repository_is_copied(mngr: Mngr, plain: Path) -> None:
    work = make(mngr, "foo")
    record = agent(mngr, "foo")
    assert (record["mode"], record["branch"], record["base"]) == ("copy", None, None)
    assert files(work) == files(plain)
    (work / "run.sh").write_text("changed\n")
    assert (plain / "run.sh").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_only_a_repository_has_worktrees_and_clones(mngr: Mngr, plain: Path, mode: str) -> None:
    result = mngr("create", "foo", "command", "--mode", mode, *SLEEP)
    assert result.code == 1
    assert result.err == f"mngr: {plain} is not a git repository\nhint: use --mode copy or --mode none there\n"


def test_a_repository_is_not_copied(mngr: Mngr, repo: Path) -> None:
    result = mngr("create", "foo", "command", "--mode", "copy", *SLEEP)
    assert result.code == 1
    assert "use --mode worktree or --mode clone" in result.err


def test_a_directory_that_contains_the_home_is_not_copied_into_itself(mngr: Mngr, home: Home) -> None:
    result = mngr("create", "foo", "command", *SLEEP, cwd=home.root)
    assert result.code == 1
    assert "cannot be copied into itself" in result.err


def test_mode_none_works_in_the_current_directory_itself(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--mode", "none", "--", "pwd -P >where", cwd=repo / "src")
    mngr.ok("wait", "foo", "--for", "done")
    assert (repo / "src" / "where").read_text().strip() == str(repo / "src")
    assert branches(home) == ["main"]
    mngr.ok("destroy", "-f", "foo")
    assert (repo / "src" / "where").exists(), "what is the user's own is never removed"


@pytest.mark.parametrize("option", [("--base", "HEAD"), ("--branch", "topic"), ("--dirty",)])
def test_options_about_branches_are_refused_where_there_is_none(
    mngr: Mngr, repo: Path, option: tuple[str, ...]
) -> None:
    result = mngr("create", "foo", "command", "--mode", "none", *option, *SLEEP)
    assert result.code == 2
    assert option[0] in result.err
    assert mngr.json("list") == []


# Uncommitted work.


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_dirty_carries_everything_uncommitted_and_leaves_the_source_alone(
    mngr: Mngr, home: Home, repo: Path, mode: str
) -> None:
    (repo / "README.md").write_text("stashed\n")
    home.run("git", "stash", "push", "-q")
    make_dirty(home, repo)
    before, wanted = users_git(home, repo), files(repo)
    del wanted[".env"]
    work = make(mngr, "foo", "--mode", mode, "--dirty")
    assert files(work) == wanted
    assert users_git(home, repo) == before
    assert head(home, work) == head(home, repo), "carried work is uncommitted"
    assert " M README.md" in home.run("git", "status", "--porcelain", cwd=work).splitlines()


def test_a_dirty_source_is_told_and_stays_behind(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / "README.md").write_text("modified\n")
    (repo / "new").write_text("new\n")
    result = mngr("create", "foo", "command", *SLEEP)
    assert result.err == f"mngr: 2 uncommitted changes stay behind in {repo} (--dirty carries them along)\n"
    assert files(work_dir(mngr, "foo"))["README.md"] == "# Sample\n "
    (repo / "README.md").write_text("# Sample\n")
    assert "1 uncommitted change stays behind in" in mngr("create", "bar", "command", *SLEEP).err


def test_a_clean_source_is_not_worth_a_word(mngr: Mngr, repo: Path) -> None:
    (repo / ".env").write_text("ignored\n")
    assert mngr("create", "foo", "command", *SLEEP).err == ""
    assert mngr("create", "bar", "command", "--dirty", *SLEEP).err == ""


def test_all_files_deleted_is_a_change_like_any_other(mngr: Mngr, repo: Path) -> None:
    for path in (repo / "README.md", repo / "src" / "app.py", repo / ".gitignore"):
        path.unlink()
    assert files(make(mngr, "foo", "--dirty")) == {}


def test_dirty_works_in_a_repository_without_files(mngr: Mngr, home: Home) -> None:
    home.run("git", "init", "-q", "bare-bones")
    home.cwd = home.path / "bare-bones"
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Nothing")
    assert files(make(mngr, "foo", "--dirty")) == {}


def test_dirty_goes_on_top_of_another_base(mngr: Mngr, home: Home, repo: Path) -> None:
    first = head(home, repo)
    (repo / "second").write_text("committed\n")
    commit(home, repo, "Second commit")
    (repo / "new").write_text("new\n")
    work = make(mngr, "foo", "--base", first, "--dirty")
    assert head(home, work) == first
    assert files(work) == files(repo)


def test_dirty_carries_a_merge_that_is_not_finished(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "switch", "-q", "-c", "side")
    (repo / "README.md").write_text("theirs\n")
    commit(home, repo, "Theirs")
    home.run("git", "switch", "-q", "main")
    (repo / "README.md").write_text("ours\n")
    commit(home, repo, "Ours")
    home.run("git", "merge", "side", check=False)
    before = users_git(home, repo)
    work = make(mngr, "foo", "--dirty")
    assert files(work)["README.md"] == files(repo)["README.md"]
    assert "<<<<<<<" in files(work)["README.md"]
    assert users_git(home, repo) == before


def test_nested_repositories_are_named_and_the_rest_is_carried(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "init", "-q", "without commits")
    home.run("git", "init", "-q", "src/näher")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Nested", cwd=repo / "src" / "näher")
    (repo / "new").write_text("new\n")
    before = users_git(home, repo)
    result = mngr("create", "foo", "command", "--dirty", *SLEEP)
    assert result.code == 0
    assert sorted(result.err.splitlines()) == [
        "mngr: src/näher is a repository of its own and is not carried",
        "mngr: without commits is a repository of its own and is not carried",
    ]
    assert (work_dir(mngr, "foo") / "new").read_text() == "new\n"
    assert users_git(home, repo) == before


# --from.


def test_from_takes_a_directory_relative_or_absolute(mngr: Mngr, home: Home, repo: Path) -> None:
    for number, path in enumerate([str(repo), "../repo", "repo", "~/../repo"]):
        cwd = home.root if path == "repo" else home.path
        mngr.ok("create", f"foo-{number}", "command", "--from", path, *SLEEP, cwd=cwd)
    assert {each["source"] for each in mngr.json("list")} == {str(repo)}


def test_from_an_agent_starts_with_its_commits_and_its_uncommitted_files(mngr: Mngr, home: Home, repo: Path) -> None:
    parent = make(mngr, "foo", "--label", "a=1", "--env", "A=1")
    tip = commit(home, parent, "By foo")
    (parent / "new").write_text("uncommitted\n")
    mngr.ok("create", "bar", "--from", "foo", "--label", "b=2", "--env", "B=2")
    child = agent(mngr, "bar")
    assert (child["command"], child["labels"]) == (["sleep", "100"], {"a": "1", "b": "2"})
    assert (child["base"], child["branch"], child["source"]) == (tip, "mngr/bar", str(repo))
    assert files(Path(child["work_dir"])) == files(parent)
    assert mngr.ok("exec", "bar", "--", "echo $A $B") == "1 2\n"


def test_from_a_snapshot_starts_with_what_it_holds(mngr: Mngr, home: Home, repo: Path) -> None:
    parent = make(mngr, "foo")
    (parent / "new").write_text("then\n")
    mngr.ok("snapshot", "create", "foo", "before")
    (parent / "new").write_text("now\n")
    assert files(make(mngr, "bar", "--from", "foo/before"))["new"] == "then\n "


def test_from_something_unknown_is_refused_with_the_nearest(mngr: Mngr, repo: Path) -> None:
    make(mngr, "parent")
    result = mngr("create", "foo", "command", "--from", "parnet", *SLEEP)
    assert result.code == 2
    assert result.err == (
        "mngr: --from parnet: neither a directory, nor an agent, nor a snapshot\nhint: did you mean parent?\n"
    )


def test_base_with_from_an_agent_or_a_snapshot_is_refused(mngr: Mngr, repo: Path) -> None:
    make(mngr, "parent")
    mngr.ok("snapshot", "create", "parent", "x")
    for start in ("parent", "parent/x"):
        assert mngr("create", "foo", "command", "--from", start, "--base", "main", *SLEEP).code == 2


def test_mode_none_from_an_agent_works_beside_it(mngr: Mngr, repo: Path) -> None:
    parent = make(mngr, "parent")
    assert make(mngr, "foo", "--from", "parent", "--mode", "none") == parent
    mngr.ok("snapshot", "create", "parent", "x")
    result = mngr("create", "bar", "--from", "parent/x", "--mode", "none")
    assert result.code == 2
    assert "--mode none makes no sense with a snapshot" in result.err
