"""The sections of a pull request, each from the report alone. Whatever an agent wrote goes through markdown.py."""

from __future__ import annotations

import os

from mngr.integrate import plain
from mngr.integrate.sources import is_missing
from mngr.integrate.writing.markdown import code, fence, prose, table
from mngr.record import Record
from mngr.swarm import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_HUNKS = 3  # of one conflict
_MOST_LINES = 12  # of one side of it
_LONGEST_COMMAND = 600
_SHORT = 10  # characters of a commit
_FIX = "fix"
_SKIPPED = "skipped"


class Section(Record):
    """Its items are shown whole or not at all."""

    title: str
    intro: list[str] = []  # noqa: RUF012 - lines that are always there
    items: list[str] = []  # noqa: RUF012
    gap: str = "\n"  # between two items
    folded: str = ""  # what stands on it, if it is folded


def sections(report: dict[str, Any]) -> list[Section]:
    """Those that have something to say, in order."""
    found = [make(report) for make in _SECTIONS]
    return [section for section in found if section.items or section.intro]


def where_all_is(report: dict[str, Any]) -> str:
    return plain.at_home(os.path.join(report["directory"], "report.json"))


def makers(counts: dict[str, int]) -> str:
    if counts["agents"]:
        return plain.counted(counts["agents"], "agent")
    return plain.counted(counts["branches"], "branch", "branches")


def _opening(report: dict[str, Any]) -> Section:
    counts = report["counts"]
    commits = plain.counted(len(report["steps"]), "commit")
    parts = []
    if counts["folded"]:
        parts.append(f"one with {plain.counted(counts['folded'], 'test or doc change', 'test and doc changes')}")
    if counts["fixes"]:
        order = ", the most important first" if counts["fixes"] > 1 else ""
        parts.append(f"{plain.counted(counts['fixes'], 'fix', 'fixes')} of the program{order}")
    runs = f" ({plain.listed([prose(run) for run in report['runs']])})" if report["runs"] else ""
    sent = f", which were sent to {plain.counted(counts['tests'], 'test')}{runs}" if counts["tests"] else ""
    what = (
        f"The work of **{makers(counts)}**{sent}, as one linear branch of **{commits}** on "
        f"{report['base'][:_SHORT]}: {' and '.join(parts) or 'nothing'}."
    )
    lines = [what, _verification(report)]
    if counts["duplicates"]:
        same = plain.counted(counts["duplicates"], "change is", "changes are")
        lines.append(f"{same} the same as others: each is here once, with the names of all who made it.")
    if report["removed"]:
        lost = plain.counted(len(report["removed"]), "test of the base is", "tests of the base are")
        lines.append(f"**Not run any more**: {lost} gone or skipped; see below.")
    if report["still_red"]:
        lines.append(f"**Red**: {plain.counted(len(report['still_red']), 'test')}; see below.")
    out = {"left": "left out because of conflicts", "aside": "set aside because of tests", "dropped": "dropped"}
    not_in = [f"{counts[place]:,} {what}" for place, what in out.items() if counts[place]]
    if not_in:
        lines.append(f"**Not in it**: {plain.listed(not_in)}; see below.")
    return Section(title="", intro=lines, items=[])


def _verification(report: dict[str, Any]) -> str:
    outcomes = report["tests"] or {}
    told = ", ".join(f"{count:,} {prose(word)}" for word, count in outcomes.items()) + _as_on_the_base(report)
    if outcomes and not report["verified"]:
        return f"**Not verified**: no test passes on the integrated branch, so that none says anything; {told}."
    if not report["verified"]:
        why = "there was none to run" if report["tests"] is not None else "nobody asked for it"
        return f"**Not verified**: no test was run on the integrated branch; {why}."
    return f"Verified in a clean checkout: {plain.counted(sum(outcomes.values()), 'test')}" + (
        f", {told}." if told else "."
    )


def _as_on_the_base(report: dict[str, Any]) -> str:
    """Which of the reds were red before."""
    reds = sum((report["tests"] or {}).get(word, 0) for word in ("failed", "error", "timed out"))
    before = min(reds, len(report["red_at_base"]))
    return "" if not before else ", as on the base" if before == reds else f" ({before:,} of them as on the base)"


