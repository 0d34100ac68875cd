"""What an agent's real program needs on a test machine: the program itself, and a way back to a server of this one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.places.network import Machine


def put(program: Path, box: Machine, path: str) -> None:
    """A file of this machine onto that one, through its own eyes: its /root hides ours."""
    there = Path(f"/proc/{box._first_process()}/root{path}")
    shutil.copyfile(program.resolve(), there)
    there.chmod(0o755)


@contextmanager
def way_back(box: Machine, port: int) -> Iterator[None]:
    """That port of this machine's loopback is one of that machine's too, as long as it is up: `ssh -R`, as users do."""
    forward = ["-o", "ExitOnForwardFailure=yes", "-R", f"{port}:127.0.0.1:{port}"]
    argv = ["ssh", "-F", str(box.network.ssh_config), *forward, box.name, "echo open; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tunnel:
        assert tunnel.stdin
        assert tunnel.stdout
        try:
            assert tunnel.stdout.readline() == "open\n"
            yield
        finally:
            tunnel.kill()
