"""What could stand at the cursor: the hidden verb behind the completion scripts of all three shells.

`mngr complete -- WORDS...` gets the words after `mngr`, the last one being typed, and prints one candidate per line,
each a replacement for that whole word. A first line `:files` or `:dirs` asks the shell to offer its own files as well.
It runs at every press of the tab key: it asks no host, and whatever goes wrong, it says nothing."""

from __future__ import annotations

import os
import sys

from mngr.grammar import COMMON, Args, Argument, Command, Option, command, option
from mngr.model import STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Candidate = tuple[str, str]  # the word, and a few words about it

FILES, DIRS = ":files", ":dirs"
SHELLS = ("bash", "zsh", "fish")


@command(
    "complete",
    summary="print what could stand at the cursor",
    usage=("complete [--describe] -- WORD...",),
    arguments=[Argument(name="WORD", help="see what follows --", optional=True, many=True)],
    options=[
        option("--describe", "all that fits the place, with a tab and a description; the shell does the matching")
    ],
    rest="the words after mngr, the last one as far as it has been typed",
    hidden=True,
)
def complete(args: Args) -> int:
    words = (args.rest if args.rest is not None else args.words) or [""]
    stderr = sys.stderr
    try:
        with open(os.devnull, "w") as sys.stderr:  # a plugin that is broken is told about elsewhere
            from mngr.registry import commands

            text = _printed(candidates(words, commands()), words[-1], args.flag("describe"))
        sys.stdout.write(text)
    except Exception:  # noqa: BLE001 - a line of error in the middle of a command line helps nobody
        pass
    finally:
        sys.stderr = stderr
    return 0


def candidates(words: list[str], known: dict[str, Command]) -> list[Candidate]:
    """All that may stand in the place of the last word; which of them match it is decided afterwards."""
    known = {name: verb for name, verb in known.items() if not verb.hidden}
    before, typed = words[:-1], words[-1]
    if before and before[0] in ("-h", "--help"):
        before = ["help", *before[1:]]
    if not before and typed.startswith("-"):
        return [("--help", "show the verbs"), ("--version", "show the version")]
    verb, rest = _verb(before, known)
    if verb is None:
        return _next_words(before, known)
    return _in_verb(verb, rest, typed, known)


def _printed(found: list[Candidate], typed: str, describe: bool) -> str:
    special = [word for word, _ in found if word in (FILES, DIRS)][:1]
    lines = dict.fromkeys(special)
    for word, about in found:
        if word in (FILES, DIRS) or not word.isprintable():
            continue
        if describe:
            lines[f"{word}\t{about}" if about.isprintable() and about else word] = None
        elif word.startswith(typed):
            lines[word] = None
    return "".join(f"{line}\n" for line in lines)


# Which verb, and where in it.


def _verb(words: list[str], known: dict[str, Command]) -> tuple[Command | None, list[str]]:
    """The verb that these words begin with (the longest), and the words that follow it."""
    from mngr.cli.help import names

    by_name = {name: command for command in known.values() for name in names(command)}
    for length in range(len(words), 0, -1):
        found = by_name.get(" ".join(words[:length]))
        if found is not None:
            return found, words[length:]
    return None, words


def _next_words(words: list[str], known: dict[str, Command]) -> list[Candidate]:
    """The next word of every verb that begins with `words`, and of its aliases."""
    from mngr.cli.help import names

    start = "".join(word + " " for word in words)
    found: dict[str, str] = {}
    for declared in known.values():
        for name in names(declared):
            if name.startswith(start):
                word, *more = name[len(start) :].split()
                about = declared.summary if name == declared.name else f"same as {declared.name}"
                found[word] = ", ".join(filter(None, (found.get(word), more[0]))) if more else about
    return sorted(found.items())


class _Place:
    """What the words before the cursor mean to the verb."""

    def __init__(self) -> None:
        self.words: list[str] = []  # arguments
        self.given: set[str] = set()  # keys of the options
        self.pending: Option | None = None  # the option whose value comes next
        self.after_dashes = False


def _read(verb: Command, words: list[str]) -> _Place:
    flags = _flags(verb)
    place = _Place()
    queue = list(words)
    while queue:
        word = queue.pop(0)
        place.pending = None
        if word == "--" and not place.after_dashes:
            place.after_dashes = True
        elif place.after_dashes or not word.startswith("-") or word == "-":
            place.words.append(word)
        elif word.startswith("--"):
            name, equals, _ = word.partition("=")
            _note(place, flags.get(name), bool(equals), queue)
        else:
            declared = flags.get(word[:2])
            if declared and declared.metavar is None and len(word) > 2:
                queue.insert(0, "-" + word[2:])  # -fq is -f -q
            _note(place, declared, len(word) > 2, queue)
    return place


