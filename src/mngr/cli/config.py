"""`mngr config get|set|unset|list|path`: read and change the configuration. What the keys are stands in
mngr/config_keys.py, how a file is edited in mngr/config_edit.py."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTION, clean, notice, print_json
from mngr.errors import MngrError
from mngr.grammar import Args, Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.config import Config

_KEY = Argument(name="KEY", help="a dotted key, for example type or commands.create.connect", completes="config")
_PROJECT = option("--project", "the project's .mngr.toml instead of your own config.toml")
_LAYERS = (
    "Later layers win, with whole values: built-in defaults, your config.toml in $MNGR_HOME (~/.mngr), the project's "
    ".mngr.toml (the nearest one from the current directory up to the top of its repository), variables "
    "MNGR_CONFIG_KEY (dots are written as __), and -S KEY=VALUE."
)


@command(
    "config get",
    summary="print the value of a configuration key",
    usage=["config get [--json] KEY"],
    about="Prints a text as it is, a list one item per line, anything else as TOML. Exits with 1 when the key is not "
    "set and has no default.\n\n" + _LAYERS,
    arguments=[_KEY],
    options=[JSON_OPTION],
    examples=[
        ("mngr config get type", "the agent type that create uses"),
        ("mngr config get --json templates.review", "a whole template, for jq"),
    ],
)
def get(args: Args) -> int:
    from mngr.config import load
    from mngr.config_keys import enclosing, find

    key = args.words[0]
    find(key)
    outer = enclosing(key)
    value = load().get(outer or key)
    if outer:
        value = value.get(key[len(outer) + 1 :]) if isinstance(value, dict) else None
    if value is None:
        raise MngrError(f"{key} is not set", f"mngr config set {key} VALUE")
    if args.flag("json"):
        print_json(value)
        return 0
    from mngr.config_values import as_toml

    for item in value if isinstance(value, list) else [value]:
        print(item if isinstance(item, str) else as_toml(item))
    return 0


@command(
    "config set",
    summary="set a configuration key in your file or the project's",
    usage=["config set [--project] KEY VALUE"],
    about="VALUE is read as the type of the key: a text as it is, true or false, a number, a list as TOML or separated "
    "by commas, a table as TOML. One that begins with - follows `--`. Unknown keys and values of the wrong type are "
    "refused. Comments and order of the file stay as they are.\n\nA key inside a template or an "
    "environment (templates.NAME.OPTION, agent_types.NAME.env.NAME) is set in that file's own table.",
    arguments=[_KEY, Argument(name="VALUE", help="the new value")],
    options=[_PROJECT],
    examples=[
        ("mngr config set setup 'make deps'", "create runs it in every new work dir"),
        ("mngr config set --project copy .env,.env.local", "carry two ignored files into every work dir"),
        ("mngr config set commands.create.connect false", "create does not connect unless told to"),
        ("mngr config set templates.review.type codex", "the first option of a template"),
    ],
)
def set_(args: Args) -> int:
    from mngr.config_edit import set_in_file
    from mngr.config_keys import check_own, find
    from mngr.config_values import from_text

    key, text = args.words
    path, declared = _file(args), find(key)
    value = from_text(key, text, declared)
    if args.flag("project"):
        check_own(key, declared, value)
    set_in_file(path, key, value)
    _warn_if_hidden(key, path)
    return 0


def _warn_if_hidden(key: str, path: str) -> None:
    from mngr.config import load
    from mngr.config_keys import enclosing

    try:
        origin = load().origin(enclosing(key) or key)
    except MngrError:
        return  # another key is at fault, and every other verb says so
    if origin not in (path, "unset", "default"):  # the latter two: somebody else was quick to unset it
        notice(f"{key} is set, but {origin} wins over it")


@command(
    "config unset",
    summary="remove a configuration key from your file or the project's",
    usage=["config unset [--project] KEY"],
    about="The key may also be a whole table, or one that this version of mngr does not know. Exits with 1 when the "
    "file does not hold it.",
    arguments=[_KEY],
    options=[_PROJECT],
    examples=[
        ("mngr config unset type", "back to the built-in default"),
        ("mngr config unset --project templates.review", "remove a template of the project"),
    ],
)
def unset(args: Args) -> int:
    from mngr.config_edit import unset_in_file
    from mngr.config_keys import find, is_section

    key = args.words[0]
    path = _file(args)
    if not unset_in_file(path, key):
        if not is_section(key.split(".")):
            find(key)
        raise MngrError(f"{key} is not set in {path}", "mngr config list says where each key is set")
    return 0


@command(
    "config list",
    summary="list what is configured, and where",
    usage=["config list [--all] [--json]"],
    about="Prints every key that is set, its value, and as a comment the layer that gave it: the output is TOML. "
    "With --all, defaults and keys that are not set follow.\n\n" + _LAYERS,
    options=[option("--all", "also print defaults and the keys that are not set"), JSON_OPTION],
    examples=[
        ("mngr config list", "what is set, and which file set it"),
        ("mngr config list --all", "every key that there is, with its meaning"),
    ],
)
def list_(args: Args) -> int:
    from mngr.config import load
    from mngr.config_values import as_toml
    from mngr.variants import ancestry, names

    for name in names():
        ancestry(name)  # raises what is wrong with it: here all of the configuration is checked
    rows = _rows(load(), everything=args.flag("all"))
    if args.flag("json"):
        print_json(rows)
        return 0
    for row in rows:
        note = f"{row['origin']}: {row['help']}" if "help" in row else str(row["origin"])
        shown = "# " if row["value"] is None else ""
        value = "" if row["value"] is None else " " + as_toml(row["value"])
        print(f"{shown}{row['key']} ={value}  # {clean(note)}")
    return 0


def _rows(config: Config, everything: bool) -> list[dict[str, object]]:
    from mngr.config_keys import KEYS

    is_set = config.keys()
    rows: list[dict[str, object]] = [
        {"key": key, "value": config.get(key), "origin": config.origin(key)} for key in is_set
    ]
    if everything:
        rest = [key for key in KEYS if key.name not in is_set]
        rows += [{"key": k.name, "value": k.default, "origin": config.origin(k.name), "help": k.help} for k in rest]
    return rows


@command(
    "config path",
    summary="print the path of your configuration file or the project's",
    usage=["config path [--project]"],
    about="Prints the path whether or not the file exists. With --project: the nearest .mngr.toml from the current "
    "directory up to the top of its repository, or where config set --project would make one.",
    options=[_PROJECT],
    examples=[("$EDITOR $(mngr config path)", "edit your configuration by hand")],
)
def path(args: Args) -> int:
    print(_file(args))
    return 0


def _file(args: Args) -> str:
    from mngr.config import project_file, user_file

    return project_file() if args.flag("project") else user_file()
