"""What the installed plugins bring, remembered in one small file, so that no verb pays for finding them.

The file counts only for the very environment it was made in: interpreter, version, the time stamp of every directory
on sys.path and of every plugin's module. Anything wrong with it, or no home to keep it in: scan again, say nothing."""

from __future__ import annotations

import os
import sys

from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Plugin(Record):
    """One plugin as the scan found it. `problems` are one sentence each; what they are about is not registered."""

    name: str
    reference: str  # the entry point: "module" or "module:attribute"
    version: str
    distribution: str
    commands: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults
    agent_types: dict[str, str] = {}  # noqa: RUF012
    providers: dict[str, str] = {}  # noqa: RUF012
    lifecycle: bool = False
    problems: list[str] = []  # noqa: RUF012


_loaded: dict[str, list[Plugin]] = {}


def load() -> list[Plugin]:
    path = cache_path()
    if path not in _loaded:
        _loaded[path] = _read(path) or _rebuild(path)
    return _loaded[path]


def cache_path() -> str:
    from mngr.home import home_path

    return os.path.join(home_path(), "cache", "plugins.json")


def environment() -> list[Any]:
    from mngr.version import VERSION

    return [sys.executable, sys.version, VERSION, [[path, _changed(path)] for path in sys.path]]


def _read(path: str) -> list[Plugin] | None:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["environment"] != environment():
            return None
        if any(_changed(module) != changed for module, changed in kept["files"].items()):
            return None
        return [Plugin.from_dict(plugin) for plugin in kept["plugins"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _changed(path: str) -> int | None:
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return None


def _rebuild(path: str) -> list[Plugin]:
    from mngr.plugin_scan import scan

    for _ in range(2):
        before = environment()
        plugins, files = scan()
        if environment() == before:
            break  # else something was installed meanwhile, or the import of a plugin has just made a __pycache__
    for plugin in plugins:
        if plugin.problems:
            more = f" (and {len(plugin.problems) - 1} more)" if plugin.problems[1:] else ""
            told = f"mngr: plugin {plugin.name}: {plugin.problems[0]}{more}; see mngr plugin list"
            print(" ".join(told.splitlines()), file=sys.stderr)
    _write(path, {"environment": before, "files": files, "plugins": [plugin.to_dict() for plugin in plugins]})
    return plugins


def _write(path: str, content: dict[str, Any]) -> None:
    import json

    mine = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(mine, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(mine, path)
    except OSError:
        pass
