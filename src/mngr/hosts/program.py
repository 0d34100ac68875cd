"""A program that keeps hosts (docker, podman, kubectl and the like), asked by its command line."""

from __future__ import annotations

import os
import select
import time

from mngr import process, waiting
from mngr.errors import HostUnreachable, MngrError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEPT = 40  # last lines of a long output, for the case that it fails


def ask(words: list[str], *, deadline: float) -> process.Done:
    """To its end. HostUnreachable when it is not there or does not answer: then nothing is known."""
    try:
        return process.run(words, deadline=deadline)
    except TimedOut:
        raise HostUnreachable(f"{words[0]} does not answer within {deadline:g} s") from None
    except MngrError as error:
        raise _missing(words, error) from None


def watch(words: list[str], line: Callable[[str], None], *, deadline: float) -> process.Done:
    """The same for what takes minutes: each line of its output, of both streams, as it comes."""
    reader, writer = os.pipe()
    try:
        child = process.start(words, stdout=writer, stderr=writer)
    except MngrError as error:
        os.close(reader)
        raise _missing(words, error) from None
    finally:
        os.close(writer)
    limit = time.monotonic() + deadline
    kept: list[str] = []
    try:
        for text in _lines(reader, limit):
            kept = [*kept[-_KEPT:], text]
            line(text)
        code = child.wait(limit)
    except TimedOut:
        child.end()
        raise HostUnreachable(f"{words[0]} is not done within {deadline:g} s") from None
    except BaseException:
        child.end()
        raise
    finally:
        os.close(reader)
    return process.Done(code=code, out="", err="\n".join(kept))


def said(done: process.Done) -> str:
    """Why it failed, as one line. Programs tell it last, or before advice about their options."""
    text = map(_plain, (done.err or done.out).splitlines())
    lines = [line for line in text if line and "--help" not in line and not line.startswith("Usage:")]
    errors = [line for line in lines if "error" in line.lower() or "cannot" in line.lower()]
    return (errors or lines or [f"exit code {done.code}"])[-1]


def _lines(fd: int, limit: float) -> Iterator[str]:
    poller, held = select.poll(), b""
    poller.register(fd, select.POLLIN)
    while waiting.ready(poller, limit):
        chunk = os.read(fd, 65536)
        *whole, held = (held + chunk).split(b"\n")
        for each in (*whole, *([] if chunk else [held])):
            yield _plain(each.decode("utf-8", "replace"))
        if not chunk:
            return
    raise TimedOut("deadline")


def _plain(line: str) -> str:
    """What a build prints comes from strangers: none of it may act on the user's terminal."""
    return "".join(char if char.isprintable() else " " for char in line).strip()


def _missing(words: list[str], error: MngrError) -> HostUnreachable:
    return HostUnreachable(error.message, f"is {words[0]} installed?")
