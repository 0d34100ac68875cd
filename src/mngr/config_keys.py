"""Every configuration key: its type, its default and one line of help. docs/config.md and `config list --all` show
this table; a segment in capitals stands for any name. What a verb's options are is read from the verb's own
declaration, and only when such a key is looked at: importing a verb to read a file costs start-up time."""

from __future__ import annotations

from mngr.address import is_name, nearest
from mngr.errors import UsageError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Command, Option


class Key(Record):
    name: str
    kind: str  # one of config_values.KINDS
    help: str
    default: object = None
    choices: tuple[str, ...] = ()


KEYS = (
    Key(name="type", kind="text", help="agent type that create uses when none is given"),
    Key(name="ready_timeout", kind="number", help="seconds that a message waits for an agent to be ready", default=120),
    Key(name="setup", kind="text", help="command run in a new work dir before the agent starts"),
    Key(name="copy", kind="list", help="ignored files that are carried into a new work dir", default=[]),
    Key(name="pass_env", kind="list", help="variables of your environment that agents get", default=[]),
    Key(name="stop_grace", kind="number", help="seconds between asking an agent to stop and killing it", default=5),
    Key(name="integrate.tests", kind="list", help="paths that are tests, as in .gitignore, for integrate"),
    Key(name="integrate.docs", kind="list", help="paths that are documentation, likewise"),
    Key(name="integrate.tutorial", kind="list", help="paths that are the tutorial, likewise"),
    Key(name="commands.VERB.OPTION", kind="option", help="default for an option of a verb"),
    Key(name="templates.NAME", kind="options", help="a named set of create's options, with type and args"),
    Key(name="agent_types.NAME.parent", kind="text", help="agent type that this one is a variant of"),
    Key(name="agent_types.NAME.args", kind="list", help="arguments that come before those after `--`"),
    Key(name="agent_types.NAME.model", kind="text", help="model that its agents use"),
    Key(name="agent_types.NAME.env", kind="env", help="variables that its agents get, unless others are given"),
)
DEFAULTS = {key.name: key.default for key in KEYS if key.default is not None}

_PATTERNS = [(key.name.split("."), key) for key in KEYS]
_BEYOND_FLAGS = {  # keys that sit beside a verb's options although they are no flags of it
    "create": (Key(name="connect_command", kind="text", help="command that connects, instead of mngr's own"),),
    "connect": (Key(name="connect_command", kind="text", help="command that connects, instead of mngr's own"),),
}
_IN_TEMPLATES = (
    Key(name="type", kind="text", help="agent type"),
    Key(name="args", kind="list", help="arguments for the program, as after `--`"),
)


class Misfit(UsageError):
    """A key or a value that the table does not allow. It learns its place (file and line, variable) on the way up."""

    def __init__(self, key: str, problem: str, hint: str | None = None, place: str = "") -> None:
        shown = key if key and key.replace(".", "").replace("-", "_").replace("_", "a").isalnum() else ascii(key)
        super().__init__(f"{shown} in {place} {problem}" if place else f"{shown} {problem}", hint)
        self.key, self.problem = key, problem

    def at(self, place: str) -> Misfit:
        return Misfit(self.key, self.problem, self.hint, place)


def find(key: str) -> Key:
    """The declaration of a dotted key, also of one inside a table-like value (`templates.NAME.OPTION`,
    `agent_types.NAME.env.VARIABLE`). Raises Misfit with the nearest key."""
    parts = key.split(".")
    declared = leaf(parts)
    if declared is None:
        return _find_inside(key, parts)
    if declared.kind == "option":
        verb, option = parts[1:]
        return pick(key, option, verb_keys(verb), f"an option of {verb.replace('_', ' ')}")
    return declared


def leaf(parts: list[str]) -> Key | None:
    """The key whose whole value sits at this path: the unit in which layers replace each other."""
    for pattern, key in _PATTERNS:
        if len(pattern) == len(parts) and _matches(pattern, parts):
            return key
    return None


