"""snapshot create, list, restore and destroy: all uncommitted work is in it, nothing of the user's is touched, nothing
is lost on the way back, and it outlives its agent."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.agents import SLEEP, WEIRD_NAMES, agent, create, directory, files, work_dir
from tests.home import Home, Mngr, wait_until

MODES = ("worktree", "clone", "copy")


def make(mngr: Mngr, name: str = "foo", mode: str = "worktree") -> Path:
    """An agent that stays, in one of the modes; gives its work dir."""
    options = ["--from", str(mngr.home.root / "plain")] if mode == "copy" else ["--mode", mode]
    if mode == "copy":
        (mngr.home.root / "plain").mkdir(exist_ok=True)
        (mngr.home.root / "plain" / "README.md").write_text("# Sample\n")
    return create(mngr, name, "command", *options, *SLEEP)


def snapshots(mngr: Mngr, *words: str) -> list[str]:
    return [f"{each['agent']}/{each['name']}" for each in mngr.json("snapshot", "list", *words)]


def do_work(work: Path) -> None:
    """Modified, deleted, new: with a mode, links and weird names."""
    (work / "README.md").write_text("modified\n")
    (work / "src" / "app.py").unlink(missing_ok=True)
    (work / "run").write_text("#!/bin/sh\n")
    (work / "run").chmod(0o755)
    (work / "link").symlink_to("README.md")
    (work / "broken").symlink_to("no/such/file")
    (work / "new dir").mkdir()
    for name in WEIRD_NAMES:
        (work / "new dir" / name).write_text(name)


def shadow(home: Home, program: str, line: str) -> None:
    """From now on that program is this."""
    (home.root / "fake").mkdir()
    (home.root / "fake" / program).write_text(f"#!/bin/sh\n{line}\n")
    (home.root / "fake" / program).chmod(0o755)
    home.env["PATH"] = f"{home.root}/fake:{home.env['PATH']}"


# Taking one.


@pytest.mark.parametrize("mode", MODES)
def test_a_snapshot_brings_the_work_back_as_it_was(mngr: Mngr, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    do_work(work)
    then = files(work)
    assert mngr.ok("snapshot", "create", "foo", "before") == "foo/before\n"
    (work / "README.md").write_text("worse\n")
    (work / "run").unlink()
    (work / "later").write_text("later\n")
    told = mngr.ok("snapshot", "restore", "foo", "before")
    assert told.startswith("restored foo to before, and started again; what it had is foo/before-restore-")
    assert files(work) == then


@pytest.mark.parametrize("mode", MODES)
def test_what_was_there_before_a_restore_is_a_snapshot_too(mngr: Mngr, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    mngr.ok("snapshot", "create", "foo", "before")
    do_work(work)
    now = files(work)
    kept = mngr.json("snapshot", "restore", "foo", "before")["kept"]
    assert files(work) != now
    assert snapshots(mngr) == ["foo/before", f"foo/{kept}"]
    mngr.ok("snapshot", "restore", "foo", kept)
    assert files(work) == now


def test_restores_may_follow_each_other_at_once(mngr: Mngr, repo: Path) -> None:
    make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    kept = [mngr.json("snapshot", "restore", "foo", "x")["kept"] for _ in range(3)]
    assert len(set(kept)) == 3
    assert agent(mngr, "foo")["state"] in ("starting", "running")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_commits_come_back_too(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Good", cwd=work)
    mngr.ok("snapshot", "create", "foo", "good")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Bad", cwd=work)
    kept = mngr.json("snapshot", "restore", "foo", "good")["kept"]
    assert home.run("git", "log", "--format=%s", cwd=work).split("\n")[0] == "Good"
    assert home.run("git", "symbolic-ref", "HEAD", cwd=work) == "refs/heads/mngr/foo\n"
    mngr.ok("snapshot", "restore", "foo", kept)
    assert home.run("git", "log", "--format=%s", cwd=work).split("\n")[0] == "Bad"


def test_a_restore_moves_no_branch_but_the_agents(mngr: Mngr, home: Home, repo: Path) -> None:
    def tip(rev: str) -> str:
        return home.run("git", "rev-parse", rev).strip()

    home.run("git", "branch", "users")
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "On its branch", cwd=work)
    home.run("git", "checkout", "-q", "users", cwd=work)
    home.run("git", "commit", "-q", "--allow-empty", "-m", "On the user's", cwd=work)
    before, left = tip("users"), tip("mngr/foo")
    kept = mngr.json("snapshot", "restore", "foo", "x")["kept"]
    assert home.run("git", "symbolic-ref", "HEAD", cwd=work) == "refs/heads/mngr/foo\n"
    assert (tip("users"), tip("mngr/foo")) == (before, tip("main"))
    ref = f"refs/mngr/snapshots/{agent(mngr, 'foo')['id']}/{kept}"
    assert (tip(f"{ref}^1"), tip(f"{ref}^2")) == (before, left), "both HEAD and the branch can be had back"


def test_a_restore_leaves_the_branch_alone_while_the_user_has_it(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Work", cwd=work)
    home.run("git", "checkout", "-q", "--detach", cwd=work)
    home.run("git", "checkout", "-q", "mngr/foo")
    mngr.ok("snapshot", "restore", "foo", "x")
    assert home.run("git", "log", "-1", "--format=%s", "mngr/foo") == "Work\n"
    assert home.run("git", "log", "-1", "--format=%s %D", cwd=work) == "First commit HEAD, main\n"


def test_an_interrupted_restore_of_a_copy_does_not_block_the_next(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr, mode="copy")
    mngr.ok("snapshot", "create", "foo", "x")
    for left in ("new", "old"):
        Path(f"{work}.{left}").mkdir()
    (work / "later").touch()
    mngr.ok("snapshot", "restore", "foo", "x")
    assert [path.name for path in work.parent.iterdir()] == [work.name]
    assert not (work / "later").exists()
    work.rename(f"{work}.old")  # killed between the two renames
    mngr.ok("snapshot", "restore", "foo", "x")
    assert files(work) == {"README.md": "# Sample\n "}


def test_a_restore_does_not_begin_while_a_process_survives(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    (work / "new").touch()
    (pane,) = home.tmux("list-panes", "-a", "-F", "#{pane_pid}").split()
    said = f"/proc/99999999/stat:99999999 (no such pid can be) D {pane} 99999999 99999999"
    shadow(home, "grep", f'case $* in *"/stat "*) echo "{said}" ;; esac; exec {shutil.which("grep")} "$@"')
    result = mngr("snapshot", "restore", "foo", "x")
    assert (result.code, result.out) == (1, "")
    assert "mngr: foo could not be stopped: still alive: process 99999999" in result.err
    assert (work / "new").exists()
    assert snapshots(mngr) == ["foo/x"]


def test_a_restore_says_when_the_agent_does_not_start_again(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    (work / "new").touch()
    (directory(mngr, "foo") / "session").write_text("no-such-command\n")
    result = mngr("snapshot", "restore", "foo", "x")
    assert (result.code, result.out) == (1, "")
    assert "mngr: foo was restored to x, but not started again: " in result.err
    assert "what it had is foo/before-restore-" in result.err
    assert not (work / "new").exists()


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_taking_one_touches_neither_index_nor_branches_nor_stash(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    do_work(work)
    (work / "README.md").write_text("staged\n")
    home.run("git", "add", "README.md", cwd=work)
    (work / "README.md").write_text("and modified again\n")

    def state() -> list[str]:
        index = home.run("git", "rev-parse", "--git-path", "index", cwd=work).strip()
        looks = ["status --porcelain", "stash list", "rev-parse HEAD", "branch --list"]
        told = [home.run("git", "--no-optional-locks", *look.split(), cwd=work) for look in looks]
        return [hashlib.sha256((work / index).read_bytes()).hexdigest(), *told]

    before = state()
    mngr.ok("snapshot", "create", "foo", "x")
    assert state() == before
    assert agent(mngr, "foo")["state"] in ("starting", "running"), "nothing is stopped for it"


def test_ignored_files_stay_where_they_are(mngr: Mngr, repo: Path) -> None:
    work = make(mngr)
    (work / ".env").write_text("A=1\n")
    mngr.ok("snapshot", "create", "foo", "x")
    (work / ".env").write_text("A=2\n")
    mngr.ok("snapshot", "restore", "foo", "x")
    assert (work / ".env").read_text() == "A=2\n"


def test_nested_repositories_are_named_and_survive_a_restore(mngr: Mngr, home: Home, repo: Path) -> None:
    work = make(mngr)
    home.run("git", "init", "-q", "without commits", cwd=work)
    home.run("git", "init", "-q", "nested", cwd=work)
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Nested", cwd=work / "nested")
    (work / "nested" / "file").write_text("not in any commit\n")
    result = mngr("snapshot", "create", "foo", "x")
    assert (result.code, result.out) == (0, "foo/x\n")
    assert sorted(result.err.splitlines()) == [
        "mngr: nested is a repository of its own and is not carried",
        "mngr: without commits is a repository of its own and is not carried",
    ]
    mngr.ok("snapshot", "restore", "foo", "x")
    assert (work / "nested" / "file").read_text() == "not in any commit\n"
    assert (work / "without commits" / ".git").exists()


def test_a_name_is_made_up_from_the_time_and_never_taken(mngr: Mngr, repo: Path) -> None:
    make(mngr)
    names = [mngr.ok("snapshot", "create", "foo").strip() for _ in range(3)]
    assert len(set(names)) == 3
    assert snapshots(mngr) == names


def test_a_taken_name_is_refused_and_the_first_one_stays(mngr: Mngr, repo: Path) -> None:
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    (before,) = mngr.json("snapshot", "list")
    (work / "new").write_text("new\n")
    result = mngr("snapshot", "create", "foo", "x")
    assert (result.code, result.err) == (1, "mngr: there is already a snapshot called x\n")
    assert mngr.json("snapshot", "list") == [before]


@pytest.mark.parametrize("name", ["", "a/b", "Foo", "two words", "..", "x" * 64])
def test_what_is_no_name_is_refused(mngr: Mngr, repo: Path, name: str) -> None:
    make(mngr)
    result = mngr("snapshot", "create", "foo", name)
    assert result.code == 2
    assert "is not a valid snapshot name" in result.err
    assert snapshots(mngr) == []


def test_a_stopped_agent_has_snapshots_too_and_stays_stopped(mngr: Mngr, repo: Path) -> None:
    work = make(mngr)
    (work / "new").write_text("new\n")
    mngr.ok("stop", "foo")
    mngr.ok("snapshot", "create", "foo", "x")
    (work / "new").unlink()
    assert mngr.ok("snapshot", "restore", "foo", "x").startswith("restored foo to x; what it had is ")
    assert (work / "new").exists()
    assert agent(mngr, "foo")["state"] == "stopped"


def test_a_damaged_agent_has_no_snapshot(mngr: Mngr, repo: Path) -> None:
    make(mngr)
    (directory(mngr, "foo") / "agent.json").write_text("{")
    result = mngr("snapshot", "create", "foo", "x")
    assert result.code == 1
    assert "foo is damaged" in result.err


# The agent may be left out.


def test_with_just_one_agent_it_may_be_left_out(mngr: Mngr, repo: Path) -> None:
    work = make(mngr)
    assert mngr.ok("snapshot", "create", "x") == "foo/x\n"
    assert mngr.ok("snapshot", "create").startswith("foo/s")
    (work / "new").write_text("new\n")
    mngr.ok("snapshot", "restore", "x")
    assert not (work / "new").exists()
    assert mngr.ok("snapshot", "destroy", "x") == "destroyed foo/x\n"


def test_a_single_word_that_is_an_agent_is_the_agent(mngr: Mngr, repo: Path) -> None:
    make(mngr, "foo")
    make(mngr, "bar")
    assert mngr.ok("snapshot", "create", "bar").startswith("bar/s")


def test_with_several_agents_and_none_named_it_is_refused(mngr: Mngr, repo: Path) -> None:
    make(mngr, "foo")
    make(mngr, "bar")
    result = mngr("snapshot", "create", "x")
    assert (result.code, result.err.splitlines()[0]) == (2, "mngr: which agent?")
    assert snapshots(mngr) == []


def test_inside_an_agent_its_own_is_meant(mngr: Mngr, repo: Path) -> None:
    work = make(mngr, "foo")
    make(mngr, "bar")
    mngr.ok("snapshot", "create", "bar", "x")
    inside = ["exec", "foo", "--", "mngr", "snapshot"]
    assert mngr.ok(*inside, "create", "x") == "foo/x\n"
    assert "foo    x" in mngr.ok(*inside, "list")
    (work / "new").write_text("new\n")
    assert mngr.ok(*inside, "restore", "x").startswith("restored foo to x, and started again")
    assert not (work / "new").exists()
    assert agent(mngr, "foo")["state"] in ("starting", "running")
    assert mngr.ok(*inside, "destroy", "x") == "destroyed foo/x\n"
    assert [name for name in snapshots(mngr) if name.endswith("/x")] == ["bar/x"]


def test_a_program_may_restore_its_own_work_and_is_started_again(mngr: Mngr, home: Home, repo: Path) -> None:
    """The end of its session is the end of whoever asked for it; the restore goes on."""
    program = """
        if mkdir "$MNGR_AGENT_DIR/been-here"; then
            mngr snapshot create x && touch new && mngr snapshot restore x
        fi
        exec sleep 100"""
    mngr.ok("create", "foo", "command", "--", program)
    work = work_dir(mngr, "foo")
    wait_until(lambda: any("before-restore" in name for name in snapshots(mngr)), what="the restore to begin")
    wait_until(lambda: not (work / "new").exists() and "sleep 100" in home.processes().values(), what="the new start")
    assert agent(mngr, "foo")["state"] == "running"


# Finding, listing, destroying.


def test_the_list_shows_agent_name_and_age_oldest_first(mngr: Mngr, repo: Path) -> None:
    assert mngr.ok("snapshot", "list") == "no snapshots\n"
    make(mngr, "foo")
    make(mngr, "bar")
    for name, owner in (("b", "foo"), ("a", "bar"), ("c", "foo")):
        mngr.ok("snapshot", "create", owner, name)
    head, *rows = mngr.ok("snapshot", "list").splitlines()
    assert head.split() == ["AGENT", "NAME", "AGE", "COMMIT"]
    assert [row.split()[:2] for row in rows] == [["foo", "b"], ["bar", "a"], ["foo", "c"]]
    assert snapshots(mngr, "foo") == ["foo/b", "foo/c"]


def test_an_agent_without_snapshots_has_an_empty_list(mngr: Mngr, repo: Path) -> None:
    make(mngr)
    assert snapshots(mngr, "foo") == []
    assert mngr.ok("snapshot", "list", "foo") == "no snapshots\n"


def test_an_unknown_snapshot_is_named_with_the_nearest(mngr: Mngr, repo: Path) -> None:
    make(mngr)
    mngr.ok("snapshot", "create", "foo", "before")
    for verb in ("restore", "destroy"):
        result = mngr("snapshot", verb, "foo", "befroe")
        assert (result.code, result.err) == (1, "mngr: foo has no snapshot befroe\nhint: did you mean before?\n")
        assert mngr("snapshot", verb, "befroe").code == 1


def test_a_name_that_two_agents_have_must_be_told_apart(mngr: Mngr, repo: Path) -> None:
    for name in ("foo", "bar"):
        make(mngr, name)
        mngr.ok("snapshot", "create", name, "x")
    result = mngr("snapshot", "destroy", "x")
    assert result.code == 2
    assert "several agents have a snapshot x: bar, foo" in result.err
    assert mngr.ok("snapshot", "destroy", "foo/x") == "destroyed foo/x\n"
    assert snapshots(mngr) == ["bar/x"]


@pytest.mark.parametrize("mode", MODES)
def test_destroy_removes_it_and_its_private_refs(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    mngr.ok("snapshot", "create", "foo", "x")
    mngr.ok("snapshot", "create", "foo", "y")
    assert mngr.ok("snapshot", "destroy", "foo", "x") == "destroyed foo/x\n"
    assert snapshots(mngr) == ["foo/y"]
    stores = [repo, *(home.mngr_home / "repos").glob("*.git"), *([work] if mode == "clone" else [])]
    refs = "".join(home.run("git", "for-each-ref", "refs/mngr/snapshots", cwd=store) for store in stores)
    assert "/x\n" not in refs
    assert ("/y\n" in refs) == (mode != "copy")
    assert files(work)["README.md"] == "# Sample\n ", "the agent is not touched"


# Longer than the agent.


@pytest.mark.parametrize("mode", MODES)
def test_a_snapshot_outlives_its_agent(mngr: Mngr, repo: Path, mode: str) -> None:
    work = make(mngr, mode=mode)
    do_work(work)
    then = files(work)
    mngr.ok("label", "foo", "a=1")
    mngr.ok("snapshot", "create", "foo", "x")
    mngr.ok("destroy", "-f", "foo")
    assert mngr.ok("gc") == "nothing is left over\n", "a snapshot is no leftover"
    assert snapshots(mngr) == snapshots(mngr, "foo") == ["foo/x"]
    result = mngr("snapshot", "restore", "foo", "x")
    assert result.code == 3
    assert "mngr create NAME --from foo/x" in result.err
    mngr.ok("create", "bar", "--from", "foo/x")
    again = agent(mngr, "bar")
    assert files(Path(again["work_dir"])) == then
    assert (again["command"], again["labels"], again["mode"]) == (["sleep", "100"], {"a": "1"}, mode)


def test_purge_takes_the_snapshots_along(mngr: Mngr, home: Home, repo: Path) -> None:
    make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    mngr.ok("destroy", "--purge", "foo")
    assert snapshots(mngr) == []


def test_of_two_agents_of_one_name_the_living_one_is_meant(mngr: Mngr, repo: Path) -> None:
    for text in ("first", "second"):
        (make(mngr) / "new").write_text(text)
        mngr.ok("snapshot", "create", "foo", "x")
        if text == "first":
            mngr.ok("destroy", "-f", "foo")
    mngr.ok("create", "bar", "--from", "foo/x")
    assert (work_dir(mngr, "bar") / "new").read_text() == "second"
    mngr.ok("snapshot", "restore", "foo", "x")


def test_snapshots_follow_a_rename(mngr: Mngr, repo: Path) -> None:
    work = make(mngr)
    mngr.ok("snapshot", "create", "foo", "x")
    mngr.ok("rename", "foo", "bar")
    assert snapshots(mngr) == ["bar/x"]
    (work / "new").write_text("new\n")
    mngr.ok("snapshot", "restore", "bar", "x")
    assert not (work / "new").exists()


# In place, and where git would mislead.


def test_work_in_the_users_own_directory_is_kept_but_never_restored_over(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--mode", "none", *SLEEP)
    (repo / "new").write_text("then\n")
    mngr.ok("snapshot", "create", "foo", "x")
    (repo / "new").write_text("now\n")
    result = mngr("snapshot", "restore", "foo", "x")
    assert result.code == 1
    assert "works in a directory of yours" in result.err
    assert (repo / "new").read_text() == "now\n"
    mngr.ok("create", "bar", "--from", "foo/x")
    other = agent(mngr, "bar")
    assert other["mode"] == "worktree"
    assert (Path(other["work_dir"]) / "new").read_text() == "then\n"


def test_a_home_inside_a_repository_does_not_mislead(mngr: Mngr, home: Home, tmp_path: Path) -> None:
    """Dotfiles kept in git: the copy of a plain directory lies inside that repository then."""
    home.run("git", "init", "-q", cwd=home.root)
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Dotfiles", cwd=home.root)
    mngr.ok("create", "foo", "command", "--from", str(tmp_path), *SLEEP)
    work = work_dir(mngr, "foo")
    (work / "new").write_text("then\n")
    mngr.ok("snapshot", "create", "foo", "x")
    (work / "new").write_text("now\n")
    mngr.ok("snapshot", "restore", "foo", "x")
    assert (work / "new").read_text() == "then\n"
    assert home.run("git", "for-each-ref", "refs/mngr", cwd=home.root) == ""
