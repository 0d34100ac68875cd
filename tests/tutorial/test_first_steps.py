"""FIRST STEPS of tutorial.sh."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect
from tests.tutorial.conftest import ATTACH


def test_the_version_and_what_is_missing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Before anything else: which mngr is this, and does it find what it needs? doctor names what is missing and what to do.
        mngr --version
        mngr doctor
    """)
    expect(e2e.run("mngr --version", comment="which one is it").stdout).to_match(r"^mngr \d+\.\d+")
    expect(e2e.run("mngr doctor", comment="and does it find what it needs")).to_succeed().to_contain("tmux", "git")


def test_doctor_tells_what_is_missing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Before anything else: which mngr is this, and does it find what it needs? doctor names what is missing and what to do.
        mngr --version
        mngr doctor
    """)
    e2e.run("mkdir ../bin && ln -s $(command -v mngr python3 git sh ps) ../bin", comment="a machine without tmux")
    result = e2e.run("mngr doctor", comment="it is missed", env={"PATH": str(e2e.work / "bin")})
    expect(result).to_fail().to_match("tmux.*install")


def test_create_takes_you_to_the_agent_and_it_goes_on_without_you(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent is a program in a terminal of its own, with a work dir and a branch of its own, so that it cannot get in your
        # way. Any program will do. In a terminal, create takes you to it: Ctrl-b d leaves, and it goes on without you.
        mngr create hello -- sleep 1000
    """)
    terminal = e2e.spawn("mngr create hello -- sleep 1000", comment="make one, and sit down at it", env=ATTACH)
    terminal.wait_for_text("C-b d leaves it running").press("C-b", "d").wait_for_text("detached")
    expect(terminal.wait_for_exit()).to_equal(0)
    hello = e2e.run("mngr list --json", comment="it goes on")
    expect(hello).to_be_json([{"name": "hello", "state": "running", "branch": "mngr/hello", ...: ...}])
    place = e2e.run("mngr exec hello -- pwd", comment="in a place of its own").stdout
    expect(place).to_equal(hello.json()[0]["work_dir"] + "\n").not_.to_contain(str(e2e.dir))
    expect(e2e.run("git status --short && git branch --show-current", comment="and not in my way").stdout).to_equal(
        "main\n"
    )


def test_an_agent_to_be_left_alone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Most agents are made to be left alone. --no-connect stays here, and list shows how they are.
        mngr create build --no-connect -- sh -c 'python3 src/app.py; sleep 1000'
        mngr list
    """)
    terminal = e2e.spawn(
        "mngr create build --no-connect -- sh -c 'python3 src/app.py; sleep 1000'",
        comment="in a terminal, but without going there",
        env=ATTACH,
    )
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.run("mngr list", comment="how is it?").stdout).to_match("^build +running .* mngr/build$")
    expect(e2e.run("mngr capture build", comment="it does what it was told")).to_eventually_contain("hello")


def test_a_line_for_the_shell(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One word with blanks in it is a line for the shell, which is shorter to write than sh -c.
        mngr create report --no-connect -- 'git log --oneline >report.txt; cat report.txt; sleep 1000'
    """)
    e2e.run(
        "mngr create report --no-connect -- 'git log --oneline >report.txt; cat report.txt; sleep 1000'",
        comment="a line with redirections",
    )
    expect(e2e.run("mngr capture report", comment="its screen")).to_eventually_contain("First commit")
    expect(e2e.run("mngr exec report -- cat report.txt", comment="its file")).to_contain("First commit")
    expect(e2e.run("ls", comment="my files")).not_.to_contain("report.txt")


def test_a_program_with_a_question(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A program with a question waits in its terminal. Look at its screen, answer, and wait until it is done.
        mngr create ask --no-connect -- 'printf "MIT or BSD? "; read it; git commit --allow-empty -qm "Choose $it"'
        mngr capture ask
        mngr message ask -m MIT
        mngr wait ask
    """)
    e2e.run(
        """mngr create ask --no-connect -- 'printf "MIT or BSD? "; read it; git commit --allow-empty -qm "Choose $it"'""",
        comment="a program that asks",
    )
    expect(e2e.run("mngr capture ask", comment="what does it want?")).to_eventually_contain("MIT or BSD?")
    expect(e2e.run("mngr message ask -m MIT", comment="an answer")).to_succeed()
    expect(e2e.run("mngr wait ask", comment="and it is done").stdout).to_equal("ask done\n")
    expect(e2e.run("git log -1 --format=%s mngr/ask", comment="it has done it").stdout).to_equal("Choose MIT\n")


def test_the_work_is_merged_and_the_agent_goes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Its work is on its branch, not in your files. Merge it when you like it, and then the agent can go.
        mngr pull ask --merge
        mngr destroy --force ask
    """)
    line = "echo MIT >LICENSE; git add LICENSE; git commit -qm License"
    e2e.run(f"mngr create ask --no-connect -- '{line}' && mngr wait ask", comment="an agent that has committed")
    expect(e2e.run("ls", comment="not in my files")).not_.to_contain("LICENSE")
    expect(e2e.run("mngr pull ask --merge", comment="I like it")).to_succeed()
    expect(e2e.dir / "LICENSE").to_equal("MIT\n")
    expect(e2e.run("mngr destroy --force ask", comment="so it can go")).to_succeed()
    expect(e2e.run("mngr list --json", comment="nothing of it is left")).to_be_json([])
    expect(e2e.run("git branch --list 'mngr/*' && git worktree list").stdout).not_.to_contain("mngr/ask")
    expect(e2e.run("git log -1 --format=%s", comment="but its work").stdout).to_equal("License\n")


