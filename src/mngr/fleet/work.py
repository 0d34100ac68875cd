"""What agents have done so far, as git counts it: for `list --git`. One round trip per host."""

from __future__ import annotations

from mngr import hosts
from mngr.fleet.fleet import LOCAL
from mngr.fleet.side_by_side import every_host
from mngr.model import UNKNOWN
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status
    from mngr.hosts import Host

_SCRIPT = """
count() {
  ahead=$(git -C "$2" rev-list --count "$3..HEAD" 2>/dev/null) || ahead=-
  changed=$(git --no-optional-locks -C "$2" status --porcelain 2>/dev/null | grep -c '')
  echo "$1 $ahead $changed"
}
"""


def work_done(fleet: Fleet, found: list[Status]) -> dict[str, tuple[str, str]]:
    """(commits ahead of the base, files changed) by agent id. Hosts that cannot be asked have no numbers."""
    counts: dict[str, tuple[str, str]] = {}
    # one that has just been silent is not waited for again
    names = {status.host for status in found if status.host == LOCAL or status.state != UNKNOWN}

    def ask(host: Host) -> dict[str, tuple[str, str]]:
        return _count(host, [status for status in found if status.host == host.name])

    for each in every_host(fleet, names, ask)[0].values():
        counts.update(each)
    return counts


def _count(host: Host, there: list[Status]) -> dict[str, tuple[str, str]]:
    agents = [status.agent for status in there if status.agent]
    calls = [f"count {agent.id} {quote(agent.work_dir)} {quote(agent.base)}" for agent in agents if agent.base]
    words = [line.split() for line in hosts.check(host, "\n".join([_SCRIPT, *calls, ":"]), deadline=300).splitlines()]
    return {id: (ahead, changed) for id, ahead, changed in words}
