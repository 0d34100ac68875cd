"""Can this program run there at all? Asked before anything is made: is it installed, is it new enough, has it a way to
reach its model."""

from __future__ import annotations

import os

from mngr import hosts
from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents import AgentType
    from mngr.fleet.plan import Request
    from mngr.hosts import Host


def check_program(host: Host, type: AgentType, request: Request, *, inherits: bool) -> None:
    """`inherits`: its environment comes from another agent too, which must have had credentials."""
    program = type.program
    if program is None:
        return
    env = request.env
    path = f"PATH={quote(env['PATH'])}\n" if "PATH" in env else ""
    call = f"{path}version_of {quote(program.name)}"
    told = hosts.check(host, hosts.read_script(__file__, "preflight.sh") + "\n" + call, deadline=60).strip()
    place = "" if host.name == LOCAL else f" on {host.name}"
    install = program.install or None
    if program.install and host.name != LOCAL:
        install = f"mngr host check {host.name} {type.variant_of or type.name} --install"
    if not told:
        raise MngrError(f"there is no program called {program.name}{place}", install)
    found = version(told)
    if program.oldest and found and found < version(program.oldest):
        what = f"{program.name}{place} is version {'.'.join(map(str, found))}"
        raise MngrError(f"{what}, and must be {program.oldest} or newer", install)
    home = os.path.expanduser("~") if host.name == LOCAL or request.copy_credentials else None
    if not inherits and not type.has_credentials(env, home):
        raise MngrError(f"{program.name} has no credentials{place}", program.credentials or None)


def version(text: str) -> tuple[int, ...]:
    """The first thing in the text that looks like one."""
    for word in text.replace("v", " ").replace("-", " ").split():
        parts = word.split(".")
        if len(parts) > 1 and all(part.isdecimal() for part in parts[:2]):
            return tuple(int(part) for part in parts if part.isdecimal())
    return ()
