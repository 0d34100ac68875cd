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
    own: bool = False  # in the user's own file alone: a project's must not say what runs here, or what a host may see


_COMMANDS = "of a provider of your own: command that "
KEYS = (
    Key(name="type", kind="text", help="agent type that create uses when none is given"),
    Key(name="ready_timeout", kind="number", help="seconds that a message waits for an agent to be ready", default=120),
    Key(name="setup", kind="text", help="command run in a new work dir before the agent starts"),
    Key(name="copy", kind="list", help="ignored files that are carried into a new work dir", default=[]),
    Key(name="pass_env", kind="list", help="variables of your environment that agents get", default=[]),
    Key(name="stop_grace", kind="number", help="seconds between asking an agent to stop and killing it", default=5),
    Key(
        name="providers.ssh.config", kind="text", help="configuration file for ssh, in place of your own one", own=True
    ),
    Key(name="providers.NAME.image", kind="text", help="image for new docker and podman hosts"),
    Key(name="providers.NAME.dockerfile", kind="text", help="file to build their image from"),
    Key(name="providers.NAME.mount", kind="list", help="what they see of this machine: HERE:THERE[:ro]", own=True),
    Key(name="providers.NAME.memory", kind="word", help="memory that one can use, as in 2g"),
    Key(name="providers.NAME.cpus", kind="word", help="processors that one can use, as in 1.5"),
    Key(name="providers.NAME.network", kind="text", help="their network: none, host, bridge or one by name", own=True),
    Key(name="providers.NAME.user", kind="word", help="user that agents are in them"),
    Key(name="providers.NAME.workdir", kind="text", help="their working directory"),
    Key(name="providers.NAME.run", kind="list", help="more arguments for docker run and podman run", own=True),
    Key(name="providers.NAME.home", kind="text", help="directory for mngr's files on hosts of any provider", own=True),
    Key(name="providers.NAME.options", kind="texts", help="defaults of --with for other providers", own=True),
    Key(name="providers.NAME.exec", kind="list", help=_COMMANDS + "runs {script} on {host}", own=True),
    Key(
        name="providers.NAME.tty",
        kind="list",
        help=_COMMANDS + "does so in a terminal",
        own=True,
    ),
    Key(name="providers.NAME.create", kind="list", help=_COMMANDS + "makes a host", own=True),
    Key(name="providers.NAME.list", kind="list", help=_COMMANDS + "prints its hosts, one on a line", own=True),
    Key(name="providers.NAME.destroy", kind="list", help=_COMMANDS + "removes one", own=True),
    Key(name="providers.NAME.stop", kind="list", help=_COMMANDS + "stops one", own=True),
    Key(name="providers.NAME.start", kind="list", help=_COMMANDS + "starts it again", own=True),
    Key(name="providers.NAME.snapshot", kind="list", help=_COMMANDS + "makes the image {name} of one", own=True),
    Key(name="hosts.NAME.target", kind="text", help="what ssh reaches NAME.ssh by, as in user@machine", own=True),
    Key(name="hosts.NAME.port", kind="word", help="port of its sshd", own=True),
    Key(name="hosts.NAME.key", kind="text", help="file with the private key for it", own=True),
    Key(name="hosts.NAME.jump", kind="text", help="machine that the connection goes through", own=True),
    Key(name="hosts.NAME.home", kind="text", help="directory for mngr's files there, in place of ~/.mngr", own=True),
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
# What a provider consists of that the configuration makes.
PROVIDER_COMMANDS = ("exec", "tty", "create", "list", "destroy", "stop", "start", "snapshot")
DEFAULTS = {key.name: key.default for key in KEYS if key.default is not None}
# What anybody may say of a new host: all else of `--with` is the user's own.
_HARMLESS = {key.name.rpartition(".")[2] for key in KEYS if key.name.startswith("providers.NAME.") and not key.own}

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
    `agent_types.NAME.env.VARIABLE`, `providers.NAME.options.OPTION`). Raises Misfit with the nearest key."""
    parts = key.split(".")
    declared = leaf(parts)
    if declared is None:
        return _find_inside(key, parts)
    if declared.kind == "option":
        verb, option = parts[1:]
        return pick(key, option, verb_keys(verb), f"an option of {verb.replace('_', ' ')}")
    if parts[0] == "providers" and parts[-1] in PROVIDER_COMMANDS:
        _check_new_provider(key, parts[1])
    return declared


def _check_new_provider(key: str, name: str) -> None:
    from mngr import builtin

    if name in builtin.mngr_providers():
        raise Misfit(key, f"would make a provider {name}, which mngr has already", "choose another name")


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
    return outer if declared is not None and declared.kind in ("env", "options", "texts") else None


def _find_inside(key: str, parts: list[str]) -> Key:
    if enclosing(key) is None:
        raise _unknown(key, parts)
    if parts[0] == "templates":
        return pick(key, parts[-1], template_keys(), "an option of create")
    if parts[0] == "providers":
        if not is_name(parts[-1]):
            raise Misfit(key, "is not the name of an option")
        return Key(name=parts[-1], kind="text", help="an option of new hosts", own=True)
    if not is_variable(parts[-1]):
        raise Misfit(key, "is not the name of an environment variable")
    check_not_ours(key)
    return Key(name=parts[-1], kind="text", help="an environment variable")


def is_variable(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def check_own(key: str, declared: Key, value: object = None) -> None:
    """Of a key in a project's file. Every verb would do what such a one says, in whatever repository it is called. What
    a host may see of this machine can also be said by a default for `--with`."""
    hint = "it belongs in your own file: mngr config path"
    if declared.own:
        raise Misfit(key, "is yours to say, not a project's", hint)
    if key.startswith("templates.") and isinstance(value, dict):
        key, value = f"{key}.with", value.get("with")
    if key.startswith(("commands.", "templates.")) and key.endswith(".with"):
        for word in value if isinstance(value, list) else [value]:
            option = str(word or "").partition("=")[0].strip()
            if option and option not in _HARMLESS:
                raise Misfit(key, f"has {option!a} in it, which is yours to say, not a project's", hint)


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
        if any(name.isupper() for name in beside) and not is_name(part):
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
