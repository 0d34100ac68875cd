"""One connection to the model server: HTTP in, the plan of the script carried out, HTTP out."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from time import monotonic
from typing import TYPE_CHECKING

from mngr.dev import anthropic, chat, responses
from mngr.dev.body import NotReadable, read_body
from mngr.dev.exchange import Answer, Event, Json, Turn, Usage, Wire, new_id
from mngr.dev.script import BadScript, Plan, Script

if TYPE_CHECKING:
    from mngr.dev.model_server import Http

WHAT_IT_IS = "scripted, not a model"
MODEL = {"id": "scripted", "object": "model", "type": "model", "display_name": f"mngr ({WHAT_IT_IS})", "created": 0}
WIRES: dict[str, Wire] = {"/v1/messages": anthropic, "/v1/responses": responses, "/v1/chat/completions": chat}


class ClientLeft(ConnectionError):
    """The client closed the connection, or the server is closing all of them."""


class Handler(BaseHTTPRequestHandler):
    server: Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    status: int | None = None  # what the client has been told so far about the request at hand

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal: the ledger has it."""

    def do_HEAD(self) -> None:
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        owner = self.server.owner
        match self._path():
            case "/":
                self._send(200, f"mngr dev model-server: {WHAT_IT_IS}\n".encode(), "text/plain")
            case "/v1/models":
                self._send_json(200, {"object": "list", "data": [MODEL], "models": [], "has_more": False})
            case "/_log":
                self._send_json(200, owner.requests())
            case "/_usage":
                self._send_json(200, owner.usage())
            case path:
                self._send_json(404, responses.error(404, f"there is no {path} here"))

    def do_POST(self) -> None:
        path = self._path()
        wire = WIRES.get(path.removesuffix("/count_tokens"), responses)
        try:
            body = read_body(self.rfile, self.headers)
        except NotReadable as error:
            self.close_connection = True  # where its next request begins is not known
            self._refuse(wire, error.status, str(error))
            return
        if path in WIRES:
            self._converse(wire, body)
        elif path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": max(1, len(body) // 4)})
        elif path == "/_script":
            self._replace_script(body)
        else:
            self._refuse(wire, 404, f"there is no {path} here")

    def _replace_script(self, body: bytes) -> None:
        try:
            self.server.owner.script = Script.load(body.decode(errors="replace"))
        except BadScript as error:
            self._send(400, f"{error}\n".encode(), "text/plain")
        else:
            self._send(200, b"", "text/plain")

    def _refuse(self, wire: Wire, status: int, why: str) -> None:
        ledger = self.server.owner.ledger
        ledger.complete(ledger.begin(self._path(), None), {"refused": why}, status, None, None)
        self._send_json(status, wire.error(status, why))

    # The answer of a model.

    def _converse(self, wire: Wire, body: bytes) -> None:
        try:
            turn = wire.read(json.loads(body))
        except (ValueError, TypeError, AttributeError) as error:
            self._refuse(wire, 400, f"this is no request of this protocol: {error}")
            return
        owner = self.server.owner
        entry = owner.ledger.begin(self._path(), turn)
        plan = owner.script.plan(turn)
        usage = wire.counted({**usual_usage(entry["n"]), **(plan.usage or {})})
        answer = Answer(new_id(wire.ID_PREFIX), turn.model, plan.say, plan.call, usage)
        told = describe(plan, turn)
        self.status = None

        def complete(status: int | None) -> None:
            """To be called before the last byte goes out: whoever has the answer finds it in the log."""
            is_handed_out = not plan.fault and (turn.with_usage or not turn.stream)
            owner.ledger.complete(entry, told, status, usage if is_handed_out else None, answer.id)

        try:
            self._pause(plan.delay)
            if plan.fault:
                self._fail(wire, turn, answer, plan, complete)
            elif turn.stream:
                *events, last = wire.events(answer, turn)
                self._begin_stream()
                self._send_events(events, plan.pace)
                self._pause(0)
                complete(200)
                self._send_events([last])
                self._end_stream()
            else:
                complete(200)
                self._send_json(200, wire.whole(answer))
        except ConnectionError:
            self.close_connection = True
            if "answered" not in entry:
                owner.ledger.complete(entry, {**told, "left": True}, self.status, None, answer.id)

    def _fail(self, wire: Wire, turn: Turn, answer: Answer, plan: Plan, complete: Callable[[int | None], None]) -> None:
        fault = plan.fault or {}
        if "hang" in fault:
            self._pause(fault["hang"])
            complete(None)
            self.close_connection = True
        elif "status" in fault:
            headers = {"retry-after": str(fault["retry_after"])} if "retry_after" in fault else {}
            headers |= {name: str(value) for name, value in fault.get("headers", {}).items()}
            complete(fault["status"])
            message = fault.get("message", f"the script says {fault['status']}")
            self._send_json(fault["status"], wire.error(fault["status"], message), headers)
        elif turn.stream:
            events = list(wire.events(answer, turn))
            self._begin_stream()
            if "malformed" in fault:
                self._send_events(events[:1])
                complete(200)
                self._send_chunk(b'data: {"type": \n\n')
                self._end_stream()
            else:
                self._send_events(first_texts(events, fault["cut"]), plan.pace)
                complete(200)
                self.close_connection = True  # without the chunk that would end the stream
        else:
            body = json.dumps(wire.whole(answer)).encode()
            part = body[: len(body) // 2]
            complete(200)
            self._send(200, part, "application/json", length=len(part) if "malformed" in fault else len(body))
            self.close_connection = True

    def _pause(self, seconds: float) -> None:
        """Raises ClientLeft as soon as nobody waits for the answer any more."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        end = monotonic() + seconds
        while ready := poll.poll(max(0, end - monotonic()) * 1000):
            [(_, seen)] = ready
            if seen & (select.POLLHUP | select.POLLERR) or not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientLeft
            poll.modify(self.connection, 0)  # its next request is there already: from now on, only a hang-up counts

    # HTTP.

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _send(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        size = len(body) if length is None else length
        self._send_head(status, {"content-type": kind, "content-length": str(size), **(headers or {})})
        self.wfile.write(body)

    def _send_json(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", headers)

    def _begin_stream(self) -> None:
        kind = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
        self._send_head(200, kind)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.send_response(status)
        for name, value in {**headers, "x-mngr-model-server": WHAT_IT_IS}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_events(self, events: list[Event], pace: float = 0) -> None:
        for event in events:
            if event.is_text and pace:
                self._pause(pace)
            name = f"event: {event.name}\n" if event.name else ""
            data = event.data if isinstance(event.data, str) else json.dumps(event.data)
            self._send_chunk(f"{name}data: {data}\n\n".encode())

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self._send_chunk(b"")


def usual_usage(n: int) -> Usage:
    """Different for each request, so that a sum proves that each of them was counted, and once."""
    return {
        "input": 100 + n,
        "cache_read": 1000 + n,
        "cache_write_5m": 20,
        "cache_write_1h": 0,
        "output": 40 + n,
        "reasoning": 5,
    }


def first_texts(events: list[Event], count: int) -> list[Event]:
    """The events up to that many pieces of text, and never all of them."""
    begun = []
    for event in events[:-1]:
        if event.is_text:
            if count == 0:
                break
            count -= 1
        begun.append(event)
    return begun


def describe(plan: Plan, turn: Turn) -> Json:
    if plan.fault:
        return {"fault": plan.fault}
    told: Json = {"say": plan.say} if plan.say else {}
    if plan.call:
        told["call"] = plan.call._asdict()
    if turn.is_aside:
        told["aside"] = True
    return told
