"""A run at one glance, for a terminal of any size: a headline, a grid with one sign for every task, and below it those
that are at work or went wrong. A task keeps its place in the grid, so that the eye can follow it.

Nothing here knows how colours are made: `paint` gets each piece of text with the word for what it shows (a phase or an
ending, or "" for everything else), and must not change how wide it is."""

from __future__ import annotations

from mngr.swarm import words
from mngr.swarm.integrated import line as integrated_line
from mngr.swarm.report import clock, cost, flat, money, row, span, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mngr.swarm.state import Run, Task

    Paint = Callable[[str, str], str]

SIGNS = {
    words.PENDING: ".",
    words.LAUNCHING: ":",
    words.RUNNING: "*",
    words.PARKED: "z",
    words.ENDED: "o",
    words.HOME: "o",
    words.CHECKING: "?",
    words.CHECKED: "?",
    words.FIXED: "+",
    words.IMPROVED: "^",
    words.UNCHANGED: "=",
    words.DONE: "+",
    words.BLOCKED: "B",
    words.FAILED: "x",
    words.TIMED_OUT: "t",
    words.STUCK: "s",
    words.RATE_LIMITED: "l",
    words.INFRASTRUCTURE: "i",
    words.OVER_BUDGET: "$",
    words.CANCELLED: "c",
    words.LOST: "!",
    words.SKIPPED: "-",
}
_LEAST_LIST = 3  # lines that the grid leaves to the list below it, if there are any to be had
_COLUMNS = (14, 6, 9)  # state, age, spending


def lines(run: Run, now: float, width: int, height: int, paint: Paint = lambda text, _: text) -> list[str]:
    """At most `height` of them, none wider than `width`."""
    width, height = max(width, 1), max(height, 1)
    told = summary(run, now)
    head = [paint(fit(text, width), word) for text, word in _headlines(run, told)]
    legend = _legend(run, width, paint)
    wrong, busy = _worth_a_line(run)
    room = height - len(head) - len(legend)
    grid = _grid(run, width, max(1, room - min(_LEAST_LIST, len(wrong) + len(busy))), paint)
    chosen = _chosen(wrong, busy, room - len(grid))
    below = [_line(task, clock(run, now), width, paint) for task in chosen]
    if left_out := len(wrong) + len(busy) - len(chosen):
        below.append(paint(fit(f"and {left_out} more: mngr swarm show {run.id}", width), ""))
    return [*head, *grid, *legend, *below][:height]


def _headlines(run: Run, told: dict[str, Any]) -> list[tuple[str, str]]:
    spent = cost(told["spend"]) if told["spend"]["messages"] else "$0"
    if told["budget"]["usd"] is not None:
        spent += f" of {money(told['budget']['usd'])}"
    if told["reserved"]["usd"]:
        spent += f" (+{money(told['reserved']['usd'])} reserved)"
    rate = f"{told['rate']['tasks_per_minute']:g}/min, {money(told['rate']['usd_per_hour'])}/h"
    progress = f"{told['settled']}/{told['tasks']}  {span(told['elapsed'])}"
    out = [(f"{run.id} {told['state']}  {progress}  {spent}  {rate}  slots {told['slots']['limit']}", "")]
    out += [(text, words.DONE) for text in integrated_line(told["integrated"])]
    if run.paused:
        out.append((f"paused: {flat(run.paused)}", words.FAILED))
    out += [(f"WRONG SKIP: {wrong['title']} is {wrong['outcome']}", words.FAILED) for wrong in told["wrong_skips"][:2]]
    return out


def _grid(run: Run, width: int, height: int, paint: Paint) -> list[str]:
    """A terminal too small for all of them shows the first ones."""
    tasks = list(run.tasks.values())[: width * height]
    found = []
    for start in range(0, len(tasks), width):
        states = [state_of(task) for task in tasks[start : start + width]]
        found.append("".join(paint(text, state) for text, state in _stretches(states)))
    return found


def _stretches(states: list[str]) -> list[tuple[str, str]]:
    """Neighbours of the same state are painted together."""
    found: list[tuple[str, str]] = []
    for state in states:
        sign = SIGNS.get(state, "#")
        if found and found[-1][1] == state:
            found[-1] = (found[-1][0] + sign, state)
        else:
            found.append((sign, state))
    return found


def _legend(run: Run, width: int, paint: Paint) -> list[str]:
    """Which sign means what, with how many there are of it."""
    counts = run.counts()
    order = [*words.PHASES, *words.ENDINGS]
    out: list[str] = []
    used = width
    for state in sorted(counts, key=lambda state: order.index(state) if state in order else len(order)):
        text = fit(f"{SIGNS.get(state, '#')} {counts[state]} {state}", width)
        if used + 2 + len(text) > width:
            out.append("")
            used = -2
        out[-1] += ("  " if used > 0 else "") + paint(text, state)
        used += 2 + len(text)
    return out


def _worth_a_line(run: Run) -> tuple[list[Task], list[Task]]:
    """Those that went wrong, the latest first, and those at work, the oldest first."""
    bad = [task for task in run.tasks.values() if task.is_bad]
    busy = [task for task in run.tasks.values() if not task.is_over and task.phase != words.PENDING]
    return (
        sorted(bad, key=lambda task: -(task.settled_at or 0.0)),
        sorted(busy, key=lambda task: task.launched_at or float("inf")),
    )


def _chosen(wrong: list[Task], busy: list[Task], room: int) -> list[Task]:
    """All of them, or as many as leave a line to say so; a third of it for those that went wrong."""
    if len(wrong) + len(busy) <= room:
        return [*busy, *wrong]
    room = max(room - 1, 0)
    for_wrong = min(len(wrong), max(room - len(busy), room // 3))
    return [*busy[: room - for_wrong], *wrong[:for_wrong]]


def _line(task: Task, now: float, width: int, paint: Paint) -> str:
    told = row(task, now)
    state = told["state"]
    cells = (f"{SIGNS.get(state, '#')} {state}", span(told["age"]), cost(told["spend"]))
    head = "".join(f"{cell:<{size}} " for cell, size in zip(cells, _COLUMNS, strict=True))
    what = flat(task.why) if task.is_over or task.phase == words.PARKED else told["stage"]
    if task.nudges and not task.is_over:
        what += f", nudged: {flat(task.nudges[-1])}"
    left = width - len(head)
    if left < 12:
        return paint(fit(head + task.title, width), state)
    title = fit(task.title, max(left - columns(what) - 2, left * 3 // 5), from_end=True)
    rest = fit(f"{title}  {what}" if what else title, left)
    return paint(head, state) + paint(rest, "")


def state_of(task: Task) -> str:
    return task.outcome or task.phase


def fit(text: str, width: int, from_end: bool = False) -> str:
    """The beginning of the text, or its end, as far as it goes into so many columns."""
    if columns(text) <= width:
        return text
    kept, used = [], 1
    for char in reversed(text) if from_end else text:
        used += columns(char)
        if used > width:
            break
        kept.append(char)
    return "…" + "".join(reversed(kept)) if from_end else "".join(kept) + "…"


def columns(text: str) -> int:
    """On a terminal: characters of East Asia take two, those that only change their neighbour none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in ("W", "F") else 1 for char in text
    )
