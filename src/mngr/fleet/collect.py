"""Collecting what agents have spent: from the logs that their programs write on their hosts, into the ledger.

One round trip per host finds the sizes of all logs, and a second fetches what was added to those that have changed
since the last time, complete lines only. When nothing has changed, no log is opened."""

from __future__ import annotations

import os
import select
import time

from mngr import hosts, jsonline, process, registry, waiting
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.fleet.side_by_side import answers
from mngr.hosts.lifeline import SHELL
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mngr.agents import AgentType
    from mngr.agents.log import LogReader, Spent
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.ledger import Account, Ledger, Place
    from mngr.fleet.survey import Status
    from mngr.hosts import Host
    from mngr.model import Ref

_SILENCE = 60.0  # seconds without a byte, after which a host is given up
_BATCH = 20_000  # messages that are written to the ledger at once
_LINE = 50_000  # characters of paths in one command: far below what any system takes


class Log(Record):
    """A log on a host as it is now, and where reading it begins."""

    agent: str
    path: str  # below the agent's directory
    inode: int
    size: int
    start: int = 0
    state: str = "{}"  # what its reader knew there

    @property
    def file(self) -> str:
        return f"./{self.agent}/{self.path}"


def collect(
    ledger: Ledger, fleet: Fleet, statuses: Iterable[Status], tell: Callable[[str], None], *, again: bool = True
) -> bool:
    """Brings the ledger up to date for these agents. A host that cannot be asked is told, and asked the next time; one
    that was stopped with nothing left to count is neither. Whether everything is known now. `again=False`: who did not
    answer when it was asked for its agents is not asked again."""
    found = _with_logs(fleet, statuses)
    ids = [ref.id for ref, _, _ in found]
    known, places = ledger.accounts(ids), ledger.places(ids)
    by_host: dict[str, dict[str, AgentType]] = {}
    away: dict[str, MngrError] = {}
    for ref, status, type in found:
        by_host.setdefault(ref.host, {})[ref.id] = type
        if status.is_out_of_reach and not again:
            away[ref.host] = HostUnreachable(status.verdict.because)
    counted = [name for name, types in by_host.items() if _is_counted(fleet, name) and types.keys() <= known.keys()]
    asked = [name for name in by_host if name not in away and name not in counted]
    looked, silent = answers(asked, lambda name: list(_look(fleet.host(name), by_host[name])))
    silent |= away
    _remember(ledger, [each for each in found if each[0].host not in silent], known)
    for name, logs in looked.items():
        try:
            _read(fleet.host(name), _changed(logs, places), by_host[name], ledger)
        except MngrError as error:
            silent[name] = error
    for name, why in silent.items():
        tell(f"what agents on {name} have spent since the last time is not known: {why.message}")
    return not silent


def collect_last(fleet: Fleet, statuses: Iterable[Status]) -> bool:
    """Before agents are destroyed or their host is stopped, which they are in any case: what cannot be collected is
    told. Whether everything is known now."""
    statuses = list(statuses)
    if not _with_logs(fleet, statuses):
        return True
    import sys

    from mngr.fleet.ledger import with_ledger

    def tell(text: str) -> None:
        print(f"mngr: {text}", file=sys.stderr)

    try:
        return with_ledger(fleet.home, tell, lambda ledger: collect(ledger, fleet, statuses, tell))
    except Exception as error:  # noqa: BLE001 - an agent can write anything into its files: it must not keep its host busy
        tell(f"what these agents have spent since the last time is not known: {error}")
        return False


def _is_counted(fleet: Fleet, name: str) -> bool:
    try:
        place = fleet.places.find(name) if fleet.is_stopped(name) else None
    except MngrError:
        return False  # its record is damaged
    return place is not None and place.is_counted


def _with_logs(fleet: Fleet, statuses: Iterable[Status]) -> list[tuple[Ref, Status, AgentType]]:
    """Those whose programs write down what they spend. A damaged agent is what the registry of names says it is."""
    named: dict[str, Ref] = {}
    types: dict[str, AgentType] = {}
    found = []
    for status in statuses:
        if status.agent is None and not named:
            named = {ref.id: ref for ref in fleet.names.all()}
        ref = status.agent.ref if status.agent else named.get(status.id)
        if ref is None:
            continue
        if ref.kind not in types:
            types[ref.kind] = registry.type_of(ref)
        if types[ref.kind].logs:
            found.append((ref, status, types[ref.kind]))
    return found


def _remember(ledger: Ledger, found: list[tuple[Ref, Status, AgentType]], known: dict[str, Account]) -> None:
    """Names and labels as they are now; of a damaged agent, as they were."""
    from mngr.fleet.ledger import Account

    changed = []
    for ref, status, _ in found:
        held = known.get(ref.id)
        labels, created = (held.labels, held.created) if held else ({}, time.time())
        if status.agent:
            labels, created = status.agent.labels, status.agent.created
        account = Account(id=ref.id, name=ref.name, host=ref.host, type=ref.type, labels=labels, created=created)
        if account != held:
            changed.append(account)
    ledger.remember(changed)


def _look(host: Host, types: dict[str, AgentType]) -> Iterator[Log]:
    """All logs of these agents. Names are as agents' programs gave them: what is not as it should be is passed over."""
    ids: dict[str, list[str]] = {}
    for id, type in types.items():
        for glob in type.logs:
            ids.setdefault(glob, []).append(id)
    lines = [hosts.read_script(__file__, "collect.sh")]
    lines += [" ".join(["logs", quote(glob), *group]) for glob, group in ids.items()]
    for line in hosts.check(host, "\n".join([*lines, ":"])).split("\n"):
        words = line.split(None, 9)  # inode, mode, links, user, group, size, three of the time, name
        if len(words) < 10 or not (words[0].isdecimal() and words[5].isdecimal()) or not words[9].isprintable():
            continue
        id, _, path = words[9].removeprefix("./").partition("/")
        if id in types and ".." not in path.split("/"):
            inode, size = (int(word[-18:]) for word in (words[0], words[5]))  # what SQLite keeps, whoever made them up
            yield Log(agent=id, path=path, inode=inode, size=size)


