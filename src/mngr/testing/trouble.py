"""A host that goes away in the middle, and comes back: it costs a deadline, and no new process of ours is needed."""

from __future__ import annotations

import threading

import pytest

from mngr import hosts
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.testing.control import eventually

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts import Host
    from mngr.testing.control import Control

NO_CUT = "this host gives no way to cut it"
NO_CRASH = "this host gives no way to crash it"
DEADLINE = 5.0
PATIENCE = 60.0  # seconds for what would else take for ever


class Trouble:
    def test_a_script_on_a_host_that_is_cut_off_ends_with_its_deadline(
        self, host: Host, control: Control, there: str
    ) -> None:
        cut, heal = needed(control.cut, control.heal, NO_CUT)
        try:
            error = error_when(host, there, cut)
        finally:
            heal()
        assert isinstance(error, TimedOut | HostUnreachable)
        eventually(lambda: answers(host), "it answers again", PATIENCE)

    def test_a_host_that_was_cut_off_between_two_questions_answers_again(self, host: Host, control: Control) -> None:
        cut, heal = needed(control.cut, control.heal, NO_CUT)
        assert hosts.check(host, "echo here") == "here\n"
        cut()
        try:
            with pytest.raises((TimedOut, HostUnreachable)):
                hosts.run(host, "echo lost", deadline=DEADLINE)
        finally:
            heal()
        eventually(lambda: answers(host), "it answers again", PATIENCE)

    def test_what_runs_there_outlives_a_cut(self, host: Host, control: Control, there: str) -> None:
        cut, heal = needed(control.cut, control.heal, NO_CUT)
        t = f"tmux -S {there}/socket -f /dev/null"
        hosts.check(host, f"{t} new-session -d -s it cat")
        cut()
        try:
            with pytest.raises((TimedOut, HostUnreachable)):
                hosts.run(host, ":", deadline=1)
        finally:
            heal()
        eventually(lambda: answers(host), "it answers again", PATIENCE)
        assert hosts.check(host, f"{t} list-sessions -F '#S'; {t} kill-server") == "it\n"

    def test_a_script_on_a_host_that_crashes_ends_with_its_deadline(
        self, host: Host, control: Control, there: str
    ) -> None:
        crash, boot = needed(control.crash, control.boot, NO_CRASH)
        try:
            error = error_when(host, there, crash)
            with pytest.raises((TimedOut, HostUnreachable)):
                hosts.run(host, ":", deadline=DEADLINE)
        finally:
            boot()
        assert isinstance(error, TimedOut | HostUnreachable)
        eventually(lambda: answers(host), "it answers again", PATIENCE)
        assert hosts.run(host, f"[ -e {there}/begun ]").code == 0  # files stay


def needed(
    harm: Callable[[], None] | None, undo: Callable[[], None] | None, why_not: str
) -> tuple[Callable[[], None], Callable[[], None]]:
    if harm is None or undo is None:
        pytest.skip(why_not)
    return harm, undo


def answers(host: Host) -> bool:
    try:
        return hosts.run(host, "echo here", deadline=DEADLINE).out == "here\n"
    except (TimedOut, HostUnreachable):
        return False


def error_when(host: Host, there: str, harm: Callable[[], None]) -> MngrError | None:
    """What a script that runs just then ends with."""
    errors: list[MngrError | None] = []

    def ask() -> None:
        try:
            hosts.run(host, f": >{there}/begun; sync; sleep 1000", deadline=DEADLINE)
        except MngrError as error:
            errors.append(error)
        else:
            errors.append(None)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    eventually(lambda: hosts.run(host, f"[ -e {there}/begun ]").code == 0, "the script runs")
    harm()
    asking.join(PATIENCE)
    assert errors, f"a deadline of {DEADLINE:g} s was not kept within {PATIENCE:g} s"
    return errors[0]
