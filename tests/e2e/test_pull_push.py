"""pull and push: commits move forward only, files arrive as they were, and nobody's unfinished work is touched."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.home import Home, Mngr

WEIRD = [
    "-rf",
    "two  blanks ",
    "ünï cödé 🙂",
    "new\nline",
    'it\'s "quoted" \\ `id`',
    "$(touch pwned)",
    "{}",
    "{name} {path} {id}",
    "*?[a]",
    "with:colon",
    ".hidden",
    "~",
]


# pull: commits


def test_the_branch_of_a_worktree_is_there_already(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    commit(home, work(agent), "Work")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a is already in {repo}\n"
    (work(agent) / "new").touch()
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a is already in {repo}; 1 uncommitted file stays there\n"


def test_the_branch_of_a_clone_is_brought_forward(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    commit(home, work(agent), "One")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a has 1 new commit in {repo}\n"
    commit(home, work(agent), "Two")
    tip = commit(home, work(agent), "Three")
    mngr.ok("stop", "a")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a has 2 new commits in {repo}\n"
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a is up to date in {repo}\n"
    assert head(home, repo, "mngr/a") == tip
    assert home.run("git", "status", "--porcelain") == ""
    assert home.run("git", "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main", "refs/heads/mngr/a"]


def test_a_branch_with_commits_of_its_own_is_not_overwritten(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    commit(home, work(agent), "Theirs")
    home.run("git", "checkout", "-q", "-b", "mngr/a")
    mine = commit(home, repo, "Mine")
    home.run("git", "checkout", "-q", "main")
    result = mngr("pull", "a")
    assert (result.code, result.out) == (1, "")
    assert f"mngr/a in {repo} has commits that a does not have" in result.err
    assert head(home, repo, "mngr/a") == mine


def test_a_branch_that_is_checked_out_moves_with_its_files(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    commit(home, work(agent), "One")
    mngr.ok("pull", "a")
    home.run("git", "checkout", "-q", "mngr/a")
    tip = commit(home, work(agent), "Two")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a has 1 new commit in {repo}\n"
    assert head(home, repo) == tip
    assert (repo / "two").read_text() == "Two"
    assert home.run("git", "status", "--porcelain") == ""


@pytest.mark.parametrize("dirt", ["unstaged", "staged"])
def test_a_dirty_checkout_is_never_touched(mngr: Mngr, home: Home, repo: Path, dirt: str) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    mngr.ok("pull", "a")
    home.run("git", "checkout", "-q", "mngr/a")
    commit(home, work(agent), "Work")
    (repo / "README.md").write_text("mine")
    if dirt == "staged":
        home.run("git", "add", "README.md")
    before = (head(home, repo), home.run("git", "status", "--porcelain"))
    for words in (["pull", "a"], ["pull", "a", "--merge"]):
        result = mngr(*words)
        assert result.code == 1
        assert f"{repo} has 1 uncommitted change and is left alone" in result.err
    assert (head(home, repo), home.run("git", "status", "--porcelain")) == before
    assert (repo / "README.md").read_text() == "mine"


def test_what_is_not_checked_out_is_pulled_into_a_dirty_repository(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    tip = commit(home, work(agent), "Work")
    (repo / "README.md").write_text("mine")
    mngr.ok("pull", "a")
    assert head(home, repo, "mngr/a") == tip
    assert (repo / "README.md").read_text() == "mine"


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_merge_merges_into_what_is_checked_out(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, "a", "--mode", mode)
    theirs = commit(home, work(agent), "Theirs")
    mine = commit(home, repo, "Mine")
    (repo / "untracked").touch()
    assert mngr.ok("pull", "a", "--merge").endswith("; merged into main\n")
    assert home.run("git", "rev-parse", "HEAD^1", "HEAD^2").split() == [mine, theirs]
    assert mngr.ok("pull", "a", "--merge").endswith("; main has it already\n")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_merge_that_conflicts_is_undone(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, "a", "--mode", mode)
    commit(home, work(agent), "Theirs", "README.md")
    mine = commit(home, repo, "Mine", "README.md")
    result = mngr("pull", "a", "--merge")
    assert (result.code, result.out) == (1, "")
    assert "mngr/a does not merge into main" in result.err
    assert "nothing was changed; merge by hand" in result.err
    assert head(home, repo) == mine
    assert home.run("git", "status", "--porcelain") == ""
    assert not (repo / ".git" / "MERGE_HEAD").exists()


def test_a_merge_never_overwrites_an_untracked_file(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    commit(home, work(agent), "Work")
    (repo / "work").write_text("mine, and not committed")
    assert mngr("pull", "a", "--merge").code == 1
    assert (repo / "work").read_text() == "mine, and not committed"


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_merge_that_somebody_else_begins_at_that_moment_is_left_alone(
    mngr: Mngr, home: Home, repo: Path, verb: str
) -> None:
    """Ours fails, since another has the index, and is not begun: what is to be aborted is not ours."""
    agent = create(mngr, "a", "--mode", "clone")
    commit(home, work(agent), "Work")
    other = commit(home, repo, "Other")
    begun = (repo if verb == "pull" else work(agent)) / ".git" / "MERGE_HEAD"
    shim = home.root / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\ncase " $* " in *" merge -q "*) echo {other} >{begun}; echo index.lock >&2; exit 128 ;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    shim.chmod(0o755)
    if verb == "push":
        commit(home, repo, "More")  # than what somebody else merges
    result = mngr(verb, "a", "--merge", env={"PATH": f"{shim.parent}:{home.env['PATH']}"})
    assert (result.code, "index.lock" in result.err) == (1, True), result
    assert begun.read_text() == f"{other}\n"


def test_a_merge_that_the_user_has_begun_is_left_alone(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    commit(home, work(agent), "Work")
    home.run("git", "checkout", "-q", "-b", "other")
    other = commit(home, repo, "Other")
    home.run("git", "checkout", "-q", "main")
    commit(home, repo, "Main")
    home.run("git", "merge", "-q", "-s", "ours", "--no-commit", "other")
    result = mngr("pull", "a", "--merge")
    assert result.code == 1
    assert "merge" in result.err
    assert head(home, repo, "MERGE_HEAD") == other


def test_a_branch_is_pulled_into_another_repository(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    tip = commit(home, work(agent), "Work")
    home.run("git", "clone", "-q", str(repo), str(home.root / "other"))
    mngr.ok("pull", "a", "--repo", "../other")
    assert head(home, home.root / "other", "mngr/a") == tip


@pytest.mark.parametrize("mode", ["copy", "none"])
def test_an_agent_without_a_branch_says_how_files_are_pulled(mngr: Mngr, home: Home, mode: str) -> None:
    home.cwd = home.path / "plain"
    home.cwd.mkdir()
    create(mngr, "a", "--mode", mode)
    for verb in ("pull", "push"):
        result = mngr(verb, "a")
        assert result.code == 1
        assert f"a has no branch (mode {mode})" in result.err


def test_of_several_those_that_can_be_pulled_are(mngr: Mngr, home: Home, repo: Path) -> None:
    for name in ("a", "b"):
        commit(home, work(create(mngr, name, "--mode", "clone")), "Work")
    home.run("git", "checkout", "-q", "-b", "mngr/a")
    commit(home, repo, "Mine")
    result = mngr("pull", "a", "b")
    assert (result.code, result.out) == (6, f"pulled b: mngr/b has 1 new commit in {repo}\n")
    assert "mngr: a: mngr/a in" in result.err


def test_many_are_pulled_together_and_each_has_its_outcome(mngr: Mngr, home: Home, repo: Path) -> None:
    agents = {name: create(mngr, name, "--mode", "clone") for name in ("new", "same", "apart", "astray", "gone")}
    agents["tree"] = create(mngr, "tree")
    create(mngr, "plain", "--mode", "none")
    tips = {name: commit(home, work(agents[name]), "Work") for name in ("new", "same", "apart")}
    mngr.ok("pull", "same")
    home.run("git", "branch", "mngr/apart", "main")
    home.run("git", "switch", "-q", "mngr/apart")
    mine = commit(home, repo, "Mine")
    home.run("git", "switch", "-q", "main")
    home.run("git", "switch", "-q", "-c", "else", cwd=work(agents["astray"]))
    tips["astray"] = commit(home, work(agents["astray"]), "Elsewhere")
    shutil.rmtree(work(agents["gone"]))
    script = """
