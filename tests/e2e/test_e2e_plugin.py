"""The pytest plugin as a stranger uses it: a project of its own, the real pytest, and what is left afterwards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.home import is_alive, wait_until


class Project:
    """A directory with tests, and pytest in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Not the plugins of others who happen to be installed here: a start takes half as long again with them.
        without = " ".join(f"-p no:{name}" for name in ("cacheprovider", "hypothesispytest", "anyio"))
        (path / "pytest.ini").write_text(f"[pytest]\naddopts = {without}\n")

    def test(self, source: str, name: str = "test_it.py") -> Path:
        path = self.path / name
        path.write_text("from mngr.e2e import expect\n\n\n" + textwrap.dedent(source).strip() + "\n")
        return path

    def pytest(self, *words: str, **variables: str) -> tuple[int, str]:
        ours = ("PYTEST_", "MNGR_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | variables
        argv = [sys.executable, "-m", "pytest", *words]
        done = subprocess.run(argv, cwd=self.path, env=env, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def tests(self, run: str = "latest") -> dict[str, Path]:
        """The directories of artifacts, by the names of the tests."""
        found = (self.path / ".test_output" / "e2e" / run).glob("*/result.json")
        return {json.loads(path.read_text())["name"]: path.parent for path in found}

    def result(self, name: str, run: str = "latest") -> Any:
        return json.loads((self.tests(run)[name] / "result.json").read_text())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_test_that_passes_leaves_its_transcript(project: Project) -> None:
    project.test('''
        def test_greets(e2e):
            """Says hello."""
            e2e.write_tutorial_block("""
                # greet
                echo hello
            """)
            expect(e2e.run("echo hello; echo oh >&2", comment="greet")).to_succeed().to_contain("hello")
            expect(e2e.run("exit 3")).to_have_exit_code(3)
    ''')
    code, told = project.pytest()
    assert code == 0, told
    assert "mngr e2e view" in told
    place = project.tests()["test_greets"]
    assert (place / "transcript.txt").read_text() in (
        "# greet\n$ echo hello; echo oh >&2\n  hello\n! oh\n$ exit 3\n? 3\n",
        "# greet\n$ echo hello; echo oh >&2\n! oh\n  hello\n$ exit 3\n? 3\n",
    )
    assert (place / "docstring.txt").read_text() == "Says hello.\n"
    assert (place / "block.sh").read_text() == "# greet\necho hello\n"
    result = project.result("test_greets")
    assert (result["status"], result["test"], result["line"]) == ("passed", "test_it.py::test_greets", 4)
    assert [block["text"] for block in result["blocks"]] == ["# greet\necho hello"]
    steps = [json.loads(line) for line in (place / "steps.jsonl").read_text().splitlines()]
    assert [(step["n"], step["command"], step["exit_code"]) for step in steps][1] == (2, "exit 3", 3)
    run = json.loads((place.parent / "run.json").read_text())
    assert run["finished"] >= run["started"]
    assert (project.path / ".test_output" / ".gitignore").read_text() == "*\n"


def test_what_an_agent_runs_is_left_where_it_is_brought_home_from(project: Project, tmp_path: Path) -> None:
    project.test("def test_it(e2e): e2e.run('true')")
    (tmp_path / "home").mkdir()
    code, told = project.pytest(MNGR_ARTIFACTS=str(tmp_path / "home"))
    assert code == 0, told
    assert len(list((tmp_path / "home").glob("e2e/*/*/transcript.txt"))) == 2  # the run, and `latest`
    assert not (tmp_path / "home" / ".gitignore").exists()
    assert not (project.path / ".test_output").exists()


def test_a_failure_shows_the_last_phase_one_diff_and_how_to_replay(project: Project) -> None:
    project.test("""
        def test_fails(e2e):
            e2e.run("echo arranging", comment="arrange")
            result = e2e.run("echo apples; echo broken >&2; exit 2", comment="act")
            expect(result).to_succeed()
    """)
    code, told = project.pytest("--e2e-run", "red")
    assert code == 1
    assert re.search(r"# arrange  \[1 command, [\d.]+ s\]\n# act\n\$ echo apples", told)
    assert "! broken" in told
    assert "  arranging\n" not in told
    assert "pytest test_it.py::test_fails --e2e-keep yes" in told
    assert "expectation.py" not in told, "the traceback ends in the test"
    result = project.result("test_fails", "red")
    assert result["status"] == "failed"
    assert "to succeed" in result["failure"]


def test_artifacts_and_environments_are_kept_as_asked(project: Project) -> None:
    project.test("""
        def test_green(e2e):
            e2e.run("true")

        def test_red(e2e):
            e2e.run("sleep 1000 & echo $! >pid")
            assert False

        import pytest

        @pytest.fixture
        def ends_badly(e2e):
            yield
            raise RuntimeError

        def test_red_at_its_very_end(e2e, ends_badly):
            pass
    """)
    project.pytest("--e2e-artifacts", "no")
    assert not (project.path / ".test_output").exists()
    _, told = project.pytest("--e2e-artifacts", "on-failure", "--e2e-keep", "on-failure")
    assert sorted(project.tests()) == ["test_red", "test_red_at_its_very_end"]
    [kept] = re.findall(r"kept test_it.py::test_red: enter with (\S+)/enter, remove with \S+/remove", told)
    pid = int((Path(kept) / "work" / "pid").read_text())
    assert is_alive(pid)
    subprocess.run([f"{kept}/remove"], check=True)
    assert not is_alive(pid)
    assert not Path(kept).exists()


def test_all_workers_of_xdist_are_one_run_and_odd_names_have_directories_of_their_own(project: Project) -> None:
    project.test("""
        import pytest

        @pytest.mark.parametrize("word", ["a/b", "a b", "ä", "../x", "y" * 300, "a-b", "1", "2"])
        def test_many(e2e, word):
            assert e2e.run("echo hello").stdout == "hello\\n"
    """)
    code, told = project.pytest("-n", "2", "--e2e-keep", "yes")
    assert code == 0, told
    assert len(project.tests()) == 8
    assert len(list((project.path / ".test_output" / "e2e").iterdir())) == 2  # the run, and `latest`
    kept = re.findall(r"remove with (\S+)", told)
    assert len(kept) == 8
    for script in kept:
        subprocess.run([script], check=True)


def test_a_project_adds_to_the_fixture(project: Project) -> None:
    (project.path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef e2e(e2e):\n    e2e.env['API_TOKEN'] = 'very-secret'\n    yield e2e\n"
    )
    project.test("""
        def test_secret(e2e):
            assert e2e.run("echo $API_TOKEN", comment="very-secret").stdout == "very-secret\\n"
            e2e.run("echo $PASSWORD", env={"PASSWORD": "also-secret"})
            assert 0, "very-secret"
    """)
    project.pytest()
    written = "".join(path.read_text() for path in project.tests()["test_secret"].iterdir())
    assert "very-secret" not in written
    assert "also-secret" not in written
    assert "[API_TOKEN]" in written


def test_a_killed_pytest_leaves_no_process_and_no_directory(project: Project) -> None:
    project.test("""
        import os, signal

        def test_killed(e2e):
            e2e.run("setsid sleep 1000 >/dev/null 2>&1 & echo $!", comment="hide")
            open("told", "w").write(f"{e2e.root} {e2e.steps[0].lines[0][1]}")
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    code, _ = project.pytest()
    assert code == -9
    root, pid = (project.path / "told").read_text().split()
    wait_until(lambda: not os.path.exists(root))
    assert not is_alive(int(pid))
    assert project.result("test_killed")["status"] == "running"
    assert "# hide" in (project.tests()["test_killed"] / "transcript.txt").read_text()


def test_what_came_of_a_test_is_what_pytest_says(project: Project) -> None:
    """Also when it is not the test itself that decides."""
    project.test("""
        import pytest

        @pytest.fixture
        def skips(e2e):
            pytest.skip("not today")

        @pytest.fixture
        def fails(e2e):
            raise RuntimeError

        @pytest.fixture
        def ends_badly(e2e):
            yield
            raise RuntimeError

        def test_skipped(e2e, skips): pass
        def test_not_begun(e2e, fails): pass
        def test_ends_badly(e2e, ends_badly): pass
        @pytest.mark.xfail(strict=True)
        def test_expected_to_fail(e2e): assert 0
    """)
    _, told = project.pytest("--e2e-keep", "on-failure")
    verdicts = {name: project.result(name)["status"] for name in project.tests()}
    assert verdicts == {
        "test_skipped": "skipped",
        "test_not_begun": "failed",
        "test_ends_badly": "failed",
        "test_expected_to_fail": "skipped",
    }
    for script in re.findall(r"remove with (\S+)", told):
        subprocess.run([script], check=True)
    assert re.findall(r"kept \S+::(\w+)", told) == ["test_not_begun"]


def test_odd_tests_cost_nobody_the_report(project: Project) -> None:
    project.test("""
        import os

        def test_bytes(e2e):
            expect(e2e.run("echo '\\udcff'; exit 1")).to_succeed()

        def test_elsewhere(e2e):
            os.chdir(e2e.dir)
            e2e.env["API_TOKEN"] = "very-" + "secret"
            e2e.run("echo $API_TOKEN; head -c 100000 /dev/zero")
            assert 0

        def test_here_no_more(e2e):
            assert 0

        def test_crash(e2e):
            os._exit(3)
    """)
    assert "very-secret" not in project.pytest("--e2e-artifacts", "no", "-k", "elsewhere")[1]
    _, told = project.pytest("-n", "1")
    assert "INTERNALERROR" not in told
    assert "4 failed" in told
    assert "very-secret" not in told
    assert max(map(len, told.splitlines())) < 1000
    assert {project.result(name)["status"] for name in project.tests()} == {"failed"}


def test_a_run_with_a_name_that_was_there_is_a_new_one(project: Project) -> None:
    project.test("def test_x(e2e): pass")
    runs = project.path / ".test_output" / "e2e"
    begun = []
    for _ in range(2):
        assert project.pytest("--e2e-run", "ci", "-q")[0] == 0
        assert os.readlink(runs / "latest") == "ci"
        begun.append(json.loads((runs / "ci" / "run.json").read_text())["started"])
        (runs / "latest").unlink()
        (runs / "latest").symlink_to("other")
    assert begun[0] < begun[1]


def test_the_replay_is_for_where_you_are(project: Project) -> None:
    (project.path / "tests").mkdir()
    project.test("def test_x(e2e): assert 0", "tests/test_deep.py")
    argv = [sys.executable, "-m", "pytest", "-q"]
    told = subprocess.run(argv, cwd=project.path / "tests", capture_output=True, text=True).stdout
    assert "\npytest test_deep.py::test_x --e2e-keep yes" in told


def test_old_runs_without_a_name_go(project: Project) -> None:
    project.test("def test_x(e2e): pass")
    runs = project.path / ".test_output" / "e2e"
    for n in range(30):
        (runs / f"2026-01-01_00-00-{n:02}_1").mkdir(parents=True)
    (runs / "mine").mkdir()
    project.pytest("-q")
    left = sorted(path.name for path in runs.iterdir())
    assert len(left) == 20 + 3  # with the new one, `latest` and `mine`
    assert left[0] == "2026-01-01_00-00-10_1"


def test_terminals_are_recorded_with_a_marker_for_every_step(project: Project) -> None:
    project.test("""
        def test_types(e2e):
            terminal = e2e.spawn("cat", comment="a program that answers", name="cat")
            terminal.type("hello").press("Enter").wait_for_text("hello\\nhello")
            e2e.run("true", comment="meanwhile")
            terminal.press("C-d")
            assert terminal.wait_for_exit() == 0
    """)
    code, told = project.pytest()
    assert code == 0, told
    [cast] = project.result("test_types")["casts"]
    assert (cast["file"], cast["width"], cast["height"]) == ("cat.cast", 80, 24)
    lines = (project.tests()["test_types"] / "cat.cast").read_text().splitlines()
    labels = [event[2] for event in map(json.loads, lines[1:]) if event[1] == "m"]
    assert "1 a program that answers" in labels
    assert any(label.endswith("meanwhile") for label in labels)
    transcript = (project.tests()["test_types"] / "transcript.txt").read_text()
    assert "$ cat\n< hello\n< Enter\n~ " in transcript


def test_snapshots_are_rewritten_by_all_workers_and_pass_then(project: Project) -> None:
    source = project.test('''
        def test_one(e2e):
            expect(e2e.run("echo one; pwd").stdout).to_match_snapshot("")

        def test_two(e2e):
            expect(e2e.run("echo two").stdout).to_match_snapshot("""
                tow
            """)
    ''')
    assert project.pytest()[0] == 1
    code, told = project.pytest("--e2e-update", "-n", "2")
    assert "test_it.py" in told
    assert "[WORK]" in source.read_text()
    assert "tow" not in source.read_text()
    code, told = project.pytest()
    assert code == 0, told


def test_options_that_make_no_sense(project: Project) -> None:
    project.test("def test_x(e2e): pass")
    names = ("a/b", ".hidden", "latest", "view")
    script = f"import pytest\nfor name in {names}: assert pytest.main(['--e2e-run', name]) == 4"
    done = subprocess.run([sys.executable, "-c", script], cwd=project.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is no name for a directory") == len(names)


def test_what_a_stranger_loads(project: Project) -> None:
    """Nothing of the rest of mngr; and before the fixture is asked for, next to nothing."""
    told = loaded_by("import mngr.e2e; mngr.e2e.expect; mngr.e2e.E2eSession")
    assert {name for name in told if not name.startswith("mngr.e2e")} == {"mngr"}
    assert "mngr.e2e.view" not in told
    assert loaded_by("import mngr.e2e.plugin") == ["mngr", "mngr.e2e", "mngr.e2e.plugin"]


def loaded_by(line: str) -> list[str]:
    """The modules of mngr that are there afterwards."""
    script = f"{line}\nimport sys\nprint(*sorted(name for name in sys.modules if name.split('.')[0] == 'mngr'))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()
