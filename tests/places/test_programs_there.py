"""The programs of agents on other machines: looked for, installed when somebody asks for it, and there as they are
here. The npm is the real one; its registry has one package, whose program leads to the real Claude Code."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mngr.dev.model_server import ModelServer
from mngr.e2e.terminal import Terminals
from tests.home import Home, Mngr
from tests.places.network import Machine
from tests.places.reach_back import put, way_back
from tests.real.steps import answers, at_rest, make, state, tell
from tests.real_programs import programs, server

__all__ = ["programs", "server"]  # fixtures
PACKAGE = "@anthropic-ai/claude-code"
KEY = "sk-ant-dummy-0123456789abcdefghij"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry(home: Home) -> Iterator[int]:
    """The port of a registry with that package alone."""
    place = home.root / "registry"
    (place / "@anthropic-ai").mkdir(parents=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place))) as http:
        port = http.server_address[1]
        manifest = {"name": PACKAGE, "version": "2.1.0", "bin": {"claude": "claude"}}
        archive = packed({"package.json": json.dumps(manifest), "claude": '#!/bin/sh\nexec /srv/claude "$@"\n'})
        checksum = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        dist = {"tarball": f"http://127.0.0.1:{port}/package.tgz", "integrity": f"sha512-{checksum}"}
        known = {"name": PACKAGE, "dist-tags": {"latest": "2.1.0"}, "versions": {"2.1.0": {**manifest, "dist": dist}}}
        (place / "package.tgz").write_bytes(archive)
        (place / PACKAGE).write_text(json.dumps(known))
        serving = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        yield port
        http.shutdown()
        serving.join()


def packed(files: dict[str, str]) -> bytes:
    """As npm packs them."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def test_a_program_is_installed_there_when_asked_and_is_as_it_is_here(
    mngr: Mngr, home: Home, repo: Path, box: Machine, programs: Path, server: ModelServer, registry: int
) -> None:
    put(programs / "claude", box, "/srv/claude")
    box.run("cat >.npmrc", input=f"registry=http://127.0.0.1:{registry}/\nupdate-notifier=false\n")
    given = [f"ANTHROPIC_BASE_URL={server.url}", f"ANTHROPIC_API_KEY={KEY}"]
    create = ["far@box.ssh", "claude", *(word for each in given for word in ("-e", each))]

    refused = mngr("create", *create)
    assert (refused.code, "there is no program called claude on box.ssh" in refused.err) == (1, True), refused.err
    lacking = mngr("host", "check", "box.ssh", "claude")
    assert lacking.code == 1
    assert "claude is missing  ->  mngr host check box.ssh claude --install" in lacking.out
    with way_back(box, registry):
        installed = mngr("host", "check", "box.ssh", "claude", "--install")
    assert (installed.code, "box.ssh: claude 2.1" in installed.out) == (0, True), installed

    with way_back(box, int(server.url.rpartition(":")[2])):
        make(mngr, *create)
        assert state(mngr, "far") == "waiting (ready)"
        assert tell(mngr, "far", "RUN: hostname") == "waiting (turn over)"
        assert answers(server)[-1] == "DONE: box"
        terminals = Terminals(home.root, None)
        try:
            terminal = terminals.spawn("mngr connect far", "t", home.env, home.cwd, 100, 30)
            terminal.wait_for_text("DONE: box").type("SAY: by hand").press("Enter").wait_for_text("by hand")
        finally:
            terminals.close()
        at_rest(mngr, "far")
        assert KEY not in box.run("cat .mngr/agents/*/claude/settings.json; ps -A -o args")
        mngr.ok("destroy", "-f", "far")


def test_what_cannot_be_installed_is_said(mngr: Mngr, repo: Path, box: Machine) -> None:
    def refused(*words: str) -> str:
        result = mngr("host", "check", *words)
        assert result.code in (1, 2), result
        return result.err

    assert "agents of the type command need no program" in refused("box.ssh", "command")
    assert "there is no agent type 'cloude'" in refused("box.ssh", "cloude")
    here = refused("local", "claude", "--install")
    assert "mngr does not install claude on local\nhint: npm install -g @anthropic-ai/claude-code" in here
    box.run("useradd -m -s /bin/sh ada; usermod -p '*' ada; cp -r .ssh ~ada; chown -R ada ~ada")
    mngr.ok("host", "add", "ada.ssh", "--with", f"target=ada@{box.address}")
    assert "npm on ada.ssh failed: you may not write to /" in refused("ada.ssh", "claude", "--install")
    box.run("rm -rf /usr/bin/npm /etc/apt/sources.list* /var/lib/apt/lists/*; : >/var/lib/dpkg/status")
    without = refused("box.ssh", "claude", "--install")
    assert "apt-get on box.ssh failed" in without
    assert "hint: install npm there yourself" in without
