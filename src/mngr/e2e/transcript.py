"""What a test did, step by step, as text that reads like a terminal: `# comment`, `$ command`, its output indented, its
errors behind `!`, and behind `?` an exit code that is not 0. A phase begins at each comment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_SHOWN = 60  # lines of one step in a failure's report; the transcript on disk has all of them
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}


_WIDEST = 400  # characters of a line, there
_SIGNS = {"type": "<", "press": "<", "wait": "~"}  # what goes into a terminal, and what was waited for there


class Step(NamedTuple):
    n: int
    time: float  # when it began, seconds since the epoch
    duration: float
    kind: str  # run, spawn, type, press, wait
    comment: str | None
    command: str | None
    exit_code: int | None
    timed_out: bool
    lines: list[tuple[str, str]]  # ("o" or "e", text)

    @property
    def label(self) -> str:
        """For a marker in a recording."""
        done = f"{self.kind} {self.command}" if self.kind in _SIGNS else self.command
        return f"{self.n} {self.comment or done or self.kind}".splitlines()[0]


def write_step(step: Step, most: int | None = None) -> str:
    """With at most so many lines of its output."""
    text = [f"# {line}" for line in (step.comment or "").splitlines()]
    if step.command is not None:
        first, *more = step.command.splitlines() or [""]
        text += [f"{_SIGNS.get(step.kind, '$')} {first}", *(f"> {line}" for line in more)]
    lines = step.lines
    if most is not None and len(lines) > most:
        half = most // 2
        lines = [*lines[:half], ("o", f"... ({len(lines) - most} lines)"), *lines[len(lines) - half :]]
    wide = [plain(line) for _, line in lines]
    if most is not None:
        wide = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]}... ({len(line)} characters)" for line in wide]
    text += [("! " if stream == "e" else "  ") + line for (stream, _), line in zip(lines, wide, strict=True)]
    if step.timed_out:
        text.append(f"? {step.exit_code} (timed out after {step.duration:.1f} s)")
    elif step.exit_code:
        text.append(f"? {step.exit_code}")
    return "".join(f"{line.rstrip()}\n" for line in text)


def fold(steps: Iterable[Step]) -> str:
    """For the report of a failure: all phases but the last in one line each, with the exit codes that are not 0."""
    phases: list[list[Step]] = []
    for step in steps:
        if step.comment or not phases:
            phases.append([])
        phases[-1].append(step)
    folded = [_folded(phase) for phase in phases[:-1]]
    return "".join([*folded, *(write_step(step, _SHOWN) for phase in phases[-1:] for step in phase)])


def _folded(phase: list[Step]) -> str:
    title = (phase[0].comment or phase[0].command or phase[0].kind).splitlines()[0]
    count = sum(1 for step in phase if step.command is not None)
    what = f"{count} command{'s' if count != 1 else ''}, " if count else ""
    codes = "".join(f", ? {step.exit_code}" for step in phase if step.exit_code)
    return f"# {plain(title)}  [{what}{sum(step.duration for step in phase):.2f} s{codes}]\n"


def plain(line: str) -> str:
    """Without colours and the like; of a line that was written over, what was left to see. What else could act on a
    reader's terminal is shown as a sign."""
    return visible(_ESCAPES.sub("", line).rstrip("\r").rpartition("\r")[2])


def visible(text: str) -> str:
    return text.translate(_VISIBLE)
