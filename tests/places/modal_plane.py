"""The two services of Modal that the SDK talks to when it works with sandboxes, as far as the stand-in has them: the
control plane, and the router of commands into a sandbox. Whatever is not here is answered with UNIMPLEMENTED."""
# ruff: noqa: N802 - names of methods are those of the protocol

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.empty_pb2 import Empty  # type: ignore[import-untyped]
from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as router

from tests.places.modal_machines import OWNER, Exec, Sandbox, podman

BUILDER = "2025.06"
# What `FROM` may name: the image of the tests stands in for all of them.
KNOWN = ("python:", "debian:", "ubuntu:", "alpine:")


class State:
    """What the two services share."""

    def __init__(self, image: str, directory: Path, page: int, owner: int) -> None:
        self.image, self.directory, self.page, self.owner = image, directory, page, owner
        self.url = ""
        self.sandboxes: dict[str, Sandbox] = {}
        self.execs: dict[str, asyncio.Task[Exec]] = {}
        self.images: dict[str, str] = {}  # ours to podman's
        self.secrets: dict[str, tuple[str, dict[str, str]]] = {}  # id to name and content
        self.apps: dict[str, str] = {}
        self.tokens: dict[str, str] = {}  # those that were given out, to the task that they are good for

    def token(self, task: str = "") -> str:
        """Looks like a JWT, because the SDK reads from it when it ends."""
        now = int(time.time())
        head, body = ({"alg": "none"}, {"iat": now, "exp": now + 3600, "jti": uuid.uuid4().hex})
        token = ".".join([*(_base64(json.dumps(part)) for part in (head, body)), "stand-in"])
        self.tokens[token] = task
        return token

    def sandbox(self, id: str) -> Sandbox:
        if id not in self.sandboxes:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {id} not found")
        return self.sandboxes[id]

    def of_task(self, task: str) -> Sandbox:
        for sandbox in self.sandboxes.values():
            if sandbox.task == task and not sandbox.status:
                return sandbox
        raise GRPCError(Status.NOT_FOUND, f"Task {task} not found")

    def environment(self, sources: Any) -> dict[str, str]:
        env: dict[str, str] = {}
        for source in sources:
            if source.secret_id and source.secret_id not in self.secrets:
                raise GRPCError(Status.NOT_FOUND, f"Secret {source.secret_id} not found")
            env |= self.secrets[source.secret_id][1] if source.secret_id else source.env.contents
        return env

    def keep_image(self, image: str) -> str:
        id = f"im-{uuid.uuid4().hex[:22]}"
        self.images[id] = image
        return id


