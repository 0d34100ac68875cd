"""Getting to know hosts: adding one, seeing how all of them are, finding those that nobody here knows, checking what
one lacks. Only what is added here, or was made by create, is ever asked by other verbs."""

from __future__ import annotations

import os
import threading
import time

from mngr import hosts, registry
from mngr.address import parse_address
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.fleet import checkup
from mngr.fleet.agreed import agree
from mngr.fleet.checkup import BAD, OK, Finding
from mngr.fleet.fleet import LOCAL
from mngr.fleet.host_lock import Lock
from mngr.fleet.hosting import agents_on, check_options
from mngr.fleet.preflight import version
from mngr.fleet.side_by_side import at_once
from mngr.fleet.survey import survey_host
from mngr.hosts.place import GOING, STOPPED, Place
from mngr.hosts.probe import arrive, probe
from mngr.hosts.settings import home_there
from mngr.names import NameTaken
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mngr.agents import Program
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host, Provider
    from mngr.hosts.probe import Facts

_DEADLINE = 10.0  # for one question to each of them, all at once
_SEARCH = 30.0  # for a provider to say which hosts it has
_INSTALLING = 900.0
_VERSION = """
command -v {program} >/dev/null || exit 0
{program} --version 2>&1 </dev/null | head -n 1
"""
_BY_NPM = """
as='' place=$(npm prefix -g)/lib/node_modules
while [ ! -d "${{place:=/}}" ]; do place=${{place%/*}}; done
if [ ! -w "$place" ]; then
  sudo -n true 2>/dev/null || {{ echo "you may not write to $place, and sudo asks for a password" >&2; exit 1; }}
  as='sudo -n'
fi
$as npm install -g --no-audit --no-fund --loglevel=error {package} 2>&1
"""


class Adopted(Record):
    """What became of the agents on a host that were not known here."""

    taken: list[str] = []  # noqa: RUF012 - Record copies defaults
    clashing: list[str] = []  # noqa: RUF012 - another agent here has the name


class Sight(Record):
    """A host as it is now."""

    name: str
    state: str  # up, stopped, unreachable, unfinished, or new: nobody here knows it yet
    reason: str = ""
    agents: list[str] = []  # noqa: RUF012
    made: bool = False
    system: str = ""


def place_name(text: str) -> str:
    """HOST.PROVIDER as a user writes it."""
    address = parse_address("@" + text)
    if text == LOCAL:
        raise UsageError("this machine is there without being added")
    if not address.host or not address.provider:
        raise UsageError(f"{text!r} is not a host", "HOST.PROVIDER, as in box.ssh")
    registry.provider(address.provider)
    return text


def add(
    fleet: Fleet, name: str, options: Mapping[str, str], *, accept_new: bool = False, ask: bool = False
) -> tuple[Place, list[str]]:
    """Goes there once, and keeps how. Also what is missing there: it is known from now on, and cannot be used yet.
    `ask`: somebody sits at a terminal and can say a passphrase."""
    provider = registry.provider(name.partition(".")[2])
    check_options(provider, options)
    with Lock(fleet, name):
        known = fleet.places.find(name)
        if provider.makes:
            return _take_over(fleet, provider, name, known, options), []
        merged = {**(known.options if known else {}), **options}
        place = Place(name=name, options={key: value for key, value in merged.items() if value})
        if greet := getattr(provider, "greet", None):
            greet(place, accept_new=accept_new, ask=ask)
        host = provider.reach(place)
        missing: list[str] = []
        if host.home:
            place = place.replace(home=host.home, socket=host.socket)
        else:
            facts = probe(host, home_there(place))
            missing = facts.missing
            if not missing:
                place = place.replace(home=facts.home, socket=facts.socket)
        fleet.forget(name)
        fleet.places.keep(place)
        return place, missing


