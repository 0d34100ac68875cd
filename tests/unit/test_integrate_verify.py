"""What is set aside, what travels, and what is only told. Git is real; the tests of the projects in here are functions
that look at the files of their tree, and are called without a pytest. What pytest does: test_integrate_suite.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import MngrError
from mngr.integrate.change import Group, Source
from mngr.integrate.checking.outcomes import Outcome
from mngr.integrate.checking.own import touched
from mngr.integrate.checking.suite import COLLECTING, How, Job, Suite
from mngr.integrate.checking.verify import Aside, Removed, Verified, verify
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.stack import Plan, Stack
from tests.integration import Project, plain_files


class Plain(Suite):
    """`flakes` has outcomes that come before the true one, by test; `ends_after` is a number of jobs. On trees that are
    `spoilt` everything is red, except for what is run in a new checkout. When all are run together, a test finds a file
    `together` among those of its tree."""

    def __init__(self, scratch: Scratch, directory: str, how: How | None = None) -> None:
        super().__init__(scratch, directory, how or How(workers=2))
        self.runs: list[Job] = []
        self.flakes: dict[str, list[str]] = {}
        self.ends_after = 1000
        self.spoilt: set[str] = set()

    @functools.cache  # noqa: B019 - for one test
    def files(self, tree: str) -> dict[str, str]:
        return plain_files(self.scratch, tree)

    def collect_now(self, tree: str) -> list[str]:
        files = self.files(tree)
        if {"BROKEN", "EXIT"} & set(files.get("conftest.py", "").split()):
            raise MngrError("conftest.py cannot be read", "mend it")
        found = []
        for path, text in sorted(files.items()):
            if path.startswith("tests/") and path.endswith(".py"):
                world = functions(text, files)
                names = [name for name in world or {} if name.startswith("test")]
                found += [path] if world is None else [f"{path}::{name}" for name in names]
        return [test for test in found if test not in files.get("hidden", "")]

    def execute(self, jobs: list[Job], keep: Callable[[Job, Mapping[str, Outcome]], None]) -> None:
        for job in jobs:
            if len(self.runs) == self.ends_after:
                raise KeyboardInterrupt
            self.runs.append(job)
            files, tests = self.files(job.tree), job.tests
            if job.whole:
                files, tests = {**files, "together": ""}, list(dict.fromkeys([*tests, *self.collect_now(job.tree)]))
            found = {test: self.outcome(files, test) for test in tests}
            if job.tree in self.spoilt and not job.afresh:
                found = dict.fromkeys(found, Outcome(word="failed"))
            keep(job, found)

    def outcome(self, files: dict[str, str], test: str) -> Outcome:
        if self.flakes.get(test):
            return Outcome(word=self.flakes[test].pop(0))
        if self.how.check:
            return Outcome(word="passed" if "bad" not in files else "failed")
        path, _, name = test.partition("::")
        if path not in files:
            return Outcome(word="missing")
        world = functions(files[path], files)
        if world is None or "BROKEN" in files.get("conftest.py", ""):
            return Outcome(word="error", said="it cannot be read")
        if name not in world or test in files.get("hidden", ""):
            return Outcome(word="missing" if name else "passed")
        try:
            world[name]()
        except AssertionError as error:
            return Outcome(word="failed", said=str(error))
        return Outcome(word="passed")


def functions(text: str, files: dict[str, str]) -> dict[str, Any] | None:
    world: dict[str, Any] = {"files": files}
    try:
        exec(text, world)
    except SyntaxError:
        return None
    return {name: each for name, each in world.items() if callable(each)}


def has(name: str, path: str, word: str) -> str:
    return f"def {name}():\n    assert {word!r} in files.get({path!r}, ''), {word!r}\n\n\n"


def has_not(name: str, path: str, word: str) -> str:
    return f"def {name}():\n    assert {word!r} not in files.get({path!r}, ''), {word!r}\n\n\n"


class World:
    def __init__(self, project: Project, sources: list[Source] | None = None, how: How | None = None) -> None:
        self.scratch = project.scratch()
        self.project, self.sources = project, sources or project.sources()
        rest, fixes = project.sorted_out()
        self.plan = Plan(rest=rest, fixes=fixes)
        self.directory = str(project.path.parent / "integration")
        self.how = how
        self.suite = self.new_suite()
        self.said: list[str] = []

    def new_suite(self) -> Plain:
        return Plain(self.scratch, self.directory, self.how)

    def verified(self, plan: Plan | None = None) -> Verified:
        return verify(self.scratch, plan or self.plan, self.suite, self.sources, say=self.said.append)

    def group(self, branch: str, place: int = 0) -> Group:
        groups = self.project.groups()
        return next(each for each in groups if (each.first.branch, each.first.place) == (branch, place))


def steps(stack: Stack) -> list[list[str]]:
    """Branches and places, as `one/0`."""
    return [[f"{each.group.first.branch}/{each.group.first.place}" for each in step.picks] for step in stack.steps]


def aside(verified: Verified) -> list[str]:
    return [f"{each.group.first.branch}/{each.group.first.place}" for each in verified.reds]


BASE = {
    "a.py": "a\n",
    "b.py": "b\n",
    "tests/test_base.py": has("test_a", "a.py", "a") + has_not("test_b", "b.py", "bad"),
}


def test_a_green_stack_stays_as_it_is(tmp_path: Path) -> None:
    project = Project(tmp_path, BASE, one=[{"a.py": "a\nfixed\n"}], two=[{"README.md": "docs\n"}])
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["two/0"], ["one/0"]]
    assert (found.reds, found.flaky, found.red_at_base, found.still_red) == ([], [], [], [])
    assert found.tests == {"passed": 2}
    assert found.plan == world.plan


# What travels


def test_a_test_that_needs_a_fix_travels_with_it(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        zero=[{"b.py": "b\nother\n"}],
        one=[{"tests/test_one.py": has("test_one", "a.py", "fixed") + "def helper(): pass\n"}, {"a.py": "a\nfixed\n"}],
        two=[{"tests/test_two.py": has("test_two", "a.py", "a")}],
    )
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["two/0"], ["zero/0"], ["one/1", "one/0"]]
    fix, test = world.group("one", 1), world.group("one", 0)
    assert found.plan.carried == {test.key: fix.key}
    assert found.checked == {
        world.group("two").key: ["tests/test_two.py::test_two passes"],
        fix.key: ["tests/test_one.py::test_one fails without it, passes with it"],
    }


def test_a_test_that_needs_two_fixes_travels_with_the_later_one(tmp_path: Path) -> None:
    tests = has("test_one", "a.py", "fixed") + has("test_other", "b.py", "mended")
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_one.py": tests}],
        two=[{"a.py": "a\nfixed\n"}],
        three=[{"b.py": "b\nmended\n"}],
        four=[{"c.py": "c\n"}],
    )
    assert steps(World(project).verified().stack) == [["two/0"], ["three/0", "one/0"], ["four/0"]]


def test_what_builds_on_a_test_that_travels_goes_with_it(tmp_path: Path) -> None:
    one = has("test_one", "a.py", "fixed")
    project = Project(
        tmp_path,
        BASE,
        one=[
            {"tests/test_one.py": one},
            {"tests/test_one.py": one.replace("'fixed'", "'fixed' '' ")},
            {"a.py": "a\nfixed\n"},
        ],
        two=[{"README.md": "docs\n"}],
    )
    found = World(project).verified()
    assert steps(found.stack) == [["two/0"], ["one/2", "one/0", "one/1"]]
    assert not found.stack.left


def test_documents_of_a_branch_do_not_travel_with_its_fix(tmp_path: Path) -> None:
    """Its test is red without the fix, but not because of them."""
    base = {**BASE, "tests/test_one.py": has("test_one", "a.py", "fixed")}
    project = Project(tmp_path, base, one=[{"README.md": "docs\n"}, {"a.py": "a\nfixed\n"}])
    sources = [each.replace(test="tests/test_one.py::test_one") for each in project.sources()]
    world = World(project, sources)
    found = world.verified()
    assert steps(found.stack) == [["one/0"], ["one/1"]]
    assert found.checked == {world.group("one", 1).key: ["tests/test_one.py::test_one failed before, passes with it"]}


def test_a_test_that_a_later_fix_breaks_travels_with_the_fix_it_needs(tmp_path: Path) -> None:
    """The fix that breaks it is set aside, not the test."""
    check = "def test_one():\n    assert 'fixed' in files['a.py'] and 'bad' not in files['b.py']\n"
    project = Project(
        tmp_path,
        BASE | {"tests/test_base.py": has("test_a", "a.py", "a")},
        zero=[{"c.py": "c\n"}],
        one=[{"tests/test_one.py": check}, {"a.py": "a\nfixed\n"}],
        two=[{"d.py": "d\n"}],
        three=[{"b.py": "bad\n"}],
        four=[{"e.py": "e\n"}],
    )
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["zero/0"], ["one/1", "one/0"], ["two/0"], ["four/0"]]
    [red] = found.reds
    assert (red.group, red.other) == (world.group("three"), None)
    assert red.why == "it breaks tests/test_one.py::test_one: green with everything before it, red with it"


def test_a_new_test_stays_though_what_breaks_it_stands_before_its_fix(tmp_path: Path) -> None:
    """It is green with what its own branch has made, and red with one more."""
    check = "def test_one():\n    assert 'fixed' in files['a.py'] and 'bad' not in files['b.py']\n"
    project = Project(
        tmp_path,
        BASE | {"tests/test_base.py": has("test_a", "a.py", "a")},
        zero=[{"c.py": "c\n"}],
        one=[{"b.py": "bad\n"}],
        two=[{"d.py": "d\n"}],
        three=[{"tests/test_one.py": check}, {"a.py": "a\nfixed\n"}],
    )
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["zero/0"], ["two/0"], ["three/1", "three/0"]]
    [red] = found.reds
    assert (red.group, red.other) == (world.group("one"), world.group("three"))
    assert "::test_one: green with everything before it and what three has, red with it; the two that" in red.why
    assert plain_files(world.scratch, red.before)["b.py"] == "b\n"
    assert plain_files(world.scratch, red.tree)["a.py"] == "a\nfixed\n"


def test_a_fix_of_another_branch_is_found_for_a_test_that_is_red_in_the_end(tmp_path: Path) -> None:
    check = "def test_one():\n    assert 'fixed' in files['a.py'] and 'bad' not in files['b.py']\n"
    project = Project(
        tmp_path,
        BASE | {"tests/test_base.py": has("test_a", "a.py", "a")},
        one=[{"tests/test_one.py": check}],
        two=[{"a.py": "a\nfixed\n"}],
        three=[{"c.py": "c\n"}],
        four=[{"b.py": "bad\n"}],
    )
    found = World(project).verified()
    assert aside(found) == ["four/0"]
    assert steps(found.stack) == [["two/0", "one/0"], ["three/0"]]


def test_a_fix_is_credited_only_with_what_was_red_before_it(tmp_path: Path) -> None:
    tests = has("test_one", "a.py", "fixed") + has("test_other", "b.py", "mended")
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_one.py": tests}],
        two=[{"a.py": "a\nfixed\n"}],
        three=[{"b.py": "b\nmended\n"}],
    )
    world = World(project)
    assert world.verified().checked == {
        world.group("three").key: [
            "tests/test_one.py::test_other fails without it, passes with it",
            "tests/test_one.py::test_one passes",
        ]
    }


HELPED = """def test_helped():
    assert 'new' not in files.get('tests/helper.txt', '') or 'fixed' in files['a.py']
