"""usage: what agents have spent, from the logs of their program. The program here is one that only sleeps; its logs are
written by hand, as Claude Code writes them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.agents import directory, make
from tests.home import Home, Mngr

PAGE = Path(__file__).parents[2] / "docs" / "usage.md"
MODEL = "claude-sonnet-4-5-20250929"  # a million tokens: 3 USD in, 0.30 from the cache, 3.75 or 6 into it, 15 out


@pytest.fixture(autouse=True)
def _program(home: Home) -> None:
    program(home, "claude", '[ "$1" != --version ] || { echo "2.1.197 (Claude Code)"; exit; }\nexec sleep 1000\n')
    home.env["PATH"] = f"{home.root}/bin:{home.env['PATH']}"
    home.env["ANTHROPIC_API_KEY"] = "sk-ant-none"


def program(home: Home, name: str, text: str) -> None:
    path = home.root / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def create(mngr: Mngr, name: str, *options: str) -> Path:
    """An agent of type claude; gives the directory for the logs of a project."""
    (made,) = mngr.json("create", name, "claude", "--mode", "none", "--no-connect", *options)
    logs: Path = mngr.home.mngr_home / "agents" / made["id"] / "claude" / "projects" / "x"
    logs.mkdir(parents=True)
    return logs


def message(id: str, *, model: str = MODEL, time: str = "2026-11-15T13:19:06.051Z", **tokens: int) -> str:
    """Two lines, as the program writes a message with two blocks."""
    usage = {
        "input_tokens": tokens.get("input", 0),
        "cache_read_input_tokens": tokens.get("cache_read", 0),
        "cache_creation_input_tokens": tokens.get("short", 0) + tokens.get("long", 0),
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.get("short", 0),
            "ephemeral_1h_input_tokens": tokens.get("long", 0),
        },
        "output_tokens": tokens.get("output", 0),
    }
    content = [{"type": "text", "text": "hello"}]
    said = {"id": id, "model": model, "role": "assistant", "type": "message", "content": content, "usage": usage}
    return 2 * (json.dumps({"type": "assistant", "uuid": id, "timestamp": time, "message": said}) + "\n")


def messages(mngr: Mngr, *words: str) -> dict[str | None, int]:
    return {row["key"]: row["messages"] for row in mngr.json("usage", *words)["rows"]}


@pytest.fixture
def fix(mngr: Mngr) -> Path:
    logs = create(mngr, "fix")
    first = message("msg_1", input=1200, short=15000, output=350)
    (logs / "s.jsonl").write_text(first + message("msg_2", input=300, cache_read=15000, output=900))
    return logs


def test_the_page_shows_what_happens(mngr: Mngr, fix: Path) -> None:
    logs = create(mngr, "try-1")
    (logs / "s.jsonl").write_text(message("msg_3", input=500, long=8000, output=2000))
    mngr.ok("destroy", "-f", "try-1")
    page = PAGE.read_text()
    (table,) = re.findall(r"^```text\n\$ mngr usage\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert mngr.ok("usage") == table
    (shown,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    said = mngr.ok("usage", "try-1", "--json")
    assert re.sub(r'"id": "[0-9a-f]{12}"', '"id": "8c1f0e7b52aa"', said) == shown


def test_the_prices_on_the_page_are_such_that_mngr_takes_them(mngr: Mngr, home: Home) -> None:
    logs = create(mngr, "fix")
    n = 1_000_000
    spent = message("msg_1", model="claude-opus-4-5-mine", input=n, cache_read=n, short=n, long=n, output=n)
    (logs / "s.jsonl").write_text(spent)
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (home.mngr_home / "prices.toml").write_text(shown)
    assert mngr.json("usage")["total"]["cost"] == 5 + 25 + 0.5 + 6.25 + 10


def test_subagents_and_other_runs_of_the_program_count_for_the_agent(mngr: Mngr, fix: Path) -> None:
    (fix / "other.jsonl").write_text(message("msg_3", input=1))
    (fix / "session" / "subagents").mkdir(parents=True)
    (fix / "session" / "subagents" / "agent-1.jsonl").write_text(message("msg_4", input=1))
    assert messages(mngr) == {"fix": 4}


def test_a_clone_pays_for_what_it_adds(mngr: Mngr, fix: Path) -> None:
    mngr.ok("clone", "fix", "clone", "--no-connect")
    taken = directory(mngr, "clone") / "claude" / "projects" / "y" / "s.jsonl"
    taken.parent.mkdir(parents=True, exist_ok=True)
    taken.write_text((fix / "s.jsonl").read_text() + message("msg_3", input=1))
    assert messages(mngr) == {"fix": 2, "clone": 1}
    mngr.ok("destroy", "-f", "fix")
    assert messages(mngr) == {"fix": 2, "clone": 1}


def test_a_destroyed_agent_stays_in_the_sums(mngr: Mngr, fix: Path) -> None:
    """Even if nobody had ever asked."""
    create(mngr, "idle")
    mngr.ok("label", "fix", "run=7")
    mngr.ok("rename", "fix", "last")
    assert mngr.ok("destroy", "-f", "last", "idle").splitlines() == ["destroyed last", "destroyed idle"]
    assert not fix.exists()
    (row,) = mngr.json("usage")["rows"]
    assert (row["key"], row["destroyed"], row["messages"], row["input"]) == ("last", True, 2, 1500)
    assert messages(mngr, "--label", "run=7") == {"last": 2}
    fresh = create(mngr, "last")
    (fresh / "s.jsonl").write_text(message("msg_9", input=1))
    found = [(row["key"], row["destroyed"], row["messages"]) for row in mngr.json("usage", "last")["rows"]]
    assert found == [("last", True, 2), ("last", False, 1)]


def test_a_destroy_that_is_refused_leaves_the_agent_among_the_living(mngr: Mngr, repo: Path) -> None:
    (made,) = mngr.json("create", "fix", "claude", "--no-connect")
    logs = mngr.home.mngr_home / "agents" / made["id"] / "claude" / "projects" / "x"
    logs.mkdir(parents=True)
    (logs / "s.jsonl").write_text(message("msg_1", input=1))
    Path(made["work_dir"], "new.txt").write_text("unsaved")
    assert mngr("destroy", "fix", input="y\n").code == 1
    (row,) = mngr.json("usage")["rows"]
    assert (row["key"], row["destroyed"]) == ("fix", False)


def test_a_ledger_that_cannot_be_used_does_not_stop_a_destroy(mngr: Mngr, home: Home, fix: Path) -> None:
    (home.mngr_home / "usage.db").mkdir()
    result = mngr("destroy", "-f", "fix")
    assert (result.code, result.out) == (0, "destroyed fix\n")
    assert result.err.startswith("mngr: what these agents have spent since the last time is not known: ")
    assert result.err.count("\n") == 1


def test_agents_that_keep_no_log_need_no_ledger(mngr: Mngr, home: Home) -> None:
    make(mngr, "plain", "--mode", "none")
    mngr.ok("destroy", "-f", "plain")
    assert not (home.mngr_home / "usage.db").exists()
    assert mngr.ok("usage") == "nothing was spent\n"


def test_names_and_labels_are_those_of_now(mngr: Mngr, fix: Path) -> None:
    assert messages(mngr, "--by", "label:team") == {None: 2}
    mngr.ok("rename", "fix", "fixed")
    mngr.ok("label", "fixed", "team=red")
    assert messages(mngr) == {"fixed": 2}
    assert messages(mngr, "--by", "label:team") == {"red": 2}
    assert messages(mngr, "--by", "label") == {"team=red": 2}


def test_no_log_is_opened_when_nothing_has_changed(mngr: Mngr, home: Home, fix: Path) -> None:
    opened = home.root / "opened"
    for name in ("cat", "tail"):
        program(home, name, f'printf "%s\\n" "$@" >>{opened}\nPATH=${{PATH#*:}}\nexec {name} "$@"\n')
    assert messages(mngr) == {"fix": 2}
    assert "s.jsonl" in opened.read_text()
    opened.write_text("")
    assert messages(mngr) == {"fix": 2}
    assert "jsonl" not in opened.read_text()
    with (fix / "s.jsonl").open("a") as log:
        log.write(message("msg_3", input=1))
    assert messages(mngr) == {"fix": 3}
    assert "s.jsonl" in opened.read_text()


def test_several_at_once_agree(mngr: Mngr, home: Home, fix: Path) -> None:
    with (fix / "s.jsonl").open("a") as log:
        log.writelines(message(f"more_{n}", input=1) for n in range(500))
    started = [mngr.popen("usage", "--json") for _ in range(4)]
    said = [process.communicate(timeout=60) for process in started]
    assert {err for _, err in said} == {""}
    assert {json.loads(out)["total"]["messages"] for out, _ in said} == {502}
    assert sorted(path.name for path in home.mngr_home.glob("usage.db*")) == ["usage.db"]


def test_a_damaged_ledger_is_moved_aside_and_made_again_from_what_lives(mngr: Mngr, home: Home, fix: Path) -> None:
    assert messages(mngr) == {"fix": 2}
    ledger = home.mngr_home / "usage.db"
    ledger.write_bytes(os.urandom(5000))
    result = mngr("usage", "--json")
    assert (result.code, json.loads(result.out)["total"]["messages"]) == (0, 2)
    (aside,) = home.mngr_home.glob("usage.db.damaged-*")
    assert aside.stat().st_size == 5000
    assert result.err.count("\n") == 1
    assert f"{ledger} is damaged" in result.err
    assert str(aside) in result.err
    assert mngr("usage").err == ""


def test_a_mistake_in_the_own_prices_is_one_line(mngr: Mngr, home: Home) -> None:
    (home.mngr_home / "prices.toml").write_text('[models."x"]\ninput = "free"\n')
    result = mngr("usage")
    wrong = f"{home.mngr_home}/prices.toml:2: input must be a number: USD for a million tokens"
    assert (result.code, result.out, result.err) == (2, "", f"mngr: {wrong}\n")


def test_nothing_is_kept_of_the_script_that_reads(mngr: Mngr, home: Home, fix: Path) -> None:
    (row,) = mngr.json("usage")["rows"]
    assert os.listdir(home.mngr_home / "agents") == [row["id"]]
