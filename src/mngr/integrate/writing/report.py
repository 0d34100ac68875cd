"""What came of an integration, as plain data: report.json, what `--json` prints, and all that the pull request's text
is made from. Every number in it was counted here. What agents wrote stands in it as they wrote it: who shows it cleans
it.

The shape, which docs/schemas/integration.schema.json has in full:

  format, into, tip, base, again, directory     the branch, its last commit (empty if there is none), what it builds on,
                                                the words that make it anew, and where everything else lies
  stays, rank_file                              the commit that the branch still has, if nothing is left to write to it;
                                                the file that one edits to change the order
  runs, verified, notes                         verified: were tests run, and does one of them pass?
  counts                                        agents, branches, changes (every commit, and every part of a mixed one,
                                                by everybody), duplicates, tests (that somebody was sent to), fixes,
                                                folded, carried, left, aside, dropped, there, ignored, lost (tests)
  steps                                         the commits in order, each with `kind` (rest or fix), `commit`,
                                                `subject`, `rank` (of a fix, from 1), `name`, `reasons`, `tests`,
                                                `evidence`, `reverts` (null: nobody has tried), `notes` and `picks`
                                                (changes; of a fix, the first is the fix itself)
  left, aside, dropped, there                   changes that are not in, each with `why`; with `hunks` if they conflict,
                                                with `test`, `outcome`, `said` if they break one; `by_hand` is a command
  ignored, passed                               commits that bring nothing; tasks of the runs whose work is not taken
  escalations                                   what agents say goes beyond their tests, shared patterns first
  red_at_base, still_red, red_below, flaky,     of the verification: red before and after; red with nothing that could
  removed, tests                                be set aside for it; red only without the fixes; tests of the base that
                                                are not run any more, {test, name, subject, how}; how many, by outcome
                                                (null: nobody asked for it)
  warnings                                      changes that decide what other tests are worth, {name, subject, branch,
                                                text}
  costs                                         of the agents; null if nobody knows

A change is {name, kind, declared, subject, branch, agent, commit, run, files, added, removed, how, how_text, notes,
also}, where `how` is not empty if it had to be fitted in, and `also` are the others who made the same: {branch, agent,
commit}."""

from __future__ import annotations

import os

from mngr.integrate.checking.outcomes import PASSED
from mngr.integrate.picking.hunks import both_sides, said_by_git
from mngr.integrate.picking.stack import FIX
from mngr.integrate.writing.message import subject_of
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mngr.integrate.change import Change, Group, Source
    from mngr.integrate.checking.removed import Removed
    from mngr.integrate.checking.reverts import Revert
    from mngr.integrate.checking.verify import Aside, Verified
    from mngr.integrate.picking.read import Ignored
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Left, Plan, Stack
    from mngr.integrate.sources import Passed

FORMAT = 1
SHARED_PATTERN = "shared pattern"
_RULES = ("conftest.py", "pytest.ini")
_MOST_NAMED = 3  # tests of a warning


def report(
    scratch: Scratch,
    *,
    into: str,
    again: str,
    directory: str,
    rank_file: str,
    sources: Sequence[Source],
    plan: Plan,
    stack: Stack,
    verified: Verified | None,
    commits: Sequence[str],
    costs: Mapping[str, Any] | None = None,
    passed: Sequence[Passed] = (),
    ignored: Sequence[Ignored] = (),
    notes: Sequence[str] = (),
    before: str | None = None,
) -> dict[str, Any]:
    """`plan` and `stack` are those that were built in the end; `commits` has one for each step. `costs` has agents,
    messages, tokens, usd, unpriced. `before` is what the branch was until now, None if there was none."""
    teller = _Teller(scratch, sources, into, directory)
    asides = verified.reds if verified is not None else []
    set_aside = {each.group.key for each in asides}
    told: dict[str, Any] = {
        "format": FORMAT,
        "into": into,
        "tip": commits[-1] if commits else "",
        "base": scratch.base,
        "again": again,
        "directory": directory,
        "stays": "" if commits else before or "",
        "rank_file": rank_file,
        "runs": list(dict.fromkeys([*(each.run for each in sources if each.run), *(each.run for each in passed)])),
        "verified": verified is not None and bool(verified.tests.get(PASSED)),
        "notes": list(notes),
        "steps": teller.steps(stack, commits, verified),
        "left": [teller.left(each) for each in stack.left],
        "aside": [teller.aside(each) for each in asides],
        "dropped": [
            {**teller.change(group), "why": plan.dropped.get(group.key, "")}
            for group in stack.dropped
            if group.key not in set_aside
        ],
        "there": [{**teller.change(group), "why": "it is there already"} for group in stack.there],
        "ignored": [each.to_dict() for each in ignored],
        "passed": [_passed(each) for each in passed],
        "escalations": _escalations(sources, passed),
        "red_at_base": list(verified.red_at_base) if verified is not None else [],
        "still_red": list(verified.still_red) if verified is not None else [],
        "red_below": list(verified.red_below) if verified is not None else [],
        "flaky": list(verified.flaky) if verified is not None else [],
        "removed": [_removed(each) for each in verified.removed] if verified is not None else [],
        "tests": dict(verified.tests) if verified is not None else None,
        "warnings": _warnings(stack, verified),
        "costs": None if costs is None else dict(costs),
    }
    return {**told, "counts": _counts(told, sources)}


