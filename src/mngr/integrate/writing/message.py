"""The messages of the integrated commits: what the agents wrote, and below it trailers that say where each commit comes
from and what is known of it. `git interpret-trailers --parse` reads back just the trailers that were written here:
nothing in a text of an agent can be taken for one of them, or hide them."""

from __future__ import annotations

import re

from mngr.integrate import plain
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mngr.integrate.change import Change, Group, Source
    from mngr.integrate.picking.stack import Pick, Stack, Step

_WIDEST_SUBJECT = 72
_LONGEST_LINE = 500
_LONGEST_BODY = 10_000  # characters
_MOST_EVIDENCE = 20  # lines of one commit
_MOST_AUTHORS = 30
_MOST_PICKED = 100
PICKED_FROM = "Picked-from"  # every commit that is made has it, and so it is known by it
_NAMES = ("Kind", "Test", "Agent", "Branch", "Run", "Verified-by", "Also-fixed-by", "Carries", PICKED_FROM)
# Our trailers, and what git takes for the beginning of a patch, when it looks for trailers or in a mail.
_TAKEN_FOR_OURS = re.compile(rf"(?:{'|'.join(_NAMES)})\s*:|---|diff -|Index: |From ", re.IGNORECASE)
_MARKS = re.compile(r"^(?:(?:-{3,}|#+)\s*)+")  # at the start of a subject: the same, and comments
_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: \S.*")
_AUTHOR = re.compile(r"(?P<name>[^<>]*)<(?P<mail>[^<>]*)> (?P<seconds>[0-9]{1,15}) (?P<zone>[+-][0-9]{4})")
_KINDS = {TEST: "Tests", TUTORIAL: "Tutorial", DOCS: "Docs"}  # in the order in which they are named


def messages(
    stack: Stack, sources: Iterable[Source], checked: Mapping[str, Sequence[str]] | None = None
) -> list[tuple[str, str]]:
    """Message and author of each step. `checked` has, by the key of a group, what verification found out about it: each
    line is as it shall stand behind `Verified-by: mngr`, in parentheses."""
    by_branch = {source.branch: source for source in sources}
    return [(_message(step, by_branch, checked or {}), author_of(step)) for step in stack.steps]


def author_of(step: Step) -> str:
    """Who made the first change, at the time of the latest."""
    changes = [pick.group.first for pick in step.picks]
    name, mail, _ = _author(changes[0].author)
    seconds, zone = max((_author(change.author)[2] for change in changes), key=lambda when: when[0])
    return f"{name} <{mail}> {seconds} {zone}"


def subject_of(step: Step, sources: Iterable[Source] = ()) -> str:
    """Whole, and on one line."""
    if step.ranked is not None or len(step.picks) == 1:
        return _subject(step.picks[0].group.first)
    agents = {source.branch: source.agent for source in sources}
    makers = [change for pick in step.picks for change in pick.group.changes]
    names = {agents.get(change.branch) or change.branch for change in makers}
    are_agents = all(agents.get(change.branch) for change in makers)
    found = {pick.group.first.kind for pick in step.picks}
    kinds = [word for kind, word in _KINDS.items() if kind in found] or ["Changes"]
    what = plain.listed([kinds[0], *(word.lower() for word in kinds[1:])])
    return f"{what} of {plain.counted(len(names), *(('agent',) if are_agents else ('branch', 'branches')))}"


def _message(step: Step, sources: Mapping[str, Source], checked: Mapping[str, Sequence[str]]) -> str:
    subject, rest = plain.cut(subject_of(step, sources.values()), _WIDEST_SUBJECT)
    if rest:
        subject, rest = plain.cut(subject_of(step, sources.values()), _WIDEST_SUBJECT - 3)
        subject, rest = f"{subject}...", f"...{rest}"
    is_alone = step.ranked is not None or len(step.picks) == 1
    evidence = list(dict.fromkeys(line for pick in step.picks for line in checked.get(pick.group.key, [])))
    if is_alone:
        said = [_body(step.picks[0].group.first.body), *_told(step.picks[1:], "With it:")]
        trailers = _trailers(step, sources, evidence)
    else:
        said = _told(step.picks, "")
        trailers = [("Kind", _kind(step)), *_runs(step.picks, sources), *_evidence(evidence)]
    picked = list(dict.fromkeys(pick.group.first.commit for pick in step.picks))
    trailers += [(PICKED_FROM, commit) for commit in picked[:_MOST_PICKED]]
    more = len(picked) - _MOST_PICKED
    too_many = [f"Of {more:,} more commits than are named below: the receipt has them all."] if more > 0 else []
    theirs, ours = _their_trailers(step), [_trailer(*pair) for pair in trailers]
    paragraphs = [subject, rest, *said, *_solved(step), *too_many, "\n".join([*theirs, *ours])]
    return "\n\n".join(text for text in paragraphs if text) + "\n"


# What agents wrote


