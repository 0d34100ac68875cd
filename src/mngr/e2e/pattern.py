"""Text with holes: `...` alone on a line stands for any lines, `[..]` for any characters of a line, `[WORK]` for a
value that is given, `[TIME]` for anything of that form, and `[HEX:a]` for the same text wherever it occurs. A backslash
before one of these makes it plain text; a name in brackets that nobody knows is plain text anyway.

Nothing here backtracks. Where a pattern can be after each of its lines is a set of positions in the text, held as the
bits of one integer, so that thousands of lines with several `...` are matched in one pass."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import NamedTuple

from mngr.e2e.block import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Meaning = frozenset[tuple[str, str]]  # what tagged kinds stand for: {("HEX:a", "1f3c0de")}
    States = dict[Meaning, int]  # the positions that can be reached under each meaning

_NUMBER = r"\d+(?:\.\d+)?"
_UNIT = r"(?:[nuµm]s|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?![A-Za-z])"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_DATE = r"\d{4}-\d\d-\d\d"
_SPAN = rf"{_NUMBER} ?{_UNIT}"
# Each kind: the characters that it cannot begin in the middle of, and its forms. A form takes all it can get; that
# `1.2` is a number and `1` is one too is what makes `[NUMBER].[NUMBER]` possible.
_KINDS = {
    "TIME": (r"\d", (rf"{_CLOCK}(?: ?[AaPp][Mm])?{_ZONE}(?!\d)", rf"{_DATE}(?!\d)", rf"{_DATE}[T ]{_CLOCK}{_ZONE}")),
    "DURATION": (r"[\d.]", (_SPAN, rf"{_SPAN}(?: ?{_SPAN})+")),
    "NUMBER": (r"\d", (r"[-+]?\d+", r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?", r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")),
    "HEX": (r"[0-9A-Fa-f]", (r"[0-9A-Fa-f]{7,}",)),
    "UUID": (r"[0-9A-Fa-f]", (r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",)),
    "PORT": (r"\d", (r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})(?!\d)",)),
}
_HOLE = re.compile(r"(\\*)\[(\.\.|([A-Z][A-Z0-9_]*)(:[A-Za-z0-9_-]+)?)\]")
_DOTS = re.compile(r"\s*(\\*)\.\.\.")
_NOTHING: Meaning = frozenset()
_MEANINGS = 10_000  # how many are followed at once: several tags between several `...` could have any number


def matches(pattern: str, text: str, variables: Mapping[str, str]) -> bool:
    lines = _lines(text)
    everywhere = (2 << len(lines)) - 1
    places = _Places(lines)
    states: States = {_NOTHING: 1}
    for line in _parse(pattern, variables):
        if line is None:
            states = {meaning: everywhere & -(at & -at) for meaning, at in states.items()}
        else:
            states = _advance(states, places.find(line, _union(states.values())))
    return bool(_union(states.values()) >> len(lines))


def diff(pattern: str, text: str, variables: Mapping[str, str]) -> str:
    """What would have to change in the pattern: lines that match are shown as the pattern has them, and lines that
    `...` stands for are not shown. Empty when it matches."""
    old, new = "\n".join(_lines(pattern)), adapt(pattern, text, variables)
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), "expected", "actual", lineterm="")
    return "\n".join(lines)


def adapt(pattern: str, text: str, variables: Mapping[str, str]) -> str:
    """The pattern that matches this text: lines that still match stay, with their holes, and the others are written
    anew. A `...` stays where the line before or after it does; for each line lost beside it, a new one is written."""
    if matches(pattern, text, variables):
        return "\n".join(_lines(pattern))
    old, lines = _parse(pattern, variables), _lines(text)
    new: list[str] = []
    i = j = 0
    for next_i, next_j in _align(old, lines):
        new += _between(old[i:next_i], lines[j:next_j], variables)
        kept = old[next_i]
        assert kept is not None
        new.append(kept.source)
        i, j = next_i + 1, next_j + 1
    new += _between(old[i:], lines[j:], variables)
    return "\n".join(new)


def escape(text: str, variables: Mapping[str, str]) -> str:
    """The pattern that matches this text and no other, but for the values of the variables."""
    return "\n".join(_write(line, variables) for line in _lines(text))


def _lines(text: str) -> list[str]:
    """Twice, because a line of exotic spaces hides the common indentation of the others until it is empty."""
    text = normalise(normalise(text))
    return text.split("\n") if text else []


class _Kind(NamedTuple):
    name: str
    tag: str | None  # "HEX:a"


class _Part(NamedTuple):
    loose: bool  # there is a `[..]` before it
    what: str | _Kind


class _Line(NamedTuple):
    source: str
    parts: tuple[_Part, ...]
    open: bool  # ends in `[..]`

    @property
    def literal(self) -> str | None:
        """Its only possible text, when it has no holes."""
        if self.open or len(self.parts) > 1 or any(part.loose for part in self.parts):
            return None
        what = self.parts[0].what if self.parts else ""
        return what if isinstance(what, str) else None

    def meanings(self, text: str) -> set[Meaning]:
        """Every way in which the line can be this text; for a line without tags that is the empty meaning or none."""
        if not self._has_its_words(text):
            return set()
        states = {(0, _NOTHING)}
        for loose, what in self.parts:
            if loose:  # the leftmost start can do all that a later one could
                first: dict[Meaning, int] = {}
                for at, meaning in states:
                    first[meaning] = min(at, first.get(meaning, at))
                states = {(at, meaning) for meaning, at in first.items()}
            if isinstance(what, str):
                states = {(end, meaning) for at, meaning in states for end in _literal_ends(what, text, at, loose)}
            else:
                states = set(_kind_states(what, text, states, loose))
        return {meaning for at, meaning in states if self.open or at == len(text)}

    def _has_its_words(self, text: str) -> bool:
        """A quick look that spares most lines the long one."""
        at = 0
        for part in self.parts:
            if isinstance(part.what, str):
                found = text.find(part.what, at)
                if found < 0:
                    return False
                at = found + len(part.what)
        return True


def _parse(pattern: str, variables: Mapping[str, str]) -> list[_Line | None]:
    """None is a `...`."""
    return [_parse_line(line, variables) for line in _lines(pattern)]


def _parse_line(line: str, variables: Mapping[str, str]) -> _Line | None:
    if dots := _DOTS.fullmatch(line):
        if not dots[1]:
            return None
        return _Line(line, (_Part(False, line.replace("\\", "", 1)),), False)
    parts: list[_Part] = []
    literal, loose, done = "", False, 0
    for hole in _HOLE.finditer(line):
        if not _is_hole(hole, variables):
            continue
        slashes = len(hole[1])
        literal += line[done : hole.start()] + "\\" * (slashes // 2)
        done = hole.end()
        if slashes % 2:
            literal += f"[{hole[2]}]"
        elif hole[2] in variables:
            literal += variables[hole[2]]
        else:
            if literal:
                parts.append(_Part(loose, literal))
                literal, loose = "", False
            if hole[2] == "..":
                loose = True
            else:
                parts.append(_Part(loose, _Kind(hole[3], hole[2] if hole[4] else None)))
                loose = False
    literal += line[done:]
    if literal:
        parts.append(_Part(loose, literal))
        loose = False
    return _Line(line, tuple(parts), loose)


def _is_hole(hole: re.Match[str], variables: Mapping[str, str]) -> bool:
    return hole[2] == ".." or hole[2] in variables or hole[3] in _KINDS


def _literal_ends(literal: str, text: str, at: int, loose: bool) -> Iterator[int]:
    if not loose:
        if text.startswith(literal, at):
            yield at + len(literal)
        return
    at = text.find(literal, at)
    while at >= 0:
        yield at + len(literal)
        at = text.find(literal, at + 1)


def _kind_states(
    kind: _Kind, text: str, states: Iterable[tuple[int, Meaning]], loose: bool
) -> Iterator[tuple[int, Meaning]]:
    for start, meaning in states:
        for begin, end in _occurrences(kind.name, text, start, loose):
            if kind.tag is None:
                yield end, meaning
                continue
            value = text[begin:end]
            if dict(meaning).get(kind.tag, value) == value:
                yield end, meaning | {(kind.tag, value)}


def _occurrences(kind: str, text: str, at: int, loose: bool) -> Iterator[tuple[int, int]]:
    for form in _forms(kind, loose):
        if not loose:
            if found := form.match(text, at):
                yield found.span()
            continue
        found = form.search(text, at)
        while found:
            yield found.span()
            found = form.search(text, found.start() + 1)


@lru_cache
def _forms(kind: str, loose: bool) -> list[re.Pattern[str]]:
    edge, forms = _KINDS[kind]
    before = f"(?<!{edge})" if loose else ""
    return [re.compile(f"{before}(?:{form})", re.ASCII) for form in forms]


class _Places:
    """Which lines of the text a line of the pattern matches. Asked only about lines that can be reached, and each
    question once, however often a line occurs in the pattern."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.equal: dict[str, int] = {}
        for number, line in enumerate(lines):
            self.equal[line] = self.equal.get(line, 0) | 1 << number
        self.known: dict[str, tuple[int, States]] = {}  # by source: the lines that were asked about, and the answer

    def find(self, line: _Line, where: int) -> States:
        literal = line.literal
        if literal is not None:
            return {_NOTHING: self.equal.get(literal, 0) & where}
        asked, found = self.known.get(line.source, (0, {}))
        where &= (1 << len(self.lines)) - 1
        for number in _bits(where & ~asked):
            for meaning in line.meanings(self.lines[number]):
                found[meaning] = found.get(meaning, 0) | 1 << number
        self.known[line.source] = asked | where, found
        return found


