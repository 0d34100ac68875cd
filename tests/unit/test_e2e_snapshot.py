"""Snapshots: compared in the usual way, and with --e2e-update written into the source of the test that has them."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.e2e import expect, snapshot
from mngr.e2e.expectation import ExpectationFailed

VARIABLES = {"WORK": "/tmp/r/work"}


class Project:
    """One test file, run as Python runs it, under a plugin that updates."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "test_it.py"
        self.edits = directory / "edits.jsonl"

    def write(self, source: str, encoding: str = "utf-8") -> Project:
        self.file.write_bytes(source.encode(encoding))
        return self

    def run(self, text: str, update: bool = True) -> None:
        code = compile(self.file.read_bytes(), str(self.file), "exec")
        with snapshot.at_work(self.edits if update else None, lambda: VARIABLES):
            exec(code, {"expect": expect, "text": text})

    def update(self, text: str) -> str:
        self.run(text)
        applied = snapshot.apply(self.edits)
        assert applied == ([str(self.file)], [])
        self.edits.unlink()
        self.run(text, update=False)  # what was written matches
        return self.file.read_bytes().decode()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_snapshot_is_compared_with_its_holes() -> None:
    with snapshot.at_work(None, lambda: VARIABLES):
        expect("in /tmp/r/work\nx\ntook 3 s").to_match_snapshot("""
            in [WORK]
            ...
            took [DURATION]
        """)
        expect("a").not_.to_match_snapshot("b")
        with pytest.raises(ExpectationFailed) as failed:
            expect("a\nc").to_match_snapshot("a\nb")
    message = str(failed.value).splitlines()
    assert message[0] == "the text: expected to match the snapshot; --e2e-update rewrites it"
    assert message[4:] == [" a", "-b", "+c"]


def test_variables_are_those_of_the_test_that_runs() -> None:
    with snapshot.at_work(None, lambda: {"WORK": "/outer"}):
        with snapshot.at_work(None, lambda: {"WORK": "/inner"}):
            expect("/inner").to_match_snapshot("[WORK]")
        expect("/outer").to_match_snapshot("[WORK]")
    expect("[WORK]").to_match_snapshot("[WORK]")


@pytest.mark.parametrize("call", ["to_match_snapshot()", "to_match_snapshot('')", "to_match_snapshot(' \\n')"])
def test_an_empty_snapshot_fails_until_it_is_filled_in(project: Project, call: str) -> None:
    project.write(f"def test():\n    expect(text).{call}\ntest()\n")
    with pytest.raises(ExpectationFailed, match="which is empty; --e2e-update fills it in"):
        project.run("", update=False)
    with pytest.raises(ExpectationFailed, match="to_be_empty"):
        project.run("")
    filled = 'def test():\n    expect(text).to_match_snapshot("""\n        a\n          [WORK]\n    """)\ntest()\n'
    assert project.update("a\n  /tmp/r/work\n") == filled


def test_lines_that_match_keep_their_holes(project: Project) -> None:
    project.write('expect(text).to_match_snapshot("""\n    at [TIME]\n    ...\n    1 file\n""")\n')
    assert project.update("at 16:43\nx\n2 files") == (
        'expect(text).to_match_snapshot("""\n    at [TIME]\n    ...\n    2 files\n""")\n'
    )


def test_nothing_is_written_when_all_match(project: Project) -> None:
    project.write("expect(text).to_match_snapshot('a')\n").run("a")
    assert snapshot.apply(project.edits) == ([], [])
    assert project.file.read_text() == "expect(text).to_match_snapshot('a')\n"
    assert snapshot.apply(project.edits.with_name("none")) == ([], [])


def test_a_literal_on_lines_of_its_own_stays_there(project: Project) -> None:
    project.write("if True:\n    expect(text).to_match_snapshot(\n        'x'\n        'y'\n    )\n")
    assert project.update("a\n\nb") == (
        'if True:\n    expect(text).to_match_snapshot(\n        """\n        a\n\n        b\n        """\n    )\n'
    )