def _note(place: _Place, declared: Option | None, has_value: bool, queue: list[str]) -> None:
    if declared is None:
        return
    place.given.add(declared.key)
    if declared.metavar is not None and not has_value:
        if queue:
            queue.pop(0)
        else:
            place.pending = declared


def _flags(verb: Command) -> dict[str, Option]:
    flags = {}
    for declared in verb.options + COMMON:
        for flag in declared.flags:
            flags[flag] = declared
            if declared.negatable:
                flags["--no-" + flag[2:]] = declared
    return flags


# What may stand there.


def _in_verb(verb: Command, before: list[str], typed: str, known: dict[str, Command]) -> list[Candidate]:
    place = _read(verb, before)
    if place.pending:
        return _values(place.pending, typed, known)
    if place.after_dashes and verb.rest is not None:
        return [(FILES, "")]
    if typed.startswith("-") and not place.after_dashes:
        name, equals, value = typed.partition("=")
        if not equals:
            return _options(verb, place, short=not typed.startswith("--"))
        declared = _flags(verb).get(name)
        return [] if declared is None else [_glued(name, found) for found in _values(declared, value, known)]
    wanted = _arguments_at(verb, len(place.words))
    if not wanted and not typed:
        return _options(verb, place, short=False)
    found: list[Candidate] = []
    for argument in wanted:
        if argument.completes == "verbs":
            found += _next_words(place.words, known)
        elif argument.completes == "config":
            found += _config_keys(typed, known)
        elif argument.completes == "tasks":
            found += _tasks(place.words[0])
        else:
            found += _argument_values(argument)
    return [candidate for candidate in found if candidate[0] not in place.words]


def _glued(name: str, value: Candidate) -> Candidate:
    return value if value[0] in (FILES, DIRS) else (f"{name}={value[0]}", value[1])


def _options(verb: Command, place: _Place, short: bool) -> list[Candidate]:
    return [
        (flag, declared.help if flag in declared.flags else f"the opposite of --{flag[5:]}")
        for flag, declared in _flags(verb).items()
        if (short or flag.startswith("--")) and (declared.many or declared.key not in place.given)
    ]


def _arguments_at(verb: Command, position: int) -> list[Argument]:
    """The arguments that a word at that position may be. Several, where words still to come decide:
    the first word of `[AGENT] NAME` is NAME if it stays alone."""
    position = min(position, 10)  # nothing changes further on, and there are shells where * gives 10,000 words
    found = {}
    for total in range(position + 1, position + 2 + len(verb.arguments)):
        for filled in _fillings(verb.arguments, total):
            found[filled[position].name] = filled[position]
    return [argument for argument in verb.arguments if argument.name in found]


def _fillings(arguments: tuple[Argument, ...], total: int) -> Iterator[list[Argument]]:
    """All ways in which that many words can be those arguments: for each word, which one it is. Optional ones are
    filled from the left."""
    if not arguments:
        if total == 0:
            yield []
        return
    first, later = arguments[0], arguments[1:]
    spare = total - sum(not argument.optional for argument in later)
    least = 0 if first.optional and spare <= 0 else 1
    most = spare if first.many else min(spare, 1)
    for count in range(least, most + 1):
        for others in _fillings(later, total - count):
            yield [first] * count + others


def _argument_values(argument: Argument) -> list[Candidate]:
    head, colon, _ = argument.name.partition(":")
    if not colon:
        return _source(argument.completes)
    # AGENT:PATH, AGENT[:PATH], [AGENT:]PATH: the brackets say which of the two may stand alone.
    agents = _agents()
    found = [(name + ":", about) for name, about in agents]
    if head.endswith("["):
        found += agents
    elif head.startswith("["):
        found.append((FILES, ""))
    return found


def _values(declared: Option, typed: str, known: dict[str, Command]) -> list[Candidate]:
    if declared.metavar is None:
        return []
    if declared.choices:
        return _plain(declared.choices)
    if declared.completes == "config":  # -S KEY=VALUE
        return [(key if key.endswith(".") else key + "=", about) for key, about in _config_keys(typed, known)]
    if declared.completes == "states":  # several may stand together: waiting,failed
        before = typed.rpartition(",")
        return [("".join(before[:2]) + state, "") for state in STATES if state not in before[0].split(",")]
    return _source(declared.completes)


