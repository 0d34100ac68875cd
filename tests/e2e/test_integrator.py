"""Agents that solve conflicts and order fixes: replays and plain commands in the place of a model."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import mngr as api
from mngr.integrate.change import Source
from mngr.integrate.checking.outcomes import Outcome
from mngr.integrate.checking.suite import How, Suite
from mngr.integrate.solving import unsolved
from mngr.integrate.solving.conflict import PLACE, open_
from mngr.integrate.solving.errand import spent_in
from mngr.integrate.solving.integrator import Integrator, solve_all
from mngr.integrate.solving.reorder import ANSWER, rank
from mngr.integrate.solving.resolutions import key_of
from tests.agents import agent
from tests.clashes import Clash, git
from tests.home import Home, Mngr, wait_until

BASE = "def f():\n    return 1\n"
SOLVE = """\
cost 1000 100
say "I look at it."
run git status
write app.py <<END
def f():
    return 2 + 3
END
run git add -A
run git commit -q --no-edit
result <<END
{"resolved": true, "why": "both are added up"}
END
"""
GIVE_UP = """\
say "They contradict each other."
result <<END
{"resolved": false, "why": "no number is two numbers"}
END
"""


@pytest.fixture
def clash(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clash:
    """In the home of the test, in which agents of this very process live too."""
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    return Clash(
        home.root,
        {"app.py": BASE, "other.toml": "a = 1\n"},
        left={"app.py": "def f():\n    return 2\n"},
        right={"app.py": "def f():\n    return 3\n", "right.py": "right\n"},
    )


def replay(clash: Clash, text: str, **more: Any) -> Integrator:
    path = clash.directory.parent / "trajectory.sh"
    path.write_text(text)
    return Integrator(type="replay", args=[str(path)], **{"timeout": 60.0, "slug": "r1", **more})


def solve(clash: Clash, how: Integrator, suite: Suite | None = None, given_up: dict[str, str] | None = None) -> int:
    return solve_all(
        api.Fleet(),
        clash.scratch,
        clash.stack(),
        clash.sources,
        suite,
        how,
        clash.resolutions,
        str(clash.directory),
        clash.told.append,
        given_up,
    )


def name_of(clash: Clash) -> str:
    return f"r1-solve-{clash.left().group.name}"


def test_an_agent_solves_a_conflict(mngr: Mngr, clash: Clash) -> None:
    name, key = name_of(clash), key_of(clash.left().picked)
    assert solve(clash, replay(clash, SOLVE)) == 1
    stack = clash.stack()
    assert stack.left == []
    assert clash.content(stack.tree, "app.py") == b"def f():\n    return 2 + 3\n"
    assert clash.content(stack.tree, "right.py") == b"right\n"
    kept = clash.resolutions.get(key)
    assert kept is not None
    assert (kept.by, kept.why) == (name, "both are added up")
    assert mngr.json("list") == []
    assert os.listdir(clash.directory / PLACE) == []
    assert (clash.directory / "agents" / name / "transcript.jsonl").exists()
    count, used = spent_in(str(clash.directory / "agents"))
    assert (count, used.messages, used.tokens) == (1, 4, 4400)  # each message is 1,000 tokens in and 100 out


def test_it_is_told_both_sides(clash: Clash, home: Home) -> None:
    left, right = clash.sources
    task = home.root / "task"
    task.mkdir()
    said = {"kind": "message", "role": "assistant", "text": "Three it is."}
    (task / "transcript.jsonl").write_text(json.dumps({**said, "role": "user"}) + "\n" + json.dumps(said) + "\n")
    clash.sources[1] = right.replace(summary="I made it three.", directory=str(task))
    solve(clash, replay(clash, GIVE_UP, pytest="python3 -m pytest -q"))
    lines = (clash.directory / "agents" / name_of(clash) / "transcript.jsonl").read_text().splitlines()
    prompt = next(entry["text"] for line in lines if (entry := json.loads(line))["role"] == "user")
    assert "What right does (on right)" in prompt
    assert "What left does (on left)" in prompt
    assert "+    return 2\n" in prompt
    assert "+    return 3\n" in prompt
    assert "I made it three." in prompt
    assert "    Three it is." in prompt
    assert f"python3 -m pytest -q {right.test} {left.test}" in prompt


def test_a_plain_command_can_do_it_too(mngr: Mngr, clash: Clash) -> None:
    """It has the question in its environment; nothing is typed into it."""
    script = (
        'test "$MNGR_INPUT" && printf "def f():\\n    return 5\\n" >app.py && git add -A && git commit -q --no-edit && '
        'printf \'{"resolved": true, "why": "%s"}\' "$(git log -1 --format=%s)" >"$MNGR_RESULT"'
    )
    how = Integrator(type="command", args=[script], slug="r1", timeout=60.0)
    assert solve(clash, how) == 1
    assert clash.content(clash.stack().tree, "app.py") == b"def f():\n    return 5\n"
    assert mngr.json("list") == []


def test_an_answer_that_is_no_good_goes_back_once(mngr: Mngr, clash: Clash) -> None:
    careless = 'run git add -A\nrun git commit -q --no-edit\nresult <<END\n{"resolved": true, "why": "x"}\nEND\n'
    assert solve(clash, replay(clash, f"{careless}# turn\n{SOLVE.replace('--no-edit', '-m Again')}")) == 1
    assert clash.content(clash.stack().tree, "app.py") == b"def f():\n    return 2 + 3\n"
    assert any("conflict markers are left in app.py" in line for line in clash.told)


def test_who_gives_up_is_kept_and_not_asked_again(mngr: Mngr, clash: Clash) -> None:
    name, given_up = name_of(clash), dict[str, str]()
    how = replay(clash, GIVE_UP)
    assert solve(clash, how, given_up=given_up) == 0
    assert given_up == {clash.left().group.key: f"{name}: its agent says: no number is two numbers"}
    assert agent(mngr, name)["state"] == "stopped"
    assert agent(mngr, name)["labels"]["integration"] == "r1"
    assert (clash.directory / PLACE / clash.left().group.name / "app.py").exists()

    again = dict[str, str]()
    assert solve(clash, replay(clash, SOLVE), given_up=again) == 0
    assert f"mngr destroy {name}, and it is asked anew" in again[clash.left().group.key]
    mngr.ok("destroy", "-f", name)
    assert solve(clash, replay(clash, SOLVE)) == 1


ABORT = 'run git cherry-pick --abort\nresult <<END\n{"resolved": true, "why": ""}\nEND\n'


@pytest.mark.parametrize(
    ("trajectory", "why"),
    [
        ("fail 3\n", "its program failed: exit 3"),
        ('say "Done, I think."\n# turn\nsay "Really."\n', "it ended its turn without a result"),
        ('ask "Which one?"\n', "it waits for a person: question"),
        ("result <<END\n[1]\nEND\n# turn\nresult <<END\n{}\nEND\n", "its answer cannot be used"),
        (
            f"{ABORT}# turn\n{ABORT.partition('result')[1]}{ABORT.partition('result')[2]}",
            "nothing of the change is in it",
        ),
    ],
)
def test_who_does_not_answer_has_not_solved_it(clash: Clash, trajectory: str, why: str) -> None:
    given_up = dict[str, str]()
    assert solve(clash, replay(clash, trajectory), given_up=given_up) == 0
    assert why in given_up[clash.left().group.key]
    assert len(clash.stack().left) == 1


def test_who_takes_too_long_is_stopped(mngr: Mngr, clash: Clash) -> None:
    given_up = dict[str, str]()
    assert solve(clash, replay(clash, "hang\n", timeout=1.0), given_up=given_up) == 0
    assert "no result within 1 s" in given_up[clash.left().group.key]
    assert agent(mngr, name_of(clash))["state"] == "stopped"


def test_an_agent_of_somebody_else_is_left_alone(mngr: Mngr, clash: Clash) -> None:
    name, given_up = name_of(clash), dict[str, str]()
    mngr.ok("create", name, "command", "--", "sleep", "100")
    assert solve(clash, replay(clash, SOLVE), given_up=given_up) == 0
    assert "has nothing to do with this" in given_up[clash.left().group.key]
    assert agent(mngr, name)["state"] == "running"


def test_an_agent_of_another_integration_with_the_same_question_is_left_alone(mngr: Mngr, clash: Clash) -> None:
    name, given_up = name_of(clash), dict[str, str]()
    labels = ("--label", "integration=r1", "--label", f"question={key_of(clash.left().picked)}")
    mngr.ok(
        "create", name, "command", "--mode", "none", "--from", str(clash.history.top), *labels, "--", "sleep", "100"
    )
    assert solve(clash, replay(clash, SOLVE), given_up=given_up) == 0
    assert "has nothing to do with this" in given_up[clash.left().group.key]
    assert agent(mngr, name)["state"] == "running"


def test_a_type_that_is_not_there_solves_nothing(clash: Clash) -> None:
    with pytest.raises(api.MngrError, match="nonsense"):
        solve(clash, Integrator(type="nonsense", slug="r1"))


class FakeSuite(Suite):
    """The outcome of a test follows from what a tree has in app.py."""

    def __init__(self, clash: Clash, green: dict[str, Sequence[bytes]]) -> None:
        super().__init__(clash.scratch, str(clash.directory), How())
        self._clash, self._green = clash, green

    def run(self, tree: str, tests: Sequence[str], again: bool = False) -> dict[str, Outcome]:
        content = self._clash.content(tree, "app.py") or b""
        return {
            test: Outcome(word="passed" if any(text in content for text in self._green.get(test, ())) else "failed")
            for test in tests
        }


LEFT, RIGHT = "tests/test_left.py::test_left", "tests/test_right.py::test_right"


def test_what_passed_with_one_side_must_pass_with_both(clash: Clash) -> None:
    given_up = dict[str, str]()
    suite = FakeSuite(clash, {LEFT: [b"return 2"], RIGHT: [b"return 3"]})
    assert solve(clash, replay(clash, SOLVE), suite, given_up) == 0
    assert f"with it, {RIGHT} does not pass any more" in given_up[clash.left().group.key]
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 0, "nobody has changed what was refused"


def test_what_failed_before_is_no_reason_to_refuse_it(clash: Clash) -> None:
    suite = FakeSuite(clash, {LEFT: [b"return 2"]})
    assert solve(clash, replay(clash, SOLVE), suite) == 1


def test_a_test_that_needs_a_fix_of_its_own_branch_is_no_reason_to_refuse_it(clash: Clash) -> None:
    """It stands below all fixes, where it was red before anybody had solved anything."""
    clash.sources.clear()
    clash.add("one", {"tests/test_x.py": "NAMES = ['one']\n"})
    test = "\n\ndef test_two():\n    assert f() == 9\n"
    fix = clash.history.commit("two", {"app.py": "def f():\n    return 9\n"}, "Return 9", clash.base)
    head = clash.history.commit("two", {"tests/test_x.py": f"NAMES = ['two']\n{test}"}, "Test it", fix)
    clash.sources.append(Source(branch="two", head=head))
    suite = FakeSuite(clash, {"tests/test_x.py::test_two": [b"return 9"]})
    both = f"write tests/test_x.py <<END\nNAMES = ['one', 'two']\n{test}END\nrun git add -A\n"
    answer = 'run git commit -q --no-edit\nresult <<END\n{"resolved": true, "why": "both names"}\nEND\n'
    assert solve(clash, replay(clash, both + answer), suite) == 1
    assert clash.stack().left == []


def test_what_somebody_solved_is_taken_and_nobody_asked(mngr: Mngr, clash: Clash) -> None:
    opened = open_(clash.scratch, clash.left(), str(clash.directory))
    Path(opened.directory, "app.py").write_text("def f():\n    return 5\n")
    git(opened.directory, "commit", "-qa", "--no-edit")
    assert solve(clash, replay(clash, GIVE_UP)) == 1
    assert clash.content(clash.stack().tree, "app.py") == b"def f():\n    return 5\n"
    assert mngr.json("list") == []


def test_conflicts_that_share_no_file_are_solved_side_by_side(mngr: Mngr, clash: Clash) -> None:
    clash.add("one", {"other.toml": "a = 2\n"})
    clash.add("two", {"other.toml": "a = 3\n"})
    clash.add("three", {"app.py": "def f():\n    return 4\n"})
    meet = clash.directory.parent / "meet"
    meet.mkdir()
    both = f"""\
