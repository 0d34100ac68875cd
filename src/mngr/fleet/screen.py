"""capture: the screen of agents as text, many in one tmux call."""

from __future__ import annotations

from mngr import hosts
from mngr.model import new_id
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref


def capture(
    fleet: Fleet, refs: list[Ref], *, full: bool = False, colours: bool = False, window: str = ""
) -> dict[str, str | None]:
    """The text by agent id; None for one without a session. `full` adds what has scrolled away."""
    found: dict[str, str | None] = {ref.id: None for ref in refs}
    for name in {ref.host for ref in refs}:
        found.update(_capture_there(fleet.host(name), [ref for ref in refs if ref.host == name], full, colours, window))
    return found


def _capture_there(host: Host, refs: list[Ref], full: bool, colours: bool, window: str) -> dict[str, str]:
    flags = ("-S - " if full else "") + ("-e" if colours else "")
    mark = new_id()  # of this call alone: what a program shows must not pass for the head of another's screen
    call = f"screens {mark} {quote(window)} {quote(flags)} {' '.join(ref.id for ref in refs)}"
    text = hosts.check(host, hosts.read_script(__file__, "screen.sh") + "\n" + call, deadline=60)
    known = {f"{mark} {ref.id}": ref.id for ref in refs}
    screens: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        if line in known:
            current = screens.setdefault(known[line], [])
        elif current is not None:
            current.append(line)
    return {id: "\n".join(rows).rstrip("\n") + "\n" for id, rows in screens.items()}
