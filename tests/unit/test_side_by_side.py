"""Several things at the same time, and what becomes of them when one goes wrong or the user has had enough."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mngr import process
from mngr.errors import MngrError
from mngr.fleet.side_by_side import at_once

SLOW = ["sleep", "1000"]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("items", [[], [1], [1, 2, 3]])
def test_each_is_done_and_nothing_stays_open(items: list[int]) -> None:
    before, done = descriptors(), list[int]()
    at_once(items, done.append)
    assert sorted(done) == items
    assert descriptors() == before


@pytest.mark.parametrize("bad", [1, 3])
def test_what_goes_wrong_is_raised_when_all_have_ended(bad: int) -> None:
    done, failed = list[int](), threading.Event()

    def work(item: int) -> None:
        if item == bad:
            failed.set()
            raise MngrError(f"no {item}")
        assert failed.wait(60)
        done.append(item)

    with pytest.raises(MngrError, match=f"no {bad}"):
        at_once([1, 2, 3], work)
    assert sorted([*done, bad]) == [1, 2, 3]


@pytest.mark.parametrize("last", [SLOW, []], ids=["at work", "waiting for the others"])
def test_ctrl_c_ends_what_the_threads_wait_for_and_lets_them_clean_up(last: list[str]) -> None:
    begun, cleaned = threading.Semaphore(0), []

    def work(argv: list[str]) -> None:
        begun.release()
        try:
            if argv:
                process.run(argv, deadline=60)
        except KeyboardInterrupt:
            cleaned.append(process.run(["echo", "clean"]).out)
            raise

    def nested(items: list[list[str]]) -> None:
        at_once(items, work)

    over = threading.Event()

    def interrupt() -> None:
        for _ in range(4):
            begun.acquire()
        os.kill(os.getpid(), signal.SIGINT)
        while not over.wait(5):
            if not cleaned:  # Python misses what comes in the moment before it begins to wait
                os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            at_once([[SLOW, SLOW], [SLOW, last]], nested)
    finally:
        over.set()
    interrupting.join()
    assert cleaned == ["clean\n"] * (4 if last else 3)
