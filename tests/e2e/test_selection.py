"""Selection: names, globs, `-`, labels, states and --all mean the same agents for every verb; nothing is never all; an
unknown name is exit code 3 with the nearest one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import SLEEP, directory
from tests.home import Mngr

# Every verb that takes a selection, with what else it needs; {} is where the selection goes.
OF_MANY = [
    "list {}",
    "stop {}",
    "start {}",
    "destroy -f {}",
    "message {} -m x",
    "exec {} -- true",
    "capture {}",
    "wait {}",
    "events {}",
    "label {} k=v",
    "pull {}",
    "push {}",
]
# Every verb that takes one agent.
OF_ONE = [
    "connect {}",
    "explain {}",
    "rename {} other",
    "clone {}",
    "clone {} other",
    "pull {}:README.md",
    "push README.md {}:x",
    "snapshot create {} x",
    "snapshot list {}",
    "snapshot restore {} x",
    "snapshot destroy {} x",
]


def line(verb: str, chosen: str) -> list[str]:
    return verb.replace("{}", chosen).split()


@pytest.fixture
def two(mngr: Mngr, repo: Path) -> Mngr:
    """Agents one-fish and two-fish."""
    mngr.ok("create", "one-fish", "command", *SLEEP)
    mngr.ok("create", "two-fish", "command", "--label", "n=2", *SLEEP)
    return mngr


def test_an_unknown_name_is_exit_code_3_with_the_nearest_for_every_verb(two: Mngr) -> None:
    two.ok("wait", "--all", "--for", "running", "--timeout", "20")
    before = two.ok("list", "--format", "{id} {name} {state} {labels}")
    for verb in OF_MANY + OF_ONE:
        result = two(*line(verb, "one-fihs"))
        assert (result.code, result.out) == (3, ""), verb
        assert result.err == "mngr: no agent called one-fihs\nhint: did you mean one-fish?\n", verb
    assert two.ok("list", "--format", "{id} {name} {state} {labels}") == before


def test_without_any_agents_an_unknown_name_is_exit_code_3_too(mngr: Mngr, repo: Path) -> None:
    for verb in OF_MANY + OF_ONE:
        result = mngr(*line(verb, "nobody"))
        assert (result.code, result.err.splitlines()[0]) == (3, "mngr: no agent called nobody"), verb


def test_what_cannot_be_a_name_is_no_agent(two: Mngr) -> None:
    for name in ("One-Fish", "../names/one-fish", "one-fish/", "x" * 64, "ünï", "@local", "one-fish@elsewhere"):
        for verb in ("stop", "explain", "list"):
            result = two(verb, name)
            assert result.code in (2, 3), (verb, name)
            assert result.err.startswith("mngr: ")
    assert [each["state"] in ("starting", "running") for each in two.json("list")] == [True, True]


@pytest.mark.parametrize("verb", [verb for verb in OF_MANY if not verb.startswith("list")])
def test_no_selection_is_never_all(mngr: Mngr, repo: Path, verb: str) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    result = mngr(*line(verb, ""))
    assert (result.code, result.out) == (2, "")
    assert result.err == "mngr: which agents?\nhint: give names, globs, --label, --state or --all\n"
    assert mngr.json("list")[0]["state"] in ("starting", "running")


def test_an_unknown_name_among_known_ones_stops_before_anything_is_done(two: Mngr) -> None:
    for verb in ("stop", "destroy -f"):
        assert two(*verb.split(), "one-fish", "nobody").code == 3
    assert {each["state"] for each in two.json("list")} <= {"starting", "running"}


# The ways to choose, seen through one verb: the code is the same for all.


@pytest.fixture
def fleet(mngr: Mngr, repo: Path) -> Mngr:
    """try-1, try-2 and try-10 run, with labels batch=1 and batch=2; ended is done."""
    mngr.ok("create", "try-1", "command", "--label", "batch=1", *SLEEP)
    mngr.ok("create", "try-2", "command", "--label", "batch=2", "--label", "x=y", *SLEEP)
    mngr.ok("create", "try-10", "command", "--label", "batch=2", *SLEEP)
    mngr.ok("create", "ended", "command", "--", "true")
    mngr.ok("wait", "ended", "--for", "done", "--timeout", "20")
    mngr.ok("wait", "try-*", "--for", "running", "--timeout", "20")
    return mngr


def test_every_way_to_choose_agents(fleet: Mngr) -> None:
    for words, chosen in {
        "try-1": "try-1",
        "try-2 try-1": "try-2 try-1",
        "try-1 try-1 try-1": "try-1",
        "try-?": "try-1 try-2",
        "try-*": "try-1 try-2 try-10",
        "*": "ended try-1 try-2 try-10",
        "try-[12]": "try-1 try-2",
        "try-2 try-*": "try-2 try-1 try-10",
        "try-1@local": "try-1",
        "--all": "ended try-1 try-2 try-10",
        "--state done": "ended",
        "--state done,running": "ended try-1 try-2 try-10",
        "--label batch=2": "try-2 try-10",
        "--label batch=2 --label x=y": "try-2",
        "--label batch=": "try-1 try-2 try-10",
        "--type command": "ended try-1 try-2 try-10",
        "--host local": "ended try-1 try-2 try-10",
        "try-* --label batch=2": "try-2 try-10",
        "--all --state done": "ended",
    }.items():
        assert [each["name"] for each in fleet.json("capture", *words.split())] == chosen.split(), words


def test_names_come_from_standard_input(fleet: Mngr) -> None:
    assert fleet.ok("label", "-", "m=1", input="try-1\n\n  try-2 ended\n").count("labelled") == 3
    assert fleet.ok("label", "try-10", "-", "m=1", input="try-1\n") == "labelled try-10\nlabelled try-1\n"
    names = fleet.ok("list", "--names", "--label", "batch=2")
    assert fleet.ok("stop", "-", input=names) == "stopped try-2\nstopped try-10\n"


def test_an_empty_standard_input_is_not_all_either(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    for verb in OF_MANY:
        result = mngr(*line(verb, "-"), input="\n")
        assert (result.code, result.err) == (0, "mngr: no names on standard input\n"), verb


def test_a_glob_that_matches_nothing_is_exit_code_3(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    for verb in OF_MANY:
        result = mngr(*line(verb, "x*"))
        assert (result.code, result.err) == (3, "mngr: no agent matches x*\nhint: see mngr list\n"), verb


def test_a_glob_for_a_verb_of_one_agent_must_mean_one(two: Mngr) -> None:
    assert two.ok("explain", "one-*").startswith("one-fish is ")
    result = two("explain", "*-fish")
    assert result.code == 2
    assert "*-fish means 2 agents: one-fish, two-fish" in result.err


def test_filters_that_match_nothing_do_nothing(two: Mngr) -> None:
    for verb in ("stop", "start", "destroy -f", "capture", "events", "label", "pull", "push"):
        mark = ["k=v"] if verb == "label" else []
        result = two(*verb.split(), "--state", "failed", *mark)
        assert (result.code, result.out) == (0, ""), verb
        assert result.err == ("" if verb == "events" else "mngr: no agent matches\n"), verb
    assert two.json("exec", "--state", "failed", "--", "true") == []


def test_all_and_names_exclude_each_other(two: Mngr) -> None:
    for verb in ("stop", "destroy -f", "list"):
        result = two(*verb.split(), "--all", "one-fish")
        assert (result.code, result.err) == (2, "mngr: --all and names exclude each other\n"), verb


def test_a_state_that_does_not_exist_is_refused_by_every_verb(mngr: Mngr, repo: Path) -> None:
    for verb in OF_MANY:
        result = mngr(*line(verb, "--state gone"))
        assert result.code == 2, verb
        assert "there is no state 'gone'" in result.err


def test_a_damaged_agent_is_chosen_by_name_only(two: Mngr) -> None:
    (directory(two, "two-fish") / "agent.json").write_text("{")
    result = two("stop", "--state", "unknown")
    assert result.code == 1
    assert "two-fish is damaged" in result.err
    assert two.ok("stop", "two-fish") == "stopped two-fish\n"
    assert two.ok("destroy", "-f", "two-fish").startswith("destroyed two-fish")
    assert two.ok("list", "--names") == "one-fish\n"
