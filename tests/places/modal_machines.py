"""What the stand-in for Modal runs sandboxes in: each is a podman container, each exec a `podman exec` in it.

What a command prints is kept in a file until its sandbox is gone, because a client that lost its connection asks again
from the offset that it has reached."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import struct
import termios
import tty
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api

CHUNK = 65536
OWNER = "mngr.stand-in.process"  # label of images that are made here

_numbers = itertools.count(1)


async def podman(*words: str, check: bool = True, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *("podman", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    out, err = await process.communicate(input)
    if check and process.returncode:
        raise GRPCError(Status.INTERNAL, f"podman {words[0]}: {err.decode()[-500:].strip()}")
    return out.decode().strip()


async def commit(container: str) -> str:
    """Its files as an image: the id of that."""
    return await podman("commit", "--quiet", "--change", f"LABEL {OWNER}={os.getpid()}", container)


class Sandbox:
    def __init__(self, app: str, definition: api.Sandbox, tags: Mapping[str, str]) -> None:
        # Ids that end in V belong to the current kind of sandboxes: the SDK tells them by it.
        self.id = f"sb-{uuid.uuid4().hex[:22]}V"
        self.task = f"ta-{uuid.uuid4().hex[:22]}V"
        self.app, self.definition, self.tags = app, definition, dict(tags)
        self.created = float(next(_numbers))  # strictly growing, for pages
        self.status, self.code = api.GenericResult.GENERIC_STATUS_UNSPECIFIED, 0
        self.ended = asyncio.Event()
        self.snapshots: dict[str, asyncio.Task[str]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def start(self, image: str, env: Mapping[str, str]) -> None:
        definition = self.definition
        words = ["run", "--detach", "--name", self.id, "--network=none"]
        words += [word for key in env for word in ("--env", key)]
        if definition.resources.memory_mb_max:
            words.append(f"--memory={definition.resources.memory_mb_max}m")
        if definition.workdir:
            words.append(f"--workdir={definition.workdir}")
        command = list(definition.entrypoint_args) or ["sleep", "100000"]
        await podman(*words, image, *command, env=env)
        await self._lay_routes()
        self._watching = asyncio.create_task(self._watch())

    async def _lay_routes(self) -> None:
        """A network that leads nowhere, but into which there are routes or are not, as it was wished: what runs in the
        container has no right to change them."""
        access = self.definition.network_access
        if self.definition.block_network or access.network_access_type == api.NetworkAccess.BLOCKED:
            return
        limited = access.network_access_type == api.NetworkAccess.ALLOWLIST
        routes = list(access.allowed_cidrs) if limited else ["default"]
        pid = await podman("inspect", "--format", "{{.State.Pid}}", self.id)
        if pid == "0":
            return  # it has ended already
        script = """
            ip link add eth0 type veth peer name nowhere
            ip addr add 192.0.2.15/32 dev eth0
            ip link set nowhere up
            ip link set eth0 up
            for route; do ip route add "$route" dev eth0; done
        """
        words = ("nsenter", f"--net=/proc/{pid}/ns/net", "sh", "-euc", script, "sh", *routes)
        process = await asyncio.create_subprocess_exec(*words)
        if await process.wait():
            raise GRPCError(Status.INTERNAL, "the network could not be made")

    async def _watch(self) -> None:
        try:
            code = await asyncio.wait_for(podman("wait", self.id, check=False), self.definition.timeout_secs or None)
        except TimeoutError:
            await self._end(api.GenericResult.GENERIC_STATUS_TIMEOUT)
            code = ""
        if not self.status:
            self.code = int(code or 0)
            result = api.GenericResult
            self.status = result.GENERIC_STATUS_FAILURE if self.code else result.GENERIC_STATUS_SUCCESS
        self.ended.set()

    async def terminate(self) -> None:
        if not self.status:
            await self._end(api.GenericResult.GENERIC_STATUS_TERMINATED)

    async def _end(self, status: api.GenericResult.GenericStatus.ValueType) -> None:
        self.status, self.code = status, 137
        await podman("kill", self.id, check=False)

    async def snapshot(self, id: str) -> str:
        """The same for the same id, also when it is asked for again before it is made."""
        if id not in self.snapshots:
            self.snapshots[id] = asyncio.create_task(commit(self.id))
        return await self.snapshots[id]

    def result(self) -> api.GenericResult:
        return api.GenericResult(status=self.status, exitcode=self.code)


class Exec:
    """One command in a sandbox. `start` is idempotent for its caller, who asks by an id."""

    def __init__(self, directory: Path, pty: bool) -> None:
        self._paths = {fd: directory / f"{uuid.uuid4().hex}.{fd}" for fd in (1, 2)}
        self._open = {1, 2}
        self._news = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self._stdin: Any = None
        self._pty = pty
        self._tasks: set[asyncio.Task[None]] = set()
        self.code: int | None = None
        self.written, self.closed = 0, False
        for path in self._paths.values():
            path.touch()

    @classmethod
    async def start(
        cls,
        sandbox: Sandbox,
        directory: Path,
        command: list[str],
        env: Mapping[str, str],
        workdir: str,
        pty: api.PTYInfo,
    ) -> Self:
        self = cls(directory, pty.enabled)
        words = ["podman", "exec", "--interactive", *(word for key in env for word in ("--env", key))]
        if workdir:
            words += ["--workdir", workdir]
        if pty.enabled:
            words += ["--tty", f"--env=TERM={pty.env_term or 'xterm'}"]
        words += [sandbox.id, *command]
        await (self._start_pty(words, env, pty) if pty.enabled else self._start_pipes(words, env))
        return self

    async def _start_pipes(self, words: list[str], env: Mapping[str, str]) -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **env}
        )
        self._process, self._stdin = process, process.stdin
        assert process.stdout
        assert process.stderr
        self._run(self._wait(self._run(self._pump(1, process.stdout)), self._run(self._pump(2, process.stderr))))

    async def _start_pty(self, words: list[str], env: Mapping[str, str], pty: api.PTYInfo) -> None:
        ours, theirs = os.openpty()
        tty.setraw(theirs)  # what is typed is echoed by the terminal inside
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", pty.winsz_rows or 24, pty.winsz_cols or 80, 0, 0))
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env}, start_new_session=True
            )
        finally:
            os.close(theirs)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", buffering=0)
        )
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(ours, "wb", buffering=0)
        )
        self._process, self._stdin = process, asyncio.StreamWriter(transport, protocol, None, loop)
        self._open = {1}
        self._run(self._wait(self._run(self._pump(1, reader))))

    def _run(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        return task

    async def _pump(self, fd: int, stream: asyncio.StreamReader) -> None:
        with open(self._paths[fd], "ab", buffering=0) as file:
            while True:
                try:
                    data = await stream.read(CHUNK)
                except OSError:  # how a terminal says that nobody is there any more
                    break
                if not data:
                    break
                file.write(data)
                async with self._news:
                    self._news.notify_all()
        async with self._news:
            self._open.discard(fd)
            self._news.notify_all()

    async def _wait(self, *pumps: asyncio.Task[None]) -> None:
        assert self._process
        code = await self._process.wait()
        await asyncio.gather(*pumps)
        async with self._news:
            self.code = code
            self._news.notify_all()
        self._stdin.close()

    async def read(self, fd: int, offset: int) -> AsyncIterator[bytes]:
        with open(self._paths[fd], "rb") as file:
            file.seek(offset)
            while True:
                async with self._news:
                    data = file.read(CHUNK)
                    if not data:
                        if fd not in self._open:
                            return
                        await self._news.wait()
                        continue
                yield data

    async def write(self, offset: int, data: bytes, *, end: bool) -> None:
        """What has been written already is not written again: the client repeats what was not answered."""
        if offset > self.written:
            raise GRPCError(Status.INVALID_ARGUMENT, f"offset {offset} is beyond {self.written}")
        data = data[self.written - offset :]
        if data and not self.closed:
            self.written += len(data)
            try:
                self._stdin.write(data)
                await self._stdin.drain()
            except ConnectionError:
                raise GRPCError(Status.FAILED_PRECONDITION, "stdin is closed") from None
        if end and not self.closed:
            self.closed = True
            if not self._pty:
                self._stdin.close()

    async def wait(self) -> int:
        async with self._news:
            await self._news.wait_for(lambda: self.code is not None)
        assert self.code is not None
        return self.code
