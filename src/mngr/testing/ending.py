"""What ends, and what stays: a deadline is one on the host too, and so is our own end."""

from __future__ import annotations

import os
import signal
import warnings

import pytest

from mngr import hosts
from mngr.errors import TimedOut
from mngr.hosts.lifeline import tied
from mngr.testing.control import eventually
from mngr.testing.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host

# Two programs that write down who they are, one of them deaf to polite requests, and then the script itself.
LINGER = """
sh -c 'echo $$ >{there}/child; exec sleep 1000' &
sh -c 'trap "" TERM; echo $$ >{there}/deaf; while :; do sleep 1; done' &
until [ -s {there}/child ] && [ -s {there}/deaf ]; do sleep 0.1; done
: >{there}/begun
sleep 1000
"""


class Ending:
    def test_a_deadline_ends_the_script_there_and_all_it_started(self, host: Host, there: str) -> None:
        with pytest.raises(TimedOut):
            hosts.run(host, LINGER.format(there=there), deadline=5)
        assert began(host, there)
        eventually(lambda: all_ended(host, there), "everything has ended")

    def test_after_a_deadline_the_host_answers_as_before(self, host: Host) -> None:
        with pytest.raises(TimedOut):
            hosts.run(host, "sleep 1000", deadline=0.3)
        assert hosts.check(host, "echo here") == "here\n"

    def test_a_script_ends_when_we_are_killed(self, host: Host, there: str) -> None:
        if host.lines is None:
            pytest.skip("on this host nobody notices")
        host.lines.close()  # so that nothing is shared with the process that will be killed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of newer Pythons: pytest may have threads
            pid = os.fork()
        if not pid:
            try:
                hosts.run(host, LINGER.format(there=there))
            finally:
                os._exit(1)
        try:
            eventually(lambda: began(host, there), "the script runs")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        eventually(lambda: all_ended(host, there), "everything has ended")

    def test_a_tied_stream_ends_with_its_input(self, host: Host, there: str) -> None:
        with Stream(host, tied(LINGER.format(there=there))) as stream:
            eventually(lambda: began(host, there), "the script runs")
            stream.close_input()
            eventually(lambda: all_ended(host, there), "everything has ended")

    def test_a_tied_stream_that_is_complete_ends_at_once(self, host: Host) -> None:
        with Stream(host, tied("cat; echo done; exit 7")) as stream:
            assert stream.rest_with_input_open() == (b"done\n", 7)

    def test_a_daemon_stays(self, host: Host, there: str) -> None:
        if hosts.run(host, "command -v setsid").code:
            pytest.skip("there is no setsid on this host")
        daemon = f"echo $$ >{there}/daemon; until [ -e {there}/go ]; do sleep 0.1; done; echo went >{there}/went"
        hosts.check(
            host,
            f"setsid sh -c '{daemon}' >/dev/null 2>&1 </dev/null &\nuntil [ -s {there}/daemon ]; do sleep 0.1; done",
        )
        leave(host)
        hosts.check(host, f": >{there}/go")
        eventually(lambda: hosts.run(host, f"cat {there}/went").out == "went\n", "the daemon does its work")

    def test_a_tmux_session_stays(self, host: Host, there: str) -> None:
        t = f"cd {there} && tmux -S ./socket -f /dev/null"  # the path of a socket may have 104 bytes
        hosts.check(host, f"{t} new-session -d -s it 'cat >{there}/typed'")
        leave(host)
        try:
            hosts.check(host, f"{t} send-keys -t =it: hello Enter")
            eventually(lambda: hosts.run(host, f"cat {there}/typed").out == "hello\n", "the program reads")
        finally:
            hosts.run(host, f"{t} kill-server")


def leave(host: Host) -> None:
    """As a verb does at its end."""
    if host.lines is not None:
        host.lines.close()


def began(host: Host, there: str) -> bool:
    return hosts.run(host, f"[ -e {there}/begun ]").code == 0


def all_ended(host: Host, there: str) -> bool:
    return hosts.run(host, f"! is_alive $(cat {there}/child) && ! is_alive $(cat {there}/deaf)").code == 0
