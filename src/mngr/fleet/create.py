"""create: N agents from one request, in one round trip to their host (two, with the look at the source).

Order: everything that can be refused is refused before anything is made; the names are reserved; then one script on the
host makes work dirs and sessions and takes back what fails. Names of agents that did not come to life are released."""

from __future__ import annotations

import os
import sys

from mngr import hosts, jsonline, registry, tmux
from mngr.agents import Seat
from mngr.errors import HostUnreachable, MngrError, SomeFailed, TimedOut
from mngr.fleet.carry import Load, carry, changes_stay
from mngr.fleet.claim import claim, claim_again
from mngr.fleet.fleet import LOCAL
from mngr.fleet.hosting import host_for, is_away, release_hosts
from mngr.fleet.launch import exports, launch_file, own_environment
from mngr.fleet.origin import Origin, find_origin, store_path
from mngr.fleet.plan import Chosen, Request, check_plan, choose, plan_agents, plan_names, shares_of
from mngr.fleet.preflight import check_program
from mngr.model import CLONE, NONE, WORKTREE, Agent
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mngr.address import Address
    from mngr.agents import AgentType
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host

_HOUR = 3600.0
# Whoever made them may still be taking them back: there, for as long as a script has to clean up; here, nobody is.
_WHO_IS_THERE = """
for id in {ids}; do
  how=whole
  while read -r pid <"$H/agents/$id/creating"; do
    is_alive "$pid" || {{ how=half && break; }}
    [ "$((patience -= 1))" -ge 0 ] || {{ how=busy && break; }}
    sleep 0.05
  done
  [ ! -d "$H/agents/$id" ] || echo "$how $id"
done 2>/dev/null
"""
_PATIENCE = 100
_WHOLE = "whole"
_LEFT = {
    _WHOLE: "there already, and kept",
    "half": "could not be taken back, mngr gc clears away",
    "busy": "still being taken back",
}


class SomeNotCreated(SomeFailed):
    """Some of many; `made` are those that run, and `failed` says why each of the others does not."""

    def __init__(self, message: str, made: list[Agent], failed: dict[str, str]) -> None:
        super().__init__(message, "the others run" if made else None)
        self.made, self.failed = made, failed


class BrokenOff(HostUnreachable):
    """The host went away in the middle: nobody knows yet what it made."""


def create(fleet: Fleet, request: Request, tell: Callable[[str], None] = lambda _: None) -> list[Agent]:
    """The agents that now run. `tell` gets one-line notices. A single failure is raised as it is; of many, what failed
    is told one by one and SomeNotCreated raised at the end, with the others running."""
    one_each = request.names if request.names is not None else request.inputs
    if one_each is not None:
        request = request.replace(count=len(one_each))
    if request.count == 0:
        return []
    address, names = plan_names(fleet, request)
    if request.reuse and (found := _reuse(fleet, names, tell)):
        return found
    shares = shares_of(request, address, names)
    if len(shares) == 1:
        return create_at(fleet, request, address, names, tell)
    from mngr.fleet.spread import spread

    return spread(fleet, request, address, shares, tell)


def create_at(
    fleet: Fleet, request: Request, address: Address, names: list[str], tell: Callable[[str], None]
) -> list[Agent]:
    """On one host, which is made first if need be."""
    while True:
        host, fresh = host_for(fleet, address, names[0], request.host_options, tell)
        try:
            return create_on(fleet, request, host, names, tell, fresh=fresh)
        except BaseException as error:
            lost = isinstance(error, HostUnreachable) and not isinstance(error, BrokenOff)
            if lost and not fresh and is_away(fleet, host.name):
                continue  # it stopped or went with its last agent, just now: nothing is made yet, and it comes back
            if fresh and not isinstance(error, BrokenOff) and not (isinstance(error, SomeNotCreated) and error.made):
                release_hosts(fleet, [host.name], look=False)  # unless another create has put an agent there
            raise


