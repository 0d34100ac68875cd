"""Finds and questions the plugins, with importlib.metadata and pluggy. Slow, so it runs once per environment.

A plugin is other people's code: whatever it does wrong becomes a sentence in its `problems`, and the rest goes on.
Each one gets a pluggy manager of its own, so that it is known who answered what and who failed."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint, entry_points

import pluggy

from mngr import builtin, hookspecs
from mngr.plugin_index import Plugin
from mngr.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.model import Ref

KINDS = {"commands": "verb", "agent_types": "agent type", "providers": "provider"}
_FIRST = set("abcdefghijklmnopqrstuvwxyz")
_REST = _FIRST | set("0123456789-_")


def scan() -> tuple[list[Plugin], dict[str, int]]:
    """All plugins, the built-in one first, and when the files of their modules were last changed."""
    own = Plugin(name="builtin", reference=builtin.__name__, version=VERSION, distribution="mngr")
    found = [_question(own, builtin, [])]
    files = dict([_file_of(builtin.__name__)])
    for entry in sorted(entry_points(group=hookspecs.GROUP), key=lambda entry: entry.name):
        files.update([_file_of(entry.module)])  # before it is imported: an edit in between must not go unseen
        found.append(_inspect(entry, found))
    files.pop("", None)
    return found, files


def tell(plugin: Plugin, event: str, agent: Ref) -> None:
    """Call its lifecycle hook; a failure is one line on stderr."""
    try:
        module = EntryPoint(plugin.name, plugin.reference, hookspecs.GROUP).load()
        _manager(plugin.name, module).hook.mngr_lifecycle(event=event, agent=agent)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's code; the deed itself is done
        told = f"mngr: plugin {plugin.name} failed when told that {agent.name} was {event}: {_describe(error)}"
        print(told, file=sys.stderr)


def _inspect(entry: EntryPoint, before: list[Plugin]) -> Plugin:
    plugin = Plugin(
        name=entry.name,
        reference=entry.value,
        version=entry.dist.version if entry.dist else "",
        distribution=entry.dist.name if entry.dist else "",
    )
    if any(other.name == entry.name for other in before):
        return plugin.replace(problems=["another plugin has the same name"])
    try:
        return _question(plugin, entry.load(), before)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing a stranger's module can do anything
        return plugin.replace(problems=[f"cannot be loaded: {_describe(error)}"])


def _question(plugin: Plugin, module: object, before: list[Plugin]) -> Plugin:
    """Ask each hook that the module has."""
    manager = _manager(plugin.name, module)
    answers: dict[str, dict[str, str]] = {}
    problems: list[str] = []
    for kind in KINDS:
        try:
            answered = getattr(manager.hook, f"mngr_{kind}")()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
            problems.append(f"mngr_{kind} failed: {_describe(error)}")
            continue
        taken = {name: other.name for other in before for name in getattr(other, kind)}
        answers[kind] = _check(kind, answered[0] if answered else {}, taken, problems)
    lifecycle = bool(manager.hook.mngr_lifecycle.get_hookimpls())
    return plugin.replace(**answers, lifecycle=lifecycle, problems=problems)


def _check(kind: str, answer: object, taken: dict[str, str], problems: list[str]) -> dict[str, str]:
    """What of the answer can be registered; why not goes to `problems`."""
    if not isinstance(answer, dict):
        problems.append(f"mngr_{kind} gave {type(answer).__name__}, not a dict of names and references")
        return {}
    good: dict[str, str] = {}
    for name, reference in answer.items():
        if not _is_name(name, longest=2 if kind == "commands" else 1):
            problems.append(f"{KINDS[kind]} {name!r} is not a valid name")
        elif not _is_reference(reference):
            problems.append(f"{KINDS[kind]} {name!r} refers to {reference!r}, which is not module:attribute")
        elif clash := next((other for other in [*taken, *good] if _clash(name, other)), None):
            problems.append(f"{KINDS[kind]} {name!r} clashes with {clash!r} of plugin {taken.get(clash, 'itself')}")
        else:
            good[name] = reference
    return good


def _is_name(text: object, longest: int) -> bool:
    words = text.split(" ") if isinstance(text, str) else []
    return 0 < len(words) <= longest and all(word[:1] in _FIRST and _REST.issuperset(word) for word in words)


def _is_reference(text: object) -> bool:
    module, colon, attribute = text.partition(":") if isinstance(text, str) else ("", "", "")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def _clash(name: str, other: str) -> bool:
    """`foo` and `foo bar` cannot both be verbs: bar may be the name of an agent."""
    return name == other or name.startswith(other + " ") or other.startswith(name + " ")


class _Manager(pluggy.PluginManager):
    """A function is a hook by its name alone: a plugin need not import pluggy for a marker."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        marked = super().parse_hookimpl_opts(plugin, name)
        if marked is None and name.startswith("mngr_") and callable(getattr(plugin, name)):
            return {}
        return marked


def _manager(name: str, module: object) -> _Manager:
    manager = _Manager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(module, name)
    manager.check_pending()
    return manager


def _file_of(module: str) -> tuple[str, int]:
    """Without importing it: one that cannot be imported today may be mended in place tomorrow."""
    from importlib.util import find_spec

    try:
        spec = find_spec(module)
        path = spec.origin if spec and spec.origin else ""
        return path, os.stat(path).st_mtime_ns
    except (Exception, SystemExit):  # noqa: BLE001 - find_spec imports the packages above the module
        return "", 0


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
