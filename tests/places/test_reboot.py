"""A machine loses its power in the middle of things, and its agents go on with what they knew: real Claude Code, with
the scripted model server on this side."""

from __future__ import annotations

from pathlib import Path

from mngr.dev.model_server import ModelServer
from tests.home import Mngr
from tests.places.network import Machine, Network
from tests.places.reach_back import put, way_back
from tests.real.steps import answers, at_rest, make, state, tell, turns
from tests.real_programs import programs, server

__all__ = ["programs", "server"]  # fixtures


def test_agents_of_a_machine_that_was_rebooted_remember(
    mngr: Mngr, repo: Path, box: Machine, over_ssh: Network, programs: Path, server: ModelServer
) -> None:
    put(programs / "claude", box, "/usr/local/bin/claude")
    port = int(server.url.rpartition(":")[2])
    given = (f"ANTHROPIC_BASE_URL={server.url}", "ANTHROPIC_API_KEY=sk-ant-dummy-0123456789abcdefghij")
    quiet = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"
    with way_back(box, port):
        make(mngr, "far@box.ssh", "claude", *(word for each in (*given, quiet) for word in ("-e", each)))
        tell(mngr, "far", "the word is plum")
        mngr.ok("exec", "far", "--", "sh", "-c", "echo half >note")
        box.crash()
    over_ssh.boot("box")
    assert state(mngr, "far") == "stopped (session gone)"
    with way_back(box, port):
        assert mngr.ok("start", "far") == "started far\n"
        assert at_rest(mngr, "far") == "waiting (ready)"
        tell(mngr, "far", "RECALL: word is plum")
        assert answers(server)[-1] == "the word is plum"
        assert len({turn["conversation"] for turn in turns(server)}) == 1
        assert mngr.ok("exec", "far", "--", "cat", "note") == "half\n"
        said = mngr.json("transcript", "far", "--role", "user")
        assert [each["text"] for each in said] == ["the word is plum", "RECALL: word is plum"]
        mngr.ok("destroy", "-f", "far")
