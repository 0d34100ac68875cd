"""SEEING WHAT THEY DO of tutorial.sh."""

from __future__ import annotations

import json
import re

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession, expect


def test_who_works_and_who_is_done(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Who works, who wants me, who is done? ls is the same verb.
        mngr list
        mngr ls 'try-*'
    """)
    e2e.run("mngr create try --count 2 -- sleep 1000", comment="two that work")
    e2e.run("mngr create tests --no-connect -- true && mngr wait tests", comment="and one that is done")
    listed = e2e.run("mngr list", comment="all of them").stdout
    expect(listed).to_match("^try-1 +running ").to_match("^try-2 +running ").to_match("^tests +done ")
    expect(e2e.run("mngr ls 'try-*'", comment="some of them")).to_contain("try-1", "try-2").not_.to_contain("tests")


def test_who_wants_me(e2e: E2eSession, agents: ModelServer) -> None:
    """A coding agent that is through with its task waits for the next one."""
    e2e.write_tutorial_block("""
        # Who works, who wants me, who is done? ls is the same verb.
        mngr list
        mngr ls 'try-*'
    """)
    e2e.write_tutorial_block("""
        # Only those that interest you now: filters can be joined, and a list of states means any of them.
        mngr list --state waiting,failed
        mngr list --type command --host local --label batch=1
        mngr list --all
    """)
    e2e.run("mngr create try-1 claude --headless --no-connect -m 'SAY: done' && mngr wait try-1", comment="a task")
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="somebody at work")
    expect(e2e.run("mngr ls 'try-*'", comment="how is it?").stdout).to_match("^try-1 +waiting")
    wanting = e2e.run("mngr list --state waiting,failed", comment="who wants me?")
    expect(wanting).to_contain("try-1").not_.to_contain("build")
    others = e2e.run("mngr list --names --type command", comment="and who is no coding agent?")
    expect(others.stdout).to_equal("build\n")


def test_a_pattern_that_means_nobody(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Who works, who wants me, who is done? ls is the same verb.
        mngr list
        mngr ls 'try-*'
    """)
    expect(e2e.run("mngr list", comment="there is nobody yet")).to_succeed().to_contain("mngr create")
    expect(e2e.run("mngr ls 'try-*'", comment="and nobody of that name")).to_have_exit_code(3).to_contain("try-*")


def test_commits_changed_files_and_labels(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Has it done anything yet? --git counts the commits and changed files of each, --labels shows what you called them.
        mngr list --git --labels
    """)
    line = "git commit -q --allow-empty -m One; git commit -q --allow-empty -m Two; echo more >>README.md"
    e2e.run(f"mngr create busy --no-connect -l task=speed -- '{line}' && mngr wait busy", comment="one that works")
    e2e.run("mngr create idle --no-connect -- sleep 1000", comment="and one that does not")
    listed = e2e.run("mngr list --git --labels", comment="has it done anything?").stdout
    expect(listed).to_match("AHEAD +CHANGED +LABELS$").to_match(r"^busy .* 2 +1 +task=speed$").to_match(
        r"^idle .* 0 +0 *$"
    )


def test_the_list_in_a_corner_of_the_screen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Keep the list in a corner of the screen: it is drawn again whenever something happens, until Ctrl-C.
        mngr list --watch
    """)
    terminal = e2e.spawn("mngr list --watch", comment="keep an eye on them", name="list")
    terminal.wait_for_text("no agents yet")
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="somebody comes")
    terminal.wait_for_text(re.compile("build +running")).wait_for_no_text("no agents yet")
    e2e.run("mngr stop build", comment="and stops")
    terminal.wait_for_text("stopped").wait_for_no_text("running")
    terminal.press("C-c")
    expect(terminal.wait_for_exit()).to_equal(130)


def test_only_those_that_interest_you(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Only those that interest you now: filters can be joined, and a list of states means any of them.
        mngr list --state waiting,failed
        mngr list --type command --host local --label batch=1
        mngr list --all
    """)
    e2e.run("mngr create try --count 2 --label batch=1 -- sleep 1000", comment="a group")
    e2e.run("mngr create broken --no-connect -- false; mngr wait broken", comment="and one that has failed")
    result = e2e.run("mngr list --state waiting,failed", comment="those that want me")
    expect(result).to_contain("broken").not_.to_contain("try")
    result = e2e.run("mngr list --type command --host local --label batch=1", comment="a group")
    expect(result).to_contain("try-1", "try-2").not_.to_contain("broken")
    expect(e2e.run("mngr list --all", comment="all")).to_contain("try-1", "try-2", "broken")


def test_a_state_that_there_is_not(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Only those that interest you now: filters can be joined, and a list of states means any of them.
        mngr list --state waiting,failed
        mngr list --type command --host local --label batch=1
        mngr list --all
    """)
    result = e2e.run("mngr list --state waiting,broken", comment="a word that is no state")
    expect(result).to_have_exit_code(2).to_contain("broken", "failed")


