"""How a verb is declared and how its words are parsed. One declaration per verb gives the parser, `mngr help`, the man
page and the completion. Not argparse: it costs as much to import as `list` costs to run, and its handling of `--` and
of abbreviations is not ours. Long options are never abbreviated; the nearest one is suggested instead."""

from __future__ import annotations

from mngr.address import nearest
from mngr.errors import UsageError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Option(Record):
    flags: tuple[str, ...]  # ("-m", "--message")
    metavar: str | None  # None: a switch
    help: str
    many: bool = False
    negatable: bool = False  # --connect / --no-connect
    choices: tuple[str, ...] = ()
    completes: str = ""  # agents, files, states and so on: cli/complete.py has them all

    @property
    def key(self) -> str:
        return self.flags[-1].lstrip("-").replace("-", "_")


class Argument(Record):
    name: str
    help: str
    optional: bool = False
    many: bool = False
    completes: str = ""


class Command(Record):
    name: str  # "create", "snapshot create"
    summary: str  # one line, no full stop
    run: Callable[[Args], int]
    usage: tuple[str, ...]  # each without the leading "mngr "
    about: str = ""  # paragraphs
    aliases: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    rest: str | None = None  # what follows `--`, for help; None: nothing may
    examples: tuple[tuple[str, str], ...] = ()  # (command line, what it does)
    hidden: bool = False


def command(name: str, *, summary: str, **declared: object) -> Callable[[Callable[[Args], int]], Command]:
    """Turns `def stop(args) -> int` into the Command that the registry and the help pages know."""
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in declared.items()}

    def wrap(run: Callable[[Args], int]) -> Command:
        return Command(name=name, summary=summary, run=run, **fields)  # type: ignore[arg-type]

    return wrap


def option(flags: str, help: str, *, many: bool = False, choices: Sequence[str] = (), completes: str = "") -> Option:
    """`-m, --message TEXT`, `--all`, `--[no-]connect`."""
    words = flags.replace(",", " ").split()
    metavar = None if words[-1].startswith("-") else words.pop()
    negatable = words[-1].startswith("--[no-]")
    names = tuple(word.replace("[no-]", "") for word in words)
    return Option(
        flags=names,
        metavar=metavar,
        help=help,
        many=many,
        negatable=negatable,
        choices=tuple(choices),
        completes=completes,
    )


COMMON = (
    option("-S, --set KEY=VALUE", "override one configuration key for this call", many=True, completes="config"),
    option("-h, --help", "show this help"),
)


class Args:
    """The parsed words of one call. Accessors are typed, so that a verb cannot misread a switch as a text."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.words: list[str] = []
        self.rest: list[str] | None = None  # what followed `--`; None when there was no `--`
        self.given: dict[str, str | bool | list[str]] = {}
        self.defaults: dict[str, object] = {}  # [commands.VERB] of the configuration, or a template

    def word(self, position: int) -> str | None:
        return self.words[position] if position < len(self.words) else None

    def text(self, key: str) -> str | None:
        value = self.given.get(key, self.defaults.get(key))
        return None if value is None else str(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.given.get(key, self.defaults.get(key))
        return default if value is None else bool(value)

    def many(self, key: str) -> list[str]:
        value = self.given.get(key, self.defaults.get(key))
        if value is None:
            return []
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]

    def number(self, key: str) -> float | None:
        text = self.text(key)
        return None if text is None else seconds(text, "--" + key.replace("_", "-"))

    def count(self, key: str, default: int) -> int:
        text = self.text(key)
        if text is None:
            return default
        if not text.isdecimal() or len(text) > 5 or not 0 < int(text) <= 10_000:
            raise UsageError(f"--{key.replace('_', '-')} takes a whole number from 1 to 10000, not {text!r}")
        return int(text)


def duration(text: str) -> float:
    """Seconds: `90`, `1.5`, `30s`, `5m`, `2h`, `1d`. ValueError, with what it should have been, for other texts."""
    scale = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    try:
        value = float(text[:-1]) * scale if scale else float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e9:
        raise ValueError("seconds, or a number with s, m, h or d")
    return value


def seconds(text: str, what: str) -> float:
    try:
        return duration(text)
    except ValueError as error:
        raise UsageError(f"{what} takes {error}, not {text!r}") from None


def parse(command: Command, words: list[str]) -> Args:
    args = Args(command)
    known: dict[str, tuple[Option, bool]] = {}
    for declared in command.options + COMMON:
        for name in declared.flags:
            known[name] = (declared, True)
            if declared.negatable:
                known["--no-" + name[2:]] = (declared, False)
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            if command.rest is None:
                args.words += queue
            else:
                args.rest = queue
            break
        if not word.startswith("-") or word == "-":
            args.words.append(word)
            continue
        _take(word, queue, known, args)
    if "help" not in args.given:
        _check_arguments(args)
    return args


def _take(word: str, queue: list[str], known: dict[str, tuple[Option, bool]], args: Args) -> None:
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    if name not in known:
        close = nearest(name, list(known))
        raise UsageError(
            f"{args.command.name} has no option {name}",
            f"did you mean {close}?" if close else f"see mngr help {args.command.name}",
        )
    declared, positive = known[name]
    if declared.metavar is None:
        if word.startswith("--") and equals:
            raise UsageError(f"{name} takes no value")
        args.given[declared.key] = positive
        if not word.startswith("--") and value:
            queue.insert(0, "-" + value)  # -fq is -f -q
        return
    if not equals:
        if not queue:
            raise UsageError(f"{name} needs a value: {name} {declared.metavar}")
        value = queue.pop(0)
    if declared.choices and value not in declared.choices:
        raise UsageError(f"{name} is one of {', '.join(declared.choices)}, not {value!r}")
    if declared.many:
        held = args.given.setdefault(declared.key, [])
        assert isinstance(held, list)
        held.append(value)
    else:
        args.given[declared.key] = value


def _check_arguments(args: Args) -> None:
    declared = args.command.arguments
    needed = sum(not argument.optional for argument in declared)
    most = len(declared) if not any(argument.many for argument in declared) else None
    if len(args.words) < needed:
        missing = [argument.name for argument in declared if not argument.optional][len(args.words)]
        raise UsageError(f"{args.command.name} needs {missing}", f"usage: mngr {args.command.usage[0]}")
    if most is not None and len(args.words) > most:
        raise UsageError(
            f"{args.command.name} does not take {args.words[most]!r}", f"usage: mngr {args.command.usage[0]}"
        )
