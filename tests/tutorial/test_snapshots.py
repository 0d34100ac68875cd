"""SNAPSHOTS of tutorial.sh: the work of an agent, kept as it is and put back."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect
from tests.agents import begun


def agent(e2e: E2eSession) -> None:
    """An agent in the middle of something: a changed file, and a new one."""
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    e2e.run(begun(1), comment="since when it runs is known when its program has begun")
    work = "echo half done >>README.md; echo remember >todo.txt"
    expect(e2e.run(f"mngr exec fix -- '{work}'", comment="in the middle of something")).to_succeed()


def snapshots(e2e: E2eSession) -> list[str]:
    return [f"{each['agent']}/{each['name']}" for each in e2e.run("mngr snapshot list --json").json()]


def test_the_work_is_kept(e2e: E2eSession) -> None:
    """And nothing is stopped or touched for that."""
    e2e.write_tutorial_block("""
        # Keep the work as it is now, uncommitted and untracked files too, before something daring. Nothing is stopped.
        mngr snapshot create fix before-refactoring
        mngr snapshot list fix
    """)
    agent(e2e)
    before = e2e.run("mngr list --json; mngr exec fix -- 'git status; git log'", comment="how it is now").stdout
    expect(e2e.run("mngr snapshot create fix before-refactoring", comment="keep that")).to_succeed()
    expect(e2e.run("mngr snapshot list fix", comment="it is kept")).to_match(r"^fix +before-refactoring ")
    now = e2e.run("mngr list --json; mngr exec fix -- 'git status; git log'", comment="and nobody has noticed").stdout
    expect(now).to_equal(before)
    commit = e2e.run("mngr snapshot list --json").json()[0]["commit"]
    expect(e2e.run(f"git show {commit}:README.md", comment="the changed file is in it")).to_contain("half done")
    expect(e2e.run(f"git show {commit}:todo.txt", comment="and the new one")).to_contain("remember")


def test_a_name_is_used_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Keep the work as it is now, uncommitted and untracked files too, before something daring. Nothing is stopped.
        mngr snapshot create fix before-refactoring
        mngr snapshot list fix
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix before-refactoring", comment="keep it")
    kept = e2e.run("mngr snapshot list --json").stdout
    e2e.run("mngr exec fix -- rm todo.txt", comment="go on")
    again = e2e.run("mngr snapshot create fix before-refactoring", comment="the same name again")
    expect(again).to_have_exit_code(1).to_contain("already", "before-refactoring")
    expect(e2e.run("mngr snapshot list --json", comment="what was kept is as it was").stdout).to_equal(kept)


def test_the_work_is_put_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It went wrong: put the work back. What there is now is kept as a snapshot of its own first, so nothing is lost.
        mngr snapshot create fix good
        mngr exec fix -- rm README.md
        mngr snapshot restore fix good
        mngr exec fix -- ls
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix good", comment="keep it")
    e2e.run("mngr exec fix -- rm README.md", comment="it went wrong")
    expect(e2e.run("mngr snapshot restore fix good", comment="put it back")).to_succeed()
    expect(e2e.run("mngr exec fix -- ls", comment="all is there")).to_contain("README.md", "src", "todo.txt")
    expect(e2e.run("mngr exec fix -- cat README.md").stdout).to_equal("# Sample\nhalf done\n")
    expect(e2e.run("mngr list --json", comment="and it works again").json()[0]["state"]).to_equal("running")


def test_nothing_is_lost_by_going_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It went wrong: put the work back. What there is now is kept as a snapshot of its own first, so nothing is lost.
        mngr snapshot create fix good
        mngr exec fix -- rm README.md
        mngr snapshot restore fix good
        mngr exec fix -- ls
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix good", comment="keep it")
    e2e.run("mngr exec fix -- 'echo brilliant >idea.txt'", comment="go on")
    e2e.run("mngr snapshot restore fix good", comment="and go back")
    expect(e2e.run("mngr exec fix -- ls")).not_.to_contain("idea.txt")
    [good, kept] = snapshots(e2e)
    expect(good).to_equal("fix/good")
    back = e2e.run(f"mngr snapshot restore {kept}", comment="it was not that bad, after all")
    expect(back).to_succeed()
    expect(e2e.run("mngr exec fix -- cat idea.txt").stdout).to_equal("brilliant\n")


def test_a_snapshot_that_there_is_not(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It went wrong: put the work back. What there is now is kept as a snapshot of its own first, so nothing is lost.
        mngr snapshot create fix good
        mngr exec fix -- rm README.md
        mngr snapshot restore fix good
        mngr exec fix -- ls
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix goods", comment="a slip of the finger")
    restore = e2e.run("mngr snapshot restore fix good", comment="is noticed")
    expect(restore).to_have_exit_code(1).to_contain("did you mean goods?")
    expect(snapshots(e2e)).to_equal(["fix/goods"])


def test_an_agent_from_a_snapshot(e2e: E2eSession) -> None:
    """Of an agent that is gone."""
    e2e.write_tutorial_block("""
        # Several ways on from one point: snapshots outlive their agent, and agents can start from them.
        mngr snapshot create fix start
        mngr create other --from fix/start -- sleep 1000
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix start", comment="keep it")
    e2e.run("mngr destroy --force fix", comment="the agent goes")
    expect(e2e.run("mngr create other --from fix/start -- sleep 1000", comment="another takes over")).to_succeed()
    expect(e2e.run("mngr exec other -- cat todo.txt", comment="where it was").stdout).to_equal("remember\n")
    status = e2e.run("mngr exec other -- git status --short", comment="uncommitted, as it was")
    expect(status).to_contain(" M README.md", "?? todo.txt")