def _fixes(report: dict[str, Any]) -> Section:
    head = ("#", "commit", "what", "why it is here", "tests", "made by", "size", "to take it out")
    top = table(head, [])
    rows = table(head, [_fix_row(step) for step in report["steps"] if step["kind"] == _FIX])[2:]
    return (
        Section(title="Fixes of the program", intro=[], items=["\n".join([*top, *rows[:1]]), *rows[1:]])
        if rows
        else _none()
    )


def _fix_row(step: dict[str, Any]) -> list[str]:
    fix = step["picks"][0]
    files = plain.counted(len(fix["files"]), "file")
    tests = [prose(line, 150) for line in step["evidence"]]
    tests += [_before_and_after(each) for each in step["tests"] if not _is_in(each["test"], step["evidence"])]
    return [
        str(step["rank"]),
        step["commit"][:_SHORT] or step["name"],
        prose(step["subject"], 150) + (f" ({prose(fix['how_text'] or fix['how'], 100)})" if fix["how"] else ""),
        prose("; ".join(step["reasons"]), 250),
        "<br>".join(tests[:3] + ([f"{len(tests) - 3:,} more"] if len(tests) > 3 else [])),
        _by(fix),
        f"+{fix['added']:,} -{fix['removed']:,} in {files}",
        _way_out(step),
    ]


def _is_in(test: str, evidence: list[str]) -> bool:
    """What verification has seen itself need not be told as the run saw it."""
    return any(line.startswith(f"{test} ") for line in evidence)


def _before_and_after(test: dict[str, str]) -> str:
    name = code(test["test"], 120)
    if not test["before"] and not test["after"]:
        return name
    return f"{name} {prose(test['before'] or '?')} → {prose(test['after'] or '?')}"


def _way_out(step: dict[str, Any]) -> str:
    found = step["reverts"]
    command = code(f"git revert {step['commit'][:_SHORT]}") if step["commit"] else ""
    if found is None:
        return command
    if found["conflicts"]:
        return f"{command}: conflicts in {plain.listed([code(path, 80) for path in found['conflicts']])}"
    if found["breaks"]:
        return f"{command}: cleanly, but it breaks {plain.listed([code(test, 120) for test in found['breaks']])}"
    tests = plain.counted(found["tests"], "test of its neighbours passes", "tests of its neighbours pass")
    return (
        f"{command}: cleanly; {tests if found['tests'] else 'no test was there to run'}" if found["clean"] else command
    )


def _carried(report: dict[str, Any]) -> Section:
    items = []
    for step in report["steps"]:
        for change in step["picks"][1:] if step["kind"] == _FIX else []:
            why = prose(change["how_text"]) or "its tests need this fix"
            fix = step["commit"][:_SHORT] or step["name"]
            items.append(f"- {_subject(change)} ({_by(change)}) with {fix}: {why}")
    return Section(title="What travels with a fix", items=items)


def _folded(report: dict[str, Any]) -> Section:
    by_maker: dict[str, list[str]] = {}
    for step in report["steps"]:
        for change in step["picks"] if step["kind"] != _FIX else []:
            how = f" ({prose(change['how_text'] or change['how'], 100)})" if change["how"] else ""
            files = plain.listed([code(path, 80) for path in change["files"]])
            line = f"  - {_subject(change)}{how}: {prose(change['kind'])}, {files}"
            by_maker.setdefault(_by(change), []).append(line)
    items = [item for maker, lines in by_maker.items() for item in (f"- {maker}\n{lines[0]}", *lines[1:])]
    count = plain.counted(report["counts"]["folded"], "change")
    return Section(title="Tests and docs", items=items, folded=f"{count}, by who made them")


def _left(report: dict[str, Any]) -> Section:
    return Section(title="Left out: conflicts", items=[_conflict(each, report) for each in report["left"]], gap="\n\n")


