"""Many commands at once, as scripts and people start them: one winner where there can be one, nothing lost, nothing
half done, and never a state that was not there."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mngr.errors import EXIT_CODES
from mngr.model import STATES, Agent
from tests.agents import branches, entries, worktrees
from tests.home import Home, Mngr, Result, wait_until

SLEEP = ["command", "--", "sleep", "1000"]


def at_once(mngr: Mngr, lines: list[list[str]]) -> list[Result]:
    """All of them started before the first one is waited for; none may end in a traceback."""
    started = [mngr.popen(*words, stdin=subprocess.DEVNULL) for words in lines]
    results = []
    for process, words in zip(started, lines, strict=True):
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err, f"{words}\n{err}"
        assert process.returncode in EXIT_CODES, f"{words}: {process.returncode}\n{err}"
        results.append(Result(process.returncode, out, err))
    return results


@contextmanager
def watching(mngr: Mngr, check: Callable[[dict[str, object]], None]) -> Iterator[None]:
    """Meanwhile `list --json` runs without a pause, and every agent in every answer is checked."""
    end = threading.Event()
    wrong: list[str] = []
    answers = 0

    def work() -> None:
        nonlocal answers
        while not end.is_set() and not wrong:
            result = mngr("list", "--json")
            try:
                assert result.code == 0, result.err
                assert result.err == ""
                for item in json.loads(result.out):
                    check(item)
            except (AssertionError, ValueError) as error:
                wrong.append(f"{error}\n{result.out}")
            answers += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    assert wrong == []
    assert answers > 1, "nobody watched"


def is_whole(item: dict[str, object]) -> None:
    assert item["damage"] is None
    assert item["state"] in STATES
    assert item.keys() >= Agent.FIELDS.keys()


def nothing_is_left_of(home: Home, names: list[str]) -> None:
    """No directory, work dir, worktree, branch, session or name but those of these agents."""
    assert entries(home.mngr_home / "names") == sorted(names)
    assert len(list((home.mngr_home / "agents").iterdir())) == len(names)
    assert len(list((home.mngr_home / "work").iterdir())) == len(names)
    assert len(worktrees(home)) == 1 + len(names)
    assert sorted(branches(home)) == sorted(["main", *(f"mngr/{name}" for name in names)])


def states(mngr: Mngr) -> Counter[str]:
    return Counter(item["state"] for item in mngr.json("list"))


def test_creating_one_name_many_times_gives_one_agent_and_leaves_nothing_of_the_losers(
    mngr: Mngr, repo: Path, home: Home
) -> None:
    results = at_once(mngr, [["create", "foo", *SLEEP]] * 8)
    assert Counter(result.code for result in results) == {0: 1, 1: 7}
    for result in results:
        if result.code:
            problem, hint = result.err.splitlines()
            assert problem in (
                "mngr: there is already an agent called foo",
                f"mngr: branch mngr/foo exists already in {repo}",
            )
            assert hint.startswith("hint: ")
    nothing_is_left_of(home, ["foo"])
    assert states(mngr) == {"running": 1}


def test_agents_that_are_being_created_are_never_seen_half_done(mngr: Mngr, repo: Path, home: Home) -> None:
    names = [f"foo-{number}" for number in range(12)]

    def check(item: dict[str, object]) -> None:
        is_whole(item)
        assert item["state"] in ("starting", "running"), item

    with watching(mngr, check):
        results = at_once(mngr, [["create", name, *SLEEP] for name in names])
    assert [result.err for result in results if result.code] == []
    assert states(mngr) == {"running": 12}
    nothing_is_left_of(home, names)


def test_many_first_creates_start_one_server(mngr: Mngr, home: Home) -> None:
    (home.cwd / "work").mkdir()
    results = at_once(mngr, [["create", f"foo-{n}", "--mode", "none", "--from", "./work", *SLEEP] for n in range(8)])
    assert [result.err for result in results if result.code] == []
    servers = [line for line in home.processes().values() if line.startswith("tmux") and "start-server" in line]
    assert len(servers) == 1, home.processes()
    assert len(home.tmux("list-sessions").splitlines()) == 8
    assert states(mngr) == {"running": 8}


def test_parallel_batches_do_not_get_in_each_others_way(mngr: Mngr, repo: Path, home: Home) -> None:
    """Four creates of five agents each, in one repository: git has locks of its own."""
    lines = [["create", name, "-n", "5", *SLEEP] for name in ("a", "b", "c", "d")]
    results = at_once(mngr, lines)
    assert [result.err for result in results if result.code] == []
    assert states(mngr) == {"running": 20}
    nothing_is_left_of(home, [f"{name}-{number}" for name in ("a", "b", "c", "d") for number in range(1, 6)])


def test_verbs_on_the_same_agents_at_once_leave_them_whole(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "-n", "3", *SLEEP)
    names = [f"foo-{number}" for number in range(1, 4)]
    lines = [[verb, *names] for verb in ("stop", "start", "stop", "start")]
    lines += [[verb, name] for name in names for verb in ("stop", "start", "explain")]
    lines += [["message", *names, "-m", "hello"], ["capture", *names], ["gc"]]
    with watching(mngr, is_whole):
        results = at_once(mngr, lines)
    assert {result.code for result in results} <= {0, 1, 6}
    assert set(states(mngr)) <= {"running", "stopped"}
    mngr.ok("start", *names)
    assert states(mngr) == {"running": 3}
    mngr.ok("stop", *names)
    assert states(mngr) == {"stopped": 3}


def test_many_starts_of_one_agent_run_its_program_once(mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo", "command", "--", "sleep", "1234")
    mngr.ok("stop", "foo")
    results = at_once(mngr, [["start", "foo"]] * 8)
    assert Counter(result.out for result in results) == {"started foo\n": 1, "running foo\n": 7}
    wait_until(lambda: "sleep 1234" in home.processes().values())
    lines = list(home.processes().values())
    assert (lines.count("sleep 1234"), sum("/launch agent" in line for line in lines)) == (1, 1)


def test_destroying_at_once_destroys_each_agent_and_leaves_nothing(mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo", "-n", "4", *SLEEP)
    names = [f"foo-{number}" for number in range(1, 5)]
    lines = [["destroy", "-f", name] for name in names] * 2 + [["destroy", "-f", *names], ["stop", *names]]
    with watching(mngr, lambda item: None):
        results = at_once(mngr, lines)
    assert {result.code for result in results} <= {0, 1, 3, 6}
    assert mngr.json("list") == []
    nothing_is_left_of(home, [])


def test_labels_put_on_at_once_are_all_there(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", *SLEEP)
    with watching(mngr, is_whole):
        results = at_once(mngr, [["label", "foo", f"k{number}={number}"] for number in range(12)])
    assert [result.err for result in results if result.code] == []
    (item,) = mngr.json("list")
    assert item["labels"] == {f"k{number}": str(number) for number in range(12)}


def test_of_many_that_want_one_new_name_one_gets_it(mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo", "-n", "6", *SLEEP)
    results = at_once(mngr, [["rename", f"foo-{number}", "bar"] for number in range(1, 7)])
    assert Counter(result.code for result in results) == {0: 1, 1: 5}
    assert all("there is already an agent called bar" in result.err for result in results if result.code)
    listed = sorted(item["name"] for item in mngr.json("list"))
    names = entries(home.mngr_home / "names")
    assert listed == names
    assert listed.count("bar") == 1
    assert len(listed) == 6


def test_renaming_and_labelling_at_once_loses_neither(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", *SLEEP)
    lines = [["label", "foo", f"k{number}={number}"] for number in range(4)] + [["rename", "foo", "bar"]]
    results = at_once(mngr, lines)
    (item,) = mngr.json("list")
    labelled = [number for number in range(4) if results[number].code == 0]
    assert item["labels"] == {f"k{number}": str(number) for number in labelled}
    assert item["name"] == "bar"


@pytest.mark.parametrize("verb", ["stop", "destroy -f"])
def test_a_create_that_is_met_by_an_end_leaves_a_clear_state(mngr: Mngr, repo: Path, home: Home, verb: str) -> None:
    """Whoever comes first: afterwards the agent runs, is stopped, or is gone with everything that was its own."""
    names = [f"foo-{number}" for number in range(4)]
    lines = [["create", name, *SLEEP] for name in names]
    lines += [[*verb.split(), name] for name in names for _ in range(3)]
    results = at_once(mngr, lines)
    assert {result.code for result in results} <= {0, 1, 3}
    listed = mngr.json("list")
    assert {item["state"] for item in listed} <= {"running", "stopped"}
    nothing_is_left_of(home, [item["name"] for item in listed])


def test_pulls_of_one_agent_at_once_all_bring_it(mngr: Mngr, home: Home, repo: Path) -> None:
    (made,) = mngr.json("create", "a", "--mode", "clone", *SLEEP)
    for number in range(3):
        home.run("git", "commit", "-q", "--allow-empty", "-m", f"Work {number}", cwd=Path(made["work_dir"]))
        results = at_once(mngr, [["pull", "a"]] * 4)
        assert [result.code for result in results] == [0] * 4, results
        assert home.run("git", "log", "-1", "--format=%s", "mngr/a") == f"Work {number}\n"


@pytest.mark.parametrize("mode", ["copy", "worktree"])
def test_restores_of_one_agent_at_once_leave_its_work_as_it_was(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    plain = home.root / "plain"
    plain.mkdir()
    (plain / "file").touch()
    source = plain if mode == "copy" else repo
    (made,) = mngr.json("create", "a", "--mode", mode, "--from", str(source), *SLEEP)
    mngr.ok("stop", "a")
    work = Path(made["work_dir"])
    mngr.ok("snapshot", "create", "a", "good")
    before = entries(work)
    (work / "bad").touch()
    results = at_once(mngr, [["snapshot", "restore", "a", "good"]] * 4)
    assert [result.code for result in results] == [0] * 4, results
    assert entries(work) == before
    assert entries(work.parent) == [work.name]
