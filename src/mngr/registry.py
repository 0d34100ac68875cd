"""Who can do what: verbs, agent types and providers by name, the built-in ones and those of plugins.

Names lead to text references, resolved when they are used, so this ground-floor file knows nothing of the floors above
and `mngr list` imports `list` alone. Built-in names are looked up first: only other names need the plugin index."""

from __future__ import annotations

import sys

from mngr import builtin
from mngr.errors import MngrError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.agents import AgentType
    from mngr.grammar import Command
    from mngr.hosts import Provider
    from mngr.model import Ref
    from mngr.plugin_index import Plugin


# What an object must have to pass for one of these; the contracts themselves live on the floors above.
_MARKS = {"verb": "run", "provider": "reach"}
_CONTRACT = "mngr.agents:AgentType"  # and what an agent type must be
_PREFIX = "mngr.hosts.prefix:PrefixProvider"  # a provider that the configuration makes


def find_command(words: list[str]) -> tuple[Command, list[str]]:
    """The verb that a command line begins with, and the words after it. Verbs of two words come first."""
    known = builtin.mngr_commands()
    found = _longest(words, known)
    if found is None:
        known = {**_added("commands"), **known}
        found = _longest(words, known)
    if found is not None:
        name, rest = found
        return _load("verb", name, known[name]), rest
    below = sorted(name.partition(" ")[2] for name in known if name.startswith(words[0] + " "))
    if below and words[1:2] in (["-h"], ["--help"]):
        return _load("verb", "help", known["help"]), words[:1]
    raise _unknown_command(words, known, below)


def commands() -> dict[str, Command]:
    """All verbs, each once, under its own name. One of a plugin that cannot be loaded is told and left out."""
    found = _declared(builtin.mngr_commands())
    for name, reference in _added("commands").items():
        try:
            command = _load("verb", name, reference)
        except MngrError as error:
            print(f"mngr: {error.message}", file=sys.stderr)
        else:
            found.setdefault(command.name, command)
    return found


def own_commands() -> dict[str, Command]:
    """The verbs that come with mngr: the built-in ones, then those of the plugins in its own package. They are asked
    anew: the index is a user's, and what is in it depends on the home."""
    from mngr.plugin_scan import scan

    own = (plugin for plugin in scan()[0] if plugin.distribution == "mngr")
    return _declared({name: reference for plugin in own for name, reference in plugin.commands.items()})


def agent_types() -> list[str]:
    """The programs, then the variants of them that the user's configuration has."""
    from mngr import variants

    return list(dict.fromkeys([*program_types(), *variants.names()]))


def program_types() -> list[str]:
    return [*builtin.mngr_agent_types(), *sorted(_added("agent_types"))]


def agent_type(name: str) -> AgentType:
    from mngr import variants

    if name in variants.names():
        return variants.variant(name)
    found: AgentType = _find("agent type", name, builtin.mngr_agent_types(), "agent_types", variants.names())
    return found


def type_of(ref: Ref) -> AgentType:
    """What is special about this agent's program. One whose type nobody knows any more is a plain program."""
    try:
        found: AgentType = _find("agent type", ref.kind, builtin.mngr_agent_types(), "agent_types")
    except MngrError:
        found = resolve(_CONTRACT)()
    return found


def providers() -> list[str]:
    """Those of mngr, of plugins, and what the user's configuration makes of other programs."""
    coded = [*builtin.mngr_providers(), *sorted(_added("providers"))]
    return list(dict.fromkeys([*coded, *_configured_providers()]))


def provider(name: str) -> Provider:
    own = builtin.mngr_providers()
    others = [] if name in own or name in _added("providers") else _configured_providers()
    made: Provider = resolve(_PREFIX)(name) if name in others else _find("provider", name, own, "providers", others)()
    return made


def _configured_providers() -> list[str]:
    from mngr import config

    return sorted(config.load().table("providers").keys() - builtin.mngr_providers().keys())


