"""A stranger's agent type: what docs/agent-types.md makes, as a package that pip installs, used through the real CLI.
Each step is tried with as much of the type as the page has shown by then."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mngr.agents import AgentType
from tests.agents import agent, branches, directory, entries, files, work_dir
from tests.e2e.test_docs import LOOKS, run, steady
from tests.home import Home, Mngr, wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "agent-types.md").read_text()
BLOCK = re.compile(r"^`([\w./]+)`(, continued)?\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUSY = "until [ -e go ]; do sleep 0.05; done"


def made_by(page: str) -> dict[str, str]:
    """The files of the page, path to text. Of a block that continues one, what is not indented goes to the head of the
    file, and the rest into the class."""
    found: dict[str, str] = {}
    for path, continued, block in BLOCK.findall(page):
        if not continued:
            found[path] = block
            continue
        head, members = re.split(r"^(?=    )", block, maxsplit=1, flags=re.MULTILINE)
        before, rest = found[path].split("\n\nclass ")
        body, instance = rest.split("\n\nPARROT = ")
        found[path] = f"{before}{head}\n\nclass {body}\n{members}\n\nPARROT = {instance}"
    return found


def lay(place: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """Where pip has put the package of the whole page."""
    home = Home()
    package, place = home.root / "mngr-parrot", home.root / "site"
    lay(package, made_by(PAGE))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    home.run(*pip, "--no-build-isolation", "--target", str(place), str(package))
    yield place
    home.remove()


@pytest.fixture(autouse=True)
def site(home: Home, repo: Path, installed: Path) -> Path:
    """The package in this test's own place, with the program in PATH and its user logged in."""
    place = home.root / "site"
    shutil.copytree(installed, place)
    lay(home.root / "bin", {"parrot": made_by(PAGE)["parrot"]})
    (home.root / "bin" / "parrot").chmod(0o755)
    lay(home.path / ".parrot", {"key": "polly\n"})
    home.env |= {"PYTHONPATH": str(place), "PATH": f"{home.root}/bin:{home.env['PATH']}"}
    return place


def steps() -> Iterator[tuple[str, list[str]]]:
    """The page up to the end of each step, and the examples of that step."""
    places = [found.start() for found in re.finditer("^## ", PAGE, re.MULTILINE)] + [len(PAGE)]
    for start, end in pairwise(places):
        sessions = re.findall(r"^```shellsession\n(.*?)^```$", PAGE[start:end], re.MULTILINE | re.DOTALL)
        yield PAGE[:end], [example for each in sessions for example in re.split(r"^\$ ", each, flags=re.MULTILINE)[1:]]


def state(mngr: Mngr, name: str) -> str:
    found = agent(mngr, name)
    return f"{found['state']} ({found['reason']})"


def becomes(mngr: Mngr, name: str, wanted: str) -> None:
    wait_until(lambda: state(mngr, name) == wanted, deadline=30, what=f"{name} to become {wanted}")


def at_rest(mngr: Mngr, name: str) -> str:
    mngr.ok("wait", name, "--for", "waiting", "--timeout", "20")
    return state(mngr, name)


def tell(mngr: Mngr, name: str, text: str) -> str:
    """The state in which the turn ends that this message begins."""
    assert mngr.ok("message", name, "-m", text) == f"delivered {name}\n"
    return at_rest(mngr, name)


def press(mngr: Mngr, name: str, *keys: str) -> None:
    """As somebody does who sits at its terminal."""
    mngr.home.tmux("send-keys", "-t", f"={agent(mngr, name)['id']}:", *keys)


def said(mngr: Mngr, name: str) -> list[str]:
    return [entry["text"] for entry in mngr.json("transcript", name, "--role", "assistant") if entry["text"]]


def test_every_member_of_the_contract_is_on_the_page() -> None:
    members = {name for name in [*vars(AgentType), *AgentType.__annotations__] if not name.startswith("_")}
    shown = {name for name in members if re.search(rf"^    (?:def )?{name}\b|`{name}`", PAGE, re.MULTILINE)}
    assert members - shown == {"preset", "variant_of"}  # which only the configuration sets


