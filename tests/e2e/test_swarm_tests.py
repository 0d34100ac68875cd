"""`mngr swarm run` on the tests of a small project, with agents that claim all kinds of things."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.agents import branches, commit
from tests.home import BIN, Home, Mngr

CONFIGURATION = """\
[pytest]
addopts = -p no:cacheprovider
disable_test_id_escaping_and_forfeit_all_rights_to_community_support = true
"""
PROGRAM = """\
def add(a, b):
    return a - b


def double(a):
    return 2 * a
"""
TESTS = """\
import pytest

import calc


def test_add():
    assert calc.add(2, 3) == 5


def test_double():
    assert calc.double(2)


@pytest.mark.parametrize("text", ["two words", "höhe 日本"])
def test_odd(text):
    assert text


def test_liar():
    assert calc.add(1, 1) == 2


def test_mixed():
    assert calc.double(1) == 2


def test_ghost():
    assert calc.double(0) == 0


@pytest.mark.xfail
def test_aside():
    assert calc.double(0) == 1


@pytest.mark.skip
def test_woken():
    assert calc.double(3) == 6
"""
TRAPPED = """\
import sys

sys.path.insert(0, {elsewhere!r})  # as an editable install of another checkout would

import calc


def test_trap():
    assert calc.add(2, 3) == 5
"""
NEW_TESTS = """

def test_add_negative():
    assert calc.add(1, -1) == 0


def test_proves_nothing():
    assert calc.double(3) == 6
"""
ADD, DOUBLE, LIAR, MIXED, GHOST, ASIDE, WOKEN = (
    f"tests/test_calc.py::test_{name}" for name in "add double liar mixed ghost aside woken".split()
)
WORDS, HEIGHT = "tests/test_calc.py::test_odd[two words]", "tests/test_calc.py::test_odd[höhe 日本]"
TRAP = "tests/test_trap.py::test_trap"
FIX = """\
before fail
edit calc/__init__.py 'a - b' 'a + b'
commit implementation 'Add' high
after pass
"""
RESULT = {
    "test": GHOST,
    "passed_before": True,
    "passed_after": True,
    "changes": [{"kind": "test", "commit": "0123456789", "summary": "never made", "importance": "low"}],
    "escalations": [],
    "blocked": None,
    "summary": "A commit that is not there.",
}
TRAJECTORIES = {
    "default": """\
say 'I look at it.'
before pass
after pass
finish 'It is as it should be.'
""",
    "test-add": f"""\
{FIX}
cat >>tests/test_calc.py <<'END'{NEW_TESTS}END
commit test 'Two more' low
finish 'Mended.'
""",
    "test-double": """\
before pass
edit tests/test_calc.py 'double(2)' 'double(2) == 4'
commit test 'Exactly'
after pass
finish 'It says what it means.'
""",
    "test-liar": """\
before fail
after pass
finish 'It passes now, I am sure.'
""",
    "test-mixed": """\
before pass
edit calc/__init__.py '2 * a' 'a + a'
commit test 'Test more'
after pass
finish 'Better.'
""",
    "test-woken": """\
