"""Which kind of change a path is, and whether commits are what they are declared to be. Whoever takes over the work
takes it kind by kind, so that a commit called `test` must not carry a change of the program.

The rules are regular expressions over paths, the first that is found counts: as text they can be sent along to where
the tests are checked."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

IMPLEMENTATION, TEST, DOCS, TUTORIAL = "implementation", "test", "docs", "tutorial"
KINDS = (IMPLEMENTATION, TEST, DOCS, TUTORIAL)

# In doubt a path is the program: whoever takes a test for a fix looks at it once more, but a fix that passes for a
# test or a document is seen by nobody. So code is no document, wherever it lies, and no test by a directory called
# `test` within a package.
_TEST_PATHS = r"(^|/)tests/|^(src/)?test/|(^|/)test/.*(?<!\.py)$|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$"
_TUTORIAL_PATHS = r"(^|/)([^/]*\.)?tutorial\.sh$"
_PROSE = r"\.(md|rst|adoc)"
_PAGE = r"\.(md|rst|adoc|txt|html?|css|svg|png|jpe?g|gif|webp|ico|pdf|tex|texi|bib|po|pot|[1-9])"
_KNOWN = (
    r"(README|CHANGES|CHANGELOG|HISTORY|NEWS|NOTES|RELEASE|RELEASES|TODO|ROADMAP|AUTHORS|CONTRIBUTORS|CONTRIBUTING|"
    r"INSTALL|SECURITY|SUPPORT|CODE_OF_CONDUCT|LICEN[CS]E|COPYING|NOTICE|readme|changes|changelog|notes)([_-][^/.]*)?"
)
_DOCS_PATHS = (
    rf"^(docs?|man)/(?!(.*/)?([^/]*(requirements|constraints)[^/]*|CMakeLists)\.txt$).*{_PAGE}$|^[^/]*{_PROSE}$|"
    rf"(^|/)docs?/.*{_PROSE}$|(^|/){_KNOWN}(\.[^/]*)?{_PROSE}$|^{_KNOWN}(\.txt)?$"
)
_MOST_PATHS = 3  # that are named of one commit


def rules(tutorial: str = "") -> list[list[str]]:
    """Kinds with the paths they are found by; what no rule knows is the program. `tutorial` is the path of the tutorial
    in the repository, if it has one."""
    own = [[TUTORIAL, f"^{re.escape(tutorial)}$"]] if tutorial else []
    return [*own, [TUTORIAL, _TUTORIAL_PATHS], [TEST, _TEST_PATHS], [DOCS, _DOCS_PATHS]]


def kind_of(path: str, tutorial: str = "") -> str:
    return next((kind for kind, rule in rules(tutorial) if re.search(rule, path)), IMPLEMENTATION)


def misfits(
    changes: Iterable[Mapping[str, Any]], files_by_commit: Mapping[str, Iterable[str]], tutorial: str = ""
) -> list[str]:
    """What is wrong with the kinds that a result declares, a line each: paths that are of another kind than their
    commit, commits that are not declared. `changes` name commits by their whole hashes."""
    declared = [(change["commit"], change["kind"]) for change in changes]
    found = []
    for commit, kind in dict.fromkeys(declared):
        others = [path for path in files_by_commit.get(commit, []) if kind_of(path, tutorial) != kind]
        if others:
            found.append(f"commit {commit[:10]} is declared as {kind}, but changes {_named(others, tutorial)}")
    silent = [commit for commit in files_by_commit if commit not in dict(declared)]
    return found + [f"commit {commit[:10]} is not in the result" for commit in silent]


def _named(paths: list[str], tutorial: str) -> str:
    named = ", ".join(f"{path} ({kind_of(path, tutorial)})" for path in paths[:_MOST_PATHS])
    return named + (f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else "")
