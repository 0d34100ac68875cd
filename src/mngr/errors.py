"""The few typed errors, each with its exit code. Raise one with a sentence and, where there is a way out, a hint;
`cli.main` catches them once and prints one line. The table in docs/exit-codes.md is checked against this file."""


class MngrError(Exception):
    """Something failed: what, and on what; `hint` says what to try next."""

    code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MngrError):
    """The words of the command are wrong; nothing was tried."""

    code = 2


class NoSuchAgent(MngrError):
    code = 3


class TimedOut(MngrError):
    code = 4


class HostUnreachable(MngrError):
    code = 5


class SomeFailed(MngrError):
    """Some of many failed; each failure has already been told on its own line."""

    code = 6


class Blocked(MngrError):
    """A dialog stands in front of the agent, and nobody but the user may answer it: nothing was sent, or it arrived and
    opened the dialog. The message says which."""

    code = 7


EXIT_CODES = {
    0: "ok",
    1: "failed",
    2: "usage: the words of the command are wrong",
    3: "no such agent",
    4: "timeout",
    5: "host unreachable",
    6: "some of many failed",
    7: "blocked by a dialog",
}
