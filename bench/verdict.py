"""Whether what mngr showed agrees with what the model server saw. The server's own times are the truth: an agent works
from the first request of a turn until the last answer of it is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from traffic import Sent

from mngr.dev.exchange import Json

# Seconds within which a change must be shown, from the server's last byte to the line that a user reads. In between are
# what the program does before it calls its hook, the hook, the feed and its reader, on a machine that does much else.
LIMIT = 1.0
ARRIVED = ("delivered", "queued")  # by an idle agent, by one at work


class Line(NamedTuple):
    """A state, as `mngr events --follow` told it, and when it did."""

    at: float
    state: str
    reason: str


class Turn(NamedTuple):
    begin: float
    end: float


class Spell(NamedTuple):
    """How long an agent was shown as running, and the turns of that time: more than one when it went straight on with
    a message that had been queued."""

    begin: float
    end: float
    turns: list[Turn]


class Delays(NamedTuple):
    """From the server's time to the line. That of a turn that was shown before its first request came is negative."""

    begins: list[float]
    ends: list[float]
    went_on: int  # turns that followed another without a pause that anybody had to be shown


def turns(entries: Iterable[Json]) -> list[Turn]:
    """Of one conversation. An answer that calls a tool is not the last one of its turn."""
    found: list[Turn] = []
    going_on = False
    for entry in sorted(entries, key=lambda entry: float(entry["time"])):
        begin = found.pop().begin if going_on else entry["time"]
        found.append(Turn(begin, entry["end"]))
        going_on = "call" in entry["answered"]
    return found


def delays(name: str, lines: list[Line], turns: list[Turn]) -> tuple[Delays, list[str]]:
    """Of one agent, and what is wrong with it."""
    spells, wrong = _spells(lines), []
    left = list(turns)
    for spell in spells:
        while left and left[0].end <= spell.end:
            spell.turns.append(left.pop(0))
    for before, spell in pairwise(spells):
        # The line that ended the one before was on its way when this turn was over already.
        if not spell.turns and len(before.turns) > 1:
            spell.turns.append(before.turns.pop())
    found = Delays([], [], sum(len(spell.turns) - 1 for spell in spells if spell.turns))
    for spell in spells:
        if not spell.turns:
            wrong.append(f"{name} was shown running for {spell.end - spell.begin:.2f} s, and no turn was over then")
            continue
        found.begins.append(spell.begin - spell.turns[0].begin)
        found.ends.append(spell.end - spell.turns[-1].end)
        for one, next_one in pairwise(spell.turns):
            if next_one.begin - one.end > LIMIT:
                wrong.append(f"{name} was shown running between two turns, for {next_one.begin - one.end:.2f} s")
    wrong += [f"{name} showed a turn's {what} after {late:.2f} s" for what, late in _late(found)]
    wrong += [f"{name} had a turn that was not shown" for _ in left]
    wrong += [f"{name} was shown waiting ({line.reason})" for line in lines if _is_odd(line)]
    return found, wrong


def _spells(lines: list[Line]) -> list[Spell]:
    """One that has not ended is none: the turns in it are not shown to be over."""
    spells, begin = [], None
    for line in lines:
        if line.state == "running" and begin is None:
            begin = line.at
        elif line.state == "waiting" and begin is not None:
            spells.append(Spell(begin, line.at, []))
            begin = None
    return spells


def _late(found: Delays) -> list[tuple[str, float]]:
    delays = [("begin", late) for late in found.begins] + [("end", late) for late in found.ends]
    return [(what, late) for what, late in delays if late > LIMIT]


def _is_odd(line: Line) -> bool:
    return line.state == "waiting" and line.reason not in ("ready", "turn over")


def arrivals(sent: list[Sent], heard: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong with the messages: `heard` is who was told what, by the model server's account."""
    wrong = [f"{one.name}, {_title(one.text)}: {one.outcome}" for one in sent if one.outcome not in ARRIVED]
    expected, arrived = Counter((one.name, one.text) for one in sent), Counter(heard)
    for name, text in sorted(expected | arrived):
        if (times := arrived[name, text]) != expected[name, text]:
            wrong.append(f"{name}, {_title(text)}: arrived {times} times")
    outcomes = {one.outcome for one in sent}
    wrong += [
        f"no message was {outcome}: nothing is proven about such" for outcome in ARRIVED if outcome not in outcomes
    ]
    return wrong


def _title(text: str) -> str:
    return text.partition("\n")[0]
