"""When a verification is believed: with real git and the real pytest. Each of these projects had a green report once,
and a red branch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mngr.integrate.checking.suite import How, Suite
from mngr.integrate.checking.verify import Verified, verify
from mngr.integrate.picking.stack import Plan
from mngr.process import quote
from tests.integration import Commit, Project

PYTEST = f"{quote(sys.executable)} -m pytest -p no:cacheprovider"
STATE = "CACHE = []\ndef work():\n    return 1\n"
BASE: Commit = {"state.py": STATE, "conftest.py": "", "tests/test_z.py": "def test_z(): pass\n"}


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pytest that the projects are tested with: it starts in half the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def verified(project: Project, place: str = "integration", **how: object) -> Verified:
    scratch = project.scratch(place)
    rest, fixes = project.sorted_out()
    values = {"pytest": PYTEST, "workers": 2, "limit": 60.0, **how}
    suite = Suite(scratch, str(project.path.parent / place), How(**values))  # type: ignore[arg-type]
    return verify(scratch, Plan(rest=rest, fixes=fixes), suite, project.sources())


def aside(found: Verified) -> list[str]:
    return [each.group.first.branch for each in found.reds]


# Together


def test_a_fix_that_makes_another_file_red_in_one_run_with_it_is_set_aside(tmp_path: Path) -> None:
    base: Commit = {
        **BASE,
        "tests/test_a.py": "import state\ndef test_a(): assert state.work() == 1\n",
        "tests/test_z.py": "import state\ndef test_clean(): assert state.CACHE == []\n",
    }
    project = Project(tmp_path, base, leaky=[{"state.py": STATE.replace("return", "CACHE.append(1); return")}])
    found = verified(project)
    assert (aside(found), found.flaky) == (["leaky"], [])
    assert "tests/test_z.py::test_clean when all tests are run together" in found.reds[0].why


@pytest.mark.proof
def test_files_that_cannot_be_collected_together_are_red(tmp_path: Path) -> None:
    """Two modules of the same name, as pytest imports them by default."""
    same = "def test_same(): pass\n"
    project = Project(
        tmp_path, BASE, same=[{"tests/x/test_same.py": same, "tests/y/test_same.py": same}], other=[{"c.py": "c = 1\n"}]
    )
    found = verified(project)
    assert (aside(found), found.flaky) == (["same"], [])
    assert found.tests == {"passed": 1}


def test_what_the_project_leaves_out_of_its_runs_is_left_out_of_the_whole_one(tmp_path: Path) -> None:
    ini = "[pytest]\naddopts = -m 'not slow' -x\nmarkers = slow\n"
    slow = "import os, pytest\n@pytest.mark.slow\ndef test_slow(): os._exit(3)\ndef test_dies(): os._exit(4)\n"
    project = Project(
        tmp_path, {**BASE, "pytest.ini": ini, "tests/test_slow.py": slow}, one=[{"state.py": f"{STATE}# more\n"}]
    )
    found = verified(project, workers=1)
    assert (found.reds, found.still_red, found.red_at_base) == ([], [], ["tests/test_slow.py::test_dies"])
    assert found.tests == {"passed": 1, "error": 1}


# What is not run any more


def test_parameters_that_are_cut_and_tests_that_are_skipped_are_named_with_the_change(tmp_path: Path) -> None:
    many = 'import pytest\n@pytest.mark.parametrize("n", [1, 2, 3])\ndef test_many(n): pass\ndef test_once(): pass\n'
    fewer = many.replace(", 2, 3", "")
    skips = many.replace("def test_once", "@pytest.mark.skip\ndef test_once")
    project = Project(
        tmp_path,
        {**BASE, "tests/test_m.py": many},
        docs=[{"README.md": "words\n"}],
        fewer=[{"tests/test_m.py": fewer}],
        skips=[{"tests/test_m.py": skips}],
    )
    found = verified(project, workers=1)
    assert [(each.test, each.by and each.by.first.branch, each.how) for each in found.removed] == [
        ("tests/test_m.py::test_many[2]", "fewer", "parameters removed"),
        ("tests/test_m.py::test_many[3]", "fewer", "parameters removed"),
        ("tests/test_m.py::test_once", "skips", "skipped"),
    ]
    assert found.tests == {"passed": 2, "skipped": 1}


# The checkout


def test_what_tests_add_to_what_the_setup_made_is_gone_for_the_next_tree(tmp_path: Path) -> None:
    test = """\
import os, state
def test_db():
    assert os.listdir("var") == ["keep"]
    with open("var/db", "w") as file: file.write("x")
    assert state.work() == 1
