"""The pulse of a feed: who listens is called every so often, whatever else comes."""

from __future__ import annotations

import threading
import time
from itertools import islice
from pathlib import Path

import pytest

from mngr.fleet.fleet import Fleet
from mngr.fleet.follow import Feed


def test_a_feed_in_which_much_happens_has_its_pulse_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    end = threading.Event()

    def write() -> None:
        while not end.wait(0.05):
            with open(tmp_path / "feed", "a") as file:
                file.write('{"agent":"other","event":"running"}\nno event\n')

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with Feed([Fleet().host("local")]) as feed:
            events = feed.events(time.monotonic() + 60, pulse=0.5)
            called = [event for event in islice(events, 200) if event == {}]
            assert len(called) > 2  # once, or twice, because there is no tmux server
    finally:
        end.set()
        thread.join()
