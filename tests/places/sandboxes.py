"""The stand-in for Modal as a process of its own, for tests.

    with Sandboxes(podman) as modal:
        subprocess.run(["mngr", "create", "foo@.modal", ...], env=os.environ | modal.env)

`modal.env` turns any program that uses the SDK to it; `modal.ask` makes things go wrong, or tells what has happened:
modal_stand_in.py has the words. Sandboxes and images end with it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from glob import glob
from pathlib import Path
from typing import Any, Self

from mngr.hosts.sockets import socket_path
from tests.places.containers import Podman

TOP = Path(__file__).parents[2]
TOKEN_ID, TOKEN_SECRET = "ak-stand-in", "as-stand-in"  # the ones that are let in


class Sandboxes:
    def __init__(self, podman: Podman) -> None:
        self._podman = podman

    def __enter__(self) -> Self:
        argv = [sys.executable, "-m", "tests.places.modal_stand_in", self._podman.image]
        pipe = subprocess.PIPE
        env = os.environ | self._podman.env
        self._process = subprocess.Popen(argv, cwd=TOP, env=env, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout
        port = self._process.stdout.readline().strip()
        if not port.isdecimal():
            self.__exit__()
            raise AssertionError("the stand-in for Modal did not start: what it said stands above")
        self.env = {
            "MODAL_SERVER_URL": f"http://127.0.0.1:{port}",
            "MODAL_TOKEN_ID": TOKEN_ID,
            "MODAL_TOKEN_SECRET": TOKEN_SECRET,
            "MODAL_CONFIG_PATH": os.devnull,  # nothing of the user's own
        }
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **wish: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def running(self) -> list[dict[str, Any]]:
        return [sandbox for sandbox in self.ask(sandboxes=True) if not sandbox["ended"]]


def servers(home: str) -> list[int]:
    """The processes that have the SDK for that home, by what each says of itself."""
    found = []
    for path in glob(f"{socket_path(home)}-modal-*"):
        with socket.socket(socket.AF_UNIX) as asking, asking.makefile("rb") as said:
            try:
                asking.connect(path)
            except (ConnectionRefusedError, FileNotFoundError):
                continue  # it was killed, or has just gone
            found.append(int(said.readline()))
    return found


def end_servers(home: str) -> None:
    """They would go with the home, but not at once."""
    for path in glob(f"{socket_path(home)}-modal-*"):
        with socket.socket(socket.AF_UNIX) as asking, asking.makefile("rb") as said:
            try:
                asking.connect(path)
                if told := said.readline():
                    os.kill(int(told), signal.SIGTERM)
                said.read()
            except (ConnectionError, FileNotFoundError, ProcessLookupError):
                Path(path).unlink(missing_ok=True)  # a test has killed it, or it has just gone
