"""TALKING TO THEM of tutorial.sh."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect
from tests.tutorial.conftest import ATTACH

# A program that notes down what it is told.
LISTENER = "cat >>heard.txt"


def test_a_message_is_typed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A message is typed into the agent's terminal and sent with Enter. Of a plain program nobody can say whether it has
        # read it, so the answer is only: typed.
        mngr message ask -m MIT
    """)
    e2e.run(
        """mngr create ask --no-connect -- 'read it; echo "it is $it"; sleep 1000'""", comment="a program that asks"
    )
    expect(e2e.run("mngr message ask -m MIT", comment="tell it").stdout).to_equal("typed ask\n")
    expect(e2e.run("mngr capture ask", comment="it was typed, and read")).to_eventually_contain("MIT\nit is MIT\n")


def test_nobody_is_told_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A message is typed into the agent's terminal and sent with Enter. Of a plain program nobody can say whether it has
        # read it, so the answer is only: typed.
        mngr message ask -m MIT
    """)
    expect(e2e.run("mngr message ask -m MIT", comment="there is no such agent")).to_have_exit_code(3)
    e2e.run(f"mngr create ask --no-connect -- '{LISTENER}'", comment="now there is one")
    expect(e2e.run("mngr message ask -m ''", comment="but there is nothing to say")).to_have_exit_code(2)


def test_a_text_from_a_file_or_a_pipe(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A longer text comes better from a file, or from a pipe. msg is the same verb.
        mngr message ask --file README.md
        git log --oneline | mngr message ask
        mngr msg ask -F - <README.md
    """)
    (e2e.dir / "README.md").write_text("# Shop\n\nIt sells 'things' & \"more\", $5 a piece.\n")
    e2e.run(f"mngr create ask --no-connect -- '{LISTENER}'", comment="an agent that listens")
    expect(e2e.run("mngr message ask --file README.md", comment="a file")).to_succeed()
    expect(e2e.run("git log --oneline | mngr message ask", comment="a pipe")).to_succeed()
    expect(e2e.run("mngr msg ask -F - <README.md", comment="standard input, by its name")).to_succeed()
    text = (e2e.dir / "README.md").read_text()
    said = text + e2e.run("git log --oneline").stdout + text
    heard = e2e.run("mngr exec ask -- cat heard.txt", comment="it has heard every line, once")
    expect(heard).to_eventually_equal(said)


def test_the_same_word_to_a_group(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The same word to a whole group at once: by a glob, by a label, or to all.
        mngr message 'try-*' -m 'go on'
        mngr message --label batch=1 -m 'go on'
        mngr message --all -m 'go on'
    """)
    e2e.run(f"mngr create try --count 2 --label batch=1 -- '{LISTENER}'", comment="a group")
    e2e.run(f"mngr create other --no-connect -- '{LISTENER}'", comment="and one that is not of it")
    expect(e2e.run("mngr message 'try-*' -m 'go on'", comment="by their names")).to_contain("try-1", "try-2")
    expect(e2e.run("mngr message --label batch=1 -m 'go on'", comment="by their label")).to_contain("try-1", "try-2")
    expect(e2e.run("mngr message --all -m 'go on'", comment="to all")).to_contain("typed other")
    heard = e2e.run("mngr exec --all -- cat heard.txt", comment="who has heard what?")
    expect(lambda: sorted(heard.again().stdout.splitlines())).to_eventually_equal(
        ["other | go on", *["try-1 | go on"] * 3, *["try-2 | go on"] * 3]
    )


def test_only_to_those_that_can_listen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Only to those that can listen: filters apply here as everywhere. The answer in JSON tells what became of each.
        mngr message --state running --type command --host local -m 'go on' --json
    """)
    e2e.run(f"mngr create try --count 2 -- '{LISTENER}' && mngr stop try-1", comment="one listens, one does not")
    result = e2e.run(
        "mngr message --state running --type command --host local -m 'go on' --json", comment="to those that can"
    )
    expect(result).to_succeed().to_be_json([{"name": "try-2", "did": "typed", "ok": True, ...: ...}])
    expect(e2e.run("mngr exec try-2 -- cat heard.txt", comment="it has heard it")).to_eventually_contain("go on")


def test_some_that_cannot_listen_are_told(e2e: E2eSession) -> None:
    """Without the filter, one of two is refused: exit code 6, and the JSON says which and why."""
    e2e.write_tutorial_block("""
        # Only to those that can listen: filters apply here as everywhere. The answer in JSON tells what became of each.
        mngr message --state running --type command --host local -m 'go on' --json
    """)
    e2e.run(f"mngr create try --count 2 -- '{LISTENER}' && mngr stop try-1", comment="one listens, one does not")
    result = e2e.run("mngr message --type command --host local -m 'go on' --json", comment="to both")
    expect(result).to_have_exit_code(6)
    expect({each["name"]: each["did"] for each in result.json()}).to_equal({"try-1": "refused", "try-2": "typed"})


