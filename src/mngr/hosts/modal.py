"""Sandboxes of Modal, through its official SDK: an extra, which a process of its own has (modal_server.py).
docs/modal.md tells what users have to know.

A sandbox cannot be stopped and started. To stop one is to keep its files as an image and to terminate it; to start it
is to make another one from that image. It has tags, so that it is found when everything here is lost."""

from __future__ import annotations

import os
import sys
import time
import zlib

from mngr import grammar, process
from mngr.errors import HostUnreachable, MngrError, TimedOut, UsageError
from mngr.home import home_path
from mngr.hosts import modal_client, settings
from mngr.hosts.modal_errors import SandboxGone
from mngr.hosts.owner import home_id
from mngr.hosts.place import RUNNING, STOPPED, Places
from mngr.hosts.remote import Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.hosts.place import Place

APP = "mngr"  # on Modal, for all hosts of a user
_HOME, _HOST, _ATTEMPT = "mngr.home", "mngr.host", "mngr.attempt"
_BRIDGE = os.path.join(os.path.dirname(__file__), "modal_bridge.py")
# Keys in the options of a Place: the image that a stopped one starts from, and the one that a running one started from.
_SNAPSHOT, _BEGAN = "snapshot", "began"
_LONGEST = 24 * 3600  # seconds; Modal's own limit
_ANSWER, _SHORT, _LONG = 60.0, 300.0, 3600.0  # deadlines: of a question, of an act, of one that builds or copies
_PATIENCE = 15.0


class ModalProvider:
    name = "modal"
    makes = True
    options: Mapping[str, str] = {
        "image": "debian (the default), a name in a registry, or an image of Modal's: im-...",
        "dockerfile": "file to build the image from, with its directory as the context",
        "secret": "names of Modal secrets whose variables it gets: NAME,NAME",
        "timeout": "how long it lives at most, as in 8h; 24h unless told, and never more",
        "cpu": "cores that it gets at least, as in 2 or 0.5",
        "memory": "memory that it gets at least, in MiB",
        "network": "none: it can reach nobody",
        "allow": "the only addresses that it can reach: CIDR,CIDR",
        "home": "directory for mngr's files in it; ~/.mngr unless told",
    }

    def reach(self, place: Place) -> Remote:
        return _Sandbox(place)

    def make(self, name: str, options: Mapping[str, str], tell: Callable[[str], None]) -> str:
        usual = settings.defaults(self.name, self.options)
        if options.get("image") or options.get("dockerfile"):
            usual.pop("image", None)
            usual.pop("dockerfile", None)
        return self._create(name, {**usual, **options}, tell)

    def find(self) -> dict[str, str]:
        try:
            found: dict[str, str] = modal_client.call("find", APP, {_HOME: home_id()}, _HOST, deadline=_ANSWER)
        except HostUnreachable:
            raise
        except MngrError as error:
            raise HostUnreachable(error.message, error.hint) from None
        return found

    def stop(self, place: Place) -> Place:
        image = self.snapshot(place, "")
        stopped = place.replace(state=STOPPED, id="", options={**place.options, _SNAPSHOT: image})
        # Before the sandbox goes: who is killed in between has its files still.
        places = Places(home_path())
        if places.find(place.name):
            places.keep(place.replace(options=stopped.options))
        self._terminate(place)
        return stopped

    def start(self, place: Place) -> Place:
        if place.id and self._is_running(place.id):
            return place.replace(state=RUNNING)
        image = place.options.get(_SNAPSHOT)
        if not image:
            raise self._lost(place)
        given = {key: value for key, value in place.options.items() if key not in (_SNAPSHOT, _BEGAN)}
        wanted = {key: value for key, value in given.items() if key not in ("image", "dockerfile")} | {"image": image}
        # One that is there already was made by a start that was killed: nobody else has its name.
        id = self._named(place.host) or self._create(place.host, wanted, lambda _: None)
        return place.replace(state=RUNNING, id=id, options={**given, _BEGAN: image})

    def _lost(self, place: Place) -> MngrError:
        """An image from before its last start is no replacement for what has been done since: to start from that is for
        the user to decide."""
        began = place.options.get(_BEGAN)
        old = f"; as it was at its last start: mngr create NAME@.modal --with image={began}" if began else ""
        return MngrError(
            f"{place.name} has ended, and nobody kept its files: a sandbox lives for its timeout, at most 24 hours",
            f"mngr host remove {place.name} --forget -f{old}",
        )

    def remove(self, place: Place) -> None:
        self._terminate(place)

    def snapshot(self, place: Place, name: str) -> str:
        """Modal has no names for these: it is the id that counts."""
        if not place.id:
            raise _stopped(place)
        return str(modal_client.call("snapshot", place.id, int(_LONG), deadline=_LONG, sandbox=place.id))

    def _create(self, name: str, wanted: Mapping[str, str], tell: Callable[[str], None]) -> str:
        described, image, attempt = _described(wanted), _image(wanted), os.urandom(8).hex()
        tags = {_HOME: home_id(), _HOST: name, _ATTEMPT: attempt}
        words = [name, APP, _name(name), tags, image, _words(wanted, "secret"), described]
        tell("making a sandbox on Modal; the first one of an image takes as long as building that")
        request = modal_client.Request({"do": "call", "name": "create", "words": words, "sandbox": ""})
        try:
            return str(modal_client.answered(request, _LONG))
        except UsageError:
            raise  # nothing was made
        except BaseException:
            # Who is interrupted may have one on its way.
            try:
                request.answer(time.monotonic() + _PATIENCE)
            except TimedOut:
                pass
            request.close()  # one that is made from now on is undone by who makes it
            self._take_back(name, attempt)
            raise
        finally:
            request.close()

    def _take_back(self, name: str, attempt: str) -> None:
        """One of that name that another attempt has made is not ours to remove."""
        try:
            modal_client.call("take_back", APP, _name(name), _ATTEMPT, attempt, deadline=_ANSWER, sandbox=name)
        except MngrError:
            pass  # what made us take it back is told; `mngr host list --discover` shows what is left

    def _named(self, name: str) -> str:
        """The id of the sandbox of that host; "" when there is none."""
        try:
            return str(modal_client.call("named", APP, _name(name), deadline=_ANSWER, sandbox=name))
        except SandboxGone:
            return ""

    def _is_running(self, id: str) -> bool:
        try:
            return bool(modal_client.call("is_running", id, deadline=_ANSWER, sandbox=id))
        except SandboxGone:
            return False

    def _terminate(self, place: Place) -> None:
        """A create that was killed has not kept the id, but the sandbox has its name."""
        words = (place.id, APP, _name(place.host))
        try:
            modal_client.call("terminate", *words, deadline=_SHORT, sandbox=place.id or place.host)
        except SandboxGone:
            pass