def test_over_its_shoulder(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Look over an agent's shoulder without attaching. --full has what scrolled away too, --colours keeps it pretty.
        mngr capture build
        mngr capture build --full
        mngr capture build --colours
    """)
    e2e.run(
        r"""mngr create build --no-connect -- 'seq -f "step %.0f." 100; printf "\033[32mgreen\033[m\n"; sleep 1000'""",
        comment="a program that says much, and ends with something green",
    )
    screen = e2e.run("mngr capture build", comment="what is there to see?")
    expect(screen).to_eventually_contain("step 100.", "green").not_.to_contain("step 1.", "\033")
    expect(e2e.run("mngr capture build --full", comment="and before?").stdout).to_contain("step 1.", "step 100.")
    expect(e2e.run("mngr capture build --colours", comment="in colours").stdout).to_contain("\033[32mgreen")


def test_a_stopped_agent_has_no_screen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Look over an agent's shoulder without attaching. --full has what scrolled away too, --colours keeps it pretty.
        mngr capture build
        mngr capture build --full
        mngr capture build --colours
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000 && mngr stop build", comment="stopped")
    expect(e2e.run("mngr capture build", comment="nothing to see")).to_have_exit_code(1).to_contain("mngr start build")


def test_all_screens_at_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What do they all show at this moment? Several screens are read at once, and printed under their names.
        mngr capture --all
        mngr capture --state running --type command --host local
        mngr capture --label batch=1 --json
    """)
    say = "echo I am $MNGR_AGENT_NAME; sleep 1000"
    e2e.run(f"mngr create try --count 2 --label batch=1 -- '{say}'", comment="a group")
    e2e.run("mngr create tests --no-connect -- echo fine && mngr wait tests", comment="and one that has ended")
    everybody = e2e.run("mngr capture --all", comment="what do they show?")
    expect(everybody).to_eventually_contain("== tests\nfine", "== try-1\nI am try-1", "== try-2\nI am try-2")
    running = e2e.run("mngr capture --state running --type command --host local", comment="those that run")
    expect(running).to_contain("== try-1\nI am try-1", "== try-2\nI am try-2").not_.to_contain("tests")
    group = e2e.run("mngr capture --label batch=1 --json", comment="a group, for a script")
    expect({each["name"]: each["screen"] for each in group.json()}).to_equal(
        {"try-1": "I am try-1\n", "try-2": "I am try-2\n"}
    )


def test_further_windows(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent may have further windows, for a server or a log beside the work. They are captured by their names.
        mngr create web --window server='python3 -m http.server 0' --window log='tail -f README.md' -- sleep 1000
        mngr capture web --window log
    """)
    result = e2e.run(
        "mngr create web --window server='python3 -m http.server 0' --window log='tail -f README.md' -- sleep 1000",
        comment="with a server and a log",
    )
    expect(result).to_succeed()
    expect(e2e.run("mngr capture web --window log", comment="the log")).to_eventually_contain("# Sample")
    expect(e2e.run("mngr capture web --window server", comment="the server")).to_eventually_contain("Serving HTTP")
    expect(e2e.run("mngr capture web --window tests", comment="what there is not")).to_have_exit_code(1)


def test_everything_is_on_record(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # When did that happen? Everything that became of an agent is on record.
        mngr events build
        mngr events --all --json
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="it is made")
    e2e.run("mngr stop build && mngr start build", comment="stopped and started again")
    e2e.run("mngr create other --no-connect -- true && mngr wait other", comment="another one has ended")
    told = e2e.run("mngr events build", comment="what became of it?")
    expect(told).to_match("build  created(.|\n)*build  stopped(.|\n)*build  started").not_.to_contain("other")
    events = e2e.run("mngr events --all --json", comment="and of all?").json()
    expect({(event["name"], event["event"]) for event in events}).to_contain(
        ("build", "created"), ("build", "stopped"), ("other", "created"), ("other", "exited")
    )


def test_what_happens_is_followed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What has happened, and then what happens while you look on, until Ctrl-C.
        mngr events --label batch=1 --type command --host local --follow
    """)
    e2e.run("mngr create try --count 2 --label batch=1 -- sleep 1000", comment="a group")
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="and another one")
    terminal = e2e.spawn(
        "mngr events --label batch=1 --type command --host local --follow", comment="follow the group", name="events"
    )
    terminal.wait_for_text("try-1  created").wait_for_text("try-2  created")
    e2e.run("mngr stop other && mngr stop try-2", comment="something happens")
    terminal.wait_for_text("try-2  stopped")
    expect(terminal).not_.to_contain("other", "try-1  stopped")
    terminal.press("C-c")
    expect(terminal.wait_for_exit()).to_equal(130)


def test_a_stream_for_a_script(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A stream of JSON lines is what a script of yours would read.
        mngr events --state running,waiting --follow --jsonl
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="one that runs")
    e2e.run("mngr events --state running,waiting --follow --jsonl >events &", comment="a script listens")
    expect(e2e.dir / "events").to_eventually_contain('"running"')
    e2e.run("mngr stop build", comment="something happens")
    expect(e2e.dir / "events").to_eventually_contain('"stopped"')
    events = [json.loads(line) for line in (e2e.dir / "events").read_text().splitlines()]
    expect([event["event"] for event in events]).to_contain("created", "running", "stopped")
    expect({event["name"] for event in events}).to_equal({"build"})


def test_what_a_state_rests_on(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The list says one word; explain says what that word rests on.
        mngr explain build
        mngr explain build --json
    """)
    e2e.run("mngr create build --no-connect -- 'echo no such table; exit 3'; mngr wait build", comment="it has failed")
    expect(e2e.run("mngr explain build", comment="why?")).to_contain("failed (exit 3)", "no such table")
    expect(e2e.run("mngr explain build --json", comment="for a script")).to_be_json(
        {"name": "build", "state": "failed", "exit_code": 3, "evidence": {"pane": ..., ...: ...}, ...: ...}
    )


def test_there_is_nothing_to_explain_of_nobody(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The list says one word; explain says what that word rests on.
        mngr explain build
        mngr explain build --json
    """)
    expect(e2e.run("mngr explain build", comment="there is none")).to_have_exit_code(3)