def test_a_made_up_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Too lazy for a name? One is made up, and printed. Give it a better one once you know what it is good for.
        name=$(mngr create --no-connect -- sleep 1000)
        mngr rename "$name" night-watch
    """)
    result = e2e.run(
        """
        name=$(mngr create --no-connect -- sleep 1000)
        mngr rename "$name" night-watch
        """,
        comment="made up, printed, and renamed",
    )
    expect(result).to_succeed().to_match(r"renamed \S+ to night-watch")
    expect(e2e.run("mngr list --json", comment="it never noticed")).to_be_json(
        [{"name": "night-watch", "state": "running", ...: ...}]
    )


def test_create_stays_here_unless_told_otherwise(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The rest of this tutorial makes agents and goes on with something else. From here on create stays where you are; with
        # --connect it takes you along all the same, here into a shell, which is what a command without a program is.
        mngr config set commands.create.connect false
        mngr create hello -- sleep 1000
        mngr create shell command --connect
    """)
    e2e.run("mngr config set commands.create.connect false", comment="from here on")
    terminal = e2e.spawn("mngr create hello -- sleep 1000", comment="create stays", env=ATTACH)
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(terminal).to_equal("hello")
    terminal = e2e.spawn("mngr create shell command --connect", comment="or takes me along", env=ATTACH)
    terminal.wait_for_text("C-b d leaves it running")
    terminal.type("echo I am in $(git branch --show-current)\n").wait_for_text("I am in mngr/shell")
    terminal.press("C-b", "d")
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.run("mngr list --names --state running", comment="both are there").stdout).to_equal("hello\nshell\n")


def test_an_agent_that_is_there_already_is_reused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Somebody else's script may have made the agent already. --reuse takes the one that is there, and starts it if need be.
        mngr create hello --reuse -- sleep 1000
    """)
    made = e2e.run("mngr create hello --json -- sleep 1000", comment="somebody else's script").json()[0]
    expect(e2e.run("mngr create hello --no-connect -- sleep 1000", comment="mine")).to_fail().to_contain("--reuse")
    expect(e2e.run("mngr create hello --reuse -- sleep 1000", comment="take that one")).to_succeed()
    expect(e2e.run("mngr stop hello", comment="and if it is stopped?")).to_contain("stopped hello")
    expect(e2e.run("mngr create hello --reuse -- sleep 1000", comment="then it is started")).to_succeed()
    expect(e2e.run("mngr list --json", comment="it is the same, and runs")).to_be_json(
        [{"id": made["id"], "state": "running", ...: ...}]
    )


def test_reuse_makes_what_is_not_there(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Somebody else's script may have made the agent already. --reuse takes the one that is there, and starts it if need be.
        mngr create hello --reuse -- sleep 1000
    """)
    expect(e2e.run("mngr create hello --reuse -- sleep 1000", comment="nobody has made it")).to_succeed()
    expect(e2e.run("mngr list --json", comment="now it is there")).to_be_json(
        [{"name": "hello", "state": "running", ...: ...}]
    )


def test_help(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Every verb explains itself, in three ways; the first word of a family, such as snapshot, lists its members.
        mngr help
        mngr help create
        mngr create --help
        mngr help snapshot
    """)
    expect(e2e.run("mngr help", comment="all verbs")).to_succeed().to_contain("create", "snapshot", "destroy")
    told = e2e.run("mngr help create", comment="one of them").stdout
    expect(told).to_contain("mngr create [NAME]", "--reuse", "Examples")
    expect(e2e.run("mngr create --help", comment="or so").stdout).to_equal(told)
    family = e2e.run("mngr help snapshot", comment="a family")
    expect(family).to_succeed().to_contain("snapshot create", "snapshot list", "snapshot restore", "snapshot destroy")
    expect(e2e.run("mngr help snapsot", comment="a slip")).to_have_exit_code(2)


def test_stopping_keeps_all_but_the_program(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Stopping ends the program and keeps all else, starting brings it back. Connecting to a stopped agent starts it too.
        mngr stop hello
        mngr start hello
    """)
    e2e.run("mngr create hello --no-connect -- 'echo $$ >>pids; exec sleep 1000'", comment="a program at work")
    expect(e2e.run("mngr exec hello -- cat pids")).to_eventually_match(r"^\d+$")
    expect(e2e.run("mngr stop hello", comment="stop it")).to_succeed()
    pid = e2e.run("mngr exec hello -- cat pids", comment="its files are there").stdout
    expect(e2e.run(f"ps -o stat= -p {int(pid)}", comment="its program is not").stdout).not_.to_match("^[^Z]")
    expect(e2e.run("mngr list --json")).to_be_json([{"state": "stopped", "branch": "mngr/hello", ...: ...}])
    expect(e2e.run("mngr start hello", comment="bring it back")).to_succeed()
    expect(e2e.run("mngr exec hello -- 'wc -l <pids'", comment="in the same place")).to_eventually_match("^ *2$")
    expect(e2e.run("mngr list --json")).to_be_json([{"name": "hello", "state": "running", ...: ...}])


def test_connecting_to_a_stopped_agent_starts_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Stopping ends the program and keeps all else, starting brings it back. Connecting to a stopped agent starts it too.
        mngr stop hello
        mngr start hello
    """)
    e2e.run("mngr create hello --no-connect -- 'echo here I am; sleep 1000'", comment="an agent")
    e2e.run("mngr stop hello", comment="that is stopped")
    terminal = e2e.spawn("mngr connect hello", comment="go there", env=ATTACH)
    terminal.wait_for_text("here I am").wait_for_text("C-b d leaves it running")
    expect(e2e.run("mngr list --json", comment="it runs")).to_be_json([{"name": "hello", "state": "running", ...: ...}])