def _advance(states: States, found: States) -> States:
    """One line further, where what the line says of its tags agrees with what is known of them. All states know the
    same tags, those of the lines before, so the meanings that agree are looked up and not searched for."""
    tags = {tag for meaning in states for tag, _ in meaning} & {tag for meaning in found for tag, _ in meaning}
    agreeing: dict[Meaning, list[tuple[Meaning, int]]] = {}
    for meaning, places in found.items():
        agreeing.setdefault(_only(meaning, tags), []).append((meaning, places))
    reached: States = {}
    for before, at in states.items():
        for meaning, places in agreeing.get(_only(before, tags), ()):
            if at & places and len(reached) < _MEANINGS:
                both = before | meaning
                reached[both] = reached.get(both, 0) | (at & places) << 1
    return reached


def _only(meaning: Meaning, tags: set[str]) -> Meaning:
    return frozenset(item for item in meaning if item[0] in tags)


def _union(sets: Iterable[int]) -> int:
    union = 0
    for each in sets:
        union |= each
    return union


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _align(old: list[_Line | None], lines: list[str]) -> Iterator[tuple[int, int]]:
    """Pairs of a line of the pattern and the line of the text that it goes on matching, as far as tags allow."""
    told: dict[str, str] = {}
    i = j = 0
    for next_i, next_j in [*_anchors(old, lines), (len(old), len(lines))]:
        for pair in [*_opposite(old, lines, range(i, next_i), range(j, next_j)), (next_i, next_j)]:
            line = old[pair[0]] if pair[0] < len(old) else None
            for meaning in sorted(line.meanings(lines[pair[1]]), key=sorted) if line else ():
                if all(told.get(tag, value) == value for tag, value in meaning):
                    told.update(meaning)
                    yield pair
                    break
        i, j = next_i + 1, next_j + 1


