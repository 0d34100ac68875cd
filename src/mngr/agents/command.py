"""`command`: any program as an agent. It runs while its process lives; then it is done, or failed with its exit
code."""

from __future__ import annotations

from mngr.agents import AgentType
from mngr.process import command_words


class CommandType(AgentType):
    name = "command"
    summary = "any program; without one, an interactive shell"

    def command(self, args: list[str]) -> list[str]:
        return command_words(args) if args else ["sh", "-c", 'exec "${SHELL:-/bin/sh}"']


COMMAND_TYPE = CommandType()
