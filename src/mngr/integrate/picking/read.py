"""The commits of branches as changes of one kind each. Every commit is read once, from the first branch that has it;
what is not a change is told as well, with the reason. Whatever an agent says of its commits, their paths decide.

A change's id is a commit that does just this to one parent, so that it can be picked: the agent's own where it is like
that, and one that is made here for a part of a commit, a merge or the first commit of a history."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.integrate.change import Change, Source
from mngr.integrate.picking.difference import differences
from mngr.integrate.picking.undone import undone
from mngr.integrate.plain import few
from mngr.record import Record
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, KINDS, TEST, TUTORIAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mngr.integrate.picking.difference import Entry
    from mngr.integrate.picking.policy import Policy
    from mngr.integrate.picking.scratch import Scratch

UNSHALLOW = "git fetch --unshallow gets the rest"
IMPORTANCE = ("low", "medium", "high", "critical")
_REST = (TEST, TUTORIAL, DOCS)  # what a mix of these is called: the first that occurs
_FORMAT = ("%H", "%P", "%T", "%an <%ae> %ad", "%s", "%b", "%(trailers)", "%(trailers:only,unfold)")


class Ignored(Record):
    """A commit that is no change."""

    branch: str
    commit: str
    subject: str
    why: str


class Found(Record):
    changes: list[Change]
    ignored: list[Ignored]


class _Commit(Record):
    id: str
    parents: list[str]
    tree: str
    author: str
    subject: str
    body: str
    trailers: list[tuple[str, str]]


class _Part(Record):
    """What of a commit is one change."""

    commit: _Commit
    branch: str
    kind: str
    entries: list[Entry]
    is_whole: bool
    notes: list[str]


def read(scratch: Scratch, sources: Sequence[Source], policy: Policy) -> Found:
    """In the order of the sources, and of each branch from its beginning on."""
    commits = _commits(scratch, sources)
    lines = {source.branch: _line(source, commits) for source in sources}
    mine, ignored = _each_once(lines)
    firsts = [(commit.id, commit.parents[0] if commit.parents else None) for _, commit in mine]
    entries = differences(scratch, firsts, renames=True)
    parts: list[_Part] = []
    for branch, commit in mine:
        if entries[commit.id]:
            parts += _parts(branch, commit, entries[commit.id], policy)
        else:
            why = "a merge that brings nothing to its branch" if len(commit.parents) > 1 else "an empty commit"
            ignored.append(Ignored(branch=branch, commit=commit.id, subject=commit.subject, why=why))
    claims = _claims(sources)
    places: dict[str, int] = {}
    found = []
    for part, (id, parent) in zip(parts, _ids(scratch, parts), strict=True):
        place = places[part.branch] = places.get(part.branch, -1) + 1
        found.append(_change(part, id, parent, place, claims.get(part.commit.id, {}), policy))
    for change, why in undone(scratch, found, _holders(lines)):
        found.remove(change)
        ignored.append(Ignored(branch=change.branch, commit=change.commit, subject=change.subject, why=why))
    return Found(changes=found, ignored=ignored)


# Which commits there are


def _commits(scratch: Scratch, sources: Sequence[Source]) -> dict[str, _Commit]:
    """All that are on a branch and not in the base, by their ids."""
    if not sources:
        return {}
    lines = "".join(f"{source.head}\n" for source in sources) + f"^{scratch.base}\n"
    how = ["--first-parent", "--date=raw", "--encoding=UTF-8", f"--format={'%x00'.join(_FORMAT)}"]
    words = scratch.git("log", "--stdin", "-z", *how, input=lines.encode()).split("\0")[:-1]
    cut = _cut_off(scratch)
    found = {}
    for place in range(0, len(words), len(_FORMAT)):
        id, parents, tree, author, subject, body, block, trailers = words[place : place + len(_FORMAT)]
        if id in cut:
            raise MngrError(
                f"the history of a branch ends at {id[:10]}, before it meets the base: the repository is shallow",
                UNSHALLOW,
            )
        found[id] = _Commit(
            id=id,
            parents=parents.split(),
            tree=tree,
            author=author if author[-1].isdecimal() else author.rstrip() + " 0 +0000",
            subject=subject,
            body=body.rstrip().removesuffix(block.rstrip()).strip("\n").rstrip(),
            trailers=_trailers(trailers),
        )
    return found


def _cut_off(scratch: Scratch) -> set[str]:
    """Commits of a shallow clone that look as if they had no parent."""
    path = os.path.join(scratch.directory, "shallow")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="ascii") as file:
        return set(file.read().split())


def _trailers(text: str) -> list[tuple[str, str]]:
    pairs = [line.partition(":") for line in text.split("\n") if ":" in line]
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def _line(source: Source, commits: Mapping[str, _Commit]) -> list[_Commit]:
    """All that are on its branch, from the beginning on."""
    line: list[_Commit] = []
    id: str | None = source.head
    while id is not None and id in commits:
        line.append(commits[id])
        id = commits[id].parents[0] if commits[id].parents else None
    return line[::-1]


def _each_once(lines: Mapping[str, list[_Commit]]) -> tuple[list[tuple[str, _Commit]], list[Ignored]]:
    owner: dict[str, str] = {}
    mine: list[tuple[str, _Commit]] = []
    ignored: list[Ignored] = []
    for branch, line in lines.items():
        for commit in line:
            if owner.setdefault(commit.id, branch) == branch:
                mine.append((branch, commit))
            else:
                why = f"taken from {owner[commit.id]}, which has it too"
                ignored.append(Ignored(branch=branch, commit=commit.id, subject=commit.subject, why=why))
    return mine, ignored


def _holders(lines: Mapping[str, list[_Commit]]) -> dict[str, frozenset[str]]:
    """By commit: the branches that have it."""
    found: dict[str, set[str]] = {}
    for branch, line in lines.items():
        for commit in line:
            found.setdefault(commit.id, set()).add(branch)
    return {id: frozenset(branches) for id, branches in found.items()}


def _claims(sources: Sequence[Source]) -> dict[str, dict[str, Any]]:
    """What is said of each commit, by the first who says something."""
    found: dict[str, dict[str, Any]] = {}
    for source in sources:
        for commit, claim in source.claims.items():
            found.setdefault(commit, claim)
    return found


# What a commit falls apart into


def _parts(branch: str, commit: _Commit, entries: list[Entry], policy: Policy) -> list[_Part]:
    kinds = {path: policy.kind_of(path) for entry in entries for path in entry.paths}
    program = [entry for entry in entries if kinds[entry.path] == IMPLEMENTATION]
    rest = [entry for entry in entries if kinds[entry.path] != IMPLEMENTATION]
    hold = _held_together_by(entries, kinds)
    if hold or not program or not rest:
        kind = IMPLEMENTATION if hold else _kind_of(kinds.values())
        notes = [f"not split: {hold}"] if hold else []
        return [_Part(commit=commit, branch=branch, kind=kind, entries=entries, is_whole=True, notes=notes)]
    parts = []
    for some, others in ((program, rest), (rest, program)):
        kind = _kind_of([kinds[entry.path] for entry in some])
        notes = [f"a part of {commit.id[:10]}, which changes {_named(others, policy)} too"]
        parts.append(_Part(commit=commit, branch=branch, kind=kind, entries=some, is_whole=False, notes=notes))
    return parts


def _held_together_by(entries: list[Entry], kinds: Mapping[str, str]) -> str:
    """Why the program and the rest cannot be told apart, if they cannot."""
    is_program = {path: kind == IMPLEMENTATION for path, kind in kinds.items()}
    for entry in entries:
        if entry.source and is_program[entry.source] != is_program[entry.path]:
            return f"{entry.source} ({kinds[entry.source]}) becomes {entry.path} ({kinds[entry.path]})"
    for path in is_program:
        above = os.path.dirname(path)
        while above:
            if above in is_program and is_program[above] != is_program[path]:
                return f"{above} and {path} take each other's place"
            above = os.path.dirname(above)
    return ""


def _kind_of(kinds: Any) -> str:
    present = set(kinds)
    return IMPLEMENTATION if IMPLEMENTATION in present else next(kind for kind in _REST if kind in present)


def _named(entries: list[Entry], policy: Policy) -> str:
    return few([f"{path} ({policy.kind_of(path)})" for entry in entries for path in entry.paths])


# The commits that do just that


def _ids(scratch: Scratch, parts: list[_Part]) -> list[tuple[str, str]]:
    """For each part a commit and its only parent."""
    parents = [part.commit.parents[0] if part.commit.parents else "" for part in parts]
    if "" in parents:
        nothing = scratch.commit(scratch.git("mktree"), [])
        parents = [parent or nothing for parent in parents]
    own = [part.is_whole and len(part.commit.parents) == 1 for part in parts]
    wanted = [place for place, is_own in enumerate(own) if not is_own]
    edits = [(parents[place], _edits(parts[place].entries)) for place in wanted]
    made = dict(zip(wanted, scratch.edit_commits(edits), strict=True))
    return [(made.get(place, part.commit.id), parents[place]) for place, part in enumerate(parts)]


def _edits(entries: list[Entry]) -> dict[str, tuple[str, str] | None]:
    """A path can be left by one file and taken by another, which was renamed: what is there in the end counts."""
    gone = {path: None for entry in entries for path, after in entry.edits.items() if after is None}
    return {**gone, **{entry.path: entry.after for entry in entries if entry.after is not None}}


def _change(part: _Part, id: str, parent: str, place: int, claim: Mapping[str, Any], policy: Policy) -> Change:
    commit = part.commit
    said = {key.lower(): value for key, value in commit.trailers}  # the last one counts
    notes = list(part.notes)
    declared = ""
    for word in (said.get("kind"), claim.get("kind")):
        if isinstance(word, str) and not declared:
            declared = word.lower() if word.lower() in KINDS else ""
            if not declared:
                notes.append(f"declared as {word!a}, which is none of {', '.join(KINDS)}")
    if declared and declared != part.kind:
        others = [entry for entry in part.entries if any(policy.kind_of(path) != declared for path in entry.paths)]
        notes.append(f"declared as {declared}, but changes {_named(others, policy)}")
    importance = [str(word).lower() for word in (said.get("importance"), claim.get("importance")) if word]
    return Change(
        id=id,
        commit=commit.id,
        parent=parent,
        branch=part.branch,
        place=place,
        kind=part.kind,
        declared=declared,
        paths=list(dict.fromkeys(path for entry in part.entries for path in entry.paths)),
        added=sum(entry.added for entry in part.entries),
        removed=sum(entry.removed for entry in part.entries),
        is_text=all(entry.is_text for entry in part.entries),
        subject=commit.subject,
        body=commit.body,
        trailers=[f"{key}: {value}" for key, value in commit.trailers if key.lower() not in ("kind", "importance")],
        author=commit.author,
        importance=next((word for word in importance if word in IMPORTANCE), ""),
        notes=notes,
    )