def _subject(change: Change) -> str:
    subject = _MARKS.sub("", plain.words(change.subject))
    return subject or f"Change {plain.listed([plain.words(path) for path in change.paths], 1)}"


def _body(text: str) -> str:
    text = plain.several_lines(text)
    text = text if len(text) <= _LONGEST_BODY else f"{text[:_LONGEST_BODY]}\n[cut here]"
    return "\n".join(_harmless(piece) for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> list[str]:
    pieces = []
    while len(line) > _LONGEST_LINE:
        piece, line = plain.cut(line, _LONGEST_LINE)
        pieces.append(piece)
    return [*pieces, line]


def _harmless(line: str) -> str:
    return f"    {line}" if _TAKEN_FOR_OURS.match(line) else line


def _told(picks: Sequence[Pick], title: str) -> list[str]:
    """A line for each change."""
    lines = []
    for pick in picks:
        branches = list(dict.fromkeys(change.branch for change in pick.group.changes))
        by = plain.listed([plain.words(branch) for branch in branches])
        lines.append(f"- {plain.shortened(_subject(pick.group.first), 200)} ({by})")
    return ["\n".join([title, *lines] if title else lines)] if lines else []


def _solved(step: Step) -> list[str]:
    """Where a commit is not what its agent made."""
    found = [(pick, plain.words(pick.text or pick.how)) for pick in step.picks if pick.how]
    lines = [f"- {plain.shortened(_subject(pick.group.first), 100)}: {how}" for pick, how in found]
    return ["\n".join(["Not as it was made:", *lines])] if lines else []


# Trailers


def _trailers(step: Step, sources: Mapping[str, Source], evidence: list[str]) -> list[tuple[str, str]]:
    group = step.picks[0].group
    own = sources.get(group.first.branch)
    carried = len(step.picks) - 1
    return [
        ("Kind", IMPLEMENTATION if step.ranked is not None else _kind(step)),
        *(("Test", test) for test in _tests(group, sources)),
        ("Agent", own.agent) if own is not None and own.agent else ("Branch", group.first.branch),
        *_runs(step.picks[:1], sources),
        *_evidence(evidence),
        *(("Also-fixed-by", who) for who in _others(group, sources)),
        *([("Carries", plain.counted(carried, "other change"))] if carried else []),
    ]


def _their_trailers(step: Step) -> list[str]:
    """Those of the agents' own, such as `Signed-off-by`, none of a name that is ours; and everybody who is not the
    author of the commit, but of something in it."""
    lines = [plain.one_line(line) for pick in step.picks for line in pick.group.first.trailers]
    authors = dict.fromkeys(_author(pick.group.first.author)[:2] for pick in step.picks)
    lines += [f"Co-authored-by: {name} <{mail}>" for name, mail in list(authors)[1 : _MOST_AUTHORS + 1]]
    return [line for line in dict.fromkeys(lines) if _TRAILER.fullmatch(line) and not _TAKEN_FOR_OURS.match(line)]


def _trailer(name: str, value: str) -> str:
    return f"{name}: {plain.one_line(value) or '-'}"


def _kind(step: Step) -> str:
    found = {pick.group.first.kind for pick in step.picks}
    return next((kind for kind in _KINDS if kind in found), step.picks[0].group.first.kind)


def _tests(group: Group, sources: Mapping[str, Source]) -> list[str]:
    known = [sources[change.branch].test for change in group.changes if change.branch in sources]
    return list(dict.fromkeys(test for test in known if test))


def _runs(picks: Sequence[Pick], sources: Mapping[str, Source]) -> list[tuple[str, str]]:
    branches = [change.branch for pick in picks for change in pick.group.changes]
    runs = [sources[branch].run for branch in branches if branch in sources]
    return [("Run", run) for run in dict.fromkeys(runs) if run]


def _evidence(lines: list[str]) -> list[tuple[str, str]]:
    more = len(lines) - _MOST_EVIDENCE
    shown = [*lines[:_MOST_EVIDENCE], *([f"and {more:,} more"] if more > 0 else [])]
    return [("Verified-by", f"mngr ({plain.one_line(line)})") for line in shown]


def _others(group: Group, sources: Mapping[str, Source]) -> list[str]:
    branches = dict.fromkeys(change.branch for change in group.changes if change.branch != group.first.branch)
    agents = {branch: sources[branch].agent for branch in branches if branch in sources}
    return [f"{agents[branch]} ({branch})" if agents.get(branch) else branch for branch in branches]


def _author(text: str) -> tuple[str, str, tuple[int, str]]:
    """Of a commit that git would not have made itself, as much as git takes."""
    found = _AUTHOR.fullmatch(plain.one_line(text))
    if found is None:
        return "unknown", "unknown@localhost", (0, "+0000")
    mail = plain.words(found["mail"])
    name = plain.words(found["name"]) or mail or "unknown"
    return name, mail, (int(found["seconds"]), found["zone"])
