"""Runs inside the user's pytest, as a plugin: writes the tests that were collected, as JSON, to the file that
$MNGR_COLLECTED names. It is copied, alone, to where that pytest finds it: so it imports nothing of mngr, and is plain
enough for Python 3.8 and pytest 6. It is registered before other plugins, which means that its hooks are called after
theirs: what it sees is what they have left.

How a test is found in the text of its file is here as well, since whoever reads that text elsewhere has to agree."""

from __future__ import annotations

import ast
import inspect
import json
import os
import textwrap
import warnings
from functools import lru_cache
from typing import Any

CITE = "write_tutorial_block"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

_once = lru_cache(maxsize=None)  # functools.cache came with Python 3.9
_order: dict[str, int] = {}  # by node id: as they came, before anybody shuffled them
_errors: list[dict[str, str]] = []
_deselected = 0
_here = os.getcwd()  # what the node ids that we give are relative to, whatever pytest takes for its root
_top = os.path.realpath(os.environ.get("MNGR_COLLECT_TOP", _here))


def pytest_itemcollected(item: Any) -> None:
    _order.setdefault(item.nodeid, len(_order))


def pytest_deselected(items: Any) -> None:
    global _deselected
    _deselected += len(items)


def pytest_exception_interact(node: Any, call: Any, report: Any) -> None:
    if getattr(report, "when", "") == "collect":
        raised = call.excinfo.value
        error = raised.__cause__ or raised  # pytest wraps what an import raised
        file = str(raised.path) if type(raised).__name__ == "ConftestImportFailure" else _path(node)
        _errors.append({"file": _below(file, _top), "message": f"{type(error).__name__}: {error}"})


def pytest_collection_finish(session: Any) -> None:
    out = os.environ.get("MNGR_COLLECTED")
    if not out or hasattr(session.config, "workerinput"):  # a process of pytest-xdist
        return
    plugins = _plugin_files(session.config)
    items = sorted(session.items, key=lambda item: _order.get(item.nodeid, len(_order)))
    found = {"tests": [_describe(item, plugins) for item in items], "errors": _errors, "deselected": _deselected}
    with open(out, "w", encoding="ascii") as file:
        json.dump(found, file)


def _plugin_files(config: Any) -> set[str]:
    """Of plugins that are part of the project. Of a conftest.py its place says for which tests it counts."""
    files = (getattr(plugin, "__file__", None) or "" for plugin in config.pluginmanager.get_plugins())
    return {_own(file) for file in files if os.path.basename(file) not in ("conftest.py", os.path.basename(__file__))}


def _describe(item: Any, plugins: set[str]) -> dict[str, Any]:
    path = _path(item)
    _, colons, inside = item.nodeid.partition("::")
    code = _function(item)
    function, source, node = _place(item, _below(path, _top), code)
    return {
        "id": _below(path, _here) + colons + inside,
        "file": _below(path, _top),
        "source": source,
        "line": node.lineno if node else _line(item),
        "name": item.name,
        "function": function,
        "doc": (node and ast.get_docstring(node)) or (code and inspect.getdoc(code)) or "",
        "markers": list(dict.fromkeys(mark.name for mark in item.iter_markers())),
        "fixtures": sorted((_fixture_files(item) | plugins) - {""}),
        "blocks": blocks(_read(source)[0], node) if node else [],
    }


def _line(item: Any) -> int:
    line = item.location[1]
    return 0 if line is None else line + 1


def _path(node: Any) -> str:
    return str(getattr(node, "path", None) or node.fspath)


def _below(path: str, top: str) -> str:
    """Relative, and by its real place when it was named through a link from elsewhere."""
    relative = os.path.relpath(path, top)
    return relative if not relative.startswith(os.pardir) else os.path.relpath(os.path.realpath(path), top)


@_once
def _own(path: str) -> str:
    """Relative to the top of the project; nothing when it is no file of it."""
    relative = _below(path, _top) if path else os.pardir
    foreign = relative.startswith(os.pardir) or "site-packages" in relative or not os.path.isfile(path)
    return "" if foreign else relative


def _function(item: Any) -> Any:
    """As it was written, below its decorators. None for what is no function: a doctest, a file in YAML."""
    try:
        function = inspect.unwrap(item.function)
    except Exception:  # noqa: BLE001 - an attribute of somebody's class: it may be missing, or raise anything
        return None
    return function if hasattr(function, "__code__") else None


def _place(item: Any, file: str, code: Any) -> tuple[str, str, Any]:
    """Where the text of its function is: the name there, the file, and its node. A test may be inherited or generated:
    then the code says where it came from, or nobody does, and the file is empty."""
    import pytest

    names = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    called = ".".join([*names, getattr(item, "originalname", None) or item.name.partition("[")[0]])
    written = code.__qualname__.partition(".<locals>")[0] if code else called
    for name, source in ((called, file), (written, _own(code.__code__.co_filename) if code else "")):
        if source and (nodes := _read(source)[1].get(name)):
            return name, source, nodes[-1]
    return called, "", None


def _fixture_files(item: Any) -> set[str]:
    """An override can ask for the one that it overrides, so all of a name count."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    codes = [getattr(inspect.unwrap(each.func), "__code__", None) for group in known.values() for each in group]
    return {_own(code.co_filename) for code in codes if code}


@_once
def _read(source: str) -> tuple[ast.Module, dict[str, list[Any]]]:
    """A file of the project, and the functions in it."""
    try:
        with open(os.path.join(_top, source), "rb") as file:
            tree = parse(file.read())
    except OSError:
        tree = None
    tree = tree or ast.Module(body=[], type_ignores=[])
    return tree, functions(tree)


# In the text of a file


def parse(data: bytes) -> ast.Module | None:
    """None for what is no Python, or is for another version of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an escape in somebody's string
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def functions(tree: ast.Module) -> dict[str, list[Any]]:
    """By qualified name, in classes and below `if` too. The last one of a name is the one that counts at run time."""
    found: dict[str, list[Any]] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTION):
                found.setdefault(prefix + child.name, []).append(child)
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            elif not isinstance(child, ast.expr):
                visit(child, prefix)

    visit(tree, "")
    return found


def blocks(tree: ast.Module, function: Any) -> list[str]:
    """The tutorial's blocks that it cites, without the indentation that they have in a test. They stand there as
    literals, added or not, or as constants of the module."""
    constants: dict[str, Any] = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def text(node: Any, names: dict[str, Any]) -> str:
        if isinstance(node, ast.Name):
            return text(names.get(node.id), {})
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return text(node.left, names) + text(node.right, names)
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _is_cite(node.func)]
    given = [[*call.args, *(word.value for word in call.keywords)] for call in calls]
    cited = [text(arguments[0], constants) for arguments in given if arguments]
    return [textwrap.dedent(block).strip("\n") for block in cited if block.strip()]


def _is_cite(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == CITE