import mngr
fleet = mngr.Fleet()
for outcome in mngr.pull_many(fleet, [status.agent for status in mngr.statuses(fleet)]):
    print(outcome.name, outcome.ok, outcome.why, sep="|")
"""
    told = dict(line.split("|", 1) for line in home.run(sys.executable, "-c", script).splitlines())
    assert told["new"] == f"True|mngr/new has 1 new commit in {repo}"
    assert told["same"] == f"True|mngr/same is up to date in {repo}"
    assert told["apart"].startswith(f"False|mngr/apart in {repo} has commits that apart does not have")
    assert told["astray"].endswith("; it is on else, not on mngr/astray; else is here as mngr/astray--else")
    assert told["gone"].startswith("False|git could not fetch mngr/gone")
    assert told["tree"] == f"True|mngr/tree is already in {repo}"
    assert told["plain"].startswith("False|plain has no branch")
    assert head(home, repo, "mngr/new") == tips["new"]
    assert head(home, repo, "mngr/apart") == mine
    assert head(home, repo, "mngr/astray--else") == tips["astray"]


def test_a_repository_that_is_gone_is_told(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, "a", "--mode", "clone")
    home.cwd = home.path
    shutil.rmtree(repo)
    for verb in ("pull", "push"):
        result = mngr(verb, "a")
        assert result.code == 1
        assert f"{repo} is not a git repository any more" in result.err


def test_a_variable_for_git_of_the_caller_changes_nothing(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    tip = commit(home, work(agent), "Work")
    home.run("git", "clone", "-q", str(repo), str(home.root / "other"))
    caller = {"GIT_DIR": str(home.root / "other" / ".git"), "GIT_WORK_TREE": str(home.root / "other")}
    mngr.ok("pull", "a", "--merge", env=caller)
    assert head(home, repo) == head(home, repo, "mngr/a") == tip
    assert home.run("git", "branch", "--format=%(refname:short)", cwd=home.root / "other").split() == ["main"]
    mine = commit(home, repo, "Mine")
    mngr.ok("push", "a", env=caller)
    assert head(home, work(agent)) == mine


def test_work_on_other_branches_of_a_clone_comes_too(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    home.run("git", "branch", "same", cwd=work(agent))
    home.run("git", "switch", "-q", "-c", "fix/x", cwd=work(agent))
    tip = commit(home, work(agent), "Work")
    assert "1 commit would be lost: mngr pull it first" in mngr("destroy", "a").err
    assert mngr.ok("pull", "a") == (
        f"pulled a: mngr/a has 0 new commits in {repo}; it is on fix/x, not on mngr/a; fix/x is here as mngr/a--fix/x\n"
    )
    assert head(home, repo, "mngr/a--fix/x") == tip
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a is up to date in {repo}; it is on fix/x, not on mngr/a\n"
    mngr.ok("destroy", "a", input="y\n")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_commits_on_no_branch_come_too(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, "a", "--mode", mode)
    home.run("git", "switch", "-q", "--detach", cwd=work(agent))
    tip = commit(home, work(agent), "Work")
    told = f"; it is on a commit of its own, not on mngr/a; that is here as mngr/a--{tip[:12]}\n"
    assert mngr.ok("pull", "a").endswith(told)
    assert head(home, repo, f"mngr/a--{tip[:12]}") == tip
    mngr.ok("destroy", "a", input="y\n")


def test_another_branch_that_was_rewritten_is_told_with_the_way_by_hand(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "--mode", "clone")
    home.run("git", "switch", "-q", "-c", "x", cwd=work(agent))
    tip = commit(home, work(agent), "Work")
    mngr.ok("pull", "a")
    home.run("git", "commit", "-q", "--amend", "-m", "Other", cwd=work(agent))
    assert f"; x is not pulled (git fetch {work(agent)} x does it)" in mngr.ok("pull", "a")
    assert head(home, repo, "mngr/a--x") == tip


def test_a_work_dir_in_a_record_is_never_an_option(mngr: Mngr, home: Home, repo: Path) -> None:
    record = home.mngr_home / "agents" / create(mngr, "a", "--mode", "clone")["id"] / "agent.json"
    evil = json.loads(record.read_text()) | {"work_dir": f"--upload-pack=touch {home.root}/pwned;"}
    record.write_text(json.dumps(evil) + "\n")
    assert mngr("pull", "a").code == 1
    assert not (home.root / "pwned").exists()


def test_a_tag_of_the_same_name_is_not_what_is_merged(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "switch", "-q", "-c", "side")
    commit(home, repo, "Side")
    home.run("git", "tag", "mngr/a")
    home.run("git", "switch", "-q", "main")
    tip = commit(home, work(create(mngr, "a")), "Work")
    commit(home, repo, "Mine")
    mngr.ok("pull", "a", "--merge")
    assert head(home, repo, "HEAD^2") == tip
    assert home.run("git", "log", "-1", "--format=%s") == "Merge branch 'mngr/a'\n"


# push: commits


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_push_moves_the_branch_and_the_files_of_the_agent_forward(
    mngr: Mngr, home: Home, repo: Path, mode: str
) -> None:
    agent = create(mngr, "a", "--mode", mode)
    tip = commit(home, repo, "Mine")
    (work(agent) / "unrelated").write_text("uncommitted")
    assert mngr.ok("push", "a") == f"pushed a: {tip[:12]} is now in mngr/a, 1 commit on\n"
    assert head(home, work(agent), "mngr/a") == tip
    assert (work(agent) / "mine").read_text() == "Mine"
    assert home.run("git", "status", "--porcelain", cwd=work(agent)) == "?? unrelated\n"
    assert mngr.ok("push", "a") == f"unchanged a: it has {tip[:12]} already\n"


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_push_to_an_agent_with_commits_of_its_own_needs_a_merge(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, "a", "--mode", mode)
    theirs = commit(home, work(agent), "Theirs")
    mine = commit(home, repo, "Mine")
    result = mngr("push", "a")
    assert result.code == 1
    assert "a has commits that HEAD does not have (push --merge merges there, or mngr pull them first)" in result.err
    assert head(home, work(agent)) == theirs
    mngr.ok("push", "a", "--merge")
    assert home.run("git", "rev-parse", "HEAD^1", "HEAD^2", cwd=work(agent)).split() == [theirs, mine]


def test_a_push_that_conflicts_is_undone(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    theirs = commit(home, work(agent), "Theirs", "README.md")
    commit(home, repo, "Mine", "README.md")
    result = mngr("push", "a", "--merge")
    assert result.code == 1
    assert "a did not take HEAD" in result.err
    assert head(home, work(agent)) == theirs
    assert home.run("git", "status", "--porcelain", cwd=work(agent)) == ""


def test_push_never_overwrites_what_the_agent_has_not_committed(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    (work(agent) / "README.md").write_text("theirs")
    commit(home, repo, "Mine", "README.md")
    for words in (["push", "a"], ["push", "a", "--merge"]):
        assert mngr(*words).code == 1
    assert (work(agent) / "README.md").read_text() == "theirs"


def test_a_merge_that_the_agent_has_begun_is_left_alone(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    commit(home, work(agent), "Theirs", "README.md")
    mine = commit(home, repo, "Mine", "README.md")
    home.run("git", "merge", "-q", "main", cwd=work(agent), check=False)
    (work(agent) / "README.md").write_text("half resolved")
    commit(home, repo, "More", "other")
    for words in (["push", "a"], ["push", "a", "--merge"]):
        assert mngr(*words).code == 1
    assert (work(agent) / "README.md").read_text() == "half resolved"
    assert head(home, work(agent), "MERGE_HEAD") == mine


def test_another_commit_than_head_is_pushed_by_name(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    home.run("git", "checkout", "-q", "-b", "topic")
    tip = commit(home, repo, "Topic")
    home.run("git", "checkout", "-q", "main")
    mngr.ok("push", "a", "--rev", "topic")
    assert head(home, work(agent)) == tip
    result = mngr("push", "a", "--rev", "nonsense")
    assert result.code == 1
    assert f"nonsense is not a commit in {repo}" in result.err


def test_push_to_several_agents(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "try", "command", "-n", "2", "--", "sleep 1000")
    tip = commit(home, repo, "Mine")
    mngr.ok("push", "try-*")
    assert {head(home, repo, f"mngr/try-{number}") for number in (1, 2)} == {tip}


def test_push_runs_no_hook_of_the_users(mngr: Mngr, home: Home, repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    agent = create(mngr, "a", "--mode", "clone")
    tip = commit(home, repo, "Mine")
    mngr.ok("push", "a")
    assert head(home, work(agent)) == tip


def test_push_from_a_shallow_repository_says_what_to_do(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, "a", "--mode", "clone")
    commit(home, repo, "Two")
    home.run("git", "clone", "-q", "--depth", "1", f"file://{repo}", str(home.root / "shallow"))
    result = mngr("push", "a", "--repo", "../shallow")
    assert result.code == 1
    assert result.err == f"mngr: a: {home.root}/shallow is a shallow repository (git fetch --unshallow there first)\n"


# Files


def test_a_file_of_any_name_goes_there_and_back(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a")
    for name in WEIRD:
        content = b"\0\xff\r\n" + name.encode()
        (home.cwd / name).write_bytes(content)
        mngr.ok("push", f"./{name}", f"a:{name}/{name}")
        assert (work(agent) / name / name).read_bytes() == content
        (home.cwd / name).unlink()
        assert mngr.ok("pull", f"a:{name}/{name}") == f"./{name}\n"
        assert (home.cwd / name).read_bytes() == content
    assert not (home.cwd / "pwned").exists()
    assert not (work(agent) / "pwned").exists()


def test_a_directory_goes_there_and_back_as_it_is(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a")
    top = home.cwd / "tree"
    (top / "empty").mkdir(parents=True)
    (top / "run").write_text("#!/bin/sh\n")
    (top / "run").chmod(0o755)
    (top / "plain").write_text("text")
    (top / "plain").chmod(0o600)
    os.link(top / "plain", top / "same")
    for name, to in {"inside": "plain", "dangling": "nowhere", "up": "../..", "absolute": "/usr/bin/env"}.items():
        (top / name).symlink_to(to)
    for name in WEIRD:
        (top / name).write_text(name)
    mngr.ok("push", "tree", "a:")
    assert picture(work(agent) / "tree") == picture(top)
    assert mngr.ok("pull", "a:tree", "back") == "back\n"
    assert picture(home.cwd / "back") == picture(top)


def test_a_destination_that_is_a_directory_gets_it_inside(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a")
    (work(agent) / "sub").mkdir()
    (work(agent) / "sub" / "file").write_text("1")
    (home.cwd / "dest").mkdir()
    assert mngr.ok("pull", "a:sub/file", "dest") == "dest/file\n"
    assert mngr.ok("pull", "a:sub/", "dest") == "dest/sub\n"
    (work(agent) / "sub" / "second").write_text("2")
    (home.cwd / "dest" / "sub" / "mine").write_text("mine")
    mngr.ok("pull", "a:sub", "dest")
    assert {path.name for path in (home.cwd / "dest" / "sub").iterdir()} == {"file", "second", "mine"}
    mngr.ok("push", "dest/sub/mine", "a:sub")
    mngr.ok("push", "dest/sub/mine", "a:made/for/it/")
    for place in ("sub", "made/for/it"):
        assert (work(agent) / place / "mine").read_text() == "mine"


def test_a_whole_work_dir_can_be_pulled(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a")
    (work(agent) / "file").write_text("1")
    mngr.ok("pull", "a:", "all")
    mngr.ok("pull", "a:.", "all")
    assert (home.cwd / "all" / "file").read_text() == "1"
    (work(agent) / "sub").mkdir()
    mngr.ok("pull", "a:sub/..", "all")
    assert (home.cwd / "all" / "sub").is_dir()
    assert not (home.cwd / "file").exists()


def test_a_file_replaces_a_file(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a")
    (work(agent) / "file").write_text("new")
    (home.cwd / "file").write_text("old and longer")
    mngr.ok("pull", "a:file")
    assert (home.cwd / "file").read_text() == "new"
    (home.cwd / "file").write_text("newest")
    mngr.ok("push", "file", "a:file")
    assert (work(agent) / "file").read_text() == "newest"


def test_files_are_pulled_from_a_stopped_agent_and_uncommitted(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    mngr.ok("stop", "a")
    (work(agent) / "report").write_text("done")
    mngr.ok("pull", "a:report", "here")
    assert (repo / "here").read_text() == "done"


def test_a_file_that_grows_while_it_is_read_is_no_failure(mngr: Mngr, home: Home) -> None:
    fake_tar(home, f'{shutil.which("tar")} "$@"; echo "tar: ./log: file changed as we read it" >&2; exit 1')
    agent = create(mngr, "a")
    (work(agent) / "log").write_text("so far")
    mngr.ok("pull", "a:log", "here")
    assert (home.cwd / "here").read_text() == "so far"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["pull", "a:nothing"], 1, "there is no nothing"),
        (["pull", "a:file", "plain/x"], 1, "plain"),
        (["pull", "a:file", "one", "two"], 2, "takes one destination"),
        (["push", "nothing", "a:x"], 1, "there is no nothing"),
        (["push", "plain", "a:file/x"], 1, "did not take plain"),
        (["push", "a:file", "plain"], 2, "files are pushed as SRC AGENT:PATH"),
        (["pull", "b:file"], 3, "no agent called b"),
        (["pull"], 2, "which agents?"),
        (["push"], 2, "which agents?"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    mngr: Mngr, home: Home, words: list[str], code: int, said: str
) -> None:
    agent = create(mngr, "a")
    (work(agent) / "file").write_text("theirs")
    (home.cwd / "plain").write_text("mine")
    result = mngr(*words)
    assert result.code == code
    assert said in result.err
    assert all(line.startswith(("mngr: ", "hint: ")) for line in result.err.splitlines())
    assert (work(agent) / "file").read_text() == "theirs"
    assert (home.cwd / "plain").read_text() == "mine"


# Archives that want to write elsewhere


TOP = ("dir", "./d", "")
HOSTILE = {
    "parent": [("file", "../victim", "pwned")],
    "parent-inside": [TOP, ("file", "./d/../victim", "pwned")],
    "grandparent": [TOP, ("file", "./d/../../victim", "pwned")],
    "absolute": [("file", "{root}/victim", "pwned")],
    "another-name": [("file", "./victim", "pwned")],
    "through-link": [TOP, ("sym", "./d/out", ".."), ("file", "./d/out/victim", "pwned")],
    "through-two-links": [TOP, ("sym", "./d/x", "d"), ("sym", "./d/x/y", "../.."), ("file", "./d/x/y/victim", "pwned")],
    "through-absolute-link": [TOP, ("sym", "./d/out", "{root}"), ("file", "./d/out/victim", "pwned")],
    "over-link": [TOP, ("sym", "./d/f", "../victim"), ("file", "./d/f", "pwned")],
    "hard-link": [TOP, ("hard", "./d/f", "./victim"), ("file", "./d/f", "pwned")],
    "hard-link-up": [TOP, ("hard", "./d/f", "../victim"), ("file", "./d/f", "pwned")],
    "hard-link-absolute": [TOP, ("hard", "./d/f", "{root}/victim"), ("file", "./d/f", "pwned")],
    "hard-link-to-link": [TOP, ("sym", "./d/l", "../victim"), ("hard", "./d/f", "./d/l"), ("file", "./d/f", "pwned")],
    "link-as-top": [("sym", "./d", "."), ("file", "./d/victim", "pwned")],
    "through-link-of-the-user": [TOP, ("dir", "./d/mine", ""), ("file", "./d/mine/victim", "pwned")],
    "over-link-of-the-user": [TOP, ("file", "./d/file-of-mine", "pwned")],
}


@pytest.mark.parametrize("destination", ["new", "existing"])
def test_a_hostile_archive_writes_nothing_outside_its_target(mngr: Mngr, home: Home, destination: str) -> None:
    fake_tar(home, f"exec cat {home.path}/evil.tar")
    agent = create(mngr, "a")
    (work(agent) / "d").mkdir()
    for trick, members in HOSTILE.items():
        root = home.root / trick
        here = root / "here"
        here.mkdir(parents=True)
        (home.path / "evil.tar").write_bytes(archive_of(members, root))
        victims = [root / "victim", here / "victim"]
        for victim in victims:
            victim.write_text("precious")
        if destination == "existing":
            (here / "d").mkdir()
            (here / "d" / "mine").symlink_to("..")
            (here / "d" / "file-of-mine").symlink_to("../victim")
        result = mngr("pull", "a:d", cwd=here)
        assert [victim.read_text() for victim in victims] == ["precious", "precious"], trick
        assert {path.name for path in root.iterdir()} == {"here", "victim"}, trick
        assert {path.name for path in here.iterdir()} <= {"victim", "d"}, trick
        assert not any(path.stat().st_mode & 0o7000 for path in here.rglob("*") if path.is_file()), trick
        assert all(line.startswith(("mngr: ", "hint: ")) for line in result.err.splitlines()), trick


def archive_of(members: list[tuple[str, str, str]], root: Path) -> bytes:
    """Of (kind, name, content or target), as a liar would make it."""
    buffer = io.BytesIO()
    kinds = {"file": tarfile.REGTYPE, "sym": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "dir": tarfile.DIRTYPE}
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind, name, rest in members:
            member = tarfile.TarInfo(name.replace("{root}", str(root)))
            member.type, member.mode = kinds[kind], 0o6777
            content = rest.encode() if kind == "file" else b""
            member.linkname = rest.replace("{root}", str(root)) if kind in ("sym", "hard") else ""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


# What these tests speak about


def create(mngr: Mngr, name: str, *options: str) -> dict[str, Any]:
    made: dict[str, Any] = mngr.json("create", name, "command", *options, "--", "sleep 1000")[0]
    return made


def work(agent: dict[str, Any]) -> Path:
    return Path(agent["work_dir"])


def commit(home: Home, where: Path, subject: str, name: str = "") -> str:
    """The id of a new commit there, with a file."""
    name = name or subject.lower()
    (where / name).write_text(subject)
    home.run("git", "add", name, cwd=where)
    home.run("git", "commit", "-q", "-m", subject, cwd=where)
    return head(home, where)


def head(home: Home, where: Path, rev: str = "HEAD") -> str:
    return home.run("git", "rev-parse", rev, cwd=where).strip()


def picture(top: Path) -> dict[str, tuple[str, int, bytes]]:
    """Everything in a directory: kind, mode of files, content."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(os.readlink(path)))
        elif path.is_dir():
            found[name] = ("directory", 0, b"")
        else:
            found[name] = ("file", path.stat().st_mode & 0o777, path.read_bytes())
    return found


def fake_tar(home: Home, line: str) -> None:
    """From now on `tar` is this, for agents too."""
    (home.root / "fake").mkdir()
    (home.root / "fake" / "tar").write_text(f"#!/bin/sh\n{line}\n")
    (home.root / "fake" / "tar").chmod(0o755)
    home.env["PATH"] = f"{home.root}/fake:{home.env['PATH']}"
