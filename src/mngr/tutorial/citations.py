"""Which test cites which block, from the syntax tree: no test is imported or run. Only a text that can be read off the
source counts, inside a test function; every other use of `write_tutorial_block` is a problem that is told, since a
citation that nobody sees would make its block look unproven."""

from __future__ import annotations

import ast
import os
import re
import warnings
from bisect import bisect_left

from mngr.e2e.block import block_id
from mngr.errors import UsageError
from mngr.record import Record
from mngr.tutorial.blocks import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CITE = "write_tutorial_block"
_ANY_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class Citation(Record):
    file: str
    line: int
    test: str  # as pytest names it: file::[Class::]function
    text: str

    @property
    def id(self) -> str:
        return block_id(self.text)


class Citations(Record):
    """In the order of files and lines, with what could not be read beside them."""

    found: list[Citation]
    problems: list[Problem]
    unreadable: list[Problem] = []  # noqa: RUF012 - Record copies defaults; of the problems, those that hide a file


def find_citations(paths: Iterable[str]) -> Citations:
    """Files are read whatever they are called, directories with all that is Python below them. Raises UsageError for a
    path that is not there. Links below a directory lead out of it, so they are not followed."""
    citations = Citations(found=[], problems=[])
    seen = set()
    for path, collected, regular in _files(paths):
        real = os.path.realpath(path) if regular else os.path.abspath(path)
        if real in seen:
            continue
        seen.add(real)
        if not regular:
            _unreadable(citations, path, 1, "cannot be read: it is no regular file")
            continue
        try:
            with open(path, "rb") as file:
                source = file.read()
            if CITE.encode() in source:
                _File(path, source, collected, citations).read()
        except OSError as error:
            _unreadable(citations, path, 1, f"cannot be read: {error.strerror}")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            what = getattr(error, "msg", "") or str(error) or type(error).__name__
            _unreadable(citations, path, line, f"this is no Python: {what}")
    return citations


def _unreadable(citations: Citations, path: str, line: int, message: str) -> None:
    problem = Problem(file=path, line=line, message=message)
    citations.problems.append(problem)
    citations.unreadable.append(problem)


def _files(paths: Iterable[str]) -> Iterator[tuple[str, bool, bool]]:
    """With each: whether pytest takes it for a file of tests, and whether it is a file, neither a link nor a pipe. One
    that is named is taken at its word."""
    for path in paths:
        if not os.path.isdir(path):
            if not os.path.exists(path):
                raise UsageError(f"{path}: No such file or directory")
            yield path, True, os.path.isfile(path)
            continue
        for top, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not _is_foreign(top, name))
            for name in sorted(names):
                if name.endswith(".py") and not name.startswith("."):
                    is_test = name.startswith("test_") or name.endswith("_test.py")
                    found = os.path.normpath(os.path.join(top, name))
                    regular = os.path.isfile(found) and not os.path.islink(found)
                    if is_test or regular:
                        yield found, is_test, regular


def _is_foreign(top: str, name: str) -> bool:
    hidden = name.startswith(".") or name in ("__pycache__", "node_modules")
    return hidden or os.path.exists(os.path.join(top, name, "pyvenv.cfg"))


