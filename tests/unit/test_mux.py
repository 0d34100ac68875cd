"""Sessions asked for at the control socket of a connection: what happens when that is not as it should be. The real
ones are in tests/places."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mngr import process
from mngr.errors import TimedOut
from mngr.hosts import mux

HELLO, OPENED, EXIT, DENIED, FAILED = 1, 0x80000006, 0x80000004, 0x80000002, 0x80000003


def packet(*numbers: int) -> bytes:
    body = b"".join(number.to_bytes(4, "big") for number in numbers)
    return len(body).to_bytes(4, "big") + body


class Connection:
    """One end of the control socket, as ssh keeps it: takes one session, and then says what it is told to."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self.asked = b""
        self.fds: list[int] = []

    def serve(self, then: Callable[[socket.socket], object]) -> None:
        threading.Thread(target=self._serve, args=(then,), daemon=True).start()

    def _serve(self, then: Callable[[socket.socket], object]) -> None:
        peer, _ = self._listener.accept()
        with peer:
            while len(self.fds) < 3:
                data, fds, _, _ = socket.recv_fds(peer, 1 << 16, 1)
                self.asked += data
                self.fds += fds
            then(peer)
            for fd in self.fds:
                os.close(fd)

    def start(self, command: str = "cat") -> mux.Session | None:
        return mux.start(self.path, command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.NULL)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    made = Connection(tmp_path / "socket")
    yield made
    made.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def close(session: mux.Session) -> None:
    for fd in (session.stdin, session.stdout, session.stderr):
        if fd is not None:
            os.close(fd)


def test_it_ends_as_the_connection_says(connection: Connection) -> None:
    def then(peer: socket.socket) -> None:
        peer.sendall(packet(HELLO, 4) + packet(OPENED, 0, 7))
        os.write(connection.fds[1], b"said")
        peer.sendall(packet(EXIT, 7, 3))

    connection.serve(then)
    session = connection.start("echo said")
    assert session is not None
    assert session.stdout is not None
    assert os.read(session.stdout, 10) == b"said"
    assert session.wait() == session.poll() == session.end() == 3
    assert connection.asked.startswith(packet(HELLO, 4))
    assert connection.asked.count(b"echo said") == 1
    close(session)


def test_the_connection_is_offered_what_its_configuration_may_let_through(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ForwardAgent and SendEnv of the user: it takes what they allow, as it does from ssh(1)."""
    monkeypatch.setenv("LC_ODD", "\udcff")
    connection.serve(lambda peer: peer.sendall(packet(HELLO, 4) + packet(OPENED, 0, 7)))
    session = connection.start("true")
    assert session is not None
    session.end()
    close(session)
    kind, *flags = (int.from_bytes(connection.asked[at : at + 4], "big") for at in range(16, 44, 4))
    assert (kind, flags) == (0x10000002, [0, 0, 0, 0, 1, 0])  # number, reserved, terminal, X11, agent, subsystem
    assert b"\0\0\0\x08LC_ODD=\xff" in connection.asked


def test_one_that_is_too_long_for_a_connection_is_left_to_ssh(connection: Connection) -> None:
    assert connection.start("x" * 300_000) is None


def test_messages_come_in_pieces(connection: Connection) -> None:
    told = packet(HELLO, 4) + packet(OPENED, 0, 7) + packet(EXIT, 7, 0)

    def then(peer: socket.socket) -> None:
        for at in range(len(told)):
            peer.sendall(told[at : at + 1])

    connection.serve(then)
    session = connection.start()
    assert session is not None
    assert session.wait(time.monotonic() + 10) == 0
    close(session)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        packet(HELLO, 4),
        packet(HELLO, 3) + packet(OPENED, 0, 7),
        packet(HELLO, 4) + packet(DENIED, 0, 0),
        packet(HELLO, 4) + packet(FAILED, 0, 0),
        packet(HELLO, 4) + packet(99),
    ],
    ids=["silent", "gone", "other version", "denied", "refused", "unheard of"],
)
def test_what_is_not_as_expected_is_left_to_ssh(connection: Connection, told: bytes) -> None:
    before = descriptors()
    connection.serve(lambda peer: peer.sendall(told))
    assert connection.start() is None
    deadline = time.monotonic() + 10
    while descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.01)  # for the other end, which is in this process, as that of the last test was
    assert descriptors() <= before


def test_without_a_connection_and_with_streams_of_others_it_is_left_to_ssh(connection: Connection) -> None:
    before = descriptors()
    how = {"stdin": process.NULL, "stdout": process.PIPE, "stderr": process.PIPE}
    assert mux.start(f"{connection.path}.none", "true", **how) is None
    assert mux.start(connection.path, "true", **{**how, "stdout": process.INHERIT}) is None
    assert mux.start(connection.path, "true", **{**how, "stdin": 0}) is None
    assert descriptors() == before


def test_one_that_breaks_off_has_ended_as_ssh_would_say(connection: Connection) -> None:
    connection.serve(lambda peer: peer.sendall(packet(HELLO, 4) + packet(OPENED, 0, 7)))
    session = connection.start()
    assert session is not None
    assert session.wait() == 255
    close(session)


def test_its_end_is_that_of_the_socket_and_a_deadline_is_one(connection: Connection) -> None:
    heard = threading.Event()

    def then(peer: socket.socket) -> None:
        peer.sendall(packet(HELLO, 4) + packet(OPENED, 0, 7))
        assert peer.recv(1) == b""
        heard.set()

    connection.serve(then)
    session = connection.start()
    assert session is not None
    assert session.poll() is None
    with pytest.raises(TimedOut):
        session.wait(time.monotonic() + 0.01)
    assert session.end() == -15
    assert heard.wait(10)
    close(session)


def test_one_whose_host_does_not_answer_is_begun_all_the_same(connection: Connection) -> None:
    """Its deadline is its caller's: who is refused later hears of it as of an end."""
    release = threading.Event()

    def then(peer: socket.socket) -> None:
        peer.sendall(packet(HELLO, 4))
        release.wait(10)
        peer.sendall(packet(FAILED, 0, 0))

    connection.serve(then)
    session = connection.start()
    assert session is not None
    assert session.poll() is None
    release.set()
    assert session.wait(time.monotonic() + 10) == 255
    close(session)
