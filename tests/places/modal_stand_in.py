"""A stand-in for Modal, for tests: it speaks Modal's own protocol (gRPC) to the unmodified SDK, and each sandbox is a
podman container. It is not Modal: docs/modal.md says what it proves and what it cannot.

    python -m tests.places.modal_stand_in IMAGE

prints the port that it listens on, on loopback only, and ends with its standard input. Lines of JSON on that make
things go wrong, or ask what has happened; each is answered by one line:

    {"refuse": RPC, "times": N}   the next N calls (of any name, with "*") are answered UNAVAILABLE, and nothing is done
    {"lose": RPC, "times": N}     they are carried out, and the answer is lost
    {"cut": true}                 every connection is dropped, now
    {"stall": true}               nothing passes any more, and nobody is told; until it is false
    {"calls": true}               how often each RPC was called
    {"sandboxes": true}           those that were made, with what they were made of"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from grpclib import GRPCError, Status
from grpclib.server import Server, Stream
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from tests.home import is_alive
from tests.places.modal_machines import OWNER, podman
from tests.places.modal_plane import Control, Router, State
from tests.places.sandboxes import TOKEN_ID, TOKEN_SECRET

ANSWERS_STREAM = {"TaskExecStdioRead", "ImageJoinStreaming"}
TAKES_STREAM = {"TaskExecStdinWriteStream"}


class Faults:
    def __init__(self) -> None:
        self.refused: collections.Counter[str] = collections.Counter()
        self.lost: collections.Counter[str] = collections.Counter()

    def strike(self, left: collections.Counter[str], rpc: str) -> None:
        for name in (rpc, "*"):
            if left[name]:
                left[name] -= 1
                raise GRPCError(Status.UNAVAILABLE, "out of order, as a test wishes")


class Desk:
    """Every call passes here: it is counted, its sender checked, faults strike, and it is done once."""

    def __init__(self, state: State, faults: Faults) -> None:
        self._state, self._faults = state, faults
        self.calls: collections.Counter[str] = collections.Counter()
        self._answers: dict[str, asyncio.Task[Any]] = {}

    def service(self, base: type, implementation: object) -> Any:
        methods = {name: self._method(name, implementation) for name in base.__abstractmethods__}  # type: ignore[attr-defined]
        return type(type(implementation).__name__, (base,), methods)()

    def _method(self, name: str, implementation: object) -> Any:
        async def answer(_: object, stream: Stream[Any, Any]) -> None:
            self.calls[name] += 1
            method = getattr(implementation, name, None)
            if method is None:
                print(f"not in the stand-in: {name}", file=sys.stderr, flush=True)
                raise GRPCError(Status.UNIMPLEMENTED, f"the stand-in has no {name}")
            metadata: Any = stream.metadata or {}
            asked = aiter(stream) if name in TAKES_STREAM else await stream.recv_message()
            self._admit(name, metadata, isinstance(implementation, Router), asked)
            self._faults.strike(self._faults.refused, name)
            if name in ANSWERS_STREAM:
                async for message in method(asked):
                    await stream.send_message(message)
                return
            answered = await self._once(method, asked, metadata.get("x-idempotency-key"))
            self._faults.strike(self._faults.lost, name)
            await stream.send_message(answered)

        return answer

    async def _once(self, method: Any, asked: Any, key: Any) -> Any:
        """A call that is repeated, because its answer was lost, gets the answer of the first. That one is carried out
        to its end, also when its caller has gone."""
        if key is None:
            return await method(asked)
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(method(asked))
        task = self._answers[key]
        try:
            return await asyncio.shield(task)
        except GRPCError:
            del self._answers[key]  # a failure may be tried again
            raise

    def _admit(self, name: str, metadata: Any, to_router: bool, asked: Any) -> None:
        if to_router:
            token = str(metadata.get("authorization", "")).removeprefix("Bearer ")
            task = getattr(asked, "task_id", None)
            if token not in self._state.tokens or (task is not None and self._state.tokens[token] != task):
                raise GRPCError(Status.UNAUTHENTICATED, "the token is not for this task")
            return
        if (metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret")) != (TOKEN_ID, TOKEN_SECRET):
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID or secret is wrong")
        if name.endswith("V2") and metadata.get("x-modal-auth-token") not in self._state.tokens:
            raise GRPCError(Status.UNAUTHENTICATED, "an auth token is missing")


class Front:
    """Passes connections on to the service, so that they can be dropped as a network drops them."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._connections: set[asyncio.StreamWriter] = set()
        self.flows = asyncio.Event()
        self.flows.set()

    async def start(self) -> int:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        for writer in self._connections:
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._socket)
        both = {writer, far_writer}
        self._connections |= both
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        except asyncio.CancelledError:
            pass  # the end of everything
        finally:
            self._connections -= both

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 18):
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one end is gone: so is the other
        writer.close()


async def obey(lines: asyncio.StreamReader, desk: Desk, faults: Faults, front: Front, state: State) -> None:
    """Until nobody says anything any more."""
    while line := await lines.readline():
        wish = json.loads(line)
        told: object = "done"
        if "refuse" in wish:
            faults.refused[wish["refuse"]] = wish["times"]
        elif "lose" in wish:
            faults.lost[wish["lose"]] = wish["times"]
        elif "cut" in wish:
            front.cut()
        elif "stall" in wish:
            (front.flows.clear if wish["stall"] else front.flows.set)()
        elif "calls" in wish:
            told = dict(desk.calls)
        else:
            told = [
                {"id": sandbox.id, "ended": bool(sandbox.status), "tags": sandbox.tags}
                | {"definition": MessageToDict(sandbox.definition, preserving_proto_field_name=True)}
                for sandbox in state.sandboxes.values()
            ]
        print(json.dumps(told), flush=True)


async def remove_images(*, of_the_dead: bool) -> None:
    """Those that were made here; or those of processes like this one that were killed."""
    shown = f'{{{{.Id}}}} {{{{index .Labels "{OWNER}"}}}}'
    for attempt in range(9):
        try:
            listed = await podman("images", "--filter", f"label={OWNER}", "--format", shown)
            break
        except GRPCError as error:  # a list breaks off at an image that another one removes meanwhile
            if attempt == 8 or "image not known" not in str(error):
                raise
    for id, pid in (line.split() for line in set(listed.splitlines())):
        if not is_alive(int(pid)) if of_the_dead else int(pid) == os.getpid():
            await podman("rmi", "--force", id, check=False)


async def serve(image: str, page: int) -> None:
    directory = Path(tempfile.mkdtemp(prefix="mngr-modal-"))
    state, faults = State(image, directory, page, os.getpid()), Faults()
    try:
        await remove_images(of_the_dead=True)
        desk = Desk(state, faults)
        services = [desk.service(ModalClientBase, Control(state)), desk.service(TaskCommandRouterBase, Router(state))]
        server = Server(services)
        await server.start(path=str(directory / "s"))
        front = Front(str(directory / "s"))
        port = await front.start()
        state.url = f"http://127.0.0.1:{port}"
        print(port, flush=True)
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        await obey(lines, desk, faults, front, state)
    finally:
        made = [sandbox.id for sandbox in state.sandboxes.values()]
        if made:
            await podman("rm", "--force", "--time", "0", *made, check=False)
        await remove_images(of_the_dead=False)
        shutil.rmtree(directory)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A stand-in for Modal, for tests.")
    parser.add_argument("image", help="what sandboxes are made of")
    parser.add_argument("--page", type=int, default=3, help="sandboxes on one page of a list")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.image, arguments.page))
