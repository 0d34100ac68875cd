"""`mngr` without the start of Python: a process that has imported it, and forks for each call. Thousands of calls spend
a third of their time on that start, which is the same each time. All else is as it is in a process of its own: argv,
environment, directory, streams, signals, exit. What must be one (a terminal, Ctrl-C, `kill`) is started by `popen`.

It is also the program that this process runs."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = str(Path(sys.executable).parent / "mngr")
# What is decided when Python starts: a call for which one of these is different is none of ours.
FIXED = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
_MOST = 1 << 20
_LONGEST = 30_000  # characters: what the socket takes at once, if each of them needs six bytes


def can_run(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    return (
        argv[0] == PROGRAM
        and {name: env.get(name) for name in FIXED} == FIXED
        and not any(name.startswith("PYTHON") for name in env)
        and sum(map(len, (*argv, *env, *env.values()))) < _LONGEST
    )


class Warm:
    """One for each pytest process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)
        env = {
            "PATH": os.defpath,
            "HOME": "/",
            "TZ": "UTC",
            **FIXED,
        }  # of a test, nothing: it would go with that
        null = subprocess.DEVNULL
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=env,
            stdin=null,
            stdout=null,
            cwd="/",
        )
        theirs.close()
        self._socket = ours

    def close(self) -> None:
        self._socket.close()
        self._server.wait(10)

    def run(
        self, argv: Sequence[str], *, input: str, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` does it with text and captured output."""
        (stdin, feed), (out, stdout), (err, stderr), (told, tell) = (os.pipe() for _ in range(4))
        wish = json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(cwd)}).encode()
        try:
            socket.send_fds(self._socket, [wish], [stdin, stdout, stderr, tell])
        finally:
            for fd in (stdin, stdout, stderr, tell):
                os.close(fd)
        deadline = time.monotonic() + timeout
        pid, _, ended = os.read(told, 100).partition(b"\n")
        try:
            said = _talk(feed, input.encode("utf-8", "surrogateescape"), (out, err), deadline)
            code = int(ended + _talk(-1, b"", (told,), deadline)[told])
        except BaseException as error:
            os.kill(int(pid), signal.SIGKILL)
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(list(argv), timeout) from None
            raise
        finally:
            for fd in (out, err, told):
                os.close(fd)
        return subprocess.CompletedProcess(list(argv), code, _text(said[out]), _text(said[err]))


def _talk(feed: int, input: bytes, ends: tuple[int, ...], deadline: float) -> dict[int, bytes]:
    """What comes from these until all of them have ended, while the input goes out, after which it is closed."""
    said = dict.fromkeys(ends, b"")
    poller = select.poll()
    for fd in ends:
        poller.register(fd, select.POLLIN)
    left = set(ends)
    if feed >= 0:
        os.set_blocking(feed, False)
        poller.register(feed, select.POLLOUT)
    try:
        while left:
            found = poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not found:
                raise TimeoutError
            for fd, _ in found:
                if fd != feed:
                    chunk = os.read(fd, 1 << 16)
                    said[fd] += chunk
                    if not chunk:
                        poller.unregister(fd)
                        left.discard(fd)
                    continue
                try:
                    input = input[os.write(feed, input[: 1 << 16]) :] if input else b""
                except BrokenPipeError:
                    input = b""
                if not input:
                    poller.unregister(feed)
                    os.close(feed)
                    feed = -1
    finally:
        if feed >= 0:
            os.close(feed)
    return said


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")  # as text=True has it


# The process


def serve(server: socket.socket) -> None:
    waker, awake = os.pipe()
    os.set_blocking(awake, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for pytest, whose last tests may still need us
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(awake)
    telling: dict[int, int] = {}
    poller = select.poll()
    poller.register(server, select.POLLIN)
    poller.register(waker, select.POLLIN)
    while True:
        ready = dict(poller.poll())
        if waker in ready:
            os.read(waker, 1 << 10)
            while telling:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                tell(telling.pop(pid), os.waitstatus_to_exitcode(status), close=True)
        if server.fileno() in ready:
            data, fds, _, _ = socket.recv_fds(server, _MOST, 4)
            if not data:
                return  # pytest has ended
            *streams, answer = fds
            pid = os.fork()
            if not pid:
                server.detach()  # its descriptor goes with all others
                become(json.loads(data), streams)
            for fd in streams:
                os.close(fd)
            tell(answer, pid)
            telling[pid] = answer


def tell(answer: int, number: int, *, close: bool = False) -> None:
    try:
        os.write(answer, f"{number}\n".encode())
    except BrokenPipeError:
        pass  # nobody waits any more
    if close:
        os.close(answer)


def become(wish: Any, streams: list[int]) -> NoReturn:
    """What `mngr` is from its first line to its exit."""
    import atexit
    import gc
    import threading

    from mngr.cli.main import RUBBISH, main

    code: object = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
        os.environ.clear()
        os.environ.update(wish["env"])
        time.tzset()
        os.chdir(wish["cwd"])
        sys.argv = wish["argv"]
        gc.set_threshold(*RUBBISH)
        try:
            code = main()
        except SystemExit as end:
            code = end.code
        except BaseException:  # noqa: BLE001 - told as Python tells it
            sys.excepthook(*sys.exc_info())
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))


def import_all() -> None:
    """All that a verb may import. Nothing of it does anything when it is imported, or a verb would do it twice."""
    import gc
    import pkgutil

    import mngr

    sys.path[0] = os.path.dirname(PROGRAM)  # where its own script would have found itself
    programs = ("mngr.__main__", "mngr.e2e", "mngr.testing", "mngr.swarm.testing")  # and what is for pytest
    for module in pkgutil.walk_packages(mngr.__path__, "mngr."):
        if not module.name.startswith(programs):
            __import__(module.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    connection = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    serve(connection)
