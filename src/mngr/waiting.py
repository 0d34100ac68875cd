"""Waiting until a descriptor is ready. Ctrl-C comes to the main thread alone: those that work for it wait for a word of
it, too, so that nobody sits through a setup of ten minutes that is not wanted any more."""

from __future__ import annotations

import os
import select
import time
from _thread import _local

_here = _local()
_LONGEST = 1.0  # seconds: a signal that comes in the moment before a wait begins is heard when the next one does


def ready(poller: select.poll, limit: float | None = None) -> list[tuple[int, int]]:
    """What the poller has by `limit` (monotonic). KeyboardInterrupt, once, in a thread that is called off."""
    word: int | None = getattr(_here, "word", None)
    if word is not None:
        poller.register(word, select.POLLIN)
    try:
        found: list[tuple[int, int]] = []
        is_over = False
        while not found and not is_over:
            left = _LONGEST if limit is None else max(0.0, limit - time.monotonic())
            found = poller.poll(min(left, _LONGEST) * 1000)
            is_over = limit is not None and left <= _LONGEST
    finally:
        if word is not None:
            poller.unregister(word)
    if any(fd == word for fd, _ in found):
        _here.word = None  # what it cleans up is waited for
        raise KeyboardInterrupt
    return found


def pause(seconds: float) -> None:
    """A sleep from which a thread is called off."""
    ready(select.poll(), time.monotonic() + seconds)


class Word:
    """What threads wait for besides their work: the end of a pipe. Threads of threads wait for the same one."""

    def __init__(self) -> None:
        self._inherited: int | None = getattr(_here, "word", None)
        ends: tuple[int, int] = os.pipe() if self._inherited is None else (self._inherited, -1)
        self._reader, self._writer = ends

    def heed(self) -> None:
        """In a thread of the one who gives it."""
        _here.word = self._reader

    def call_off(self) -> None:
        writer, self._writer = self._writer, -1
        if writer >= 0:
            os.close(writer)

    def close(self) -> None:
        """When they have ended, all of them."""
        self.call_off()
        if self._inherited is None:
            os.close(self._reader)
