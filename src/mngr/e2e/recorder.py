"""mngr-e2e-connect: a `connect_command` of mngr that attaches nobody. It records the agent's terminal in the
background, into `$MNGR_E2E_CASTS/AGENT.cast`, and returns as soon as nothing can be missed any more.

A recorder holds a lock on its pid file for as long as it lives: whoever finds the file locked knows that the number in
it is still that of a recorder, and whoever gets the lock knows that the recorder is gone."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from mngr.e2e.cast import Clock, Writer, claim
from mngr.e2e.control import Control, Replies, paint_commands, painted, quote

_FIELDS = "#{pane_id} #{pane_width} #{pane_height} #{@mngr}"


def main() -> int:
    casts, session = os.environ.get("MNGR_E2E_CASTS"), os.environ.get("MNGR_SESSION")
    socket = os.environ.get("MNGR_TMUX_SOCKET")
    if not casts:
        return _refuse("MNGR_E2E_CASTS is not set: it names the directory for recordings")
    if not session or not socket:
        return _refuse("MNGR_SESSION and MNGR_TMUX_SOCKET are not set: mngr runs this, as its connect_command")
    readable, writable = os.pipe()
    if os.fork() == 0:
        os.close(readable)
        _in_background(Path(casts), socket, session, writable)
    os.close(writable)
    with open(readable, encoding="utf-8") as pipe:
        word = pipe.read()
    if word != "recording":
        print(f"mngr-e2e-connect: {word or 'the recorder ended before it began'}", file=sys.stderr)
        return 1
    return 0


def stop_recorders(casts: Path, timeout: float = 5) -> None:
    """End all that record into this directory, and wait until their files are complete."""
    deadline = time.monotonic() + timeout
    running = [path for path in casts.glob("*.cast.pid") if not _is_over(path)]
    for path in running:
        _signal(path, signal.SIGTERM)
    for path in running:
        while not _is_over(path):
            late = time.monotonic() - deadline
            if late > 5:
                raise RuntimeError(f"the recorder of {path.stem} cannot be killed")
            if late > 0:
                _signal(path, signal.SIGKILL)
            time.sleep(0.005)


class Recorder:
    """The pane of one agent, from now on."""

    def __init__(self, casts: Path, socket: str, session: str, title: str) -> None:
        """The client has no size and asks for none: the window keeps that which the agent was made for."""
        attach = ["attach-session", "-f", "read-only,ignore-size", "-t", f"={session}"]
        env = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
        self._writer: Writer | None = None
        self._is_final = False  # the screen of a program that has ended is recorded
        self._control = Control(["-N", "-S", socket, "-C", *attach], env, self)
        self._pane, width, height = self._find(session)
        self.path = claim(casts, title)
        # Before the first event of the cast, so that a recorder that is seen can also be stopped.
        self._pid_file = Path(f"{self.path}.pid")
        self._lock = os.open(self._pid_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, f"{os.getpid()}\n".encode())
        self._clock = Clock()
        writer = Writer(self.path, width, height, self._clock.started, title)

        def begin(replies: Replies) -> None:
            writer.output(0, painted(replies))
            self._writer = writer

        self._control.ask(*paint_commands(self._pane), then=begin)
        self._control.ask(f"refresh-client -B {quote(f'dead:{self._pane}:#{{pane_dead}}')}")

    def run(self) -> None:
        """Until the session ends, or somebody raises SystemExit here."""
        try:
            self._control.wait_for_end()
            self._control.close()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._finish()

    def _find(self, session: str) -> tuple[str, int, int]:
        """mngr marks the agent's own pane; there may be others."""
        lines = self._control.ask(f"list-panes -s -t {quote(f'={session}')} -F {quote(_FIELDS)}")[0]
        panes = [line.split(" ") for line in lines]
        pane = next((fields for fields in panes if fields[3]), panes[0])
        return pane[0], int(pane[1]), int(pane[2])

    def _finish(self) -> None:
        if self._control.ended is None:
            try:
                dead = self._control.ask(f"display-message -p -t {self._pane} {quote('#{pane_dead}')}")
                if dead == [["1"]] and not self._is_final:
                    self._control.ask(*paint_commands(self._pane), then=self._paint)
            except RuntimeError:
                pass  # the session ends while we do
            self._control.close()
        if self._writer:
            self._writer.close(self._clock.now())
        self._pid_file.unlink(missing_ok=True)
        os.close(self._lock)

    def _paint(self, replies: Replies) -> None:
        """tmux drops what it has not handed out yet when the program of a pane ends: this makes up for it."""
        self._is_final = True
        self.output(self._pane, painted(replies))

    # What the control client reports.

    def output(self, pane: str, text: str) -> None:
        if self._writer and pane == self._pane:
            self._writer.output(self._clock.now(), text)

    def resized(self, pane: str, width: int, height: int) -> None:
        if self._writer and pane == self._pane:
            self._writer.resize(self._clock.now(), width, height)

    def noticed(self, notice: str) -> None:
        if notice.startswith("%subscription-changed dead "):
            self._is_final = False
            if notice.endswith(" : 1"):
                self._control.send(*paint_commands(self._pane), then=self._paint)


def _refuse(why: str) -> int:
    print(f"mngr-e2e-connect: {why}", file=sys.stderr)
    return 2


def _in_background(casts: Path, socket: str, session: str, writable: int) -> NoReturn:
    """A daemon: no terminal, no streams, nobody's child. Its only word goes through the pipe."""
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        try:
            owner = _open_owner()
            recorder = Recorder(casts, socket, session, os.environ.get("MNGR_AGENT_NAME") or session)
        except (OSError, RuntimeError) as error:
            os.write(writable, str(error).encode())
            os._exit(1)
        if owner is not None:
            threading.Thread(target=_end_with, args=(owner,), daemon=True).start()
        os.write(writable, b"recording")
        os.close(writable)
        recorder.run()
    finally:
        os._exit(0)


def _open_owner() -> int | None:
    """The process whose end is ours, as a descriptor, since a number could be that of another process by then; as its
    number, negated, where there are no such descriptors."""
    owner = os.environ.get("MNGR_E2E_OWNER")
    if not owner:
        return None
    if not _exists(int(owner)):
        raise RuntimeError(f"process {owner}, for which this would record, is gone")
    try:
        return os.pidfd_open(int(owner))
    except (AttributeError, OSError):
        return -int(owner)


def _end_with(owner: int) -> None:
    if owner >= 0:
        select.select([owner], [], [])
    else:
        while _exists(-owner):
            time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _is_over(pid_file: Path) -> bool:
    try:
        file = os.open(pid_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        pid_file.unlink(missing_ok=True)  # left behind by one that was killed
        return True
    finally:
        os.close(file)


def _signal(pid_file: Path, number: int) -> None:
    try:
        os.kill(int(pid_file.read_text()), number)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        pass  # it has just ended by itself, or has only just begun


if __name__ == "__main__":
    sys.exit(main())
