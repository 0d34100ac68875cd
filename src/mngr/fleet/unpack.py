"""Unpacking what a host sent: a hostile archive changes nothing outside its target.

Everything is unpacked into a fresh directory in which there are no links: those are made last, so that nothing can be
written through them. Then it is moved to its place, where a link in the way is replaced and never followed."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile

from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO


def unpack(stream: IO[bytes], top: str, target: str, complete: Callable[[], None]) -> None:
    """The member `top` of the archive, with all below it, as `target`; merged into a directory that is there.
    `complete` raises when the sender failed: then nothing is moved."""
    if not hasattr(tarfile, "data_filter"):
        raise MngrError("this Python unpacks no archives safely", "use 3.11.4 or newer, or one with that fix")
    around = target if _is_directory(target) else os.path.dirname(os.path.abspath(target))
    os.makedirs(around, exist_ok=True)
    fresh = os.path.realpath(tempfile.mkdtemp(prefix=".mngr.", dir=around))
    try:
        try:
            _extract(stream, os.path.normpath(top), fresh)
        finally:
            stream.close()
            complete()
        _move(os.path.join(fresh, "it"), target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _extract(stream: IO[bytes], top: str, fresh: str) -> None:
    links: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            member.name = _inside(member, member.name, top)
            if member.islnk():
                member.linkname = _inside(member, member.linkname, top)
            if member.issym():
                links[member.name] = member.linkname
            elif member.islnk() and member.linkname in links:
                links[member.name] = links[member.linkname]
            else:
                archive.extract(member, fresh, filter="data")
    for name in links:
        os.makedirs(os.path.dirname(os.path.join(fresh, name)), exist_ok=True)
    for name, to in links.items():
        folder, base = os.path.split(os.path.join(fresh, name))
        if os.path.realpath(folder) != folder:  # another link stands in the path of this one
            raise tarfile.ExtractError(f"{name} is below a link")
        os.symlink(to, os.path.join(folder, base))


def _inside(member: tarfile.TarInfo, name: str, top: str) -> str:
    """The path below the fresh directory of what is `top` in the archive, or below it."""
    path = os.path.normpath(name)
    if path == top:
        return "it"
    if top == "." and not path.startswith(("/", "../")) and path != "..":
        return os.path.join("it", path)
    if path.startswith(top + "/"):
        return os.path.join("it", path[len(top) + 1 :])
    raise tarfile.OutsideDestinationError(member, name)


def _move(path: str, target: str) -> None:
    if _is_directory(path) and _is_directory(target):
        for name in os.listdir(path):
            if not _is_git(target, name):
                _move(os.path.join(path, name), os.path.join(target, name))
    else:
        os.replace(path, target)


def _is_git(directory: str, name: str) -> bool:
    """The repository that is there already, by whatever name the file system knows it: what it holds is commands that
    git runs here, and commits that no file of the sender's may replace."""
    try:
        return os.path.samefile(os.path.join(directory, name), os.path.join(directory, ".git"))
    except OSError:
        return False


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