"""


def test_what_breaks_a_test_of_the_base_until_a_fix_comes_travels_with_that_fix(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {**BASE, "tests/test_helped.py": HELPED},
        zero=[{"README.md": "docs\n"}],
        one=[{"c.py": "c\n"}],
        two=[{"tests/helper.txt": "new\n"}],
        three=[{"a.py": "a\nfixed\n"}],
    )
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["zero/0"], ["one/0"], ["three/0", "two/0"]]
    assert found.red_below == []
    helped = "tests/test_helped.py::test_helped fails without it, passes with it"
    assert found.checked[world.group("three").key] == [helped]


def test_what_is_red_below_the_fixes_and_cannot_travel_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mngr.integrate.checking.carried._MOST_ROUNDS", 0)
    project = Project(
        tmp_path,
        {**BASE, "tests/test_helped.py": HELPED, "tests/test_red.py": has("test_red", "a.py", "fixed")},
        two=[{"tests/helper.txt": "new\n"}],
        three=[{"a.py": "a\nfixed\n"}],
    )
    found = World(project).verified()
    assert (found.red_below, found.still_red) == (["tests/test_helped.py::test_helped"], [])


# What breaks something


def test_a_change_that_breaks_a_test_of_the_base_is_set_aside_with_the_evidence(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        one=[{"a.py": "a\nfixed\n"}],
        two=[{"b.py": "bad\n"}],
        three=[{"c.py": "c\n"}],
        four=[{"d": "d"}],
    )
    world = World(project)
    found = world.verified()
    assert steps(found.stack) == [["one/0"], ["three/0"], ["four/0"]]
    [red] = found.reds
    assert red.group == world.group("two")
    assert (red.test, red.outcome, red.said) == ("tests/test_base.py::test_b", "failed", "bad")
    assert red.why == "it breaks tests/test_base.py::test_b: green with everything before it, red with it"
    assert plain_files(world.scratch, red.before)["b.py"] == "b\n"
    assert plain_files(world.scratch, red.tree) == {**BASE, "a.py": "a\nfixed\n", "b.py": "bad\n"}
    assert found.plan.dropped == {red.group.key: red.why}
    assert found.tests == {"passed": 2}


def test_several_that_break_something_on_their_own_go_in_one_round(tmp_path: Path) -> None:
    checks = "".join(has_not(f"test_{n}", f"{n}.py", "bad") for n in range(8))
    branches: dict[str, list[dict[str, str]]] = {
        f"b{n}": [{f"{n}.py": "bad\n" if n % 2 else "good\n"}] for n in range(8)
    }
    world = World(Project(tmp_path, {"tests/test_all.py": checks}, **branches))
    found = world.verified()
    assert aside(found) == ["b1/0", "b3/0", "b5/0", "b7/0"]
    assert steps(found.stack) == [["b0/0"], ["b2/0"], ["b4/0"], ["b6/0"]]
    assert len([line for line in world.said if line.startswith("all other tests: ")]) == 2


def test_a_new_test_that_is_red_everywhere_takes_its_change_with_it(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_one.py": has("test_one", "a.py", "never")}, {"a.py": "a\nfixed\n"}],
        two=[{"tests/test_two.py": has("test_two", "a.py", "fixed")}],
    )
    found = World(project).verified()
    assert aside(found) == ["one/0"]
    assert steps(found.stack) == [["one/1", "two/0"]]


def test_of_two_that_do_not_go_together_the_later_one_is_set_aside_and_both_are_named(tmp_path: Path) -> None:
    check = "def test_both():\n    assert not ('x' in files['a.py'] and 'y' in files['b.py'])\n"
    project = Project(
        tmp_path,
        {**BASE, "tests/test_both.py": check},
        zero=[{"c.py": "c\n"}],
        one=[{"a.py": "a\nx\n"}],
        two=[{"d.py": "d\n"}],
        three=[{"b.py": "b\ny\n"}],
        four=[{"e.py": "e\n"}],
    )
    world = World(project)
    found = world.verified()
    assert aside(found) == ["three/0"]
    [red] = found.reds
    assert red.other == world.group("one")
    assert red.why.endswith(
        f"; the two that do not go together are {world.group('one').name} and {world.group('three').name}"
    )


def test_what_is_red_only_because_of_another_culprit_stays(tmp_path: Path) -> None:
    """One is bad on its own; the later one is red together with it alone."""
    check = "def test_both():\n    assert not ('bad' in files['b.py'] and 'y' in files['a.py'])\n"
    project = Project(
        tmp_path, {**BASE, "tests/test_both.py": check}, one=[{"b.py": "bad\n"}], two=[{"a.py": "a\ny\n"}]
    )
    found = World(project).verified()
    assert aside(found) == ["one/0"]
    assert steps(found.stack) == [["two/0"]]


def test_a_fix_that_is_set_aside_takes_the_tests_it_carries_with_it(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_one.py": has("test_one", "a.py", "fixed")}, {"a.py": "a\nfixed\n", "b.py": "bad\n"}],
        two=[{"README.md": "docs\n"}],
    )
    world = World(project)
    found = world.verified()
    assert aside(found) == ["one/1", "one/0"]
    assert found.reds[1] == Aside(
        group=world.group("one", 0), why=f"it travels with {world.group('one', 1).name}, which was set aside"
    )
    assert steps(found.stack) == [["two/0"]]
    assert not found.stack.left


def test_a_file_that_cannot_be_collected_is_traced_to_its_change(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_base.py": "def test_a(:\n"}],
        two=[{"tests/test_new.py": "def\n"}],
        three=[{"c": ""}],
    )
    found = World(project).verified()
    assert aside(found) == ["one/0", "two/0"]
    assert found.reds[1].test == "tests/test_new.py"
    assert found.tests == {"passed": 2}


def test_a_suite_that_cannot_be_collected_at_all_is_traced_to_its_change(tmp_path: Path) -> None:
    project = Project(tmp_path, BASE, one=[{"a.py": "a\nfixed\n"}], two=[{"conftest.py": "BROKEN\n"}])
    world = World(project)
    assert aside(world.verified()) == ["two/0"]
    assert "the tests cannot be collected: conftest.py cannot be read" in world.said


def test_when_pytest_runs_nowhere_that_is_an_error(tmp_path: Path) -> None:
    project = Project(tmp_path, {**BASE, "conftest.py": "BROKEN\n"}, one=[{"a.py": "a\nfixed\n"}])
    with pytest.raises(MngrError, match=r"conftest\.py cannot be read") as caught:
        World(project).verified()
    assert caught.value.hint == "mend it; --no-verify integrates without running tests"


def test_a_change_that_mends_the_collection_is_no_error(tmp_path: Path) -> None:
    project = Project(tmp_path, {**BASE, "conftest.py": "BROKEN\n"}, one=[{"tests/conftest.py": "", "conftest.py": ""}])
    found = World(project).verified()
    assert aside(found) == []
    assert found.tests == {"passed": 2}


def test_functions_in_files_that_pytest_would_not_run_are_no_tests(tmp_path: Path) -> None:
    project = Project(tmp_path, BASE, one=[{"data/test_sample.py": has("test_sample", "a.py", "never")}])
    assert steps(World(project).verified().stack) == [["one/0"]]


def test_a_command_in_place_of_tests_is_bisected_by_its_exit_code(tmp_path: Path) -> None:
    tests = {"tests/test_one.py": has("test_one", "a.py", "never")}
    project = Project(tmp_path, BASE, one=[{"a.py": "x\n"}, tests], two=[{"bad": ""}], three=[{"c.py": "c\n"}])
    world = World(project, how=How(check="make check", workers=2))
    found = world.verified()
    assert aside(found) == ["two/0"]
    assert found.reds[0].test == "make check"
    assert {test for job in world.suite.runs for test in job.tests} == {"make check"}


def test_what_is_red_and_mended_again_is_innocent_of_a_later_red(tmp_path: Path) -> None:
    check = """def test_c():
    a, b = files['a.py'], files['b.py']
    assert ('uses' not in a or 'helper' in b) and 'bad' not in files.get('c.py', '')
