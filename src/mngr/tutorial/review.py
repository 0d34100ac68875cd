"""The review of proposals as a text file, for those who would rather decide in an editor: a paragraph for each, like
the list that `git rebase -i` hands out.

    # tutorial.sh:12, Creating agents: not run yet
    1a2b3c4d skip
        # start from another agent's work
        mngr create review --from fix-login

Notes begin in the first column with #, blocks are indented, and everything else is a decision. A paragraph that was
deleted is skipped. Nothing is decided by a file that cannot be read to its end."""

from __future__ import annotations

import textwrap

from mngr.e2e.block import normalise
from mngr.errors import UsageError
from mngr.record import Record
from mngr.tutorial.proposals import KEEP, OPEN, REJECT, flaw_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.tutorial.proposals import Proposal
    from mngr.tutorial.trial import Trial

_INTRODUCTION = """\
# What becomes of these proposals? Change `skip` to one of these, and the block itself as you like:
#   keep            it is run once, and written into {file} if it succeeds; else it is left here with what it said
#   keep anyway     it is run once, and written
#   reject: REASON  it is dropped, and the reason remembered
#   skip            it is offered again next time
# Then: {command}
"""
ANYWAY = "keep anyway"
_WORDS = {"keep": KEEP, ANYWAY: ANYWAY, "skip": OPEN, "reject": REJECT}
_LINES = 12  # of output that are shown


class Decision(Record):
    id: str
    decision: str
    reason: str
    block: str
    line: int  # of the file


def write_review(file: str, command: str, proposals: Iterable[Proposal]) -> str:
    return "\n".join(
        [_INTRODUCTION.format(file=file, command=command), *(_paragraph(file, each) for each in proposals)]
    )


def _paragraph(file: str, proposal: Proposal) -> str:
    place = f"{file}:{proposal.line}" + (f", {proposal.section}" if proposal.section else "")
    ran = told(proposal.trial) if proposal.trial else ["not run yet"]
    notes = [f"# {place}: {ran[0]}", *(f"#   {line}".rstrip() for line in ran[1:])]
    word = "keep" if proposal.decision == KEEP else "skip"
    return "\n".join([*notes, f"{proposal.id} {word}", textwrap.indent(proposal.result, "    "), ""])


def told(trial: Trial) -> list[str]:
    """What a run came to in one line, and the end of what it printed. Escape sequences of the program stay in it."""
    lines = trial.output.splitlines()
    how = "it did not end in time" if trial.timed_out else f"exit code {trial.code}"
    cut = [f"... {len(lines) - _LINES} more lines before"] if len(lines) > _LINES else []
    shown = ["".join(char if char.isprintable() else " " for char in line) for line in lines[-_LINES:]]
    return [f"{how} in {trial.seconds:.1f} s", *cut, *shown]


def read_review(text: str, path: str) -> list[Decision]:
    """Raises UsageError, with the line, for the first thing that cannot be understood."""
    found: list[Decision] = []
    bodies: list[list[str]] = []
    lines: dict[str, int] = {}
    note = 0  # the line of one since the last decision
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            note = note or number
            continue
        if line.strip() and not line[0].isspace():
            decision = _decision(line, number, path)
            if (first := lines.setdefault(decision.id, number)) != number:
                raise UsageError(f"{path}:{number}: {decision.id} is decided in line {first} already")
            found.append(decision)
            bodies.append([])
            note = 0
        elif bodies:
            if note and line.strip():
                raise UsageError(f"{path}:{note}: a note inside of a block would be lost", "indent it like the block")
            bodies[-1].append(line)
        elif line.strip():
            raise UsageError(f"{path}:{number}: a block with no decision before it")
    return [_with_block(decision, body, path) for decision, body in zip(found, bodies, strict=True)]


def _decision(line: str, number: int, path: str) -> Decision:
    id, _, said = line.strip().partition(" ")
    word, _, reason = said.strip().partition(":")
    word = " ".join(word.lower().split())
    if word not in _WORDS:
        raise UsageError(f"{path}:{number}: neither keep, nor skip, nor reject: REASON, but {said.strip() or line!r}")
    if word == "reject" and not reason.strip():
        raise UsageError(f"{path}:{number}: a rejection needs a reason", "reject: REASON; or skip")
    return Decision(id=id, decision=_WORDS[word], reason=reason.strip(), block="", line=number)


def _with_block(decision: Decision, lines: list[str], path: str) -> Decision:
    block = normalise("\n".join(lines))
    flaw = flaw_of(block) if decision.decision in (KEEP, ANYWAY) else ""
    if flaw:
        raise UsageError(f"{path}:{decision.line}: this cannot be a block: {flaw}")
    return decision.replace(block=block)
