"""WAITING AND SCRIPTING of tutorial.sh."""

from __future__ import annotations

import json

from mngr.e2e import E2eSession, expect
from tests.agents import begun


def test_wait_for_the_end_of_a_program(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Wait for the end of a program, not only for a pause, and tell by the exit code how it went: 1 is for never.
        mngr create tests -- python3 src/app.py
        mngr wait tests --for done && echo "all is well"
    """)
    expect(e2e.run("mngr create tests -- python3 src/app.py", comment="run the tests")).to_succeed()
    result = e2e.run('mngr wait tests --for done && echo "all is well"', comment="how did it go?")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("tests done\nall is well\n")
    expect(e2e.run("mngr capture tests", comment="they ran")).to_contain("hello")


def test_it_never_comes_to_a_good_end(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Wait for the end of a program, not only for a pause, and tell by the exit code how it went: 1 is for never.
        mngr create tests -- python3 src/app.py
        mngr wait tests --for done && echo "all is well"
    """)
    e2e.run("echo 'exit(3)' >>src/app.py && git commit -qam 'Break it'", comment="the tests are going to fail")
    e2e.run("mngr create tests -- python3 src/app.py", comment="run the tests")
    result = e2e.run('mngr wait tests --for done && echo "all is well"', comment="how did it go?")
    expect(result).to_have_exit_code(1).to_contain("exit 3").not_.to_contain("all is well")


def test_never_wait_for_ever(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Never wait for ever in a script: after the limit wait ends with 4.
        mngr wait build --for done --timeout 1s || echo "exit code $?"
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="it takes its time")
    result = e2e.run('mngr wait build --for done --timeout 1s || echo "exit code $?"', comment="not with me")
    expect(result.stdout).to_equal("exit code 4\n")
    expect(result.stderr).to_contain("build")
    expect(e2e.run("mngr list --names --state running", comment="it goes on").stdout).to_equal("build\n")


def test_wait_for_everybody(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Wait for everybody, or for those of one kind; the JSON says in which state each has arrived.
        mngr wait --all --for running,done --timeout 1m
        mngr wait --label batch=1 --state running --type command --host local --for running --json
    """)
    e2e.run("mngr create try --count 2 --label batch=1 -- sleep 1000", comment="a group that works")
    e2e.run("mngr create tests --no-connect -- true", comment="and one that is soon done")
    arrived = e2e.run("mngr wait --all --for running,done --timeout 1m", comment="everybody")
    expect(arrived).to_succeed().to_contain("try-1 running", "try-2 running").to_match("^tests (running|done)$")
    group = e2e.run(
        "mngr wait --label batch=1 --state running --type command --host local --for running --json",
        comment="those of one kind",
    )
    expect(group).to_succeed()
    expect({each["name"]: each["state"] for each in group.json()}).to_equal({"try-1": "running", "try-2": "running"})


def test_exec_stands_where_a_test_stands(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The exit code of exec is that of the command, so that it stands where a test stands.
        if mngr exec fix -- test -f README.md; then echo "it is still there"; fi
    """)
    block = 'if mngr exec fix -- test -f README.md; then echo "it is still there"; fi'
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent with its files")
    expect(e2e.run(block, comment="is it there?").stdout).to_equal("it is still there\n")
    e2e.run("mngr exec fix -- rm README.md", comment="one of them goes")
    expect(e2e.run(block, comment="and now?").output).to_be_empty()
    expect(e2e.run("mngr exec fix -- sh -c 'exit 42'", comment="any code is passed on")).to_have_exit_code(42)


def test_a_code_for_each_failure(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # For each failure there is a code of its own: 2 for wrong words, 3 for an agent that is not there.
        mngr list --colour || echo "exit code $?"
        mngr stop nobody || echo "exit code $?"
    """)
    wrong = e2e.run('mngr list --colour || echo "exit code $?"', comment="wrong words")
    expect(wrong.stdout).to_equal("exit code 2\n")
    expect(wrong.stderr).to_contain("--colour", "mngr help list")
    missing = e2e.run('mngr stop nobody || echo "exit code $?"', comment="nobody")
    expect(missing.stdout).to_equal("exit code 3\n")
    expect(missing.stderr).to_contain("nobody")


def test_scripts_read_json(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Scripts read JSON: of the whole list, line by line, or of a create.
        mngr list --json
        mngr list --jsonl
        mngr create job --json -- sleep 1000
    """)
    e2e.run("mngr create try --count 2 -- sleep 1000", comment="two agents")
    e2e.run(begun(2), comment="since when they run is known when their programs have begun")
    listed = e2e.run("mngr list --json", comment="the whole list")
    expect(listed).to_be_json([{"name": f"try-{n}", "state": "running", ...: ...} for n in (1, 2)])
    lines = e2e.run("mngr list --jsonl", comment="line by line").stdout.splitlines()
    expect([json.loads(line) for line in lines]).to_equal(listed.json())
    made = e2e.run("mngr create job --json -- sleep 1000", comment="what was made")
    expect(made).to_be_json([{"name": "job", "command": ["sleep", "1000"], "branch": "mngr/job", ...: ...}])
    expect(e2e.run("git -C {} rev-parse".format(made.json()[0]["work_dir"]), comment="it is there")).to_succeed()


def test_no_agents_are_an_empty_list(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Scripts read JSON: of the whole list, line by line, or of a create.
        mngr list --json
        mngr list --jsonl
        mngr create job --json -- sleep 1000
    """)
    expect(e2e.run("mngr list --json", comment="nobody is there")).to_be_json([])
    expect(e2e.run("mngr list --jsonl", comment="line by line").output).to_be_empty()


def test_a_template_for_the_shell(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
        # For a shell a template is often enough.
        mngr list --format '{name}\t{state}\t{branch}'
        mngr list --names --state running | xargs -r -n 1 echo next:
    """)
    e2e.run("mngr create try --count 2 -- sleep 1000 && mngr stop try-1", comment="one runs, one does not")
    lines = e2e.run(r"mngr list --format '{name}\t{state}\t{branch}'", comment="three columns").stdout
    expect(lines).to_equal("try-1\tstopped\tmngr/try-1\ntry-2\trunning\tmngr/try-2\n")
    told = e2e.run("mngr list --names --state running | xargs -r -n 1 echo next:", comment="and on with those that run")
    expect(told.stdout).to_equal("next: try-2\n")
    expect(e2e.run("mngr list --format '{colour}'", comment="a field that there is not")).to_have_exit_code(2)
