"""`mngr plugin list`: what is installed besides mngr itself, what it adds, and what is wrong with it."""

from __future__ import annotations

from mngr.cli.grammar import Args, command, option
from mngr.registry import plugins, problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugin_index import Plugin


@command(
    "plugin list",
    summary="list the plugins and what they add",
    usage=["plugin list [--json]"],
    about="Plugins are Python packages with an entry point in the group mngr, installed beside mngr. The first one is "
    "mngr itself. Everything that a plugin refers to is loaded here, so that what is broken shows.",
    options=[option("--json", "print a JSON list, with every name and what it refers to")],
    examples=[("mngr plugin list", "see what is installed, and the problems of each plugin")],
)
def list_(args: Args) -> int:
    found = [plugin.replace(problems=problems(plugin)) for plugin in plugins()]
    if args.flag("json"):
        import json

        print(json.dumps([plugin.to_dict() for plugin in found], indent=2))
        return 0
    rows = [("NAME", "VERSION", "PACKAGE", "ADDS")]
    rows += [(plugin.name, plugin.version, plugin.distribution, _adds(plugin)) for plugin in found]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row, plugin in zip(rows, [None, *found], strict=True):
        print("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]))
        for problem in plugin.problems if plugin else ():
            print(f"  problem: {problem}")
    return 0


def _adds(plugin: Plugin) -> str:
    parts = []
    for what, names in (
        ("verb", plugin.commands),
        ("agent type", plugin.agent_types),
        ("provider", plugin.providers),
    ):
        if len(names) > 3:
            parts.append(f"{len(names)} {what}s")
        elif names:
            parts.append(f"{what}{'s' if len(names) > 1 else ''} {' and '.join(sorted(names))}")
    if plugin.lifecycle:
        parts.append("a lifecycle hook")
    return ", ".join(parts) or "nothing"
