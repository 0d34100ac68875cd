"""The framework and the tutorial tools on a program that nobody here wrote: jc, with its own README as the tutorial, as
it is published."""

from __future__ import annotations

import json
from importlib.metadata import metadata
from pathlib import Path

import pytest

from tests.e2e.test_e2e_page import run

TESTS = '''
from mngr.e2e import expect


def test_lines_can_be_skipped_from_either_end(e2e):
    e2e.write_tutorial_block("""
        $ cat table.txt
              ### We want to skip this header ###
                  col1       col2
                  foo        1
                  bar        2
              ### We want to skip this footer ###
        $ cat table.txt | jc 1:-1 --asciitable
        [{"col1":"foo","col2":"1"},{"col1":"bar","col2":"2"}]
        $ cat table.txt | jc 1:4 --asciitable
        [{"col1":"foo","col2":"1"},{"col1":"bar","col2":"2"}]
    """)
    rows = ["### skip this ###", "col1  col2", "foo   1", "bar   2", "### skip this ###", ""]
    (e2e.dir / "table.txt").write_text("\\\\n".join(rows))
    table = [{"col1": "foo", "col2": "1"}, {"col1": "bar", "col2": "2"}]
    expect(e2e.run("cat table.txt | jc 1:-1 --asciitable", comment="from both ends")).to_succeed().to_be_json(table)
    expect(e2e.run("cat table.txt | jc 1:4 --asciitable", comment="counted from the first")).to_be_json(table)


def test_a_table_of_commas_becomes_objects(e2e):
    e2e.write_tutorial_block("cat homes.csv | jc -p --csv")
    (e2e.dir / "homes.csv").write_text('"Sell", "List"\\\\n142, 160\\\\n')
    result = e2e.run("cat homes.csv | jc -p --csv", comment="read a table")
    expect(result.stdout).to_match_snapshot("""
        [
          {
            "Sell": "142",
            "List": "[NUMBER]"
          }
        ]
    """)


def test_what_it_cannot_read_is_an_error(e2e):
    e2e.write_tutorial_block("cat homes.csv | jc -p --csv")
    expect(e2e.run("cat homes.csv | jc -p --csv", comment="no file").stderr).to_contain("homes.csv")
    result = e2e.run("echo nothing | jc --no-such-parser", comment="an unknown parser")
    expect(result).to_have_exit_code(100)
    expect(result.stderr).to_contain("jc:")
    expect(result.stdout).to_be_empty()
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    readme = metadata("jc").get_payload()  # type: ignore[attr-defined]
    assert isinstance(readme, str)
    (tmp_path / "README.md").write_text(readme)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_readme.py").write_text(TESTS.replace("\\\\n", "\\n"))
    (tmp_path / "pytest.ini").write_text("[pytest]\ne2e_tutorials = README.md\n")
    return tmp_path


def test_a_strangers_readme_as_a_tutorial(project: Path) -> None:
    tested = run(project, "pytest -q -p no:cacheprovider")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    ledger = json.loads(run(project, "mngr tutorial check README.md tests --json").stdout)
    assert (ledger["gone"], ledger["edited"], ledger["problems"]) == ([], [], [])
    assert len(ledger["covered"]) == 2
    assert len(ledger["uncited"]) > 25  # what nobody has written a test for yet
    shown = run(project, "mngr e2e view")
    assert shown.returncode == 0, shown.stderr
    page = "".join(path.read_text() for path in (project / ".test_output/e2e/view/data").rglob("*.js"))
    assert "jc 1:-1 --asciitable" in page
