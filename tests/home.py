"""A world of its own for one test: HOME, MNGR_HOME and TMPDIR in one short-lived directory, and the real `mngr` in it.

`remove` is strict on purpose: what cannot be ended and removed fails the test, because it would stay on the machine."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mngr.e2e.sandbox import Sandbox, processes
from mngr.hosts.sockets import end_of_server, socket_path
from tests import warm

T = TypeVar("T")
BIN = Path(sys.executable).parent


class Result(NamedTuple):
    code: int
    out: str
    err: str


@functools.cache
def _warm() -> warm.Warm:
    made = warm.Warm()
    atexit.register(made.close)
    return made


@functools.cache
def _plugin_index() -> bytes:
    """What mngr remembers of its plugins. Without it each of these worlds would begin with a search for them, which
    costs more than most of what is then done there."""
    with tempfile.TemporaryDirectory() as directory:
        env = {"PATH": os.environ["PATH"], "HOME": directory, "MNGR_HOME": directory}
        subprocess.run([str(BIN / "mngr"), "plugin", "list"], env=env, check=True, capture_output=True, timeout=60)
        return (Path(directory) / "cache" / "plugins.json").read_bytes()


def make_mngr_home(path: Path) -> None:
    """As after the first verb there."""
    (path / "cache").mkdir(parents=True, mode=0o700)
    (path / "cache" / "plugins.json").write_bytes(_plugin_index())


class Home:
    """A sandbox of mngr.e2e, with mngr's own directory in it."""

    def __init__(self) -> None:
        self._sandbox = Sandbox()
        self.root = self._sandbox.root
        self.path = self._sandbox.home
        self.mngr_home = self.root / "m"
        self.cwd = self.path  # where `mngr` runs; the `repo` fixture moves it into the repository
        self.env = self._sandbox.env
        make_mngr_home(self.mngr_home)
        self._sandbox.work.rmdir()  # tests of mngr have a repository instead
        self.env |= {"MNGR_HOME": str(self.mngr_home), "GIT_CONFIG_NOSYSTEM": "1"}
        (self.path / ".gitconfig").write_text(
            "[user]\n\tname = Test User\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        # Most of these worlds never have a server: then the shell that looks is all that runs.
        self._sandbox.at_end(f"[ ! -e {self.socket} ] || {{ {end_of_server(str(self.mngr_home))}; }}")

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
        """Raises when something cannot be ended or removed."""
        self._sandbox.remove()


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
        argv, whole = [self.program, *words], {**self.home.env, **(env or {})}
        if warm.can_run(argv, whole):
            run = _warm().run
        else:
            run = functools.partial(subprocess.run, text=True, capture_output=True)
        done = run(argv, input=input or "", env=whole, cwd=cwd or self.home.cwd, timeout=timeout)
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


def wait_until(predicate: Callable[[], T], deadline: float = 30, what: str = "") -> T:
    """What the predicate gives as soon as it is true. Only for what has no event to wait for."""
    end = time.monotonic() + deadline
    while not (value := predicate()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline:g} s in vain" + (f" for {what}" if what else f", last: {value!r}"))
        time.sleep(0.02)
    return value


def each(works: Iterable[Callable[[], None]]) -> None:
    """All of them at once, in threads; returns when all have ended."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def command_lines() -> list[str]:
    """Of everything that runs here, in containers too."""
    lines = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue  # it has just ended
    assert any("pytest" in line for line in lines), "nobody looked"
    return lines


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return os.path.exists(f"/proc/{pid}")
