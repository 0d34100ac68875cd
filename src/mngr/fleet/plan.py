"""What is wanted of create, and the agents it comes to: everything that can be refused is refused here, before anything
is made."""

from __future__ import annotations

import os
import time

from mngr import registry
from mngr.address import Address, check_name, made_up_name, parse_address
from mngr.errors import MngrError, UsageError
from mngr.model import CLONE, COPY, MODES, NONE, WORKTREE, Agent, new_id
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr.agents import AgentType
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.origin import Origin
    from mngr.hosts import Host


class Request(Record):
    """What is wanted. Everything has a default but what to run, and that comes from the type."""

    address: str | None = None
    type: str | None = None
    default_type: str | None = None  # for an agent that inherits none; None: the only one that is installed
    headless: bool = False
    copy_credentials: bool = False  # to another host; on this one they are linked
    args: list[str] | None = None
    names: list[str] | None = None  # in place of count: these agents, and the address says only where
    count: int = 1
    inputs: list[str] | None = None  # in place of count: one agent for each, which has its own in $MNGR_INPUT
    mode: str | None = None
    base: str | None = None
    branch: str | None = None
    dirty: bool = False
    source: str | None = None  # --from: path, agent or snapshot
    env: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults
    labels: dict[str, str] = {}  # noqa: RUF012
    windows: dict[str, str] = {}  # noqa: RUF012
    setup: str | None = None
    copy: list[str] = []  # noqa: RUF012
    host_options: dict[str, str] = {}  # noqa: RUF012 - of a host that is made for it
    per_host: int | None = None  # agents on each host that is made for them; one, unless told
    reuse: bool = False


def plan_names(fleet: Fleet, request: Request) -> tuple[Address, list[str]]:
    address = Address() if request.address is None else parse_address(request.address)
    if request.names is not None:
        return address, _given_names(request, address)
    name = address.name
    if name in registry.agent_types():
        raise UsageError(
            f"{name} is the name of an agent type", f"a single word is the agent's name: mngr create NAME {name}"
        )
    while name is None:
        guess = made_up_name()
        name = None if fleet.names.find(guess) else guess
    if request.count == 1:
        return address, [name]
    return address, [check_name(f"{name}-{number}") for number in range(1, request.count + 1)]


def shares_of(request: Request, address: Address, names: list[str]) -> list[list[str]]:
    """Which of them are on one host."""
    makes = address.provider is not None and address.host is None and registry.provider(address.provider).makes
    if request.per_host is not None and not makes:
        raise UsageError("--per-host is for hosts that are made", "name the provider alone, as in NAME@.docker")
    size = (request.per_host or 1) if makes else len(names)
    return [names[start : start + size] for start in range(0, len(names), size)]


def _given_names(request: Request, address: Address) -> list[str]:
    names = [check_name(name) for name in request.names or []]
    if address.name is not None:
        raise UsageError(f"{address.name} is one name too many", "beside names, an address says only where: @HOST")
    if len(set(names)) < len(names):
        raise UsageError(f"two agents cannot both be called {max(names, key=names.count)}")
    if request.inputs is not None and len(request.inputs) != len(names):
        raise UsageError(f"there are {len(request.inputs)} inputs for {len(names)} names")
    if request.branch and len(names) > 1:
        raise UsageError(f"several agents cannot share the branch {request.branch}", "each has one of its own name")
    return names


class Chosen(Record):
    """What will run."""

    type: AgentType
    name: str  # of the type, as the user calls it
    program: str  # what that is a variant of, if it is one
    command: list[str]
    env: Mapping[str, str]  # of the type; none when it is the parent's, since they are among those that it hands on
    headless: bool


def choose(request: Request, parent: Agent | None) -> Chosen:
    """A type that has gone since is missed only by who has new arguments for it."""
    name = request.type or (parent.type if parent else None) or request.default_type or _obvious_type(request.args)
    same = parent is not None and parent.type == name
    if parent and same and request.args is None and request.headless in (False, parent.headless):
        return Chosen(
            type=registry.type_of(parent),
            name=name,
            program=parent.program,
            command=parent.command,
            env={},
            headless=parent.headless,
        )
    found = registry.agent_type(name)
    args = [*found.preset, *(request.args or [])]
    headless = request.headless or not found.has_terminal
    command = found.headless(args) if headless else found.command(args)
    if command is None:
        raise UsageError(f"{name} has no headless mode", "leave out --headless")
    env = {} if same else found.env
    return Chosen(type=found, name=name, program=found.variant_of, command=command, env=env, headless=headless)


def _obvious_type(args: list[str] | None) -> str:
    """What is meant when nobody says: a program behind `--` is a command; else the only agent program there is."""
    if args and not args[0].startswith("-"):
        return "command"
    programs = {
        name: found.program for name in registry.program_types() if (found := registry.agent_type(name)).program
    }
    installed = [name for name, program in programs.items() if _in_path(program.name)]
    if len(installed) == 1:
        return installed[0]
    if installed:
        raise UsageError(
            f"which agent type? {', '.join(installed)} are installed",
            f"mngr create NAME {installed[0]}, or once and for all: mngr config set type {installed[0]}",
        )
    ways = " or ".join(program.install for program in programs.values() if program.install)
    raise UsageError("no agent program is installed", f"{ways}; any other program: mngr create NAME command -- PROGRAM")


