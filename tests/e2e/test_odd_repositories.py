"""Repositories and agents in states that git allows and few expect: nothing is lost, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

from tests.agents import agent, work_dir
from tests.home import Home, Mngr, wait_until


def trash(home: Home) -> list[str]:
    return home.run("git", "for-each-ref", "--format=%(refname)", "refs/mngr/trash").split()


def test_commits_of_a_clone_on_an_unborn_branch_are_a_loss(mngr: Mngr, home: Home, repo: Path) -> None:
    line = "echo w >w; git add w; git commit -qm precious; git switch -q --orphan pages"
    mngr.ok("create", "o", "command", "--mode", "clone", "--", line)
    mngr.ok("wait", "o", "--timeout", "10")
    assert "1 commit" in mngr.ok("destroy", "o", "--dry-run")
    assert mngr("destroy", "o", input="y\n").code == 1


def test_of_two_that_go_at_once_with_the_same_commits_one_keeps_them(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "echo w >w; git add w; git commit -qm p")
    mngr.ok("wait", "a", "--timeout", "10")
    tip = home.run("git", "rev-parse", "mngr/a").strip()
    mngr.ok("clone", "a", "b", "--", "true")
    mngr.ok("wait", "b", "--timeout", "10")
    both = [mngr.popen("destroy", "-f", name) for name in ("a", "b")]
    assert [each.wait(30) for each in both] == [0, 0]
    kept = {home.run("git", "rev-parse", ref).strip() for ref in trash(home)}
    contained = [ref for ref in kept if home.run("git", "merge-base", tip, ref).strip() == tip]
    assert contained, "the commit is in one of the parked ones"


def test_an_agent_made_by_an_agent_outlives_it(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "n1", "command", "--", "sleep", "1000")
    mngr.ok("exec", "n1", "--", "mngr", "create", "n2", "command", "--", "echo n2 >n2; git add n2; git commit -qm n2")
    mngr.ok("wait", "n2", "--for", "done", "--timeout", "10")
    assert agent(mngr, "n2")["source"] == str(repo)
    mngr.ok("destroy", "-f", "n1")
    mngr.ok("pull", "n2", "--merge")
    assert (repo / "n2").read_text() == "n2\n"
    mngr.ok("destroy", "-f", "n2")
    assert home.run("git", "branch", "--format=%(refname:short)").split() == ["main"]


def test_a_repository_that_git_cannot_use_is_not_copied(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / ".git" / "HEAD").write_text("garbage")
    result = mngr("create", "a", "command", "--", "sleep", "1000")
    assert result.code == 1
    assert f"git cannot use {repo}" in result.err
    assert mngr.json("list") == []
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep", "1000")


def test_a_sparse_checkout_can_be_kept(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / "kept").mkdir()
    (repo / "kept" / "file").write_text("1")
    (repo / "other").write_text("1")
    home.run("git", "add", "-A")
    home.run("git", "commit", "-qm", "more")
    home.run("git", "sparse-checkout", "set", "kept")
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    (work_dir(mngr, "a") / "new").write_text("new")
    (work_dir(mngr, "a") / "kept" / "file").write_text("2")
    mngr.ok("snapshot", "create", "a", "s")
    mngr.ok("clone", "a", "b")
    assert (work_dir(mngr, "b") / "new").read_text() == "new"
    assert (work_dir(mngr, "b") / "kept" / "file").read_text() == "2"


def test_an_agent_can_destroy_itself(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "echo w >w; mngr destroy -f a")
    wait_until(lambda: mngr.json("list") == [], deadline=20)
    wait_until(lambda: len(trash(home)) == 1)
    assert home.run("git", "show", f"{trash(home)[0]}:w") == "w\n"


def test_a_session_that_is_renamed_by_hand_is_called_by_its_id_again(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "cat")
    id = agent(mngr, "a")["id"]
    home.tmux("rename-session", "-t", f"={id}", "mine")
    # tmux has answered before its hook runs
    wait_until(lambda: home.tmux("list-sessions", "-F", "#{session_name}").split() == [id])


def test_no_variable_of_the_agent_leads_its_launcher_astray(mngr: Mngr, home: Home, repo: Path) -> None:
    given = {"d": str(repo), "now": "N", "line": "L", "state": "S", "status": "9", "program": "nonexistent"}
    words = [word for key, value in given.items() for word in ("--env", f"{key}={value}")]
    mngr.ok("create", "a", "command", *words, "--", "echo $d $now $line $state $status $program >said; exit 3")
    mngr.ok("wait", "a", "--for", "failed", "--timeout", "10")
    assert (work_dir(mngr, "a") / "said").read_text().split() == list(given.values())
    assert home.run("git", "status", "--porcelain") == ""
