"""message: type a text into agents."""

from __future__ import annotations

import sys

from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.message import message as send
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "message",
    summary="send a text to agents",
    usage=["message SELECTION -m TEXT [--start]", "message SELECTION --file FILE", "message SELECTION < FILE"],
    aliases=["msg"],
    about="""Types the text into each agent's terminal and presses Enter, for all agents at once. Control characters
other than newline and tab are removed. Without -m and --file the text is read from standard input.

The outcome says how much is known. For claude, codex and opencode it is evidence of the program's own: `delivered`, or
`queued` when it is at work and takes the message up next; Enter is pressed again if need be, the text is never sent
twice. Who is still starting gets it when it is ready. An agent behind a dialog gets nothing, and a message that opens a
dialog (/model) says so: both are exit code 7, and nobody but you answers the dialog.

A plain command can give no proof beyond its terminal: `typed`. A line of more than 4095 bytes to a program that reads
its terminal line by line is refused, since the terminal would cut it off. An agent that does not run is refused, or
brought back first with --start.""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("-m, --message TEXT", "the text"),
        option("-F, --file FILE", "read the text from a file; - for standard input", completes="files"),
        option("--start", "bring agents back that do not run"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr message fix-login -m 'and add a test'", "to one"),
        ("mngr msg 'try-*' --file prompt.md", "the same to a group"),
        ("git diff | mngr message review", "from a pipe"),
        ("mngr message fix-login -m /compact", "a command of its program"),
    ],
)
def message(args: Args) -> int:
    fleet = Fleet()
    text = _text(args)
    return report(args, send(fleet, chosen(fleet, args), text, start=args.flag("start")))


def _text(args: Args) -> str:
    text, path = args.text("message"), args.text("file")
    if text is not None and path is not None:
        raise UsageError("--message and --file exclude each other")
    if text is not None:
        return text
    if path in (None, "-"):
        if "-" in args.words:
            raise UsageError("standard input cannot be both the names and the text", "give the text with -m or --file")
        if sys.stdin.isatty():
            raise UsageError("no text", "give it with -m, with --file, or on standard input")
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    try:
        with open(str(path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