def _in_path(program: str) -> bool:
    return any(os.access(os.path.join(place, program), os.X_OK) for place in os.get_exec_path())


def plan_agents(request: Request, chosen: Chosen, names: list[str], host: Host, origin: Origin) -> list[Agent]:
    parent = origin.parent
    mode = request.mode or (parent.mode if parent else None) or (WORKTREE if origin.is_git else COPY)
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}", f"one of {', '.join(MODES)}")
    if mode == WORKTREE and host.name != origin.host:
        if request.mode:
            raise UsageError(f"a worktree of {origin.source} cannot be on {host.name}", "without --mode it is a clone")
        mode = CLONE
    with_branch = mode in (WORKTREE, CLONE)
    agents = []
    for name in names:
        id = new_id()
        branch = None
        if with_branch:
            branch = f"mngr/{name}" if request.branch is None else request.branch
            if request.branch and request.count > 1:
                branch += name[name.rindex("-") :]
        agents.append(
            Agent(
                id=id,
                name=name,
                type=chosen.name,
                program=chosen.program,
                headless=chosen.headless,
                host=host.name,
                command=chosen.command,
                work_dir=(origin.directory or origin.source) if mode == NONE else f"{host.home}/work/{id}",
                mode=mode,
                created=time.time(),
                source=origin.source,
                branch=branch,
                own_branch=with_branch and not (request.branch and origin.branch_exists),
                base=origin.base if with_branch else None,
                labels={**(parent.labels if parent else {}), **request.labels},
                windows={**(parent.windows if parent else {}), **request.windows},
            )
        )
    return agents


def check_plan(host: Host, request: Request, origin: Origin, agent: Agent) -> None:
    """`agent`: the first of those planned; they differ in name only."""
    _check_mode(host, request, origin, agent)
    if request.branch and origin.branch_exists:
        _check_existing_branch(request, origin)
    for name in request.env:
        if not name.replace("_", "a").isalnum() or not name.isascii() or name[0].isdecimal():
            raise UsageError(f"{name!r} is not a name for a variable")
        if name.startswith("MNGR_"):
            raise UsageError(f"{name} belongs to mngr itself")
    for pattern in request.copy:
        if pattern.startswith("/") or ".." in pattern.split("/") or "\n" in pattern:
            raise UsageError(f"copy takes paths below the source, not {pattern!r}")
    for name in agent.windows:
        check_name(name, "window name")


def _check_mode(host: Host, request: Request, origin: Origin, agent: Agent) -> None:
    if origin.broken and agent.mode != NONE:
        raise MngrError(f"git cannot use {origin.source}: {origin.broken}", "mend that, or use --mode none")
    if agent.mode in (WORKTREE, CLONE) and not origin.is_git:
        raise MngrError(f"{origin.source} is not a git repository", "use --mode copy or --mode none there")
    if agent.mode in (WORKTREE, CLONE) and origin.base is None:
        raise MngrError(f"{origin.source} has no commit yet", "commit something first, or use --mode none")
    if agent.mode == CLONE and origin.shallow:
        raise MngrError(
            f"{origin.source} is a shallow repository, which cannot be cloned",
            "git fetch --unshallow there first, or use --mode worktree",
        )
    if agent.mode in (COPY, NONE) and (request.base or request.branch):
        raise UsageError(f"--base and --branch make no sense with --mode {agent.mode}: there is no branch")
    if agent.mode == WORKTREE and origin.repo:
        raise MngrError(
            f"the commits are in {origin.repo}, not in {origin.source}", "use --mode clone, or mngr pull them first"
        )
    if agent.mode == COPY:
        if origin.is_git:
            raise MngrError(f"{origin.source} is a git repository", "use --mode worktree or --mode clone there")
        inside = origin.files or origin.source
        if host.name == origin.host and os.path.commonpath([inside, host.home]) == inside:
            raise MngrError(
                f"{inside} contains {host.home}: it cannot be copied into itself", "use --mode none, or --from DIR"
            )
    if agent.mode == NONE:
        _check_none(host, request, origin)


def _check_none(host: Host, request: Request, origin: Origin) -> None:
    if host.name != origin.host:
        raise UsageError(f"--mode none makes no sense: the work is on {origin.host}, and the agent on {host.name}")
    if origin.parent and not origin.directory:
        raise UsageError("--mode none makes no sense with a snapshot: it is a copy, and has no place of its own")
    if request.dirty:
        raise UsageError("--dirty makes no sense with --mode none: the agent works in the same directory")


def _check_existing_branch(request: Request, origin: Origin) -> None:
    if request.count > 1:
        raise UsageError("several agents cannot work on one existing branch")
    if request.base or origin.tree:
        other = "--base" if request.base else "--dirty" if origin.parent is None else "--from AGENT or SNAPSHOT"
        raise UsageError(
            f"the branch {request.branch} exists and is worked on as it is: {other} makes no sense with it",
            "give --branch a new name",
        )