class _Sandbox(Remote):
    """Other programs (git, a terminal) get there by a bridge; what we start ourselves needs no process at all."""

    starts_slowly = True  # with a process that has to load Modal's SDK

    def __init__(self, place: Place) -> None:
        self._place = place
        super().__init__(place, self._bridge)

    def _bridge(self, script: str, tty: bool) -> list[str]:
        return [sys.executable, "-P", _BRIDGE, self._id(), "tty" if tty else "pipe", script]

    def _id(self) -> str:
        if self._place.state == STOPPED or not self._place.id:
            raise _stopped(self._place)
        return self._place.id

    def start(
        self,
        script: str,
        args: list[str],
        *,
        stdin: int = process.NULL,
        stdout: int = process.PIPE,
        stderr: int = process.PIPE,
    ) -> process.Child:
        if os.isatty(0 if stdin == process.INHERIT else stdin):
            return super().start(script, args, stdin=stdin, stdout=stdout, stderr=stderr)
        id, text = self._id(), self.with_args(script, args)
        streams = (stdin, stdout, stderr)
        ours: list[int | None] = []
        theirs: list[int] = []
        try:
            for target, stream in enumerate(streams):
                mine, there = process.ends(stream, target)
                ours.append(mine)
                theirs.append(target if there is None else there)
            return modal_client.Running(id, text, (theirs[0], theirs[1], theirs[2]), *ours)
        except BaseException:
            for fd in ours:
                if fd is not None:
                    os.close(fd)
            raise
        finally:
            for fd, stream in zip(theirs, streams, strict=False):
                if stream in (process.NULL, process.PIPE):
                    os.close(fd)


def _stopped(place: Place) -> HostUnreachable:
    return HostUnreachable(f"{place.name} is stopped", f"mngr host start {place.name}")


def _described(wanted: Mapping[str, str]) -> dict[str, object]:
    """What can be said without asking anybody."""
    if wanted.get("image") and wanted.get("dockerfile"):
        raise UsageError("image and dockerfile are two ways to say one thing", "give one of them")
    timeout = grammar.seconds(wanted.get("timeout") or "24h", "timeout")
    if not 1 <= timeout <= _LONGEST:
        raise UsageError(f"a sandbox lives for 24 hours at most, not {wanted.get('timeout')}")
    described: dict[str, object] = {"timeout": int(timeout)}
    if wanted.get("cpu"):
        described["cpu"] = _number(wanted, "cpu")
    if wanted.get("memory"):
        described["memory"] = int(_number(wanted, "memory"))
    if wanted.get("network") == "none":
        if wanted.get("allow"):
            raise UsageError("network=none allows nothing", "leave out one of network and allow")
        described["block_network"] = True
    elif wanted.get("network"):
        raise UsageError(f"the network of a sandbox is none or left out, not {wanted['network']!r}")
    if wanted.get("allow"):
        described["outbound_cidr_allowlist"] = _words(wanted, "allow")
    return described


def _image(wanted: Mapping[str, str]) -> list[str]:
    if not wanted.get("dockerfile"):
        return ["image", wanted.get("image") or "debian"]
    path = os.path.abspath(os.path.expanduser(wanted["dockerfile"]))
    if not os.path.isfile(path):
        raise UsageError(f"there is no dockerfile {path}")
    return ["dockerfile", path]


def _words(wanted: Mapping[str, str], key: str) -> list[str]:
    return [word.strip() for word in wanted.get(key, "").split(",") if word.strip()]


def _number(wanted: Mapping[str, str], key: str) -> float:
    try:
        value = float(wanted[key])
    except ValueError:
        value = 0
    if not 0 < value < 1e6:
        raise UsageError(f"{key} is a number, not {wanted[key]!r}")
    return value


def _name(host: str) -> str:
    """Of the sandbox, within the 63 characters that Modal takes: homes do not get in each other's way."""
    short = host if len(host) <= 50 else f"{host[:41]}-{zlib.crc32(host.encode()):08x}"
    return f"{short}-{home_id()}"
