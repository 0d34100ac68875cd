"""Changing what an agent is: its labels, its name. A record is replaced whole, and only if nobody changed it meanwhile;
otherwise it is read again and the change made again."""

from __future__ import annotations

from mngr import hosts, registry, tmux
from mngr.address import check_name
from mngr.errors import MngrError, UsageError
from mngr.fleet.create import to_json
from mngr.fleet.outcome import Outcome, one_by_one
from mngr.fleet.select import one
from mngr.fleet.survey import parse_record
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.model import Agent, Ref


def label(fleet: Fleet, refs: Iterable[Ref], put: dict[str, str], drop: list[str]) -> list[Outcome]:
    def change(agent: Agent) -> Agent:
        labels = {key: value for key, value in {**agent.labels, **put}.items() if key not in drop}
        return agent.replace(labels=labels)

    def put_on(ref: Ref) -> Outcome:
        change_record(fleet, ref, change, 'say "$id" labelled')
        return Outcome(id=ref.id, name=ref.name, did="labelled")

    return one_by_one(refs, put_on)


def rename(fleet: Fleet, ref: Ref, new: str) -> Agent:
    """The name, and nothing else: work dir, branch and session keep what they are called by."""
    check_name(new)
    if new in registry.agent_types():
        raise UsageError(f"{new} is the name of an agent type", "choose another name")
    if new == ref.name:
        raise UsageError(f"{ref.name} is called that already")
    fleet.names.reserve(ref.replace(name=new))
    try:
        agent = change_record(fleet, ref, lambda agent: agent.replace(name=new), _follow_rename(fleet, ref, new))
    except BaseException:
        fleet.names.release(ref.replace(name=new))
        raise
    fleet.names.release(ref)
    registry.notify("renamed", agent)
    return agent


def _follow_rename(fleet: Fleet, ref: Ref, new: str) -> str:
    """What else carries the name: the status line, now and at the next start, and the environment of the next start."""
    agent = one(fleet, ref.name).agent
    if agent is None:
        raise MngrError(f"{ref.name} is damaged and cannot be renamed")
    session = tmux.session_commands(fleet.host(ref.host).home, agent.replace(name=new))
    return f"""
umask 077
printf '%s' {quote(session)} >"$d/session.new" && mv -f "$d/session.new" "$d/session"
sed 's/^export MNGR_AGENT_NAME=.*/export MNGR_AGENT_NAME={new}/' "$d/env" >"$d/env.new" && mv -f "$d/env.new" "$d/env"
t set -t '={ref.id}:' @name {new} 2>/dev/null
say "$id" renamed '"to":"{new}"'
:"""


def change_record(fleet: Fleet, ref: Ref, change: Callable[[Agent], Agent], then: str) -> Agent:
    """Apply `change` to the stored record, then the shell lines `then` ($id and $d are set), under the agent's lock."""
    host = fleet.host(ref.host)
    read = f'line=; IFS= read -r line <"$H/agents/{ref.id}/agent.json"; printf %s "$line"'
    for _ in range(50):
        old = hosts.check(host, read, deadline=20)
        agent, damage = parse_record(ref.id, old)
        if agent is None:
            raise MngrError(f"{ref.name} is damaged: {damage}")
        new = change(agent)
        call = f"id={ref.id}\nswap {ref.id} {quote(old)} {quote(to_json(new))}"
        parts = [hosts.read_script(hosts.__file__, "lock.sh"), hosts.read_script(__file__, "update.sh"), call, then]
        done = hosts.run(host, "\n".join(parts), deadline=60, private=True)
        if done.code == 0:
            return new
        if done.code != 9:
            raise MngrError(f"{ref.name}: {done.err.strip() or 'its record could not be written'}")
    raise MngrError(f"{ref.name}: others keep changing its record; try again")
