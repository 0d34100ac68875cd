"""Exit codes: the errors, the table for the help pages and docs/exit-codes.md say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr import errors
from mngr.cli import main as cli
from mngr.errors import EXIT_CODES, MngrError
from mngr.fleet.exec import OUR_FAULT, TIMEOUT
from mngr.names import NameTaken

DOCUMENT = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()
ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MngrError)]


def table(text: str) -> dict[str, str]:
    """The first two columns of the tables in it."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1] for row in rows if row[0] != "code"}


GENERAL, EXEC = map(table, DOCUMENT.split("## exec"))


def test_the_document_has_the_codes_of_the_program_in_their_words() -> None:
    told = {int(code): meaning for code, meaning in GENERAL.items()}
    assert {code: meaning for code, meaning in told.items() if code < 128} == EXIT_CODES
    assert set(told) - set(EXIT_CODES) == {130, 141}


def test_every_error_has_a_code_of_the_table_and_every_code_an_error() -> None:
    assert {kind.code for kind in ERRORS} == set(EXIT_CODES) - {0}
    assert len({kind.code for kind in ERRORS}) == len(ERRORS)
    assert NameTaken.code == MngrError.code


def test_the_document_has_the_codes_of_exec() -> None:
    assert set(EXEC) == {str(TIMEOUT), str(OUR_FAULT), "2, 3, 5"}
    assert not {TIMEOUT, OUR_FAULT} & set(EXIT_CODES)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_ends_the_command_with_its_code_and_one_line(
    kind: type[MngrError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: list[str]) -> int:
        raise kind("it\nbroke", "mend it")

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert cli.main([]) == kind.code
    assert capsys.readouterr().err == "mngr: it broke\nhint: mend it\n"


def test_ctrl_c_is_130_and_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == ""
