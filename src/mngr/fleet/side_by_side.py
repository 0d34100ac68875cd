"""One question to several hosts at once. A host that gives no answer takes nothing from those of the others."""

from __future__ import annotations

from _thread import allocate_lock

from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self, TypeVar

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref
    from mngr.waiting import Word

    T = TypeVar("T")

_INTERRUPTS = (2, 15)  # INT and TERM
_counting = allocate_lock()


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
    with Threads(work) as threads:
        for item in items[:-1]:
            threads.start(item)
        for item in items[-1:]:
            try:
                work(item)
            except Exception as error:  # noqa: BLE001 - raised at the end, as that of a thread is
                threads.wrong.append(error)


class Threads:
    """For work that begins when there is something to do: at the end of the `with` all have ended, and the first thing
    that went wrong is raised. Without `threading`, which costs 4 ms, and for nothing as long as none is started."""

    def __init__(self, work: Callable[[Any], None]) -> None:
        self._work = work
        self._word: Word | None = None
        self._started, self._ended = 0, 0
        self.wrong: list[BaseException] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._wait()
        except BaseException:
            self._call_off()
            raise
        else:
            if error is not None:
                self._call_off()
        finally:
            if self._word is not None and self._ended == self._started:  # else its number must not become another's
                self._word.close()
        if error is None and self.wrong:
            raise self.wrong[0]

    def start(self, item: object) -> None:
        import _signal  # type: ignore[import-not-found]
        import _thread

        if self._word is None:
            from _queue import SimpleQueue

            from mngr.waiting import Word

            self._bell: SimpleQueue[None] = SimpleQueue()  # wakes who waits; what counts is the number
            self._word = Word()
        # What would interrupt us waits until we know that there is one more to wait for.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _INTERRUPTS)
        try:
            _thread.start_new_thread(self._run, (item, mask))
            self._started += 1
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def _run(self, item: object, mask: Iterable[int]) -> None:
        import _signal

        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)  # what it starts has that of its thread
        assert self._word is not None
        self._word.heed()
        try:
            self._work(item)
        except BaseException as error:  # noqa: BLE001 - raised where somebody hears it
            self.wrong.append(error)
        finally:
            with _counting:
                self._ended += 1
            self._bell.put(None)

    def _wait(self) -> None:
        if self._word is None:
            return
        from _queue import Empty

        while self._ended < self._started:
            try:
                self._bell.get(timeout=1.0)  # Ctrl-C in the moment before that is heard when it begins again
            except Empty:
                pass

    def _call_off(self) -> None:
        """And wait until they have cleared up; who insists, twice, leaves that undone."""
        if self._word is None:
            return
        self._word.call_off()
        try:
            self._wait()
        except KeyboardInterrupt:
            self._wait()


def known_hosts(fleet: Fleet) -> list[str]:
    """This machine, and all hosts that somebody has been to: something of ours can be there without an agent."""
    return list(dict.fromkeys([*fleet.host_names(), *(place.name for place in fleet.places.all() if place.home)]))