def test_calls_in_a_chain_and_in_one_line_are_told_apart(project: Project) -> None:
    source = "(\n    expect(text)\n    .to_match_snapshot('a[..]')\n    .to_match_snapshot('b')\n)\n"
    project.write(source + "expect(text).to_match_snapshot('c'); expect(text).to_match_snapshot(text='[..]')\n")
    assert project.update("a1") == (
        "(\n    expect(text)\n    .to_match_snapshot('a[..]')\n"
        '    .to_match_snapshot("""\n        a1\n    """)\n)\n'
        'expect(text).to_match_snapshot("""\n    a1\n"""); expect(text).to_match_snapshot(text=\'[..]\')\n'
    )


def test_columns_after_letters_of_several_bytes(project: Project) -> None:
    project.write("ä = '→𝄞'; expect(text).to_match_snapshot('é')  # ü\n")
    assert project.update("ö") == 'ä = \'→𝄞\'; expect(text).to_match_snapshot("""\n    ö\n""")  # ü\n'


def test_line_ends_the_mark_of_the_order_of_bytes_and_the_mode_stay(project: Project) -> None:
    project.write("\ufeffx = 1\r\n\x0c\r\nexpect(text).to_match_snapshot('a')\r\n")
    project.file.chmod(0o750)
    assert project.update("b\nc") == (
        '\ufeffx = 1\r\n\x0c\r\nexpect(text).to_match_snapshot("""\r\n    b\r\n    c\r\n""")\r\n'
    )
    assert stat.S_IMODE(project.file.stat().st_mode) == 0o750
    assert os.listdir(project.file.parent) == ["test_it.py"]


def test_a_file_in_another_encoding(project: Project) -> None:
    project.write("# coding: latin-1\nä = 1; expect(text).to_match_snapshot('ü')\n", "latin-1").run("é")
    assert snapshot.apply(project.edits).conflicts == []
    assert b'\xe4 = 1; expect(text).to_match_snapshot("""\n    \xe9\n""")' in project.file.read_bytes()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"a\d", 'r"""\n    a\\d\n"""'),
        ('say """x"""', '"""\n    say \\"\\"\\"x\\"\\"\\"\n"""'),
        ('\\ """', '"""\n    \\\\ \\"\\"\\"\n"""'),
        ("\x1b[1mbold", '"""\n    \\x1b[1mbold\n"""'),
        ('ends in "', '"""\n    ends in "\n"""'),
        ("ends in \\", 'r"""\n    ends in \\\n"""'),
        ("serve [PORT]", 'r"""\n    serve \\[PORT]\n"""'),
    ],
)
def test_quotes_backslashes_and_controls(project: Project, text: str, written: str) -> None:
    project.write("expect(text).to_match_snapshot()\n")
    assert project.update(text) == f"expect(text).to_match_snapshot({written})\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(codec=None) | st.sampled_from("\\\"'\n \t[].\x00\udcff"), max_size=30))
def test_any_text_is_written_so_that_it_matches(project: Project, text: str) -> None:
    if text.strip() in ("", "-"):  # nothing to write, or nothing to change
        return
    project.write("if True:\n\texpect(text).to_match_snapshot('-')\n")
    ast.parse(project.update(text))


def test_two_outcomes_of_one_call_are_a_conflict_and_others_are_written(project: Project) -> None:
    project.write("for t in ('a', 'b'):\n    expect(t).to_match_snapshot('x')\nexpect(text).to_match_snapshot('y')\n")
    project.run("c")
    changed, conflicts = applied = snapshot.apply(project.edits)
    assert changed == [str(project.file)]
    assert len(conflicts) == 1
    assert "test_it.py:2: not every run of this line wants the same" in conflicts[0]
    assert [line.split(" ")[0] for line in applied.tell()] == ["rewrote", "snapshot"]
    assert project.file.read_text().endswith(
        '    expect(t).to_match_snapshot(\'x\')\nexpect(text).to_match_snapshot("""\n    c\n""")\n'
    )


