"""`mngr help`, and the page that every verb shows for --help: plain text, made from the verb's declaration.

What a page says (its options, paragraphs, exit codes, neighbours) is decided here once; cli/man.py takes it from here
and only sets it in roff, so that the two can differ in looks but not in content."""

from __future__ import annotations

import os
import sys

from mngr.errors import EXIT_CODES, UsageError
from mngr.grammar import COMMON, Args, Argument, Command, Option, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WHAT_IT_IS = "launch, watch, message and collect work from many coding agents at once"

GROUPS = (
    ("Start and end", ("create", "clone", "start", "stop", "destroy")),
    ("Look", ("list", "explain", "capture", "transcript", "usage", "events", "wait")),
    ("Talk", ("connect", "message", "exec")),
    ("Places", ("host",)),
    ("Work", ("pull", "push", "integrate", "snapshot")),
    ("Prove", ("swarm", "tutorial", "e2e", "dev")),
    ("Keep house", ("rename", "label", "gc", "config", "plugin", "doctor", "completion", "help")),
)
OTHERS = "More verbs"  # those of plugins, and new ones that nobody has put into a group yet

EXAMPLES = (
    (
        "mngr create fix-login command -- ./fix.sh",
        "start a program as an agent, in a worktree and on a branch of its own",
    ),
    ("mngr list", "see which agents run and which wait for you"),
    ("mngr connect fix-login", "attach to its terminal"),
    ("mngr pull fix-login", "fetch its commits into this repository"),
)

WIDEST = 100
_LABEL = 26  # a longer label stands on a line of its own


@command(
    "help",
    summary="explain a verb, or list them all",
    usage=("help [VERB...]",),
    about="Without words, the verbs in groups. With the first word of several verbs, such as snapshot, those verbs.",
    arguments=[
        Argument(name="VERB", help="the verb, or its alias", optional=True, many=True, completes="verbs"),
    ],
    examples=[
        ("mngr help create", "everything about one verb; mngr create --help says the same"),
        ("mngr help snapshot", "the verbs that deal with snapshots"),
    ],
)
def help_(args: Args) -> int:
    from mngr.registry import commands

    known = visible(commands())
    if not args.words:
        return _show(overview(known, _width(), _is_rich()))
    found = find(args.words, known)
    if isinstance(found, Command):
        return show_help(found)
    return _show(family_page(args.words, found, _width(), _is_rich()))


def show_help(command: Command) -> int:
    return _show(page(command, _width(), _is_rich()))


# What the pages say: shared with the man pages.


def visible(commands: dict[str, Command]) -> dict[str, Command]:
    return {name: verb for name, verb in commands.items() if not verb.hidden}


def families(commands: dict[str, Command]) -> dict[str, list[Command]]:
    """The verbs by their first word: `snapshot` has four, most have one."""
    by_word: dict[str, list[Command]] = {}
    for verb in commands.values():
        by_word.setdefault(verb.name.split()[0], []).append(verb)
    return by_word


def groups(words: Iterable[str]) -> list[tuple[str, list[str]]]:
    """First words of verbs under their titles, in the order in which a newcomer should meet them."""
    left = dict.fromkeys(words)
    titled = []
    for title, members in GROUPS:
        present = [word for word in members if word in left]
        for word in present:
            del left[word]
        titled.append((title, present))
    titled.append((OTHERS, sorted(left)))
    return [(title, present) for title, present in titled if present]


def find(words: list[str], known: dict[str, Command]) -> Command | list[Command]:
    """The verb of that name or alias, or the verbs that begin with these words. Raises UsageError."""
    wanted = " ".join(words)
    for verb in known.values():
        if wanted in names(verb):
            return verb
    below = [verb for verb in known.values() if verb.name.startswith(wanted + " ")]
    if below:
        return below
    from mngr.address import nearest

    close = nearest(wanted, [name for verb in known.values() for name in names(verb)] + list(families(known)))
    raise UsageError(
        f"there is no verb {wanted!r}",
        f"did you mean {close}? mngr help lists all verbs" if close else "mngr help lists all verbs",
    )


