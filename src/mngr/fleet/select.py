"""Selection: the same words mean the same agents for every verb. Names and globs are answered by the registry of names
alone; hosts are asked only when a state, label or type has to be known."""

from __future__ import annotations

from mngr.address import check_name, parse_address
from mngr.errors import NoSuchAgent, UsageError
from mngr.fleet.survey import Status, agents, find, natural, survey_host, survey_panes
from mngr.model import STATES, Ref
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet


class Selection(Record):
    """Words are names, globs or addresses. Filters narrow the words, or all agents when there are no words."""

    words: list[str] = []  # noqa: RUF012 - Record copies defaults
    nobody: bool = False  # the words came from somewhere, and there were none
    all: bool = False
    states: list[str] = []  # noqa: RUF012
    labels: dict[str, str] = {}  # noqa: RUF012
    types: list[str] = []  # noqa: RUF012
    hosts: list[str] = []  # noqa: RUF012

    @property
    def filters(self) -> bool:
        return bool(self.states or self.labels or self.types or self.hosts)


def select(fleet: Fleet, selection: Selection) -> list[Ref]:
    """The agents meant, in the order of the words, each once. No selection is never "all"."""
    if selection.nobody:
        return []
    if not (selection.words or selection.all or selection.filters):
        raise UsageError("which agents?", "give names, globs, --label, --state or --all")
    _check(selection)
    if selection.filters:
        return [_ref(status) for status in statuses(fleet, selection)]
    if selection.all:
        return sorted(fleet.names.all(), key=lambda ref: natural(ref.name))
    found: dict[str, Ref] = {}
    for word in selection.words:
        for ref in _meant(fleet, word):
            found[ref.id] = ref
    return list(found.values())


def statuses(fleet: Fleet, selection: Selection | None = None) -> list[Status]:
    """The same selection, with the state of each; without any words or filters: all."""
    selection = selection or Selection()
    if selection.nobody:
        return []
    _check(selection)
    known = agents(fleet)
    if selection.words:
        by_id = {status.id: status for status in known}
        meant = {ref.id: ref for word in selection.words for ref in _meant(fleet, word)}
        known = [by_id[id] for id in meant if id in by_id]
        if missing := [ref.name for id, ref in meant.items() if id not in by_id]:
            raise NoSuchAgent(f"{missing[0]} is known by name but not there any more", "mngr gc clears such names")
    return [status for status in known if _passes(status, selection)]


def _check(selection: Selection) -> None:
    if selection.all and selection.words:
        raise UsageError("--all and names exclude each other")
    for state in selection.states:
        if state not in STATES:
            raise UsageError(f"there is no state {state!r}", f"one of {', '.join(STATES)}")


def one(fleet: Fleet, name: str, *, of_tmux: bool = False) -> Status:
    """One agent, with its state; also with what only tmux knows of it."""
    ref = one_ref(fleet, name)
    survey = survey_panes if of_tmux else survey_host
    status = find(survey(fleet, fleet.host(ref.host)), ref.id)
    if status is None:
        raise NoSuchAgent(f"{name} is known by name but not there any more", "mngr gc clears such names")
    return status


def one_ref(fleet: Fleet, name: str) -> Ref:
    found = _meant(fleet, name)
    if len(found) > 1:
        raise UsageError(f"{name} means {len(found)} agents: {', '.join(ref.name for ref in found[:5])}", "name one")
    return found[0]


def _meant(fleet: Fleet, word: str) -> list[Ref]:
    if any(char in word for char in "*?["):
        from fnmatch import fnmatchcase

        found = sorted(
            (ref for ref in fleet.names.all() if fnmatchcase(ref.name, word)), key=lambda ref: natural(ref.name)
        )
        if not found:
            raise NoSuchAgent(f"no agent matches {word}", "see mngr list")
        return found
    if "@" in word:
        address = parse_address(word)
        ref = fleet.names.get(check_name(address.name or ""))
        place = (address.host or "local") + (f".{address.provider}" if address.provider else "")
        if ref.host != place:
            raise NoSuchAgent(f"{ref.name} is not at {place}", f"it is at {ref.host}")
        return [ref]
    return [fleet.names.get(word)]


def _passes(status: Status, selection: Selection) -> bool:
    agent = status.agent
    return (
        (not selection.states or status.state in selection.states)
        and (not selection.hosts or status.host in selection.hosts)
        and (not selection.types or (agent is not None and agent.type in selection.types))
        and (not selection.labels or (agent is not None and has_labels(agent.labels, selection.labels)))
    )


def has_labels(labels: dict[str, str], wanted: dict[str, str]) -> bool:
    """`K=V` wants that value; `K=` alone (an empty value) wants the label, whatever it says."""
    return all(key in labels and value in ("", labels[key]) for key, value in wanted.items())


def _ref(status: Status) -> Ref:
    return status.record("name it alone to act on it").ref