def create_on(
    fleet: Fleet, request: Request, host: Host, names: list[str], tell: Callable[[str], None], *, fresh: bool = False
) -> list[Agent]:
    """`fresh`: the host was made for them, and goes if none of them comes to life."""
    # What a path means is meant here, unless the agent is to work in it.
    around = host if request.mode == NONE else fleet.host(LOCAL)
    origin = find_origin(
        fleet, around, request.source, base=request.base, branch=request.branch or "", dirty=request.dirty
    )
    for path in origin.left:
        tell(f"{path} is a repository of its own and is not carried")
    chosen = choose(request, origin.parent)
    inherited = _inherited(fleet.host(origin.host), origin.given) if origin.given and chosen.type.program else {}
    passed = {name: value for name, value in _passed(host, chosen).items() if name not in inherited}
    request = request.replace(env={**chosen.env, **passed, **request.env})
    agents = plan_agents(request, chosen, names, host, origin)
    check_plan(host, request, origin, agents[0])
    check_program(host, chosen.type, request, inherits=origin.given is not None)
    reserved: list[Agent] = []
    begun = False

    def tell_and_renew(text: str) -> None:
        for agent in reserved:
            fleet.names.renew(agent.ref)  # what takes long is told now and then
        tell(text)

    try:
        claim(fleet, host, agents, reserved)
        load = carry(fleet, host, origin, agents[0].mode, request.copy, tell_and_renew)
        claim_again(fleet, host, agents)
        begun = True
        made, failures = _make(host, request, chosen, origin, load, agents, inherited, tell)
    except BrokenOff:
        for agent in reserved:  # they may have been made: their names stay theirs, until somebody has looked
            fleet.names.doubt(agent.ref)
        raise
    except BaseException as error:
        if begun and not isinstance(error, MngrError):
            _let_go(fleet, host, agents, tell, fresh=fresh)
        else:
            for agent in reserved:
                fleet.names.release(agent.ref)
        raise
    for agent, _ in failures:
        fleet.names.release(agent.ref)
    for agent in made:
        registry.notify("created", agent)
    _raise(failures, made, tell)
    return made


def _reuse(fleet: Fleet, names: list[str], tell: Callable[[str], None]) -> list[Agent] | None:
    """The agents of these names, brought to life; None when there is none of them yet."""
    from mngr.fleet.start import start
    from mngr.fleet.survey import agents as survey

    if not any(fleet.names.find(name) for name in names):
        return None
    known = {status.id: status for status in survey(fleet)}
    refs = [ref for name in names if (ref := fleet.names.find(name)) and ref.id in known]
    if not refs:
        return None  # leftovers
    if len(refs) < len(names):
        raise MngrError(
            f"some of these agents exist and some do not: {refs[0].name} does", "create the missing ones by name"
        )
    for ref in refs:
        known[ref.id].record(f"mngr destroy -f {ref.name}")
    for outcome in start(fleet, refs):
        if not outcome.ok:
            raise MngrError(f"{outcome.name} exists, but cannot be reused: {outcome.why}")
    tell(f"{refs[0].name} exists already: reused")
    return [agent for ref in refs if (agent := known[ref.id].agent)]


def _let_go(fleet: Fleet, host: Host, agents: Sequence[Agent], tell: Callable[[str], None], *, fresh: bool) -> None:
    """When it is broken off here: the names of those that are not there. What had come to life by then is the user's,
    and whom nobody could call by name nobody could stop."""
    for agent in agents:
        fleet.names.doubt(agent.ref)  # as they stay if the host does not say, or the user does not wait for that
    script = _WHO_IS_THERE.format(ids=" ".join(agent.id for agent in agents))
    patience = 0 if host.lines is None else _PATIENCE
    told = ""
    try:
        told = hosts.check(host, f"patience={patience}\n{script}", deadline=10)
    except BaseException as error:  # noqa: BLE001 - we are on the way out already
        if not fresh:
            if isinstance(error, MngrError):
                tell(f"mngr list tells what became of {agents[0].name}: {error.message}")
            return
    left = {id: how for how, id in map(str.split, told.splitlines())}
    if fresh and _WHOLE not in left.values():
        left = {}  # they go with their host
    for agent in agents:
        if agent.id not in left:
            fleet.names.release(agent.ref)
    for how, words in _LEFT.items():
        if names := [agent.name for agent in agents if left.get(agent.id) == how]:
            tell(f"{words}: {' '.join(names)}")


