"""exec: run a command where an agent works."""

from __future__ import annotations

import sys

from mngr.cli.main import end_in_order
from mngr.cli.output import JSON_OPTION, print_json, tame
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.errors import HostUnreachable, MngrError, SomeFailed, UsageError
from mngr.fleet.exec import OUR_FAULT, TIMEOUT, execute, execute_many
from mngr.fleet.fleet import Fleet
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.exec import Ran
    from mngr.grammar import Args
    from mngr.model import Ref


@command(
    "exec",
    summary="run a command in the work dir and environment of agents",
    usage=["exec SELECTION [--timeout TIME] -- COMMAND..."],
    about="""Runs COMMAND beside the agent: on its host, in its work dir, with its environment; the agent itself
notices nothing, and need not run. Output is passed on as it comes, and the exit code is the command's own: 124 when
--timeout ended it, 125 when mngr itself failed, 5 when its host cannot be reached: if that went away meanwhile, how the
command ended is not known. One word with blanks in it is a line for the shell.

Over several agents the commands run side by side, lines are prefixed with the agent's name, and failures are summed
up; the exit code is then 0, or 6 when some failed. On a terminal such lines can have colours, but no other control
characters.""",
    arguments=[SELECTION],
    rest="COMMAND",
    options=[*SELECTORS, option("--timeout TIME", "end the command after this time, with exit code 124"), JSON_OPTION],
    examples=[
        ("mngr exec fix-login -- git log --oneline -3", "what it has committed"),
        ("mngr exec 'try-*' --timeout 5m -- make test", "the tests of a group, side by side"),
        ("mngr exec fix-login -- 'grep -r TODO . | wc -l'", "a line for the shell"),
    ],
)
def exec_(args: Args) -> int:
    if not args.rest:
        raise UsageError("exec needs a command behind --", "usage: mngr exec SELECTION -- COMMAND...")
    fleet = Fleet()
    refs = chosen(fleet, args)
    end_in_order(1)  # HUP: the command ends with the terminal that it was given from
    try:
        if len(refs) == 1 and not args.flag("json"):
            return _tell_timeout(execute(fleet, refs[0], args.rest, timeout=args.number("timeout")), args)
        return _many(fleet, refs, args.rest, args)
    except MngrError as error:
        if error.code == 1:
            error.code = OUR_FAULT
        raise


def _tell_timeout(code: int, args: Args) -> int:
    if code == TIMEOUT and args.text("timeout"):
        print(f"mngr: ended after {args.text('timeout')}", file=sys.stderr)
    return code


def _many(fleet: Fleet, refs: list[Ref], words: list[str], args: Args) -> int:
    width = max((len(ref.name) for ref in refs), default=0)

    def line(ref: Ref, is_error: bool, text: bytes) -> None:
        stream = sys.stderr if is_error else sys.stdout
        if stream.isatty():  # which is ours, and no command's
            text = tame(text.removesuffix(b"\r").decode("utf-8", "replace"), colours=True).encode()
        stream.buffer.write(ref.name.ljust(width).encode() + b" | " + text + b"\n")
        stream.buffer.flush()

    as_json = args.flag("json")
    ran = execute_many(fleet, refs, words, None if as_json else line, timeout=args.number("timeout"))
    failed = [each for each in ran if each.code]
    if as_json:
        print_json([each.to_dict() for each in ran])
    if len(ran) == 1 and ran[0].why:
        raise HostUnreachable(ran[0].why, "whether the command has ended there is not known")
    if len(ran) == 1:
        return _tell_timeout(ran[0].code, args)
    if failed:
        raise SomeFailed(f"{len(failed)} of {len(ran)} failed: " + ", ".join(_ended(each) for each in failed[:8]))
    return 0


def _ended(ran: Ran) -> str:
    return f"{ran.name} {ran.why or ('timed out' if ran.code == TIMEOUT else f'exit {ran.code}')}"
