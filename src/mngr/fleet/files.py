"""Files between here and an agent, as a tar stream through its host's `sh`. What comes from a host is unpacked with
path checks: a hostile archive cannot write outside the target."""

from __future__ import annotations

import io
import os
import tarfile

from mngr import hosts, process
from mngr.errors import MngrError
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
    path = path.rstrip("/") or ("/" if path.startswith("/") else ".")
    folder, name = os.path.split(path) if path not in (".", "..", "/") else (path, ".")
    if os.path.isdir(target) and name != ".":
        target = os.path.join(target, name)
    script = _ENTER.replace("{id}", ref.id) + (
        f"cd {quote(folder or '.')} && [ -e {quote('./' + name)} ] || {{ echo 'there is no {{}}'; exit 1; }} >&2\n"
        f"exec tar -cf - {quote('./' + name)}"
    ).replace("{}", path.replace("'", "?"))
    child = host.start(hosts.script_for(host, script), [], stdin=process.NULL, stdout=process.PIPE, stderr=process.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        with os.fdopen(child.stdout, "rb") as stream:
            _unpack(stream, "./" + name, target)
    except tarfile.TarError as error:
        if child.wait() == 0 or not isinstance(error, tarfile.ReadError):
            raise MngrError(f"{ref.name}:{path}: {error}") from None
    finally:
        with os.fdopen(child.stderr, "rb") as stream:
            said = stream.read().decode("utf-8", "replace").strip()
    if child.wait():
        raise MngrError(f"{ref.name}: {said.splitlines()[-1] if said else 'tar failed'}")
    return target


def _unpack(stream: IO[bytes], top: str, target: str) -> None:
    root, name = os.path.split(os.path.abspath(target))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            inside = os.path.normpath(member.name)
            base = os.path.normpath(top)
            if base == ".":
                relative = inside
            elif inside == base or inside.startswith(base + "/"):
                relative = inside[len(base) + 1 :]
            else:
                raise tarfile.OutsideDestinationError(member, member.name)
            member.name = os.path.normpath(os.path.join(name, relative)) if relative else name
            if member.islnk():
                member.linkname = os.path.normpath(
                    os.path.join(name, os.path.relpath(os.path.normpath(member.linkname), base))
                )
            os.makedirs(root, exist_ok=True)
            archive.extract(member, root, filter="data")


def push_files(fleet: Fleet, source: str, ref: Ref, path: str) -> None:
    """`source` as `path` of the agent's work dir, or inside it when that is a directory."""
    if not os.path.lexists(source):
        raise MngrError(f"there is no {source}")
    host = fleet.host(ref.host)
    name = os.path.basename(os.path.abspath(source))
    script = _ENTER.replace("{id}", ref.id) + _RECEIVE.replace("{path}", quote(path or ".")).replace(
        "{name}", quote(name)
    )
    child = host.start(hosts.script_for(host, script), [], stdin=process.PIPE, stdout=process.NULL, stderr=process.PIPE)
    assert child.stdin is not None
    assert child.stderr is not None
    try:
        with os.fdopen(child.stdin, "wb") as stream:
            _pack(stream, source)
    except BrokenPipeError:
        pass  # its message says why
    with os.fdopen(child.stderr, "rb") as stream:
        said = stream.read().decode("utf-8", "replace").strip()
    if child.wait():
        raise MngrError(f"{ref.name} did not take {source}: {said.splitlines()[-1] if said else 'tar failed'}")


# Unpacked beside its place and moved there: what is half transferred is never seen under its name.
_RECEIVE = """
to={path} name={name}
if [ -d "$to" ]; then to=${to%/}/$name; else case $to in */) mkdir -p "$to" && to=$to$name ;; esac; fi
case $to in */*) mkdir -p "${to%/*}" || exit 1; new=${to%/*}/.mngr.$$ ;; *) new=.mngr.$$ ;; esac
trap 'rm -rf "$new"' EXIT
mkdir "$new" && tar -xf - -C "$new" || exit 1
if [ -d "$new/it" ] && [ ! -L "$new/it" ] && [ -d "$to" ]; then cp -Rp "$new/it/." "$to"; else mv -f "$new/it" "$to"; fi
"""


def _pack(stream: IO[bytes], source: str) -> None:
    buffered = io.BufferedWriter(stream, 1 << 18) if isinstance(stream, io.RawIOBase) else stream
    with tarfile.open(fileobj=buffered, mode="w|") as archive:
        archive.add(source, arcname="it")
    buffered.flush()