def test_with_one_agent_there_is_no_need_to_name_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # With just one agent there is no need to name it, and a script gets its answers in JSON.
        mngr snapshot create monday --json
        mngr snapshot list --json
        mngr snapshot restore monday --json
    """)
    agent(e2e)
    created = e2e.run("mngr snapshot create monday --json", comment="keep it")
    expect(created).to_be_json({"agent": "fix", "name": "monday", ...: ...})
    listed = e2e.run("mngr snapshot list --json", comment="it is kept")
    expect(listed).to_be_json([created.json()])
    e2e.run("mngr exec fix -- rm todo.txt", comment="a bad idea")
    restored = e2e.run("mngr snapshot restore monday --json", comment="back to monday")
    expect(restored).to_be_json({"agent": "fix", "restored": "monday", "kept": ..., "started": True})
    expect(snapshots(e2e)).to_equal(["fix/monday", f"fix/{restored.json()['kept']}"])
    expect(e2e.run("mngr exec fix -- cat todo.txt").stdout).to_equal("remember\n")


def test_with_two_there_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # With just one agent there is no need to name it, and a script gets its answers in JSON.
        mngr snapshot create monday --json
        mngr snapshot list --json
        mngr snapshot restore monday --json
    """)
    e2e.run("mngr create fix --count 2 -- sleep 1000", comment="two agents")
    create = e2e.run("mngr snapshot create monday --json", comment="which of them?")
    expect(create).to_have_exit_code(2).to_contain("which agent?")
    expect(snapshots(e2e)).to_be_empty()


def test_a_snapshot_is_removed(e2e: E2eSession) -> None:
    """With the commit that it was, and without any harm to the agent."""
    e2e.write_tutorial_block("""
        # Snapshots cost little, and stay until they are removed.
        mngr snapshot create fix old
        mngr snapshot destroy fix old
    """)
    agent(e2e)
    e2e.run("mngr snapshot create fix old", comment="a snapshot")
    expect(e2e.run("git for-each-ref refs/mngr/snapshots", comment="is a commit")).to_contain("/old")
    expect(e2e.run("mngr snapshot destroy fix old", comment="away with it")).to_succeed()
    expect(snapshots(e2e)).to_be_empty()
    expect(e2e.run("git for-each-ref refs/mngr/snapshots").stdout).to_be_empty()
    expect(e2e.run("mngr exec fix -- cat todo.txt", comment="the work is there").stdout).to_equal("remember\n")
    expect(e2e.run("mngr list --names --state running", comment="at work").stdout).to_equal("fix\n")
