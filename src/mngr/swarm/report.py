"""What there is to say about a run, as plain data for `--json` and as lines for people. All of it comes out of the fold
(state.py), but for the evidence of a single task, which lies in files beside the log.

A result is whatever its recipe wants it to be. Where one has the members `summary`, `changes`, `escalations` or
`blocked` in the form of docs/schemas/result.schema.json, they are shown for what they are. What agents wrote is data
and comes out as it is: who prints it on a terminal cleans it."""

from __future__ import annotations

import os
import time

from mngr.errors import UsageError
from mngr.process import quote
from mngr.swarm import log, words
from mngr.swarm.integrated import integrated
from mngr.swarm.settings import AUTO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mngr.swarm.state import Run, Spend, Task

GOING_ON, LEFT, PAUSED, IS_DONE, IS_CANCELLED = "going on", "left", "paused", "done", "cancelled"
SPEAK_OF_THE_TASK = (words.FIXED, words.IMPROVED, words.BLOCKED, words.FAILED)  # other bad endings are the agent's own
_LATELY = 300.0  # seconds over which rates are taken
_MOST = 20  # tasks in one section of the ending
_LAST_LINES = 12


def standing(run: Run) -> str:
    """Left: it is not done, and nobody works on it. A paused one may be left too."""
    if run.is_done:
        return IS_CANCELLED if run.cancelled else IS_DONE
    if run.paused:
        return PAUSED
    if not is_attended(run):
        return LEFT
    return IS_CANCELLED if run.cancelled else GOING_ON


def is_attended(run: Run) -> bool:
    """Does anybody work on it now?"""
    return not run.is_done and log.is_taken(run.directory)


def clock(run: Run, now: float | None = None) -> float:
    """For a run that nobody works on, time stands still."""
    return (time.time() if now is None else now) if is_attended(run) else run.last_event


def summary(run: Run, now: float | None = None) -> dict[str, Any]:
    over = [task for task in run.tasks.values() if task.is_over]
    end = clock(run, now)
    wanted = run.settings.get("max-agents")
    limit = run.limits[-1] if run.limits and wanted == AUTO else {}
    return {
        "run": run.id,
        "directory": run.directory,
        "project": run.plan.get("project"),
        "recipe": run.plan.get("recipe"),
        "type": run.plan.get("type"),
        "permissions": permissions(run),
        "state": standing(run),
        "attended": is_attended(run),
        "started": run.started_at,
        "finished": run.finished_at,
        "elapsed": round(max(0.0, end - run.started_at), 3) if run.started_at else 0.0,
        "tasks": len(run.tasks),
        "settled": len(over),
        "good": sum(task.outcome in words.GOOD for task in over),
        "bad": sum(task.is_bad for task in over),
        "endings": _counted(words.ENDINGS, (task.outcome for task in over)),
        "phases": _counted(words.PHASES, (task.phase for task in run.tasks.values())),
        "spend": spend_of(run.spent()),
        "budget": {"usd": run.settings.get("budget"), "tokens": run.settings.get("max-tokens")},
        "reserved": _reserved(run),
        "rate": _rate(run, end),
        "slots": {"limit": limit.get("slots", wanted), "why": limit.get("why", "")},
        "settings": run.settings,
        "changes": [{key: each.get(key) for key in ("time", "who", "key", "value")} for each in run.changes],
        "paused": run.paused,
        "pauses": run.pauses,
        "alerts": [{"pattern": pattern, "count": count} for pattern, count in run.alerts.items()],
        "cancelled": run.cancelled,
        "integrated": integrated(run),
        "wrong_skips": [
            {"task": task.id, "title": task.title, "skip": audited(task), "outcome": task.outcome, "why": task.why}
            for task in wrong_skips(run)
        ],
    }


def permissions(run: Run) -> str | None:
    """What its agents may do without asking; none, where whoever began the run did not say."""
    policy: str | None = run.plan.get("notes", {}).get("permissions")
    return policy


def rows(run: Run, now: float | None = None) -> list[dict[str, Any]]:
    """One for each task, in the order of the plan."""
    end = clock(run, now)
    return [row(task, end) for task in run.tasks.values()]


