"""Signs that an interface confuses those who use it: what people rejected, what failed by its words, which options were
tried that do not exist, which help was asked for again. They are kept in confusion.jsonl of the home, a line each, and
found in the transcripts of agents; `rank` says which subcommand has the most.

A transcript is evidence of an uncertain kind: the output of a line belongs to all of its commands, and few programs say
their exit code. So a sign needs a text that only a usage error has, or exit code 2 of the line's last command."""

from __future__ import annotations

import os
import re
import shlex
import time

from mngr import jsonline, registry
from mngr.record import Record
from mngr.tutorial.calls import Call, calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mngr.agents.log import Entry

FILE = "confusion.jsonl"
PROGRAM = "mngr"
REJECTED, USAGE_ERROR, UNKNOWN_FLAG, HELP = "rejected", "usage-error", "unknown-flag", "help"
WEIGHTS = {REJECTED: 3, USAGE_ERROR: 2, UNKNOWN_FLAG: 2, HELP: 1}
_EXAMPLES = 3
_LONGEST = 2000  # letters of what was tried or said that are kept

_SHELL_TOOL = re.compile(r"bash|shell|exec|terminal|command|run", re.IGNORECASE)
_EXIT_CODE = re.compile(r"(?:exit code|exited with code|exit status|\"exit_code\")[: ]+(\d+)", re.IGNORECASE)
_USAGE = re.compile(r"^[ \t]*usage:", re.IGNORECASE | re.MULTILINE)
_FLAG = r"(?:no such|unknown|unrecogni[sz]ed|invalid|unexpected|has no) (?:\w+ )?(?:option|flag|switch|argument)s?\b"
_WRONG = re.compile(  # a line that says so; of mngr itself, all that grammar.py and registry.py complain about
    rf"^.*(?:\b(?:no such|unknown|unrecogni[sz]ed) (?:sub)?command\b|\b{_FLAG}|\binvalid choice\b"
    r"|\barguments? (?:is|are) required\b|\bmissing (?:argument|option)\b"
    r"|^mngr: (?:there is no verb|\S+(?: \S+)? (?:has no verb|needs|does not take|takes no value)\b)).*$",
    re.IGNORECASE | re.MULTILINE,
)


class Signal(Record):
    time: float
    kind: str
    subcommand: str  # without the program; the program's own name where there is none
    words: str  # what was tried
    detail: str  # what it said, or the reason
    source: str  # where: an agent, a tutorial


class Rank(Record):
    subcommand: str
    weight: int
    counts: dict[str, int]  # by kind, the heaviest first
    examples: list[Signal]


def record(home: str, kind: str, subcommand: str, words: str, detail: str, source: str) -> None:
    """One line is one write: several may append at once."""
    signal = Signal(
        time=time.time(), kind=kind, subcommand=subcommand, words=_cut(words), detail=_cut(detail), source=source
    )
    os.makedirs(home, mode=0o700, exist_ok=True)
    with open(os.path.join(home, FILE), "ab", buffering=0) as file:
        file.write(jsonline.dumps(signal.to_dict()).encode() + b"\n")