def test_a_stopped_agent_is_brought_back_for_a_message(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It is stopped, and you have something to say: bring it back for that.
        mngr stop ask
        mngr message ask --start -m MIT
    """)
    e2e.run(f"mngr create ask --no-connect -- '{LISTENER}'", comment="an agent")
    expect(e2e.run("mngr stop ask", comment="that is stopped")).to_succeed()
    expect(e2e.run("mngr message ask -m BSD", comment="it cannot listen")).to_have_exit_code(1).to_contain("--start")
    expect(e2e.run("mngr message ask --start -m MIT", comment="bring it back")).to_succeed()
    expect(e2e.run("mngr exec ask -- cat heard.txt", comment="now it has heard")).to_eventually_equal("MIT\n")
    expect(e2e.run("mngr list --json", comment="and runs")).to_be_json([{"name": "ask", "state": "running", ...: ...}])


def test_sitting_down_at_its_terminal(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Sit down at its terminal yourself. Ctrl-b d leaves it running.
        mngr connect ask
    """)
    e2e.run("mngr create ask --no-connect -- 'printf \"MIT or BSD? \"; cat >heard.txt'", comment="a program that asks")
    terminal = e2e.spawn("mngr connect ask", comment="sit down", env=ATTACH)
    terminal.wait_for_text("MIT or BSD?").wait_for_text("C-b d leaves it running")
    terminal.type("MIT").press("Enter")
    expect(e2e.run("mngr exec ask -- cat heard.txt", comment="it was answered")).to_eventually_equal("MIT\n")
    terminal.press("C-b", "d").wait_for_text("detached")
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.run("mngr list --json", comment="it runs")).to_be_json([{"name": "ask", "state": "running", ...: ...}])


def test_your_own_command_in_place_of_the_attach(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Would you rather have another terminal program there? Your command runs in place of the attach, and knows the agent
        # by its variables.
        mngr connect ask --connect-command 'echo "$MNGR_AGENT_NAME works in $MNGR_WORK_DIR"'
        mngr create job --connect --connect-command 'echo "$MNGR_AGENT_NAME is $MNGR_SESSION"' -- sleep 1000
    """)
    ask = e2e.run("mngr create ask --json -- sleep 1000", comment="an agent").json()[0]
    result = e2e.run(
        """mngr connect ask --connect-command 'echo "$MNGR_AGENT_NAME works in $MNGR_WORK_DIR"'""", comment="go there"
    )
    expect(result.stdout).to_equal(f"ask works in {ask['work_dir']}\n")
    result = e2e.run(
        """mngr create job --connect --connect-command 'echo "$MNGR_AGENT_NAME is $MNGR_SESSION"' -- sleep 1000""",
        comment="make another one, and go there",
    )
    job = e2e.run("mngr list job --json").json()[0]
    expect(result.stdout).to_equal(f"job\njob is {job['id']}\n")
    result = e2e.run("mngr connect ask --connect-command 'exit 3'", comment="what it ends with is the exit code")
    expect(result).to_have_exit_code(3)


def test_something_beside_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Run something beside the agent, in its work dir and with its environment. It does not notice, and need not run.
        mngr exec build -- git status --short
        mngr exec build -- 'ls | wc -l'
    """)
    e2e.run("mngr create build --no-connect -e STAGE=test -- 'echo x >new.txt; exec sleep 1000'", comment="an agent")
    status = e2e.run("mngr exec build -- git status --short", comment="what has it changed?")
    expect(status).to_eventually_equal("?? new.txt\n")
    expect(e2e.run("mngr exec build -- 'ls | wc -l'", comment="a line for the shell").stdout).to_match("^ *3$")
    expect(e2e.run("git status --short", comment="here is nothing of it").stdout).to_be_empty()
    expect(e2e.run("mngr exec build -- 'echo $STAGE'", comment="its environment").stdout).to_equal("test\n")
    expect(e2e.run("mngr stop build", comment="it need not run")).to_contain("stopped build")
    expect(e2e.run("mngr exec build -- git status --short").stdout).to_equal("?? new.txt\n")


def test_a_command_that_hangs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A command that may hang gets a limit; its exit code is then 124, as with timeout.
        mngr exec build --timeout 1s -- sleep 1000 || echo "exit code $?"
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent")
    result = e2e.run("""mngr exec build --timeout 1s -- sleep 1000 || echo "exit code $?\"""", comment="it hangs")
    expect(result).to_succeed().to_contain("exit code 124")
    expect(e2e.run("mngr list --json", comment="the agent does not")).to_be_json(
        [{"name": "build", "state": "running", ...: ...}]
    )