def test_the_examples_print_what_the_page_shows(home: Home, site: Path) -> None:
    tried = 0
    for page, examples in steps():
        lay(site, made_by(page))
        for example in examples:
            command, _, shown = example.partition("\n")
            told = run(home, command)
            deadline = time.monotonic() + 10
            while command.startswith(LOOKS) and steady(told) != steady(shown) and time.monotonic() < deadline:
                told = run(home, command)
            assert steady(told) == steady(shown), f"$ {command}\n{told}"
            tried += 1
    assert tried > 20


def test_what_cannot_run_is_refused_before_anything_is_made(mngr: Mngr, home: Home) -> None:
    def refused(*options: str) -> list[str]:
        result = mngr("create", "a", "parrot", *options)
        assert (result.code, result.out) == (2 if options else 1, "")
        assert [entries(home.mngr_home / path) for path in ("agents", "work", "names")] == [[], [], []]
        assert branches(home, "mngr/*") == []
        return result.err.splitlines()

    assert refused("--", "--resume", "x")[0].startswith("mngr: --resume is mngr's own business")
    program, key = home.root / "bin" / "parrot", home.path / ".parrot" / "key"
    key.unlink()
    assert refused() == ["mngr: parrot has no credentials", "hint: mkdir ~/.parrot; echo polly >~/.parrot/key"]
    program.write_text(program.read_text().replace("parrot 1.0", "parrot 0.9.9"))
    assert refused()[0] == "mngr: parrot is version 0.9.9, and must be 1.0 or newer"
    program.unlink()
    hint = "hint: save the program of docs/agent-types.md in your PATH"
    assert refused() == ["mngr: there is no program called parrot", hint]


def test_an_agent_has_a_home_of_its_own_and_the_users_login(mngr: Mngr, home: Home) -> None:
    theirs = home.path / ".parrot"
    mngr.ok("create", "a", "parrot", "--message", "hello")
    assert files(theirs) == {"key": "polly\n "}
    assert (directory(mngr, "a") / "parrot" / "key").readlink() == theirs / "key"


