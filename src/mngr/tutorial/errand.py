"""An errand: an agent that is made with a prompt of ours. The prompts are files, beside this one in prompts/; a user's
own, `prompts/NAME.md` in MNGR_HOME, take their place.

Every agent has its prompt in $MNGR_INPUT, so that any program can be sent; one whose program can be talked to also gets
it as a message. A plain command does not: what is typed into it would be taken for its input."""

from __future__ import annotations

import os
from string import Template

from mngr.errors import MngrError
from mngr.fleet.create import create
from mngr.fleet.message import message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.plan import Request
    from mngr.model import Agent

LABEL = "tutorial"  # of the agents that are sent, with the verb that sent them


def prompt(home: str, name: str, **values: str) -> str:
    path = os.path.join(home, "prompts", f"{name}.md")
    if not os.path.exists(path):
        path = os.path.join(os.path.dirname(__file__), "prompts", f"{name}.md")
    with open(path, encoding="utf-8") as file:
        template = Template(file.read())
    try:
        return template.substitute(values).strip() + "\n"
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${key}" for key in values)
        raise MngrError(f"{path}: {error}", f"it may use {known}; a dollar sign itself is $$") from None


def make(fleet: Fleet, request: Request, text: str, tell: Callable[[str], None]) -> Agent:
    return create(fleet, request.replace(inputs=[text]), tell)[0]


def brief(fleet: Fleet, agent: Agent, text: str) -> str:
    """Hands the prompt over; what went wrong, or nothing."""
    if agent.kind == "command":
        return ""
    (outcome,) = message(fleet, [agent.ref], text)
    return "" if outcome.ok else f"it runs, but the prompt was not delivered: {outcome.why}"
