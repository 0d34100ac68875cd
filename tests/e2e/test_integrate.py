"""mngr integrate: the work of many branches as one. Without agents, on a small project with real tests."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.home import Home, Mngr, Result, wait_until
from tests.shelf import (
    BASE,
    BIGGEST,
    BROKEN_TOTAL,
    MEAN,
    OTHER_MEAN,
    SMALLEST,
    Files,
    Shelf,
    directory,
    test_of,
)

TEST_BIGGEST: Files = {"tests/test_biggest.py": test_of("biggest", "[1, 2]", "2")}
TEST_SMALLEST: Files = {"tests/test_smallest.py": test_of("smallest", "[1, 2]", "1")}


@pytest.fixture
def shelf(home: Home) -> Shelf:
    home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    return Shelf(home)


def integrate(mngr: Mngr, *words: str, code: int = 0, into: str = "review", **how: Any) -> dict[str, Any]:
    """The report of one that ends with that code."""
    result = mngr("integrate", *words, "--into", into, "--json", **how)
    assert result.code == code, f"{result.code}\n{result.out}\n{result.err}"
    report: dict[str, Any] = json.loads(result.out)
    return report


def refused(result: Result, code: int = 2) -> str:
    """What is said in the end: a line, and at most a hint."""
    assert result.code == code, result
    lines = result.err.splitlines()
    last = max(place for place, line in enumerate(lines) if line.startswith("mngr: "))
    assert [line.partition(":")[0] for line in lines[last + 1 :]] in ([], ["hint"]), result.err
    return "\n".join(lines[last:])


# What is in the branch


def test_fixes_become_commits_and_everything_else_becomes_one(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Test the total of none", {"tests/test_none.py": "A = 1\n"}))
    shelf.branch("two", ("Mend smallest", SMALLEST), ("Say more", {"README.md": "# Shelf\n\nOf books.\n"}))
    report = integrate(mngr, "one", "two", "--no-verify")
    assert report["tip"] == shelf.git("rev-parse", "review")
    assert shelf.subjects("review") == ["Tests and docs of 2 branches", "Mend biggest", "Mend smallest"]
    assert shelf.paths("review~2") == ["README.md", "tests/test_none.py"]
    assert shelf.paths("review~1") == shelf.paths("review") == ["shelf.py"]
    assert shelf.git("rev-parse", "review~3") == shelf.base


def test_a_fix_that_two_branches_made_is_one_commit_that_names_both(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.branch("two", ("The biggest is the biggest", BIGGEST))
    report = integrate(mngr, "one", "two", "--no-verify")
    assert shelf.subjects("review") == ["Mend biggest"]
    assert "Also-fixed-by: two" in shelf.message("review")
    assert report["counts"]["duplicates"] == 1


def test_what_a_branch_undoes_takes_nothing_from_others_and_is_told(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Rather not", {"shelf.py": BASE["shelf.py"]}))
    shelf.branch("two", ("Biggest gave the smallest", BIGGEST))
    report = integrate(mngr, "one", "two", "--no-verify")
    assert shelf.subjects("review") == ["Biggest gave the smallest"]
    did, undid = (each["commit"][:10] for each in report["ignored"])
    assert [each["why"] for each in report["ignored"]] == [
        f"undone on its own branch, by {undid}",
        f"undoes {did} of its own branch",
    ]
    assert "Rather not" in (directory(report) / "receipt.txt").read_text()


def test_a_mixed_commit_is_split(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", {**BIGGEST, "README.md": "# The shelf\n"}))
    integrate(mngr, "one", "--no-verify")
    assert [shelf.paths("review~1"), shelf.paths("review")] == [["README.md"], ["shelf.py"]]


def test_what_conflicts_is_left_out_and_told_with_the_way_to_go_on(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("A mean of any number\n\nKind: implementation", MEAN))
    shelf.branch("two", ("A mean of nothing", OTHER_MEAN))
    report = integrate(mngr, "one", "two", "--no-verify", code=6)
    (left,) = report["left"]
    (subject,) = shelf.subjects("review")
    assert {subject, left["subject"]} == {"A mean of any number", "A mean of nothing"}
    assert left["paths"] == ["shelf.py"]
    assert "len(prices)" in left["hunks"][0]["ours"] + left["hunks"][0]["theirs"]
    assert left["commit"] in left["by_hand"]
    # That work dir has just this conflict; what is committed there is taken.
    work = Path(left["work_dir"])
    shelf.home.run("git", "checkout", "-q", "--theirs", "shelf.py", cwd=work)
    text = (work / "shelf.py").read_text().replace("/ len(prices)", "/ max(len(prices), 1)")
    (work / "shelf.py").write_text(text.replace("/ (len(prices) or 1)", "/ max(len(prices), 1)"))
    shelf.home.run("git", "commit", "-q", "-a", "-m", "Both", cwd=work)
    solved = integrate(mngr, "one", "two", "--no-verify", "--resume")
    assert "/ max(len(prices), 1)" in shelf.show("review", "shelf.py")
    assert (solved["counts"]["left"], solved["counts"]["fixes"]) == (0, 2)
    assert not work.exists()


def test_the_base_may_have_gone_on_since(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    later = shelf.commit("Later", {"LICENSE": "yours\n"})
    integrate(mngr, "one", "--no-verify")
    assert shelf.git("rev-parse", "review~1") == later
    assert integrate(mngr, "one", "--base", shelf.base, "--no-verify", into="old")["base"] == shelf.base


# Verification


def test_a_test_travels_with_the_fix_that_it_needs_and_what_breaks_one_is_set_aside(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Test biggest", TEST_BIGGEST), ("Mend biggest", BIGGEST))
    shelf.branch("two", ("Mend smallest", SMALLEST), ("Test smallest", TEST_SMALLEST), ("Say more", {"MORE.md": "a\n"}))
    shelf.branch("three", ("Count the total", BROKEN_TOTAL))
    report = integrate(mngr, "one", "two", "three", "--workers", "1", code=6)
    (aside,) = report["aside"]
    assert (aside["subject"], aside["test"]) == ("Count the total", "tests/test_total.py::test_total")
    assert report["verified"] is True
    assert not (directory(report) / "checkouts").exists()
    commits = dict(zip(shelf.subjects("review"), shelf.commits("review"), strict=True))
    assert next(iter(commits)) == "Say more"
    assert "Count the total" not in commits
    assert shelf.paths(commits["Mend biggest"]) == ["shelf.py", "tests/test_biggest.py"]
    assert shelf.paths(commits["Mend smallest"]) == ["shelf.py", "tests/test_smallest.py"]
    # So that it can be reverted, and everything else is still green.
    shelf.git("checkout", "-q", "--detach", "review")
    shelf.git("revert", "--no-edit", commits["Mend biggest"])
    shelf.home.run("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_a_red_base_throws_nothing_away(mngr: Mngr, shelf: Shelf) -> None:
    shelf.commit("A test that fails", {"tests/test_mean.py": test_of("mean", "[1, 2, 3]", "2")})
    shelf.branch("one", ("Mend biggest", BIGGEST))
    report = integrate(mngr, "one")
    assert report["red_at_base"] == ["tests/test_mean.py::test_mean"]
    assert shelf.subjects("review") == ["Mend biggest"]


def test_another_command_can_decide_in_place_of_pytest(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.branch("two", ("Count the total", BROKEN_TOTAL))
    check = "python3 -c 'from shelf import total; assert total([1, 2]) == 3'"
    report = integrate(mngr, "one", "two", "--check", check, code=6)
    assert [each["subject"] for each in report["aside"]] == ["Count the total"]


def test_a_command_that_fails_on_the_base_is_refused(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    told = refused(mngr("integrate", "one", "--into", "review", "--check", "no-such-thing"), code=1)
    assert told.startswith("mngr: no-such-thing fails on the base: ")
    assert "hint: a check must pass there" in told


def test_where_no_test_was_run_nothing_is_said_to_be_verified(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    result = mngr("integrate", "one", "--into", "review", "--", "-k", "nothing")
    assert result.out.splitlines()[0].endswith("; not verified: no test was run"), result.out


def test_a_test_that_is_gone_is_named_with_the_change_that_removed_it(mngr: Mngr, shelf: Shelf) -> None:
    """And one that is only hidden is a reason to set something aside."""
    hides = "def pytest_collection_modifyitems(items):\n    items[:] = []\n"
    shelf.branch("hides", ("Hide all tests", {"tests/conftest.py": hides}))
    shelf.branch("removes", ("Remove a test", {"tests/test_total.py": "def test_other():\n    pass\n"}))
    hidden = mngr("integrate", "hides", "--into", "hidden")
    assert hidden.code == 6, hidden
    assert "\nset aside (1)\n  Hide all tests (hides): it breaks tests/test_total.py::" in hidden.out
    removed = mngr("integrate", "removes", "--into", "review")
    assert removed.code == 0, removed
    assert "\nno longer there (1)\n  tests/test_total.py::" in removed.out
    assert ", Remove a test\n" in removed.out


def test_without_verification_no_test_is_run(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Count the total", BROKEN_TOTAL))
    report = integrate(mngr, "one", "--no-verify", "--pytest", "touch ran; false", "--setup", "touch ran")
    assert report["verified"] is False
    assert not list(shelf.home.root.rglob("ran"))
    assert "Verified-by" not in shelf.message("review")


# Again


def test_the_same_inputs_give_the_same_commits(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", {**BIGGEST, **TEST_BIGGEST}))
    shelf.branch("two", ("Mend smallest", SMALLEST), ("Say more", {"MORE.md": "more\n"}))
    check = ("--check", "python3 -c 'import shelf'")
    first = integrate(mngr, "one", "two", *check)
    assert integrate(mngr, "one", "two", *check, into="other")["tip"] == first["tip"]
    assert integrate(mngr, "one", "two", *check, "--reintegrate")["tip"] == first["tip"]


def test_an_edited_rank_file_decides_until_it_is_edited_again(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.branch("two", ("Mend smallest", SMALLEST))
    report = integrate(mngr, "one", "two", "--no-verify")
    before = shelf.subjects("review")
    rank = directory(report) / "rank"
    lines = [line for line in rank.read_text().splitlines() if line.startswith("pick")]
    rank.write_text("\n".join(reversed(lines)) + "\n")
    assert "--reintegrate" in refused(mngr("integrate", "one", "two", "--into", "review", "--no-verify"), 1)
    integrate(mngr, "one", "two", "--no-verify", "--reintegrate")
    assert shelf.subjects("review") == before[::-1]
    shelf.branch("three", ("Mend mean", MEAN))
    integrate(mngr, "one", "two", "three", "--no-verify", "--reintegrate")
    assert shelf.subjects("review") == [*before[::-1], "Mend mean"]
    rank.write_text(rank.read_text().replace(lines[0].partition("  ")[0], lines[0].replace("pick", "drop")[:17]))
    report = integrate(mngr, "one", "two", "three", "--no-verify", "--reintegrate")
    assert [each["subject"] for each in report["dropped"]] == [before[0]]
    assert shelf.subjects("review") == [before[1], "Mend mean"]


def test_a_rank_file_of_ones_own_counts_and_must_name_what_there_is(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.branch("two", ("Mend smallest", SMALLEST))
    plan = integrate(mngr, "one", "two", "--dry-run")
    names = [step["name"] for step in plan["steps"]]
    mine = shelf.home.root / "order"
    mine.write_text(f"pick {names[1]}\npick {names[0]}\n")
    report = integrate(mngr, "one", "two", "--no-verify", "--rank-file", str(mine))
    assert [step["name"] for step in report["steps"]] == names[::-1]
    mine.write_text("pick 123456789abc\n")
    again = ("integrate", "one", "two", "--into", "x", "--no-verify", "--rank-file", str(mine))
    assert "123456789abc" in refused(mngr(*again))
    assert "cannot read" in refused(mngr(*again[:-1], "/nowhere/order"))


def test_what_is_dropped_stays_out_of_the_next_one_too(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Say more", {"MORE.md": "more\n"}))
    shelf.branch("two", ("Mend smallest", SMALLEST))
    plan = integrate(mngr, "one", "two", "--dry-run")
    names = {step["subject"]: step["picks"][0]["name"] for step in plan["steps"]}
    drop = ["--drop", names["Say more"], "--drop", names["Mend smallest"]]
    report = integrate(mngr, "one", "two", "--no-verify", *drop)
    assert shelf.subjects("review") == ["Mend biggest"]
    assert sorted(each["subject"] for each in report["dropped"]) == ["Mend smallest", "Say more"]
    again = integrate(mngr, "one", "two", "--no-verify", "--reintegrate")
    assert again["tip"] == report["tip"]
    assert "no change is called nothing" in refused(mngr("integrate", "one", "--into", "x", "--drop", "nothing"))


def test_when_everything_is_dropped_the_branch_is_told_to_be_as_it_was(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    report = integrate(mngr, "one", "--no-verify")
    name = report["steps"][0]["name"]
    result = mngr("integrate", "one", "--into", "review", "--no-verify", "--reintegrate", "--drop", name)
    assert result.code == 6
    assert f"The branch review is as it was before, at {report['tip'][:10]}: nothing is left" in result.out
    assert "git branch -D review" in result.out
    assert list((directory(report) / "patches").iterdir()) == []
    assert shelf.git("rev-parse", "review") == report["tip"]


def test_what_is_dropped_leaves_the_order_to_the_rule(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Say more", {"MORE.md": "more\n"}))
    plan = integrate(mngr, "one", "--dry-run")
    integrate(mngr, "one", "--no-verify", "--drop", plan["steps"][0]["picks"][0]["name"])
    shelf.branch("two", ("Mend smallest\n\nImportance: critical", SMALLEST))
    report = integrate(mngr, "one", "two", "--no-verify", "--reintegrate")
    assert shelf.subjects("review") == ["Mend smallest", "Mend biggest"]
    assert [each["subject"] for each in report["dropped"]] == ["Say more"]


def test_a_late_branch_is_added_and_tests_that_were_run_are_not_run_again(mngr: Mngr, shelf: Shelf) -> None:
    runs = shelf.home.root / "runs"
    shelf.branch("one", ("Mend biggest", BIGGEST))
    check = f"echo run >>{runs}"
    report = integrate(mngr, "one", "--check", check)
    count = len(runs.read_text().splitlines())
    integrate(mngr, "one", "--check", check, "--reintegrate")
    assert len(runs.read_text().splitlines()) == count
    shelf.branch("two", ("Mend mean", MEAN))
    late = integrate(mngr, "one", "two", "--check", check, "--reintegrate")
    assert shelf.subjects("review") == ["Mend biggest", "Mend mean"]
    assert shelf.git("rev-parse", "review~1") == report["tip"]
    assert late["counts"]["fixes"] == 2


# What a user's repository sees


def test_the_repository_has_one_more_branch_and_is_otherwise_as_it_was(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", {**BIGGEST, **TEST_BIGGEST}))
    (shelf.top / "shelf.py").write_text("being written\n")
    (shelf.top / "new").write_text("not known to git\n")
    shelf.git("add", "new")
    before = shelf.state()
    integrate(mngr, "one", "--dry-run", into="plan")
    assert shelf.state() == before
    assert refused(mngr("integrate", "one", "--into", "broken", "--pytest", "no-such-program"), 1)
    assert shelf.state() == before
    report = integrate(mngr, "one")
    after = shelf.state()
    assert after.pop("refs") == "\n".join(
        sorted([*before.pop("refs").splitlines(), f"refs/heads/review {report['tip']}"])
    )
    assert after == before


@pytest.mark.parametrize("killed_at", ["began", "ranked", "said", "check", "publishing"])
def test_one_that_is_killed_changes_nothing_and_the_next_one_makes_the_same(
    mngr: Mngr, shelf: Shelf, killed_at: str
) -> None:
    shelf.branch("one", ("Mend biggest", {**BIGGEST, **TEST_BIGGEST}))
    shelf.branch("two", ("Mend smallest", SMALLEST))
    words = ("integrate", "one", "two", "--into", "review", "--check")
    started, gate = shelf.home.root / "started", shelf.home.root / "gate"
    os.mkfifo(gate)
    before = shelf.state()
    process = mngr.popen(*words, f"test -e {started} || {{ touch {started}; cat {gate}; }}")
    place = shelf.home.mngr_home / "integrations"
    if killed_at == "publishing":
        wait_until(started.exists)
        gate.write_text("")  # it goes on
    wait_until(lambda: killed_at in events(place) or (killed_at == "check" and started.exists()))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    after = shelf.state()
    if killed_at != "publishing":  # there it may have come so far
        assert after == before
    check = f"test -e {started} || touch {started}"
    report = integrate(mngr, "one", "two", "--check", check, "--resume")
    assert report["tip"] == integrate(mngr, "one", "two", "--check", check, into="other")["tip"]
    assert not (directory(report) / "repo.git").exists()


def events(place: Path) -> list[str]:
    found = []
    for log in place.glob("*/log.jsonl"):
        for line in log.read_text().splitlines():
            try:
                found.append(json.loads(line)["event"])
            except ValueError:
                continue
    return found


def test_ctrl_c_leaves_the_log_and_says_how_to_go_on(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    gate = shelf.home.root / "gate"
    os.mkfifo(gate)
    before = shelf.state()
    process = mngr.popen("integrate", "one", "--into", "review", "--check", f"echo >{gate}; cat {gate}")
    gate.read_text()  # it is at the check
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--resume" in said.splitlines()[-1]
    assert shelf.state() == before
    (place,) = (shelf.home.mngr_home / "integrations").iterdir()
    assert not {"repo.git", "attributes", "checkouts"} & {path.name for path in place.iterdir()}


def test_one_whose_terminal_is_closed_leaves_no_checkouts(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    gate = shelf.home.root / "gate"
    os.mkfifo(gate)
    process = mngr.popen("integrate", "one", "--into", "review", "--check", f"echo >{gate}; cat {gate}")
    gate.read_text()  # it is at the check
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 129
    (place,) = (shelf.home.mngr_home / "integrations").iterdir()
    assert not {"repo.git", "attributes", "checkouts"} & {path.name for path in place.iterdir()}


def test_gc_clears_away_what_one_that_was_killed_has_left(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    place = directory(integrate(mngr, "one", "--no-verify"))
    (place / "repo.git" / "objects").mkdir(parents=True)
    (place / "checkouts" / "0").mkdir(parents=True)
    with open(place / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "integration" not in mngr("gc").out
    assert f"would remove {place}: integration that was killed" in mngr("gc", "--dry-run").out
    assert (place / "checkouts" / "0").exists()
    assert f"removed {place}" in mngr("gc").out
    assert not (place / "repo.git").exists()
    assert not (place / "checkouts").exists()
    assert (place / "report.json").exists()


def test_two_at_a_time_into_the_same_branch_are_refused(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    report = integrate(mngr, "one", "--no-verify")
    with open(directory(report) / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = refused(mngr("integrate", "one", "--into", "review", "--no-verify", "--reintegrate"), 1)
    assert "another integration is at it" in said


def test_a_branch_that_somebody_has_changed_is_not_overwritten(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    integrate(mngr, "one", "--no-verify")
    shelf.git("branch", "-f", "review", "main")
    said = refused(mngr("integrate", "one", "--into", "review", "--no-verify", "--reintegrate"), 1)
    assert "somebody has changed it since" in said
    assert shelf.git("rev-parse", "review") == shelf.base


# What is said


def test_the_plan_is_a_table_with_names_and_reasons(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Say more", {"MORE.md": "more\n"}))
    shelf.branch("two", ("Mend biggest too", BIGGEST))
    result = mngr("integrate", "one", "two", "--into", "review", "--dry-run")
    assert result.code == 0
    head, first, *rest = result.out.splitlines()
    assert head.split() == ["RANK", "NAME", "KIND", "SUBJECT", "WHY"]
    assert first.split()[2:5] == ["implementation", "Mend", "biggest"]
    assert "made 2 times" in first
    assert any("docs: Say more (one)" in line for line in rest)
    assert rest[-1].startswith("review: 2 commits on ")
    assert not (shelf.home.mngr_home / "integrations").exists()


def test_the_end_tells_the_branch_what_is_not_in_it_and_what_to_do_next(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend \x1b[31mmean", MEAN))
    shelf.branch("two", ("Another mean", OTHER_MEAN))
    result = mngr("integrate", "one", "two", "--into", "review", "--no-verify")
    assert result.code == 6
    assert "review: 1 commit on " in result.out
    assert "left out (1)" in result.out
    assert "pull-request.md" in result.out
    assert "mngr integrate one two --into review --no-verify --reintegrate" in result.out
    assert "\x1b" not in result.out


def test_the_words_for_doing_it_again_do_the_same(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    words = ("--setup", "", "--pytest", "false --x", "--test-timeout", "1m", "--env", "A=b c", "--no-verify")
    result = mngr("integrate", "one", "--into", "review", *words, "--json", "--", "-k", "not slow")
    report = json.loads(result.out)
    again = report["again"]
    assert again == (
        "mngr integrate one --into review --no-verify --setup '' --pytest 'false --x' --test-timeout 60s"
        ' --env "A=$A" --reintegrate'
        " -- -k 'not slow'"
    )
    assert mngr(*shlex.split(again)[1:]).code == 0
    assert again in (directory(report) / "pull-request.md").read_text()


def test_all_work_trees_of_a_repository_know_of_the_same_integration(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    integrate(mngr, "one", "--no-verify")
    linked = shelf.home.root / "linked"
    shelf.git("worktree", "add", "-q", "--detach", str(linked))
    shelf.home.cwd = linked
    integrate(mngr, "one", "--no-verify", "--reintegrate")


def test_a_clone_that_lacks_something_says_how_to_get_it(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Mend it more", SMALLEST))
    shelf.commit("Later", {"LICENSE": "yours\n"})
    shelf.git("config", "uploadpack.allowFilter", "true")
    words = ("integrate", "origin/one", "--into", "review", "--no-verify")
    for how, told, mended in (
        (["--depth=1", "--no-single-branch"], "shallow clone", "git fetch --unshallow"),
        (["--filter=blob:none", "--no-checkout"], "is a partial clone", "git fetch --refetch --no-filter origin"),
    ):
        clone = shelf.home.root / how[0]
        shelf.git("clone", "-q", *how, f"file://{shelf.top}", str(clone))
        shelf.home.cwd = clone
        said = refused(mngr(*words), 1)
        assert told in said
        assert mended in said
        shelf.git("-C", str(clone), *mended.split()[1:])
        assert mngr(*words).code == 0


def test_everything_for_a_pull_request_is_there(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST), ("Say more", {"MORE.md": "more\n"}))
    report = integrate(mngr, "one", "--no-verify")
    place = directory(report)
    assert json.loads((place / "report.json").read_text())["tip"] == report["tip"]
    assert "Mend biggest" in (place / "pull-request.md").read_text()
    assert (place / "title").read_text().strip()
    assert "one" in (place / "receipt.txt").read_text()
    patches = sorted((place / "patches").iterdir())
    shelf.git("checkout", "-q", "-b", "by-mail", shelf.base)
    shelf.git("am", "-q", "-k", "--keep-cr", *map(str, patches))
    assert shelf.git("rev-parse", "by-mail^{tree}") == shelf.git("rev-parse", "review^{tree}")


def test_it_is_pushed_and_a_push_that_fails_takes_nothing_away(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    remote = shelf.home.root / "remote.git"
    shelf.git("remote", "add", "origin", str(remote))
    result = mngr("integrate", "one", "--into", "review", "--no-verify", "--push")
    assert "origin cannot be reached" in refused(result, 1)
    assert shelf.subjects("review") == ["Mend biggest"]
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    report = integrate(mngr, "one", "--no-verify", "--push", "--reintegrate")
    assert report["pushed"]["remote"] == "origin"
    assert shelf.git("ls-remote", "origin", "review").split()[0] == report["tip"]
    shelf.branch("two", ("Mend smallest", SMALLEST))
    report = integrate(mngr, "two", "--no-verify", "--push", "--reintegrate")
    assert shelf.git("ls-remote", "origin", "review").split()[0] == report["tip"]


def test_what_cannot_be_pushed_is_refused_before_anything_is_made(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    words = ("integrate", "one", "--into", "review", "--no-verify")
    assert "has no remote" in refused(mngr(*words, "--push"), 1)
    assert "there is no remote fork" in refused(mngr(*words, "--push", "--remote", "fork"))
    assert "--remote needs --push or --pr" in refused(mngr(*words, "--remote", "fork"))
    assert not (shelf.home.mngr_home / "integrations").exists()


def test_that_there_is_nothing_to_push_is_told(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.home.run("git", "init", "-q", "--bare", "remote")
    shelf.git("remote", "add", "origin", str(shelf.home.path / "remote"))
    name = integrate(mngr, "one", "--no-verify", "--dry-run")["steps"][0]["name"]
    result = mngr("integrate", "one", "--into", "review", "--no-verify", "--drop", name, "--push")
    assert result.code == 6
    assert "nothing was pushed: nothing is left to make a branch of" in result.err
    assert "review: nothing to integrate" in result.out


def test_a_pull_request_is_opened_and_nobody_else_has_the_token(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    remote, seen = shelf.home.root / "remote.git", shelf.home.root / "seen"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    shelf.git("remote", "add", "origin", str(remote))
    gh = shelf.home.root / "bin" / "gh"
    gh.parent.mkdir()
    answers = '[ "$2" = list ] && echo "[]" || echo https://forge.example/pull/7'
    gh.write_text(f'#!/bin/sh\necho "gh $1 $2 $GH_TOKEN" >>{seen}\n{answers}\n')
    gh.chmod(0o755)
    env = {"PATH": f"{gh.parent}:{shelf.home.env['PATH']}", "GH_TOKEN": "s3cret"}
    report = integrate(mngr, "one", "--check", f'echo "check $GH_TOKEN" >>{seen}', "--pr", env=env)
    assert report["pushed"]["pull_request"] == "https://forge.example/pull/7"
    said = seen.read_text().splitlines()
    assert {"check ", "gh pr list s3cret", "gh pr create s3cret"} == set(said)
    assert "s3cret" not in "".join(path.read_text() for path in directory(report).iterdir() if path.is_file())


# What makes no sense


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--into", "x"], "needs BRANCH"),
        (["one"], "needs --into NEW"),
        (["on", "--into", "x"], "did you mean one?"),
        (["one", "--into", "bad..name"], "'bad..name' is not a name for a branch"),
        (["one", "--into", "-x"], "is not a name for a branch"),
        (["one", "--into", "HEAD"], "is not a name for a branch"),
        (["one", "--into", "@"], "is not a name for a branch"),
        (["one", "--into", "refs/heads/one"], "one cannot be integrated into itself"),
        (["one", "--into", "x", "--test-timeout", "0s"], "no test passes in no time"),
        (["one", "--into", "one/more"], "there can be no branch one/more beside one"),
        (["one", "--into", "one"], "one cannot be integrated into itself"),
        (["one", "--into", "x", "--base", "nothing"], "nothing is not a commit"),
        (["one", "--into", "x", "--check", "a", "--pytest", "b"], "--check and --pytest do not go together"),
        (["one", "--into", "x", "--rank-agent"], "which agent"),
        (["one", "--into", "x", "--copy", "/etc/passwd"], "--copy /etc/passwd is not within the project"),
        (["one", "--into", "x", "--copy", "../x"], "--copy ../x is not within the project"),
        (["one", "--into", "x", "--copy", "nothing"], "--copy nothing: there is none in"),
        (["one", "--into", "x", "--test-timeout", "soon"], "--test-timeout takes seconds"),
    ],
)
def test_words_that_make_no_sense_are_told_in_one_line(mngr: Mngr, shelf: Shelf, words: list[str], told: str) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    before = shelf.state()
    assert told in refused(mngr("integrate", *words))
    assert shelf.state() == before
    assert not (shelf.home.mngr_home / "integrations").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["one", "--into", "main"], "main is checked out"),
        (["one", "--into", "taken"], "there is a branch taken already, which is not what an integration has written"),
        (["same", "--into", "x"], "nothing to integrate: no branch has a change"),
        (["alien", "--into", "x"], "alien has no commit in common with the base"),
        (["one", "--into", "x", "--resume"], "there is no integration into x to go on with"),
    ],
)
def test_branches_that_make_no_sense_are_told_in_one_line(
    mngr: Mngr, shelf: Shelf, words: list[str], told: str
) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.git("branch", "same")
    shelf.git("branch", "taken")
    shelf.git("branch", "alien", shelf.git("commit-tree", "-m", "Elsewhere", f"{shelf.base}^{{tree}}"))
    assert told in refused(mngr("integrate", *words, "--no-verify"), 1)


def test_a_place_that_is_no_repository_or_has_no_commit_is_told(mngr: Mngr, home: Home) -> None:
    assert "is in no git repository" in refused(mngr("integrate", "one", "--into", "x"), 1)
    home.run("git", "init", "-q", "empty")
    home.cwd = home.path / "empty"
    assert "there is no commit in" in refused(mngr("integrate", "one", "--into", "x"), 1)


def test_a_place_that_cannot_be_written_to_is_told_and_nothing_has_changed(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    before = shelf.state()
    (shelf.home.mngr_home / "integrations").write_text("a file in the way\n")
    assert "integrations" in refused(mngr("integrate", "one", "--into", "x", "--no-verify"), 1)
    assert shelf.state() == before


def test_a_full_disk_is_told_with_the_place(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    place = directory(integrate(mngr, "one", "--no-verify"))
    (place / "title.new").symlink_to("/dev/full")
    said = refused(mngr("integrate", "one", "--into", "review", "--no-verify", "--reintegrate"), 1)
    assert said == f"mngr: {place}: No space left on device"


def test_the_base_itself_and_an_empty_branch_beside_others_do_no_harm(mngr: Mngr, shelf: Shelf) -> None:
    shelf.branch("one", ("Mend biggest", BIGGEST))
    shelf.git("branch", "empty")
    integrate(mngr, "empty", "main", "one", "--no-verify")
    assert shelf.show("review", "shelf.py") == BIGGEST["shelf.py"] != BASE["shelf.py"]