run touch {meet}/$MNGR_AGENT_NAME
run 'while [ "$(ls {meet} | wc -l)" -lt 2 ]; do sleep 0.05; done'
run 'for file in $(git diff --name-only --diff-filter=U); do sed -i "/^[<|=>][<|=>]/d" $file; done'
run git add -A
run git commit -q --no-edit
result <<END
{{"resolved": true, "why": ""}}
END
"""
    assert [left.group.first.branch for left in clash.stack().left] == ["right", "two", "three"]
    assert solve(clash, replay(clash, both)) == 2
    assert [left.group.first.branch for left in clash.stack().left] == ["three"]
    assert solve(clash, replay(clash, both)) == 1
    assert clash.stack().left == []


# Interruptions

SLOWLY = """\
run touch "$MNGR_HOME/begun"
run 'while [ ! -e "$MNGR_HOME/go" ]; do sleep 0.05; done'
"""


def integrate(clash: Clash, *more: str) -> list[str]:
    path = str(clash.directory.parent / "trajectory.sh")
    words = ["integrate", "left", "right", "--base", "main", "--into", "review", "--no-verify"]
    return [*words, "--type", "replay", "--agent-arg", path, *more]


def begun(home: Home) -> bool:
    return (home.mngr_home / "begun").exists()


def test_ctrl_c_stops_the_agent_and_says_how_to_go_on(mngr: Mngr, home: Home, clash: Clash) -> None:
    home.cwd = clash.history.top
    replay(clash, f"{SLOWLY}{SOLVE}")
    process = mngr.popen(*integrate(clash))
    wait_until(lambda: begun(home))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    (found,) = mngr.json("list")
    assert found["state"] == "stopped"
    (work,) = (home.mngr_home / "integrations").glob(f"*/{PLACE}/*")
    assert f"solve it by hand in {work} and git commit there" in err
    (work / "app.py").write_text("def f():\n    return 7\n")
    git(work, "commit", "-qa", "--no-edit")
    told = mngr.json(*integrate(clash, "--resume"))
    assert told["left"] == []
    assert home.run("git", "show", "review:app.py") == "def f():\n    return 7\n"


def test_an_agent_that_was_stopped_goes_on_when_the_same_is_asked_again(mngr: Mngr, home: Home, clash: Clash) -> None:
    home.cwd = clash.history.top
    replay(clash, f"{SLOWLY}hang\n# turn\n{SOLVE}")
    process = mngr.popen(*integrate(clash))
    wait_until(lambda: begun(home))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    (found,) = mngr.json("list")
    told = mngr(*integrate(clash, "--resume"))
    assert told.code == 0, told.err
    assert f"{found['name']} was asked already" in told.err
    assert home.run("git", "show", "review:app.py") == "def f():\n    return 2 + 3\n"
    assert mngr.json("list") == []


def test_one_that_was_stopped_before_it_was_told_is_told_when_it_is_asked_again(mngr: Mngr, clash: Clash) -> None:
    name = name_of(clash)
    assert solve(clash, replay(clash, GIVE_UP)) == 0
    opened = str(clash.directory / PLACE / clash.left().group.name)
    mngr.ok("destroy", "-f", name)
    labels = ("--label", "integration=r1", "--label", f"question={key_of(clash.left().picked)}")
    path = clash.directory.parent / "trajectory.sh"
    path.write_text(SOLVE)
    (clash.directory / "agents" / f"{name}.json").unlink()
    mngr.ok("create", name, "replay", "--mode", "none", "--from", opened, *labels, "--", str(path))
    mngr.ok("stop", name)
    assert solve(clash, replay(clash, SOLVE)) == 1
    assert f"{name} was asked already" in clash.told


def test_an_agent_outlives_who_asked_it_and_is_waited_for_again(mngr: Mngr, home: Home, clash: Clash) -> None:
    home.cwd = clash.history.top
    replay(clash, f"{SLOWLY}{SOLVE}")
    process = mngr.popen(*integrate(clash))
    wait_until(lambda: begun(home))
    process.kill()
    process.communicate(timeout=60)
    (found,) = mngr.json("list")
    assert found["state"] == "running"
    (home.mngr_home / "go").touch()
    told = mngr(*integrate(clash))
    assert told.code == 0, told.err
    assert f"{found['name']} was asked already" in told.err
    assert home.run("git", "show", "review:app.py") == "def f():\n    return 2 + 3\n"
    assert mngr.json("list") == []


# The order


def order(clash: Clash, how: Integrator) -> Any:
    fixes = clash.plan().fixes
    return rank(api.Fleet(), clash.scratch, fixes, clash.sources, how, str(clash.directory), clash.told.append)


def test_an_agent_orders_the_fixes_and_says_why(mngr: Mngr, clash: Clash) -> None:
    one, two = [each.group.name for each in clash.plan().fixes]
    answer = {"order": [two, one], "why": {two: "it loses data"}}
    found = order(clash, replay(clash, f"run cat {two}.diff fixes.json\nresult <<'END'\n{json.dumps(answer)}\nEND\n"))
    assert (found.order, found.why) == ([two, one], {two: "it loses data"})
    (said,) = (clash.directory / "agents").glob("*/transcript.jsonl")
    assert "+    return 3" in said.read_text()
    assert mngr.json("list") == []

    assert json.loads((clash.directory / ANSWER).read_text())["order"] == [two, one]
    assert order(clash, replay(clash, "fail\n")) == found, "the same fixes are not asked about twice"
    clash.add("third", {"third.py": "third\n"})
    assert order(clash, replay(clash, "fail\n")) is None, "others are"


def test_an_order_without_reasons_goes_back_and_then_the_rule_stands(clash: Clash) -> None:
    one, two = [each.group.name for each in clash.plan().fixes]
    answer = f"result <<END\n{json.dumps({'order': [two, one], 'why': {}})}\nEND\n"
    assert order(clash, replay(clash, f"{answer}# turn\nrun true\n{answer}")) is None
    assert "`why` has no sentence for it" in clash.told[-1]
    assert "the order is that of the rule" in clash.told[-1]
    assert not (clash.directory / ANSWER).exists()
