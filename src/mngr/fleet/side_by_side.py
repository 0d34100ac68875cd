"""One question to several hosts at once. A host that gives no answer takes nothing from those of the others."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

    T = TypeVar("T")


def ask_hosts(fleet: Fleet, refs: Iterable[Ref], ask: Callable[[Host, list[Ref]], dict[str, T]]) -> dict[str, T]:
    """What `ask` says of the agents of each host, by id; those of a host that cannot be asked are missing. What goes
    wrong on this machine is raised."""
    groups: dict[str, list[Ref]] = {}
    for ref in refs:
        groups.setdefault(ref.host, []).append(ref)
    told, _ = answers(groups, lambda name: ask(fleet.host(name), groups[name]))
    return {id: found for each in told.values() for id, found in each.items()}


def every_host(
    fleet: Fleet, names: Iterable[str], ask: Callable[[Host], T]
) -> tuple[dict[str, T], dict[str, MngrError]]:
    """What `ask` says of each host, by its name, and why others said nothing: nobody may take that for an empty answer.
    What goes wrong on this machine is raised."""
    told, silent = answers(names, lambda name: ask(fleet.host(name)))
    if LOCAL in silent:
        raise silent[LOCAL]
    return told, silent


def answers(names: Iterable[str], ask: Callable[[str], T]) -> tuple[dict[str, T], dict[str, MngrError]]:
    """The same for whatever has a name."""
    told: dict[str, T] = {}
    silent: dict[str, MngrError] = {}

    def work(name: str) -> None:
        try:
            told[name] = ask(name)
        except MngrError as error:
            silent[name] = error

    at_once(names, work)
    return told, silent


def at_once(items: Iterable[T], work: Callable[[T], None]) -> None:
    """`work` for each of them, side by side; the last one in this thread, so that one alone costs none. The first thing
    that goes wrong is raised when all have ended. Ctrl-C reaches all that wait for a host or for a lock."""
    items = list(items)
    if len(items) < 2:
        for item in items:
            work(item)
        return
    import _thread  # `threading` costs 4 ms

    from mngr.waiting import Word

    word = Word()
    ends: list[LockType] = []
    wrong: list[BaseException] = []

    def begin(item: T, end: LockType) -> None:
        word.heed()
        try:
            work(item)
        except BaseException as error:  # noqa: BLE001 - raised below, where somebody hears it
            wrong.append(error)
        finally:
            end.release()

    try:
        for item in items[:-1]:
            end = _thread.allocate_lock()
            end.acquire()
            ends.append(end)
            try:
                _thread.start_new_thread(begin, (item, end))
            except RuntimeError:  # there can be no more of them
                ends.pop()
                raise
        try:
            work(items[-1])
        except Exception as error:  # noqa: BLE001 - the same
            wrong.append(error)
        _wait(ends)
    except BaseException:
        word.call_off()
        _wait(ends)
        raise
    finally:
        if not any(end.locked() for end in ends):  # else its number must not become another's
            word.close()
    if wrong:
        raise wrong[0]


def _wait(ends: list[LockType]) -> None:
    """Each is free when its thread has ended."""
    for end in ends:
        while not end.acquire(timeout=1.0):  # Ctrl-C in the moment before that is heard when it begins again
            pass
        end.release()


def known_hosts(fleet: Fleet) -> list[str]:
    """This machine, and all hosts that somebody has been to: something of ours can be there without an agent."""
    return list(dict.fromkeys([*fleet.host_names(), *(place.name for place in fleet.places.all() if place.home)]))
