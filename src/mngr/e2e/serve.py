"""The combined view on a local port, kept up to date while tests run. An open page holds one request (`/events`, as
an EventSource makes it), over which it is told of a new version; as long as there is such a page, and only then, the
view is built again every half second, which costs little when nothing has changed.

It listens on 127.0.0.1, and answers only to names of this machine: a page from elsewhere could give its own name this
address and read what tests have printed."""

from __future__ import annotations

import os
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from mngr.e2e.view import NotOurs, View

PAUSE = 0.5  # seconds between two looks at the artifacts
_HEARTBEAT = 15.0  # seconds of silence after which a page is written to, to notice that it has gone


class ViewServer:
    """Has its port from the first moment, and answers inside `with`."""

    def __init__(self, view: View, port: int = 0) -> None:
        """Raises OSError when the port is taken, and whatever `view.build` raises."""
        self.view = view
        self.built = view.build()
        self.version = self.built.version
        self.changed = Condition()
        self.pages = 0  # that want to be told
        self.closing = False
        self._http = _Http(self, port)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"
        self._threads = [
            Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            Thread(target=self._watch, daemon=True),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self._http.shutdown()
        for thread in self._threads:
            thread.join()
        self._http.server_close()

    def version_after(self, version: str) -> str:
        """As soon as it is another one; the same after a while, and at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.closing or self.version != version, _HEARTBEAT)
            return self.version

    def _watch(self) -> None:
        told = ""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.closing or self.pages > 0)
                self.changed.wait_for(lambda: self.closing, PAUSE)
                if self.closing:
                    return
            try:
                version = self.view.build().version
            except (OSError, NotOurs) as error:  # a run removed while we looked, a full disk: the next look may succeed
                if str(error) != told:
                    told = str(error)
                    print(f"mngr: {error}", file=sys.stderr)
                continue
            with self.changed:
                if version != self.version:
                    self.version = version
                    self.changed.notify_all()


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: ViewServer, port: int) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a page may be closed whenever its reader likes
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    server: _Http

    def __init__(self, request: Any, client_address: Any, server: _Http) -> None:
        super().__init__(request, client_address, server, directory=str(server.owner.view.output))

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if not self._is_from_here():
            self.send_error(403, "Only names of this machine are answered to")
        elif path == "/events":
            self._tell_versions()
        elif path == "/data/live.js":
            self._answer("text/javascript", b"deliver('live', true);\n")
        elif not self._is_of_the_view(path):
            self.send_error(404)
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        path = urlsplit(self.path).path
        if not self._is_from_here():
            self.send_error(403, "Only names of this machine are answered to")
        elif not self._is_of_the_view(path):
            self.send_error(404)
        else:
            super().do_HEAD()

    def _is_from_here(self) -> bool:
        port = self.server.server_address[1]
        return self.headers.get("Host") in (f"127.0.0.1:{port}", f"localhost:{port}")

    def _is_of_the_view(self, path: str) -> bool:
        """Not its own notes, and not what a link leads to."""
        top = Path(os.path.realpath(self.server.owner.view.output))
        place = Path(os.path.realpath(self.translate_path(path)))
        return place.is_relative_to(top) and not any(part.startswith(".") for part in place.relative_to(top).parts)

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _tell_versions(self) -> None:
        """The page says which version it has; it is told at once when that is an old one."""
        owner = self.server.owner
        had = parse_qs(urlsplit(self.path).query).get("version", [""])[0]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with owner.changed:
            owner.pages += 1
            owner.changed.notify_all()
        try:
            while not owner.closing:
                version = owner.version_after(had)
                self.wfile.write(f"data: {version}\n\n".encode() if version != had else b":\n\n")
                had = version
        finally:
            with owner.changed:
                owner.pages -= 1

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: what is asked for is the page's own files."""
