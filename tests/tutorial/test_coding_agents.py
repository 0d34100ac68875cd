"""CODING AGENTS of tutorial.sh. The programs are the real ones; the model behind them answers by a script."""

from __future__ import annotations

import re
from typing import Any

from mngr.dev.model_server import ModelServer
from mngr.dev.script import Script
from mngr.e2e import E2eSession, expect

UNTIL_GO = "until [ -e go ]; do sleep 0.1; done"


def agent(e2e: E2eSession, name: str) -> dict[str, Any]:
    """As `mngr list --json` has it."""
    found: dict[str, Any]
    (found,) = e2e.run(f"mngr list {name} --json").json()
    return found


def test_claude_gets_its_task_and_is_waited_for(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Claude Code, unattended, with its first task: the message is sent as soon as it is ready for it.
        mngr create fix claude -m 'The login fails on Safari: find out why'
        mngr wait fix
    """)
    agents.script = Script([{"when": "Safari", "say": "Its cookie is SameSite=Strict."}])
    created = e2e.run("mngr create fix claude -m 'The login fails on Safari: find out why'", comment="give it the task")
    expect(created).to_succeed()
    expect(e2e.run("mngr wait fix", comment="have a coffee")).to_succeed()
    expect(agents.texts()).to_equal(["The login fails on Safari: find out why"])
    expect([agent(e2e, "fix")]).to_be_json(
        [{"type": "claude", "branch": "mngr/fix", "state": "waiting", "reason": "turn over", ...: ...}]
    )
    expect(e2e.run("mngr capture fix", comment="its answer is on its screen")).to_eventually_contain(
        "The login fails on Safari", "Its cookie is SameSite=Strict."
    )


def test_without_a_login_nothing_is_begun(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Claude Code, unattended, with its first task: the message is sent as soon as it is ready for it.
        mngr create fix claude -m 'The login fails on Safari: find out why'
        mngr wait fix
    """)
    result = e2e.run(
        "mngr create fix claude -m 'The login fails on Safari: find out why'",
        comment="somebody who has neither a key nor a login",
        env={"ANTHROPIC_API_KEY": ""},
    )
    expect(result).to_have_exit_code(1).to_contain("log in", "ANTHROPIC_API_KEY")
    expect(e2e.run("mngr wait fix", comment="there is nobody to wait for")).to_have_exit_code(3)
    expect(e2e.run("mngr list --json")).to_be_json([])
    expect(e2e.run("git branch --list 'mngr/*'").stdout).to_be_empty()
    expect(agents.requests()).to_be_empty()


def test_what_follows_the_dashes_goes_to_the_program(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # What follows -- goes to the program itself. Let it run its tools without asking, since it works in a worktree.
        mngr create fix claude -m 'Add a test for the login' -- --dangerously-skip-permissions
    """)
    agents.script = Script([{"when": "Add a test", "run": "echo 'def test_login(): ...' >test_login.py"}])
    e2e.run(
        "mngr create fix claude -m 'Add a test for the login' -- --dangerously-skip-permissions",
        comment="it may do what it likes, there",
    )
    expect(e2e.run("mngr wait fix", comment="nobody is asked for a permission")).to_succeed()
    expect(agent(e2e, "fix")["reason"]).to_equal("turn over")
    expect(e2e.run("mngr exec fix -- cat test_login.py").stdout).to_equal("def test_login(): ...\n")
    expect(e2e.run("git status --short", comment="my own files are as they were").stdout).to_be_empty()
    expect((e2e.dir / "test_login.py").exists()).to_equal(False)


def test_a_task_of_several_lines(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A real task is more than a line: write it into a file, or here.
        mngr create fix claude --message-file - <<'EOF'
        The login fails on Safari.
        Find out why, mend it, and commit the change with a test.
        EOF
    """)
    task = "The login fails on Safari.\nFind out why, mend it, and commit the change with a test."
    command = f"mngr create fix claude --message-file - <<'EOF'\n{task}\nEOF"
    expect(e2e.run(command, comment="the whole task, here")).to_succeed()
    e2e.run("mngr wait fix")
    expect(agents.texts()).to_equal([task])


