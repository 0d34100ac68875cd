"""The way in: find the verb, parse its words, run it, turn what it raises into one line and an exit code."""

from __future__ import annotations

import os
import sys

from mngr.errors import MngrError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mngr.grammar import Args

RUBBISH = (20_000, 20, 20)  # for Python: how many new objects are worth a look for those that can go
# These verbs explain or mend a broken configuration: they must run in spite of it, without defaults from it.
_MEND_CONFIG = ("config ", "help", "complet", "doctor")

_ASK_ALL = ("list", "ls")  # these verbs ask every host


def program() -> NoReturn:
    """`mngr` as a process of its own, which is short as a rule: it neither looks for rubbish often, nor takes itself
    apart at its end, object by object, before the kernel does."""
    import gc

    gc.set_threshold(*RUBBISH)
    code = main()
    if {"threading", "atexit"} & sys.modules.keys():  # they have something to do at the end
        sys.exit(code)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass  # nobody reads it any more, or there is no room: that was told, or something else was
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    _have_streams()
    end_in_order(15)  # TERM. HUP is left alone: an agent that stops itself goes with its terminal, the stop goes on
    try:
        try:
            code = _dispatch(list(words))
            sys.stdout.flush()
        except MngrError as error:
            _tell(error)
            code = error.code
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_stdout()  # `mngr list | head`: the reader has what it wanted
        return 141
    except OSError as error:  # a full disk, a file in the way, a directory that may not be entered
        where = f"{error.filename}: " if error.filename else ""
        _tell(MngrError(where + (error.strerror or str(error))))
        if not where:
            _forget_stdout()
        return MngrError.code


def _have_streams() -> None:
    """`mngr list >&-`: nothing in place of a closed stream. Characters that a terminal cannot show are spelled out."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as we live
    for stream in (sys.stdout, sys.stderr):
        if (stream.encoding or "utf-8").lower() not in ("utf-8", "utf8") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def end_in_order(number: int) -> None:
    """This signal goes the way of Ctrl-C: what is under way is ended and taken back before we go. `_signal`, since
    `signal` costs 4 ms."""
    import _signal  # type: ignore[import-not-found]

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if _signal.getsignal(number) == _signal.SIG_DFL:  # nohup ignores HUP
        _signal.signal(number, leave)


def _forget_stdout() -> None:
    """Point it at nothing, or the flush at exit complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _dispatch(words: list[str]) -> int:
    if words[:1] in (["--version"], ["-V"]):
        from mngr.version import VERSION

        print(f"mngr {VERSION}")
        return 0
    if not words or words[0] in ("-h", "--help"):
        words = ["help", *words[1:]]
    if words[0] not in _ASK_ALL or {"-h", "--help"} & set(words):
        return _run(words)
    from mngr.fleet.asking import ask_ahead, forget_ahead

    try:
        ask_ahead()  # before what reads the command line is loaded
        return _run(words)
    finally:
        forget_ahead()


def _run(words: list[str]) -> int:
    from mngr.grammar import parse
    from mngr.registry import find_command

    command, rest = find_command(words)
    args = parse(command, rest)
    if args.flag("help"):
        from mngr.cli.help import show_help

        return show_help(command)
    _apply_config(args)
    return command.run(args)


def _apply_config(args: Args) -> None:
    """`[commands.VERB]` gives defaults for the verb's own options; a flag wins over it."""
    from mngr.config import override

    for setting in args.many("set"):
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"-S takes KEY=VALUE, not {setting!r}")
        override(key, value)
    from mngr.config import load

    try:
        args.defaults = load().command(args.command.name)
    except MngrError:
        if not args.command.name.startswith(_MEND_CONFIG):
            raise


def _tell(error: MngrError) -> None:
    from mngr.cli.output import clean

    text = " ".join(error.message.splitlines()) or type(error).__name__
    print(f"mngr: {clean(text)}", file=sys.stderr)  # a host may have said it, and an agent have made it say so
    if error.hint:
        print(f"hint: {clean(error.hint)}", file=sys.stderr)
