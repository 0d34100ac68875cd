"""`mngr plugin list`: what is installed besides mngr itself, what it adds, and what is wrong with it."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTION, clean, print_json, print_table
from mngr.grammar import Args, command
from mngr.registry import plugins, problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugin_index import Plugin


@command(
    "plugin list",
    summary="list the plugins and what they add",
    usage=["plugin list [--json]"],
    about="Plugins are Python packages with an entry point in the group mngr, installed beside mngr. The first one is "
    "mngr itself. Everything that the others refer to is loaded here, so that what is broken shows.",
    options=[JSON_OPTION],
    examples=[("mngr plugin list", "what is installed, what it adds and what is wrong with it")],
)
def list_(args: Args) -> int:
    found = [plugin.replace(problems=problems(plugin)) for plugin in plugins()]
    if args.flag("json"):
        print_json([plugin.to_dict() for plugin in found])
        return 0
    rows = [(plugin.name, plugin.version, plugin.distribution, _adds(plugin)) for plugin in found]
    print_table(rows, ("NAME", "VERSION", "PACKAGE", "ADDS"))
    for plugin in found:
        for problem in plugin.problems:
            print(clean(f"problem: {plugin.name}: {problem}"))
    return 0


def _adds(plugin: Plugin) -> str:
    parts = []
    for what, names in (
        ("verb", plugin.commands),
        ("agent type", plugin.agent_types),
        ("provider", plugin.providers),
    ):
        count = len(set(names.values()))  # aliases refer to the same thing
        if count > 3:
            parts.append(f"{count} {what}s")
        elif names:
            parts.append(f"{what}{'s' if len(names) > 1 else ''} {', '.join(sorted(names))}")
    if plugin.lifecycle:
        parts.append("a lifecycle hook")
    return ", ".join(parts) or "nothing"
