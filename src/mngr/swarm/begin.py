"""A run begins: its tasks are named, and everything that is needed to go on with it is written down before the first
agent is made."""

from __future__ import annotations

import os

import mngr
from mngr import jsonline
from mngr.address import is_name
from mngr.errors import MngrError, UsageError
from mngr.swarm import settings as tuning
from mngr.swarm.hands import git
from mngr.swarm.log import EVENTS, Writer
from mngr.swarm.runs import runs_directory
from mngr.swarm.schema import flaws

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mngr.swarm.recipe import Piece, Recipe

REQUEST = "request.json"  # how its agents are made, with the environment that they are given: for the owner's eyes only
PROMPTS = "prompts"
_LONGEST_RUN, _LONGEST_SLUG = 20, 36  # names of agents, and of those that check them, have 63 characters at most


def begin(
    fleet: mngr.Fleet,
    recipe: Recipe,
    request: mngr.Request,
    *,
    places: list[str] | None = None,
    settings: dict[str, Any] | None = None,
    name: str | None = None,
    account: str | None = None,
    notes: dict[str, Any] | None = None,
) -> str:
    """The directory of the new run. `request` is how its agents are made, but for their names; `places` are hosts
    (`box1.ssh`) or providers that make one for each agent (`.docker`), this machine when there are none."""
    _check_schema(recipe)
    project = top_of(request.source)
    base = _commit(project, request.base)
    pieces = recipe.pieces()
    if not pieces:
        raise MngrError("there is nothing to do", "the recipe has no tasks")
    kind = _kind(request)
    directory = _new_directory(fleet.home, project, name)
    run = os.path.basename(directory)
    slugs = _slugs(pieces)
    tasks = []
    os.makedirs(os.path.join(directory, PROMPTS), mode=0o700, exist_ok=True)
    for piece, slug in zip(pieces, slugs, strict=True):
        with open(
            os.path.join(directory, PROMPTS, f"{slug}.md"), "w", encoding="utf-8", errors="surrogateescape"
        ) as file:
            file.write(piece.prompt)
        task = {"task": slug, "title": piece.title, "name": f"{run}-{slug}", "data": piece.data}
        tasks.append({**task, "skip": piece.skip} if piece.skip else task)
    fixed = request.replace(source=project, base=base, mode=request.mode or "clone")
    _write_private(os.path.join(directory, REQUEST), jsonline.dumps(fixed.to_dict()))
    kept = {**tuning.defaults(), **(settings or {})}
    with Writer(directory) as writer:
        writer.write(
            {
                "event": "planned",
                "run": run,
                "recipe": f"{type(recipe).__module__}:{type(recipe).__qualname__}",
                "arguments": recipe.arguments(),
                "project": project,
                "common": git(project, "rev-parse", "--path-format=absolute", "--git-common-dir"),
                "base": base,
                "type": request.type or "",
                "kind": kind,
                "account": account or kind,
                "places": places or ["local"],
                "found": [known.name for known in fleet.places.all() if known.name in (places or ())],
                "settings": kept,
                "notes": notes or {},
                "tasks": tasks,
            }
        )
    return directory


def read_request(directory: str) -> mngr.Request:
    with open(os.path.join(directory, REQUEST), encoding="utf-8") as file:
        return mngr.Request(**jsonline.loads(file.read()))


def _check_schema(recipe: Recipe) -> None:
    """Now: when the first result is there, its agent has been paid."""
    try:
        flaws(recipe.schema or {}, {})
    except ValueError as error:
        raise MngrError(f"the recipe's {error}") from None


def top_of(source: str | None) -> str:
    try:
        return os.path.realpath(git(source or os.getcwd(), "rev-parse", "--show-toplevel"))
    except MngrError:
        where = source or os.getcwd()
        raise MngrError(
            f"{where} is not in a git repository", "agents hand back branches, so a run needs one"
        ) from None


def _commit(project: str, base: str | None) -> str:
    try:
        return git(project, "rev-parse", "--verify", "-q", "--end-of-options", f"{base or 'HEAD'}^{{commit}}")
    except MngrError:
        raise MngrError(f"{base or 'HEAD'} is not a commit in {project}", "commit something first") from None


def _kind(request: mngr.Request) -> str:
    from mngr import registry

    if not request.type:
        raise UsageError("which agent type?", "--type claude, or once and for all: mngr config set type claude")
    found = registry.agent_type(request.type)
    return found.variant_of or request.type


def _new_directory(home: str, project: str, name: str | None) -> str:
    """A name that is new here, and whose branches are new in the repository."""
    where = runs_directory(home)
    os.makedirs(where, mode=0o700, exist_ok=True)
    taken = git(project, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/mngr").split()
    if name is not None:
        if not is_name(name) or len(name) > _LONGEST_RUN:
            raise UsageError(f"{name!r} is not a name for a run", "a few small letters, digits and hyphens")
        if _is_planned(os.path.join(where, name)):
            raise UsageError(f"there is a run {name} already", f"mngr swarm resume {name}, or another name")
        if branches := [branch for branch in taken if branch.startswith(f"mngr/{name}-")]:
            raise UsageError(
                f"there is a branch {branches[0]} in {project} already", "another name, or git branch -D mngr/..."
            )
        os.makedirs(os.path.join(where, name), mode=0o700, exist_ok=True)
        return os.path.join(where, name)
    number = 0
    while True:
        number += 1
        if any(branch.startswith(f"mngr/r{number}-") for branch in taken):
            continue
        try:
            os.mkdir(os.path.join(where, f"r{number}"), 0o700)
        except FileExistsError:
            continue
        return os.path.join(where, f"r{number}")


def _is_planned(directory: str) -> bool:
    """Whoever was killed before that has left nothing that anybody could go on with."""
    try:
        with open(os.path.join(directory, EVENTS), "rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def _slugs(pieces: Iterable[Piece]) -> list[str]:
    """Each its own: what would be the same gets a number."""
    found: list[str] = []
    used: set[str] = set()
    for piece in pieces:
        plain = slug(piece.slug or piece.title)
        number, made = 1, plain
        while made in used:
            number += 1
            made = f"{plain[: _LONGEST_SLUG - len(str(number)) - 1]}-{number}"
        used.add(made)
        found.append(made)
    return found


def slug(text: str) -> str:
    """What is left of it in the alphabet of names."""
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())
    words = [word for word in kept.split("-") if word]
    return "-".join(words)[:_LONGEST_SLUG].strip("-") or "task"


def _write_private(path: str, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