def _conflict(left: dict[str, Any], report: dict[str, Any]) -> str:
    parts = [f"{_named(left)}: {prose(left['why'])}"]
    files = plain.listed([code(path, 120) for path in left["paths"] or left["files"]], 5)
    against = plain.listed([f"{each['name']}, {_subject(each, 80)} ({_maker(each)})" for each in left["against"]])
    parts.append(f"Files: {files}." + (f" In it already: {against}." if against else ""))
    for hunk in left["hunks"][:_MOST_HUNKS]:
        sides = [*_few_lines("-", hunk["ours"]), *_few_lines("+", hunk["theirs"])]
        parts.append(fence("\n".join([f"@@ {plain.one_line(hunk['path'])} @@", *sides]), "diff"))
    more = len(left["hunks"]) - _MOST_HUNKS
    parts += [f"... and {plain.counted(more, 'more place', 'more places')} like this."] if more > 0 else []
    return "\n\n".join([*parts, _by_hand(left, report)])


def _by_hand(change: dict[str, Any], report: dict[str, Any]) -> str:
    lines = [change["by_hand"]]
    if len(lines[0]) > _LONGEST_COMMAND:
        lines = [f"# by_hand of {change['name']} in {where_all_is(report)}"]
    if change.get("work_dir"):
        lines += [
            f"# or solve and commit it in {plain.at_home(change['work_dir'])}, then",
            report["again"],
        ]
    return fence("\n".join(plain.one_line(line) for line in lines), "sh")


def _few_lines(sign: str, text: str) -> list[str]:
    lines = text.split("\n") if text else []
    more = len(lines) - _MOST_LINES
    return [*(f"{sign}{line[:200]}" for line in lines[:_MOST_LINES]), *([f"{sign}[{more} more]"] if more > 0 else [])]


def _aside(report: dict[str, Any]) -> Section:
    items = []
    for each in report["aside"]:
        said = f" ({prose(each['said'], 200)})" if each["said"] else ""
        found = f"{code(each['test'])}: {prose(each['outcome'])}{said}; {prose(each['why'])}"
        items.append(f"{_named(each)}: {found}\n\n{_by_hand(each, report)}")
    return Section(title="Set aside: tests", items=items, gap="\n\n")


def _not_in(report: dict[str, Any]) -> Section:
    """What needs nobody's attention, but must not vanish without a word."""
    items = [
        f"- {_subject(each)} ({_by(each)}, {each['commit'][:_SHORT]}): {prose(each['why'] or what)}"
        for what, place in (("dropped", "dropped"), ("there already", "there"))
        for each in report[place]
    ]
    items += [
        f"- {_subject(each)} ({code(each['branch'])}, {each['commit'][:_SHORT]}): {prose(each['why'])}"
        for each in report["ignored"]
    ]
    return Section(title="Dropped, or nothing new", items=items, folded=plain.counted(len(items), "commit"))


def _passed(report: dict[str, Any]) -> Section:
    order = sorted(report["passed"], key=lambda each: each["outcome"] != words.BLOCKED)
    items = [
        f"- {code(each['task'])}: {prose(each['outcome'])}; {prose(each['why'])}"
        + (f" (branch {code(each['branch'])})" if each["branch"] else "")
        for each in order
        if not is_missing(each["outcome"], each["branch"])
    ]
    return Section(title="Tests that nobody could finish", items=items)


def _missing(report: dict[str, Any]) -> Section:
    items = [
        f"- **{code(each['task'])} ({prose(each['outcome'])}, branch {code(each['branch'])}): {prose(each['why'])}**"
        for each in report["passed"]
        if is_missing(each["outcome"], each["branch"])
    ]
    return Section(title="Work that is missing", items=items)


def _escalations(report: dict[str, Any]) -> Section:
    items = []
    for each in report["escalations"]:
        by = plain.listed([code(name, 120) for name in each["by"]])
        others = plain.listed([code(test, 120) for test in each["tests"]])
        items.append(
            f"- {prose(each['kind'])}: {prose(each['summary'])} (said for {by}"
            + (f"; see {others})" if others else ")")
        )
    return Section(title="Beyond single tests", items=items)