def _make(
    host: Host,
    request: Request,
    chosen: Chosen,
    origin: Origin,
    load: Load,
    agents: Sequence[Agent],
    inherited: Mapping[str, str],
    tell: Callable[[str], None],
) -> tuple[list[Agent], list[tuple[Agent, str]]]:
    if request.setup:
        tell(f"setting up: {request.setup}")
    script = _script(host, request, chosen, origin, load, agents, inherited)
    try:
        done = hosts.run(host, script, deadline=_HOUR, private=True)
    except (HostUnreachable, TimedOut) as error:
        if host.name == LOCAL:
            raise
        raise BrokenOff(f"{error.message}: mngr list tells what became of {agents[0].name}") from None
    told: dict[str, str] = {}
    for line in done.out.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "dirty":
            tell(changes_stay(int(rest), origin.source))
        elif word == "mute":
            names = [agent.name for agent in agents if agent.id == rest]
            tell(f"the conversation could not be carried over: {' '.join(names)} begins a new one")
        elif word in ("ok", "failed"):
            id, _, why = rest.partition(" ")
            told[id] = "" if word == "ok" else why.strip() or "it could not be made"
    said = done.err.strip().splitlines()
    silent = said[-1] if said else f"the host's script ended with {done.code}"
    made = [agent for agent in agents if told.get(agent.id) == ""]
    return made, [(agent, told.get(agent.id, silent)) for agent in agents if agent not in made]


def _script(
    host: Host,
    request: Request,
    chosen: Chosen,
    origin: Origin,
    load: Load,
    agents: Sequence[Agent],
    inherited: Mapping[str, str],
) -> str:
    first = agents[0]
    shared = _shared(host, request, chosen, origin, load, first)
    lines = [f"{key}={quote(value)}" for key, value in shared.items()]
    lines += [hosts.read_script(hosts.__file__, "up.sh"), tmux.setup_lines(host.home)]
    lines += [hosts.read_script(__file__, "tree.sh"), hosts.read_script(__file__, "create.sh")]
    if _talks(chosen, origin, first):
        lines.append(f"adopt() {{\n{chosen.type.adopt}\n}}")
    if origin.given and origin.host == host.name:
        lines.append(f'environment="$(cat {quote(origin.given)})$nl$environment"')
    lines.append("begin " + " ".join(agent.id for agent in agents))
    laid: dict[str, str] = {}
    logins = chosen.type.credentials(_user_home()) if host.name == LOCAL else {}
    secrets = _secrets(chosen.type) if request.copy_credentials and host.name != LOCAL else {}
    for number, agent in enumerate(agents):
        seed = chosen.type.seed(_seat(host, agent, {**inherited, **request.env}))
        words = (
            agent.id,
            agent.branch or "",
            to_json(agent),
            tmux.session_commands(host.home, agent),
            own_environment(host, agent, seed.env),
            exports({"MNGR_INPUT": request.inputs[number]}) if request.inputs else "",
        )
        lines.append("stage " + " ".join(quote(word) for word in words))
        lines += _laid(agent, {**seed.files, **secrets}, laid)
        lines += [f"tie {agent.id} {quote(path)} {quote(target)}" for path, target in {**seed.links, **logins}.items()]
    return "\n".join([*lines, "make_all"])


def _talks(chosen: Chosen, origin: Origin, first: Agent) -> bool:
    """Whether they go on with what their parent and its user have said."""
    return origin.parent is not None and bool(chosen.type.adopt) and origin.parent.kind == first.kind


