"""What a plugin can add: a module whose functions have these names, found by the entry point group `mngr`.

References are text, "module:attribute", so that nothing of a plugin is imported before it is used. docs/plugins.md has
a complete example; mngr/builtin.py registers everything that mngr itself has through the same functions."""

from __future__ import annotations

from pluggy import HookspecMarker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.model import Ref

GROUP = "mngr"
spec = HookspecMarker(GROUP)


@spec
def mngr_agent_types() -> dict[str, str]:  # type: ignore[empty-body]
    """Name of an agent type to a reference to it: an object that keeps `mngr.agents.AgentType`."""


@spec
def mngr_providers() -> dict[str, str]:  # type: ignore[empty-body]
    """Name of a provider to a reference to its class, which takes no arguments and keeps `mngr.hosts.Provider`."""


@spec
def mngr_commands() -> dict[str, str]:  # type: ignore[empty-body]
    """A verb, of one word or two, to a reference to its `mngr.grammar.Command`. An alias is one more name."""


@spec
def mngr_lifecycle(event: str, agent: Ref) -> None:
    """Called after an agent was created, started, stopped, destroyed or renamed, in the process that did it."""
