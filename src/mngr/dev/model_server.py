"""A local HTTP server that speaks the protocols of model APIs and answers by a script. It is no model, and says so.

    with ModelServer() as server:
        subprocess.run(["claude", "-p", "RUN: make test"], env={**env, "ANTHROPIC_BASE_URL": server.url})
        assert server.texts() == ["RUN: make test"]

A thread for each connection: agents keep few of them, and most of the time they wait."""

from __future__ import annotations

import socket
import sys
from http.server import ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Self

from mngr.dev.exchange import Json, Usage
from mngr.dev.handler import Handler
from mngr.dev.ledger import Ledger
from mngr.dev.script import Script


class ModelServer:
    """Has its port from the first moment, and answers inside `with`."""

    def __init__(self, script: Script | None = None, log: str | None = None, port: int = 0) -> None:
        """Raises OSError when the log cannot be written or the port is taken."""
        self.script = script or Script()  # may be replaced at any time
        self.ledger = Ledger(log)
        try:
            self._http = Http(self, port)
        except OSError:
            self.ledger.close()
            raise
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, name="model server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.hang_up()
        self._http.server_close()  # waits for the threads of all connections
        self.ledger.close()

    def requests(self) -> list[Json]:
        """The log: everything that was answered, in the order in which the answers were complete."""
        return self.ledger.entries()

    def texts(self) -> list[str]:
        """What users said, each of it once, in the order of requests()."""
        return [text for entry in self.requests() for text in entry["new_user_texts"]]

    def usage(self) -> dict[str, Usage]:
        """The sums of what was handed out, for each model."""
        return self.ledger.usage()


class Http(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = False  # so that server_close waits for them

    def __init__(self, owner: ModelServer, port: int) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may leave whenever it likes
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Threads that read, write or pause find their connection closed."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # its client was quicker
