"""CLEANING UP of tutorial.sh."""

from __future__ import annotations

import pytest

from mngr.e2e import E2eSession, expect


@pytest.fixture
def unsaved(e2e: E2eSession) -> E2eSession:
    """`fix` has a commit and a file that nobody else has."""
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent that has worked")
    e2e.run("mngr exec fix -- 'git commit -q --allow-empty -m Mended; echo why >notes.txt'")
    return e2e


def test_destroy_refuses_to_lose_work(unsaved: E2eSession) -> None:
    e2e = unsaved
    e2e.write_tutorial_block("""
        # Destroy asks first, and refuses to lose work: commits and files that nobody else has. --dry-run says what would be.
        mngr destroy fix --dry-run
        mngr destroy fix || echo "exit code $?"
    """)
    would = e2e.run("mngr destroy fix --dry-run", comment="what would be?")
    expect(would).to_succeed().to_contain("refused", "1 commit and 1 uncommitted file")
    refused = e2e.run('mngr destroy fix || echo "exit code $?"', comment="and so it is", input="y\n")
    expect(refused).to_contain("1 commit and 1 uncommitted file would be lost", "exit code 1")
    expect(e2e.run("mngr list fix", comment="it goes on")).to_match("^fix +running")
    expect(e2e.run("git log --oneline mngr/fix && mngr exec fix -- cat notes.txt")).to_contain("Mended", "why")


def test_destroy_asks_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Destroy asks first, and refuses to lose work: commits and files that nobody else has. --dry-run says what would be.
        mngr destroy fix --dry-run
        mngr destroy fix || echo "exit code $?"
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent that has done nothing")
    expect(e2e.run("mngr destroy fix --dry-run", comment="nothing is lost")).to_succeed().to_contain("nothing is lost")

    terminal = e2e.spawn('mngr destroy fix || echo "exit code $?"', comment="no, not yet", name="no")
    terminal.wait_for_text("destroy fix? [y/N]").type("n\n").wait_for_text("exit code 1")
    expect(e2e.run("mngr list --names").stdout).to_equal("fix\n")

    terminal = e2e.spawn('mngr destroy fix || echo "exit code $?"', comment="now it may go", name="yes")
    terminal.wait_for_text("destroy fix? [y/N]").type("y\n").wait_for_text("destroyed fix")
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.run("mngr list --names && git branch --list 'mngr/*'").stdout).to_be_empty()


def test_parked_work_is_there_again(unsaved: E2eSession) -> None:
    e2e = unsaved
    e2e.write_tutorial_block("""
        # Not worth a look, you think. --force parks the work for two weeks all the same, and here it is again.
        mngr rm -f fix
        git for-each-ref refs/mngr/trash
    """)
    expect(e2e.run("mngr rm -f fix", comment="away with it")).to_succeed().to_contain("kept for 14 days")
    gone = e2e.run("mngr list --names; git branch --list 'mngr/*'; ls $MNGR_HOME/work", comment="it is gone")
    expect(gone.stdout).to_be_empty()
    parked = e2e.run("git for-each-ref refs/mngr/trash", comment="its work is not")
    expect(parked).to_match(r"\trefs/mngr/trash/\w+$")
    e2e.run(f"git branch again {parked.stdout.split()[-1]}", comment="back with it")
    expect(e2e.run("git log --format=%s again && git show again:notes.txt")).to_contain("Mended", "why")
    expect(e2e.run("mngr gc", comment="two weeks are not over")).to_contain("nothing")
    expect(e2e.run("git for-each-ref refs/mngr/trash").stdout).to_equal(parked.stdout)


