"""What an integrator agent is told: prompts/ beside this file, with both sides of a conflict put in, or the list of the
fixes. All of that was written by other agents, and is of any length: it is made safe to show, and kept short."""

from __future__ import annotations

import os

from mngr import jsonline, prompts
from mngr.integrate.plain import counted, listed, one_line, several_lines, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.integrate.change import Change, Group, Ranked, Source
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Left

_MOST_GROUPS = 4  # that are shown of what is there already
_MOST_SOURCES = 2  # of a group
_MOST_BYTES = 100_000  # of a prompt: it travels in a variable, which may have 128 KiB
_LONGEST_DIFF = 12_000  # characters
_LONGEST_SUMMARY = 1500
_LONGEST_END = 1200  # of a transcript
_TAIL = 200_000  # bytes of a transcript that are looked at
_MOST_ENTRIES = 3
_MOST_TESTS = 30


def conflict(
    home: str, scratch: Scratch, left: Left, sources: Sequence[Source], tests: Sequence[str], pytest: str
) -> str:
    """`pytest` is a line of shell; empty if nobody knows how tests are run."""
    paths = sorted(left.picked.conflicts)
    around = [_side(scratch, group, sources, paths) for group in left.against[:_MOST_GROUPS]]
    while sum(len(text.encode()) for text in around) > _MOST_BYTES // 2:
        around.pop()
    if more := len(left.against) - len(around):
        around.append(f"And {counted(more, 'more change')} in the same files: `git diff refs/mngr/base HEAD -- PATH`.")
    values = {
        "subject": one_line(left.group.first.subject),
        "paths": listed([one_line(path) for path in paths], 10),
        "theirs": _side(scratch, left.group, sources),
        "ours": "\n\n".join(around) or "`git diff refs/mngr/base HEAD` shows all of it.",
        "tests": _tests(tests, pytest),
    }
    return prompts.filled(prompts.find(home, __file__, "conflict"), values)


def rank(home: str, ranked: Sequence[Ranked]) -> str:
    lines: list[str] = []
    for each in ranked:
        subject, reasons = shortened(one_line(each.group.first.subject), 100), [one_line(text) for text in each.reasons]
        lines.append("    " + jsonline.dumps({"name": each.group.name, "subject": subject, "reasons": reasons}))
    while sum(map(len, lines)) > _MOST_BYTES:
        lines.pop()
    if more := len(ranked) - len(lines):
        lines.append(f"    and {counted(more, 'more fix', 'more fixes')}, in fixes.json")
    return prompts.filled(prompts.find(home, __file__, "rank"), {"fixes": "\n".join(lines)})


def tests_of(groups: Iterable[Group], sources: Sequence[Source]) -> list[str]:
    """Those that the branches of these changes were made for."""
    made = {change.branch for group in groups for change in group.changes}
    return list(dict.fromkeys(source.test for source in sources if source.test and source.branch in made))


def diff(scratch: Scratch, change: Change, paths: Sequence[str] = ()) -> str:
    return scratch.git("diff-tree", "-p", "-M", change.parent, change.id, *(("--", *paths) if paths else ()))


def _side(scratch: Scratch, group: Group, sources: Sequence[Source], paths: Sequence[str] = ()) -> str:
    change = group.first
    by = [source for source in sources if source.branch in {each.branch for each in group.changes}]
    parts = [f"{one_line(change.subject)} (on {one_line(change.branch)})"]
    if body := several_lines(change.body):
        parts.append(shortened(body, _LONGEST_SUMMARY))
    for source in by[:_MOST_SOURCES]:
        if source.test:
            parts.append(f"It was made for the test `{one_line(source.test)}`.")
        if source.summary:
            parts.append(f"Its agent says: {shortened(one_line(source.summary), _LONGEST_SUMMARY)}")
        if end := _end_of_transcript(source):
            parts.append(f"The end of its transcript:\n\n{_indented(end)}")
    text = several_lines(diff(scratch, change, paths) or diff(scratch, change))
    if len(text) > _LONGEST_DIFF:
        text = text[:_LONGEST_DIFF].rpartition("\n")[0] + "\n(and more)"
    return "\n\n".join([*parts, _fenced(text)])


def _tests(tests: Sequence[str], pytest: str) -> str:
    names = [one_line(test) for test in tests[:_MOST_TESTS]]
    if not names:
        return "No tests of either side are known. Read your resolution once more instead, with both intents in mind."
    if pytest:
        from mngr.process import quote

        line = " ".join([pytest, *map(quote, names)])
        return f"Run the tests of both sides. What passes with one side alone must pass now:\n\n       {line}\n"
    return f"The tests of both sides are {listed([f'`{name}`' for name in names], _MOST_TESTS)}. Run them if you can."


def fix(each: Ranked, sources: Sequence[Source]) -> dict[str, object]:
    change = each.group.first
    by = [source for source in sources if source.branch in {made.branch for made in each.group.changes}]
    return {
        "name": each.group.name,
        "subject": one_line(change.subject),
        "reasons": [one_line(reason) for reason in each.reasons],
        "files": [one_line(path) for path in change.paths[:20]],
        "lines": change.added + change.removed,
        "importance": change.importance,
        "tests": [one_line(test) for test in tests_of([each.group], by)[:_MOST_TESTS]],
        "branches": [one_line(source.branch) for source in by[:10]],
        "summary": shortened(one_line(by[0].summary), 400) if by else "",
    }


def _end_of_transcript(source: Source) -> str:
    """The last things that the agent said."""
    if not source.directory:
        return ""
    try:
        with open(os.path.join(source.directory, "transcript.jsonl"), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [text for line in lines if (text := _said(line))]
    end = "\n".join(said[-_MOST_ENTRIES:])
    return end if len(end) <= _LONGEST_END else f"... {end[-_LONGEST_END:]}"


def _said(line: str) -> str:
    try:
        entry = jsonline.loads(line)
    except (ValueError, RecursionError):
        return ""
    is_said = isinstance(entry, dict) and (entry.get("kind"), entry.get("role")) == ("message", "assistant")
    return several_lines(str(entry.get("text", ""))) if is_said else ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}diff\n{text}\n{fence}"
