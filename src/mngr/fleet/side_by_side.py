"""One question to several hosts at once. A host that gives no answer takes nothing from those of the others."""

from __future__ import annotations

from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    found: dict[str, T] = {}
    wrong: list[BaseException] = []

    def work(name: str, group: list[Ref]) -> None:
        try:
            found.update(ask(fleet.host(name), group))
        except MngrError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised below, where somebody hears it
            wrong.append(error)

    if len(groups) == 1:
        work(*next(iter(groups.items())))
    else:
        import threading

        threads = [threading.Thread(target=work, args=item) for item in groups.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if wrong:
        raise wrong[0]
    return found
