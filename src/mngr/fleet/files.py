"""Files between here and an agent, as a tar stream through its host's `sh`."""

from __future__ import annotations

import io
import os
import select
import tarfile
import time

from mngr import hosts, process
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.fleet.unpack import unpack
from mngr.hosts.lifeline import tied
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref

_TIME_TO_END = 60.0  # seconds, for a host on which all is said and done: a large directory is moved then
_LAST_WORDS = 65536  # bytes of what it said
_ENTER = """
unset MNGR_WORK_DIR
command . "$H/agents/{id}/env" 2>/dev/null
[ -n "$MNGR_WORK_DIR" ] || { echo "its env file is damaged" >&2; exit 1; }
cd "$MNGR_WORK_DIR" || exit 1
"""


def pull_files(fleet: Fleet, ref: Ref, path: str, target: str) -> str:
    """`path` (relative to the work dir) as `target`, or inside it when that is a directory, as cp does. The path
    written."""
    host = fleet.host(ref.host)
    path = os.path.normpath(path or ".")
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        folder, name = path, "."
    place = os.path.realpath(target) if os.path.isdir(target) else target
    if os.path.isdir(target) and name != ".":
        place, target = os.path.join(place, name), os.path.join(target, name)
    script = _ENTER.replace("{id}", ref.id) + (
        f"cd {quote(_from_here(folder))} && {{ [ -e {quote('./' + name)} ] || [ -L {quote('./' + name)} ]; }} ||\n"
        f"  {{ printf 'there is no %s\\n' {quote(path)} >&2; exit 1; }}\n"
        f"exec tar -cf - {quote('./' + name)}"
    )
    whole = hosts.script_for(host, script)
    pipe = process.PIPE
    child = host.start(whole if host.lines is None else tied(whole), [], stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdout is not None

    def complete() -> None:
        code, said = _ending(child)
        harmless = [line for line in said if "as we read it" in line or "before we read it" in line]
        if code and not (code == 1 and said and said == harmless):
            raise _failed(code, f"{ref.name}: {said[-1] if said else 'it broke off'}")

    try:
        unpack(os.fdopen(child.stdout, "rb"), "./" + name, place, complete)
    except tarfile.TarError as error:
        raise MngrError(f"{ref.name}:{path}: {error}") from None
    except OSError as error:
        raise MngrError(f"{target} cannot be written: {error.strerror}") from None
    return target


def _from_here(path: str) -> str:
    """So that it cannot be taken for an option, nor be looked up elsewhere (CDPATH)."""
    return path if path.startswith("/") else f"./{path}"


def _ending(child: process.Child) -> tuple[int, list[str]]:
    """Its exit code and what it said, of one that has no more to do: who does not come to an end is ended."""
    said, limit = bytearray(), time.monotonic() + _TIME_TO_END
    assert child.stderr is not None
    while select.select([child.stderr], [], [], max(0.0, limit - time.monotonic()))[0]:
        chunk = os.read(child.stderr, 65536)
        if not chunk:
            break
        said = (said + chunk)[-_LAST_WORDS:]
    try:
        code = child.wait(limit)
    except TimedOut:
        code = child.end(grace=0)
    for fd in (child.stdin, child.stderr):
        if fd is not None:
            os.close(fd)
    return code, said.decode("utf-8", "replace").strip().splitlines()


def _failed(code: int, why: str) -> MngrError:
    """255 is what clients (ssh) end with when a connection does, and what tar does not."""
    return HostUnreachable(why) if code == 255 else MngrError(why)


def push_files(fleet: Fleet, source: str, ref: Ref, path: str) -> None:
    """`source` as `path` of the agent's work dir, or inside it when that is a directory."""
    if not os.path.lexists(source):
        raise MngrError(f"there is no {source}")
    host = fleet.host(ref.host)
    name = os.path.basename(os.path.abspath(source))
    script = _ENTER.replace("{id}", ref.id) + f"to={quote(_from_here(path))} name={quote(name)}\n" + _RECEIVE
    child = host.start(hosts.script_for(host, script), [], stdin=process.PIPE, stdout=process.NULL, stderr=process.PIPE)
    assert child.stdin is not None
    unread = None
    try:
        with os.fdopen(child.stdin, "wb") as stream:
            child.stdin = None
            _pack(stream, source)
    except BrokenPipeError:
        pass  # its message says why
    except OSError as error:
        unread = error  # the archive ends in the middle: nothing is made of it there
    code, said = _ending(child)
    if unread:
        raise MngrError(f"{source} cannot be read: {unread.strerror or unread}")
    if code:
        raise _failed(code, f"{ref.name} did not take {source}: {said[-1] if said else 'it broke off'}")


# Unpacked beside its place and moved there: what is half transferred is never seen under its name. An archive that
# breaks off between two files looks complete to some tars; so it has an end of ours.
_RECEIVE = """
if [ -d "$to" ]; then to=${to%/}/$name; else case $to in */) mkdir -p "$to" && to=$to$name ;; esac; fi
folder=${to%/*}
mkdir -p "${folder:-/}" || exit 1
new=$folder/.mngr.$$
trap 'rm -rf "$new"' EXIT
mkdir "$new" && tar -xf - -C "$new" || exit 1
[ -e "$new/end" ] || { echo "it broke off" >&2; exit 1; }
if [ -d "$new/it" ] && [ ! -L "$new/it" ] && [ -d "$to" ]; then cp -Rp "$new/it/." "$to"; else mv -f "$new/it" "$to"; fi
"""


def _pack(stream: IO[bytes], source: str) -> None:
    buffered = io.BufferedWriter(stream, 1 << 18) if isinstance(stream, io.RawIOBase) else stream
    with tarfile.open(fileobj=buffered, mode="w|") as archive:
        archive.add(source, arcname="it")
        archive.addfile(tarfile.TarInfo("end"))
    buffered.flush()
