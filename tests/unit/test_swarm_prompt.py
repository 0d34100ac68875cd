"""What the agent of a test is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.swarm.schema import flaws
from mngr.swarm.testing.collect import Found
from mngr.swarm.testing.prompt import contract, prompt, template

FOUND = Found(
    id="tests/test a.py::test_it[$x]",
    file="tests/test a.py",
    source="tests/test a.py",
    line=3,
    name="test_it[$x]",
    function="test_it",
    doc="What is added is listed.\n\n    ```quoted```",
    markers=[],
    fixtures=[],
    blocks=["shelf add $BOOK\nshelf list"],
)


def told(home: Path, test: Found = FOUND) -> str:
    return prompt(str(home), test, pytest="python3 -m pytest", limit=90.0, flags=["-m", "not slow"], tutorial="t.sh")


def test_everything_about_the_test_is_in_it(tmp_path: Path) -> None:
    text = told(tmp_path)
    assert "\n    tests/test a.py::test_it[$x]\n" in text
    assert "\n       python3 -m pytest -m 'not slow' 'tests/test a.py::test_it[$x]'\n" in text
    assert "longer than 90\n" in text
    assert "```sh\nshelf add $BOOK\nshelf list\n```" in text
    assert "````text\nWhat is added is listed.\n" in text
    assert "`tutorial`: the tutorial (`t.sh`)" in text
    assert "\n    printenv MNGR_RESULT\n" in text
    assert "`printenv MNGR_ARTIFACTS`" in text


def test_its_example_is_valid_by_its_schema(tmp_path: Path) -> None:
    example, schema = (json.loads(line) for line in told(tmp_path).splitlines() if line.strip().startswith("{"))
    assert flaws(schema, example) == []
    assert example["test"] == FOUND.id


def test_a_test_that_promises_nothing_is_told_as_such() -> None:
    assert contract(" \n", []).startswith("It has no docstring and cites no block")


def test_the_users_own_prompt_takes_its_place(tmp_path: Path) -> None:
    shipped = template(str(tmp_path))
    (tmp_path / "prompts").mkdir()
    own = tmp_path / "prompts" / "test.md"
    own.write_text("Look at $test, for $$1.")
    assert told(tmp_path) == f"Look at {FOUND.id}, for $1.\n"
    assert template(str(tmp_path)) == own.read_text() != shipped


def test_a_prompt_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    own = tmp_path / "prompts" / "test.md"
    own.write_text("Look at $tset.")
    with pytest.raises(MngrError, match="'tset'") as error:
        told(tmp_path)
    assert "$test" in (error.value.hint or "")
    own.write_bytes(b"\xff")
    with pytest.raises(MngrError, match="cannot be read"):
        told(tmp_path)
