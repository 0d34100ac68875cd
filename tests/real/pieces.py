"""A Python module as the pieces it is made of: one for each function, class or other statement of its top level, with
the blank lines and comments in front of it. All pieces together are the module, so a change of one of them can be
carried from one version of the module to another."""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple


class Piece(NamedTuple):
    names: tuple[str, ...]  # that it binds in the module
    text: str
    is_import: bool = False


class Module:
    def __init__(self, text: str) -> None:
        self.pieces = list(_cut(text))

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    def find(self, name: str) -> Piece | None:
        return next((piece for piece in self.pieces if name in piece.names), None)

    def defines(self, name: str) -> bool:
        piece = self.find(name)
        return piece is not None and not piece.is_import

    def take(self, name: str, later: Module) -> None:
        """Make this piece what it is in a later version: in the place of the old one, or behind what it follows there.
        Helpers of its own come with it."""
        old = Module(self.text)
        for wanted in _needed(name, old, later):
            self._put(wanted, later)
        self._list(name, later)

    def _put(self, name: str, later: Module) -> None:
        new = later.find(name)
        assert new is not None
        old = self.find(name)
        if old is not None:
            self.pieces[self.pieces.index(old)] = new
            return
        before = later.pieces[: later.pieces.index(new)]
        known = (self.find(name) for piece in reversed(before) for name in piece.names)
        anchor = next(piece for piece in known if piece is not None)
        self.pieces.insert(self.pieces.index(anchor) + 1, new)

    def _list(self, name: str, later: Module) -> None:
        mine, theirs = self.find("__all__"), later.find("__all__")
        if mine is not None and theirs is not None:
            text = with_line(mine.text, theirs.text, f"    '{name}',\n")
            self.pieces[self.pieces.index(mine)] = mine._replace(text=text)

    def import_what(self, later: Module, importable: set[str]) -> None:
        """Whatever a later version imports; of its own package only what is `importable`. What is not needed yet does
        no harm, and changes made side by side need not touch the same few lines."""
        lines = []
        for piece in later.pieces:
            if piece.is_import:
                lines += _import_lines([name for name in piece.names if not self.find(name)], piece, importable)
        place = max(place for place, piece in enumerate(self.pieces) if piece.is_import)
        last = self.pieces[place]
        self.pieces[place] = last._replace(text=last.text + "".join(lines))


def with_line(text: str, later: str, line: str) -> str:
    """`text` with a line of a later version in its place there: behind, or else in front of, a line that both have."""
    mine, theirs = text.splitlines(keepends=True), later.splitlines(keepends=True)
    if line in mine or line not in theirs:
        return text
    place = theirs.index(line)
    for neighbour in reversed(theirs[:place]):
        if not neighbour.strip():
            break
        if neighbour in mine:
            mine.insert(mine.index(neighbour) + 1, line)
            return "".join(mine)
    for neighbour in theirs[place:]:
        if not neighbour.strip():
            break
        if neighbour in mine:
            mine.insert(mine.index(neighbour), line)
            return "".join(mine)
    return text


@cache
def _cut(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    lines, done = text.splitlines(keepends=True), 0
    for node in ast.parse(text).body:
        end = node.end_lineno or done
        own, names = "".join(lines[done:end]), tuple(_bound(node))
        if names or not pieces:
            pieces.append(Piece(names, own, isinstance(node, ast.Import | ast.ImportFrom)))
        else:  # such as `name.__doc__ = ...`: it belongs to what it speaks of
            pieces[-1] = pieces[-1]._replace(text=pieces[-1].text + own)
        done = end
    pieces[-1] = pieces[-1]._replace(text=pieces[-1].text + "".join(lines[done:]))
    return tuple(pieces)


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name for alias in node.names]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.If() | ast.Try() | ast.ExceptHandler():
            return [name for child in ast.iter_child_nodes(node) for name in _bound(child)]
    return []


def _needed(name: str, old: Module, later: Module) -> list[str]:
    """The names to take over for this one: itself, and what it uses that is private, or not there yet. Another public
    function is a change of its own."""
    wanted = [name]
    for each in wanted:  # grows on the way
        piece = later.find(each)
        assert piece is not None, f"there is no {each}"
        used = {node.id for node in ast.walk(ast.parse(piece.text)) if isinstance(node, ast.Name)}
        for other in sorted(used - set(piece.names) - set(wanted)):
            own = other.startswith("_") or not old.find(other)
            if own and later.defines(other) and old.find(other) != later.find(other):
                wanted.append(other)
    return wanted


def _import_lines(names: list[str], piece: Piece, importable: set[str]) -> list[str]:
    node = ast.parse(piece.text).body[-1]
    if isinstance(node, ast.ImportFrom):
        names = [name for name in names if not node.level or name in importable]
        home = "." * node.level + (node.module or "")
        return [f"from {home} import {', '.join(names)}\n"] if names and home != "__future__" else []
    return [f"import {name}\n" for name in names]