"""
    project = Project(
        tmp_path,
        {**BASE, "tests/test_c.py": check},
        one=[{"a.py": "a\nuses\n"}],
        two=[{"b.py": "b\nhelper\n"}],
        three=[{"d.py": "d\n"}],
        four=[{"c.py": "bad\n"}],
        five=[{"e.py": "e\n"}],
    )
    found = World(project).verified()
    assert aside(found) == ["four/0"]
    assert steps(found.stack) == [["one/0"], ["two/0"], ["three/0"], ["five/0"]]


def test_a_change_that_hides_a_test_is_set_aside(tmp_path: Path) -> None:
    world = World(Project(tmp_path, BASE, one=[{"hidden": "tests/test_base.py::test_b"}], two=[{"c.py": "c\n"}]))
    found = world.verified()
    assert aside(found) == ["one/0"]
    assert (found.reds[0].test, found.reds[0].outcome) == ("tests/test_base.py::test_b", "error")
    assert found.removed == []


def test_a_test_whose_function_is_gone_is_told_with_the_change_that_removed_it(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_base.py": has("test_a", "a.py", "a")}],
        two=[{"b.py": "bad\n"}],
        three=[{"tests/test_new.py": has("test_new", "a.py", "a")}],
    )
    world = World(project)
    found = world.verified()
    assert found.removed == [Removed(test="tests/test_base.py::test_b", by=world.group("one"))]
    assert (found.reds, found.still_red, found.tests) == ([], [], {"passed": 2})


def test_a_collection_that_fails_is_red_though_each_test_would_pass(tmp_path: Path) -> None:
    """Like a file that ends the interpreter when it is imported."""
    project = Project(tmp_path, BASE, one=[{"c.py": "c\n"}], two=[{"conftest.py": "EXIT\n"}], three=[{"d.py": ""}])
    found = World(project).verified()
    assert aside(found) == ["two/0"]
    assert found.reds[0].why == f"it breaks {COLLECTING}: green with everything before it, red with it"
    assert found.tests == {"passed": 2}


def test_a_new_test_is_not_said_to_have_been_green_before(tmp_path: Path) -> None:
    project = Project(tmp_path, BASE, one=[{"tests/test_one.py": has("test_one", "a.py", "never")}])
    [red] = World(project).verified().reds
    assert red.why == "it breaks tests/test_one.py::test_one: not there before, red with it"


def test_a_check_that_fails_on_the_base_is_an_error(tmp_path: Path) -> None:
    world = World(Project(tmp_path, {**BASE, "bad": ""}, one=[{"a.py": "x\n"}]), how=How(check="make", workers=2))
    with pytest.raises(MngrError, match="make fails on the base"):
        world.suite.try_check()
    (tmp_path / "other").mkdir()
    World(Project(tmp_path / "other", BASE, one=[{"bad": ""}]), how=How(check="make")).suite.try_check()


# Together


LEAKS = "def test_clean():\n    assert not ('leaks' in files.get('b.py', '') and 'together' in files)\n"


def test_what_breaks_a_test_only_in_company_is_set_aside(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {**BASE, "tests/test_clean.py": LEAKS},
        one=[{"a.py": "a\nfixed\n"}],
        two=[{"b.py": "b\nleaks\n"}],
        three=[{"c.py": "c\n"}],
    )
    found = World(project).verified()
    assert aside(found) == ["two/0"]
    assert found.reds[0].why == (
        "it breaks tests/test_clean.py::test_clean when all tests are run together: "
        "green with everything before it, red with it"
    )
    assert (found.flaky, found.still_red, found.tests) == ([], [], {"passed": 3})


def test_a_test_that_its_company_makes_red_is_not_flaky_though_it_is_green_alone(tmp_path: Path) -> None:
    """Among a part of the others it was red, and green when it was run again."""
    project = Project(tmp_path, {**BASE, "tests/test_clean.py": LEAKS}, two=[{"b.py": "b\nleaks\n"}])
    world = World(project)
    world.suite.flakes = {"tests/test_clean.py::test_clean": ["failed"]}
    found = world.verified()
    assert (aside(found), found.flaky) == (["two/0"], [])


def test_what_is_red_in_company_at_the_base_too_is_no_reason(tmp_path: Path) -> None:
    base = {**BASE, "b.py": "leaks\n", "tests/test_clean.py": LEAKS}
    found = World(Project(tmp_path, base, one=[{"a.py": "a\nfixed\n"}])).verified()
    assert (found.reds, found.still_red) == ([], [])
    assert found.red_at_base == ["tests/test_clean.py::test_clean"]
    assert found.tests == {"passed": 2, "failed": 1}


def test_what_is_red_in_company_with_nobody_to_blame_is_told_as_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mngr.integrate.checking.verify.MOST_ROUNDS", 0)
    project = Project(tmp_path, {**BASE, "tests/test_clean.py": LEAKS}, two=[{"b.py": "b\nleaks\n"}])
    assert World(project).verified().still_red == ["tests/test_clean.py::test_clean"]


# What is only told


def test_a_base_that_is_green_in_a_new_checkout_is_green(tmp_path: Path) -> None:
    """What others have left in one that was used is no excuse for a change that breaks something."""
    world = World(Project(tmp_path, BASE, one=[{"b.py": "bad\n"}], two=[{"c.py": "c\n"}]))
    world.suite.spoilt = {world.scratch.tree_of(world.scratch.base)}
    found = world.verified()
    assert (aside(found), found.red_at_base) == (["one/0"], [])


def test_tests_that_turn_green_by_a_change_of_tests_alone_are_told_with_it(tmp_path: Path) -> None:
    """One that a fix turns green is not."""
    lies = "def test_lies():\n    assert 'quiet' in files.get('tests/conftest.py', '')\n"
    project = Project(
        tmp_path,
        {**BASE, "tests/test_lies.py": lies, "tests/test_true.py": has("test_true", "a.py", "fixed")},
        one=[{"a.py": "a\nfixed\n"}],
        two=[{"tests/conftest.py": "# quiet\n"}],
        three=[{"tests/data.txt": "3\n"}],
    )
    world = World(project)
    [turned] = world.verified().turned
    assert (turned.group, turned.tests) == (world.group("two"), ["tests/test_lies.py::test_lies"])


@pytest.mark.parametrize("outcomes", [["failed"], ["failed", "passed", "failed"], ["timed out"]])
def test_a_flake_throws_nothing_away(tmp_path: Path, outcomes: list[str]) -> None:
    world = World(Project(tmp_path, BASE, one=[{"a.py": "a\nfixed\n"}], two=[{"c.py": "c\n"}]))
    world.suite.flakes = {"tests/test_base.py::test_b": outcomes}
    found = world.verified()
    assert (found.reds, found.flaky, found.still_red) == ([], ["tests/test_base.py::test_b"], [])
    assert steps(found.stack) == [["one/0"], ["two/0"]]
    assert found.tests == {"passed": 2}


@pytest.mark.parametrize("later", [[], ["passed", "failed"], ["passed", "failed", "failed", "passed"]])
def test_a_test_that_is_red_twice_by_chance_throws_nothing_away(tmp_path: Path, later: list[str]) -> None:
    """It is green when it is asked at the base, and nowhere red for sure."""
    world = World(Project(tmp_path, BASE, one=[{"a.py": "a\nfixed\n"}], two=[{"c.py": "c\n"}], three=[{"d.py": ""}]))
    world.suite.flakes = {"tests/test_base.py::test_b": ["failed", "failed", *later]}
    found = world.verified()
    assert (found.reds, found.flaky) == ([], ["tests/test_base.py::test_b"])


def test_a_test_that_is_red_at_the_base_is_told_and_no_reason(tmp_path: Path) -> None:
    base = {**BASE, "tests/test_red.py": has("test_red", "a.py", "never")}
    project = Project(tmp_path, base, one=[{"a.py": "a\nfixed\n"}], two=[{"b.py": "bad\n"}])
    found = World(project).verified()
    assert found.red_at_base == ["tests/test_red.py::test_red"]
    assert found.still_red == []
    assert aside(found) == ["two/0"]
    assert found.tests == {"passed": 2, "failed": 1}


def test_a_test_that_is_red_at_the_base_and_mended_is_not_told_as_red(tmp_path: Path) -> None:
    base = {**BASE, "tests/test_red.py": has("test_red", "a.py", "fixed")}
    found = World(Project(tmp_path, base, one=[{"a.py": "a\nfixed\n"}])).verified()
    assert found.red_at_base == []
    assert found.tests == {"passed": 3}


def test_what_could_not_be_traced_in_time_is_told_as_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mngr.integrate.checking.verify.MOST_ROUNDS", 0)
    found = World(Project(tmp_path, BASE, one=[{"b.py": "bad\n"}])).verified()
    assert (found.reds, found.still_red) == ([], ["tests/test_base.py::test_b"])
    assert found.tests == {"passed": 1, "failed": 1}


# Without a fix


def test_each_fix_is_reverted_and_the_tests_of_its_neighbours_are_run(tmp_path: Path) -> None:
    """The second one needs the first. The third has changed what the fourth has changed again."""
    both = "def test_two():\n    assert 'fixed' in files['a.py'] and 'mended' in files['b.py']\n"
    base = {**BASE, "c.py": "c\n", "tests/test_two.py": both}
    project = Project(
        tmp_path,
        base,
        one=[{"a.py": "a\nfixed\n"}],
        two=[{"b.py": "b\nmended\n"}],
        three=[{"c.py": "cc\n"}, {"c.py": "ccc\n"}],
    )
    tests = {"two": "tests/test_two.py::test_two", "three": "tests/test_base.py::test_a"}
    sources = [each.replace(test=tests.get(each.branch, "")) for each in project.sources()]
    found = World(project, sources).verified()
    assert steps(found.stack) == [["one/0"], ["two/0"], ["three/0"], ["three/1"]]
    assert [(each.clean, each.conflicts, each.breaks, each.tests) for each in found.reverts] == [
        (True, [], ["tests/test_two.py::test_two"], 1),
        (True, [], [], 1),
        (False, ["c.py"], [], 0),
        (True, [], [], 0),
    ]


def test_the_evidence_of_a_fix_is_found_right_before_and_with_it(tmp_path: Path) -> None:
    tests = has("test_one", "a.py", "fixed") + has("test_two", "b.py", "mended") + has("test_three", "c.py", "")
    project = Project(
        tmp_path,
        {**BASE, "tests/test_all.py": tests},
        one=[{"a.py": "a\nfixed\n"}],
        two=[{"b.py": "b\nmended\n"}],
        three=[{"c.py": "c\n"}],
        four=[{"d.py": "d\n"}],
    )
    of = {"one": "test_one", "two": "test_two", "three": "test_three", "four": "test_one"}
    sources = [each.replace(test=f"tests/test_all.py::{of[each.branch]}") for each in project.sources()]
    world = World(project, sources)
    assert world.verified().checked == {
        world.group("one").key: ["tests/test_all.py::test_one failed before, passes with it"],
        world.group("two").key: ["tests/test_all.py::test_two failed before, passes with it"],
        world.group("three").key: ["tests/test_all.py::test_three passes"],
    }


# Doing it again


def busy(tmp_path: Path) -> World:
    project = Project(
        tmp_path,
        BASE,
        one=[{"tests/test_one.py": has("test_one", "a.py", "fixed")}, {"a.py": "a\nfixed\n"}],
        two=[{"b.py": "bad\n"}],
        three=[{"tests/test_three.py": has("test_three", "a.py", "never")}],
        four=[{"c.py": "c\n"}],
    )
    return World(project)


def test_what_is_known_is_not_run_again(tmp_path: Path) -> None:
    world = busy(tmp_path)
    first = world.verified()
    assert aside(first) == ["three/0", "two/0"]
    asked = [(job.tree, test) for job in world.suite.runs for test in job.tests]
    assert max(map(asked.count, asked)) <= 3
    world.suite, world.said = world.new_suite(), []
    assert world.verified() == first
    assert world.suite.runs == []
    assert not [line for line in world.said if not line.startswith("set aside: ")]


def test_after_an_interruption_it_goes_on_with_what_is_known(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = busy(tmp_path / "whole")
    expected, many = whole.verified(), len(whole.suite.runs)
    world, runs = busy(tmp_path / "parts"), 0
    while True:
        world.suite = world.new_suite()
        world.suite.ends_after = 3
        try:
            found = world.verified()
        except KeyboardInterrupt:
            runs += len(world.suite.runs)
            assert len(world.suite.runs) == 3
        else:
            break
    assert runs + len(world.suite.runs) == many
    assert (aside(found), found.tests, found.checked) == (aside(expected), expected.tests, expected.checked)


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    world = busy(tmp_path)
    first = world.verified()
    memory = Path(world.directory) / "outcomes.jsonl"
    whole = memory.read_text()
    memory.write_text(whole[: len(whole) - 40] + "\n[1]\n{}\n" + '{"how": "x", "tree": "y", "turn": 1, "outcomes": 1}')
    world.suite = world.new_suite()
    assert world.verified() == first
    assert len(world.suite.runs) == 1
    world.suite = world.new_suite()
    assert world.verified() == first
    assert world.suite.runs == []


def test_a_late_branch_costs_only_what_is_new(tmp_path: Path) -> None:
    """What was known about trees that it does not change is not run again: the base, and the fold."""
    world = busy(tmp_path)
    world.verified()
    known = {(job.tree, test) for job in world.suite.runs for test in job.tests}
    world.project.branch("late", [{"e.py": "e\n"}])
    late = World(world.project)
    found = late.verified()
    assert aside(found) == ["three/0", "two/0"]
    assert known.isdisjoint((job.tree, test) for job in late.suite.runs for test in job.tests)


# The tests of a change


def test_the_own_tests_of_a_change_are_what_it_adds_or_changes(tmp_path: Path) -> None:
    before = "import x\ndef test_same(): pass\ndef test_other(): assert 1\nclass TestA:\n    def test_in(self): pass\n"
    after = before.replace("assert 1", "assert 2").replace("pass", "pass  # said") + "    def test_more(self): pass\n"
    project = Project(
        tmp_path,
        {"tests/test_a.py": before, "tests/gone.py": "def test_gone(): pass\n"},
        one=[{"tests/test_a.py": after, "tests/gone.py": None, "tests/\udcff é.py": "async def test_new(): pass\n"}],
        two=[{"src/a.py": "def test_program(): pass\n", "tests/test_b.py": "def test_b(): pass\n"}],
        three=[{"tests/data/f.py": "def f(): pass\n", "README.md": "def test(): pass\n", "tests/no.py": "def :"}],
    )
    changes = project.changes()
    found = touched(project.scratch(), changes)
    assert [sorted(found.get(change.id, [])) for change in changes] == [
        ["tests/test_a.py::TestA::test_more", "tests/test_a.py::test_other", "tests/\udcff é.py::test_new"],
        ["tests/test_b.py::test_b"],
        ["tests/data/f.py::f"],
    ]