def is_section(parts: list[str]) -> bool:
    """Whether keys lie below this path."""
    return any(len(pattern) > len(parts) and _matches(pattern, parts) for pattern, _ in _PATTERNS)


def _matches(pattern: list[str], parts: list[str]) -> bool:
    return all(want == part or (want.isupper() and is_name(part)) for want, part in zip(pattern, parts, strict=False))


def enclosing(key: str) -> str | None:
    """The key with a table for its value that this one lies inside of, if it does."""
    outer = key.rpartition(".")[0]
    declared = leaf(outer.split("."))
    return outer if declared is not None and declared.kind in ("env", "options") else None


def _find_inside(key: str, parts: list[str]) -> Key:
    if enclosing(key) is None:
        raise _unknown(key, parts)
    if parts[0] == "templates":
        return pick(key, parts[-1], template_keys(), "an option of create")
    if not is_variable(parts[-1]):
        raise Misfit(key, "is not the name of an environment variable")
    check_not_ours(key)
    return Key(name=parts[-1], kind="text", help="an environment variable")


def is_variable(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def check_not_ours(key: str) -> None:
    if key.rpartition(".")[2].startswith("MNGR_"):
        raise Misfit(key, "belongs to mngr itself")


def _unknown(key: str, parts: list[str]) -> Misfit:
    if is_section(parts):
        return Misfit(key, "is a table of keys, not a key", "mngr config list shows the keys that are set")
    known = [pattern for pattern, _ in _PATTERNS]
    for depth, part in enumerate(parts):
        beside = [pattern[depth] for pattern in known if len(pattern) > depth]
        known = [pattern for pattern in known if len(pattern) > depth and _matches(pattern[depth:], [part])]
        if known:
            continue
        if beside and beside[0].isupper():
            return Misfit(key, f"has an invalid name, {part!a}", "names are lower-case letters, digits, - and _")
        close = nearest(part, beside)
        if close:
            meant = ".".join([*parts[:depth], close, *parts[depth + 1 :]])
            return Misfit(key, "is not a key", f"did you mean {meant}?")
        break
    return Misfit(key, "is not a key", "mngr config list --all shows every key")


def verb_keys(verb: str) -> dict[str, Key]:
    """The keys of `[commands.VERB]`; a verb of two words is written with an underscore: `snapshot_create`."""
    declared = verb_declaration(verb)
    keys = [_option_key(option) for option in declared.options]
    return {key.name: key for key in (*_BEYOND_FLAGS.get(verb, ()), *keys)}


def template_keys() -> dict[str, Key]:
    return {**verb_keys("create"), **{key.name: key for key in _IN_TEMPLATES}}


def check_verb(verb: str) -> None:
    """Raises Misfit when there is no such verb, or this is only its alias. Knowing that imports no built-in verb."""
    from mngr import builtin

    names: dict[str, str] = {}
    for name, reference in builtin.mngr_commands().items():
        names.setdefault(reference, table_name(name))  # what comes later are aliases
    if verb not in names.values():
        verb_declaration(verb)


def verb_declaration(verb: str) -> Command:
    from mngr.registry import find_command

    try:
        declared, rest = find_command(verb.split("_"))
    except UsageError as error:
        raise Misfit(f"commands.{verb}", "is not a verb", error.hint) from error
    if rest or table_name(declared.name) != verb:
        raise Misfit(f"commands.{verb}", "is not a verb", f"did you mean commands.{table_name(declared.name)}?")
    return declared


def table_name(verb: str) -> str:
    return verb.replace(" ", "_")


def _option_key(option: Option) -> Key:
    kind = "flag" if option.metavar is None else "list" if option.many else "word"
    return Key(name=option.key, kind=kind, help=option.help, choices=option.choices)


def pick(key: str, name: str, known: dict[str, Key], what: str) -> Key:
    if name not in known:
        close = nearest(name, list(known))
        hint = f"did you mean {close}?" if close else f"there are {', '.join(sorted(known))}"
        raise Misfit(key, f"is not {what}", hint)
    return known[name]
