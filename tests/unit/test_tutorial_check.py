"""Citations as they stand in the sources of tests, and the ledger that compares them with the blocks of a tutorial."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.tutorial.blocks import parse
from mngr.tutorial.check import Ledger, check, similarity
from mngr.tutorial.citations import Citation, Citations, find_citations


def cite(text: str, test: str = "test_x") -> Citation:
    return Citation(file="test_x.py", line=1, test=f"test_x.py::{test}", text=text)


def ledger(tutorial: str, *cited: str) -> Ledger:
    return check(parse(tutorial, "t.sh"), Citations(found=[cite(text) for text in cited], problems=[]))


def read(tmp_path: Path, source: str, name: str = "test_x.py") -> Citations:
    (tmp_path / name).write_text(source)
    return find_citations([str(tmp_path)])


def problem(tmp_path: Path, source: str, name: str = "test_x.py") -> str:
    """The one that there is, where nothing is cited."""
    found = read(tmp_path, source, name)
    assert found.found == []
    (only,) = found.problems
    return f"{only.line}: {only.message}"


# Citations.

KINDS = '''\
import pytest
LIST = """
    mngr list
"""
WAIT: str = "mngr " + "wait"


def test_plain(e2e):
    e2e.write_tutorial_block("""
        # make one
        mngr create foo
    """)
    e2e.write_tutorial_block(LIST)


async def test_in_with(session):
    with open("x") as file:
        for each in file:
            session.write_tutorial_block(text=WAIT)


class TestMore:
    @pytest.mark.parametrize("name", ["a", "b"])
    def test_method(self, e2e, name):
        def inner():
            self.e2e().write_tutorial_block("mngr " f"stop" + "\\n" + WAIT)
        inner()


def test_without(e2e):
    e2e.run("write_tutorial_block")
'''


def test_citations_are_found_wherever_they_stand_in_a_test(tmp_path: Path) -> None:
    found = read(tmp_path, KINDS)
    path = str(tmp_path / "test_x.py")
    assert found.problems == []
    assert [(each.line, each.test.removeprefix(path), each.text.split()) for each in found.found] == [
        (9, "::test_plain", ["#", "make", "one", "mngr", "create", "foo"]),
        (13, "::test_plain", ["mngr", "list"]),
        (19, "::test_in_with", ["mngr", "wait"]),
        (26, "::TestMore::test_method", ["mngr", "stop", "mngr", "wait"]),
    ]
    assert {each.file for each in found.found} == {path}


@pytest.mark.parametrize(
    "given",
    ['f"mngr {e2e}"', "block", "UNKNOWN", "CHANGED", "self.block", '"mngr " * 2', '"a".strip()', "", '"a", "b"', "1"],
)
def test_a_text_that_is_made_when_the_test_runs_is_a_problem(tmp_path: Path, given: str) -> None:
    constants = 'block = "mngr list"\nCHANGED = "a"\nCHANGED += "b"\n'
    source = f"{constants}def test_x(e2e, block):\n    e2e.write_tutorial_block({given})\n"
    assert problem(tmp_path, source).startswith("5: test_x cites a text that cannot be read off the source")


def test_a_citation_outside_of_a_test_is_a_problem(tmp_path: Path) -> None:
    helper = 'def helper(e2e):\n    e2e.write_tutorial_block("mngr list")\n'
    assert "outside of a test, in helper" in problem(tmp_path, helper)
    assert "outside of a test, in no function" in problem(tmp_path, 'E2E.write_tutorial_block("mngr list")\n')
    passed_on = "def test_x(e2e):\n    cite = e2e.write_tutorial_block\n    cite('mngr list')\n"
    assert problem(tmp_path, passed_on).startswith("2: write_tutorial_block is passed on")


@pytest.mark.parametrize("name", ["conftest.py", "steps.py"])
def test_a_citation_in_a_file_that_is_not_collected_is_a_problem(tmp_path: Path, name: str) -> None:
    source = 'def test_x(e2e):\n    e2e.write_tutorial_block("mngr list")\n'
    assert "does not take for tests" in problem(tmp_path, source, name)
    (found,) = find_citations([str(tmp_path / name)]).found  # but pytest takes what it is given
    assert found.text == "mngr list"


@pytest.mark.parametrize(
    ("begin", "end", "told"),
    [
        ("class Helper:", "", "5: a block is cited in class Helper, which pytest does not take for tests"),
        ("class TestA:\n  class Inner:", "", "6: a block is cited in class Inner, which pytest"),
        ("if True:", "def test_x(): pass", "5: test_x is shadowed by line 6, so that it never runs"),
        ("class TestA:", "   def test_x(self): pass", "5: TestA::test_x is shadowed by line 6"),
        ("class TestA:", "class TestA: pass", "5: TestA::test_x is shadowed by line 6"),
    ],
)
def test_a_citation_that_pytest_never_runs_is_a_problem(tmp_path: Path, begin: str, end: str, told: str) -> None:
    source = f'#\n#\n{begin}\n   def test_x(self, e2e):\n      e2e.write_tutorial_block("mngr list")\n{end}\n'
    assert problem(tmp_path, source).startswith(told)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("class Listing(unittest.TestCase):", ""),
        ("class TestA:", "def test_x(): pass"),
        ("if POSIX:", "else:\n   def test_x(): pass"),
        ("class TestA:", "class TestB:\n   def test_x(self): pass"),
        ("if True:", "test_x = mark(test_x)"),
    ],
)
def test_the_same_name_elsewhere_shadows_nothing(tmp_path: Path, begin: str, end: str) -> None:
    source = f'{begin}\n   def test_x(self, e2e):\n      e2e.write_tutorial_block("mngr list")\n{end}\n'
    found = read(tmp_path, source)
    assert (len(found.found), found.problems) == (1, [])


def test_files_that_are_no_python_are_told_and_hide_no_other(tmp_path: Path) -> None:
    source = 'def test_x(e2e):\n    e2e.write_tutorial_block("mngr list")\n'
    (tmp_path / "test_a.py").write_text(source + "def broken(:\n")
    (tmp_path / "test_b.py").write_bytes(source.encode() + b"\0")
    (tmp_path / "test_c.py").write_text("x = " + "(" * 500 + source)
    (tmp_path / "test_d.py").symlink_to("nowhere")
    (tmp_path / "test_e.py").write_bytes(source.replace("\n", "\r").encode())
    (tmp_path / "test_f.py").write_text(source.replace("mngr list", r"\d"))  # which Python warns about
    (tmp_path / "test_g.py").write_text("no python, but no citation either")
    found = find_citations([str(tmp_path)])
    assert [each.text for each in found.found] == ["mngr list", r"\d"]
    assert [Path(each.file).name for each in found.problems] == ["test_a.py", "test_b.py", "test_c.py", "test_d.py"]
    assert (found.problems[0].line, found.problems[0].message) == (3, "this is no Python: invalid syntax")
    assert found.problems[3].message == "cannot be read: it is no regular file"
    assert found.unreadable == found.problems


def test_links_and_devices_are_not_read(tmp_path: Path) -> None:
    """Neither what is outside, nor without an end. What is named is taken at its word."""
    (tmp_path / "outside.py").write_text('def test_x(e2e):\n    e2e.write_tutorial_block("mngr list")\n')
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").symlink_to("../outside.py")
    (tests / "test_b.py").symlink_to("/dev/zero")
    os.mkfifo(tests / "test_c.py")
    (tests / "conftest.py").symlink_to("../outside.py")
    found = find_citations([str(tests), str(tests)])
    assert found.found == []
    assert [(Path(each.file).name, each.message) for each in found.problems] == [
        (name, "cannot be read: it is no regular file") for name in ("test_a.py", "test_b.py", "test_c.py")
    ]
    assert len(find_citations([str(tests / "test_a.py")]).found) == 1
    assert len(find_citations([str(tests / "test_b.py"), str(tests / "test_c.py")]).problems) == 2


def test_directories_are_searched_but_for_hidden_and_foreign_ones(tmp_path: Path) -> None:
    for place in ("deep/er", ".hidden", "venv", "__pycache__"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "more_test.py").write_text(f'def test_x(e2e):\n    e2e.write_tutorial_block("{place}")\n')
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    twice = [str(tmp_path), str(tmp_path / "deep"), str(tmp_path / "deep" / "er" / "more_test.py")]
    assert [each.text for each in find_citations(twice).found] == ["deep/er"]
    with pytest.raises(UsageError, match="nowhere: No such file"):
        find_citations([str(tmp_path / "nowhere")])


# The ledger.


def test_what_is_cited_word_for_word_is_in_sync() -> None:
    tutorial = "# make one\nmngr create foo \\\n    --now\n\nmngr list\n\n# a blank\n"
    found = ledger(tutorial, "\n    # make one  \n    mngr create foo \\\n        --now\n  ", "mngr list", "mngr list")
    assert found.in_sync
    one, two = found.tutorial.blocks
    assert {id: len(cited) for id, cited in found.covered.items()} == {one.id: 1, two.id: 2}


def test_a_block_without_a_test_is_uncited_and_a_test_without_a_block_has_lost_it() -> None:
    found = ledger("mngr list\n\ngit log --oneline\n", "mngr list", "mngr snapshot create foo before")
    assert [block.line for block in found.uncited] == [3]
    assert [citation.text for citation in found.gone] == ["mngr snapshot create foo before"]
    assert (found.edited, found.in_sync) == ([], False)


def test_an_edit_is_told_with_the_difference_to_every_test_of_the_block() -> None:
    old, new = "# make one\nmngr create foo", "# make one\nmngr create foo --no-connect"
    cited = [cite("mngr list"), cite(old, "test_a"), cite(old, "test_b")]
    found = check(parse(f"mngr list\n\n{new}\n", "t.sh"), Citations(found=cited, problems=[]))
    assert [(edit.citation.test, edit.block.line) for edit in found.edited] == [
        ("test_x.py::test_a", 3),
        ("test_x.py::test_b", 3),
    ]
    assert (found.uncited, found.gone) == ([], [])
    assert found.edited[0].diff.split("\n") == [
        "--- cited",
        "+++ t.sh:3",
        "@@ -1,2 +1,2 @@",
        " # make one",
        "-mngr create foo",
        "+mngr create foo --no-connect",
    ]
    assert found.edited[0].similarity == round(2 * len(old) / (len(old) + len(new)), 3)


def test_blocks_that_are_alike_are_told_apart_when_all_of_them_were_edited() -> None:
    """Each has one neighbour that is nearly as near as itself."""
    cited = [f"# number {n}\nmngr create agent-{n} --type claude" for n in range(300)]
    there = [f"# number {n}\nmngr create agent-{n} --type codex" for n in range(300)]
    found = ledger("\n\n".join(there), *cited)
    assert (found.uncited, found.gone) == ([], [])
    assert [edit.block.text for edit in found.edited] == there


def test_a_block_stands_for_the_text_that_is_most_like_it() -> None:
    """Both texts are nearest to the first block; one of them must have become the second."""
    found = ledger("mngr create fooo\n\nmngr create fo --now\n", "mngr create fo", "mngr create foo")
    assert [(edit.citation.text, edit.block.line) for edit in found.edited] == [
        ("mngr create fo", 3),
        ("mngr create foo", 1),
    ]


def test_two_texts_may_have_become_one_block() -> None:
    found = ledger("mngr create foo --now\n", "mngr create foo", "mngr create foo --new")
    assert [edit.block.line for edit in found.edited] == [1, 1]


def test_a_cited_block_is_never_taken_for_an_edited_one() -> None:
    found = ledger("mngr create foo\n", "mngr create foo", "mngr create fop")
    assert ([citation.text for citation in found.gone], found.edited) == (["mngr create fop"], [])


def test_the_same_block_twice_is_told() -> None:
    found = ledger("mngr list\n\nmngr stop\n\nmngr list\n", "mngr list", "mngr stop")
    assert [[block.line for block in blocks] for blocks in found.duplicates] == [[1, 5]]
    assert not found.in_sync


def test_problems_of_both_sides_are_in_the_ledger(tmp_path: Path) -> None:
    citations = read(tmp_path, "def broken(: write_tutorial_block\n")
    found = check(parse("echo don't\n", "t.sh"), citations)
    assert [Path(each.file).name for each in found.problems] == ["t.sh", "test_x.py"]
    assert not found.in_sync


@pytest.mark.parametrize(("changed", "alike"), [("mngr ls", 14 / 16), ("mngr list", 1.0), ("zzz", 0.0), ("", 0.0)])
def test_similarity_is_the_share_of_letters_in_both(changed: str, alike: float) -> None:
    assert similarity("mngr list", changed) == pytest.approx(alike)


@given(st.text("ab c\n", max_size=40), st.text("ab c\n", max_size=40))
def test_similarity_is_at_least_what_difflib_finds_in_the_middle(one: str, other: str) -> None:
    alike = similarity(one, other)
    assert 0 <= alike <= 1
    assert (alike == 1) == (one == other)
    if not one or not other or (one[0] != other[0] and one[-1] != other[-1]):
        assert alike == pytest.approx(difflib.SequenceMatcher(None, one, other, autojunk=False).ratio())


def test_long_blocks_are_compared_word_by_word() -> None:
    words = [f"word{n}" for n in range(400)]
    assert similarity(" ".join(words), " ".join(["x", *words[:200], "y", *words[200:], "z"])) > 0.95
