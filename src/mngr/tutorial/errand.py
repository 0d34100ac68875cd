"""An errand: an agent that is made with a prompt of ours, from prompts/ beside this file.

Every agent has its prompt in $MNGR_INPUT, so that any program can be sent; one whose program can be talked to also gets
it as a message. A plain command does not: what is typed into it would be taken for its input."""

from __future__ import annotations

from mngr import prompts
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
    return prompts.filled(prompts.find(home, __file__, name), values)


def make(fleet: Fleet, request: Request, text: str, tell: Callable[[str], None]) -> Agent:
    return create(fleet, request.replace(inputs=[text]), tell)[0]


def brief(fleet: Fleet, agent: Agent, text: str) -> str:
    """Hands the prompt over; what went wrong, or nothing."""
    return brief_all(fleet, [(agent, text)]).get(agent.id, "")


def brief_all(fleet: Fleet, prompted: list[tuple[Agent, str]]) -> dict[str, str]:
    """The same for many at once, each with its own prompt; what went wrong, by id."""
    told = {agent.ref: text for agent, text in prompted if agent.kind != "command"}
    outcomes = message(fleet, told, {ref.id: text for ref, text in told.items()}) if told else []
    return {
        outcome.id: f"it runs, but the prompt was not delivered: {outcome.why}"
        for outcome in outcomes
        if not outcome.ok
    }
