"""`command`: any program as an agent. It runs while its process lives; then it is done, or failed with its exit code."""

from __future__ import annotations


class CommandType:
    name = "command"
    summary = "any program; without one, an interactive shell"

    def command(self, args: list[str]) -> list[str]:
        """One word with blanks in it is a line for the shell, as with ssh; anything else is run as it is."""
        if not args:
            return ["sh", "-c", 'exec "${SHELL:-/bin/sh}"']
        if len(args) == 1 and any(char in args[0] for char in " \t\n;|&<>$`"):
            return ["sh", "-c", args[0]]
        return args


COMMAND_TYPE = CommandType()
