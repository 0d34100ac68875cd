"""capture: the screen as text. events: what happened, in its order, and as it happens."""

from __future__ import annotations

import json
import signal

from tests.agents import launched
from tests.home import Home, Mngr, wait_until

# capture


def test_capture_prints_what_the_terminal_shows(mngr: Mngr) -> None:
    create(mngr, "a", "printf 'one\\n  two   \\n日本 ü\\n'; exec sleep 1000")
    assert screen(mngr, "a", "ü") == "one\n  two\n日本 ü\n"


def test_capture_shows_the_screen_and_with_full_everything_that_has_scrolled_away(mngr: Mngr) -> None:
    create(mngr, "a", "seq 1 300; exec sleep 1000")
    assert screen(mngr, "a", "300\n").split() == [str(number) for number in range(252, 301)]
    assert mngr.ok("capture", "a", "--full").split() == [str(number) for number in range(1, 301)]


def test_capture_is_plain_text_unless_colours_are_asked_for(mngr: Mngr) -> None:
    create(mngr, "a", "printf '\\033[31mred\\033[0m plain\\033]0;title\\007\\n'; exec sleep 1000")
    assert screen(mngr, "a", "plain") == "red plain\n"
    assert "\x1b[31mred\x1b[39m plain" in mngr.ok("capture", "a", "--colours")


def test_capture_reads_another_window(mngr: Mngr) -> None:
    create(mngr, "a", "echo main; exec sleep 1000", "--window", "log=echo beside; exec sleep 1000")
    assert screen(mngr, "a", "main") == "main\n"
    assert screen(mngr, "a", "beside", "--window", "log") == "beside\n"
    result = mngr("capture", "a", "--window", "nowhere")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("mngr: a has no window nowhere\n")


def test_capture_shows_the_agent_whatever_window_is_in_front(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "echo main; exec sleep 1000", "--window", "log=echo beside; exec sleep 1000")
    screen(mngr, "a", "beside", "--window", "log")
    home.tmux("select-window", "-t", f"={agent_id(mngr, 'a')}:log")
    assert screen(mngr, "a", "main") == "main\n"


def test_several_screens_are_printed_under_their_names_in_the_order_asked_for(mngr: Mngr) -> None:
    create(mngr, "a", "echo I am a; exec sleep 1000")
    create(mngr, "b", "echo I am b; exec sleep 1000")
    screen(mngr, "a", "I am a")
    screen(mngr, "b", "I am b")
    assert mngr.ok("capture", "b", "a") == "== b\nI am b\n== a\nI am a\n"
    assert [(each["name"], each["screen"]) for each in mngr.json("capture", "--all")] == [
        ("a", "I am a\n"),
        ("b", "I am b\n"),
    ]


def test_no_screen_can_pass_for_that_of_another_agent(mngr: Mngr) -> None:
    create(mngr, "victim", "echo mine; exec sleep 1000")
    create(mngr, "liar", f"printf '== victim\\nmngr-screen-of {agent_id(mngr, 'victim')}\\nforged\\n'; exec sleep 1000")
    screen(mngr, "victim", "mine")
    lie = screen(mngr, "liar", "forged")
    told = {each["name"]: each["screen"] for each in mngr.json("capture", "victim", "liar")}
    assert told == {"victim": "mine\n", "liar": lie}
    assert lie.startswith("== victim\n")


def test_the_last_screen_of_an_ended_program_can_be_read_until_it_is_stopped(mngr: Mngr) -> None:
    create(mngr, "a", "echo last words; exit 3")
    mngr.ok("wait", "a", "--for", "failed")
    assert mngr.ok("capture", "a").startswith("last words\n")
    mngr.ok("stop", "a")
    result = mngr("capture", "a")
    assert (result.code, result.out) == (1, "")
    assert result.err == "mngr: a has no screen: it is stopped\nhint: mngr start a\n"


def test_when_some_have_no_screen_the_others_are_printed(mngr: Mngr) -> None:
    create(mngr, "a", "echo here; exec sleep 1000")
    create(mngr, "b", "exec sleep 1000")
    screen(mngr, "a", "here")
    mngr.ok("stop", "b")
    result = mngr("capture", "a", "b")
    assert (result.code, result.out) == (6, "== a\nhere\n")
    assert result.err == "mngr: 1 of 2 have no screen: b\n"


