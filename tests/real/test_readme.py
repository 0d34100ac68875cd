"""The README's example with Claude Code is what happens, but for the figures of its bill."""

from __future__ import annotations

import re
import time

import pytest

from mngr.dev.model_server import ModelServer
from mngr.dev.script import Script
from tests.e2e.test_docs import LOOKS, ROOT, blocks, run, steady
from tests.home import Home

SAID = "The session cookie was SameSite=Strict. It is Lax now, and a test covers it."


@pytest.mark.usefixtures("repo")
def test_the_example_with_claude(home: Home, server: ModelServer) -> None:
    go = home.root / "go"  # it is at work until it has been told something more
    at_work = f"until [ -e {go} ]; do sleep 0.1; done"
    server.script = Script(
        [
            {"when": "login fails", "run": at_work},
            {"when": "documents", "run": "touch changed"},
            {"when": "", "say": SAID},
        ]
    )
    (block,) = blocks(ROOT / "README.md", "shellsession")
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = example.partition("\n")
        said = run(home, command)
        deadline = time.monotonic() + 20
        while command.startswith(LOOKS) and steady(said) != steady(shown) and time.monotonic() < deadline:
            said = run(home, command)
        assert without_figures(said) == without_figures(shown), f"$ {command}\n{said}"
        if command.startswith("mngr message"):
            go.touch()


def without_figures(output: str) -> str:
    return re.sub(r"\$?\b[\d,.]+\b", "N", steady(output))