def kept(home: str, program: str = PROGRAM) -> Iterator[Signal]:
    """What `record` wrote about this program. A line that cannot be read is passed over."""
    try:
        with open(os.path.join(home, FILE), encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            signal = Signal.from_dict(jsonline.loads(line))
        except (ValueError, RecursionError):
            continue
        if signal.kind in WEIGHTS and (not signal.words or calls(signal.words, program)):
            yield signal


def from_entries(entries: Iterable[Entry], program: str = PROGRAM, source: str = "") -> Iterator[Signal]:
    """Of one conversation: what its shell commands had to do with the program, as their results tell it."""
    under_way: dict[str, list[Call]] = {}
    helped: set[str] = set()
    for entry in entries:
        if entry.kind == "tool_call":
            if made := calls(_line(entry), program):
                under_way[entry.call] = made
        elif entry.kind == "tool_result" and entry.call in under_way:
            for kind, call, detail in _signs(under_way.pop(entry.call), entry, program, helped):
                yield Signal(
                    time=entry.time or 0.0,
                    kind=kind,
                    subcommand=_subcommand(call.words, entry.text, program),
                    words=_cut(shlex.join([program, *call.words])),
                    detail=_cut(detail),
                    source=source,
                )


def subcommand_of(line: str, program: str = PROGRAM) -> str:
    """Of the first call of the program that a line makes; nothing where it makes none."""
    made = calls(line, program)
    return _subcommand(made[0].words, "", program) if made else ""


def rank(signals: Iterable[Signal]) -> list[Rank]:
    """The most confusing first. What was found twice, since a clone has its model's conversation, counts once."""
    by_subcommand: dict[str, list[Signal]] = {}
    seen = set()
    for signal in signals:
        mark = (signal.time, signal.kind, signal.words, signal.detail)
        if mark not in seen or not signal.time:
            seen.add(mark)
            by_subcommand.setdefault(signal.subcommand, []).append(signal)
    ranks = [
        Rank(
            subcommand=name,
            weight=sum(WEIGHTS[signal.kind] for signal in found),
            counts={kind: n for kind in WEIGHTS if (n := sum(signal.kind == kind for signal in found))},
            examples=_examples(found),
        )
        for name, found in by_subcommand.items()
    ]
    return sorted(ranks, key=lambda rank: (-rank.weight, rank.subcommand))


def _line(entry: Entry) -> str:
    """The shell's line, as the tools of the programs call it."""
    given = entry.input
    if isinstance(given, dict):
        given = next((given[key] for key in ("command", "cmd", "script") if given.get(key)), None)
    elif not _SHELL_TOOL.search(entry.tool):
        return ""
    if isinstance(given, list):
        return shlex.join(map(str, given))
    return given if isinstance(given, str) else ""


def _signs(made: list[Call], entry: Entry, program: str, helped: set[str]) -> Iterator[tuple[str, Call, str]]:
    """One for each help that was read before, and at most one for what went wrong."""
    for call in filter(_is_help, made):
        name = _subcommand(call.words, entry.text, program)
        if name in helped:
            yield HELP, call, "its help was asked for again"
        helped.add(name)
    tried = [call for call in made if not _is_help(call)]
    if tried and (wrong := _mistake(tried, entry, program)):
        yield wrong


def _mistake(tried: list[Call], entry: Entry, program: str) -> tuple[str, Call, str] | None:
    said, last = entry.text, tried[-1]
    code = int(found.group(1)) if (found := _EXIT_CODE.search(said)) else None
    if code == 0 and last.last:
        return None  # it prints what others did wrong
    if wrong := _WRONG.search(said):
        told = {word.strip("-") for word in re.findall(r"[\w-]+", wrong.group())}
        about_flag = re.search(_FLAG, wrong.group(), re.IGNORECASE)
        guilty = [call for call in tried if about_flag and _flags(call) & told]
        named = [call for call in tried if set(_plain(call.words)[:1]) & told]
        return UNKNOWN_FLAG if guilty else USAGE_ERROR, (guilty or named or tried)[-1], wrong.group().strip()
    if (code == 2 and last.last) or (_USAGE.search(said) and (code or entry.failed)):
        return USAGE_ERROR, last, _complaint(said, program)
    return None


def _flags(call: Call) -> set[str]:
    return {word.partition("=")[0].strip("-") for word in call.words if word.startswith("-")}


def _is_help(call: Call) -> bool:
    own = call.words[: call.words.index("--")] if "--" in call.words else call.words
    return "--help" in own or "-h" in own or own[:1] == ["help"]


def _complaint(said: str, program: str) -> str:
    lines = [line.strip() for line in said.split("\n") if line.strip() and not _EXIT_CODE.search(line)]
    own = [line for line in lines if re.match(rf"{re.escape(program)}: |error\b", line, re.IGNORECASE)]
    return (own or lines or ["exit code 2"])[0]


def _subcommand(words: list[str], said: str, program: str) -> str:
    """The longest verb that is known. Of another program, its first word; the second as well, if the program itself
    says so where it tells its usage."""
    plain = _plain(words)
    if plain[:1] == ["help"] and len(plain) > 1:
        plain = plain[1:]
    if not plain:
        return program
    if program == PROGRAM:
        known = _verbs()
        return known.get(" ".join(plain[:2])) or known.get(plain[0]) or plain[0]
    usage = re.search(rf"usage:\s+(?:\S*/)?{re.escape(program)}\s+(\S+)\s+(\S+)", said, re.IGNORECASE)
    return " ".join(plain[:2]) if usage and plain[:2] == list(usage.groups()) else plain[0]


def _plain(words: list[str]) -> list[str]:
    """Those in front of the first option."""
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:first]


_known: dict[str, str] = {}


def _verbs() -> dict[str, str]:
    """Names, aliases and first words of verbs, and what each is called properly."""
    if not _known:
        for name, verb in registry.commands().items():
            _known.update(dict.fromkeys((name, *verb.aliases), name))
            _known.setdefault(name.partition(" ")[0], name.partition(" ")[0])
    return _known


def _examples(found: list[Signal]) -> list[Signal]:
    """The heaviest and newest, each complaint once."""
    told: dict[str, Signal] = {}
    for signal in sorted(found, key=lambda signal: (-WEIGHTS[signal.kind], -signal.time)):
        told.setdefault(signal.detail, signal)
    return list(told.values())[:_EXAMPLES]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
