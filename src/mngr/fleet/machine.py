"""How much room a host has, for those who decide whether one more agent fits there."""

from __future__ import annotations

from mngr import hosts
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet


class Machine(Record):
    """None is what cannot be told, and never a guess."""

    cores: int | None = None
    load: float | None = None  # of the last minute
    memory_total: int | None = None  # bytes
    memory_free: int | None = None  # bytes that programs could have without harm to others


def machine(fleet: Fleet, host_name: str) -> Machine:
    """Raises HostUnreachable."""
    text = hosts.check(fleet.host(host_name), hosts.read_script(__file__, "machine.sh") + "\nmachine; :", deadline=20)
    return read_machine(text)


def read_machine(text: str) -> Machine:
    found: dict[str, float] = {}
    for line in text.splitlines():
        word, _, number = line.partition(" ")
        if number.replace(".", "", 1).isdecimal():
            found[word] = float(number) if word == "load" else int(number)
    return Machine(**found)  # type: ignore[arg-type]