def test_hooks_tell_when_it_works_and_a_message_waits_for_the_end_of_the_turn(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot")
    assert at_rest(mngr, "a") == "waiting (ready)"
    assert tell(mngr, "a", f"! {BUSY}; echo done") == "waiting (permission: run)"
    press(mngr, "a", "y", "Enter")
    becomes(mngr, "a", "running ()")
    sending = mngr.popen("message", "a", "-m", "next")
    wait_until((directory(mngr, "a") / "message.lock").exists)
    assert "next" not in mngr.ok("capture", "a")
    (work_dir(mngr, "a") / "go").touch()
    assert sending.communicate(timeout=30) == ("delivered a\n", "")
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert said(mngr, "a") == ["done", "next"]


def test_the_hook_script_makes_of_events_what_the_table_says(mngr: Mngr) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ((?:running|waiting)(?: \(.*?\))?)", PAGE, re.MULTILINE)
    told = '{"tool_name":"TOOL","error":"rate_limit","last_assistant_message":"TEXT"}'
    tries = [
        f"""echo '{told}' | sh "$MNGR_AGENT_DIR/hook" {event}; cat "$MNGR_AGENT_DIR/state\"""" for event, _ in rows
    ]
    mngr.ok("create", "a", "parrot", "--message", f"! {'; '.join(tries)}")
    assert at_rest(mngr, "a") == "waiting (permission: run)"
    press(mngr, "a", "y", "Enter")
    becomes(mngr, "a", "waiting (turn over)")
    written = [
        re.sub(r" \d+ (.*)| \d+$", r" (\1)", line).replace(" ()", "") for line in said(mngr, "a")[-1].splitlines()
    ]
    assert dict(rows) == dict(zip((event for event, _ in rows), written, strict=True))
    assert len(rows) == 7


def test_a_parrot_that_the_agent_runs_is_not_taken_for_it(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot")
    nested = """echo '"inner"' | parrot --headless >told"""
    assert tell(mngr, "a", f"! {nested}; {BUSY}") == "waiting (permission: run)"
    press(mngr, "a", "y", "Enter")
    told = work_dir(mngr, "a") / "told"
    wait_until(lambda: told.exists() and "Polly: inner" in told.read_text())
    assert state(mngr, "a") == "running ()"
    assert len((directory(mngr, "a") / "received").read_text().splitlines()) == 2  # its start, and the one prompt
    (work_dir(mngr, "a") / "go").touch()
    becomes(mngr, "a", "waiting (turn over)")


def test_a_question_that_no_hook_tells_is_seen_on_the_screen(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot")
    at_rest(mngr, "a")
    mngr.ok("stop", "a")
    settings = directory(mngr, "a") / "parrot" / "settings.json"
    settings.write_text(settings.read_text().replace('"trusted"', '"doubted"'))
    mngr.ok("start", "a")
    assert at_rest(mngr, "a") == "waiting (dialog: trust)"
    assert "the last thing written is starting" in mngr.ok("explain", "a")
    screen = mngr.ok("capture", "a")
    blocked = mngr("message", "a", "-m", "hello")
    assert (blocked.code, blocked.out) == (7, "")
    assert blocked.err == "mngr: a: a dialog is in front of it (trust): mngr connect a\n"
    assert mngr.ok("capture", "a") == screen
    press(mngr, "a", "Enter")
    becomes(mngr, "a", "waiting (ready)")
    assert tell(mngr, "a", "hello") == "waiting (turn over)"


def test_the_users_own_rules_come_first(mngr: Mngr, home: Home) -> None:
    lay(home.mngr_home, {"screen/parrot.rules": "composer ^> ?(.*)\\s*\\Z\ndialog leave ^Run "})
    mngr.ok("create", "a", "parrot", "--message", "! true")
    assert at_rest(mngr, "a") == "waiting (permission: run)"
    assert "in front of it (leave)" in mngr("message", "a", "-m", "hello").err


def test_a_conversation_goes_on_from_a_clone_and_from_a_snapshot(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot", "--message", "plum")
    at_rest(mngr, "a")
    mngr.ok("snapshot", "create", "a", "s")
    (log,) = (directory(mngr, "a") / "parrot" / "sessions").iterdir()
    with log.open("a") as file:
        file.write('{"type": "assi')  # as it is when somebody looks in the middle of a write
    mngr.ok("clone", "a", "b")
    mngr.ok("destroy", "-f", "a")
    mngr.ok("create", "c", "--from", "s")
    for name in ("b", "c"):
        tell(mngr, name, "again")
        assert said(mngr, name) == ["plum", "plum"]


def test_the_transcript_has_what_was_run_and_counts_what_nobody_knows(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot", "--message", "! echo plum; false")
    at_rest(mngr, "a")
    press(mngr, "a", "y", "Enter")
    becomes(mngr, "a", "waiting (turn over)")
    _, call, result, answer = mngr.json("transcript", "a")
    assert (call["kind"], call["tool"], call["input"]) == ("tool_call", "run", {"command": "echo plum; false"})
    assert (result["kind"], result["text"], result["failed"], result["call"]) == (
        "tool_result",
        "plum\n",
        True,
        call["call"],
    )
    assert (answer["text"], answer["model"], answer["usage"]["output"]) == ("plum", "grey-1", 1)
    (log,) = (directory(mngr, "a") / "parrot" / "sessions").iterdir()
    with log.open("a") as file:
        file.write('{"type": "moult"}\n{"type": "assistant", "text": 1, "usage": [], "time": {}}\n')
    told = mngr("transcript", "a", "--tail", "1")
    assert (told.code, told.err) == (0, "mngr: 1 record of an unknown type was skipped: moult 1\n")


def test_what_was_spent_is_counted_once_and_outlives_the_agent(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot", "--message", "one two")
    at_rest(mngr, "a")
    mngr.ok("clone", "a", "b")
    tell(mngr, "b", "again")
    mngr.ok("destroy", "-f", "a", "b")
    spent = mngr.json("usage")
    rows = [(row["key"], row["messages"], row["input"], row["output"]) for row in spent["rows"]]
    assert rows == [("a", 1, 2, 2), ("b", 1, 1, 2)]


def test_lines_are_prompts_in_its_terminal_and_without_one_a_message_is_whole(mngr: Mngr) -> None:
    mngr.ok("create", "a", "parrot")
    mngr.ok("create", "b", "parrot", "--headless")
    for name in ("a", "b"):
        at_rest(mngr, name)
    mngr.popen("message", "a", "-m", "two\nlines")
    wait_until(lambda: said(mngr, "a") == ["two", "lines"])
    mngr.ok("message", "b", "-m", "two\nlines")
    assert at_rest(mngr, "b") == "waiting (turn over)"
    assert said(mngr, "b") == ["two\nlines"]