def _anchors(old: list[_Line | None], lines: list[str]) -> list[tuple[int, int]]:
    """Lines that can be recognised wherever they went. One of the text that several lines of the pattern match belongs
    to the one that says most about it; `[..]` alone says nothing, and recognises nothing."""
    telling = [(index, line) for index, line in enumerate(old) if line is not None and _said(line) >= 0]
    literals = {line.literal: line.source for _, line in telling if line.literal is not None}
    holed = sorted({line for _, line in telling if line.literal is None}, key=lambda line: (-_said(line), line.source))
    found = [
        literals[text] if text in literals else next((line.source for line in holed if line.meanings(text)), None)
        for text in lines
    ]
    blocks = difflib.SequenceMatcher(None, [line.source for _, line in telling], found).get_matching_blocks()
    return [(telling[block.a + n][0], block.b + n) for block in blocks for n in range(block.size)]


def _said(line: _Line) -> int:
    """Below 0: nothing at all."""
    if line.literal is not None:
        return len(line.literal)
    words = [part.what for part in line.parts]
    return sum(len(word.strip()) if isinstance(word, str) else 1 for word in words) or -1


def _opposite(old: list[_Line | None], lines: list[str], lost: range, new: range) -> Iterator[tuple[int, int]]:
    """Between two anchors, what stands in the same place: counted from above, and below the last `...` from below."""
    dots = [index for index in lost if old[index] is None]
    above = range(lost.start, dots[0] if dots else lost.stop)
    below = range(dots[-1] + 1 if dots else lost.stop, lost.stop)[-len(new) :] if new else range(0)
    yield from zip(above, new[: len(new) - len(below)], strict=False)
    yield from zip(below, new[len(new) - len(below) :], strict=True)


def _between(lost: list[_Line | None], lines: list[str], variables: Mapping[str, str]) -> list[str]:
    new = [_write(line, variables) for line in lines]
    if not lost or (lost[0] is not None and lost[-1] is not None):
        return new
    count = sum(line is not None for line in lost)
    if lost[0] is not None:
        return [*new[:count], "..."]
    if lost[-1] is not None:
        return ["...", *new[-count:]]
    return ["..."]


def _write(line: str, variables: Mapping[str, str]) -> str:
    if dots := _DOTS.fullmatch(line):
        return line[: dots.start(1)] + "\\" + line[dots.start(1) :]
    names = {value: name for name, value in variables.items() if value and value == value.strip()}
    if not names:
        return _plain(line, variables)
    written = ""
    done = 0
    for value in _values(tuple(names)).finditer(line):
        plain = _plain(line[done : value.start()], variables)
        slashes = len(plain) - len(plain.rstrip("\\"))
        written += plain + "\\" * slashes + f"[{names[value[0]]}]"
        done = value.end()
    return written + _plain(line[done:], variables)


@lru_cache
def _values(values: tuple[str, ...]) -> re.Pattern[str]:
    """Longest first: the work dir is below the root. Whole words only: `/tmp/w` is not in `/tmp/words`."""
    longest_first = sorted(values, key=len, reverse=True)
    whole = [r"(?<!\w)" * bool(re.match(r"\w", value)) + re.escape(value) + r"(?![\w-])" for value in longest_first]
    return re.compile("|".join(whole))


def _plain(text: str, variables: Mapping[str, str]) -> str:
    """What looks like a hole gets a backslash, and backslashes before it are doubled."""
    return _HOLE.sub(
        lambda hole: f"{hole[1] * 2}\\[{hole[2]}]" if _is_hole(hole, variables) else hole[0],
        text,
    )