def _take_over(fleet: Fleet, provider: Provider, name: str, known: Place | None, options: Mapping[str, str]) -> Place:
    """One that was made by mngr, and of which nothing is known here any more."""
    if options:
        raise UsageError(
            f"--with is for hosts that stand somewhere: {provider.name} makes its own", f"mngr create X@{name}"
        )
    host = name.partition(".")[0]
    found = provider.find()
    if host not in found:
        raise MngrError(f"{provider.name} has no host {host} of ours", f"mngr create NAME@{name} makes one")
    place = (known or Place(name=name, made=True)).replace(id=found[host])
    try:
        place = arrive(provider, place.replace(home="", socket=""))
    except HostUnreachable:
        place = arrive(provider, provider.start(place).replace(home="", socket=""))
    fleet.forget(name)
    fleet.places.keep(place)
    return place


def adopt(fleet: Fleet, place: Place) -> Adopted:
    """Agents on a host that were made by a home which is gone, or by another one, become agents of this one."""
    taken, clashing = [], []
    for status in survey_host(fleet, fleet.host(place.name)):
        if status.agent is None:
            continue
        try:
            fleet.names.reserve(status.agent.ref)
            agree(fleet, [status.agent])
            taken.append(status.name)
        except NameTaken as error:
            if (error.holder.id, error.holder.host) != (status.id, place.name):
                clashing.append(status.name)
    return Adopted(taken=sorted(taken), clashing=sorted(clashing))


def look(fleet: Fleet) -> list[Sight]:
    """All that are known here: asked side by side, so that those which do not answer cost one deadline."""
    places = [Place(name=LOCAL), *fleet.places.all()]
    found: dict[str, Sight] = {}

    def work(place: Place) -> None:
        found[place.name] = _look_at(fleet, place)

    at_once(places, work)
    return [found[place.name] for place in places]


def _look_at(fleet: Fleet, place: Place) -> Sight:
    agents = [ref.name for ref in agents_on(fleet, place.name)]
    sight = Sight(name=place.name, state="up", agents=agents, made=place.made)
    if place.name == LOCAL:
        return sight.replace(system=f"{os.uname().sysname} {os.uname().machine}")
    if place.state == STOPPED:
        return sight.replace(state="stopped")
    if place.state == GOING or (place.made and not place.home):
        return sight.replace(state="unfinished", reason="whoever made or removed it was interrupted: mngr gc")
    try:
        host = fleet.host(place.name)
        system = (host.lines.run("uname -sm", deadline=_DEADLINE) if host.lines else hosts.run(host, "uname -sm")).out
    except MngrError as error:
        return sight.replace(state="unreachable", reason=error.message.removeprefix(f"{place.name}: "))
    if not place.home:
        sight = sight.replace(state="unfinished", reason=f"something is missing there: mngr host check {place.name}")
    return sight.replace(system=system.strip())


def discover(fleet: Fleet) -> tuple[list[Sight], dict[str, str]]:
    """Hosts of ours that the providers have and nobody here knows; and which providers could not say, and why: that is
    not the same as none."""
    known = {place.name for place in fleet.places.all()}
    found: dict[str, list[str]] = {}
    silent = {name: f"no answer within {_SEARCH:g} s" for name in registry.providers() if name != LOCAL}

    def work(name: str) -> None:
        try:
            found[name] = sorted(registry.provider(name).find())
        except MngrError as error:
            silent[name] = error.message

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in silent]
    limit = time.monotonic() + _SEARCH
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, limit - time.monotonic()))
    answers = dict(found)
    names = [f"{host}.{provider}" for provider in sorted(answers) for host in answers[provider]]
    fresh = [Sight(name=name, state="new", made=True) for name in names if name not in known]
    return fresh, {name: why for name, why in silent.items() if name not in answers}


def check(fleet: Fleet, name: str, types: Iterable[str] = ()) -> tuple[list[Finding], list[str], str]:
    """What there is on a host, known here or not, with the programs of these agent types; what must be installed there;
    and by which program that could be."""
    programs = {type: _program(type) for type in types}
    if name == LOCAL:
        host, facts = fleet.host(LOCAL), None
    else:
        host, facts = _visit(fleet, name)
    findings = [Finding(level=OK, what=f"{name}: {facts.system}, home {facts.home}")] if facts else []
    findings += checkup.look_at(host)
    findings += [_look_for(host, type, programs[type]) for type in programs]
    return findings, [finding.lacks for finding in findings if finding.lacks], facts.manager if facts else ""


