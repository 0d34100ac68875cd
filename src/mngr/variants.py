"""Agent types of the user's own: `[agent_types.NAME]` of the configuration makes one out of its parent, another type,
which may itself be such a variant. What is wrong with one is told when it is used, not when the file is read: a mistake
here must not stop the verbs for agents that run already."""

from __future__ import annotations

from copy import copy

from mngr import config, registry
from mngr.address import nearest
from mngr.config_keys import Misfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents import AgentType


def names() -> list[str]:
    return sorted(config.load().table("agent_types"))


def variant(name: str) -> AgentType:
    """The parent's program, with arguments, a model and variables of its own."""
    *line, program = ancestry(name)
    found = registry.agent_type(program)
    for each in reversed(line):
        found = _vary(found, each)
    return found


def _vary(parent: AgentType, name: str) -> AgentType:
    settings, table = config.load(), f"agent_types.{name}"
    env, model = settings.get(f"{table}.env"), settings.text(f"{table}.model")
    chosen = parent.with_model(model) if model else []
    if chosen is None:
        raise Misfit(f"{table}.model", f"makes no sense: {parent.name} has no model to choose", "remove it")
    made = copy(parent)
    made.name, made.variant_of = name, parent.variant_of or parent.name
    made.summary = f"{parent.name}, as the configuration has it"
    made.env = {**parent.env, **(env if isinstance(env, dict) else {})}
    made.preset = (*parent.preset, *chosen, *settings.strings(f"{table}.args"))
    return made


def ancestry(name: str) -> list[str]:
    """The name, its parent, that one's parent and so on to a program. Raises UsageError when they lead to none."""
    variants, programs = names(), registry.program_types()
    line = [name]
    while line[-1] in variants:
        table = f"agent_types.{line[-1]}"
        key = f"{table}.parent"
        parent, place = config.load().text(key), config.load().origin(key)
        if line[-1] in programs:
            raise Misfit(table, "has the name of an agent type that exists already", "choose another name")
        if not parent:
            raise Misfit(key, "is missing", f"say what it is a variant of: mngr config set {key} command")
        if parent in line:
            raise Misfit(key, f"leads back to {parent}", "one of them must be a variant of something else", place)
        if parent not in (*variants, *programs):
            others = [other for other in (*programs, *variants) if other not in line]
            close = nearest(parent, others)
            hint = f"did you mean {close}?" if close else f"there is {', '.join(sorted(others))}"
            raise Misfit(key, f"is {parent!a}, which is not an agent type", hint, place)
        line.append(parent)
    return line
