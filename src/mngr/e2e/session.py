"""`E2eSession`, what a test gets as `e2e`: commands and terminals in a world of their own, each step written down."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from mngr.e2e.block import block_id, normalise
from mngr.e2e.command import Result, run
from mngr.e2e.sandbox import Sandbox
from mngr.e2e.transcript import Step, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.artifacts import Artifacts
    from mngr.e2e.redaction import Redaction
    from mngr.e2e.terminal import Terminal, Terminals

TIMEOUT = 60.0  # seconds for a command, if the test does not say otherwise


class E2eSession:
    """`env` is all of the commands' environment and `dir` where they run; a test may change both. `home` is their
    HOME, `root` the directory that holds it all."""

    def __init__(self, sandbox: Sandbox, redaction: Redaction, artifacts: Artifacts | None = None) -> None:
        self.root = sandbox.root
        self.home = sandbox.home
        self.work = self.dir = sandbox.work
        self.env = sandbox.env
        self.artifacts = artifacts.directory if artifacts else None
        self.steps: list[Step] = []
        self._sandbox = sandbox
        self._redaction = redaction
        self._artifacts = artifacts
        self._blocks: list[dict[str, str]] = []
        self._terminals: Terminals | None = None
        self._casts = self.artifacts or self.root / "casts"
        self.env["MNGR_E2E_CASTS"] = str(self._casts)

    def write_tutorial_block(self, text: str) -> None:
        """Cites the block of the tutorial that this test proves, word for word."""
        self._blocks.append({"id": block_id(text), "text": normalise(text)})
        if self._artifacts:
            self._artifacts.cite(self._blocks)

    def run(
        self,
        command: str,
        comment: str | None = None,
        timeout: float | None = TIMEOUT,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
    ) -> Result:
        """The command, in a shell. `env` adds to the environment, `cwd` is below `dir` unless it is absolute. After
        `timeout` seconds it is killed with all of its children; its exit code is 124 then."""
        began, begin = time.time(), time.monotonic()
        try:
            where = Path(self.dir, cwd or "")
            result = run(command, env=self._environment(env), cwd=where, input=input, timeout=timeout)
        except BaseException as error:  # Ctrl-C, or an alarm: what hung is what one wants to know
            said = [("e", f"(no result: {error!r})")]
            self._add("run", began, time.monotonic() - begin, comment, command, lines=said)
            raise
        lines = [(line.stream, line.text) for line in result.lines]
        self._add("run", began, result.duration, comment, command, result.exit_code, result.timed_out, lines)
        return result

    def spawn(
        self,
        command: str,
        comment: str | None = None,
        name: str | None = None,
        width: int = 80,
        height: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
    ) -> Terminal:
        """The command in a terminal of its own, to be typed into and looked at; recorded as `NAME.cast`."""
        from mngr.e2e.terminal import Terminals

        if self._terminals is None:
            self._casts.mkdir(exist_ok=True)
            self._terminals = Terminals(self.root, self._casts)
        began, begin = time.time(), time.monotonic()
        name = name or f"terminal-{sum(step.kind == 'spawn' for step in self.steps) + 1}"
        where = Path(self.dir, cwd or "")
        terminal = self._terminals.spawn(command, name, self._environment(env), where, width, height)
        terminal.tell = self._tell
        self._add("spawn", began, time.monotonic() - begin, comment, command)
        return terminal

    def at_end(self, command: str) -> None:
        """A shell command that ends what would outlive the test: a server that cleared its environment, say. Run when
        the test is over, and also when pytest was killed."""
        self._sandbox.at_end(command)

    def variables(self) -> dict[str, str]:
        """Names for what differs from run to run, for snapshots."""
        return {"WORK": str(self.dir), "HOME": str(self.home), "ROOT": str(self.root)}

    def folded(self) -> str:
        """For a report, in which secrets have no place either."""
        return self._redaction.of_text(fold(self.steps))

    def close(self, status: str, duration: float, failure: str | None, keep: bool = False) -> None:
        """Recordings first, which need what they record; then all else."""
        try:
            self._finish_casts()
        finally:
            if self._artifacts:
                self._artifacts.finish(status, duration, failure)
            if keep:
                self._sandbox.keep()
            else:
                self._sandbox.remove()

    def amend(self, status: str, failure: str) -> None:
        """What came of the test after all."""
        if self._artifacts:
            self._artifacts.finish(status, None, failure)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        whole = {**self.env, **(more or {})}
        self._redaction.learn(whole)
        return whole

    def _finish_casts(self) -> None:
        if self._terminals:
            self._terminals.close()
        if not (self._casts.is_dir() and any(self._casts.glob("*.cast"))):
            return
        from mngr.e2e.cast import add_markers
        from mngr.e2e.recorder import stop_recorders

        stop_recorders(self._casts)
        for path in self._casts.glob("*.cast"):
            try:
                add_markers(path, [(step.time, step.label) for step in self.steps])
            except ValueError:
                pass  # the test has written over it: it is no recording any more

    def _tell(self, kind: str, text: str, began: float, duration: float) -> None:
        """A terminal's own steps."""
        self._add(kind, began, duration, None, text)

    def _add(
        self,
        kind: str,
        began: float,
        duration: float,
        comment: str | None,
        command: str | None,
        exit_code: int | None = None,
        timed_out: bool = False,
        lines: list[tuple[str, str]] | None = None,
    ) -> None:
        n = len(self.steps) + 1
        step = Step(n, began, duration, kind, comment, command, exit_code, timed_out, lines or [])
        self.steps.append(step)
        if self._artifacts:
            self._artifacts.add(step)
