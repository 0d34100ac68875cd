"""Conflicts that are none: both sides have only added lines, at the same place. Then a tree with both additions is what
both wanted, ours first wherever that is possible.

A wrong union is worse than a conflict, so it is made of prose and of Python alone. Of Python it counts only if nothing
but the additions of both sides has come of it: every function, class and statement is there as often as a merge by
definitions would have it, each function is as one of the sides has it, and no name is defined once more than on the
sides. So two additions inside one function are no union. Nor are statements of both sides at one place: what they do
depends on which comes first. In prose, two sections of one name or two items of one number are none."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from functools import lru_cache
from io import BytesIO
from itertools import pairwise

from mngr.integrate.picking.pick import BASE, OURS, THEIRS
from mngr.integrate.picking.threeway import three_way
from mngr.swarm.testing.collector import parse
from mngr.swarm.testing.kinds import DOCS, TUTORIAL, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.integrate.picking.pick import Picked
    from mngr.integrate.picking.scratch import Scratch

    Lines = list[bytes]
    Way = Callable[[Lines, Lines], Lines]
    Stages = dict[str, tuple[str, str]]

_PYTHON = (".py", ".pyi")
_PROSE = (".md", ".rst", ".adoc")
_PROSE_BY_KIND = (".txt", ".sh")  # prose only where they are documents or a tutorial
_NEVER = ("requirements", "constraints")
_REGULAR = ("100644", "100755")
_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_WIDTH = 60  # of the markers that we let git write, longer than any that occur in files
_OPEN, _MIDDLE, _SIDES, _CLOSE = (sign * _WIDTH for sign in (b"<", b"|", b"=", b">"))
_LARGEST = 1_000_000  # bytes
_NAMED = re.compile(rb"[ \t]*(#{1,6}[ \t].*|={1,6}[ \t].*|\d+[.)](?=[ \t]))")  # a heading, or the number of an item
_UNDERLINE = re.compile(rb"([=\-~^\"'`#*+.])\1{2,}[ \t]*\r?\n?")


def union(scratch: Scratch, picked: Picked, kind: str = "") -> str | None:
    """The tree in which every conflict is solved by keeping the additions of both sides; None if one cannot be. `kind`
    is that of the change that was picked."""
    solved: dict[str, tuple[str, str] | None] = {}
    for path, stages in picked.conflicts.items():
        content = _united(scratch, path, stages) if _may_be_united(path, stages, kind) else None
        if content is None:
            return None
        solved[path] = (stages[OURS][0], scratch.store(content))
    return scratch.edit_tree(picked.tree, solved) if solved else None


def _may_be_united(path: str, stages: Stages, kind: str) -> bool:
    if not {OURS, THEIRS} <= stages.keys():
        return False
    mode = stages[OURS][0]
    return mode in _REGULAR and mode == stages[THEIRS][0] and (_is_python(path) or _is_prose(path, kind))


def _is_python(path: str) -> bool:
    return path.endswith(_PYTHON)


def _is_prose(path: str, kind: str) -> bool:
    if path.rpartition("/")[2].startswith(_NEVER):
        return False
    by_kind = kind in (DOCS, TUTORIAL) or kind_of(path) in (DOCS, TUTORIAL)
    return path.endswith(_PROSE) or (by_kind and path.endswith(_PROSE_BY_KIND))


def _united(scratch: Scratch, path: str, stages: Stages) -> bytes | None:
    base = scratch.blob(stages[BASE][1]) if BASE in stages else b""
    ours, theirs = scratch.blob(stages[OURS][1]), scratch.blob(stages[THEIRS][1])
    if not all(_is_plain(each) for each in (base, ours, theirs)):
        return None
    merged, _ = three_way(ours, base, theirs, "--diff3", f"--marker-size={_WIDTH}")
    pieces = _pieces(BytesIO(merged).readlines())
    if not all(piece.only_adds for piece in pieces if isinstance(piece, _Clash)):
        return None
    if not _is_python(path):
        return None if _names_twice(path, pieces) else _joined(pieces, _both)
    if _both_do_something(pieces):
        return None
    contents = (_joined(pieces, way) for way in (_both, _others_first, _frame_once, _lines_once))
    return next((content for content in contents if _is_sound(content, base, ours, theirs)), None)


def _is_plain(content: bytes) -> bool:
    """Text that is no conflict itself: git writes one into a side when a rename comes on top of a conflict."""
    has_markers = any(line.startswith((*_MARKERS, _OPEN, _MIDDLE, _SIDES, _CLOSE)) for line in content.split(b"\n"))
    return len(content) <= _LARGEST and b"\0" not in content and not has_markers


def _joined(pieces: list[Lines | _Clash], way: Way) -> bytes:
    return b"".join(line for each in pieces for line in (each.united(way) if isinstance(each, _Clash) else each))


# Where the two clash


class _Clash:
    """A place where git sees a conflict: the lines of the base, and what both sides have there."""

    def __init__(self) -> None:
        self.base: Lines = []
        self.ours: Lines = []
        self.theirs: Lines = []

    @property
    def only_adds(self) -> bool:
        return self._gaps(self.ours) is not None and self._gaps(self.theirs) is not None

    def united(self, way: Way) -> Lines:
        """The lines of the base, and before, between and behind them what was added there."""
        ours, theirs = self._gaps(self.ours) or [], self._gaps(self.theirs) or []
        done: Lines = []
        for number, (mine, others) in enumerate(zip(ours, theirs, strict=True)):
            done += way(mine, others) if mine and others and mine != others else mine or others
            done += self.base[number : number + 1]
        return done

    def meetings(self) -> list[tuple[Lines, Lines]]:
        """What both have added at one place."""
        gaps = zip(self._gaps(self.ours) or [], self._gaps(self.theirs) or [], strict=True)
        return [(mine, others) for mine, others in gaps if mine and others and mine != others]

    def _gaps(self, side: Lines) -> list[Lines] | None:
        """What a side has added before each line of the base, and behind the last. None if a line is missing."""
        gaps: list[Lines] = [[]]
        for line in side:
            if len(gaps) <= len(self.base) and line == self.base[len(gaps) - 1]:
                gaps.append([])
            else:
                gaps[-1].append(line)
        return gaps if len(gaps) > len(self.base) else None


def _pieces(lines: Lines) -> list[Lines | _Clash]:
    """Runs of merged lines, and clashes between them."""
    merged: Lines = []
    pieces: list[Lines | _Clash] = [merged]
    into = merged
    for line in lines:
        if line.startswith(_OPEN):
            clash = _Clash()
            pieces.append(clash)
            into = clash.ours
        elif line.startswith(_MIDDLE):
            into = clash.base
        elif line.startswith(_SIDES):
            into = clash.theirs
        elif line.startswith(_CLOSE):
            into = []
            pieces.append(into)
        else:
            into.append(line)
    return pieces


# Ways to have both


def _both(ours: Lines, theirs: Lines) -> Lines:
    are_imports = all(line.startswith((b"import ", b"from ")) for line in ours + theirs)
    return _lines_once(ours, theirs) if are_imports else ours + theirs


def _others_first(ours: Lines, theirs: Lines) -> Lines:
    """Where they go on with what stands above, and ours begins something new: a method more, and another class."""
    return theirs + ours


def _frame_once(ours: Lines, theirs: Lines) -> Lines:
    """With what both begin or end with only once; blank lines stay, since they part what is between."""
    least = min(len(ours), len(theirs))
    head = next((n for n in range(least) if ours[n] != theirs[n]), least)
    tail = next((n for n in range(least - head) if ours[-1 - n] != theirs[-1 - n]), least - head)
    while head and not ours[head - 1].strip():
        head -= 1
    while tail and not ours[-tail].strip():
        tail -= 1
    return ours[: len(ours) - tail] + theirs[head : len(theirs) - tail] + ours[len(ours) - tail :]


def _lines_once(ours: Lines, theirs: Lines) -> Lines:
    """With every line that both have only once: for lists of imports."""
    return ours + [line for line in theirs if line not in ours or not line.strip()]


# Whether it may be one


def _names_twice(path: str, pieces: list[Lines | _Clash]) -> bool:
    """Prose in which both have begun the same section, or gone on with the same number."""
    if path.endswith(".sh"):  # its comments look like headings
        return False
    meetings = [each for piece in pieces if isinstance(piece, _Clash) for each in piece.meetings()]
    return any(_names_in(mine) & _names_in(others) for mine, others in meetings)


def _names_in(lines: Lines) -> set[bytes]:
    named = {found[1].strip() for line in lines if (found := _NAMED.match(line))}
    return named | {line.strip() for line, below in pairwise(lines) if line.strip() and _UNDERLINE.fullmatch(below)}


def _both_do_something(pieces: list[Lines | _Clash]) -> bool:
    """Whether each side has statements of its own where they clash, or that cannot be told."""
    base, ours, theirs = (_contents(_of_side(pieces, name)) for name in ("base", "ours", "theirs"))
    if base is None or ours is None or theirs is None:
        return True
    mine, others = ours.done - base.done, theirs.done - base.done
    return bool(mine - others and others - mine)


def _of_side(pieces: list[Lines | _Clash], name: str) -> bytes:
    return b"".join(line for each in pieces for line in (getattr(each, name) if isinstance(each, _Clash) else each))


# Whether it is still the same Python


def _is_sound(content: bytes, base: bytes, ours: bytes, theirs: bytes) -> bool:
    made, was, mine, others = (_contents(each) for each in (content, base, ours, theirs))
    if made is None or was is None or mine is None or others is None or not _compiles(content):
        return False
    wanted = _merged_counts(was.statements, mine.statements, others.statements)
    imports = (mine.imports | others.imports) - (was.imports - mine.imports) - (was.imports - others.imports)
    return wanted == made.statements and imports == made.imports and not made.clashes_with(mine, others)


def _compiles(content: bytes) -> bool:
    """Not all that can be parsed can: an import from __future__ behind something else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(content, "union", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


@lru_cache(maxsize=16)  # large files take long, and the sides are looked at for every way
def _contents(content: bytes) -> _Contents | None:
    tree = parse(content)
    return _Contents(tree) if tree else None


class _Contents:
    """What a module is made of: functions and statements as text, each with the class it is in. A class is its head and
    what is in it, so that both sides can add to it; so is the list of what a module exports. Imports are compared by
    what they bring, since a line more of the same does no harm."""

    def __init__(self, tree: ast.Module) -> None:
        self.statements: Counter[tuple[str, str]] = Counter()
        self.imports: set[tuple[str, str, str]] = set()  # where, the name that they define, what it stands for
        self.done: Counter[tuple[str, str]] = Counter()  # statements that define nothing but by being executed
        self.names: Counter[str] = Counter()  # how often each is defined
        self._read(tree.body, "")
        self.names.update(where + name for where, name, _ in self.imports)

    def clashes_with(self, ours: _Contents, theirs: _Contents) -> bool:
        """Whether a name is defined more often than by either side."""
        return any(count > max(ours.names[name], theirs.names[name]) for name, count in self.names.items())

    def _read(self, body: list[ast.stmt], inside: str) -> None:
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                origin = f"{'.' * node.level}{node.module or ''}:" if isinstance(node, ast.ImportFrom) else ""
                self.imports |= {(inside, each.asname or each.name, origin + each.name) for each in node.names}
                continue
            self.names.update(inside + name for name in _defined(node))
            if isinstance(node, ast.ClassDef):
                head = [ast.dump(each) for each in (*node.bases, *node.keywords, *node.decorator_list)]
                self.statements[inside, f"class {node.name}\n" + "\n".join(head)] += 1
                self._read(node.body, f"{inside}{node.name}.")
            elif (exported := _exported(node)) is not None:
                self.statements.update((inside, f"__all__ {each}") for each in ["", *exported])
            else:
                self.statements[inside, ast.dump(node)] += 1
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self.done[inside, ast.dump(node)] += 1


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _exported(node: ast.stmt) -> list[str] | None:
    """The entries of an `__all__`, whose order is of no account; None for anything else."""
    if not isinstance(node, ast.Assign) or _defined(node) != ["__all__"]:
        return None
    return [ast.dump(each) for each in node.value.elts] if isinstance(node.value, ast.List | ast.Tuple) else None


def _merged_counts(
    base: Counter[tuple[str, str]], ours: Counter[tuple[str, str]], theirs: Counter[tuple[str, str]]
) -> Counter[tuple[str, str]]:
    """How often each has to be there: as on the side that has changed it. What both have added is there once."""
    done: Counter[tuple[str, str]] = Counter()
    for each in base | ours | theirs:
        has_changed = ours[each] != base[each]
        both = has_changed and theirs[each] != base[each]
        count = max(ours[each], theirs[each]) if both else ours[each] if has_changed else theirs[each]
        if count:
            done[each] = count
    return done
