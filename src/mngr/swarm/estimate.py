"""What a run would come to, before anything is launched: how many agents, what they are likely to cost, and what would
leave this machine for them."""

from __future__ import annotations

import os

import mngr
from mngr import registry
from mngr.errors import MngrError
from mngr.swarm import learn
from mngr.swarm import settings as tuning
from mngr.swarm.hands import git
from mngr.swarm.report import money

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.swarm.recipe import Recipe


def estimate(
    fleet: mngr.Fleet, recipe: Recipe, request: mngr.Request, places: list[str], settings: dict[str, Any]
) -> dict[str, Any]:
    pieces = recipe.pieces()
    todo = [piece for piece in pieces if not piece.skip]
    project = request.source or os.getcwd()
    known = learn.expected(learn.earlier(fleet.home, project, request.type or ""))
    low, high = known.spread
    kept = {**tuning.defaults(), **settings}
    return {
        "project": project,
        "type": request.type,
        "tests": len(pieces),
        "agents": len(todo),
        "skipped": [{"test": piece.title, "why": piece.skip} for piece in pieces if piece.skip],
        "tokens": {"each": known.tokens, "low": low * len(todo), "high": high * len(todo)},
        "usd": None if known.usd is None else {"each": known.usd, "total": known.usd * len(todo)},
        "learnt_from": known.agents,
        "budget": kept["budget"],
        "max_tokens": kept["max-tokens"],
        "max_agents": kept["max-agents"],
        "leaves": {
            "repository": _bytes(project, request.base),
            "prompts": sum(len(piece.prompt.encode("utf-8", "surrogateescape")) for piece in todo),
            "variables": _variables(request),
            "hosts": places,
            "to_the_model": registry.agent_type(request.type or "").program is not None,
        },
    }


def _bytes(project: str, base: str | None) -> int | None:
    """Of the objects that a clone gets, as they lie on this disk."""
    try:
        return int(git(project, "rev-list", "--objects", "--disk-usage", base or "HEAD"))
    except (MngrError, ValueError):  # a git before 2.31
        return None


def _variables(request: mngr.Request) -> list[str]:
    """Names only."""
    passed = [name for name in registry.agent_type(request.type or "").passes if name in os.environ]
    return sorted({*request.env, *passed})


def lines(found: dict[str, Any]) -> list[str]:
    tokens, usd, leaves = found["tokens"], found["usd"], found["leaves"]
    learnt = f"learnt from {found['learnt_from']} agents" if found["learnt_from"] else "nothing was learnt yet: a guess"
    told = [
        f"tasks      {found['tests']}, of which {len(found['skipped'])} are skipped",
        f"agents     {found['agents']} of type {found['type']}, at a time {found['max_agents']}",
        f"tokens     {tokens['low']:,} to {tokens['high']:,}, {tokens['each']:,} put aside for each ({learnt})",
        "cost       " + ("not known" if usd is None else f"about {money(usd['total'])}, {money(usd['each'])} each"),
        f"limits     budget {_limit(found['budget'], 'USD')}, tokens {_limit(found['max_tokens'])}",
        f"may do     {found['permissions']}" if "permissions" in found else "",
        "what leaves this machine:",
        f"  to {', '.join(map(_place, leaves['hosts']))}:",
        f"    {_size(leaves['repository'])} of the repository, {_size(leaves['prompts'])} of prompts",
        f"  variables: {', '.join(leaves['variables']) or 'none'}",
        "  to the model's provider: what the agents read"
        if leaves["to_the_model"]
        else "  to a model's provider: nothing, by this type itself",
    ]
    told += [f"skipped    {each['test']}: {each['why']}" for each in found["skipped"]]
    return [line for line in told if line]


def _place(place: str) -> str:
    if place == "local":
        return "this machine itself"
    return f"a new host each ({place})" if place.startswith(".") else place


def _limit(value: float | None, unit: str = "") -> str:
    return "none" if value is None else f"{value:,.12g} {unit}".strip()


def _size(count: int | None) -> str:
    if count is None:
        return "an unknown size"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
