"""Files between here and an agent, as a tar stream through its host's `sh`."""

from __future__ import annotations

import io
import os
import tarfile

from mngr import hosts, process
from mngr.errors import MngrError
from mngr.fleet.unpack import unpack
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref

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
    child = host.start(hosts.script_for(host, script), [], stdin=process.NULL, stdout=process.PIPE, stderr=process.PIPE)
    assert child.stdout is not None

    def complete() -> None:
        said = _last_words(child)
        if child.wait() and not all("as we read it" in line or "before we read it" in line for line in said):
            raise MngrError(f"{ref.name}: {said[-1] if said else 'tar failed'}")

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


def _last_words(child: process.Child) -> list[str]:
    assert child.stderr is not None
    with os.fdopen(child.stderr, "rb") as stream:
        return stream.read().decode("utf-8", "replace").strip().splitlines()


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
            _pack(stream, source)
    except BrokenPipeError:
        pass  # its message says why
    except OSError as error:
        unread = error  # the archive ends in the middle: nothing is made of it there
    said = _last_words(child)
    code = child.wait()
    if unread:
        raise MngrError(f"{source} cannot be read: {unread.strerror or unread}")
    if code:
        raise MngrError(f"{ref.name} did not take {source}: {said[-1] if said else 'tar failed'}")


# Unpacked beside its place and moved there: what is half transferred is never seen under its name.
_RECEIVE = """
if [ -d "$to" ]; then to=${to%/}/$name; else case $to in */) mkdir -p "$to" && to=$to$name ;; esac; fi
folder=${to%/*}
mkdir -p "${folder:-/}" || exit 1
new=$folder/.mngr.$$
trap 'rm -rf "$new"' EXIT
mkdir "$new" && tar -xf - -C "$new" || exit 1
if [ -d "$new/it" ] && [ ! -L "$new/it" ] && [ -d "$to" ]; then cp -Rp "$new/it/." "$to"; else mv -f "$new/it" "$to"; fi
"""


def _pack(stream: IO[bytes], source: str) -> None:
    buffered = io.BufferedWriter(stream, 1 << 18) if isinstance(stream, io.RawIOBase) else stream
    with tarfile.open(fileobj=buffered, mode="w|") as archive:
        archive.add(source, arcname="it")
    buffered.flush()