def row(task: Task, now: float) -> dict[str, Any]:
    """`age`: seconds since its agent was launched, until it was settled."""
    begun = task.launched_at
    return {
        "task": task.id,
        "title": task.title,
        "state": task.outcome or task.phase,
        "stage": task.stage if task.attempt else "",
        "age": round(max(0.0, (task.settled_at or now) - begun), 3) if begun else None,
        "spend": spend_of(task.spend),
        "agent": task.name if task.attempt else "",
        "host": task.host,
        "branch": task.branch,
        "outcome": task.outcome,
        "why": task.why,
        "nudges": task.nudges,
        "throttled": task.throttled,
        "parked_until": task.parked_until,
        "attempts": task.attempt,
    }


def details(run: Run, task: Task, now: float | None = None) -> dict[str, Any]:
    """Everything about one: what it claims beside what the check found, and the evidence of how it ended."""
    place = os.path.join(run.directory, "tasks", task.name)
    return {
        "run": run.id,
        **row(task, clock(run, now)),
        "audited": audited(task),
        "claim": task.claim,
        "check": task.check,
        "notes": task.notes,
        "base": task.base,
        "head": task.home.get("head") or "",
        "commits": task.home.get("commits") or [],
        "returned": task.returned,
        "restarts": task.restarts,
        "evidence": {
            **task.evidence,
            "exit": _exit_code(task.home.get("exit")),
            "uncommitted": task.home.get("dirty"),
            "left_behind": task.home.get("left") or [],
            "screen": _last_lines(os.path.join(place, "screen.txt")),
            "events": _last_lines(os.path.join(place, "events.jsonl")),
        },
        "cleared": task.cleared,
        "files": _files(os.path.join(run.directory, "prompts", f"{task.id}.md"), place),
    }


def find_task(run: Run, word: str) -> Task:
    """By its id or title, or a part of the title that no other has."""
    for task in run.tasks.values():
        if word in (task.id, task.title):
            return task
    found = [task for task in run.tasks.values() if word in task.title]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(task.id for task in found[:3]) + (", ..." if len(found) > 3 else "")
        raise UsageError(f"{word!r} is part of {len(found)} tasks", f"one of {several}")
    from mngr.address import nearest

    close = nearest(word, list(run.tasks))
    raise UsageError(
        f"{run.id} has no task {word!r}", f"did you mean {close}?" if close else f"mngr swarm show {run.id} has them"
    )


def audited(task: Task) -> str:
    """Why it would have been skipped, had it not been chosen to see whether skipping is right."""
    return str(task.data.get("audit") or "")


def wrong_skips(run: Run) -> list[Task]:
    return [task for task in run.tasks.values() if audited(task) and task.outcome in SPEAK_OF_THE_TASK]


def spend_of(spend: Spend) -> dict[str, Any]:
    return {
        "usd": round(spend.usd, 6),
        "tokens": spend.tokens,
        "messages": spend.messages,
        "unpriced": spend.unpriced,
    }


def _counted(order: Iterable[str], found: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(order, 0)
    for word in found:
        counts[word] = counts.get(word, 0) + 1
    return {word: count for word, count in counts.items() if count}


def _reserved(run: Run) -> dict[str, Any]:
    """For agents at work, beyond what they have spent already."""
    usd, tokens = 0.0, 0
    for task in run.tasks.values():
        usd += max(0.0, task.reserve.usd - task.spend.usd)
        tokens += max(0, task.reserve.tokens - task.spend.tokens)
    return {"usd": round(usd, 6), "tokens": tokens}


def _rate(run: Run, end: float) -> dict[str, float]:
    """Over the last minutes. What an agent has spent is taken as spent evenly over its time: the fold keeps sums."""
    begin = max(end - _LATELY, run.started_at or end)
    span = end - begin
    if span <= 0:
        return {"tasks_per_minute": 0.0, "usd_per_hour": 0.0}
    settled, usd = 0, 0.0
    for task in run.tasks.values():
        settled += task.settled_at is not None and task.settled_at >= begin and task.attempt > 0
        if task.launched_at is not None and task.spend.usd:
            over = task.ended_at or task.settled_at or end
            shared = min(over, end) - max(task.launched_at, begin)
            usd += task.spend.usd * max(0.0, shared) / max(over - task.launched_at, 1.0)
    return {"tasks_per_minute": round(settled * 60 / span, 2), "usd_per_hour": round(usd * 3600 / span, 4)}


def _exit_code(told: object) -> int | None:
    """From "TIME STATUS SIGNAL", which its launcher wrote when the program had ended by itself."""
    parts = str(told or "").split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None


def _files(prompt: str, place: str) -> list[str]:
    found = [os.path.join(place, name) for name in sorted(os.listdir(place))] if os.path.isdir(place) else []
    return [path for path in (prompt, *found) if os.path.exists(path)]


def _last_lines(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16384))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]


