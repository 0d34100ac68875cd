"""Showing something again whenever something happens: `list --watch`."""

from __future__ import annotations

import io
import sys
import time
from contextlib import redirect_stdout

from mngr.fleet.follow import Feed, followable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet

_SETTLE = 0.1  # seconds: events come in bursts
_AGES = 5.0  # seconds after which the ages on a terminal are stale


def watch(fleet: Fleet, show: Callable[[], None]) -> int:
    """On a terminal in place; else one picture after the other, and only when it has changed. Until Ctrl-C."""
    on_screen = sys.stdout.isatty()
    before = None
    with Feed(followable(fleet, fleet.host_names())) as feed:
        while True:
            picture = io.StringIO()
            with redirect_stdout(picture):
                show()
            if picture.getvalue() != before:
                before = picture.getvalue()
                sys.stdout.write(("\033[H\033[J" if on_screen else "") + before + ("" if on_screen else "\n"))
                sys.stdout.flush()
            next(feed.events(time.monotonic() + _AGES if on_screen else None), None)
            for _ in feed.events(time.monotonic() + _SETTLE):
                pass
