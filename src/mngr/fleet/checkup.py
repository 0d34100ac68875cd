"""doctor's findings: each a line with what is, and what to do about it. Nothing here changes anything."""

from __future__ import annotations

import os
import sys
import time

from mngr import config, hosts, registry
from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL
from mngr.fleet.gc import leftovers
from mngr.fleet.outcome import counted
from mngr.fleet.side_by_side import at_once
from mngr.fleet.survey import agents
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host

OK, WARN, BAD = "ok", "warn", "bad"
_LITTLE = 1_000_000  # KB
_SKEW = 5.0  # seconds
OLDEST = {"tmux": (3, 2), "git": (2, 31)}
_LOOK = """
command -v tmux >/dev/null && tmux -V || echo 'tmux missing'
command -v git >/dev/null && git --version || echo 'git missing'
[ -S "$S" ] && server=$(t display -p '#{version} #{pid}' 2>/dev/null) && echo "server $server"
for program in sh awk grep sed tar ps xargs tail base64; do
  command -v "$program" >/dev/null || echo "lacks $program"
done
[ ! -d "${S%/*}" ] || [ -O "${S%/*}" ] || echo "socketdir ${S%/*}"
place=$H
while [ ! -d "${place:=/}" ]; do place=${place%/*}; done
df -P -k "$place" 2>/dev/null | awk 'NR == 2 { print "free", $4 }'
echo "clock $(date +%s)"
:
"""


class Finding(Record):
    level: str
    what: str
    do: str = ""
    lacks: str = ""  # a program that is missing there, or too old


def checkup(fleet: Fleet) -> Iterator[Finding]:
    yield Finding(level=OK, what=f"python {'.'.join(map(str, sys.version_info[:3]))}")
    yield from _home(fleet)
    yield from _configuration()
    yield from look_at(fleet.host(LOCAL))
    yield from _elsewhere(fleet)
    yield from _plugins()
    yield from _agents(fleet)


def _home(fleet: Fleet) -> Iterator[Finding]:
    home = fleet.home
    if not os.path.isdir(home):
        yield Finding(level=OK, what=f"{home} does not exist yet: the first create makes it")
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding(level=BAD, what=f"{home} cannot be written", do=f"give it back to you: chown -R $USER {home}")
        return
    yield Finding(level=OK, what=f"home {home}")
    for name in ("agents", "names"):
        path = os.path.join(home, name)
        if os.path.isdir(path) and os.stat(path).st_mode & 0o077:
            yield Finding(
                level=WARN, what=f"{path} can be read by others, and holds environments", do=f"chmod 700 {path}"
            )


def _configuration() -> Iterator[Finding]:
    try:
        config.load()
    except MngrError as error:
        yield Finding(level=BAD, what=error.message, do=error.hint or "mend it")
    else:
        yield Finding(level=OK, what="configuration is readable")


def _elsewhere(fleet: Fleet) -> Iterator[Finding]:
    """The other hosts, side by side: those that do not answer cost one deadline."""
    names = [name for name in fleet.host_names() if name != LOCAL]
    if not names:
        return
    found: dict[str, list[Finding]] = {}

    def work(name: str) -> None:
        try:
            if fleet.is_stopped(name):
                found[name] = [Finding(level=OK, what=f"{name} is stopped, and starts with its first agent")]
            else:
                found[name] = list(look_at(fleet.host(name)))
        except MngrError as error:
            found[name] = [Finding(level=BAD, what=f"{name}: {error.message}", do=error.hint or "")]

    at_once(names, work)
    for name in names:
        yield from found[name]


def look_at(host: Host) -> Iterator[Finding]:
    begun = time.time()
    try:
        text = hosts.check(host, _LOOK, deadline=20)
    except MngrError as error:
        what = error.message.removeprefix(f"{host.name}: ")
        yield Finding(level=BAD, what=f"{host.name}: {what}", do=error.hint or "")
        return
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in OLDEST:
            yield _version(host, word, rest.removeprefix("version "))
        elif word == "server":
            yield Finding(level=OK, what=f"{host.name}: tmux server {rest} runs on {host.socket}")
        elif word == "lacks":
            yield Finding(level=BAD, what=f"{host.name}: {rest} is missing", do=_install(host, rest), lacks=rest)
        elif word == "socketdir":
            yield Finding(
                level=BAD, what=f"{host.name}: {rest} belongs to somebody else", do=f"have it removed: rm -r {rest}"
            )
        elif word == "free" and rest.isdecimal():
            free = f"{host.name}: {int(rest) // 1000} MB are free for work dirs"
            few = int(rest) < _LITTLE
            yield Finding(level=WARN if few else OK, what=free, do="make room" if few else "")
        elif word == "clock" and rest.isdecimal():
            yield from _clock(host, int(rest), begun)


def _version(host: Host, program: str, text: str) -> Finding:
    oldest = ".".join(map(str, OLDEST[program]))
    if text == "missing":
        do = _install(host, f"{program} {oldest} or newer")
        return Finding(level=BAD, what=f"{host.name}: {program} is missing", do=do, lacks=program)
    digits = "".join(char if char.isdecimal() or char == "." else " " for char in text).split()
    version = tuple(int(part) for part in digits[0].split(".") if part) if digits else ()
    if version and version < OLDEST[program]:
        what = f"{host.name}: {program} {text} is too old"
        return Finding(level=BAD, what=what, do=_install(host, f"{oldest} or newer"), lacks=program)
    return Finding(level=OK, what=f"{host.name}: {program} {text}")


def _install(host: Host, what: str) -> str:
    return f"install {what} there" if host.lines is None else f"mngr host check {host.name} --install"


def _clock(host: Host, told: int, begun: float) -> Iterator[Finding]:
    """Told in whole seconds, at some moment since we asked."""
    ahead = told - time.time() if told > time.time() else min(0.0, told + 1 - begun)
    if abs(ahead) > _SKEW:
        what = f"{host.name}: its clock is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}"
        yield Finding(level=WARN, what=what, do="set it: ages of agents there are wrong by as much")


def _plugins() -> Iterator[Finding]:
    for plugin in registry.plugins():
        for problem in registry.problems(plugin):
            yield Finding(level=WARN, what=f"plugin {plugin.name}: {problem}", do="update or remove it")


def _agents(fleet: Fleet) -> Iterator[Finding]:
    try:
        found = agents(fleet)
        left = leftovers(fleet)
    except MngrError as error:
        yield Finding(level=BAD, what=error.message, do=error.hint or "")
        return
    yield Finding(level=OK, what=counted(len(found), "agent"))
    for status in found:
        if status.is_out_of_reach:
            continue  # that is told with its host
        if status.agent is None:
            yield Finding(
                level=BAD,
                what=f"{status.name} is damaged: {status.evidence.damage}",
                do=f"mngr destroy -f {status.name}",
            )
        elif status.verdict.reason == "alive without a session":
            yield Finding(
                level=WARN,
                what=f"{status.name} lives without a session",
                do=f"mngr stop {status.name}, then mngr start it",
            )
        elif not os.path.isdir(status.agent.work_dir) and status.host == "local":
            yield Finding(level=WARN, what=f"the work dir of {status.name} is gone", do=f"mngr destroy {status.name}")
    for each in left:
        yield Finding(
            level=WARN,
            what=str(each),
            do="mngr gc" if each.removable else f"rm -r it, below {fleet.home}, if it is not needed",
        )
