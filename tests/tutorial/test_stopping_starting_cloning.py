"""STOPPING, STARTING, CLONING of tutorial.sh."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect

STATES = "mngr list --format '{name} {state}'"


def test_a_stop_leaves_time_to_write_something_down_and_ends_hidden_children_too(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A stop ends the whole tree of processes, children that hide included. Give it time if it has to write something down.
        mngr stop build --grace 30s
        mngr list build
    """)
    e2e.run(
        "mngr create build --no-connect -- "
        "'trap \"echo saved >diary; exit\" TERM; setsid sleep 1000 & echo $! >hidden; while :; do sleep 0.1; done'",
        comment="a program that saves when it is asked to end, with a child in a session of its own",
    )
    expect(e2e.run("mngr exec build -- cat hidden", comment="it is up")).to_eventually_match(r"^\d+$")

    expect(e2e.run("mngr stop build --grace 30s", comment="stop it")).to_succeed().to_contain("stopped build")
    expect(e2e.run("mngr list build")).to_match("^build +stopped")
    expect(e2e.run("mngr exec build -- cat diary", comment="it has saved")).to_contain("saved")
    left = e2e.run(
        "ps -o stat= -p $(mngr exec build -- cat hidden)", comment="the child is gone, or waits to be buried"
    )
    expect(left.stdout).not_.to_match("^[^Z]")


def test_who_does_not_want_to_end_is_ended(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A stop ends the whole tree of processes, children that hide included. Give it time if it has to write something down.
        mngr stop build --grace 30s
        mngr list build
    """)
    e2e.run(
        "mngr create build --no-connect -- 'trap \"\" TERM HUP; echo $$ >stubborn; while :; do sleep 0.1; done'",
        comment="a program that is deaf to every request",
    )
    expect(e2e.run("mngr exec build -- cat stubborn")).to_eventually_match(r"^\d+$")

    expect(e2e.run("mngr stop build --grace 0s", comment="no time to lose")).to_succeed()
    expect(e2e.run("mngr list build")).to_match("^build +stopped")
    left = e2e.run("ps -o stat= -p $(mngr exec build -- cat stubborn)", comment="it is gone")
    expect(left.stdout).not_.to_match("^[^Z]")


def test_a_group_is_stopped_then_the_rest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Stop a group, or whatever is up, and tell a script what became of each.
        mngr stop --label batch=1
        mngr stop --state waiting,running --type command --host local
        mngr stop --all --json
    """)
    e2e.run("mngr create try --count 2 --label batch=1 --no-connect -- sleep 1000", comment="a group of two")
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="and one more")

    expect(e2e.run("mngr stop --label batch=1", comment="stop the group")).to_succeed()
    expect(e2e.run(STATES)).to_contain("try-1 stopped", "try-2 stopped", "other running")

    up = e2e.run("mngr stop --state waiting,running --type command --host local", comment="and what is still up")
    expect(up.stdout).to_equal("stopped other\n")

    told = e2e.run("mngr stop --all --json", comment="nobody is left to be stopped, which is no mistake")
    expect(told).to_succeed()
    became = {each["name"]: each["did"] for each in told.json()}
    expect(became).to_equal({"other": "idle", "try-1": "idle", "try-2": "idle"})


