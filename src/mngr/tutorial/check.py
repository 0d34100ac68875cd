"""The ledger of a tutorial and its tests, both ways: blocks that no test proves, and tests of blocks that are no longer
there. A citation whose block is gone but has left a similar one, which nobody cites, is an edit: with many of them at
once, few pairs may be compared letter by letter, so those that share the most are chosen first."""

from __future__ import annotations

import difflib
import re
from heapq import nlargest

from mngr.e2e.block import normalise
from mngr.record import Record
from mngr.tutorial.blocks import Block, Problem, Tutorial
from mngr.tutorial.citations import Citation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.tutorial.citations import Citations

ALIKE = 0.6
_SURELY = 0.9  # then only those are looked at that share nearly as much, up to
_CLOSE = 0.1
_LOOKED_AT = 4  # candidates for each text that is gone
_LEAST_SHARED = 0.15  # of the triples of letters; texts that are alike share far more
_SHORT = 40  # letters: few triples, but soon compared
_BITS = 2039
_LETTERS = 40_000  # as many pairs of letters are compared; beyond, words


class Edit(Record):
    citation: Citation
    block: Block
    similarity: float
    diff: str  # from what is cited to what is there


class Ledger(Record):
    tutorial: Tutorial
    citations: list[Citation]
    uncited: list[Block]
    gone: list[Citation]
    edited: list[Edit]
    duplicates: list[list[Block]]  # each: blocks with the same words, which no citation can tell apart
    covered: dict[str, list[Citation]]  # by the id of the block
    problems: list[Problem]  # of the tutorial, then of the tests

    @property
    def in_sync(self) -> bool:
        return not (self.uncited or self.gone or self.edited or self.duplicates or self.problems)


def check(tutorial: Tutorial, citations: Citations) -> Ledger:
    by_id: dict[str, list[Block]] = {}
    for block in tutorial.blocks:
        by_id.setdefault(block.id, []).append(block)
    cited: dict[str, list[Citation]] = {}
    for citation in citations.found:
        cited.setdefault(citation.id, []).append(citation)
    uncited = [blocks[0] for id, blocks in by_id.items() if id not in cited]
    lost = {id: normalise(found[0].text) for id, found in cited.items() if id not in by_id}
    nearest = _nearest(lost, uncited)
    edits = []
    for id, (block, alike) in nearest.items():
        diff = _diff(tutorial.path, lost[id], block)
        edits += [Edit(citation=each, block=block, similarity=round(alike, 3), diff=diff) for each in cited[id]]
    edited = {edit.block.id for edit in edits}
    return Ledger(
        tutorial=tutorial,
        citations=citations.found,
        uncited=[block for block in uncited if block.id not in edited],
        gone=[citation for id in lost if id not in nearest for citation in cited[id]],
        edited=edits,
        duplicates=[blocks for blocks in by_id.values() if len(blocks) > 1],
        covered={id: found for id, found in cited.items() if id in by_id},
        problems=tutorial.problems + citations.problems,
    )


def similarity(one: str, other: str) -> float:
    """As difflib's ratio, but what both begin and end with is counted at once: most edits are small."""
    if not one or not other:
        return float(one == other)
    begin = _common(one, other)
    end = _common(one[begin:][::-1], other[begin:][::-1])
    middle, changed = one[begin : len(one) - end], other[begin : len(other) - end]
    return 2 * (begin + end + _shared(middle, changed)) / (len(one) + len(other))


def _common(one: str, other: str) -> int:
    """The length of what both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _shared(one: str, other: str) -> int:
    """The number of letters that stand in both, in the same order."""
    if len(one) * len(other) <= _LETTERS:
        matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
        return sum(match.size for match in matcher.get_matching_blocks())
    words, others = re.findall(r"\S+\s*", one), re.findall(r"\S+\s*", other)
    matches = difflib.SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    return sum(len(word) for match in matches for word in words[match.a : match.a + match.size])


def _nearest(lost: dict[str, str], uncited: list[Block]) -> dict[str, tuple[Block, float]]:
    """For each text that is gone the block it has become, the most alike first. A block stands for one text, as long
    as there are others to choose from."""
    marked = [(block, _mark(block.text)) for block in uncited]
    pairs = [(alike, id, block) for id, text in lost.items() for block, alike in _alike(text, marked)]
    pairs.sort(key=lambda pair: (-pair[0], pair[2].line))
    found: dict[str, tuple[Block, float]] = {}
    taken = set()
    for only_free in (True, False):
        for alike, id, block in pairs:
            if id not in found and not (only_free and block.id in taken):
                found[id] = (block, alike)
                taken.add(block.id)
    return {id: found[id] for id in lost if id in found}


def _alike(text: str, marked: list[tuple[Block, int]]) -> Iterator[tuple[Block, float]]:
    mine = _mark(text)
    weight = mine.bit_count()
    shares = [
        (2 * (mine & mark).bit_count() / (weight + mark.bit_count() or 1), -number)
        for number, (_, mark) in enumerate(marked)
    ]
    enough = _LEAST_SHARED
    for share, number in nlargest(_LOOKED_AT, shares):
        if share < enough and len(text) > _SHORT:
            return
        block = marked[-number][0]
        alike = similarity(text, block.text)
        if alike >= ALIKE:
            yield block, alike
        if alike >= _SURELY:
            enough = share - _CLOSE


def _mark(text: str) -> int:
    """Its triples of letters as bits of one number: two numbers are compared at once, however long the texts."""
    bits = 0
    codes = [ord(char) for char in text]
    for a, b, c in zip(codes, codes[1:], codes[2:], strict=False):
        bits |= 1 << (a * 961 + b * 31 + c) % _BITS
    return bits


def _diff(path: str, cited: str, block: Block) -> str:
    place = f"{path}:{block.line}"
    return "\n".join(difflib.unified_diff(cited.split("\n"), block.text.split("\n"), "cited", place, lineterm=""))
