"""What became of one agent in a verb over many: said once per agent, by every verb in the same way."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref


class Outcome(Record):
    id: str
    name: str
    did: str  # one word: stopped, started, typed, destroyed, ...
    ok: bool = True
    why: str = ""


def per_host(fleet: Fleet, refs: Iterable[Ref], act: Callable[[Host, list[Ref]], list[Outcome]]) -> list[Outcome]:
    """`act` once per host with the agents there, hosts side by side; the outcomes in the order of `refs`.
    A host that fails as a whole fails for each of its agents, and for nobody else's."""
    refs = list(refs)
    groups: dict[str, list[Ref]] = {}
    for ref in refs:
        groups.setdefault(ref.host, []).append(ref)
    if len(groups) == 1:
        name, group = next(iter(groups.items()))
        found = act(fleet.host(name), group)
    else:
        found = _side_by_side(fleet, groups, act)
    by_id = {outcome.id: outcome for outcome in found}
    return [by_id[ref.id] for ref in refs if ref.id in by_id]


def _side_by_side(
    fleet: Fleet, groups: dict[str, list[Ref]], act: Callable[[Host, list[Ref]], list[Outcome]]
) -> list[Outcome]:
    import threading

    found: list[Outcome] = []

    def work(name: str, group: list[Ref]) -> None:
        try:
            found.extend(act(fleet.host(name), group))
        except MngrError as error:
            found.extend(Outcome(id=ref.id, name=ref.name, did="failed", ok=False, why=error.message) for ref in group)

    threads = [threading.Thread(target=work, args=item) for item in groups.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def one_by_one(refs: Iterable[Ref], act: Callable[[Ref], Outcome]) -> list[Outcome]:
    """For what cannot be done in one go: each for itself, and one that fails stops nobody else."""
    outcomes = []
    for ref in refs:
        try:
            outcomes.append(act(ref))
        except MngrError as error:
            why = error.message + (f" ({error.hint})" if error.hint else "")
            outcomes.append(Outcome(id=ref.id, name=ref.name, did="failed", ok=False, why=why))
    return outcomes


def counted(number: int, what: str) -> str:
    """`1 commit`, `3 commits`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def read_lines(text: str) -> dict[str, tuple[str, str]]:
    """`WORD ID REST` lines of a script, by id."""
    told = {}
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        id, _, detail = rest.partition(" ")
        told[id] = (word, detail)
    return told
