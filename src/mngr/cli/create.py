"""create: new agents."""

from __future__ import annotations

import os
import sys

from mngr.cli.made import connect_if_wanted, show
from mngr.cli.outcomes import error_of
from mngr.cli.output import JSON_OPTION, notice
from mngr.cli.selection import pairs
from mngr.errors import UsageError
from mngr.fleet.create import SomeNotCreated
from mngr.fleet.create import create as create_agents
from mngr.fleet.fleet import Fleet
from mngr.fleet.plan import Request
from mngr.grammar import Argument, command, option
from mngr.model import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args
    from mngr.model import Agent


@command(
    "create",
    summary="make agents and start them",
    usage=["create [NAME][@HOST[.PROVIDER]] [TYPE] [OPTIONS] [-- ARGS...]"],
    about="""Makes an agent: a program in a tmux session, with a work dir, a branch, an environment and labels of its
own. A single word is always the name; a name is made up when none is given.

TYPE is the kind of agent: claude, codex or opencode, whose arguments follow `--`; or command, where the program and its
arguments do (one word with blanks in it is a line for the shell; without any, it is your shell); or one of your own
(see docs/config.md). Without a TYPE it is the one of the configuration (mngr config set type claude), else a command if
a program follows `--`, else the only one of these programs that is installed. Coding agents start unattended, each with
a configuration directory of its own in which your settings are merged and your credentials linked; the variables that
lead to the model (ANTHROPIC_API_KEY and the like) are passed on.

The work dir is a new git worktree on the new branch mngr/NAME, unless --mode says otherwise: clone (a repository of its
own, with objects borrowed from a store), copy (of a directory that is no repository, the default there) or none (the
source itself). Uncommitted changes of the source stay behind, with a warning, unless --dirty carries them.

If any step fails, nothing is left behind: no work dir, branch, session or directory.""",
    arguments=[
        Argument(name="NAME", help="name, with @HOST or @.PROVIDER for another place than this machine", optional=True),
        Argument(
            name="TYPE",
            help="agent type; see mngr plugin list and mngr config list",
            optional=True,
            completes="types",
        ),
    ],
    rest="ARGS",
    options=[
        option("--mode MODE", "how the work dir is made: worktree, clone, copy or none", choices=MODES),
        option("--base REV", "commit, branch or tag to start from (default: HEAD of the source)", completes="branches"),
        option(
            "--branch NAME",
            "name of the branch (default: mngr/NAME); an existing one is worked on from where it is",
            completes="branches",
        ),
        option("--dirty", "carry the source's uncommitted and untracked files, uncommitted"),
        option(
            "--from SOURCE",
            "directory, agent or snapshot to start from (default: here)",
            completes="dirs agents snapshots",
        ),
        option("-e, --env K=V", "set a variable for the agent", many=True),
        option("--env-file FILE", "read variables, one K=V a line", many=True, completes="files"),
        option("--pass-env NAME", "pass a variable of this shell on to the agent", many=True),
        option("--headless", "run the program without its terminal interface: cheaper, and messages work all the same"),
        option("--copy-credentials", "copy what the program is logged in with to another host (here it is linked)"),
        option("-l, --label K=V", "label the agent", many=True),
        option("-m, --message TEXT", "send this as soon as it is ready for it"),
        option("--message-file FILE", "send the text of this file; - for standard input", completes="files"),
        option("--window NAME=CMD", "a further tmux window that runs CMD", many=True),
        option(
            "-t, --template NAME",
            "take options from [templates.NAME] of the configuration",
            many=True,
            completes="templates",
        ),
        option("--setup CMD", "run this in the new work dir before the agent starts"),
        option(
            "--copy PATH",
            "carry this ignored file or directory of the source into the work dir",
            many=True,
            completes="files",
        ),
        option("--with KEY=VALUE", "what a host that is made for it is like: image=debian and so on", many=True),
        option("-n, --count N", "make N agents, NAME-1 to NAME-N, at once"),
        option("--per-host N", "how many of them share a host that is made for them (default: each has its own)"),
        option("--reuse", "if the agent exists, start it instead"),
        option("--[no-]connect", "attach to it afterwards (default: only in a terminal, and for one agent)"),
        option("--connect-command CMD", "run this instead of attaching"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr create fix-login claude -m 'the login fails on Safari: find out why'", "one agent, at work at once"),
        ("mngr create ci codex --headless -m 'make the tests pass' -- --yolo", "without its terminal interface"),
        ("mngr create build command -- ./build.sh --fast", "any program, in a worktree on the branch mngr/build"),
        ("mngr create try command --count 5 --label batch=1 -- 'make test; sleep 60'", "five at once"),
        ("mngr create review command --from fix-login -- less README.md", "start from another agent's work"),
        ("mngr create docs command --mode none -- make docs", "work in the current directory itself"),
    ],
)
def create(args: Args) -> int:
    fleet = Fleet()
    _apply_templates(args, fleet)
    text = message_text(args)
    try:
        agents = create_agents(fleet, request(args, fleet), notice)
    except SomeNotCreated as error:
        show(args, error.made)
        raise
    show(args, agents)
    if text is not None:
        _send(fleet, agents, text)
    return connect_if_wanted(args, fleet, agents)


def request(args: Args, fleet: Fleet) -> Request:
    config = fleet.config
    return Request(
        address=args.word(0),
        type=args.word(1) or _text_default(args, "type"),
        default_type=config.text("type"),
        headless=args.flag("headless"),
        copy_credentials=args.flag("copy_credentials"),
        args=args.rest if args.rest is not None else _list_default(args, "args"),
        count=args.count("count", 1),
        mode=args.text("mode"),
        base=args.text("base"),
        branch=args.text("branch"),
        dirty=args.flag("dirty"),
        source=args.text("from"),
        env=_environment(args, config.strings("pass_env")),
        labels=pairs(args.many("label"), "--label"),
        windows=pairs(args.many("window"), "--window"),
        setup=args.text("setup") if args.text("setup") is not None else config.text("setup"),
        copy=args.many("copy") or config.strings("copy"),
        host_options=host_options(args),
        per_host=args.count("per_host", 1) if args.text("per_host") is not None else None,
        reuse=args.flag("reuse"),
    )


def host_options(args: Args) -> dict[str, str]:
    """What is said twice is several: lines of one value."""
    options: dict[str, str] = {}
    for word in args.many("with"):
        for key, value in pairs([word], "--with").items():
            options[key] = f"{options[key]}\n{value}" if key in options else value
    return options


def _text_default(args: Args, key: str) -> str | None:
    value = args.defaults.get(key)
    return value if isinstance(value, str) else None


def _list_default(args: Args, key: str) -> list[str] | None:
    value = args.defaults.get(key)
    return [str(item) for item in value] if isinstance(value, list) else None


def _apply_templates(args: Args, fleet: Fleet) -> None:
    for name in args.many("template"):
        args.defaults = {**args.defaults, **fleet.config.template(name)}


def _environment(args: Args, pass_always: list[str]) -> dict[str, str]:
    """Later wins: passed on, files in their order, then what is said outright. A variable that is to be passed on and
    does not exist is an error only when it was asked for in this very call."""
    values = {name: os.environ[name] for name in pass_always if name in os.environ}
    for name in args.many("pass_env"):
        if name not in os.environ:
            raise UsageError(f"--pass-env {name}: there is no such variable here")
        values[name] = os.environ[name]
    for path in args.many("env_file"):
        values.update(_read_env_file(path))
    values.update(pairs(args.many("env"), "--env"))
    return values


def _read_env_file(path: str) -> dict[str, str]:
    values = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        line = line.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise UsageError(f"{path}:{number}: not K=V")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[key.strip()] = value
    return values


def message_text(args: Args) -> str | None:
    if args.text("message") is not None and args.text("message_file") is not None:
        raise UsageError("--message and --message-file exclude each other")
    path = args.text("message_file")
    return args.text("message") if path is None else _read(path)


def _read(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _send(fleet: Fleet, agents: list[Agent], text: str) -> None:
    from mngr.fleet.message import message

    for outcome in message(fleet, [agent.ref for agent in agents], text):
        if not outcome.ok:
            runs = outcome.replace(why=f"it runs, but the message was not delivered: {outcome.why}")
            raise error_of(runs if outcome.did != "delivered" else outcome)