def _program(type: str) -> Program:
    found = registry.agent_type(type).program
    if found is None:
        raise UsageError(f"agents of the type {type} need no program of their own", "leave it out")
    return found


def _look_for(host: Host, type: str, program: Program) -> Finding:
    told = _version_of(host, program)
    by_mngr = host.name != LOCAL and program.package
    do = f"mngr host check {host.name} {type} --install" if by_mngr else program.install
    if not told:
        return Finding(level=BAD, what=f"{host.name}: {program.name} is missing", do=do, lacks=program.name)
    if program.oldest and (found := version(told)) and found < version(program.oldest):
        what = f"{host.name}: {program.name} {told} is too old"
        return Finding(level=BAD, what=what, do=do, lacks=program.name)
    return Finding(level=OK, what=f"{host.name}: {program.name} {told}")


def _version_of(host: Host, program: Program) -> str:
    """What it says of itself; "" when it is not there."""
    return hosts.run(host, _VERSION.format(program=quote(program.name)), deadline=60).out.strip()


def install(fleet: Fleet, name: str, lacks: list[str], manager: str, types: Iterable[str] = ()) -> None:
    """What a look has found to be missing there: packages of the system first, then programs of agents, by npm, which
    comes along if it is missing too. MngrError, with the last things that were said, when that could not be done."""
    programs = [program for program in map(_program, types) if program.name in lacks]
    for program in programs:
        if not program.package or name == LOCAL:
            raise MngrError(f"mngr does not install {program.name} on {name}", program.install or None)
    packages = [each for each in lacks if each not in {program.name for program in programs}]
    if name == LOCAL:
        raise MngrError("mngr installs nothing on this machine", f"install {', '.join(packages)} yourself")
    host, _ = _visit(fleet, name)
    if programs and hosts.run(host, "command -v npm", deadline=_DEADLINE).code:
        packages.append("npm")
    if packages:
        _install_packages(host, packages, manager)
    for program in programs:
        _install_program(host, program)


def _install_packages(host: Host, packages: list[str], manager: str) -> None:
    hint = f"install {', '.join(packages)} there yourself"
    if not manager:
        raise MngrError(f"{host.name} has no package manager that mngr knows", hint)
    words = " ".join(map(quote, [manager, *packages]))
    _install(host, manager, f"{hosts.read_script(hosts.__file__, 'install.sh')}\ninstall {words}", hint)


def _install_program(host: Host, program: Program) -> None:
    _install(host, "npm", _BY_NPM.format(package=quote(program.package)), f"do it there yourself: {program.install}")
    if not _version_of(host, program):
        where = hosts.run(host, "npm prefix -g", deadline=_DEADLINE).out.strip() + "/bin"
        raise MngrError(
            f"npm has put {program.name} into {where}, where sh on {host.name} does not look",
            f"-e PATH={where}:/usr/local/bin:/usr/bin:/bin, with each create there",
        )


def _install(host: Host, installer: str, script: str, hint: str) -> None:
    done = hosts.run(host, script, deadline=_INSTALLING)
    if done.code:
        said = [line.strip() for line in (done.out + done.err).splitlines() if line.strip()]
        raise MngrError(f"{installer} on {host.name} failed: {' | '.join(said[-3:])}", hint)


def settle_in(fleet: Fleet, name: str) -> None:
    """One that was added when something was missing there can be used from now on."""
    with Lock(fleet, name):
        place = fleet.places.find(name)
        if place is not None and not place.home and not place.made:
            fleet.places.keep(arrive(registry.provider(place.provider), place))
            fleet.forget(name)


def _visit(fleet: Fleet, name: str) -> tuple[Host, Facts | None]:
    """A host as far as it can be worked with, although something may be missing there."""
    provider = registry.provider(name.partition(".")[2])
    place = fleet.place(name) if provider.makes else fleet.places.find(name) or Place(name=name)
    if place.state == STOPPED:
        fleet.host(name)  # says so
    host = provider.reach(place.replace(home="", socket=""))
    if host.home:
        return host, None
    facts = probe(host, home_there(place), deadline=_DEADLINE)
    return provider.reach(place.replace(home=facts.home, socket=facts.socket)), facts
