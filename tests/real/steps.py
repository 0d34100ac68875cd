"""What tests do with the agents of real programs again and again. Asked from outside, as in tests/agents.py."""

from __future__ import annotations

from typing import Any

from mngr.dev.model_server import ModelServer
from tests.agents import agent
from tests.home import Mngr, wait_until

PATIENCE = "60"  # seconds, as `--timeout` takes them: a start costs a second of a core that others use too


def at_rest(mngr: Mngr, *names: str) -> str:
    """The state of the first, once none of them works any more."""
    mngr.ok("wait", *names, "--for", "waiting", "--timeout", PATIENCE, timeout=70)
    return state(mngr, names[0])


def make(mngr: Mngr, name: str, type: str, *options: str) -> None:
    """An agent that is ready for its first message, or has answered that of the options."""
    mngr.ok("create", name, type, *options, timeout=70)
    at_rest(mngr, name)


def tell(mngr: Mngr, name: str, text: str) -> str:
    """The state in which the turn ends that this message begins."""
    mngr.ok("message", name, "-m", text, timeout=70)
    return at_rest(mngr, name)


def state(mngr: Mngr, name: str) -> str:
    """As `list` shows it."""
    found = agent(mngr, name)
    return f"{found['state']} ({found['reason']})" if found["reason"] else str(found["state"])


def becomes(mngr: Mngr, name: str, wanted: str) -> None:
    """For a change that `mngr wait` does not tell: of the reason alone."""
    wait_until(lambda: wanted in state(mngr, name), deadline=30, what=f"{name} to become {wanted}")


def screen(mngr: Mngr, name: str) -> str:
    return mngr.ok("capture", name)


def press(mngr: Mngr, name: str, *keys: str) -> None:
    """As somebody does who sits at its terminal."""
    mngr.home.tmux("send-keys", "-t", f"={agent(mngr, name)['id']}:", *keys)


def answers(server: ModelServer) -> list[str]:
    """What the model has said."""
    return [entry["answered"]["say"] for entry in turns(server) if "say" in entry["answered"]]


def turns(server: ModelServer) -> list[dict[str, Any]]:
    """Its requests, without those in which a program asks for a title or the like."""
    return [entry for entry in server.requests() if entry["tools"] and "aside" not in entry["answered"]]