# In words


def span(seconds: float | None) -> str:
    """`45s`, `1m12s`, `2h05m`, `3d04h`."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length}{unit}{whole % length // part:02d}{smaller}"
    return f"{whole}s"


def money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def cost(spend: dict[str, Any]) -> str:
    """A plus: and what has no price."""
    if not spend["messages"]:
        return "-"
    if spend["unpriced"] == spend["messages"]:
        return "unpriced"
    return money(spend["usd"]) + ("+" if spend["unpriced"] else "")


def tally(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def in_a_line(told: dict[str, Any]) -> str:
    """A run in one line, from its summary."""
    at_work = {word: count for word, count in told["phases"].items() if word != words.SETTLED}
    parts = [f"{told['run']}: {told['state']}", tally({**told["endings"], **at_work}) or "no tasks"]
    return f"{', '.join(parts)}; {_spending(told)}; {span(told['elapsed'])}"


def _spending(told: dict[str, Any]) -> str:
    spend, budget = told["spend"], told["budget"]
    text = cost(spend) if spend["messages"] else "nothing spent"
    if budget["usd"] is not None:
        text += f" of {money(budget['usd'])}"
    if told["reserved"]["usd"]:
        text += f" ({money(told['reserved']['usd'])} more reserved)"
    if spend["messages"]:
        text += f", {spend['tokens']:,} tokens" + (f" of {budget['tokens']:,}" if budget["tokens"] is not None else "")
    return text


def ending_lines(run: Run) -> list[str]:
    """What a run comes to: with what nobody may overlook first, and where to look next at the end."""
    told = summary(run)
    out = [in_a_line(told)]
    out += [
        f"WRONG SKIP: {wrong['title']} would have been skipped ({wrong['skip']}), but is {wrong['outcome']}"
        for wrong in told["wrong_skips"]
    ]
    out += [f"PAUSED: {flat(run.paused)}"] if told["state"] == PAUSED else []
    out += [f"alert: {each['pattern']} ({each['count']} tasks)" for each in told["alerts"]]
    for outcome in words.ENDINGS:
        if outcome not in (words.UNCHANGED, words.SKIPPED):
            out += _section(run, outcome)
    out += _escalated(run)
    if told["spend"]["unpriced"]:
        out.append(f"{told['spend']['unpriced']:,} messages have no price and are not in the sum: see mngr help usage")
    out += _next_steps(run, told)
    return out


def _section(run: Run, outcome: str) -> list[str]:
    found = [task for task in run.tasks.values() if task.outcome == outcome]
    if not found:
        return []
    shown = [f"  {_with(task.title, _said(task))}" for task in found[:_MOST]]
    more = [f"  and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return ["", f"{outcome} ({len(found)})", *shown, *more]


def _with(name: str, said: str) -> str:
    return f"{name}: {said}" if said else name


def _said(task: Task) -> str:
    """Of one that went well, what was done; of another, what is needed or what went wrong."""
    claimed = task.claim.get("blocked") if task.outcome == words.BLOCKED else None
    if task.outcome in words.GOOD:
        claimed = task.claim.get("summary")
    return flat(claimed or task.why)


def _escalated(run: Run) -> list[str]:
    """The same pattern, seen by several agents, is told once."""
    seen: dict[tuple[str, str], list[str]] = {}
    for task in run.tasks.values():
        for each in members(task.claim, "escalations"):
            seen.setdefault((flat(each.get("kind")), flat(each.get("summary"))), []).append(task.title)
    if not seen:
        return []
    out = ["", f"escalated ({len(seen)})"]
    for (kind, text), titles in sorted(seen.items(), key=lambda item: -len(item[1]))[:_MOST]:
        by = ", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")
        out.append(f"  {kind}: {text} ({by})")
    return out


def _next_steps(run: Run, told: dict[str, Any]) -> list[str]:
    worst = next((task for task in run.tasks.values() if task.is_bad), None)
    steps = {f"mngr swarm show {run.id} {worst.id if worst else 'TEST'}": "all about one of them"}
    if told["state"] in (LEFT, PAUSED):
        steps[f"mngr swarm resume {run.id}"] = "to go on with it"
    if any(task.home.get("commits") for task in run.tasks.values()):
        steps[f"git branch --list 'mngr/{run.id}-*'"] = "what they made"
        if run.plan.get("notes", {}).get("integrate") is False and not told["integrated"]:
            steps[f"mngr swarm integrate {run.id}"] = "one branch of it"
    steps[f"ls {quote(run.directory)}/tasks"] = "and everything else that came home"
    width = max(map(len, steps))
    return ["", "next", *(f"  {line:<{width}}  {what}" for line, what in steps.items())]


def detail_lines(told: dict[str, Any]) -> list[str]:
    """`details` for people."""
    facts = {
        "agent": f"{told['agent']} on {told['host']}" if told["host"] else told["agent"],
        "stage": told["stage"],
        "branch": told["branch"],
        "time": span(told["age"]) if told["age"] is not None else "",
        "spent": f"{cost(told['spend'])}, {told['spend']['tokens']:,} tokens" if told["spend"]["messages"] else "",
        "tries": str(told["attempts"]) if told["attempts"] > 1 else "",
        "restarts": str(told["restarts"] or ""),
        "nudged": ", ".join(map(flat, told["nudges"])),
        "throttled": span(told["throttled"]) if told["throttled"] else "",
        "sent back": f"{told['returned']} times" if told["returned"] else "",
        "audited": f"would have been skipped: {told['audited']}" if told["audited"] else "",
    }
    out = [told["title"], _with(told["state"], flat(told["why"]))]
    out += [f"  {name:<10} {flat(fact)}" for name, fact in facts.items() if fact]
    out += _titled("claimed", _plain(told["claim"], beyond=("changes", "escalations")))
    out += _titled("checked", _plain(told["check"]))
    out += _titled("notes", told["notes"])
    out += _titled("commits", _commits(told))
    escalations = [
        f"{flat(each.get('kind'))}: {flat(each.get('summary'))}" for each in members(told["claim"], "escalations")
    ]
    out += _titled("escalated", escalations)
    evidence = told["evidence"]
    out += _titled("evidence", _plain(evidence, beyond=("screen", "events", "result")))
    out += _titled("last on its screen", evidence["screen"])
    out += _titled("last events", evidence["events"])
    return [*out, *_titled("files", told["files"])]


def _titled(title: str, found: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in found)] if found else []


def _plain(value: dict[str, Any], beyond: tuple[str, ...] = ()) -> list[str]:
    """`member: value`; lists and tables below it, one line each."""
    out = []
    for key, each in value.items():
        if key in beyond or each is None or each in ("", [], {}):
            continue
        if isinstance(each, dict | list):
            inner = _plain(each) if isinstance(each, dict) else [flat(item) for item in each]
            out += [f"{flat(key)}:", *(f"  {line}" for line in inner)]
        else:
            out.append(f"{flat(key)}: {flat(each)}")
    return out


def _commits(told: dict[str, Any]) -> list[str]:
    """Those of the branch, each with what was said about it; then those that were claimed and are not there."""
    claimed = {flat(change.get("commit")): change for change in members(told["claim"], "changes")}
    out = []
    for commit in told["commits"]:
        name = next((name for name in claimed if name and commit.startswith(name)), "")
        out.append(f"{commit[:10]} {_change(claimed.pop(name)) if name else 'not declared'}")
    return out + [f"{flat(name)[:10]} {_change(change)}: NOT ON THE BRANCH" for name, change in claimed.items()]


def _change(change: dict[str, Any]) -> str:
    return f"{flat(change.get('kind'))} ({flat(change.get('importance'))}): {flat(change.get('summary'))}"


def members(claim: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = claim.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def flat(value: object) -> str:
    """On one line, as a person would say it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{flat(key)} {flat(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(flat, value))
    return " ".join(str(value).split())