def test_what_matches_for_one_parameter_is_not_rewritten_for_another(project: Project) -> None:
    project.write("for t in ('a', 'b'):\n    expect(t).to_match_snapshot('a')\n").run("")
    assert len(snapshot.apply(project.edits).conflicts) == 1
    assert "to_match_snapshot('a')" in project.file.read_text()


def test_the_same_outcome_twice_is_one_edit(project: Project) -> None:
    project.write("for t in ('b', 'b'):\n    expect(t).to_match_snapshot('a')\n")
    assert project.update("").count('"""') == 2


def test_a_file_that_changed_since_is_left_alone(project: Project) -> None:
    project.write("expect(text).to_match_snapshot('a')\n").run("b")
    project.write("# new\nexpect(text).to_match_snapshot('a')\n")
    changed, conflicts = snapshot.apply(project.edits)
    assert changed == []
    assert "test_it.py:1: the file has changed since its tests began" in conflicts[0]
    assert project.file.read_text().startswith("# new\n")


def test_a_file_that_changed_since_its_import_is_not_guessed_at(project: Project) -> None:
    project.write(
        "import pathlib\n"
        "pathlib.Path(__file__).write_text('import pathlib\\n\\nexpect(text).to_match_snapshot(\"other\")\\n')\n"
        "expect(text).to_match_snapshot('a')\n"
    )
    code = compile(project.file.read_bytes(), str(project.file), "exec")
    with (
        snapshot.at_work(project.edits, dict),
        pytest.raises(ExpectationFailed, match=r"test_it.py:3: the file has changed since it was imported"),
    ):
        exec(code, {"expect": expect, "text": "b", "__file__": str(project.file)})


@pytest.mark.parametrize("argument", ["f'{text}x'", "name", "'a' + name", "*[name]"])
def test_only_a_plain_literal_can_be_rewritten(project: Project, argument: str) -> None:
    project.write(f"name = 'a'\nexpect(text).to_match_snapshot({argument})\n")
    with pytest.raises(ExpectationFailed, match=r"test_it.py:2: only a plain string literal can be rewritten"):
        project.run("b")


def test_what_is_no_literal_may_match(project: Project) -> None:
    project.write("name = 'a'\nexpect(text).to_match_snapshot(name)\n").run("a")
    assert snapshot.apply(project.edits) == ([], [])


def test_a_cut_line_of_a_killed_process_is_passed_over(project: Project) -> None:
    project.write("expect(text).to_match_snapshot('a')\n").run("b")
    whole = project.edits.read_text()
    assert json.loads(whole)["line"] == 1
    project.edits.write_text(whole + whole[:40])
    assert snapshot.apply(project.edits) == ([str(project.file)], [])


def test_processes_of_xdist_share_the_edits(tmp_path: Path) -> None:
    """With pytest's own rewriting of assertions, which must not move the calls."""
    (tmp_path / "conftest.py").write_text(
        "import pathlib, pytest\n"
        "from mngr.e2e import snapshot\n"
        "@pytest.fixture(autouse=True)\n"
        "def update():\n"
        "    with snapshot.at_work(pathlib.Path(__file__).with_name('edits'), dict):\n        yield\n"
    )
    tests = [
        f"def test_{n}():\n"
        f"    assert [\n        {n}, expect('{n}').to_match_snapshot('')]\n"
        f"    expect('{n}').to_match_snapshot('x')\n"
        for n in range(12)
    ]
    test = tmp_path / "test_it.py"
    test.write_text("from mngr.e2e import expect\n" + "".join(tests))
    words = [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    ran = subprocess.run([*words, str(test)], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert snapshot.apply(tmp_path / "edits") == ([str(test)], [])
    written = test.read_text()
    assert written.count('"""') == 48
    assert all(written.count(f'"""\n            {n}\n        """') == 1 for n in range(12))
    assert all(written.count(f'"""\n        {n}\n    """') == 1 for n in range(12))
