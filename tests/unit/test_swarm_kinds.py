"""Which kind of change a path is, and commits that are not what they are declared to be."""

from __future__ import annotations

import pytest

from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL, kind_of, misfits

ONE, TWO = "1" * 40, "2" * 40


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (
            TEST,
            ["tests/test_a.py", "tests/data/a.txt", "src/pkg/test/b.c", "test_a.py", "pkg/a_test.py", "conftest.py"],
        ),
        (TEST, ["tests/README.md", "docs/conftest.py", "pkg/test/test_a.py", "test/support.py", "src/test/a/B.java"]),
        (DOCS, ["docs/a.md", "man/tool.1", "README.md", "pkg/NOTES.rst", "notes.txt", "LICENSE", "guide.md"]),
        (DOCS, ["pkg/docs/a.rst", "docs/img/a.png", "README.de.md", "CHANGES.txt", "LICENSE-MIT", "docs/list.txt"]),
        (TUTORIAL, ["tutorial.sh", "examples/first.tutorial.sh", "tests/tutorial.sh"]),
        (IMPLEMENTATION, ["shelf/cli.py", "pyproject.toml", "requirements.txt", "shelf/words.txt", "Makefile"]),
        (IMPLEMENTATION, ["CMakeLists.txt", "dev-requirements.txt", "robots.txt", "src/pkg/prompts/rank.md"]),
        (IMPLEMENTATION, ["django/test/client.py", "pkg/test/__init__.py", "doc/build.py", "docs/conf.py", "man/x.c"]),
        (IMPLEMENTATION, ["docs/requirements.txt", "docs/CMakeLists.txt", "docs/Makefile", "notes.py", "pkg/mail.md"]),
        (IMPLEMENTATION, ["contest.py", "latest/a.py", "shelf/docs/a.py", "testing/a.py", "shelf/testament.py"]),
    ],
)
def test_a_path_says_its_kind(kind: str, paths: list[str]) -> None:
    assert {path: kind_of(path) for path in paths} == dict.fromkeys(paths, kind)


def test_the_tutorial_of_the_project_may_be_any_file() -> None:
    assert kind_of("README.md", "README.md") == TUTORIAL
    assert kind_of("docs/README.md", "README.md") == DOCS
    assert kind_of("README+md", "README.md") == IMPLEMENTATION


def test_commits_that_are_what_they_are_declared_to_be() -> None:
    changes = [{"commit": ONE, "kind": TEST}, {"commit": TWO, "kind": IMPLEMENTATION}]
    assert misfits(changes, {ONE: ["tests/test_a.py"], TWO: ["shelf/cli.py"]}) == []
    assert misfits([], {}) == []


def test_a_path_of_another_kind_is_named() -> None:
    paths = ["shelf/a.py", "shelf/b.py", "README.md", "setup.cfg", "tests/test_a.py"]
    (told,) = misfits([{"commit": ONE, "kind": TEST}], {ONE: paths})
    assert told == (
        "commit 1111111111 is declared as test, but changes shelf/a.py (implementation), shelf/b.py (implementation), "
        "README.md (docs) and 1 more"
    )


def test_a_commit_that_nobody_declares_is_named() -> None:
    assert misfits([{"commit": ONE, "kind": TEST}], {ONE: [], TWO: ["tests/a.py"]}) == [
        "commit 2222222222 is not in the result"
    ]


def test_a_commit_of_two_kinds_fits_neither() -> None:
    changes = [{"commit": ONE, "kind": TEST}, {"commit": ONE, "kind": DOCS}]
    assert len(misfits(changes, {ONE: ["tests/a.py", "README.md"]})) == 2
