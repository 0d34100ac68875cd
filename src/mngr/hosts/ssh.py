"""Machines reached by OpenSSH, with the user's own configuration, keys and agents: `box.ssh` is what `ssh box` reaches,
unless options of ours (`mngr host add`, `[hosts.box]`) say otherwise.

One connection is shared by all verbs and stays open for some minutes. It is watched from both sides of a wait: by
keepalives, so that nothing hangs on a link that is cut, and by our own deadlines, which give it up."""

from __future__ import annotations

import os

from mngr import config, process
from mngr.errors import HostUnreachable
from mngr.hosts.lifeline import FAR_SHELL, SHELL
from mngr.hosts.provider import Standing
from mngr.hosts.remote import encoded
from mngr.hosts.sessions import Sessions
from mngr.hosts.settings import of_machine
from mngr.hosts.sockets import control_path, control_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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
            way = " ".join(["ssh", *_ways(_given(place)), target(place)])
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
        return _numbered(_first_socket(self._place), connection)

    def line(self, script: str) -> str:
        return far_word(script)


def _close(place: Place, how: str) -> None:
    """All connections to it that are shared: `stop` leaves alone who uses one now, and `exit` does not."""
    for path in control_paths(place.name):
        words = ["ssh", "-F", os.devnull, "-o", f"ControlPath={path}", "-O", how, "--", place.host]
        if process.run(words, deadline=10).code and os.path.exists(path):
            os.unlink(path)  # of one that was killed


def command(place: Place, connection: int = 0) -> list[str]:
    """ssh with all options, without the target."""
    options = {**_SHARED, "ControlPath": _numbered(_first_socket(place), connection)}
    words = ["ssh"]
    if path := _config_file():
        words += ["-F", path]
    words += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return words + _ways(_given(place))


def _ways(given: Mapping[str, str]) -> list[str]:
    words = []
    for key, flag in (("port", "-p"), ("key", "-i"), ("jump", "-J")):
        if given.get(key):
            words += [flag, os.path.expanduser(given[key]) if key == "key" else given[key]]
    return words


def _given(place: Place) -> dict[str, str]:
    return {**of_machine(place.host), **place.options}


def target(place: Place) -> str:
    return _given(place).get("target") or place.host


def _first_socket(place: Place) -> str:
    """Not named by ssh's own %C, which it would have to be asked for."""
    given, file = _given(place), _config_file()
    way = [given.get("target") or place.host, _ways(given), file, _changed(file or "~/.ssh/config")]
    return control_path(place.name, repr(way))


def _numbered(path: str, connection: int) -> str:
    return f"{path}-{connection}" if connection else path


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
        return FAR_SHELL
    return f"exec /bin/sh -c 'eval \"$(echo {encoded(script)} | base64 -d)\"'"
