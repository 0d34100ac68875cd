"""The swarm is built of what everybody has: the public API, the ground floor, and the part of e2e that hides secrets.
So it can be read as the example of a pipeline of one's own."""

from __future__ import annotations

import ast
import tomllib

import mngr
from mngr import builtin, swarm
from tests.unit.test_layers import ROOT, imported_modules

SWARM = ROOT / "swarm"
GROUND = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
BESIDE = "mngr.e2e.redaction"


def test_the_swarm_uses_the_public_api_and_the_ground_floor_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} uses {name}"
        for path in sorted(SWARM.rglob("*.py"))
        for name in used(ast.parse(path.read_text()))
        if not is_open_to_all(name)
    ]
    assert wrong == []


def test_its_verbs_come_by_an_entry_point_like_a_strangers() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["mngr"] == {"swarm": swarm.__name__}
    assert not [name for name in builtin.mngr_commands() if name.startswith("swarm")]


def test_no_other_room_knows_it_but_those_of_its_verbs_and_of_what_is_made_of_its_work() -> None:
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if SWARM not in path.parents
        and any(name.startswith("mngr.swarm") for name in imported_modules(ast.parse(path.read_text())))
    }
    assert {path for path in knowing if not path.startswith(("cli/swarm_", "integrate/"))} <= {"cli/complete.py"}


def test_what_is_not_open_to_all_is_seen() -> None:
    source = """
import mngr
from mngr import jsonline
from mngr.fleet.create import create
def f():
    from mngr.e2e import redaction, sandbox
    mngr.create(mngr.Fleet(), mngr.hosts)
"""
    assert [name for name in used(ast.parse(source)) if not is_open_to_all(name)] == [
        "mngr.fleet.create.create",
        "mngr.e2e.sandbox",
        "mngr.hosts",
    ]


def used(tree: ast.AST) -> list[str]:
    """What is imported, and what is taken from `mngr` itself. An annotation is for the type checker alone."""
    annotations = {id(inner) for node in ast.walk(tree) for outer in annotated(node) for inner in ast.walk(outer)}
    taken = [
        f"mngr.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mngr"
        if id(node) not in annotations
    ]
    return [*imported_modules(tree), *taken]


def annotated(node: ast.AST) -> list[ast.AST]:
    return [each for name in ("annotation", "returns") if (each := getattr(node, name, None)) is not None]


def is_open_to_all(name: str) -> bool:
    if f"{name}.".startswith(("mngr.swarm.", f"{BESIDE}.")) or name == "mngr":
        return True
    first = name.split(".")[1]
    return first in GROUND or (name.count(".") == 1 and first in mngr.__all__)
