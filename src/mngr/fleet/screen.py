"""capture: the screen of agents as text, many in one tmux call."""

from __future__ import annotations

from mngr import hosts
from mngr.errors import MngrError
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

_MARK = "mngr-screen-of "


def capture(
    fleet: Fleet, refs: list[Ref], *, full: bool = False, colours: bool = False, window: str = ""
) -> dict[str, str | None]:
    """The text by agent id; None for one without a session. `full` adds what has scrolled away."""
    found: dict[str, str | None] = {ref.id: None for ref in refs}
    for name in {ref.host for ref in refs}:
        found.update(_capture_there(fleet.host(name), [ref for ref in refs if ref.host == name], full, colours, window))
    return found


def _capture_there(host: Host, refs: list[Ref], full: bool, colours: bool, window: str) -> dict[str, str]:
    flags = (" -S -" if full else "") + (" -e" if colours else "")
    lines = []
    for ref in refs:
        target = quote(f"={ref.id}:{window}")
        lines.append(f"display -p -t {target} '{_MARK}{ref.id}'")
        lines.append(f"capture-pane -p{flags} -t {target}")
    text = "\n".join(lines)
    done = hosts.run(host, f"[ -S \"$S\" ] || exit 0\nprintf '%s\\n' {quote(text)} | t source-file -", deadline=60)
    if "command not found" in done.err:
        raise MngrError(f"{host.name} has no tmux")
    known = {ref.id for ref in refs}
    screens: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in done.out.split("\n"):
        if line.startswith(_MARK) and line[len(_MARK) :] in known:
            current = screens.setdefault(line[len(_MARK) :], [])
        elif current is not None:
            current.append(line)
    return {id: "\n".join(rows).rstrip("\n") + "\n" for id, rows in screens.items()}
