"""What agents have done so far, as git counts it: for `list --git`. One round trip per host."""

from __future__ import annotations

from mngr import hosts
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status

_COUNT = """
count() {
  ahead=$(git -C "$2" rev-list --count "$3..HEAD" 2>/dev/null) || ahead=-
  changed=$(git --no-optional-locks -C "$2" status --porcelain 2>/dev/null | grep -c '')
  echo "$1 $ahead $changed"
}
"""


def work_done(fleet: Fleet, found: list[Status]) -> dict[str, tuple[str, str]]:
    """(commits ahead of the base, files changed) by agent id."""
    counts: dict[str, tuple[str, str]] = {}
    for name in {status.host for status in found}:
        lines = [_COUNT]
        for status in found:
            agent = status.agent
            if status.host == name and agent and agent.base:
                lines.append(f"count {agent.id} {quote(agent.work_dir)} {quote(agent.base)}")
        for line in hosts.check(fleet.host(name), "\n".join(lines), deadline=300).splitlines():
            id, ahead, changed = line.split()
            counts[id] = (ahead, changed)
    return counts