def _source(kinds: str) -> list[Candidate]:
    return [candidate for kind in kinds.split() if kind in SOURCES for candidate in SOURCES[kind]()]


def _plain(words: Iterable[str]) -> list[Candidate]:
    return [(word, "") for word in words]


def _agents() -> list[Candidate]:
    return [(name, f"{type} on {host}" if type else "") for name, host, _, type in _names()]


def _names() -> list[tuple[str, str, str, str]]:
    """Name, host, id and type of every agent, as the registry of names has them: `names/NAME -> host/id/type`."""
    from mngr.address import is_name

    directory = _home("names")
    found = []
    for name in sorted(filter(is_name, _listed(directory))):
        try:
            host, id, type, *_ = os.readlink(os.path.join(directory, name)).split("/")
        except (OSError, ValueError):
            host = id = type = ""
        found.append((name, host, id, type))
    return found


def _labels() -> list[Candidate]:
    """Those of the agents on this machine, whose records are at hand."""
    import json

    directory = _home("agents")
    found: set[str] = set()
    for id in _listed(directory):
        try:
            with open(os.path.join(directory, id, "agent.json"), encoding="utf-8") as file:
                found.update(f"{key}={value}" for key, value in json.load(file)["labels"].items())
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
    return _plain(sorted(found))


def _snapshots() -> list[Candidate]:
    """Those kept on this machine: `snapshots/<id of the agent>/<name>`."""
    directory = _home("snapshots")
    names = {id: f"of {name}" for name, _, id, _ in _names()}
    return [
        (name, names.get(id, ""))
        for id in sorted(_listed(directory))
        for name in sorted(_listed(os.path.join(directory, id)))
    ]


def _runs() -> list[Candidate]:
    from mngr.home import home_path
    from mngr.swarm.runs import known_runs

    return _plain(reversed(known_runs(home_path())))


def _tasks(run: str) -> list[Candidate]:
    """By their short names, which need no quotes in any shell."""
    from mngr.home import home_path
    from mngr.swarm.runs import find_run
    from mngr.swarm.state import load

    return [(task.id, task.title) for task in load(find_run(home_path(), run)).tasks.values()]


def _settings() -> list[Candidate]:
    from mngr.swarm.settings import SETTINGS

    return [(f"{setting.name}=", setting.help) for setting in SETTINGS]


def _home(name: str) -> str:
    from mngr.home import home_path

    return os.path.join(home_path(), name)


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _types() -> list[Candidate]:
    from mngr.registry import agent_types

    return _plain(sorted(agent_types()))


def _hosts() -> list[Candidate]:
    from mngr.registry import providers

    known = {name for name, _ in _places()} | {host for _, host, _, _ in _names() if host}
    return _plain(sorted({*providers(), *known}))


def _places() -> list[Candidate]:
    """The hosts that are known here, by their records."""
    return _plain(sorted(name for name in _listed(_home("hosts")) if not name.startswith(".")))


def _templates() -> list[Candidate]:
    from mngr.config import load

    keys = load().keys()
    return _plain(key.removeprefix("templates.") for key in keys if key.startswith("templates."))


def _config_keys(typed: str, known: dict[str, Command]) -> list[Candidate]:
    """The keys with names of their own, those that are set, and how the others begin: `commands.` opens into the
    options of all verbs, too many to show before it has been typed."""
    from mngr.config import load
    from mngr.config_keys import KEYS, table_name

    is_set = load().keys()
    found = {}
    for key in KEYS:
        first, dot, _ = key.name.partition(".")
        found[first + dot] = "" if dot else key.help
    found.update((name, "is set") for name in is_set if name not in found)
    if typed.startswith("commands."):
        found.update(
            (f"commands.{table_name(verb.name)}.{declared.key}", declared.help)
            for verb in known.values()
            for declared in verb.options
        )
    return list(found.items())


def _branches() -> list[Candidate]:
    import subprocess

    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname:short)", "refs/heads"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2,
    )
    return _plain(listed.stdout.splitlines())


SOURCES: dict[str, Callable[[], list[Candidate]]] = {
    "agents": _agents,
    "branches": _branches,
    "dirs": lambda: [(DIRS, "")],
    "files": lambda: [(FILES, "")],
    "hosts": _hosts,
    "labels": _labels,
    "places": _places,
    "runs": _runs,
    "settings": _settings,
    "shells": lambda: _plain(SHELLS),
    "snapshots": _snapshots,
    "states": lambda: _plain(STATES),
    "templates": _templates,
    "types": _types,
}
