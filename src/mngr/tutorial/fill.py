"""The blanks of a tutorial, filled: a person decides, what they keep is run once, and then written into the file.
cli/tutorial_fill.py asks the person; review.py does it by a file; ask.py gets the proposals.

The tutorial is the user's: it is written once, at the end, whole, and only if it is still what was read."""

from __future__ import annotations

import codecs
import os
import shutil

from mngr.agents.log import Entry
from mngr.errors import MngrError, UsageError
from mngr.record import Record
from mngr.tutorial.blocks import Tutorial, as_text, first_command, is_markdown, parse, read_bytes
from mngr.tutorial.calls import calls
from mngr.tutorial.confusion import PROGRAM, REJECTED, from_entries, record, subcommand_of
from mngr.tutorial.proposals import KEEP, REJECT, Proposal, Store
from mngr.tutorial.trial import try_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.tutorial.blocks import Blank


class Source(Record):
    """A tutorial as it was read, and has to be still when it is written."""

    path: str
    data: bytes
    tutorial: Tutorial

    @property
    def text(self) -> str:
        return self.data.decode("utf-8-sig")


def read_source(path: str) -> Source:
    """Raises UsageError for what has no blanks to write into: no text, or Markdown, whose # begins a heading."""
    if is_markdown(path):
        raise UsageError(f"{path}: blanks are filled in shell files, not in Markdown")
    data = read_bytes(path)
    return Source(path=path, data=data, tutorial=parse(as_text(data, path), path))


def unanswered(source: Source, store: Store) -> list[Blank]:
    """The blanks that have no proposal, or only such as were rejected."""
    known = {(each.line, each.blank) for each in store.proposals if each.decision != REJECT}
    return [blank for blank in source.tutorial.blanks if (blank.line, blank.text) not in known]


def tried(home: str, store: Store, proposal: Proposal) -> Proposal:
    """With what its run came to: each is run once. One that used its program wrongly says something about that."""
    if proposal.trial:
        return proposal
    trial = try_block(proposal.result)
    proposal = proposal.replace(trial=trial)
    store.put(proposal)
    if trial.code:
        said = f"{trial.output}\nexit code {trial.code}"
        ran = [
            Entry(kind="tool_call", role="assistant", tool="shell", call="trial", input={"command": proposal.block}),
            Entry(kind="tool_result", role="tool", call="trial", text=said, failed=True),
        ]
        for sign in from_entries(ran, _program(proposal.block), _place(store, proposal)):
            record(home, sign.kind, sign.subcommand, sign.words, sign.detail, sign.source)
    return proposal


def keep(store: Store, proposal: Proposal) -> None:
    store.put(proposal.replace(decision=KEEP))


def reject(home: str, store: Store, proposal: Proposal, reason: str) -> None:
    store.put(proposal.replace(decision=REJECT, reason=reason))
    program = _program(proposal.block)
    about = subcommand_of(proposal.block, program) or program
    record(home, REJECTED, about, proposal.block, reason, _place(store, proposal))


def _program(block: str) -> str:
    """What the tutorial is about, as far as a block tells: mngr if that is called, else what is called first."""
    words = [word for word in first_command(block).split() if "=" not in word]
    return PROGRAM if calls(block, PROGRAM) or not words else os.path.basename(words[0])


def _place(store: Store, proposal: Proposal) -> str:
    return f"{store.tutorial}:{proposal.line}"


def edited(proposal: Proposal, block: str) -> Proposal:
    """Not run yet, if anything has changed."""
    if block in (proposal.block, proposal.result):
        return proposal
    return proposal.replace(block=block, trial=None)


def write_kept(source: Source, store: Store) -> list[Proposal]:
    """What was kept, now in the file; the other proposals for the same blanks are forgotten with it."""
    kept = store.having(KEEP)
    if not kept:
        return []
    path = os.path.realpath(source.path)
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "wb") as file:
            file.write(filled(source, kept))
        shutil.copymode(path, new)
        with open(path, "rb") as file:
            if file.read() != source.data:
                raise MngrError(
                    f"{source.path} has changed meanwhile, and is left as it is",
                    "what you kept is remembered: the same command writes it",
                )
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.unlink(new)
    done = {(each.line, each.blank) for each in kept}
    store.proposals = [each for each in store.proposals if (each.line, each.blank) not in done]
    store.save()
    return kept


def filled(source: Source, kept: list[Proposal]) -> bytes:
    """The first block joins the comment, or takes its place; further ones follow as paragraphs of their own. From the
    end, so that the lines above stay where they are."""
    lines = source.text.split("\n")
    end_of_line = "\r" if "\r\n" in source.text else ""
    for blank in reversed(source.tutorial.blanks):
        blocks = [each.block for each in kept if (each.line, each.blank) == (blank.line, blank.text)]
        if not blocks:
            continue
        old = lines[blank.line - 1 : blank.end]
        comment = [] if blocks[0].startswith("#") else [line.removesuffix("\r") for line in old]
        new = [*comment, *"\n\n".join(blocks).split("\n")]
        new = [f"{line}{end_of_line}" for line in new]
        if not old[-1].endswith("\r"):
            new[-1] = new[-1].removesuffix("\r")  # the end of the file
        lines[blank.line - 1 : blank.end] = new
    begin = codecs.BOM_UTF8 if source.data.startswith(codecs.BOM_UTF8) else b""
    return begin + "\n".join(lines).encode()