class _File:
    def __init__(self, path: str, source: bytes, collected: bool, citations: Citations) -> None:
        self._path, self._collected, self._citations = path, collected, citations
        lines = re.split(rb"\r\n?|\n", source)
        self._lines = [number for number, line in enumerate(lines, 1) if CITE.encode() in line]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an escape in somebody's string
            self._tree = ast.parse(source)
        self._last: dict[ast.AST, dict[str, int]] = {}  # in each scope: the line where a name was defined last

    def read(self) -> None:
        self._visit(self._tree, [])

    def _visit(self, node: ast.AST, around: list[ast.AST]) -> None:
        """Only what spans a line with the word is entered: that is far less than the tree."""
        for child in ast.iter_child_nodes(node):
            line, end = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
            if line is not None and end is not None and not self._has_word(child, line, end):
                continue
            if isinstance(child, ast.Call) and _is_cite(child.func):
                self._cited(child, around)
                self._visit(child.func, around)
            elif _is_cite(child):
                self._problem(child, f"{CITE} is passed on here, so what it cites cannot be read: call it")
            else:
                inner = isinstance(child, (*_ANY_FUNCTION, ast.ClassDef))
                self._visit(child, [*around, child] if inner else around)

    def _has_word(self, node: ast.AST, line: int, end: int) -> bool:
        if decorators := getattr(node, "decorator_list", None):
            line = min(line, decorators[0].lineno)
        at = bisect_left(self._lines, line)
        return at < len(self._lines) and self._lines[at] <= end

    def _cited(self, call: ast.Call, around: list[ast.AST]) -> None:
        test = _test(around)
        if not self._collected:
            self._problem(call, "a block is cited in a file that pytest does not take for tests: test_*.py, *_test.py")
        elif test is None:
            where = around[-1].name if around and isinstance(around[-1], _ANY_FUNCTION) else "no function"
            self._problem(call, f"a block is cited outside of a test, in {where}: cite it in the test that proves it")
        elif never := self._never_runs(test, around):
            self._problem(call, never)
        else:
            given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "text")]
            text = self._text(given[0], around) if len(given) == 1 else None
            if text is None:
                self._problem(call, f"{test} cites a text that cannot be read off the source: write it as one literal")
            else:
                cited = Citation(file=self._path, line=call.lineno, test=f"{self._path}::{test}", text=text)
                self._citations.found.append(cited)

    def _never_runs(self, test: str, around: list[ast.AST]) -> str:
        """Why pytest passes this test over; nothing when it does not. A class with bases may be a unittest.TestCase."""
        scope: ast.AST = self._tree
        for outer in around:
            assert isinstance(outer, (*_ANY_FUNCTION, ast.ClassDef))
            if isinstance(outer, ast.ClassDef) and not outer.name.startswith("Test") and not outer.bases:
                return f"a block is cited in class {outer.name}, which pytest does not take for tests: Test*"
            if (last := self._defined(scope).get(outer.name, 0)) > outer.lineno:
                return f"{test} is shadowed by line {last}, so that it never runs: give it another name"
            if isinstance(outer, _ANY_FUNCTION):
                break
            scope = outer
        return ""

    def _defined(self, scope: ast.AST) -> dict[str, int]:
        """Only what is defined in any case: of two branches, one is taken."""
        if scope not in self._last:
            body = getattr(scope, "body", [])
            self._last[scope] = {
                node.name: node.lineno for node in body if isinstance(node, (*_ANY_FUNCTION, ast.ClassDef))
            }
        return self._last[scope]

    def _text(self, node: ast.AST, around: list[ast.AST]) -> str | None:
        """Literals, added or not, and constants of the module."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            parts = [self._text(part, around) for part in node.values]
            return None if None in parts else "".join(part or "" for part in parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._text(node.left, around), self._text(node.right, around)
            return None if left is None or right is None else left + right
        if isinstance(node, ast.Name) and not any(node.id in _own_names(outer) for outer in around):
            values = list(self._assigned(node.id))
            return self._text(values[0], []) if len(values) == 1 and not isinstance(values[0], ast.Name) else None
        return None

    def _assigned(self, name: str) -> Iterator[ast.AST]:
        """All that the module gives this name: one that changes is no constant."""
        for node in self._tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield getattr(node, "value", None) or node

    def _problem(self, node: ast.AST, message: str) -> None:
        self._citations.problems.append(Problem(file=self._path, line=getattr(node, "lineno", 1), message=message))


def _is_cite(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == CITE


def _test(around: list[ast.AST]) -> str | None:
    """The outermost function, if it is a test: what is defined inside one belongs to it."""
    names = []
    for outer in around:
        assert isinstance(outer, (*_ANY_FUNCTION, ast.ClassDef))
        names.append(outer.name)
        if isinstance(outer, _ANY_FUNCTION):
            return "::".join(names) if outer.name.startswith("test") else None
    return None


def _own_names(outer: ast.AST) -> set[str]:
    """What a function calls by names of its own: parameters, and what it assigns."""
    if isinstance(outer, ast.ClassDef):
        return set()
    own = {node.arg for node in ast.walk(outer) if isinstance(node, ast.arg)}
    return own | {node.id for node in ast.walk(outer) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