class Control:
    def __init__(self, state: State) -> None:
        self._state = state
        self._builds: dict[str, str] = {}

    async def ClientHello(self, _: Empty) -> api.ClientHelloResponse:
        return api.ClientHelloResponse(image_builder_version=BUILDER)

    async def AuthTokenGet(self, _: api.AuthTokenGetRequest) -> api.AuthTokenGetResponse:
        return api.AuthTokenGetResponse(token=self._state.token())

    async def AppClientDisconnect(self, _: api.AppClientDisconnectRequest) -> Empty:
        return Empty()

    async def AppGetOrCreate(self, asked: api.AppGetOrCreateRequest) -> api.AppGetOrCreateResponse:
        if asked.app_name not in self._state.apps:
            if asked.object_creation_type == api.OBJECT_CREATION_TYPE_UNSPECIFIED:
                raise GRPCError(Status.NOT_FOUND, f"App {asked.app_name} not found")
            self._state.apps[asked.app_name] = f"ap-{uuid.uuid4().hex[:22]}"
        return api.AppGetOrCreateResponse(app_id=self._state.apps[asked.app_name])

    async def EnvironmentGetOrCreate(
        self, asked: api.EnvironmentGetOrCreateRequest
    ) -> api.EnvironmentGetOrCreateResponse:
        settings = api.EnvironmentSettings(image_builder_version=BUILDER)
        metadata = api.EnvironmentMetadata(name=asked.deployment_name or "main", settings=settings)
        return api.EnvironmentGetOrCreateResponse(environment_id="en-stand-in", metadata=metadata)

    async def SecretGetOrCreate(self, asked: api.SecretGetOrCreateRequest) -> api.SecretGetOrCreateResponse:
        for id, (name, _) in self._state.secrets.items():
            if name == asked.deployment_name:
                return api.SecretGetOrCreateResponse(secret_id=id)
        if asked.object_creation_type == api.OBJECT_CREATION_TYPE_UNSPECIFIED:
            raise GRPCError(Status.NOT_FOUND, f"Secret {asked.deployment_name} not found")
        id = f"st-{uuid.uuid4().hex[:22]}"
        self._state.secrets[id] = (asked.deployment_name, dict(asked.env_dict))
        return api.SecretGetOrCreateResponse(secret_id=id)

    async def ImageFromId(self, asked: api.ImageFromIdRequest) -> api.ImageFromIdResponse:
        if asked.image_id not in self._state.images:
            raise GRPCError(Status.NOT_FOUND, f"Image {asked.image_id} not found")
        return api.ImageFromIdResponse(image_id=asked.image_id, metadata=_image_metadata())

    async def ImageGetOrCreate(self, asked: api.ImageGetOrCreateRequest) -> api.ImageGetOrCreateResponse:
        """Built from the dockerfile that the SDK writes, without a network: what installs packages is left out, because
        the image of the tests has what they are for."""
        commands = list(asked.image.dockerfile_commands)
        bases = [base.image_id for base in asked.image.base_images]
        key = json.dumps([commands, bases])
        told = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_SUCCESS)
        if key not in self._builds:
            try:
                self._builds[key] = self._state.keep_image(await self._build(commands, bases))
            except GRPCError as error:
                told = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_FAILURE, exception=error.message or "")
        id = self._builds.get(key) or f"im-{uuid.uuid4().hex[:22]}"
        return api.ImageGetOrCreateResponse(image_id=id, result=told, metadata=_image_metadata())

    async def ImageJoinStreaming(
        self, asked: api.ImageJoinStreamingRequest
    ) -> AsyncIterator[api.ImageJoinStreamingResponse]:
        result = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_SUCCESS)
        yield api.ImageJoinStreamingResponse(result=result, metadata=_image_metadata(), eof=True)

    async def _build(self, commands: list[str], bases: list[str]) -> str:
        lines = [line for command in commands for line in command.splitlines() if line.strip()]
        base = self._state.image
        if bases:
            base = self._state.images[bases[0]]
        elif not any(
            name.startswith(KNOWN) for line in lines for name in line.split()[1:2] if line.startswith("FROM ")
        ):
            raise GRPCError(Status.NOT_FOUND, f"there is no such image: {lines[0]}")
        steps = [line for line in lines if line.split()[0] in ("RUN", "ENV", "WORKDIR") and not _installs(line)]
        if not steps:
            return base
        text = "\n".join([f"FROM {base}", f"LABEL {OWNER}={self._state.owner}", *steps, ""])
        words = ("build", "--quiet", "--network=none", "--file", "-", str(self._state.directory))
        return await podman(*words, input=text.encode())

    async def SandboxCreateV2(self, asked: api.SandboxCreateV2Request) -> api.SandboxCreateV2Response:
        state, definition = self._state, asked.definition
        if definition.name and self._named(asked.app_id, definition.name):
            raise GRPCError(Status.ALREADY_EXISTS, f"Sandbox {definition.name} already exists")
        if definition.timeout_secs > 24 * 3600:
            raise GRPCError(Status.INVALID_ARGUMENT, "a Sandbox lives for 24 hours at most")
        if definition.image_id not in state.images:
            raise GRPCError(Status.NOT_FOUND, f"Image {definition.image_id} not found")
        env = state.environment(asked.secret_sources)
        sandbox = Sandbox(asked.app_id, definition, _tags(asked.tags))
        state.sandboxes[sandbox.id] = sandbox
        try:
            await sandbox.start(state.images[definition.image_id], env)
        except BaseException:
            del state.sandboxes[sandbox.id]
            raise
        return api.SandboxCreateV2Response(
            sandbox_id=sandbox.id,
            task_id=sandbox.task,
            metadata=api.SandboxHandleMetadata(app_id=sandbox.app),
            command_router_access=api.CommandRouterAccess(jwt=state.token(sandbox.task), url=state.url),
        )

    async def SandboxGetCommandRouterAccess(
        self, asked: api.SandboxGetCommandRouterAccessRequest
    ) -> api.SandboxGetCommandRouterAccessResponse:
        sandbox = self._state.sandbox(asked.sandbox_id)
        if sandbox.status:
            raise GRPCError(Status.FAILED_PRECONDITION, f"Sandbox {sandbox.id} has already finished")
        token = self._state.token(sandbox.task)
        return api.SandboxGetCommandRouterAccessResponse(jwt=token, url=self._state.url)

    async def SandboxGetTaskIdV2(self, asked: api.SandboxGetTaskIdRequest) -> api.SandboxGetTaskIdResponse:
        sandbox = self._state.sandbox(asked.sandbox_id)
        return api.SandboxGetTaskIdResponse(
            task_id=sandbox.task, task_result=sandbox.result() if sandbox.status else None
        )

    async def SandboxWaitV2(self, asked: api.SandboxWaitRequest) -> api.SandboxWaitResponse:
        sandbox = self._state.sandbox(asked.sandbox_id)
        if asked.timeout:
            try:
                await asyncio.wait_for(sandbox.ended.wait(), asked.timeout)
            except TimeoutError:
                pass
        metadata = api.SandboxHandleMetadata(app_id=sandbox.app)
        result = sandbox.result() if sandbox.ended.is_set() else api.GenericResult()
        return api.SandboxWaitResponse(result=result, metadata=metadata)

    async def SandboxTerminateV2(self, asked: api.SandboxTerminateRequest) -> api.SandboxTerminateResponse:
        await self._state.sandbox(asked.sandbox_id).terminate()
        return api.SandboxTerminateResponse()

    async def SandboxListV2(self, asked: api.SandboxListRequest) -> api.SandboxListResponse:
        """The newest first, page by page."""
        wanted = _tags(asked.tags).items()
        found = [
            sandbox
            for sandbox in sorted(self._state.sandboxes.values(), key=lambda sandbox: -sandbox.created)
            if (asked.include_finished or not sandbox.status)
            and asked.app_id in ("", sandbox.app)
            and wanted <= sandbox.tags.items()
            and not (asked.before_timestamp and sandbox.created >= asked.before_timestamp)
        ]
        return api.SandboxListResponse(sandboxes=[_info(sandbox) for sandbox in found[: self._state.page]])

    async def SandboxGetFromNameV2(self, asked: api.SandboxGetFromNameRequest) -> api.SandboxGetFromNameResponse:
        sandbox = self._named(self._state.apps.get(asked.app_name, ""), asked.sandbox_name)
        if sandbox is None:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {asked.sandbox_name} not found")
        metadata = api.SandboxHandleMetadata(app_id=sandbox.app)
        return api.SandboxGetFromNameResponse(sandbox_id=sandbox.id, metadata=metadata)

    async def SandboxGetFromName(self, asked: api.SandboxGetFromNameRequest) -> api.SandboxGetFromNameResponse:
        """The SDK looks among sandboxes of the older kind too: here are none."""
        raise GRPCError(Status.NOT_FOUND, f"Sandbox {asked.sandbox_name} not found")

    async def SandboxTagsGetV2(self, asked: api.SandboxTagsGetRequest) -> api.SandboxTagsGetResponse:
        tags = self._state.sandbox(asked.sandbox_id).tags
        return api.SandboxTagsGetResponse(tags=_tag_messages(tags))

    async def SandboxTagsSetV2(self, asked: api.SandboxTagsSetRequest) -> Empty:
        self._state.sandbox(asked.sandbox_id).tags = _tags(asked.tags)
        return Empty()

    def _named(self, app: str, name: str) -> Sandbox | None:
        for sandbox in self._state.sandboxes.values():
            if sandbox.app == app and sandbox.definition.name == name and not sandbox.status:
                return sandbox
        return None