def test_after_a_reboot_all_come_back_in_their_places(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # After a reboot: bring back all that were stopped, or a part of them.
        mngr start --state stopped
        mngr start --label batch=1 --type command --host local
        mngr start --all --json
    """)
    e2e.run("mngr create build --no-connect -- 'echo up >>starts; sleep 1000'", comment="two agents at work")
    e2e.run("mngr create try --label batch=1 --no-connect -- sleep 1000")
    expect(e2e.run("mngr exec build -- cat starts")).to_eventually_contain("up")
    e2e.run(
        "tmux -S \"$(mngr connect build --connect-command 'echo $MNGR_TMUX_SOCKET')\" kill-server", comment="reboot"
    )
    expect(lambda: e2e.run(STATES)).to_eventually_contain("build stopped", "try stopped")

    back = e2e.run("mngr start --state stopped", comment="bring them back")
    expect(back).to_succeed().to_contain("started build", "started try")
    expect(e2e.run(STATES)).to_contain("build running", "try running")
    expect(lambda: e2e.run("mngr exec build -- cat starts").stdout).to_eventually_equal("up\nup\n")

    again = e2e.run("mngr start --label batch=1 --type command --host local", comment="who runs is left alone")
    expect(again.stdout).to_equal("running try\n")
    told = e2e.run("mngr start --all --json").json()
    expect({each["name"]: each["did"] for each in told}).to_equal({"build": "running", "try": "running"})
    expect(e2e.run("mngr exec build -- cat starts").stdout).to_equal("up\nup\n")


def test_a_part_of_the_stopped_is_brought_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # After a reboot: bring back all that were stopped, or a part of them.
        mngr start --state stopped
        mngr start --label batch=1 --type command --host local
        mngr start --all --json
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="two agents, both stopped")
    e2e.run("mngr create try --label batch=1 --no-connect -- sleep 1000")
    e2e.run("mngr stop --all")

    part = e2e.run("mngr start --label batch=1 --type command --host local", comment="one of them is wanted")
    expect(part.stdout).to_equal("started try\n")
    expect(e2e.run(STATES)).to_contain("build stopped", "try running")
    told = e2e.run("mngr start --all --json", comment="then both").json()
    expect({each["name"]: each["did"] for each in told}).to_equal({"build": "started", "try": "running"})


def test_a_clone_starts_where_the_other_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Fork an agent: same program, labels and environment, a branch of its own that starts where the other is. The other
        # is not disturbed.
        mngr clone build build-b --no-connect
        mngr clone build --json
    """)
    e2e.run(
        "mngr create build --label batch=1 -e STAGE=test --no-connect -- "
        "'git commit --allow-empty -qm \"Half way\"; echo up >>starts; sleep 1000'",
        comment="an agent with a commit and a file that is not committed",
    )
    expect(e2e.run("mngr exec build -- cat starts")).to_eventually_contain("up")

    expect(e2e.run("mngr clone build build-b --no-connect", comment="fork it")).to_succeed()
    (made,) = e2e.run(
        "mngr clone build --json", comment="and once more, by a script that does not care for names"
    ).json()

    agents = {each["name"]: each for each in e2e.run("mngr list --json").json()}
    expect(agents.keys()).to_equal({"build", "build-b", made["name"]})
    for clone in (agents["build-b"], agents[made["name"]]):
        expect(clone["labels"]).to_equal({"batch": "1"})
        expect(clone["command"]).to_equal(agents["build"]["command"])
        expect(clone["branch"]).to_equal(f"mngr/{clone['name']}")
    expect(e2e.run("git log --oneline mngr/build-b", comment="the commit is on its branch")).to_contain("Half way")
    expect(e2e.run("mngr exec build-b -- 'echo $STAGE; cat starts'")).to_contain("test", "up")

    expect(e2e.run("mngr exec build -- cat starts", comment="the other goes on").stdout).to_equal("up\n")
    expect(e2e.run(STATES)).to_contain("build running")


def test_a_clone_takes_nobodys_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Fork an agent: same program, labels and environment, a branch of its own that starts where the other is. The other
        # is not disturbed.
        mngr clone build build-b --no-connect
        mngr clone build --json
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="both are there already")
    e2e.run("mngr create build-b --no-connect -- sleep 2000")
    before = e2e.run("mngr list --names && git branch").stdout

    expect(e2e.run("mngr clone build build-b --no-connect", comment="no")).to_have_exit_code(1).to_contain("build-b")
    expect(e2e.run("mngr clone nobody build-c --no-connect", comment="nor from nobody")).to_have_exit_code(3)
    expect(e2e.run("mngr list --names && git branch", comment="nothing has come of it").stdout).to_equal(before)


def test_a_clone_with_another_program(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Same place, another program: what follows -- replaces the arguments.
        mngr clone build look --no-connect -- 'git status; sleep 1000'
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent with a new file")
    e2e.run("mngr exec build -- touch new.txt")

    look = e2e.run("mngr clone build look --no-connect -- 'git status; sleep 1000'", comment="look at it from beside")
    expect(look).to_succeed()
    expect(e2e.run("mngr capture look", comment="on its screen")).to_eventually_contain("mngr/look", "new.txt")


def test_another_name_for_a_program_that_goes_on(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent has grown into something else: give it another name. The program notices nothing.
        mngr rename build nightly
    """)
    e2e.run("mngr create build --no-connect -- 'echo up >>starts; sleep 1000'", comment="an agent at work")
    expect(e2e.run("mngr exec build -- cat starts")).to_eventually_contain("up")
    (before,) = e2e.run("mngr list build --json").json()

    expect(e2e.run("mngr rename build nightly", comment="a better name")).to_succeed()
    (after,) = e2e.run("mngr list --json").json()
    expect(after).to_equal(before | {"name": "nightly"})
    expect(e2e.run("mngr exec nightly -- cat starts", comment="it was not started again").stdout).to_equal("up\n")
    expect(e2e.run("mngr list build", comment="the old name is free")).to_have_exit_code(3)


def test_a_name_that_another_has_stays_with_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent has grown into something else: give it another name. The program notices nothing.
        mngr rename build nightly
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="two agents")
    e2e.run("mngr create nightly --no-connect -- sleep 1000")
    before = e2e.run("mngr list --format '{name} {id}'").stdout
    expect(e2e.run("mngr rename build nightly", comment="the name is taken")).to_have_exit_code(1)
    expect(e2e.run("mngr list --format '{name} {id}'", comment="both keep theirs").stdout).to_equal(before)