def notify(event: str, agent: Ref) -> None:
    """Tell the plugins that asked. One that fails is told about and changes nothing: the deed is done already."""
    listening = [plugin for plugin in plugins() if plugin.lifecycle]
    if listening:
        from mngr.plugin_scan import tell

        for plugin in listening:
            tell(plugin, event, agent)


def plugins() -> list[Plugin]:
    """The built-in plugin, then the others by name."""
    from mngr.plugin_index import load

    return load()


def problems(plugin: Plugin) -> list[str]:
    """What the scan found, and what shows only when everything that a foreign plugin refers to is imported."""
    told = list(plugin.problems)
    for what, references in (
        ("verb", plugin.commands),
        ("agent type", plugin.agent_types),
        ("provider", plugin.providers),
    ):
        for name, reference in references.items():
            if _is_ours(reference):
                continue
            try:
                _load(what, name, reference)
            except MngrError as error:
                told.append(error.message)
    return told


def resolve(reference: str) -> Any:
    """What "module:attribute" stands for. __import__, because importlib itself would be one more import."""
    module, _, attribute = reference.partition(":")
    __import__(module)
    return getattr(sys.modules[module], attribute)


def _declared(references: dict[str, str]) -> dict[str, Command]:
    loaded = [_load("verb", name, reference) for name, reference in references.items()]
    return {command.name: command for command in loaded}


def _longest(words: list[str], known: dict[str, str]) -> tuple[str, list[str]] | None:
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in known and len(words) >= count:
            return name, words[count:]
    return None


def _added(kind: str) -> dict[str, str]:
    """The references of one kind that plugins brought: names do not clash, the scan saw to that."""
    return {name: ref for plugin in plugins()[1:] for name, ref in getattr(plugin, kind).items()}


def _find(what: str, name: str, own: dict[str, str], kind: str, others: list[str] | None = None) -> Any:
    known = own if name in own else {**own, **_added(kind)}
    if name not in known:
        from mngr.address import nearest

        names = sorted({*known, *(others or [])})
        close = nearest(name, names)
        hint = f"did you mean {close}?" if close else f"there is {', '.join(names)}"
        if what == "agent type" and not close:
            hint += f"; a program goes behind --: mngr create NAME command -- {name}"
        raise UsageError(f"there is no {what} {name!r}", hint)
    return _load(what, name, known[name])


def _load(what: str, name: str, reference: str) -> Any:
    if _is_ours(reference):
        return resolve(reference)
    try:
        found = resolve(reference)
    except (Exception, SystemExit) as error:  # a stranger's module may do anything while it is imported
        text = f"{what} {name!r} cannot be loaded: {type(error).__name__}: {error}"
        raise MngrError(text, "it comes from a plugin: see mngr plugin list") from error
    if not _keeps_contract(what, found):
        lacks = "is no AgentType" if what == "agent type" else f"has no {_MARKS[what]!r}"
        text = f"{what} {name!r} cannot be used: {reference} {lacks}"
        raise MngrError(text, "it comes from a plugin: see mngr plugin list")
    return found


def _keeps_contract(what: str, found: object) -> bool:
    return isinstance(found, resolve(_CONTRACT)) if what == "agent type" else hasattr(found, _MARKS[what])


def _is_ours(reference: str) -> bool:
    return reference.startswith("mngr.")


def _unknown_command(words: list[str], known: dict[str, str], below: list[str]) -> UsageError:
    from mngr.address import nearest

    if not below:
        firsts = {name.partition(" ")[0] for name in known}
        close = nearest(words[0], sorted(firsts))
        hint = f"did you mean {close}? see mngr help" if close else "see mngr help"
        return UsageError(f"there is no verb {words[0]!r}", hint)
    if len(words) == 1:
        return UsageError(f"{words[0]} needs one more word: {', '.join(below)}", f"see mngr help {words[0]}")
    close = nearest(words[1], below)
    hint = f"did you mean {words[0]} {close}?" if close else f"there is {', '.join(below)}: see mngr help {words[0]}"
    return UsageError(f"{words[0]} has no verb {words[1]!r}", hint)