def _counts(told: dict[str, Any], sources: Sequence[Source]) -> dict[str, int]:
    picks = [(step, pick) for step in told["steps"] for pick in step["picks"]]
    fixes = [step for step in told["steps"] if step["kind"] == FIX]
    outside = [change for place in ("left", "aside", "dropped", "there") for change in told[place]]
    changes = [*(pick for _, pick in picks), *outside]
    duplicates = sum(len(change["also"]) for change in changes)
    return {
        "agents": len({source.agent for source in sources if source.agent}),
        "branches": len(sources),
        "changes": len(changes) + duplicates,
        "duplicates": duplicates,
        "tests": len({source.test for source in sources if source.test}),
        "fixes": len(fixes),
        "folded": sum(step["kind"] != FIX for step, _ in picks),
        "carried": sum(len(step["picks"]) - 1 for step in fixes),
        **{place: len(told[place]) for place in ("left", "aside", "dropped", "there", "ignored")},
        "lost": len(told["removed"]),
    }


class _Teller:
    def __init__(self, scratch: Scratch, sources: Sequence[Source], into: str, directory: str) -> None:
        self._scratch, self._into, self._directory = scratch, into, directory
        self._sources = {source.branch: source for source in sources}

    def steps(self, stack: Stack, commits: Sequence[str], verified: Verified | None) -> list[dict[str, Any]]:
        checked = verified.checked if verified is not None else {}
        reverts = {each.group.key: each for each in verified.reverts} if verified is not None else {}
        told, rank = [], 0
        for place, step in enumerate(stack.steps):
            rank += step.kind == FIX
            evidence = [line for pick in step.picks for line in checked.get(pick.group.key, [])]
            found = {
                "kind": step.kind,
                "commit": commits[place] if place < len(commits) else "",
                "subject": subject_of(step, self._sources.values()),
                "rank": rank if step.kind == FIX else None,
                "name": step.picks[0].group.name if step.kind == FIX else "",
                "reasons": list(step.ranked.reasons) if step.ranked is not None else [],
                "tests": self._tests(step.picks[0].group) if step.kind == FIX else [],
                "evidence": list(dict.fromkeys(evidence)),
                "reverts": _revert(reverts.get(step.picks[0].group.key)) if step.kind == FIX else None,
                "picks": [{**self.change(pick.group), "how": pick.how, "how_text": pick.text} for pick in step.picks],
                "notes": list(step.notes),
            }
            told.append(found)
        return told

    def change(self, group: Group) -> dict[str, Any]:
        first = group.first
        return {
            "name": group.name,
            "kind": first.kind,
            "declared": first.declared,
            "subject": first.subject,
            **self._maker(first),
            "run": self._known(first.branch, "run"),
            "files": list(first.paths),
            "added": first.added,
            "removed": first.removed,
            "how": "",
            "how_text": "",
            "notes": list(first.notes),
            "also": [self._maker(each) for each in group.changes[1:]],
        }

    def left(self, left: Left) -> dict[str, Any]:
        place = os.path.join(self._directory, "conflicts", left.group.name)
        return {
            **self.change(left.group),
            "why": left.why,
            "paths": list(left.paths),
            "against": [self._brief(group) for group in left.against],
            "hunks": both_sides(self._scratch, left),
            "said": said_by_git(left),
            "work_dir": place if os.path.isdir(place) else "",
            "by_hand": self._by_hand(left.group.first),
        }

    def aside(self, aside: Aside) -> dict[str, Any]:
        return {
            **self.change(aside.group),
            "why": aside.why,
            "test": aside.test,
            "tests": list(aside.tests),
            "other": aside.other.name if aside.other is not None else "",
            "outcome": aside.outcome,
            "said": aside.said,
            "by_hand": self._by_hand(aside.group.first),
        }

    def _brief(self, group: Group) -> dict[str, str]:
        """What is told as a whole elsewhere."""
        return {"name": group.name, "subject": group.first.subject, **self._maker(group.first)}

    def _maker(self, change: Change) -> dict[str, str]:
        return {"branch": change.branch, "agent": self._known(change.branch, "agent"), "commit": change.commit}

    def _known(self, branch: str, field: str) -> str:
        source = self._sources.get(branch)
        return str(getattr(source, field)) if source is not None else ""

    def _tests(self, group: Group) -> list[dict[str, str]]:
        """Those that it was made for, as the run found them before and after."""
        found: dict[str, dict[str, str]] = {}
        for change in group.changes:
            source = self._sources.get(change.branch)
            if source is not None and source.test:
                before, after = (_outcome(source.check.get(when)) for when in ("before", "after"))
                found.setdefault(source.test, {"test": source.test, "before": before, "after": after})
        return list(found.values())

    def _by_hand(self, change: Change) -> str:
        """A part of a commit has no name that anybody else could pick it by; nor can a merge be picked as it is."""
        switch = f"git switch {quote(self._into)}"
        if change.id == change.commit:
            return f"{switch} && git cherry-pick {change.commit}"
        paths = " ".join(quote(path) for path in change.paths)
        show = f"git show --first-parent -m --binary --format= {change.commit} -- {paths}"
        return f"{switch} && {show} | git apply --3way --index"


