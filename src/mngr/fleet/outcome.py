"""What became of one agent in a verb over many: said once per agent, by every verb in the same way."""

from __future__ import annotations

from mngr.errors import HostUnreachable, MngrError
from mngr.fleet.side_by_side import answers
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
    did: str  # one word: stopped, started, typed, destroyed, ...; failed, or unreachable when its host was not there
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
        told, silent = answers(groups, lambda name: act(fleet.host(name), groups[name]))
        found = [outcome for outcomes in told.values() for outcome in outcomes]
        found += [failure(ref, error.message, error) for name, error in silent.items() for ref in groups[name]]
    by_id = {outcome.id: outcome for outcome in found}
    return [by_id[ref.id] for ref in refs if ref.id in by_id]


def one_by_one(refs: Iterable[Ref], act: Callable[[Ref], Outcome]) -> list[Outcome]:
    """For what cannot be done in one go: each for itself, and one that fails stops nobody else. A host that is away is
    waited for once."""
    outcomes = []
    away: dict[str, MngrError] = {}
    for ref in refs:
        try:
            if ref.host in away:
                raise away[ref.host]
            outcomes.append(act(ref))
        except MngrError as error:
            if isinstance(error, HostUnreachable):
                away[ref.host] = error
            why = error.message + (f" ({error.hint})" if error.hint else "")
            outcomes.append(failure(ref, why, error))
    return outcomes


def failure(ref: Ref, why: str, error: MngrError) -> Outcome:
    did = "unreachable" if isinstance(error, HostUnreachable) else "failed"
    return Outcome(id=ref.id, name=ref.name, did=did, ok=False, why=why)


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