def _shared(host: Host, request: Request, chosen: Chosen, origin: Origin, load: Load, first: Agent) -> dict[str, str]:
    """What create.sh is told once for all of them."""
    parent = origin.parent
    shared = {
        "mode": first.mode,
        "src": load.src,
        "here": load.here,
        "carried": load.directory,
        "who": load.who,
        "mail": load.mail,
        "url": load.url,
        "base": origin.base or "",
        "tree": (origin.tree or "") if first.mode in (WORKTREE, CLONE) else "",
        "store": store_path(host, origin.source),
        "own": "1" if first.own_branch else "",
        "setup": request.setup or "",
        "copy": "\n".join(request.copy),
        "program": first.command[0],
        "launch": launch_file(first, chosen.type),
        "headless": "1" if first.headless else "",
        "talk": (origin.talk or "") if _talks(chosen, origin, first) and origin.host == host.name else "",
        "their_work": parent.work_dir if parent else "",
        "environment": exports(request.env),
        "MNGR_BIN": _own_bin() if host.name == LOCAL else "",
    }
    if first.mode == NONE:
        shared["src"] = first.work_dir
        shared["copy"] = ""  # they are there
    return shared


def _laid(agent: Agent, files: Mapping[str, str], laid: dict[str, str]) -> list[str]:
    """The lines that write these files. `laid` has the variable of each text so far: many agents have one hook."""
    lines = []
    for path, text in files.items():
        if text not in laid:
            laid[text] = f"laid{len(laid)}"
            lines.append(f"{laid[text]}={quote(text)}")
        lines.append(f'lay {agent.id} {quote(path)} "${laid[text]}"')
    return lines


def _passed(host: Host, chosen: Chosen) -> dict[str, str]:
    """What the program needs to reach its model: on this machine, as if the user had started it from this shell."""
    names = chosen.type.passes if host.name == LOCAL else ()
    return {name: os.environ[name] for name in names if name in os.environ}


def _inherited(host: Host, given: str) -> dict[str, str]:
    """The variables that the parent was given, as far as each is a line: what a program's key is, say."""
    told = hosts.run(host, f"env -i sh -c '. \"$1\"; env' sh {quote(given)}", deadline=20).out
    return dict(line.split("=", 1) for line in told.split("\n") if "=" in line)


def _secrets(type: AgentType) -> dict[str, str]:
    found = {}
    for path, theirs in type.credentials(_user_home()).items():
        if os.path.exists(theirs):
            with open(theirs, encoding="utf-8") as file:
                found[path] = file.read()
    return found


def _user_home() -> str:
    return os.path.expanduser("~")


def _seat(host: Host, agent: Agent, env: Mapping[str, str]) -> Seat:
    user_home = _user_home() if host.name == LOCAL else None
    return Seat(agent=agent, directory=f"{host.home}/agents/{agent.id}", env=env, user_home=user_home)


def _own_bin() -> str:
    """Where `mngr` is, for agents that call it: beside this very program, or beside the interpreter of a script that
    imports us, if it is there."""
    program = sys.argv[0] if os.path.basename(sys.argv[0]) == "mngr" else sys.executable
    place = os.path.dirname(os.path.abspath(program))
    return place if os.access(os.path.join(place, "mngr"), os.X_OK) else ""


def to_json(agent: Agent) -> str:
    return jsonline.dumps(agent.to_dict())


def _raise(failures: list[tuple[Agent, str]], made: list[Agent], tell: Callable[[str], None]) -> None:
    if not failures:
        return
    if not made and len(failures) == 1:
        agent, why = failures[0]
        hint = None
        if why == f"branch {agent.branch} exists already":
            hint = f"--branch {agent.branch} works on it as it is; or choose another name"
        raise MngrError(f"{agent.name} was not created: {why.removeprefix('fatal: ')}", hint)
    failed = {agent.name: why.removeprefix("fatal: ") for agent, why in failures}
    for name, why in failed.items():
        tell(f"{name} was not created: {why}")
    raise SomeNotCreated(f"{len(failed)} of {len(failed) + len(made)} agents were not created", made, failed)
