"""Additions of both sides at the same place, and what must stay a conflict."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.integrate.picking.pick import pick
from mngr.integrate.picking.union import union
from tests.integration import Content, Project, plain_files

HEAD = "import os\n\n\ndef test_first():\n    assert os\n"
A = "\n\ndef test_a():\n    assert 'a'\n"
B = "\n\ndef test_b():\n    assert 'b'\n"


def united(tmp_path: Path, path: str, base: Content, ours: Content, theirs: Content) -> str | None:
    """What a path holds when ours and then theirs has been picked. It must be a conflict."""
    project = Project(tmp_path, {"other": "", path: base}, one=[{path: ours}], two=[{path: theirs}])
    scratch = project.scratch()
    one, two = project.changes()
    clean = pick(scratch, scratch.tree_of(scratch.base), one)
    clash = pick(scratch, clean.tree, two)
    assert clean.is_clean
    assert not clash.is_clean
    tree = union(scratch, clash, two.kind)
    return plain_files(scratch, tree)[path] if tree else None


def test_both_tests_at_the_end_of_a_file_are_kept(tmp_path: Path) -> None:
    assert united(tmp_path, "tests/test_x.py", HEAD, HEAD + A, HEAD + B) == HEAD + A + B


def test_both_tests_between_others_are_kept(tmp_path: Path) -> None:
    end = "\n\ndef test_last():\n    pass\n"
    assert united(tmp_path, "tests/test_x.py", HEAD + end, HEAD + A + end, HEAD + B + end) == HEAD + A + B + end


def test_both_methods_of_a_class_are_kept(tmp_path: Path) -> None:
    head = "class TestX:\n    def test_first(self):\n        pass\n"
    a, b = (f"\n    def test_{name}(self):\n        assert '{name}'\n" for name in "ab")
    assert united(tmp_path, "tests/test_x.py", head, head + a, head + b) == head + a + b


def test_a_method_more_comes_before_a_class_that_the_other_side_has_added(tmp_path: Path) -> None:
    head = "class TestX:\n    def test_first(self):\n        pass\n"
    other, method = "\n\nclass TestY:\n    def test_y(self):\n        pass\n", "\n    def test_x(self):\n        pass\n"
    assert united(tmp_path, "tests/test_x.py", head, head + other, head + method) == head + method + other
    (tmp_path / "again").mkdir()
    assert united(tmp_path / "again", "tests/test_x.py", head, head + method, head + other) == head + method + other


@pytest.mark.parametrize("names", [("'a'", "'z'"), ("'n'", "'n2'")])
def test_both_are_added_to_what_a_module_exports(tmp_path: Path, names: tuple[str, str]) -> None:
    """Whether git sees a conflict there or not."""

    def module(code: str, *more: str) -> str:
        exported = sorted(["'f'", "'m'", "'o'", "'t'", *more])
        return "__all__ = [\n" + "".join(f"    {each},\n" for each in exported) + "]\n" + code

    mine, theirs = names
    wanted = module(A + B, mine, theirs)
    assert united(tmp_path, "src/x.py", module(""), module(A, mine), module(B, theirs)) == wanted


def test_imports_of_both_come_once(tmp_path: Path) -> None:
    ours = "import os\nimport re\nimport sys\n" + HEAD.removeprefix("import os\n") + A
    theirs = "import os\nimport json\nimport re\n" + HEAD.removeprefix("import os\n") + B
    found = united(tmp_path, "tests/test_x.py", HEAD, ours, theirs)
    assert found is not None
    assert found.startswith("import os\nimport re\nimport sys\nimport json\n\n\ndef test_first")
    assert found.endswith(A + B)


def test_a_helper_that_both_have_added_comes_once(tmp_path: Path) -> None:
    helper = "\n\ndef help():\n    return 1\n"
    assert united(tmp_path, "tests/test_x.py", HEAD, HEAD + helper + A, HEAD + helper + B) == HEAD + helper + A + B


def test_a_file_that_both_have_added_has_the_tests_of_both(tmp_path: Path) -> None:
    assert united(tmp_path, "tests/test_x.py", None, HEAD + A, HEAD + B) == HEAD + A + B


def test_a_last_line_without_an_end_gets_one(tmp_path: Path) -> None:
    found = united(tmp_path, "tests/test_x.py", HEAD, (HEAD + A).rstrip("\n"), (HEAD + B).rstrip("\n"))
    assert found == HEAD + A + B


def test_what_merges_by_itself_beside_the_union_is_kept(tmp_path: Path) -> None:
    far = "def far():\n    return 1\n" + "\n" * 8
    base = far + HEAD
    theirs = far.replace("1", "2") + HEAD + B
    assert united(tmp_path, "tests/test_x.py", base, base + A, theirs) == far.replace("1", "2") + HEAD + A + B


@pytest.mark.parametrize("path", ["docs/x.md", "tutorial.sh", "CHANGES.rst", "docs/notes.txt", "notes.txt"])
def test_prose_keeps_both_additions(tmp_path: Path, path: str) -> None:
    base = "# one\nfirst\n"
    ours, theirs = base + "\n# two\nsame\n", base + "\n# three\nsame\n"
    assert united(tmp_path, path, base, ours, theirs) == base + "\n# two\nsame\n\n# three\nsame\n"


def test_prose_may_be_in_any_encoding(tmp_path: Path) -> None:
    project = Project(
        tmp_path, {"x.md": b"\xe9\r\n"}, one=[{"x.md": b"\xe9\r\n\xe8\r\n"}], two=[{"x.md": b"\xe9\r\n\xea\r\n"}]
    )
    scratch = project.scratch()
    one, two = project.changes()
    tree = union(scratch, pick(scratch, pick(scratch, scratch.tree_of(scratch.base), one).tree, two), two.kind)
    assert tree
    entry = scratch.entries(tree, ["x.md"])["x.md"]
    assert entry
    assert scratch.blob(entry[1]) == b"\xe9\r\n\xe8\r\n\xea\r\n"


@pytest.mark.parametrize(
    ("path", "base", "ours", "theirs"),
    [
        ("tests/test_x.py", HEAD, HEAD.replace("os\n", "os.path\n") + A, HEAD.replace("os\n", "os.sep\n") + B),
        ("tests/test_x.py", HEAD, HEAD + "    assert 1\n", HEAD + "    assert 2\n"),
        ("tests/test_x.py", HEAD, HEAD + A, HEAD + A.replace("'a'", "'other'")),
        ("tests/test_x.py", HEAD, HEAD + "\nX = 1\n", HEAD + "\nX = 2\n"),
        ("tests/test_x.py", HEAD, HEAD + A, HEAD + "\n\nthis is no Python\n"),
        ("tests/test_x.py", "import os\n", "import os\nfrom a import x\n", "import os\nfrom b import x\n"),
        ("x.toml", "[a]\n", "[a]\nx = 1\n", "[a]\ny = 1\n"),
        ("x.json", "{\n}\n", '{\n"a": 1\n}\n', '{\n"b": 1\n}\n'),
        ("run.sh", "a\n", "a\nb\n", "a\nc\n"),
        ("requirements.txt", "a\n", "a\nb\n", "a\nc\n"),
        ("docs/requirements.txt", "a\n", "a\nb\n", "a\nc\n"),
        ("x.md", "one\n", "two\n", "three\n"),
        ("x.md", "one\n", None, "one\ntwo\n"),
        ("x.md", "one\n", "one\n\0\n", "one\ntwo\n"),
        ("x.md", None, ("120000", "a"), ("120000", "b")),
        ("x.md", None, ("100755", "a\n"), ("100644", "b\n")),
    ],
    ids=[
        "a line that both have changed",
        "additions inside one function",
        "a test of the same name",
        "a constant of the same name",
        "no Python",
        "an import of the same name",
        "toml",
        "json",
        "a program in shell",
        "requirements",
        "requirements of documents",
        "changed prose",
        "gone on one side",
        "binary",
        "links",
        "other modes",
    ],
)
def test_it_stays_a_conflict(tmp_path: Path, path: str, base: Content, ours: Content, theirs: Content) -> None:
    assert united(tmp_path, path, base, ours, theirs) is None


def test_one_conflict_that_is_none_does_not_make_up_for_another(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.md": "a\n", "b.md": "b\n"},
        one=[{"a.md": "a\none\n", "b.md": "one\n"}],
        two=[{"a.md": "a\ntwo\n", "b.md": "two\n"}],
    )
    scratch = project.scratch()
    one, two = project.changes()
    clash = pick(scratch, pick(scratch, scratch.tree_of(scratch.base), one).tree, two)
    assert set(clash.conflicts) == {"a.md", "b.md"}
    assert union(scratch, clash, two.kind) is None


# What both do at one place, and where it matters which comes first


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("R['b'] = 1\n", "R['b'] = 2\n"),
        ("register(f)\n", "register(g)\n"),
        ("X = 1\n", "Y = 2\n"),
    ],
)
def test_statements_of_both_sides_at_one_place_are_no_union(tmp_path: Path, mine: str, theirs: str) -> None:
    assert united(tmp_path, "src/x.py", HEAD, HEAD + mine, HEAD + theirs) is None


def test_a_statement_of_one_side_stands_beside_a_function_of_the_other(tmp_path: Path) -> None:
    assert united(tmp_path, "src/x.py", HEAD, HEAD + "\n\nX = 1\n", HEAD + A) is not None


def test_statements_elsewhere_do_not_stand_in_the_way(tmp_path: Path) -> None:
    far = "".join(f"def f{number}():\n    pass\n\n\n" for number in range(5))
    base = f"X = 1\n{far}Z = 1\n{HEAD}"
    mine, theirs = f"W = 1\n{base}{A}", base.replace("Z = 1\n", "Z = 1\nV = 1\n") + B
    assert united(tmp_path, "src/x.py", base, mine, theirs) is not None


@pytest.mark.parametrize(
    ("path", "mine", "theirs"),
    [
        ("README.md", "## News\n\nMine.\n", "## News\n\nTheirs.\n"),
        ("README.md", "2. Mine\n", "2. Theirs\n"),
        ("README.rst", "News\n====\n\nMine.\n", "News\n----\n\nTheirs.\n"),
        ("README.adoc", "== News\n\nMine.\n", "== News\n\nTheirs.\n"),
    ],
)
def test_one_heading_or_one_number_twice_is_no_union(tmp_path: Path, path: str, mine: str, theirs: str) -> None:
    base = "1. First\n"
    assert united(tmp_path, path, base, base + mine, base + theirs) is None


def test_other_headings_are_one(tmp_path: Path) -> None:
    assert united(tmp_path, "README.md", "# A\n", "# A\n\n## B\n", "# A\n\n## C\n") == "# A\n\n## B\n\n## C\n"