def _known_reds(report: dict[str, Any]) -> Section:
    items = [f"- **{code(test)} is red, and no single change is to blame**" for test in report["still_red"]]
    items += [f"- {code(test)} is red without any of this, too" for test in report["red_at_base"]]
    items += [
        f"- {code(test)} is red in the commit below the fixes, and green with them" for test in report["red_below"]
    ]
    items += [f"- {code(test)} sometimes passes and sometimes does not" for test in report["flaky"]]
    items += [_gone(each) for each in report["removed"]]
    return Section(title="Red, flaky or removed tests", items=items)


def _gone(removed: dict[str, str]) -> str:
    did, is_now = ("removed", "is no longer there")
    if removed["how"] == _SKIPPED:
        did, is_now = ("skipped", "is skipped, and was run on the base")
    by = f": {did} by {removed['name']}, {prose(removed['subject'], 150)}" if removed["name"] else ""
    return f"- {code(removed['test'])} {is_now}{by}"


def _warnings(report: dict[str, Any]) -> Section:
    items = [
        f"- {prose(each['subject'], 150)} ({code(each['branch'], 80)}, {each['name']}): {prose(each['text'], 600)}"
        for each in report["warnings"]
    ]
    intro = ["They may be right. But what green tests are worth depends on them."] if items else []
    return Section(title="To look at closely", intro=intro, items=items)


def _notes(report: dict[str, Any]) -> Section:
    changes = [change for step in report["steps"] for change in step["picks"]]
    changes += [change for place in ("left", "aside", "dropped", "there") for change in report[place]]
    items = [
        f"- {prose(note)}" for note in [*report["notes"], *(note for step in report["steps"] for note in step["notes"])]
    ]
    items += [
        f"- {_subject(change, 100)} ({_by(change)}): {prose(note)}" for change in changes for note in change["notes"]
    ]
    return Section(title="Notes", items=items, folded=plain.counted(len(items), "note"))


def _costs(report: dict[str, Any]) -> Section:
    costs, fixes = report["costs"], report["counts"]["fixes"]
    if not costs:
        return _none()
    line = f"{plain.counted(costs.get('agents', 0), 'agent')}, {plain.counted(costs.get('tokens', 0), 'token')}"
    usd = costs.get("usd") or 0.0
    line += f", {usd:,.2f} USD" + (f" ({usd / fixes:,.2f} for each fix)" if fixes and usd else "")
    unpriced = costs.get("unpriced") or 0
    line += (
        f"; {plain.counted(unpriced, 'message has', 'messages have')} no price and are not in it" if unpriced else ""
    )
    return Section(title="Cost", intro=[f"{line}."], items=[])


def _next(report: dict[str, Any]) -> Section:
    lines = [f"# drop or reorder fixes: edit {plain.at_home(report['rank_file'])}, then", report["again"]]
    text = fence("\n".join(plain.shortened(plain.one_line(line), 1000) for line in lines), "sh")
    return Section(
        title="To change this", intro=["A single fix: `git revert`, as above. Anything else:", "", text], items=[]
    )


_SECTIONS = (
    _opening,
    _warnings,
    _fixes,
    _carried,
    _left,
    _aside,
    _folded,
    _missing,
    _passed,
    _escalations,
    _known_reds,
    _not_in,
    _notes,
    _costs,
    _next,
)


# Words


def _none() -> Section:
    return Section(title="", items=[])


def _subject(change: dict[str, Any], most: int = 150) -> str:
    return prose(plain.shown(change["subject"], most))


def _by(change: dict[str, Any]) -> str:
    return plain.listed(list(dict.fromkeys(_maker(each) for each in (change, *change["also"]))))


def _maker(change: dict[str, Any]) -> str:
    return code(change["agent"] or change["branch"], 80)


def _named(change: dict[str, Any]) -> str:
    where = f"branch {code(change['branch'])}, commit {change['commit'][:_SHORT]}"
    return f"**{_subject(change)}** ({_by(change)}, {where})"