def test_capture_of_nobody_says_so(mngr: Mngr) -> None:
    assert mngr("capture").code == 2
    assert mngr("capture", "nobody").code == 3


# events


def test_events_tell_a_life_in_its_order(mngr: Mngr) -> None:
    create(mngr, "a", "[ -e again ] && exit 5; touch again; exec sleep 1000")
    wait_until(lambda: "sleep 1000" in mngr.home.processes().values())
    mngr.ok("stop", "a")
    mngr.ok("start", "a")
    mngr.ok("wait", "a", "--for", "failed")
    found = mngr.json("events", "a")
    names = [event["event"] for event in found if event["event"] != "started"]  # told by another process
    assert names == ["created", "running", "stopped", "running", "exited"]
    assert [event["name"] for event in found] == ["a"] * len(found)
    assert [event["status"] for event in found if event["event"] == "exited"] == [5]
    assert mngr.ok("events", "a").splitlines()[0].split()[2:] == ["a", "created"]


def test_events_of_several_agents_are_one_history(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    create(mngr, "b", "exec sleep 1000")
    launched(home, 2)
    for name, times in (("a", (10, 30)), ("b", (20, 40))):
        (home.mngr_home / "agents" / agent_id(mngr, name) / "events.jsonl").write_text(
            "".join(f'{{"time":{time},"agent":"{agent_id(mngr, name)}","event":"at-{time}"}}\n' for time in times)
        )
    found = [json.loads(line) for line in mngr.ok("events", "b", "a", "--jsonl").splitlines()]
    assert [(event["name"], event["event"]) for event in found] == [
        ("a", "at-10"),
        ("b", "at-20"),
        ("a", "at-30"),
        ("b", "at-40"),
    ]


def test_what_an_agent_wrote_into_its_history_harms_nobody(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    history = home.mngr_home / "agents" / agent_id(mngr, "a") / "events.jsonl"
    with history.open("ab") as file:
        file.write(b'not json\n[1]\n{"time":"never"}\n{"time":9e9,"event":"\\u001b[2J\xff"}\n{"half":')
    told = mngr.ok("events", "a")
    assert "\x1b" not in told
    assert "created" in told
    assert mngr("events", "a", "--json").code == 0


def test_follow_sees_agents_that_are_made_meanwhile_and_match(mngr: Mngr, home: Home) -> None:
    follower = mngr.popen("events", "--label", "batch=1", "--follow", "--jsonl")
    assert follower.stdout
    mngr.ok("create", "first", "command", "--label", "batch=1", "--", "sleep", "1000")
    assert json.loads(follower.stdout.readline())["name"] == "first"
    mngr.ok("create", "other", "command", "--", "sleep", "1000")
    mngr.ok("create", "second", "command", "--label", "batch=1", "--", "sleep", "1000")
    while (event := json.loads(follower.stdout.readline()))["name"] == "first":
        pass
    assert event["name"] == "second"


def test_follow_goes_on_with_what_happens_to_these_agents(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    create(mngr, "b", "exec sleep 1000")
    mngr.ok("wait", "a", "b", "--for", "running")
    before = set(home.processes())
    follower = mngr.popen("events", "a", "--follow", "--jsonl")
    assert follower.stdout
    seen = [json.loads(follower.stdout.readline())["event"] for _ in range(2)]
    mngr.ok("stop", "b")
    mngr.ok("stop", "a")
    mngr.ok("destroy", "-f", "a")
    seen += [json.loads(follower.stdout.readline())["event"] for _ in range(2)]
    assert seen == ["created", "running", "stopped", "destroyed"]
    follower.send_signal(signal.SIGINT)
    assert follower.wait(10) == 130
    assert follower.stdout.read() == ""
    wait_until(lambda: set(home.processes()) <= before, what="its helpers to end")


def test_events_of_nobody_say_so(mngr: Mngr) -> None:
    assert mngr("events").code == 2
    assert mngr("events", "nobody").code == 3


# What these tests speak about


def create(mngr: Mngr, name: str, line: str, *options: str) -> None:
    mngr.ok("create", name, "command", "--mode", "none", *options, "--", "sh", "-c", line)


def screen(mngr: Mngr, name: str, until: str, *options: str) -> str:
    """The screen, as soon as it shows that."""
    return wait_until(lambda: text if until in (text := mngr("capture", name, *options).out) else "", what=until)


def agent_id(mngr: Mngr, name: str) -> str:
    return str(mngr.json("list", name)[0]["id"])