def test_a_task_from_a_file_that_is_not_there(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A real task is more than a line: write it into a file, or here.
        mngr create fix claude --message-file - <<'EOF'
        The login fails on Safari.
        Find out why, mend it, and commit the change with a test.
        EOF
    """)
    result = e2e.run("mngr create fix claude --message-file taks.md", comment="a slip of the pen")
    expect(result).to_fail().to_contain("taks.md")
    expect(e2e.run("mngr list --json", comment="no agent was made for it")).to_be_json([])
    expect(agents.requests()).to_be_empty()


def test_codex_and_opencode(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Codex and OpenCode are used in the same way; every verb below works for all three.
        mngr create docs codex -m 'Bring README.md up to date'
        mngr create tidy opencode -m 'Which functions of src/app.py are unused?'
        mngr wait docs tidy
    """)
    e2e.write_tutorial_block("""
        # Is it still at work? Your message is queued, and taken up next; it arrives once, whatever the agent does meanwhile.
        mngr message fix -m 'And add a test for it'
        mngr message docs tidy -m 'Please be brief'
    """)
    e2e.run("mngr create docs codex -m 'Bring README.md up to date'", comment="Codex")
    tidy = "mngr create tidy opencode -m 'Which functions of src/app.py are unused?'"
    e2e.run(tidy, comment="and OpenCode, which takes its time", timeout=120)
    expect(e2e.run("mngr wait docs tidy", comment="wait for both", timeout=120)).to_succeed()
    expect({each: agent(e2e, each)["type"] for each in ("docs", "tidy")}).to_equal(
        {"docs": "codex", "tidy": "opencode"}
    )
    said = ["Bring README.md up to date", "Which functions of src/app.py are unused?"]
    expect(sorted(agents.texts())).to_equal(said)
    told = e2e.run("mngr message docs tidy -m 'Please be brief'", comment="the same word to both")
    expect(told).to_succeed().to_contain("docs", "tidy")
    e2e.run("mngr wait docs tidy")
    expect(sorted(agents.texts())).to_equal([said[0], *2 * ["Please be brief"], said[1]])
    for name in ("docs", "tidy"):
        expect(e2e.run(f"mngr transcript {name} --tail 1")).to_contain("You said: Please be brief")


def test_headless_takes_messages_all_the_same(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Nobody is going to look at its terminal? Headless is cheaper, and messages work all the same.
        mngr create ci claude --headless -m 'Review the last commit' -- --dangerously-skip-permissions
        mngr wait ci
        mngr message ci -m 'And now the one before'
    """)
    agents.script = Script([{"when": "Review", "run": "git log -1 --format=%s"}])
    e2e.run(
        "mngr create ci claude --headless -m 'Review the last commit' -- --dangerously-skip-permissions",
        comment="without its terminal interface",
    )
    expect(e2e.run("mngr wait ci")).to_succeed()
    expect(e2e.run("mngr transcript ci --tail 1", comment="it has looked")).to_contain("DONE: First commit")
    expect(e2e.run("mngr message ci -m 'And now the one before'", comment="one more thing")).to_succeed()
    e2e.run("mngr wait ci")
    expect(agents.texts()).to_equal(["Review the last commit", "And now the one before"])
    expect(agent(e2e, "ci")["headless"]).to_equal(True)


def test_a_message_to_one_at_work_is_queued_and_arrives_once(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Is it still at work? Your message is queued, and taken up next; it arrives once, whatever the agent does meanwhile.
        mngr message fix -m 'And add a test for it'
        mngr message docs tidy -m 'Please be brief'
    """)
    agents.script = Script([{"when": "Safari", "run": UNTIL_GO}])
    e2e.run(
        "mngr create fix claude -m 'Mend it for Safari' -- --dangerously-skip-permissions",
        comment="an agent with much to do",
    )
    expect(agents.texts).to_eventually_equal(["Mend it for Safari"], timeout=30)
    told = e2e.run("mngr message fix -m 'And add a test for it'", comment="something comes to my mind")
    expect(told).to_succeed().to_contain("queued fix")
    expect(agent(e2e, "fix")["state"]).to_equal("running")
    e2e.run("mngr exec fix -- touch go", comment="its work comes to an end")
    expect(e2e.run("mngr wait fix")).to_succeed()
    expect(agents.texts()).to_equal(["Mend it for Safari", "And add a test for it"])