def test_the_finished_and_a_group_go_and_the_rest_stays(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Away with the finished ones, or with a whole group.
        mngr destroy --force --state done --type command --host local
        mngr destroy --force --label batch=1
    """)
    e2e.run("mngr create quick --no-connect -- true", comment="one that is done")
    e2e.run("mngr create try --count 2 --label batch=1 --no-connect -- sleep 1000", comment="a group")
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="and one that is to stay")
    e2e.run("mngr wait quick --for done")

    done = e2e.run("mngr destroy --force --state done --type command --host local", comment="away with the finished")
    expect(done.stdout).to_equal("destroyed quick\n")
    expect(e2e.run("mngr destroy --force --label batch=1", comment="and with the group")).to_succeed()
    expect(e2e.run("mngr list --names").stdout).to_equal("other\n")
    expect(e2e.run("git branch --list 'mngr/*' --format '%(refname:short)'").stdout).to_equal("mngr/other\n")


def test_a_purge_leaves_nothing(unsaved: E2eSession) -> None:
    e2e = unsaved
    e2e.write_tutorial_block("""
        # Away with all that are left, and with their snapshots. This time nothing is parked: what nobody else has is lost.
        mngr destroy --purge --all --json
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="another one")
    e2e.run("mngr snapshot create fix before", comment="and a snapshot")

    told = e2e.run("mngr destroy --purge --all --json", comment="away with all of it")
    expect({each["name"]: each["did"] for each in told.json()}).to_equal({"fix": "destroyed", "other": "destroyed"})
    expect(e2e.run("mngr list --json")).to_be_json([])
    expect(e2e.run("mngr snapshot list --json")).to_be_json([])
    refs = e2e.run("git for-each-ref --format '%(refname)'", comment="your repository is as it was")
    expect(refs.stdout).to_equal("refs/heads/main\n")
    expect(e2e.run("ls $MNGR_HOME/work").stdout).to_be_empty()


def test_gc_clears_away_what_a_killed_create_has_left(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A machine that crashed, a create that was killed: gc clears away what belongs to no agent, and never unsaved work.
        mngr gc --dry-run
        mngr gc
        mngr gc --json
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="an agent that all this does not concern")
    e2e.run(
        "mngr create job --no-connect --setup 'echo $$ >~/setup; sleep 1000' -- sleep 1000 & echo $! >~/create",
        comment="a create that takes long",
    )
    expect(e2e.home / "setup").to_eventually_match(r"^\d+$")
    e2e.run('kill -9 $(cat ~/create) -$(ps -o pgid= -p "$(cat ~/setup)" | tr -d " ")', comment="the power fails")
    left = "mngr list --format '{name} {state}' && git branch --list 'mngr/*'"
    expect(lambda: e2e.run(left)).to_eventually_contain("job failed", "mngr/job")

    would = e2e.run("mngr gc --dry-run", comment="what would go?")
    expect(would).to_contain("job: agent whose create was interrupted").not_.to_contain("other")
    expect(e2e.run(left, comment="nothing has gone yet")).to_contain("job failed", "mngr/job")
    expect(e2e.run("mngr gc", comment="now it goes")).to_succeed().to_contain("removed job")
    expect(e2e.run(left)).to_contain("other running", "mngr/other").not_.to_contain("job")
    expect(e2e.run("mngr gc --json", comment="that was all")).to_be_json([])


def test_gc_never_takes_unsaved_work(unsaved: E2eSession) -> None:
    e2e = unsaved
    e2e.write_tutorial_block("""
        # A machine that crashed, a create that was killed: gc clears away what belongs to no agent, and never unsaved work.
        mngr gc --dry-run
        mngr gc
        mngr gc --json
    """)
    (agent,) = e2e.run("mngr list --json").json()
    e2e.run(f"mngr stop fix && rm -r $MNGR_HOME/agents/{agent['id']}", comment="the disk has lost what mngr knew of it")

    expect(e2e.run("mngr gc --dry-run", comment="the work dir is named, and left alone")).to_contain(
        agent["id"], "unsaved"
    )
    expect(e2e.run("mngr gc")).to_succeed()
    expect(e2e.run(f"cat $MNGR_HOME/work/{agent['id']}/notes.txt", comment="all is there").stdout).to_equal("why\n")
    expect(e2e.run("git log --format=%s mngr/fix")).to_contain("Mended")
    told = e2e.run("mngr gc --json", comment="and it goes on being named")
    expect([each["what"] for each in told.json()]).to_contain(f"work/{agent['id']}")