"""
    project = Project(
        tmp_path, {**BASE, "tests/test_db.py": test}, bad=[{"state.py": STATE.replace("return 1", "return 2")}]
    )
    log = tmp_path / "log"
    setup = f"mkdir var && touch var/keep && echo x >>{quote(str(log))}"
    found = verified(project, setup=setup, workers=1)
    assert (aside(found), found.red_at_base) == (["bad"], [])
    assert log.read_text() == "x\n"


@pytest.mark.parametrize(
    "spoils", [pytest.param("os.remove('var/keep')", marks=pytest.mark.proof), "open('var/keep', 'w').write('more')"]
)
def test_what_tests_change_of_what_the_setup_made_is_made_anew(tmp_path: Path, spoils: str) -> None:
    test = f"""\
import os, state
def test_keep():
    assert open("var/keep").read() == "kept\\n"
    {spoils}
    assert state.work() == 1
"""
    project = Project(
        tmp_path, {**BASE, "tests/test_keep.py": test}, bad=[{"state.py": STATE.replace("return 1", "return 2")}]
    )
    found = verified(project, setup="mkdir var && echo kept >var/keep", workers=1)
    assert (aside(found), found.red_at_base) == (["bad"], [])


@pytest.mark.parametrize(
    ("setup", "reds"),
    [
        ("echo 'X = 1' >gen.py", []),
        pytest.param("test -e gen.py || echo 'X = 1' >gen.py", ["tracks"], marks=pytest.mark.proof),
    ],
)
def test_what_the_setup_makes_and_a_branch_tracks_is_there_on_either_side(
    tmp_path: Path, setup: str, reds: list[str]
) -> None:
    base: Commit = {
        **BASE,
        ".gitignore": "gen.py\n",
        "tests/test_g.py": "import gen\ndef test_g(): assert gen.X == 1\n",
    }
    project = Project(tmp_path, base, tracks=[{"gen.py": "X = 2\n"}], other=[{"c.py": "c = 1\n"}])
    found = verified(project, setup=setup, workers=1)
    assert (aside(found), found.red_at_base, found.tests) == (reds, [], {"passed": 2})


def test_a_file_of_the_tree_that_the_setup_changes_stays_changed(tmp_path: Path) -> None:
    base: Commit = {
        **BASE,
        "version.py": "V = 0\n",
        "tests/test_v.py": "import version\ndef test_v(): assert version.V\n",
    }
    project = Project(tmp_path, base, one=[{"c.py": "c = 1\n"}], two=[{"d.py": "d = 1\n"}])
    log = tmp_path / "log"
    found = verified(project, setup=f"echo 'V = 1' >version.py; echo x >>{quote(str(log))}", workers=1)
    assert (found.reds, found.tests) == ([], {"passed": 2})
    assert log.read_text() == "x\n"


@pytest.mark.proof
def test_a_submodule_that_a_branch_moves_is_set_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    (tmp_path / "module").mkdir()
    module = Project(tmp_path / "module", {"a.py": "X = 1\n"}, new=[{"a.py": "X = 2\n"}])
    base: Commit = {
        **BASE,
        ".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = ../not-here\n',
        "s": ("160000", module.base),
        "tests/test_s.py": "def test_s(): assert open('s/a.py').read() == 'X = 1\\n'\n",
    }
    project = Project(tmp_path, base, bump=[{"s": ("160000", module.heads["new"])}], other=[{"c.py": "c = 1\n"}])
    project.git("config", "submodule.s.url", str(module.path))
    found = verified(project, setup="git submodule --quiet update --init", workers=1)
    assert (aside(found), found.red_at_base, found.tests) == (["bump"], [], {"passed": 2})


def test_a_checkout_has_the_filters_the_name_and_the_tags_of_its_repository(tmp_path: Path) -> None:
    test = """\
import subprocess
def git(*words): return subprocess.check_output(["git", *words], text=True).strip()
def test_it():
    assert open("x.big").read() == "hello\\n"
    assert git("config", "user.name") == "Their Own"
    assert git("describe", "--tags").startswith("v1")
"""
    base: Commit = {**BASE, ".gitattributes": "*.big filter=up\n", "x.big": "HELLO\n", "tests/test_it.py": test}
    project = Project(tmp_path, base, one=[{"c.py": "c = 1\n"}])
    for key, value in {"clean": "tr a-z A-Z", "smudge": "tr A-Z a-z", "required": "true"}.items():
        project.git("config", f"filter.up.{key}", value)
    project.git("config", "user.name", "Their Own")
    project.git("tag", "v1", "main")
    found = verified(project, workers=1)
    assert (found.reds, found.red_at_base, found.tests) == ([], [], {"passed": 2})


def test_a_colon_in_the_path_of_a_checkout_is_in_nobodys_way(tmp_path: Path) -> None:
    project = Project(tmp_path, BASE, one=[{"c.py": "c = 1\n"}])
    assert verified(project, "a:b", workers=1).tests == {"passed": 1}