def names(command: Command) -> list[str]:
    """All that a verb answers to. An alias of `snapshot destroy` may be declared as `rm` or as `snapshot rm`."""
    parent = command.name.rpartition(" ")[0]
    return [command.name, *(f"{parent} {alias}" if parent and " " not in alias else alias for alias in command.aliases)]


def flag_words(option: Option) -> list[str]:
    """`-m` and `--message`, `--[no-]connect`."""
    return [
        flag.replace("--", "--[no-]", 1) if option.negatable and flag.startswith("--") else flag
        for flag in option.flags
    ]


def option_text(option: Option) -> str:
    """Its help, and what the declaration knows besides."""
    parts = [option.help]
    if option.choices:
        parts.append(f"one of {', '.join(option.choices)}")
    if option.many:
        parts.append("may be repeated")
    return "; ".join(parts)


def argument_rows(command: Command) -> list[tuple[str, str]]:
    rows = [
        (argument.name, argument.help + ("; may be repeated" if argument.many else ""))
        for argument in command.arguments
    ]
    if command.rest is None:
        return rows
    if " " in command.rest:
        return [*rows, ("--", command.rest)]
    return [*rows, (f"-- {command.rest}", "all words that follow, as they are")]


def all_options(command: Command) -> tuple[Option, ...]:
    return command.options + COMMON


def exit_codes(command: Command | None = None) -> list[tuple[str, str]]:
    if command is not None and command.name == "exec":
        return [
            ("0-255", "what the command itself ended with, when it ran for one agent"),
            *((str(code), EXIT_CODES[code]) for code in (2, 3, 5, 6)),
            ("124", "timeout"),
            ("125", "mngr itself failed in another way"),
        ]
    return [(str(code), meaning) for code, meaning in EXIT_CODES.items()]


def paragraphs(text: str) -> list[str]:
    """Blank lines separate paragraphs; one whose first line is indented is kept line by line, as an example."""
    lines = text.strip("\n").expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    lines = [
        lines[0].strip() if lines[0][:margin].strip() else lines[0][margin:],
        *(line[margin:] for line in lines[1:]),
    ]
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line.rstrip())
        elif found[-1]:
            found.append([])
    return ["\n".join(p) if p[0].startswith(" ") else " ".join(" ".join(p).split()) for p in found if p]


# How they look on a terminal.


def page(command: Command, width: int = 80, rich: bool = False) -> str:
    out = _Page(width, rich)
    out.title(f"mngr {command.name}", command.summary)
    out.heading("Usage")
    for usage in command.usage:
        out.hanging(f"mngr {usage}")
    if command.aliases:
        out.heading("Aliases")
        out.text(", ".join(f"mngr {name}" for name in names(command)[1:]))
    if command.about:
        out.heading("What it does")
        out.prose(command.about)
    if argument_rows(command):
        out.heading("Arguments")
        out.table(argument_rows(command))
    out.heading("Options")
    out.table([(_option_label(option), option_text(option)) for option in all_options(command)])
    if command.examples:
        out.heading("Examples")
        out.examples(command.examples)
    out.heading("Exit codes")
    out.table(exit_codes(command))
    return out.finished()


def family_page(words: list[str], members: list[Command], width: int = 80, rich: bool = False) -> str:
    name = " ".join(words)
    out = _Page(width, rich)
    out.title(f"mngr {name}", f"{len(members)} verb{'s' if len(members) != 1 else ''}")
    out.heading("Usage")
    for member in members:
        for usage in member.usage:
            out.hanging(f"mngr {usage}")
    out.heading("Verbs")
    out.table([(member.name, member.summary) for member in members])
    out.gap()
    out.text(f"mngr help {members[0].name} tells all about that one.", indent="")
    return out.finished()


def overview(commands: dict[str, Command], width: int = 80, rich: bool = False) -> str:
    by_word = families(commands)
    out = _Page(width, rich)
    out.title("mngr", WHAT_IT_IS)
    out.heading("Usage")
    out.hanging("mngr VERB [WORDS...]")
    rows = {word: _overview_line(word, members) for word, members in by_word.items()}
    for title, present in groups(by_word):
        out.heading(title)
        out.table([(word, rows[word]) for word in present], label=max(map(len, rows)))
    out.heading("Examples")
    out.examples(EXAMPLES)
    out.gap()
    out.text("mngr help VERB tells all about one verb; mngr --version says which mngr this is.", indent="")
    return out.finished()


