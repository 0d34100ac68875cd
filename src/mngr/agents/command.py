"""`command`: any program as an agent. It runs while its process lives; then it is done, or failed with its exit
code."""

from __future__ import annotations

from mngr.agents import AgentType, Permissions
from mngr.process import command_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandType(AgentType):
    name = "command"
    summary = "any program; without one, an interactive shell"

    def command(self, args: list[str]) -> list[str]:
        return command_words(args) if args else ["sh", "-c", 'exec "${SHELL:-/bin/sh}"']

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions:
        """There is nobody in it whom one could forbid anything: it does what it was made for."""
        return Permissions()


COMMAND_TYPE = CommandType()
