"""create: N agents from one request, in one round trip to their host (two, with the look at the source).

Order: everything that can be refused is refused before anything is made; the names are reserved; then one script on the
host makes work dirs and sessions and takes back what fails. Names of agents that did not come to life are released."""

from __future__ import annotations

import os
import sys
import time

from mngr import hosts, registry, tmux
from mngr.address import Address, check_name, made_up_name, parse_address
from mngr.errors import MngrError, SomeFailed, UsageError
from mngr.fleet.launch import exports, launch_file, own_environment
from mngr.fleet.origin import Origin, find_origin, store_path
from mngr.model import CLONE, COPY, MODES, NONE, WORKTREE, Agent, new_id
from mngr.names import NameTaken
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host

_HOUR = 3600.0


class Request(Record):
    """What is wanted. Everything has a default but what to run, and that comes from the type."""

    address: str | None = None
    type: str | None = None
    default_type: str = "command"  # for an agent that inherits none
    args: list[str] | None = None
    count: int = 1
    inputs: list[str] | None = None  # in place of count: one agent for each, which has its own in $MNGR_INPUT
    mode: str | None = None
    base: str | None = None
    branch: str | None = None
    dirty: bool = False
    start: str | None = None  # --from: path, agent or snapshot
    env: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults
    labels: dict[str, str] = {}  # noqa: RUF012
    windows: dict[str, str] = {}  # noqa: RUF012
    setup: str | None = None
    copy: list[str] = []  # noqa: RUF012
    reuse: bool = False


def create(fleet: Fleet, request: Request, tell: Callable[[str], None] = lambda _: None) -> list[Agent]:
    """The agents that now run. `tell` gets one-line notices. A single failure is raised as it is; of many, what failed
    is told one by one and SomeFailed raised at the end, with the others running."""
    if request.inputs is not None:
        request = request.replace(count=len(request.inputs))
    if request.count == 0:
        return []
    address, names = _names(fleet, request)
    host = fleet.host_for(address)
    if request.reuse and (found := _reuse(fleet, names, tell)):
        return found
    origin = find_origin(
        fleet, host, request.start, base=request.base, branch=request.branch or "", dirty=request.dirty
    )
    for path in origin.left:
        tell(f"{path} is a repository of its own and is not carried")
    type_name, command, env = _program(request, origin.parent)
    request = request.replace(env={**env, **request.env})
    agents = _plan(request, type_name, command, names, host, origin)
    _check(host, request, origin, agents[0])
    reserved: list[Agent] = []
    try:
        for agent in agents:
            _reserve(fleet, agent)
            reserved.append(agent)
        made, failures = _make(host, request, origin, agents, tell)
    except BaseException:
        for agent in reserved:
            fleet.names.release(agent.ref)
        raise
    for agent, _ in failures:
        fleet.names.release(agent.ref)
    for agent in made:
        registry.notify("created", agent)
    _raise(failures, made, tell)
    return made


def _names(fleet: Fleet, request: Request) -> tuple[Address, list[str]]:
    address = Address() if request.address is None else parse_address(request.address)
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


def _reuse(fleet: Fleet, names: list[str], tell: Callable[[str], None]) -> list[Agent] | None:
    """The agents of these names, brought to life; None when there is none of them yet."""
    from mngr.fleet.start import start
    from mngr.fleet.survey import agents as survey

    refs = [ref for name in names if (ref := fleet.names.find(name))]
    if not refs:
        return None
    if len(refs) < len(names):
        raise MngrError(
            f"some of these agents exist and some do not: {refs[0].name} does", "create the missing ones by name"
        )
    start(fleet, refs)
    known = {status.id: status.agent for status in survey(fleet)}
    tell(f"{refs[0].name} exists already: reused")
    return [agent for ref in refs if (agent := known.get(ref.id))]


def _program(request: Request, parent: Agent | None) -> tuple[str, list[str], dict[str, str]]:
    """The type, the command, and the type's own variables: none when the type is the parent's, since they are among
    those that the parent hands on. A type that has gone since is missed only by who has new arguments for it."""
    type_name = request.type or (parent.type if parent else request.default_type)
    same = parent is not None and parent.type == type_name
    if parent and same and request.args is None:
        return type_name, parent.command, {}
    found = registry.agent_type(type_name)
    return type_name, found.command(request.args or []), {} if same else getattr(found, "env", {})