class Router:
    def __init__(self, state: State) -> None:
        self._state = state

    async def TaskExecStart(self, asked: router.TaskExecStartRequest) -> router.TaskExecStartResponse:
        state = self._state
        if asked.exec_id not in state.execs:
            sandbox = state.of_task(asked.task_id)
            env = state.environment(asked.secret_sources)
            command = list(asked.command_args)
            start = Exec.start(sandbox, state.directory, command, env, asked.workdir, asked.pty_info)
            state.execs[asked.exec_id] = asyncio.create_task(start)
        await state.execs[asked.exec_id]
        return router.TaskExecStartResponse()

    async def TaskExecStdioRead(
        self, asked: router.TaskExecStdioReadRequest
    ) -> AsyncIterator[router.TaskExecStdioReadResponse]:
        fd = 1 if asked.file_descriptor == router.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT else 2
        command = await self._exec(asked.exec_id)
        async for data in command.read(fd, asked.offset):
            yield router.TaskExecStdioReadResponse(data=data)

    async def TaskExecStdinWrite(self, asked: router.TaskExecStdinWriteRequest) -> router.TaskExecStdinWriteResponse:
        await (await self._exec(asked.exec_id)).write(asked.offset, asked.data, end=asked.eof)
        return router.TaskExecStdinWriteResponse()

    async def TaskExecStdinWriteStream(
        self, asked: AsyncIterator[router.TaskExecStdinWriteStreamRequest]
    ) -> router.TaskExecStdinWriteStreamResponse:
        first = (await anext(asked)).start
        command, offset = await self._exec(first.exec_id), first.offset
        async for message in asked:
            await command.write(offset, message.data, end=message.HasField("end"))
            offset += len(message.data)
        return router.TaskExecStdinWriteStreamResponse()

    async def TaskExecStdinStatus(self, asked: router.TaskExecStdinStatusRequest) -> router.TaskExecStdinStatusResponse:
        command = await self._exec(asked.exec_id)
        return router.TaskExecStdinStatusResponse(num_bytes_written=command.written, closed=command.closed)

    async def TaskExecPoll(self, asked: router.TaskExecPollRequest) -> router.TaskExecPollResponse:
        code = (await self._exec(asked.exec_id)).code
        return router.TaskExecPollResponse(**({} if code is None else {"code": code}))

    async def TaskExecWait(self, asked: router.TaskExecWaitRequest) -> router.TaskExecWaitResponse:
        return router.TaskExecWaitResponse(code=await (await self._exec(asked.exec_id)).wait())

    async def TaskSnapshotFilesystem(
        self, asked: router.TaskSnapshotFilesystemRequest
    ) -> router.TaskSnapshotFilesystemResponse:
        image = await self._state.of_task(asked.task_id).snapshot(asked.snapshot_id)
        known = {podmans: ours for ours, podmans in self._state.images.items()}
        return router.TaskSnapshotFilesystemResponse(image_id=known.get(image) or self._state.keep_image(image))

    async def _exec(self, id: str) -> Exec:
        if id not in self._state.execs:
            raise GRPCError(Status.NOT_FOUND, f"Exec {id} not found")
        return await self._state.execs[id]


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _installs(line: str) -> bool:
    return any(word in line for word in ("apt-get", "debconf", "pip install", "/modal_requirements"))


def _image_metadata() -> api.ImageMetadata:
    return api.ImageMetadata(image_builder_version=BUILDER)


def _tags(messages: Any) -> dict[str, str]:
    return {message.tag_name: message.tag_value for message in messages}


def _tag_messages(tags: Mapping[str, str]) -> list[api.SandboxTag]:
    return [api.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]


def _info(sandbox: Sandbox) -> api.SandboxInfo:
    return api.SandboxInfo(
        id=sandbox.id,
        created_at=sandbox.created,
        app_id=sandbox.app,
        name=sandbox.definition.name,
        image_id=sandbox.definition.image_id,
        tags=_tag_messages(sandbox.tags),
        task_info=api.TaskInfo(id=sandbox.task, result=sandbox.result()),
        metadata=api.SandboxHandleMetadata(app_id=sandbox.app),
    )
