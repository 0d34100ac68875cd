"""Agents over many hosts that are made for them, side by side, each with its share."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.fleet.create import SomeNotCreated, create_at
from mngr.fleet.outcome import counted
from mngr.fleet.prepare import prepare
from mngr.fleet.side_by_side import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.address import Address
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.plan import Request
    from mngr.model import Agent

AT_A_TIME = 8  # hosts that are being made


def spread(
    fleet: Fleet, request: Request, address: Address, shares: Sequence[list[str]], tell: Callable[[str], None]
) -> list[Agent]:
    """The agents that now run. A host that fails takes nothing from the others: SomeNotCreated says whose it was."""
    from threading import Event, Semaphore

    place = address.replace(name=None)
    request = request.replace(host_options=prepare(fleet, request.replace(address=str(place)), tell))
    inputs = dict(zip((name for share in shares for name in share), request.inputs or (), strict=False))
    turn, interrupted = Semaphore(AT_A_TIME), Event()
    made: dict[str, Agent] = {}
    failed: dict[str, str] = {}

    def begin(share: list[str]) -> None:
        part = request.replace(inputs=[inputs[name] for name in share] if request.inputs else None)
        with turn:
            if interrupted.is_set():
                return
            try:
                agents = create_at(fleet, part, place, share, tell)
            except SomeNotCreated as error:
                agents = error.made
                failed.update(error.failed)
            except MngrError as error:
                agents = []
                for name in share:
                    failed[name] = error.message
                    tell(f"{name} was not created: {error.message}{f' ({error.hint})' if error.hint else ''}")
            except BaseException:
                interrupted.set()
                raise
        made.update((agent.name, agent) for agent in agents)
        tell(f"{len(made)} of {sum(map(len, shares))} agents run")

    try:
        at_once(shares, begin)
    except BaseException:
        if made:
            tell(f"{counted(len(made), 'agent')} had been created before that: {' '.join(sorted(made))}")
        raise
    ordered = [made[name] for share in shares for name in share if name in made]
    if failed:
        raise SomeNotCreated(f"{len(failed)} of {len(failed) + len(made)} agents were not created", ordered, failed)
    return ordered
