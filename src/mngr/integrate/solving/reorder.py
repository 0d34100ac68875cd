"""An agent's opinion on the order of the fixes. It sees what the rule has made of them, and the fixes themselves; what
it moves it must give a reason for. Its answer is kept: the same fixes are never asked about twice."""

from __future__ import annotations

import hashlib
import os
import shutil
from itertools import pairwise

from mngr import jsonline
from mngr.errors import MngrError
from mngr.integrate.picking.kinship import comes_after
from mngr.integrate.picking.rank import RankFile
from mngr.integrate.plain import one_line
from mngr.integrate.solving import telling
from mngr.integrate.solving.errand import PLACE, Question, ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import mngr
    from mngr.integrate.change import Ranked, Source
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.solving.integrator import Integrator

ANSWER = "rank-agent.json"  # in the directory of an integration
_WORK = "ranking"  # what the agent sees
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["order", "why"],
    "properties": {"order": {"type": "array", "items": {"type": "string"}}, "why": {"type": "object"}},
}


def rank(
    fleet: mngr.Fleet,
    scratch: Scratch,
    ranked: Sequence[Ranked],
    sources: Sequence[Source],
    how: Integrator,
    directory: str,
    say: Callable[[str], None],
) -> RankFile | None:
    """All of them in its order, with what it says about those that it moved. None if it had no answer: `say` has why,
    and the order of the rule stands."""
    if known := _kept(directory, ranked):
        return known
    work = os.path.join(directory, _WORK)
    question = _question(fleet.home, ranked, how, directory)
    try:
        _lay_out(scratch, ranked, sources, work)
        answer = ask(fleet, [question], into=os.path.join(directory, PLACE), timeout=how.timeout, say=say)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = answer[question.agent]
    if found.result is None:
        say(f"the order is that of the rule: {question.agent} had no other ({found.why})")
        return None
    return _keep(directory, found.result, ranked, question.agent)


def flaw(result: dict[str, Any], ranked: Sequence[Ranked]) -> str:
    """What is wrong with an order, for whoever has made it."""
    names, order, why = [each.group.name for each in ranked], result["order"], result["why"]
    if unknown := sorted(set(order) - set(names)):
        return f"there is no fix {one_line(unknown[0])[:60]!r}"
    if missing := [name for name in names if name not in order]:
        return f"{missing[0]} is not in the order" + (f", nor are {len(missing) - 1} more" if missing[1:] else "")
    if len(order) > len(names):
        return f"{max(order, key=order.count)} is in the order more than once"
    place = {name: number for number, name in enumerate(names)}
    quiet = [name for name in order if not _text(why.get(name))]
    if moved := [name for before, name in pairwise(quiet) if place[name] < place[before]]:
        return f"{moved[0]} and what stood around it are in another order, and `why` has no sentence for it"
    return _dependency(order, ranked)


def _dependency(order: list[str], ranked: Sequence[Ranked]) -> str:
    groups = {each.group.name: each.group for each in ranked}
    for number, name in enumerate(order):
        for later in order[number + 1 :]:
            if comes_after(groups[name], groups[later]):
                return f"{name} comes before {later}, which the same branch has made first"
    return ""


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _question(home: str, ranked: Sequence[Ranked], how: Integrator, directory: str) -> Question:
    from mngr.integrate.solving.integrator import request, slug_of

    slug = how.slug or slug_of(directory)
    id = hashlib.sha256("\n".join(each.group.key for each in ranked).encode()).hexdigest()
    return Question(
        agent=f"{slug}-rank-{id[:12]}",
        id=id,
        request=request(how, slug, os.path.join(directory, _WORK)),
        prompt=telling.rank(home, ranked),
        schema=_SCHEMA,
        check=lambda result: flaw(result, ranked),
    )


def _lay_out(scratch: Scratch, ranked: Sequence[Ranked], sources: Sequence[Source], work: str) -> None:
    texts = {f"{each.group.name}.diff": telling.diff(scratch, each.group.first) for each in ranked}
    texts["fixes.json"] = jsonline.dumps([telling.fix(each, sources) for each in ranked])
    try:
        os.makedirs(work, exist_ok=True)
        for name, text in texts.items():
            with open(os.path.join(work, name), "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text + "\n")
    except OSError as error:
        raise MngrError(f"{work} cannot be written: {error.strerror}") from None


# What is kept


def _kept(directory: str, ranked: Sequence[Ranked]) -> RankFile | None:
    try:
        with open(os.path.join(directory, ANSWER), encoding="ascii") as file:
            found = jsonline.loads(file.read())
        order, why = list(found["order"]), dict(found["why"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if sorted(order) != sorted(each.group.name for each in ranked):
        return None
    return RankFile(order=order, why={str(name): _text(text) for name, text in why.items()})


def _keep(directory: str, result: dict[str, Any], ranked: Sequence[Ranked], by: str) -> RankFile:
    names = {each.group.name for each in ranked}
    why = {name: _text(text) for name, text in result["why"].items() if name in names and _text(text)}
    path = os.path.join(directory, ANSWER)
    try:
        with open(f"{path}.new", "w", encoding="ascii") as file:
            file.write(jsonline.dumps({"by": by, "order": result["order"], "why": why}) + "\n")
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise MngrError(f"{path} cannot be written: {error.strerror}") from None
    return RankFile(order=result["order"], why=why)