def test_commands_of_the_program_are_messages(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Commands of the program are messages too. One that opens a dialog ends with exit code 7, and nobody but you answers.
        mngr message fix -m /clear
        mngr message fix -m /model || echo "exit code $?"
    """)
    e2e.run("mngr create fix claude -m 'The word is plum' && mngr wait fix", comment="an agent with a past")
    expect(e2e.run("mngr message fix -m /clear", comment="which it is to forget")).to_succeed()
    dialog = e2e.run('mngr message fix -m /model || echo "exit code $?"', comment="a command that opens a dialog")
    expect(dialog.stdout).to_equal("exit code 7\n")
    expect(e2e.run("mngr message fix -m 'SAY: not now'", comment="nothing is typed into it")).to_have_exit_code(7)
    # Connecting means recording in these tests, unless the setting is empty; this is somebody who sits there.
    attach = {"MNGR_CONFIG_COMMANDS__CONNECT__CONNECT_COMMAND": ""}
    terminal = e2e.spawn("mngr connect fix", comment="I answer it myself, and leave", name="me", env=attach)
    terminal.wait_for_text("Esc to cancel")
    terminal.press("Escape").wait_for_no_text("Esc to cancel")
    terminal.press("C-b", "d").wait_for_exit()
    unknown = e2e.run("mngr message fix -m /nonsense", comment="a command that it does not have")
    expect(unknown).to_have_exit_code(1).to_contain("it knows no command /nonsense")
    expect(e2e.run("mngr message fix -m 'RECALL: plum'", comment="does it remember?")).to_succeed()
    e2e.run("mngr wait fix")
    expect(e2e.run("mngr transcript fix --tail 1")).to_contain("I recall nothing")
    expect(agents.texts()).to_contain("RECALL: plum").not_.to_contain("SAY: not now")


def talked(e2e: E2eSession, agents: ModelServer) -> None:
    """An agent `fix` that has looked, answered and been stopped."""
    agents.script = Script([{"when": "Safari", "run": "seq 100"}, {"when": "^1\n2\n", "say": "It is the cookie."}])
    e2e.run(
        "mngr create fix claude --headless --no-connect -m 'The login fails on Safari' "
        "-- --dangerously-skip-permissions && mngr wait fix && mngr stop fix",
        comment="an agent that has done its work",
    )


def test_the_conversation_can_be_read(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # What has been said? It is read from the program's own log, so the agent need not run.
        mngr transcript fix
        mngr transcript fix --tail 1
        mngr transcript fix --head 3 --full
    """)
    talked(e2e, agents)
    whole = e2e.run("mngr transcript fix", comment="read all of it")
    expect(whole).to_contain("The login fails on Safari", "seq 100", "It is the cookie.")
    expect(whole.stdout).not_.to_match(r"^ +100$")
    last = e2e.run("mngr transcript fix --tail 1", comment="the last word")
    expect(last).to_contain("It is the cookie.").not_.to_contain("Safari")
    first = e2e.run("mngr transcript fix --head 3 --full", comment="how it began")
    expect(first).to_contain("The login fails on Safari", "seq 100").to_match(r"^ +100$")
    expect(first).not_.to_contain("It is the cookie.")


def test_the_conversation_of_somebody_who_has_none(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What has been said? It is read from the program's own log, so the agent need not run.
        mngr transcript fix
        mngr transcript fix --tail 1
        mngr transcript fix --head 3 --full
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="a plain program")
    expect(e2e.run("mngr transcript fix", comment="it keeps no log")).to_have_exit_code(2)
    expect(e2e.run("mngr transcript nobody", comment="and this one is not there")).to_have_exit_code(3)


def test_the_conversation_for_a_program(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Only you and the model, without what tools gave back; then all of it for a program, in one form for all agents.
        mngr transcript fix --role user,assistant
        mngr transcript fix --json
        mngr transcript fix --jsonl
        mngr transcript --schema
    """)
    talked(e2e, agents)
    said = e2e.run("mngr transcript fix --role user,assistant", comment="only the two of us")
    expect(said).to_contain("The login fails on Safari", "seq 100", "It is the cookie.")
    expect(said.stdout).not_.to_match("^ +1$")
    entries = e2e.run("mngr transcript fix --json", comment="and now for a program").json()
    expect({entry["role"] for entry in entries}).to_contain("user", "assistant", "tool")
    expect(entries[-1]["text"]).to_equal("It is the cookie.")
    lines = e2e.run("mngr transcript fix --jsonl", comment="line by line").stdout.splitlines()
    expect(f"[{','.join(lines)}]").to_be_json(entries)
    schema = e2e.run("mngr transcript --schema", comment="what is in an entry?").json()
    for entry in entries:
        expect(set(entry) <= set(schema["properties"]) and set(schema["required"]) <= set(entry)).to_equal(True)


def test_the_conversation_as_it_goes(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Follow the conversation as it goes, until Ctrl-C.
        mngr transcript fix --follow
    """)
    e2e.run("mngr create fix claude --headless --no-connect -m 'SAY: hello' && mngr wait fix", comment="an agent")
    terminal = e2e.spawn("mngr transcript fix --follow", comment="listen to it", name="follow")
    terminal.wait_for_text("SAY: hello")
    e2e.run("mngr message fix -m 'SAY: good night'", comment="say something to it")
    terminal.wait_for_text(re.compile(r"user\s+SAY: good night(.|\s)*assistant\s+good night"))
    terminal.press("C-c")
    expect(terminal.wait_for_exit()).to_equal(130)
    expect(agents.texts()).to_equal(["SAY: hello", "SAY: good night"])