def _changed(logs: Iterable[Log], places: dict[tuple[str, str], Place]) -> Iterator[Log]:
    """Those that are not as they were. One that has grown is read on, if its reader can go on in the middle; one that
    is another file now, or shorter, from its beginning."""
    for log in logs:
        at = places.get((log.agent, log.path))
        if at is None or at.inode != log.inode or log.size < at.offset:
            yield log
        elif log.size != at.size:
            yield log if at.state is None else log.replace(start=at.offset, state=at.state)


def _read(host: Host, logs: Iterable[Log], types: dict[str, AgentType], ledger: Ledger) -> None:
    """What came before a host fell silent is kept."""
    logs = list(logs)
    messages: list[tuple[str, Spent]] = []
    places: list[tuple[str, str, Place]] = []
    contents = _contents(host, logs)
    try:
        for log in logs:
            spent, place = _read_one(log, types[log.agent], contents)
            messages += [(log.agent, each) for each in spent]
            places.append((log.agent, log.path, place))
            if len(messages) > _BATCH:
                ledger.add(messages, places)
                messages, places = [], []
        next(contents, None)  # the end of the script, which has something to clear away
    finally:
        ledger.add(messages, places)


def _read_one(log: Log, type: AgentType, contents: Iterator[tuple[bytes, bool]]) -> tuple[Iterable[Spent], Place]:
    from mngr.fleet.ledger import Place

    reader, fresh = type.reader(), type.reader()
    assert reader is not None
    assert fresh is not None
    vars(reader).update(jsonline.loads(log.state))
    spent: dict[str, Spent] = {}
    size = offset = log.start
    for data, is_last in contents:
        lines = data[: data.rfind(b"\n") + 1]
        offset = size + len(lines)
        size += len(data)
        _count(reader, lines, spent)
        if is_last:
            break
    return spent.values(), Place(inode=log.inode, size=size, offset=offset, state=_state(reader, fresh))


def _count(reader: LogReader, lines: bytes, spent: dict[str, Spent]) -> None:
    for line in lines.split(b"\n"):
        if not line:
            continue
        try:
            record = jsonline.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        try:
            found = reader.spent(record) if isinstance(record, dict) else None
        except Exception:  # noqa: BLE001 - an agent can write anything into its log; the others are counted all the same
            continue
        if found is not None and (found.id not in spent or _output(found) > _output(spent[found.id])):
            spent[found.id] = found


def _output(spent: Spent) -> int:
    return spent.usage.output + spent.usage.reasoning


def _state(reader: LogReader, fresh: LogReader) -> str | None:
    """What it has learned and a fresh one does not know, as JSON. None: there is more than JSON can hold."""
    at_first = vars(fresh)
    learned = {name: value for name, value in vars(reader).items() if name not in at_first or at_first[name] != value}
    try:
        state = jsonline.dumps(learned)
        return state if jsonline.loads(state) == learned else None
    except (TypeError, ValueError):
        return None


def _contents(host: Host, logs: list[Log]) -> Iterator[tuple[bytes, bool]]:
    """What is new in these logs, one after the other, as it comes: whole lines, and True with the last of a log,
    behind which the beginning of a line may hang."""
    if not logs:
        return
    mark = os.urandom(16).hex()
    ended = 0
    held: list[bytes] = []
    for block in _output_of(host, _fetch(logs, mark)):
        held.append(block)
        if b"\n" not in block:
            continue  # in the middle of a line, which may be long
        *whole, rest = b"".join(held).split(mark.encode() + b"\n")
        for data in whole:
            ended += 1
            yield data, True
        cut = rest.rfind(b"\n") + 1  # the mark has its only newline at its end: half of one is never cut off
        if cut:
            yield rest[:cut], False
        held = [rest[cut:]]
    if ended < len(logs):
        raise HostUnreachable(f"{host.name} broke off")


def _fetch(logs: list[Log], mark: str) -> str:
    lines = [hosts.read_script(__file__, "collect.sh"), f"begin {mark}"]
    for log in logs:
        file = quote(log.file)
        if log.start:
            lines.append(f"send_rest {log.start + 1} {file}")
        elif lines[-1].startswith("send ") and len(lines[-1]) < _LINE:
            lines[-1] += f" {file}"
        else:
            lines.append(f"send {file}")
    return "\n".join(lines)


def _output_of(host: Host, body: str) -> Iterator[bytes]:
    """Of a script that may say more than fits into memory."""
    child = host.start(SHELL, [], stdin=process.PIPE, stdout=process.PIPE, stderr=process.NULL)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with os.fdopen(child.stdin, "wb") as stream:
            # Parsed as one group before anything runs, so that the script is read before it says anything.
            stream.write(f"{{ {hosts.script_for(host, body)}\n}} </dev/null\n".encode("utf-8", "surrogateescape"))
        poller = select.poll()
        poller.register(child.stdout, select.POLLIN)
        while waiting.ready(poller, time.monotonic() + _SILENCE):
            block = os.read(child.stdout, 1 << 20)
            if not block:
                return
            yield block
        raise TimedOut(f"{host.name}: nothing came for {_SILENCE:g} s")
    except BrokenPipeError:
        return  # it did not even read the script; the caller sees that there is no answer
    finally:
        child.end(grace=1)
        os.close(child.stdout)
