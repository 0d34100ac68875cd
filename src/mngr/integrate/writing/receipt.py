"""The receipt: what became of each commit of each branch. A commit has landed as it was if the step that took it in
adds and takes away just the same lines; where it does not, `git range-diff` shows the difference.

Which commit landed where is known, so that nothing has to be searched for: two trees are compared for each change, all
of them by one git, and only pairs that differ go to `range-diff`. It stays linear in the number of changes."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

from mngr.integrate import plain
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.integrate.change import Change, Group, Source
    from mngr.integrate.picking.read import Ignored
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Plan, Stack

AS_IT_WAS, CHANGED, NOT_LANDED = "landed as it was", "landed changed", "not landed"
_SHORT = 10
_LONGEST = 200  # lines of one difference
_HEADER = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?: [0-9a-f]{40,64})?")


class Fate(Record):
    """Of one commit, or of the part of one."""

    change: Change
    word: str  # AS_IT_WAS, CHANGED or NOT_LANDED
    told: str  # where it is, or why it is not
    difference: str = ""


def receipt(
    scratch: Scratch,
    sources: Sequence[Source],
    plan: Plan,
    stack: Stack,
    commits: Sequence[str],
    ignored: Iterable[Ignored] = (),
) -> str:
    """As text. `plan` and `stack` are those that were built in the end, `commits` has one for each step."""
    by_branch: dict[str, list[Fate]] = {source.branch: [] for source in sources}
    for fate in fates(scratch, plan, stack, commits):
        by_branch.setdefault(fate.change.branch, []).append(fate)
    passed_over: dict[str, list[Ignored]] = {}
    for each in ignored:
        passed_over.setdefault(each.branch, []).append(each)
    agents = {source.branch: source.agent for source in sources}
    out: list[str] = []
    for branch, found in by_branch.items():
        found.sort(key=lambda fate: fate.change.place)
        out += [*_branch(branch, agents.get(branch, ""), found, passed_over.get(branch, [])), ""]
    return "\n".join(out)


def fates(scratch: Scratch, plan: Plan, stack: Stack, commits: Sequence[str]) -> list[Fate]:
    found = _landed(scratch, stack, commits)
    for left in stack.left:
        found += _of(left.group, NOT_LANDED, f"left out: {plain.words(left.why)}")
    for group in stack.dropped:
        found += _of(group, NOT_LANDED, plain.words(plan.dropped.get(group.key, "")) or "dropped")
    for group in stack.there:
        found += _of(group, NOT_LANDED, "adds nothing: it is there already")
    return found


# What landed


def _landed(scratch: Scratch, stack: Stack, commits: Sequence[str]) -> list[Fate]:
    befores = [scratch.tree_of(scratch.base), *(pick.tree for pick in stack.picks)]
    firsts = [pick.group.first for pick in stack.picks]
    trees = list(pairwise(befores))
    effects = _effects(scratch, [*(change.id for change in firsts), *(f"{old} {new}" for old, new in trees)])
    found: list[Fate] = []
    place = 0
    for number, step in enumerate(stack.steps):
        commit = commits[number][:_SHORT] if number < len(commits) else "no commit"
        for pick in step.picks:
            first, (old, new) = firsts[place], trees[place]
            place += 1
            is_same = effects.get(first.id) == effects.get(f"{old} {new}")
            difference = "" if is_same else _difference(scratch, first, old, new)
            how = f" ({plain.words(pick.text or pick.how)})" if pick.how else ""
            where = commit + (", folded" if step.ranked is None and len(step.picks) > 1 else "") + how
            word = AS_IT_WAS if is_same else CHANGED
            found.append(Fate(change=first, word=word, told=where, difference=difference))
            same = f"{where}, by {plain.words(first.branch)}, who made the same"
            found += [Fate(change=each, word=word, told=same) for each in pick.group.changes[1:]]
    return found


def _effects(scratch: Scratch, asked: list[str]) -> dict[str, str]:
    """By commit, or by two trees: a checksum of the lines that it adds and takes away, wherever in a file they are."""
    words = ["-r", "-p", "-U0", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
    lines = "".join(f"{each}\n" for each in dict.fromkeys(asked)).encode()
    found = {}
    objects, sums = "", hashlib.sha256()
    for line in scratch.git("diff-tree", "--stdin", *words, input=lines).split("\n"):
        if _HEADER.fullmatch(line):
            sums = found[line] = hashlib.sha256()
        elif line.startswith("index "):
            objects = line
        else:
            # Which objects they are matters where there are no lines to compare.
            shown = "@@" if line.startswith("@@ ") else f"{objects}{line}" if line.startswith("Binary files ") else line
            sums.update(f"{shown}\n".encode("utf-8", "surrogateescape"))
    return {name: each.hexdigest() for name, each in found.items()}


def _difference(scratch: Scratch, change: Change, old: str, new: str) -> str:
    """By range-diff, of two pairs of commits that differ in nothing else."""
    before = scratch.commit(scratch.tree_of(change.parent), [])
    after = scratch.commit(scratch.tree_of(change.id), [before], "change\n")
    base = scratch.commit(old, [])
    picked = scratch.commit(new, [base], "change\n")
    words = ["--no-color", "--creation-factor=1000", "--no-notes", f"{before}..{after}", f"{base}..{picked}"]
    lines = plain.several_lines(scratch.git("range-diff", *words)).split("\n")[1:]
    more = len(lines) - _LONGEST
    return "\n".join([*lines[:_LONGEST], *([f"    [{more:,} more lines]"] if more > 0 else [])])


# As text


def _of(group: Group, word: str, told: str) -> list[Fate]:
    return [Fate(change=change, word=word, told=told) for change in group.changes]


def _branch(branch: str, agent: str, found: list[Fate], ignored: list[Ignored]) -> list[str]:
    counts = {word: sum(fate.word == word for fate in found) for word in (AS_IT_WAS, CHANGED, NOT_LANDED)}
    told = [f"{count:,} {_plural(word, count)}" for word, count in counts.items() if count]
    told += [f"{len(ignored):,} ignored"] if ignored else []
    who = f" ({plain.words(agent)})" if agent else ""
    lines = [f"{plain.words(branch)}{who}: {', '.join(told) or 'no commits'}"]
    for fate in found:
        subject = plain.shown(fate.change.subject, 72)
        lines.append(f"  {fate.change.commit[:_SHORT]} {subject}: {fate.word}: {fate.told}")
        lines += [f"    {note}" for note in map(plain.words, fate.change.notes)]
        lines += fate.difference.split("\n") if fate.difference else []
    lines += [
        f"  {each.commit[:_SHORT]} {plain.shown(each.subject, 72)}: ignored: {plain.words(each.why)}"
        for each in ignored
    ]
    return lines


def _plural(word: str, count: int) -> str:
    return {AS_IT_WAS: "landed as they were"}.get(word, word) if count != 1 else word
