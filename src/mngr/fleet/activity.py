"""What agents show of themselves at one moment: how long their logs are, what their screens look like, the CPU time of
their processes, and whether they have handed in a result. Two such moments tell work from standstill.

One round trip per host, and as many processes there for a hundred agents as for one."""

from __future__ import annotations

import binascii

from mngr import hosts, registry
from mngr.fleet.side_by_side import ask_hosts
from mngr.model import new_id
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref


class Activity(Record):
    log: int = 0  # bytes of all its session logs
    screen: str = ""  # a checksum of the letters that its terminal shows; empty without one
    cpu: float = 0.0  # seconds that its living processes have used: it falls when one of them ends
    processes: int = 0
    result: str | None = None  # tells the result that it has handed in from any other; None: it has handed in none


def activity(fleet: Fleet, refs: Iterable[Ref]) -> dict[str, Activity]:
    """By id. Agents that are gone, or whose host cannot be reached, are missing."""
    return ask_hosts(fleet, refs, _ask)


def _ask(host: Host, refs: list[Ref]) -> dict[str, Activity]:
    mark = new_id()  # of this call alone: what a program shows must not pass for a line of ours
    ids = " ".join(ref.id for ref in refs)
    parts = [hosts.read_script(__file__, f"{name}.sh") for name in ("collect", "screen", "activity")]
    parts += [f"here {ids}", f"{{ results {ids}", *_logs(refs), "} | sizes", "trees", f"screens {mark} '' '' {ids}"]
    return _read(hosts.check(host, "\n".join(parts)), mark)


def _logs(refs: list[Ref]) -> list[str]:
    ids: dict[str, list[str]] = {}
    for ref in refs:
        for glob in registry.type_of(ref).logs:
            ids.setdefault(glob, []).append(ref.id)
    return [" ".join(["logs", quote(glob), *group]) for glob, group in ids.items()]


def _read(text: str, mark: str) -> dict[str, Activity]:
    told, *screens = text.split(f"{mark} ")
    found: dict[str, Activity] = {}
    for line in told.split("\n"):
        word, _, rest = line.partition(" ")
        id, *numbers = rest.split(" ")
        if word == "here":
            found[id] = Activity()
        elif id not in found:
            continue  # panes of agents that nobody asked for; logs whose names are made to look like something else
        elif word == "tree":
            found[id] = found[id].replace(processes=int(numbers[0]), cpu=float(numbers[1]))
        elif word == "result":
            found[id] = found[id].replace(result=numbers[0])
        else:
            found[id] = found[id].replace(log=int(numbers[0]))
    for screen in screens:
        id, _, shown = screen.partition("\n")
        if id in found:
            found[id] = found[id].replace(screen=_checksum(shown))
    return found


def _checksum(shown: str) -> str:
    """Of the letters alone: a spinner turns and a clock counts in a program that hangs, too."""
    letters = "".join(char for char in shown if char.isascii() and char.isalpha())
    return f"{binascii.crc32(letters.encode()):08x}"