def _removed(found: Removed) -> dict[str, str]:
    return {
        "test": found.test,
        "name": found.by.name if found.by is not None else "",
        "subject": found.by.first.subject if found.by is not None else "",
        "how": found.how,
    }


def _warnings(stack: Stack, verified: Verified | None) -> list[dict[str, str]]:
    """Nothing is wrong with them; but whoever trusts in green tests trusts in these."""
    turned = {each.group.key: each.tests for each in verified.turned} if verified is not None else {}
    told = []
    for group in (pick.group for pick in stack.picks):
        rules = [path for path in group.first.paths if os.path.basename(path) in _RULES]
        texts = (
            [f"it changes {', '.join(rules)}: that decides how tests are run, and what is told of them"]
            if rules
            else []
        )
        if tests := turned.get(group.key):
            more = f" and {len(tests) - _MOST_NAMED} more" if len(tests) > _MOST_NAMED else ""
            names = f"{', '.join(tests[:_MOST_NAMED])}{more}"
            texts.append(f"it makes {names} green, red on the base, and changes nothing of the program")
        about = {"name": group.name, "subject": group.first.subject, "branch": group.first.branch}
        told += [{**about, "text": text} for text in texts]
    return told


def _revert(found: Revert | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {**found.to_dict(), "group": found.group.name}


def _outcome(side: Any) -> str:
    """What the check found counts; what the agent claims, where nobody looked."""
    if not isinstance(side, dict):
        return ""
    if side.get("check"):
        return str(side["check"])
    claim = side.get("claim")
    return "" if claim is None else "passed, as it says" if claim else "failed, as it says"


def _passed(each: Passed) -> dict[str, Any]:
    fields = ("task", "run", "outcome", "why", "agent", "branch", "head")
    return {field: getattr(each, field) for field in fields}


def _escalations(sources: Sequence[Source], passed: Sequence[Passed]) -> list[dict[str, Any]]:
    """The same, seen by several agents, is told once; what most have seen comes first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    of_all = [
        *((each.test or each.branch, each.escalations) for each in sources),
        *((each.task, each.escalations) for each in passed),
    ]
    for by, escalations in of_all:
        for each in escalations:
            kind, summary = str(each.get("kind") or ""), " ".join(str(each.get("summary") or "").split())
            told = found.setdefault((kind, summary), {"kind": kind, "summary": summary, "by": [], "tests": []})
            told["by"] += [by] if by not in told["by"] else []
            tests = each.get("tests")
            others = [str(test) for test in tests] if isinstance(tests, list) else []
            told["tests"] += [test for test in dict.fromkeys(others) if test not in told["tests"]]
    return sorted(found.values(), key=lambda told: (told["kind"] != SHARED_PATTERN, -len(told["by"])))
