"""The contract of an agent type: what is special about one kind of program. Registered by the `mngr_agent_types` hook;
`command` beside this file is the smallest possible example."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class AgentType(Protocol):
        name: str
        summary: str  # one line for people who choose
        # It may also have `env: dict[str, str]`, variables for its agents, below those that the user gives. A type
        # without it has none, so it is no part of the protocol.

        def command(self, args: list[str]) -> list[str]:
            """The program and its arguments, from what followed `--`. Raises UsageError before anything is made."""
            ...