def test_a_clone_knows_what_was_said_and_done(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A second opinion from the same point: the clone takes the conversation over, and the uncommitted work with it.
        mngr clone fix fix-b --no-connect
        mngr message fix-b -m 'Try it without a new dependency'
    """)
    agents.script = Script([{"when": "without a new dependency", "recall": "Safari"}])
    e2e.run("mngr create fix claude --no-connect -m 'Mend it for Safari' && mngr wait fix", comment="the first opinion")
    e2e.run("mngr exec fix -- 'echo half done >plan.txt'", comment="which is not committed yet")
    expect(e2e.run("mngr clone fix fix-b --no-connect", comment="the second")).to_succeed()
    e2e.run("mngr message fix-b -m 'Try it without a new dependency'", comment="goes another way")
    e2e.run("mngr wait fix-b")
    expect(e2e.run("mngr transcript fix-b --tail 1", comment="and knows the task")).to_contain("Mend it for Safari")
    expect(e2e.run("mngr exec fix-b -- cat plan.txt").stdout).to_equal("half done\n")
    expect(e2e.run("mngr transcript fix", comment="the first heard nothing of it")).not_.to_contain("dependency")
    expect(agent(e2e, "fix-b")["branch"]).to_equal("mngr/fix-b")


def test_after_a_stop_the_conversation_goes_on(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # After stop and start, or a reboot, the conversation goes on where it was.
        mngr stop fix
        mngr start fix
        mngr message fix -m 'Where were we?'
    """)
    agents.script = Script([{"when": "Where were we", "recall": "Safari"}])
    e2e.run("mngr create fix claude --no-connect -m 'Mend it for Safari' && mngr wait fix", comment="an agent")
    e2e.run("mngr stop fix", comment="the evening comes")
    expect(agent(e2e, "fix")["state"]).to_equal("stopped")
    e2e.run("mngr start fix", comment="and the morning")
    expect(e2e.run("mngr message fix -m 'Where were we?'")).to_succeed()
    e2e.run("mngr wait fix")
    expect(e2e.run("mngr transcript fix --tail 1", comment="it remembers")).to_contain("Mend it for Safari")
    expect(len({entry["conversation"] for entry in agents.requests() if entry["tools"]})).to_equal(1)


def test_the_login_is_linked_on_this_machine(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # On this machine an agent uses your login through a link. On another host it has none, unless you have it copied there.
        mngr create fix@local claude --copy-credentials -m 'Hello'
    """)
    login = e2e.home / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.write_text("{}")
    e2e.run("mngr create fix@local claude --copy-credentials -m 'Hello'", comment="an agent with my login")
    e2e.run("mngr wait fix")
    expect(agents.texts()).to_equal(["Hello"])
    found = e2e.run("mngr exec fix -- 'readlink $CLAUDE_CONFIG_DIR/.credentials.json'", comment="it is a link")
    expect(found.stdout).to_equal(f"{login}\n")
    expect(agent(e2e, "fix")["host"]).to_equal("local")


def test_create_means_claude(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Tired of naming the type? With this setting create means claude. A plain program then has to be called a command.
        mngr config set type claude
        mngr create fix -m 'The login fails on Safari'
        mngr create build command -- sleep 1000
    """)
    e2e.run("mngr config set type claude", comment="from now on")
    e2e.run("mngr create fix -m 'The login fails on Safari'", comment="this is Claude Code")
    e2e.run("mngr create build command -- sleep 1000", comment="and this is not")
    e2e.run("mngr wait fix")
    expect({each: agent(e2e, each)["type"] for each in ("fix", "build")}).to_equal(
        {"fix": "claude", "build": "command"}
    )
    expect(agents.texts()).to_equal(["The login fails on Safari"])
