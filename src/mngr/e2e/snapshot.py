"""Snapshots that rewrite themselves: where in a test's source the literal of `to_match_snapshot("...")` stands, what it
has to become, and the one rewriting of all of them after the last test.

Tests only note their edits, as lines of a file that all processes of a run append to: line numbers stay true until
everybody is done, and what two parameters of one test want differently can be told before anything is written."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mngr.e2e import pattern
from mngr.e2e.block import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class CannotRewrite(Exception):
    """One sentence: why this snapshot has to be changed by hand."""


class Settings(NamedTuple):
    edits: Path | None = None  # where edits are noted; None: snapshots are compared and not rewritten
    variables: Callable[[], dict[str, str]] = dict


class Applied(NamedTuple):
    changed: list[str]  # files
    conflicts: list[str]  # sentences that begin with file:line

    def tell(self) -> list[str]:
        return [f"rewrote snapshots in {os.path.relpath(file)}" for file in self.changed] + [
            f"snapshot not rewritten: {conflict}" for conflict in self.conflicts
        ]


_settings = Settings()


@contextmanager
def at_work(edits: Path | None, variables: Callable[[], dict[str, str]]) -> Iterator[None]:
    """For the time of one test."""
    global _settings
    before = _settings
    _settings = Settings(edits, variables)
    try:
        yield
    finally:
        _settings = before


def settings() -> Settings:
    return _settings


def note(frame: FrameType, snapshot: str, text: str) -> None:
    """What the call that this frame is in the middle of has to say in order to match. That it matches already is noted
    too: another parameter of the same test may want something else."""
    edits, variables = _settings
    assert edits is not None
    names = variables()
    if normalise(snapshot) and pattern.matches(snapshot, text, names):
        wanted = None
    else:
        wanted = pattern.adapt(snapshot, text, names)
        if not wanted:
            raise CannotRewrite("there is nothing to write down; to_be_empty() says that it is empty")
    try:
        source = _Source(frame.f_code.co_filename)
        call = _find_call(source, frame, snapshot)
    except CannotRewrite:
        if wanted is None:
            return
        raise
    start, end = source.span(call)
    literal = None if wanted is None else _literal(wanted, source, call)
    edit = {"file": source.file, "line": call.lineno, "hash": source.hash, "start": start, "end": end, "text": literal}
    line = json.dumps(edit) + "\n"
    handle = os.open(edits, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, line.encode())  # one write: nobody else's line gets between
    finally:
        os.close(handle)


def apply(edits: Path) -> Applied:
    """Once, when all tests are over, in the process that started them."""
    wanted: dict[str, dict[tuple[int, int], list[_Edit]]] = {}
    for edit in _read(edits):
        wanted.setdefault(edit.file, {}).setdefault((edit.start, edit.end), []).append(edit)
    applied = Applied([], [])
    for file, calls in sorted(wanted.items()):
        try:
            _rewrite(file, calls, applied)
        except (CannotRewrite, OSError, UnicodeError) as error:
            applied.conflicts.append(f"{os.path.relpath(file)}: {error}")
    return applied


class _Edit(NamedTuple):
    file: str
    line: int
    hash: str
    start: int  # in characters of the decoded file
    end: int
    text: str | None  # source of the new literal; None: the call is right as it is


def _read(edits: Path) -> Iterator[_Edit]:
    try:
        lines = edits.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield _Edit(**json.loads(line))
        except (ValueError, TypeError):
            continue  # the last words of a process that was killed


def _rewrite(file: str, calls: dict[tuple[int, int], list[_Edit]], applied: Applied) -> None:
    source = _Source(file)
    text = source.text
    for (start, end), edits in sorted(calls.items(), reverse=True):  # from the bottom up: offsets above stay true
        where = f"{os.path.relpath(file)}:{edits[0].line}"
        literals = {edit.text for edit in edits}
        if literals == {None}:
            continue
        if any(edit.hash != source.hash for edit in edits):
            applied.conflicts.append(f"{where}: the file has changed since its tests began")
        elif len(literals) > 1:
            applied.conflicts.append(f"{where}: not every run of this line wants the same; parameters need [..] or ...")
        else:
            literal = edits[0].text
            assert literal is not None
            text = text[:start] + literal.replace("\n", source.newline) + text[end:]
    if text != source.text:
        source.replace(text)
        applied.changed.append(file)


class _Source:
    """A Python file: its text, its own line ends kept, and where a place of the syntax tree is in it."""

    def __init__(self, file: str) -> None:
        self.file = os.path.realpath(file)
        try:
            raw = Path(self.file).read_bytes()
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            self.text = raw.decode(self.encoding)
        except (OSError, SyntaxError, UnicodeError) as error:
            raise CannotRewrite(f"{file} cannot be read: {error}") from error
        self.hash = hashlib.sha256(raw).hexdigest()
        # Python ends lines here and nowhere else: str.splitlines() would at a form feed, too.
        self.lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", self.text)
        self.newline = "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"

    def offset(self, line: int, column: int) -> int:
        """Lines from 1; columns in bytes of UTF-8, whatever the file is written in."""
        before = self.lines[line - 1].encode("utf-8", "surrogatepass")[:column]
        return sum(map(len, self.lines[: line - 1])) + len(before.decode("utf-8", "surrogatepass"))

    def span(self, call: ast.Call) -> tuple[int, int]:
        """Of the literal; of the place before the closing parenthesis, when there is none."""
        argument = _argument(call)
        if argument is None:
            assert call.end_lineno is not None
            assert call.end_col_offset is not None
            end = self.offset(call.end_lineno, call.end_col_offset) - 1
            return end, end
        assert argument.end_lineno is not None
        assert argument.end_col_offset is not None
        start = self.offset(argument.lineno, argument.col_offset)
        return start, self.offset(argument.end_lineno, argument.end_col_offset)

    def replace(self, text: str) -> None:
        raw = text.encode(self.encoding)
        handle, other = tempfile.mkstemp(dir=os.path.dirname(self.file), prefix=".snapshot-")
        try:
            with open(handle, "wb") as file:
                file.write(raw)
            shutil.copymode(self.file, other)
            os.replace(other, self.file)
        except BaseException:
            os.unlink(other)
            raise


def _find_call(source: _Source, frame: FrameType, snapshot: str) -> ast.Call:
    where = f"{os.path.relpath(source.file)}:{frame.f_lineno}"
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError) as error:
        raise CannotRewrite(f"{where}: the file is no longer Python: {error}") from error
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "to_match_snapshot"
        and node.lineno <= frame.f_lineno <= (node.end_lineno or 0)
    ]
    if len(calls) > 1:  # two in one line, or one below the other in a chain: only their ends differ
        position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        calls = [call for call in calls if (call.end_lineno, call.end_col_offset) == (position[1], position[3])]
    if len(calls) != 1:
        raise CannotRewrite(f"{where}: the call of to_match_snapshot is not to be found")
    argument = _argument(calls[0])
    if argument is None:
        return calls[0]
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        raise CannotRewrite(f"{where}: only a plain string literal can be rewritten, no f-string, name or expression")
    if argument.value != snapshot:
        raise CannotRewrite(f"{where}: the file has changed since it was imported")
    return calls[0]


def _argument(call: ast.Call) -> ast.expr | None:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return given[0] if given else None


def _literal(wanted: str, source: _Source, call: ast.Call) -> str:
    """Triple-quoted, its lines one step further in than the call. Closed below the line in which it begins."""
    assert call.func.end_lineno is not None
    argument = _argument(call)
    step = _indentation(source.lines[call.func.end_lineno - 1])
    last = step if argument is None else _indentation(source.lines[argument.lineno - 1])
    body = "\n".join(step + "    " + line if line else "" for line in wanted.split("\n"))
    inside = f"\n{body}\n{last}"
    if "\\" in inside and '"""' not in inside and all(map(_is_printed, inside)):
        literal = f'r"""{inside}"""'
    else:
        literal = f'"""{"".join(map(_escaped, inside)).replace(_QUOTES, _ESCAPED_QUOTES)}"""'
    if normalise(ast.literal_eval(literal)) != wanted:
        raise CannotRewrite("this text has no literal that says the same when it is indented")
    return literal


_QUOTES, _ESCAPED_QUOTES = '"""', r"\"\"\""


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_printed(character: str) -> bool:
    return character in "\n\t" or character.isprintable()


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if _is_printed(character) else ascii(character)[1:-1]
