"""Imports point down only. An import inside a function counts too; one for the type checker alone does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "mngr"
GROUND = ""
FLOORS = [
    {GROUND},
    {"agents", "hosts", "dev"},
    {"fleet", "testing"},
    {"insight"},
    {"swarm", "tutorial"},
    {"integrate"},
    {"cli", "web"},
]
HEIGHT = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
ALONE = {"e2e"}  # usable without the rest, so it may use nothing else of mngr
DOORS = {"__init__.py", "__main__.py"}  # how one comes in from outside: they stand in front of all floors


def test_imports_point_down_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sorted(ROOT.rglob("*.py"))
        if str(path.relative_to(ROOT)) not in DOORS
        for module in imported_modules(ast.parse(path.read_text()))
        if not may_import(room_of_file(path), room_of_module(module))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("room", "above"),
    [
        ("picking", "checking|solving|writing"),
        ("checking", "solving|writing"),
        ("solving", "writing"),
        ("writing", "solving"),
    ],
)
def test_the_rooms_of_the_integration_stand_one_upon_the_other(room: str, above: str) -> None:
    files = sorted((ROOT / "integrate" / room).glob("*.py"))
    modules = [module for path in files for module in imported_modules(ast.parse(path.read_text()))]
    assert modules
    assert [module for module in modules if re.match(rf"mngr\.integrate\.({above})\b", module)] == []


def test_every_package_stands_on_a_floor() -> None:
    packages = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/**/*.py")}
    assert packages - set(HEIGHT) - ALONE == set()


def test_an_import_that_points_up_is_seen() -> None:
    source = """
if TYPE_CHECKING:
    import mngr.web
def f():
    from mngr.cli.main import main
    from mngr import fleet
"""
    seen = [room_of_module(module) for module in imported_modules(ast.parse(source))]
    assert seen == ["cli", "fleet"]
    assert not may_import("fleet", "cli")
    assert not may_import(GROUND, "fleet")
    assert may_import("cli", "fleet")
    assert may_import("fleet", GROUND)


def may_import(room: str, other: str) -> bool:
    if room == other:
        return True
    return room not in ALONE and (other in ALONE or HEIGHT[other] <= HEIGHT[room])


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Modules of mngr that are imported when the code runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for other in node.orelse:
                yield from imported_modules(other)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "mngr")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mngr":
            # `from mngr import fleet` names a package, `from mngr.fleet import Fleet` something inside one.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imported_modules(node)


def room_of_file(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else GROUND


def room_of_module(module: str) -> str:
    first = module.split(".")[1] if "." in module else ""
    return first if first in HEIGHT.keys() | ALONE else GROUND
