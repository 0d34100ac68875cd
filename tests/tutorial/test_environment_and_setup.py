"""ENVIRONMENT AND SETUP of tutorial.sh: what an agent finds when it starts."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect


def test_what_it_needs_of_the_environment(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent gets little of your shell's environment. Say what it needs: outright, by file, or from here by name.
        export REGION=eu
        echo LEVEL=debug >agent.env
        mngr create job -e STAGE=test --env-file agent.env --pass-env REGION -- sleep 1000
        mngr exec job -- 'echo $STAGE $LEVEL $REGION'
    """)
    create = """
        export REGION=eu
        echo LEVEL=debug >agent.env
        mngr create job -e STAGE=test --env-file agent.env --pass-env REGION -- sleep 1000
    """
    expect(e2e.run(create, comment="say what it needs", env={"MOOD": "good"})).to_succeed()
    variables = e2e.run("mngr exec job -- 'echo $STAGE $LEVEL $REGION'", comment="it has it")
    expect(variables.stdout).to_equal("test debug eu\n")
    everything = e2e.run("mngr exec job -- env", comment="and not what nobody spoke of", env={"MOOD": "good"})
    expect(everything).to_contain("STAGE=test").not_.to_contain("MOOD")


def test_a_variable_that_there_is_not(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent gets little of your shell's environment. Say what it needs: outright, by file, or from here by name.
        export REGION=eu
        echo LEVEL=debug >agent.env
        mngr create job -e STAGE=test --env-file agent.env --pass-env REGION -- sleep 1000
        mngr exec job -- 'echo $STAGE $LEVEL $REGION'
    """)
    e2e.run("echo LEVEL=debug >agent.env", comment="without the export")
    create = e2e.run("mngr create job -e STAGE=test --env-file agent.env --pass-env REGION -- sleep 1000")
    expect(create).to_have_exit_code(2).to_contain("REGION")
    expect(e2e.run("mngr list --names", comment="nothing is made").stdout).to_be_empty()


def test_setup_comes_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A new work dir has no dependencies installed. The setup runs in it first; if it fails, nothing is left behind.
        mngr create job --setup 'python3 -m venv --without-pip .venv' -- sleep 1000
        mngr create bad --setup 'exit 3' -- sleep 1000 || echo "exit code $?"
    """)
    create = "mngr create job --setup 'python3 -m venv --without-pip .venv' -- sleep 1000"
    expect(e2e.run(create, comment="an agent with a virtual environment")).to_succeed()
    python = e2e.run("mngr exec job -- .venv/bin/python -c 'import sys; print(sys.prefix)'", comment="it is there")
    expect(python).to_succeed().to_match(r"/\.venv$")
    assert not (e2e.dir / ".venv").exists(), "the setup ran here"


def test_a_setup_that_fails_leaves_nothing_behind(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A new work dir has no dependencies installed. The setup runs in it first; if it fails, nothing is left behind.
        mngr create job --setup 'python3 -m venv --without-pip .venv' -- sleep 1000
        mngr create bad --setup 'exit 3' -- sleep 1000 || echo "exit code $?"
    """)
    create = "mngr create bad --setup 'exit 3' -- sleep 1000 || echo \"exit code $?\""
    expect(e2e.run(create, comment="a setup that fails")).to_contain("bad was not created", "exit 3", "exit code 1")
    expect(e2e.run("mngr list --names", comment="no agent").stdout).to_be_empty()
    expect(e2e.run("git branch --list 'mngr/*'", comment="no branch").stdout).to_be_empty()
    worktrees = e2e.run("git worktree list", comment="no work dir").stdout.splitlines()
    expect(len(worktrees)).to_equal(1)


def test_what_every_agent_needs_is_in_the_project(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What every agent of this repository needs belongs into the project's file, which you commit.
        mngr config set --project setup 'echo ready >.ready'
        mngr config set --project copy .env,.env.local
        mngr config set --project pass_env REGION
        cat .mngr.toml
    """)
    expect(e2e.run("mngr config set --project setup 'echo ready >.ready'", comment="the setup")).to_succeed()
    expect(e2e.run("mngr config set --project copy .env,.env.local", comment="ignored files")).to_succeed()
    expect(e2e.run("mngr config set --project pass_env REGION", comment="a variable")).to_succeed()
    expect(e2e.run("cat .mngr.toml", comment="all of it in one file").stdout).to_match_snapshot("""
        setup = "echo ready >.ready"
        copy = [".env", ".env.local"]
        pass_env = ["REGION"]
    """)
    e2e.run("git add .mngr.toml && git commit -qm 'What agents need'", comment="for the others too")
    e2e.run("echo TOKEN=secret >.env", comment="of the two files, one is there")
    e2e.run("mngr create job --no-connect -- sleep 1000", comment="an agent", env={"REGION": "eu"})
    needs = e2e.run("mngr exec job -- 'cat .ready .env; echo $REGION'", comment="that has all of it")
    expect(needs.stdout).to_equal("ready\nTOKEN=secret\neu\n")


def test_an_agent_knows_where_it_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Inside an agent, mngr knows where it is: scripts can ask for the name and the directory.
        mngr create job -- 'echo "I am $MNGR_AGENT_NAME in $MNGR_WORK_DIR"; sleep 1000'
        mngr capture job
    """)
    create = """mngr create job -- 'echo "I am $MNGR_AGENT_NAME in $MNGR_WORK_DIR"; sleep 1000'"""
    expect(e2e.run(create, comment="an agent that tells where it is")).to_succeed()
    work_dir = e2e.run("mngr list --json").json()[0]["work_dir"]
    expect(e2e.run("mngr capture job", comment="it does")).to_eventually_contain(f"I am job in {work_dir}")
