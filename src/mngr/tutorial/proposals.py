"""Proposals for the blanks of a tutorial: what an agent suggests, what its run said, what the person decided. They are
kept in a file of MNGR_HOME from the moment they exist, and saved at each decision, so that nothing is lost whatever
ends: who comes back is offered what is left.

A blank is known by its words. Its line is where it was last seen."""

from __future__ import annotations

import json
import os

from mngr.e2e.block import block_id, normalise
from mngr.errors import MngrError
from mngr.record import Record
from mngr.tutorial.blocks import Blank, parse
from mngr.tutorial.trial import Trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KEEP, REJECT, OPEN = "keep", "reject", ""
MOST = 3  # proposals for one blank
_LONGEST = 10_000  # characters of a block: a shell takes it as one argument


class Proposal(Record):
    id: str  # stays the same when the block is edited, or moves
    blank: str  # the text of the blank
    section: str
    line: int
    block: str
    decision: str = OPEN
    reason: str = ""  # of the rejection
    trial: Trial | None = None

    @property
    def result(self) -> str:
        """What would stand in the tutorial."""
        return self.block if self.block.startswith("#") else f"{self.blank}\n{self.block}"

    def to_dict(self) -> dict[str, object]:
        return {**self.__dict__, "trial": self.trial.to_dict() if self.trial else None}


def flaw_of(block: str) -> str:
    """Why this cannot be a block of a tutorial; nothing when it can."""
    if len(block) > _LONGEST:
        return f"it is longer than {_LONGEST} characters"
    if not all(char.isprintable() or char in "\n\t" for char in block):
        return "it has control characters in it"
    found = parse(block)
    if found.problems:
        return found.problems[0].message
    if len(found.blocks) != 1 or found.blanks:
        return "it is not one paragraph" if found.blocks else "it has no command in it"
    return "it begins with a heading" if found.blocks[0].section else ""


def read_answer(text: str, blanks: Sequence[Blank]) -> tuple[list[Proposal], list[str]]:
    """The proposals in what an agent has written, and what is wrong with the rest of it. MngrError when it is nothing
    that could hold any."""
    try:
        items = json.loads(text)["proposals"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MngrError(f"what it wrote is not JSON with a list of proposals: {type(error).__name__} {error}") from None
    if not isinstance(items, list):
        raise MngrError("what it wrote has no list of proposals")
    found: dict[str, Proposal] = {}
    problems = []
    for number, item in enumerate(items, 1):
        blank, blocks = _read_item(item, blanks)
        if blank is None or not blocks:
            problems.append(f"proposal {number}: {'no blocks' if blank else 'no such paragraph in the tutorial'}")
            continue
        for block in blocks[:MOST]:
            flaw = flaw_of(block)
            if flaw:
                problems.append(f"proposal {number}, for line {blank.line}: {flaw}")
                continue
            block = normalise(block)
            id = block_id(f"{blank.line}\n{blank.text}\n{block}")
            found[id] = Proposal(id=id, blank=blank.text, section=blank.section, line=blank.line, block=block)
    return list(found.values()), problems


def _read_item(item: object, blanks: Sequence[Blank]) -> tuple[Blank | None, list[str]]:
    """The line tells blanks with the same words apart; the words alone will do where there is but one."""
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        return None, []
    same = [blank for blank in blanks if blank.text == normalise(item["text"])]
    meant = [blank for blank in same if blank.line == item.get("line")] or same[:1]
    blocks = item.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, str) for block in blocks):
        blocks = []
    return (meant[0] if meant else None), blocks


class Store:
    """The proposals for one tutorial. Those whose blank is gone are kept aside: it may come back, as after an edit of
    its words that is undone."""

    def __init__(self, home: str, tutorial: str) -> None:
        name = os.path.realpath(tutorial)
        self.path = os.path.join(home, "tutorial", f"fill-{block_id(name)}.json")
        self.tutorial = name
        self.proposals: list[Proposal] = []
        self._aside: list[Proposal] = []

    def load(self, blanks: Iterable[Blank]) -> None:
        """Those whose blank is still there. A file that cannot be read is told, not overwritten."""
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
            stored = [_proposal(item) for item in data["proposals"]]
            aside = [_proposal(item) for item in data.get("aside", [])]
        except FileNotFoundError:
            return
        except (ValueError, TypeError, KeyError) as error:
            raise MngrError(f"{self.path} is damaged: {error}", "remove it: the proposals in it are lost") from None
        blanks = list(blanks)
        placed = place(stored, blanks)
        taken = {each.line for each in placed}
        self.proposals = placed + place(aside, [blank for blank in blanks if blank.line not in taken])
        ids = {each.id for each in self.proposals}
        self._aside = [each for each in [*stored, *aside] if each.id not in ids]

    def put(self, proposal: Proposal) -> None:
        """A new one, or a known one as it is now."""
        ids = [other.id for other in self.proposals]
        if proposal.id in ids:
            self.proposals[ids.index(proposal.id)] = proposal
        else:
            self.proposals.append(proposal)
        self.save()

    def save(self) -> None:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        new = f"{self.path}.{os.getpid()}"
        data = {
            "schema": 1,
            "tutorial": self.tutorial,
            "proposals": [each.to_dict() for each in self.proposals],
            "aside": [each.to_dict() for each in self._aside],
        }
        with open(new, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        os.replace(new, self.path)

    def undecided(self) -> list[Proposal]:
        """Those that nobody has decided about, of blanks for which nothing is kept yet."""
        kept = {(each.line, each.blank) for each in self.proposals if each.decision == KEEP}
        return [each for each in self.proposals if each.decision == OPEN and (each.line, each.blank) not in kept]

    def having(self, decision: str) -> list[Proposal]:
        return [each for each in self.proposals if each.decision == decision]


def place(proposals: Iterable[Proposal], blanks: Iterable[Blank]) -> list[Proposal]:
    """The proposals where their blanks are now: lines move. Of blanks with the same words, the first is the first."""
    where: dict[str, list[Blank]] = {}
    for blank in blanks:
        where.setdefault(blank.text, []).append(blank)
    lines: dict[str, list[int]] = {}
    for proposal in sorted(proposals, key=lambda each: each.line):
        known = lines.setdefault(proposal.blank, [])
        if proposal.line not in known:
            known.append(proposal.line)
    found = []
    for proposal in proposals:
        nth = lines[proposal.blank].index(proposal.line)
        if nth < len(where.get(proposal.blank, [])):
            blank = where[proposal.blank][nth]
            found.append(proposal.replace(line=blank.line, section=blank.section))
    return found


def _proposal(item: object) -> Proposal:
    if not isinstance(item, dict):
        raise ValueError("a proposal is no object")
    known = {key: item[key] for key in Proposal.FIELDS if key in item}
    return Proposal(**{**known, "trial": Trial.from_dict(item["trial"]) if item.get("trial") else None})