def _overview_line(word: str, members: list[Command]) -> str:
    if len(members) == 1 and members[0].name == word:
        aliases = members[0].aliases
        return members[0].summary + (f" (or {', '.join(aliases)})" if aliases else "")
    return ", ".join(member.name.removeprefix(word).strip() or word for member in members)


def _option_label(option: Option) -> str:
    return ", ".join(flag_words(option)) + (f" {option.metavar}" if option.metavar else "")


class _Page:
    """Lines of text no wider than the terminal. Bold is put on after wrapping, so that it takes no width."""

    def __init__(self, width: int, rich: bool) -> None:
        self.width = width
        self.rich = rich
        self.lines: list[str] = []

    def finished(self) -> str:
        return "\n".join(self.lines) + "\n"

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.rich else text

    def gap(self) -> None:
        self.lines.append("")

    def title(self, name: str, summary: str) -> None:
        first, *more = self._wrap(f"{name}: {summary}", "", "  ")
        self.lines += [self.bold(first[: len(name)]) + first[len(name) :], *more]

    def heading(self, text: str) -> None:
        self.lines += ["", self.bold(text)]

    def text(self, text: str, indent: str = "  ") -> None:
        self.lines += self._wrap(text, indent, indent)

    def hanging(self, text: str) -> None:
        self.lines += self._wrap(text, "  ", "      ")

    def prose(self, text: str) -> None:
        for number, paragraph in enumerate(paragraphs(text)):
            if number:
                self.gap()
            if paragraph.startswith(" "):
                self.lines += ["  " + line for line in paragraph.split("\n")]
            else:
                self.text(paragraph)

    def table(self, rows: Iterable[tuple[str, str]], label: int = 0) -> None:
        rows = list(rows)
        column = label or max((len(left) for left, _ in rows if len(left) <= _LABEL), default=_LABEL)
        if self.width - column < 30:
            column = 2  # too narrow for two columns: the texts go below the labels
        indent = " " * (column + 4)
        for left, right in rows:
            wrapped = self._wrap(right, indent, indent)
            if len(left) <= column:
                self.lines.append(f"  {self.bold(left)}{' ' * (column - len(left))}  {wrapped[0].lstrip()}".rstrip())
                self.lines += wrapped[1:]
            else:
                self.lines += [f"  {self.bold(left)}", *wrapped]

    def examples(self, examples: Iterable[tuple[str, str]]) -> None:
        for line, meaning in examples:
            self.lines += ["  " + self.bold(part) for part in line.split("\n")]  # never wrapped: to be copied
            self.lines += self._wrap(meaning, "      ", "      ")

    def _wrap(self, text: str, first: str, later: str) -> list[str]:
        import textwrap

        return textwrap.wrap(
            text,
            max(self.width, len(later) + 20),
            initial_indent=first,
            subsequent_indent=later,
            break_on_hyphens=False,
            break_long_words=False,
        ) or [""]


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        width = int(columns)
    else:
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            width = 80
    return min(width, WIDEST)


def _is_rich() -> bool:
    return _on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def _show(text: str) -> int:
    pager = _pager() if _on_terminal() and not _fits(text) else None
    if pager is None or not _paged(text, pager):
        sys.stdout.write(text)
    return 0


def _fits(text: str) -> bool:
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return True
    return rows == 0 or text.count("\n") < rows


def _pager() -> str | None:
    chosen = os.environ.get("PAGER")
    if chosen is not None:
        return chosen.strip() or None  # PAGER= switches it off
    import shutil

    return "less" if shutil.which("less") else None


def _paged(text: str, pager: str) -> bool:
    """False when that pager could not be started: the page is then printed as it is."""
    import signal
    import subprocess

    sys.stdout.flush()
    env = {"LESS": "FRX", **os.environ}  # -R: bold is shown, not spelled out
    process = subprocess.Popen(["/bin/sh", "-c", pager], stdin=subprocess.PIPE, env=env, text=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C inside less is for less
    try:
        process.communicate(text)
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode not in (126, 127)
