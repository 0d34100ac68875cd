"""A world of its own for one test: HOME, MNGR_HOME and TMPDIR in one short-lived directory, and the real `mngr` in it.

`remove` is strict on purpose: a test whose agents outlive it fails, because so would the user's machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mngr.e2e.sandbox import Sandbox, processes
from mngr.hosts.local import end_of_server, socket_path

T = TypeVar("T")
BIN = Path(sys.executable).parent


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Home:
    """A sandbox of mngr.e2e, with mngr's own directory in it."""

    def __init__(self) -> None:
        self._sandbox = Sandbox()
        self.root = self._sandbox.root
        self.path = self._sandbox.home
        self.mngr_home = self.root / "m"
        self.cwd = self.path  # where `mngr` runs; the `repo` fixture moves it into the repository
        self.env = self._sandbox.env
        self.mngr_home.mkdir()
        self._sandbox.work.rmdir()  # tests of mngr have a repository instead
        self.env |= {"MNGR_HOME": str(self.mngr_home), "GIT_CONFIG_NOSYSTEM": "1"}
        (self.path / ".gitconfig").write_text(
            "[user]\n\tname = Test User\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        self._sandbox.at_end(end_of_server(str(self.mngr_home)))

    @property
    def socket(self) -> Path:
        """Where this home's private tmux server listens."""
        return Path(socket_path(str(self.mngr_home)))

    def run(self, *argv: str, cwd: Path | None = None, input: str | None = None, check: bool = True) -> str:
        """Another program (git, sh) in this home; gives its output."""
        where = cwd or self.cwd
        done = subprocess.run(argv, cwd=where, env=self.env, input=input, text=True, capture_output=True, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)} exited {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def tmux(self, *words: str, check: bool = True) -> str:
        return self.run("tmux", "-S", str(self.socket), *words, check=check)

    def processes(self) -> dict[int, str]:
        """Every process that has this home in its environment or works in it: pid to command line."""
        return processes(self.root)

    def remove(self) -> None:
        self._sandbox.remove()
        assert not self.processes(), f"still running: {self.processes()}"
        assert not self.root.exists(), f"could not remove {self.root}: {os.listdir(self.root)}"


class Mngr:
    """The `mngr` of this environment as a function: `mngr("list")`, `mngr.ok("stop", "foo")`, `mngr.json("list")`."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.program = str(BIN / "mngr")
        self._started: list[subprocess.Popen[str]] = []

    def __call__(
        self,
        *words: str,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 60,
    ) -> Result:
        done = subprocess.run(
            [self.program, *words],
            input=input if input is not None else "",
            env={**self.home.env, **(env or {})},
            cwd=cwd or self.home.cwd,
            timeout=timeout,
            text=True,
            capture_output=True,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, **how: Any) -> str:
        result = self(*words, **how)
        assert result.code == 0, f"mngr {' '.join(words)} exited {result.code}\n{result.out}{result.err}"
        return result.out

    def json(self, *words: str, **how: Any) -> Any:
        """The words get a `--json`, before any `--`, unless they have one."""
        line = list(words)
        if "--json" not in line:
            line.insert(line.index("--") if "--" in line else len(line), "--json")
        return json.loads(self.ok(*line, **how))

    def popen(
        self, *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, **how: Any
    ) -> subprocess.Popen[str]:
        """Running, with pipes on its three streams; ended with the test at the latest."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process: subprocess.Popen[str] = subprocess.Popen(
            [self.program, *words],
            env={**self.home.env, **(env or {})},
            cwd=cwd or self.home.cwd,
            text=True,
            **{**pipes, **how},
        )
        self._started.append(process)
        return process

    def end_started(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(10)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream and not stream.closed:
                    try:
                        stream.close()
                    except BrokenPipeError:
                        pass


def wait_until(predicate: Callable[[], T], deadline: float = 10, what: str = "") -> T:
    """What the predicate gives as soon as it is true. Only for what has no event to wait for."""
    end = time.monotonic() + deadline
    while not (value := predicate()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline:g} s in vain" + (f" for {what}" if what else f", last: {value!r}"))
        time.sleep(0.02)
    return value


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return os.path.exists(f"/proc/{pid}")
