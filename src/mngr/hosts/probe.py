"""The first look at a host: where its home is, and what is missing there."""

from __future__ import annotations

from mngr import hosts
from mngr.errors import HostUnreachable, MngrError
from mngr.hosts.settings import home_there
from mngr.hosts.sockets import socket_path
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host, Provider
    from mngr.hosts.place import Place

NEEDED = ("tmux", "git")


class Facts(Record):
    home: str
    socket: str
    system: str = ""  # what uname says
    versions: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults; of what is needed, as far as it is there
    manager: str = ""  # of packages, if there is one that we know

    @property
    def missing(self) -> list[str]:
        return [program for program in NEEDED if program not in self.versions]


def probe(host: Host, home: str = "", *, deadline: float = 30.0) -> Facts:
    """`home`: where mngr's files are to be there, unless in ~/.mngr. HostUnreachable when nobody answers."""
    script = f"{hosts.read_script(__file__, 'probe.sh')}\nprobe {quote(home)}"
    assert host.lines is not None
    done = host.lines.run(script, deadline=deadline)
    told = dict(line.split(" ", 1) for line in done.out.splitlines() if " " in line)
    if "end" not in told or not told.get("home", "").startswith("/"):
        said = done.err.strip().splitlines()
        raise HostUnreachable(f"{host.name}: it runs no sh: {said[-1] if said else done.code}")
    place = told["home"]
    return Facts(
        home=place,
        socket=socket_path(place, int(told["user"])),
        system=told.get("system", ""),
        versions={program: told[program] for program in NEEDED if program in told},
        manager=told.get("manager", ""),
    )


def arrive(provider: Provider, place: Place) -> Place:
    """The place, with what must be known to work there; a provider that knows it without asking is not made to ask."""
    host = provider.reach(place)
    if host.home:
        return place.replace(home=host.home, socket=host.socket)
    facts = probe(host, home_there(place))
    if facts.missing:
        raise MngrError(
            f"there is no {' and no '.join(facts.missing)} on {place.name}", f"mngr host check {place.name} --install"
        )
    return place.replace(home=facts.home, socket=facts.socket)
