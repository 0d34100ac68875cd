"""A large file to a host: with progress, and after a cut it goes on where it was. What has come lies beside its place
until all of it is there; a second call with the same file continues, also one of another process, days later."""

from __future__ import annotations

import os
import time

from mngr import hosts, process
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts import Host

PATIENCE = 300.0  # seconds without any progress, after which it is given up
_BLOCK = 1 << 18
_TELL = 5.0  # seconds between two lines about it

# Whoever wrote before us may still be writing what had left before the cut: only one may append.
_HELD = """
mkdir -p "${part%/*}" || exit 1
if read -r writer 2>/dev/null <"$part.pid"; then
  kill -9 "$writer" 2>/dev/null
  while is_alive "$writer"; do sleep 0.05; done
fi
[ -e "$part" ] || : >"$part"
echo "held $(wc -c <"$part" | tr -d ' ')"
"""
_APPEND = """
umask 077
echo $$ >"$part.pid"
exec cat >>"$part"
"""


def upload(host: Host, path: str, target: str, tell: Callable[[str], None], *, patience: float = PATIENCE) -> None:
    """The file `path` here as `target` there. HostUnreachable when the host stays away; what came stays there."""
    size = os.path.getsize(path)
    part = f"part={quote(target + '.part')}\n"
    told = _Progress(f"{os.path.basename(path)} to {host.name}", size, tell)
    limit = time.monotonic() + patience
    held, pause = -1, 0.2
    while True:
        before = held
        try:
            held = _held(host, part)
            if held > size:
                hosts.check(host, f'{part}rm -f "$part"', deadline=30)  # it is of another file
                continue
            if held == size:
                break
            told.at(held)
            _append(host, part, path, held, told)
        except (HostUnreachable, TimedOut) as error:
            if time.monotonic() > limit:
                raise HostUnreachable(f"{error.message}; the rest is sent when it is asked for again") from None
            tell(f"{host.name} went away: waiting for it")
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
        if held > before:
            limit, pause = time.monotonic() + patience, 0.2
    hosts.check(host, f'{part}mv -f "$part" {quote(target)} && rm -f "$part.pid"', deadline=30)


def _held(host: Host, part: str) -> int:
    """How much has come so far."""
    word, _, count = hosts.check(host, part + _HELD, deadline=30).strip().partition(" ")
    if word != "held" or not count.isdecimal():
        raise MngrError(f"{host.name}: it does not say how much it has")
    return int(count)


def _append(host: Host, part: str, path: str, offset: int, told: _Progress) -> None:
    """As much as goes. What broke it shows in what the host has when it is asked again."""
    child = host.start(part + _APPEND, [], stdin=process.PIPE, stdout=process.NULL, stderr=process.PIPE)
    assert child.stdin is not None
    assert child.stderr is not None
    try:
        with os.fdopen(child.stdin, "wb", 0) as stream, open(path, "rb") as file:
            file.seek(offset)
            while block := file.read(_BLOCK):
                stream.write(block)
                offset += len(block)
                told.at(offset)
    except BrokenPipeError:
        pass
    with os.fdopen(child.stderr, "rb") as stream:
        said = stream.read().decode("utf-8", "replace").strip().splitlines()
    code = child.wait()
    if code and any("No space left" in line for line in said):
        raise MngrError(f"{host.name}: its disk is full")
    if code:
        raise HostUnreachable(f"{host.name}: {said[-1] if said else 'the connection ended'}")


class _Progress:
    def __init__(self, what: str, size: int, tell: Callable[[str], None]) -> None:
        self._what, self._size, self._tell = what, size, tell
        self._next = time.monotonic() + _TELL / 5

    def at(self, count: int) -> None:
        now = time.monotonic()
        if now >= self._next and self._size:
            self._next = now + _TELL
            megabytes = f"{count / 1e6:,.0f} of {self._size / 1e6:,.0f} MB"
            self._tell(f"sending {self._what}: {megabytes} ({count * 100 // self._size} %)")