edit tests/test_calc.py '@pytest.mark.skip
' ''
commit test 'It is run'
after pass
finish 'It was only asleep.'
""",
    "test-ghost": f"result <<'END'\n{json.dumps(RESULT)}\nEND\n",
}
QUIET = "--max-agents 8 --max-load 100 -e PYTEST_DISABLE_PLUGIN_AUTOLOAD=1".split()


class Project:
    """A repository with tests, and what agents of the type `replay` do with each."""

    def __init__(self, home: Home, mngr: Mngr) -> None:
        self.home, self.mngr = home, mngr
        self.top = home.cwd = home.root / "calc"
        home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.trajectories = home.root / "trajectories"
        self.write("pytest.ini", CONFIGURATION)
        self.write(".gitignore", "__pycache__/\n")
        self.write("calc/__init__.py", PROGRAM)
        self.write("tests/test_calc.py", TESTS)
        home.run("git", "init", "-q")
        commit(home, self.top, "First commit")
        for name, text in TRAJECTORIES.items():
            self.write(f"../trajectories/{name}.sh", text)
        self.type = ["--type", "replay", "--agent-arg", str(self.trajectories)]
        self.options = [*self.type, *QUIET, "--pytest", f"{sys.executable} -m pytest"]

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def estimate(self, *words: str, **how: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.mngr.json("swarm", "estimate", *self.options, *words, **how)
        return found

    def runs(self) -> list[str]:
        place = self.home.mngr_home / "runs"
        return sorted(path.name for path in place.iterdir()) if place.exists() else []


@pytest.fixture
def project(home: Home, mngr: Mngr) -> Project:
    return Project(home, mngr)


def test_what_agents_claim_is_checked(project: Project, home: Home, mngr: Mngr) -> None:
    elsewhere = home.root / "elsewhere"
    (elsewhere / "calc").mkdir(parents=True)
    (elsewhere / "calc" / "__init__.py").write_text(PROGRAM.replace("a - b", "a + b"))
    project.write("tests/test_trap.py", TRAPPED.format(elsewhere=str(elsewhere)))
    commit(home, project.top, "A trap")
    result = mngr("swarm", "run", *project.options, "--no-integrate", "--json", timeout=120)
    assert (result.code, result.err) == (6, "")
    told = json.loads(result.out)
    tasks = {task["title"]: task for task in told["tasks"]}
    assert {title: task["outcome"] for title, task in tasks.items()} == {
        ADD: "fixed",
        DOUBLE: "improved",
        WORDS: "unchanged",
        HEIGHT: "unchanged",
        LIAR: "failed",
        MIXED: "failed",
        GHOST: "failed",
        ASIDE: "unchanged",
        WOKEN: "improved",
        TRAP: "infrastructure",
    }
    assert (told["run"], told["state"], told["settled"], told["good"], told["bad"]) == ("r1", "done", 10, 6, 4)
    assert [tasks[title]["task"] for title in (WORDS, HEIGHT)] == ["test-odd-two-words", "test-odd-h-he"]
    assert tasks[LIAR]["why"] == f"{LIAR} fails on its branch: assert 0 == 2"
    assert "is declared as test, but changes calc/__init__.py (implementation)" in tasks[MIXED]["why"]
    assert tasks[GHOST]["why"] == "0123456789 is no commit of its branch"
    assert f"calc comes from {elsewhere}/calc, not from the checkout" in tasks[TRAP]["why"]
    changed = [f"mngr/r1-test-{name}" for name in ("add", "double", "mixed", "woken")]
    assert branches(home, "mngr/r1-*") == changed

    shown = mngr.json("swarm", "show", "r1", ADD)
    assert shown["check"]["before"] == {"claim": False, "check": "failed"}
    assert shown["check"]["after"] == {"claim": True, "check": "passed"}
    assert {other["test"]: other["without fix"] for other in shown["check"]["others"]} == {
        "tests/test_calc.py::test_add_negative": "failed",
        "tests/test_calc.py::test_proves_nothing": "passed",
    }
    assert shown["notes"] == ["tests/test_calc.py::test_proves_nothing also passes without the fix"]
    assert "also passes without the fix" in mngr.ok("swarm", "show", "r1", ADD)
    assert "the result says that the test passed after; the check says: failed" in mngr.ok("swarm", "show", "r1", LIAR)
    assert f"{ASIDE} is skipped, or expected to fail, and was left so" in mngr.ok("swarm", "show", "r1", ASIDE)

    home.run("git", "merge", "-q", "mngr/r1-test-double")
    again = project.estimate("--changed-since", "last", "--audit", "0")
    assert {each["test"] for each in again["skipped"]} == {WORDS, HEIGHT, ASIDE}
    assert all("are as they were at run r1" in each["why"] for each in again["skipped"])


def test_what_cannot_matter_is_skipped_and_a_wrong_skip_is_told_loudly(
    project: Project, home: Home, mngr: Mngr
) -> None:
    project.write("README.md", "About sums.\n")
    commit(home, project.top, "Words")
    since = [*project.options, "--changed-since", "HEAD~1"]
    lines = mngr.ok("swarm", "run", ADD, WORDS, *since, "--audit", "0", "--jsonl").splitlines()
    tasks = [json.loads(line) for line in lines]
    assert [(task["title"], task["outcome"], task["agent"]) for task in tasks] == [
        (ADD, "skipped", ""),
        (WORDS, "skipped", ""),
    ]
    compared = "test, fixtures, block, program, lock, prompt and model are as they were at "
    assert all(task["why"].startswith(compared) for task in tasks)
    assert mngr.json("list") == []
    said = mngr.ok("swarm", "run", ADD, *since, "--audit", "100%", timeout=60)
    assert f"[1/1] fixed: {ADD}\n" in said
    wrong = f"WRONG SKIP: {ADD} would have been skipped ({tasks[0]['why']}), but is fixed\n"
    assert wrong in said
    assert wrong in mngr.ok("swarm", "show", "r2")
    assert [each["title"] for each in mngr.json("swarm", "status", "r2")["wrong_skips"]] == [ADD]


def test_an_estimate_launches_nothing_and_names_what_would_leave(project: Project, mngr: Mngr) -> None:
    found = project.estimate("test_calc.py::test_add", "../tests", "-e", "TOKEN=s3cret", cwd=project.top / "tests")
    assert (found["tests"], found["agents"], found["skipped"]) == (9, 9, [])
    assert (found["type"], found["permissions"], found["project"]) == ("replay", "allowlist", str(project.top))
    leaves = found["leaves"]
    assert (leaves["variables"], leaves["hosts"]) == (["PYTEST_DISABLE_PLUGIN_AUTOLOAD", "TOKEN"], ["local"])
    assert leaves["repository"] > 0
    assert leaves["to_the_model"] is False
    said = mngr.ok("swarm", "estimate", ADD, *project.options, "-e", "TOKEN=s3cret")
    assert said.startswith("tasks      1, of which 0 are skipped\nagents     1 of type replay, at a time 8\n")
    assert "  variables: PYTEST_DISABLE_PLUGIN_AUTOLOAD, TOKEN\n" in said
    assert "s3cret" not in f"{found}{said}"
    assert (project.runs(), mngr.json("list")) == ([], [])


def test_what_is_not_committed_stays_behind_and_that_is_said(project: Project, mngr: Mngr) -> None:
    project.write("tests/test_new.py", "def test_new():\n    pass\n")
    project.write("calc/__init__.py", PROGRAM + "\n")
    result = mngr("swarm", "estimate", "tests/test_new.py", ADD, *project.options, "--json")
    assert result.err == "mngr: 2 files are not committed and stay behind: agents start from a commit\n"
    found = json.loads(result.out)
    assert found["agents"] == 1
    assert found["skipped"] == [
        {"test": "tests/test_new.py::test_new", "why": "it is not committed: no agent would find it"}
    ]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["tests/nope.py"], 1, "file or directory not found: tests/nope.py"),
        (["tests/broken.py"], 1, "tests/broken.py cannot be collected: SyntaxError: "),
        (["--", "-k", "nothing"], 1, "no tests collected in this project: 9 deselected by -k nothing"),
        (["--permissions", "bypass"], 2, "agents that may do everything, on this very machine?"),
        (["--permissions", "bypass", "--at", ".local"], 2, "agents that may do everything, on this very machine?"),
        (["--at", "box.nowhere"], 2, "there is no provider 'nowhere'"),
        (["--at", "local,.nowhere"], 2, "there is no provider 'nowhere'"),
        (["--at", "box"], 2, "there is no host 'box'"),
        (["--type", "cluade"], 2, "there is no agent type 'cluade'"),
        (["--agent-arg", "another"], 2, "a replay needs one trajectory"),
        (["--base", "nope"], 2, "nope is not a commit in "),
        (["--changed-since", "nope"], 2, "nope is not a commit in "),
        (["--changed-since", "last"], 2, "has been finished yet"),
        (["--audit", "most"], 2, "most is no share"),
        (["--tutorial", "nope.sh"], 2, "there is no tutorial nope.sh"),
        (["--name", "Not A Name"], 2, "'Not A Name' is not a name for a run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_in_a_line_and_nothing_is_left(
    project: Project, home: Home, mngr: Mngr, words: list[str], code: int, told: str
) -> None:
    project.write("tests/broken.py", "def test_it(:\n")
    commit(home, project.top, "A broken one")
    result = mngr("swarm", "run", *project.options, *words)
    assert (result.code, result.out) == (code, "")
    message, hint = result.err.splitlines() if result.err.count("\n") > 1 else (result.err, "")
    assert message.startswith("mngr: ")
    assert told in message
    assert hint.startswith("hint: ") or not hint
    assert (project.runs(), mngr.json("list")) == ([], [])


def test_a_run_needs_a_repository_with_a_commit(project: Project, home: Home, mngr: Mngr) -> None:
    outside = mngr("swarm", "run", *project.options, cwd=home.path)
    assert outside.code == 1
    assert f"{home.path} is not in a git repository" in outside.err
    home.run("git", "init", "-q", cwd=home.path)
    empty = mngr("swarm", "run", *project.options, cwd=home.path)
    assert (empty.code, empty.err) == (
        2,
        f"mngr: HEAD is not a commit in {home.path}\nhint: commit something first\n",
    )
    assert project.runs() == []


def test_a_program_that_is_missing_is_told_before_anything_is_made(project: Project, mngr: Mngr) -> None:
    result = mngr("swarm", "run", ADD, "--type", "claude", env={"PATH": f"{BIN}:/usr/bin:/bin"})
    assert result.code == 1
    assert "there is no program called claude\nhint: npm install" in result.err
    assert (project.runs(), mngr.json("list")) == ([], [])