def _plan(
    request: Request, type_name: str, command: list[str], names: list[str], host: Host, origin: Origin
) -> list[Agent]:
    parent = origin.parent
    mode = request.mode or (parent.mode if parent else None) or (WORKTREE if origin.is_git else COPY)
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}", f"one of {', '.join(MODES)}")
    with_branch = mode in (WORKTREE, CLONE)
    agents = []
    for name in names:
        id = new_id()
        branch = None
        if with_branch:
            branch = f"mngr/{name}" if request.branch is None else request.branch
            if request.branch and len(names) > 1:
                branch += name[name.rindex("-") :]
        agents.append(
            Agent(
                id=id,
                name=name,
                type=type_name,
                host=host.name,
                command=command,
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


def _check(host: Host, request: Request, origin: Origin, agent: Agent) -> None:
    """What can be refused before anything is made."""
    if agent.mode in (WORKTREE, CLONE) and not origin.is_git:
        raise MngrError(f"{origin.source} is not a git repository", "use --mode copy or --mode none there")
    if agent.mode in (WORKTREE, CLONE) and origin.base is None:
        raise MngrError(f"{origin.source} has no commit yet", "commit something first, or use --mode none")
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
        if os.path.commonpath([inside, host.home]) == inside:
            raise MngrError(
                f"{inside} contains {host.home}: it cannot be copied into itself", "use --mode none, or --from DIR"
            )
    if request.dirty and agent.mode == NONE:
        raise UsageError("--dirty makes no sense with --mode none: the agent works in the same directory")
    if request.branch and origin.branch_exists and request.count > 1:
        raise UsageError("several agents cannot work on one existing branch")
    for pattern in request.copy:
        if pattern.startswith("/") or ".." in pattern.split("/") or "\n" in pattern:
            raise UsageError(f"copy takes paths below the source, not {pattern!r}")
    for name in agent.windows:
        check_name(name, "window name")


def _reserve(fleet: Fleet, agent: Agent) -> None:
    try:
        fleet.names.reserve(agent.ref)
    except NameTaken as taken:
        holder = taken.holder
        there = hosts.run(fleet.host(holder.host), f'[ -d "$H"/agents/{quote(holder.id)} ]', deadline=20)
        if there.code == 0 or not fleet.names.is_leftover(holder):
            raise
        fleet.names.release(holder)
        fleet.names.reserve(agent.ref)


def _make(
    host: Host, request: Request, origin: Origin, agents: Sequence[Agent], tell: Callable[[str], None]
) -> tuple[list[Agent], list[tuple[Agent, str]]]:
    if request.setup:
        tell(f"setting up: {request.setup}")
    done = hosts.run(host, _script(host, request, origin, agents), deadline=_HOUR, private=True)
    told: dict[str, str] = {}
    for line in done.out.splitlines():
        word, _, rest = line.partition(" ")
        if word == "dirty":
            where = "change" if rest == "1" else "changes"
            tell(f"{rest} uncommitted {where} in {origin.source} stay behind (--dirty carries them)")
        elif word in ("ok", "failed"):
            id, _, why = rest.partition(" ")
            told[id] = "" if word == "ok" else why.strip() or "it could not be made"
    said = done.err.strip().splitlines()
    silent = said[-1] if said else f"the host's script ended with {done.code}"
    made = [agent for agent in agents if told.get(agent.id) == ""]
    return made, [(agent, told.get(agent.id, silent)) for agent in agents if agent not in made]


def _script(host: Host, request: Request, origin: Origin, agents: Sequence[Agent]) -> str:
    first = agents[0]
    shared = {
        "mode": first.mode,
        "src": origin.files or origin.repo or origin.source,
        "base": origin.base or "",
        "tree": (origin.tree or "") if first.mode in (WORKTREE, CLONE) else "",
        "store": store_path(host, origin.source),
        "own": "1" if first.own_branch else "",
        "setup": request.setup or "",
        "copy": "\n".join(request.copy),
        "program": first.command[0],
        "launch": launch_file(first.command, first.windows),
        "environment": exports(request.env),
        "MNGR_BIN": _own_bin() if host.name == "local" else "",
    }
    if first.mode == NONE:
        shared["src"] = first.work_dir
        shared["copy"] = ""  # they are there
    lines = [f"{key}={quote(value)}" for key, value in shared.items()]
    lines += [hosts.read_script(hosts.__file__, "up.sh"), tmux.setup_lines(host.home)]
    lines += [hosts.read_script(__file__, "tree.sh"), hosts.read_script(__file__, "create.sh")]
    if origin.given:
        lines.append(f'environment="$(cat {quote(origin.given)})$nl$environment"')
    lines.append("begin " + " ".join(agent.id for agent in agents))
    for number, agent in enumerate(agents):
        words = (
            agent.id,
            agent.branch or "",
            to_json(agent),
            tmux.session_commands(host.home, agent),
            own_environment(host, agent),
            exports({"MNGR_INPUT": request.inputs[number]}) if request.inputs else "",
        )
        lines.append("stage " + " ".join(quote(word) for word in words))
    return "\n".join([*lines, "make_all"])


def _own_bin() -> str:
    """Where `mngr` is, for agents that call it: beside this very program, or beside the interpreter of a script that
    imports us."""
    program = sys.argv[0] if os.path.basename(sys.argv[0]) == "mngr" else sys.executable
    return os.path.dirname(os.path.abspath(program))


def to_json(agent: Agent) -> str:
    import json

    return json.dumps(agent.to_dict(), ensure_ascii=True)


def _raise(failures: list[tuple[Agent, str]], made: list[Agent], tell: Callable[[str], None]) -> None:
    if not failures:
        return
    if not made and len(failures) == 1:
        agent, why = failures[0]
        hint = None
        if why == f"branch {agent.branch} exists already":
            hint = f"--branch {agent.branch} works on it as it is; or choose another name"
        raise MngrError(f"{agent.name} was not created: {why.removeprefix('fatal: ')}", hint)
    for agent, why in failures:
        tell(f"{agent.name} was not created: {why}")
    raise SomeFailed(f"{len(failures)} of {len(failures) + len(made)} agents were not created", "the others run")
