"""A second look at agents whose hooks have been silent: their screens and the ends of their session logs, for all in
one round trip. Only for those that claim to be at work, or to stand before a dialog: what the others say needs no
proof, and `list` stays cheap."""

from __future__ import annotations

import time

from mngr import hosts, registry
from mngr.model import RUNNING, STARTING, WAITING, new_id
from mngr.state import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.agents import AgentType
    from mngr.hosts import Host
    from mngr.state import Evidence

_SILENT = 1.0  # seconds without a hook after which a claim is looked into
_ASKING = ("permission", "question", "dialog")  # reasons that end without a hook, when somebody answers


def look_again(host: Host, evidence: Sequence[Evidence]) -> list[Evidence]:
    doubted = {e.id: type for e in evidence if (type := _doubted(e))}
    if not doubted:
        return list(evidence)
    screens, tails = _ask(host, list(doubted))
    found = []
    for e in evidence:
        if e.id in doubted and e.id in screens and e.written is not None:
            claim = f"{e.written.state} {e.written.reason}".strip()
            told = doubted[e.id].judge(claim, screens[e.id], tails.get(e.id, ""))
            e = e.replace(seen=Seen(state=told[0], reason=told[1]) if told else None)
        found.append(e)
    return found


def _doubted(e: Evidence) -> AgentType | None:
    """Its type, if that can tell more than what was written."""
    if e.agent is None or e.written is None or e.pane is None or e.pane.dead or e.ended or e.agent.kind == "command":
        return None
    asking = e.written.state == WAITING and e.written.reason.startswith(_ASKING)
    working = e.written.state in (RUNNING, STARTING) and time.time() - e.written.time >= _SILENT
    if not asking and not working:
        return None
    type = registry.type_of(e.agent)
    return type if type.reports and not e.agent.headless else None


def _ask(host: Host, ids: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    mark = new_id()  # of this call alone: what a program shows must not pass for a head of ours
    parts = [hosts.read_script(__file__, "screen.sh"), hosts.read_script(__file__, "second_look.sh")]
    parts += [f"screens {mark} '' '' {' '.join(ids)}", f"tails {mark} {' '.join(ids)}"]
    shown, _, ends = hosts.run(host, "\n".join(parts), deadline=20).out.partition(f"{mark} tails\n")
    screens: dict[str, list[str]] = {}
    logs: dict[str, str] = {}
    current: list[str] = []
    for line in shown.split("\n"):
        if line.startswith(f"{mark} log "):
            _, _, id, path = line.split(" ", 3)
            logs[id] = path
        elif line.startswith(mark):
            current = screens.setdefault(line.split(" ")[1], [])
        else:
            current.append(line)
    return {id: "\n".join(lines) for id, lines in screens.items()}, _split(ends, logs)


def _split(ends: str, logs: dict[str, str]) -> dict[str, str]:
    """By tail's heads, in their order. Should a log hold such a line itself, the last one is tail's own."""
    found: dict[str, str] = {}
    for id, path in reversed(logs.items()):
        ends, head, found[id] = ends.rpartition(f"==> {path} <==\n")
        if not head:
            found[id] = ""
    return found
