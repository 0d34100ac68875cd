"""Machines reached by OpenSSH, with the user's own configuration, keys and agents: `box.ssh` is what `ssh box` reaches,
unless options of ours (`mngr host add`, `[hosts.box]`) say otherwise.

One connection is shared by all verbs and stays open for some minutes. It is watched from both sides of a wait: by
keepalives, so that nothing hangs on a link that is cut, and by our own deadlines, which give it up."""

from __future__ import annotations

import binascii
import os

from mngr import config, process
from mngr.errors import HostUnreachable
from mngr.hosts.lifeline import SHELL
from mngr.hosts.local import socket_directory
from mngr.hosts.provider import Standing
from mngr.hosts.remote import encoded
from mngr.hosts.sessions import Sessions
from mngr.hosts.settings import of_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts.place import Place

_SHARED = {
    "BatchMode": "yes",  # nobody is there to answer
    "ConnectTimeout": "5",
    "ServerAliveInterval": "3",
    "ServerAliveCountMax": "3",
    "ControlMaster": "auto",
    "ControlPersist": "600",
    "LogLevel": "ERROR",
    "EscapeChar": "none",
    "ForwardX11": "no",
}


_TIME_TO_GREET = 30.0
_LONGEST = 40  # characters of a host's name in the path of a socket


class SshProvider(Standing):
    name = "ssh"
    options = {  # noqa: RUF012 - read only
        "target": "USER@MACHINE, when it is not the name itself",
        "port": "of its sshd",
        "key": "file with the private key",
        "jump": "machine that the connection goes through",
        "home": "directory for mngr's files there; ~/.mngr unless told",
    }

    def reach(self, place: Place) -> Sessions:
        return Sessions(place, _Way(place))

    def greet(self, place: Place, *, accept_new: bool, ask: bool) -> None:
        """By a connection of its own, which all verbs share from then on. Its key is checked as ssh checks it: one that
        is not known is refused, and one that has changed is whatever was said."""
        _close(place, "stop")
        trust = ["-o", "StrictHostKeyChecking=accept-new"] if accept_new else []
        words = [*command(place), *trust, "-T", "--", target(place), "exit 0"]
        done = process.run(words, deadline=_TIME_TO_GREET)
        if done.code == 0:
            return
        if "HAS CHANGED" in done.err:
            hint = "somebody may be in between; if it was set up anew: ssh-keygen -R its name, then add it again"
            raise HostUnreachable(f"{place.name}: its host key is not the one that was known", hint)
        if "Host key verification failed" in done.err:
            way = " ".join(["ssh", *_ways(place), target(place)])
            hint = f"{way}: go there once yourself and compare it, or take it as it is with --accept-new"
            raise HostUnreachable(f"{place.name}: its host key is not known here", hint)
        may_ask = ask and "Permission denied" in done.err  # its key is known: there is only a passphrase to ask for
        if may_ask and process.run_in_front(["ssh", "-o", "BatchMode=no", *words[1:]]) == 0:
            return
        said = done.err.strip().splitlines()
        raise HostUnreachable(f"{place.name}: {said[-1] if said else 'ssh did not get there'}")

    def part(self, place: Place) -> None:
        _close(place, "exit")


class _Way:
    def __init__(self, place: Place) -> None:
        self._place = place

    def words(self, script: str, tty: bool, connection: int) -> list[str]:
        place = self._place
        return [*command(place, connection), "-tt" if tty else "-T", "--", target(place), far_word(script)]

    def socket(self, connection: int) -> str:
        return control_path(self._place, connection)

    def line(self, script: str) -> str:
        return far_word(script)


def _close(place: Place, how: str) -> None:
    """All connections to it that are shared: `stop` leaves alone who uses one now, and `exit` does not."""
    for path in _connections(place):
        words = ["ssh", "-F", os.devnull, "-o", f"ControlPath={path}", "-O", how, "--", place.host]
        if process.run(words, deadline=10).code and os.path.exists(path):
            os.unlink(path)  # of one that was killed


def _connections(place: Place) -> list[str]:
    """The sockets of all that there are, also of those that were made under other settings."""
    own, _, rest = os.path.basename(control_path(place)).partition("-")
    name = rest.partition("-")[2]
    found = []
    for entry in os.listdir(socket_directory()):
        home, _, rest = entry.partition("-")
        called = rest.partition("-")[2]
        if home == own and (called == name or called.startswith(f"{name}-")):
            found.append(f"{socket_directory()}/{entry}")
    return found


def command(place: Place, connection: int = 0) -> list[str]:
    """ssh with all options, without the target."""
    options = {**_SHARED, "ControlPath": control_path(place, connection)}
    words = ["ssh"]
    if path := _config_file():
        words += ["-F", path]
    words += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return words + _ways(place)


def _ways(place: Place) -> list[str]:
    given = {**of_machine(place.host), **place.options}
    words = []
    for key, flag in (("port", "-p"), ("key", "-i"), ("jump", "-J")):
        if given.get(key):
            words += [flag, os.path.expanduser(given[key]) if key == "key" else given[key]]
    return words


def target(place: Place) -> str:
    return place.options.get("target") or of_machine(place.host).get("target") or place.host


def control_path(place: Place, connection: int = 0) -> str:
    """Of this host in this home, as long as the way there is the same; and short: ssh adds 17 characters, and a
    socket's path has 104 at most. Not ssh's own %C, which it would have to be asked for."""
    home = binascii.crc32(os.fsencode(config.home_path()))
    file = _config_file()
    way = binascii.crc32(repr([target(place), _ways(place), file, _changed(file or "~/.ssh/config")]).encode())
    name = place.name if len(place.name) <= _LONGEST else f"{binascii.crc32(place.name.encode()):08x}.{place.provider}"
    number = f"-{connection}" if connection else ""
    return f"{socket_directory()}/{home:08x}-{way:08x}-{name}{number}"


def _config_file() -> str:
    """In the place of the user's own; empty for that."""
    path = config.load().get("providers.ssh.config")
    return os.path.expanduser(str(path)) if path else ""


def _changed(file: str) -> int:
    """When that was; of files that it includes, nobody asks."""
    try:
        return os.stat(os.path.expanduser(file)).st_mtime_ns
    except OSError:
        return 0


def far_word(script: str) -> str:
    """The script as a line for whatever login shell the user has there: in these words sh, bash, zsh, fish and csh
    agree on the meaning of every character."""
    if script == SHELL:
        return "exec /bin/sh -s"
    return f"exec /bin/sh -c 'eval \"$(echo {encoded(script)} | base64 -d)\"'"
