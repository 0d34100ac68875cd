"""Asking hosts about all their agents: one round trip per host, whatever the number of agents. The kernel tells who
lives; tmux is asked along with it where that does not say all (nobody lives, or something in a pane that is no agent,
or there is no /proc), and by another trip when somebody neither lives nor has said how it ended."""

from __future__ import annotations

from mngr import hosts, jsonline, process, tmux
from mngr.address import is_name
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.fleet.asking import FAR, TMUX, asked_here, question
from mngr.fleet.fleet import LOCAL
from mngr.model import MODES, UNKNOWN, Agent, is_commit
from mngr.record import Record
from mngr.state import (
    Evidence,
    Pane,
    Verdict,
    ends_unseen,
    needs_a_second_look,
    read_ended,
    read_pane,
    read_written,
    verdict,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.last_seen import LastSeen
    from mngr.hosts import Host
    from mngr.hosts.lines import Question


OUT_OF_REACH = "host cannot be reached"
_NEAR = 20  # seconds that this machine has to answer


class Status(Record):
    """One agent as it is now. `agent` is None when its record is damaged."""

    id: str
    name: str
    host: str
    agent: Agent | None
    verdict: Verdict
    evidence: Evidence

    @property
    def state(self) -> str:
        return self.verdict.state

    @property
    def is_out_of_reach(self) -> bool:
        """Its host does not answer: nobody knows how it is."""
        return self.state == UNKNOWN and self.verdict.reason.startswith(OUT_OF_REACH)

    def record(self, hint: str | None = None) -> Agent:
        """What it is; `hint` is for one whose record is damaged."""
        if self.agent is not None:
            return self.agent
        if self.is_out_of_reach:
            raise HostUnreachable(self.verdict.because)
        raise MngrError(f"{self.name} is damaged: {self.evidence.damage}", hint)


def agents(fleet: Fleet) -> list[Status]:
    """All agents of all known hosts, sorted by name as people count (foo-2 before foo-10). Those on another machine
    that does not answer are unknown, never gone."""
    refs = fleet.names.all()
    if far := sorted({ref.host for ref in refs} - {LOCAL}):
        from mngr.fleet.elsewhere import survey_all

        found = survey_all(fleet, far, refs)
    else:
        found = survey_host(fleet, fleet.host(LOCAL))
    return sorted(found, key=lambda status: natural(status.name))


def survey_host(fleet: Fleet, host: Host) -> list[Status]:
    return conclude(fleet, host, look_closer(host, ask(host)))


def survey_panes(fleet: Fleet, host: Host) -> list[Status]:
    """The same with all that tmux knows, and not only what the states need."""
    return conclude(fleet, host, look_closer(host, ask(host, of=TMUX)))


def ask(host: Host, begun: Question | None = None, last: LastSeen | None = None, *, of: str = "") -> list[Evidence]:
    """Or hear what it has been asked."""
    body = question(of=of)
    try:
        if begun is not None:
            done = begun.answer()
        elif host.lines is None and (child := asked_here(hosts.script_for(host, body))):
            done = process.finish(child, deadline=_NEAR)
        else:
            done = hosts.run(host, body, deadline=_NEAR if host.lines is None else FAR)
    except TimedOut as error:
        if host.lines is None:
            raise TimedOut(f"{host.name}: no answer within {_NEAR} s") from None
        raise HostUnreachable(error.message) from None  # its work never takes that long: the way there does
    if done.code and "\nafter " not in done.out:
        raise HostUnreachable(f"{host.name}: the answer is incomplete: {done.err.strip() or done.code}")
    answers = done.code == 0 or any(words in done.err for words in tmux.NO_SERVER)
    return read_survey(done.out, None if answers else done.err.strip() or "tmux ended without a word", last)


def is_enough(evidence: list[Evidence]) -> bool:
    """Or does somebody have to be looked at again?"""
    return not any(ends_unseen(e) or needs_a_second_look(e) or _reports(e) for e in evidence)


def _reports(evidence: Evidence) -> bool:
    """Its program tells its state itself, which may have to be judged by what it shows."""
    return evidence.agent is not None and evidence.agent.kind != "command"


def look_closer(host: Host, evidence: list[Evidence]) -> list[Evidence]:
    if any(needs_a_second_look(e) and e.is_of_kernel for e in evidence):
        evidence = ask(host, of=TMUX)  # its process has ended: its session may be there
    if any(ends_unseen(e) for e in evidence):
        # tmux before 3.4, built with utempter, misses the end of a process that closes its terminal first: remind it
        hosts.run(host, "kill -s CHLD $(t display -p '#{pid}')", deadline=20)
        evidence = ask(host, of=TMUX)
    missing = [e.id for e in evidence if needs_a_second_look(e)]
    if missing:
        script = hosts.read_script(__file__, "survey.sh")
        told = hosts.check(host, f"{script}\nsurvivors {' '.join(missing)}", deadline=20)
        alive = dict(line.split() for line in told.splitlines())
        evidence = [e.replace(survivor=int(alive[e.id])) if e.id in alive else e for e in evidence]
    if any(map(_reports, evidence)):
        from mngr.fleet.second_look import look_again

        evidence = look_again(host, evidence)
    return evidence


def conclude(fleet: Fleet, host: Host, evidence: list[Evidence], last: LastSeen | None = None) -> list[Status]:
    if any(e.agent is not None and e.agent.host != host.name for e in evidence):
        # One home can be two hosts, this machine and what ssh reaches as another: each has its own agents.
        others = {ref.id for ref in fleet.names.all() if ref.host != host.name}
        evidence = [e for e in evidence if e.id not in others]
    if host.lines is not None:
        evidence = list(_as_agreed(fleet, host, evidence, last))
    by_id: dict[str, str] = {}
    if any(e.agent is None for e in evidence):
        by_id = {ref.id: ref.name for ref in fleet.names.all()}
    return [
        Status(
            id=e.id,
            name=e.agent.name if e.agent else by_id.get(e.id, e.id),
            host=host.name,
            agent=e.agent,
            verdict=verdict(e),
            evidence=e,
        )
        for e in evidence
    ]


def _as_agreed(fleet: Fleet, host: Host, evidence: list[Evidence], last: LastSeen | None) -> Iterator[Evidence]:
    """Those that are what was last seen are that already."""
    for e in evidence:
        if e.agent is None or (last and last.agent(e.id) is e.agent):
            yield e
        else:
            from mngr.fleet.agreed import as_agreed

            yield e.replace(agent=as_agreed(fleet, host.name, e.agent))


def read_survey(text: str, trouble: str | None, last: LastSeen | None = None) -> list[Evidence]:
    """The lines of survey.sh, and what tmux complained of if it did not answer. Files written by agents' programs can
    hold anything: every line is taken for what it can be, and what does not parse is damage of that one agent."""
    before: list[str] = []
    after: set[str] = set()
    files: dict[str, dict[str, str]] = {}
    creating: dict[str, bool] = {}
    panes: dict[str, Pane] = {}
    is_of_kernel = False
    for line in text.split("\n"):
        if line.startswith("./"):
            id, _, rest = line[2:].partition("/")
            name, _, content = rest.partition(":")
            held = files.setdefault(id, {})
            held[name] = f"{held[name]}\n{content}" if name in held else content
            continue
        kind, _, rest = line.partition(" ")
        if kind == "before":
            before.append(rest)
        elif kind == "after":
            after.add(rest)
        elif kind == "pane":
            if read := read_pane(rest):
                panes[read[0]] = read[1]
        elif kind == "alive":
            id, _, launcher = rest.partition(" ")
            is_of_kernel = True
            if launcher.isdecimal():
                panes[id] = Pane(dead=False, status=None, signal=None, pid=int(launcher[:18]))
        elif kind == "creating":
            path, _, alive = rest.partition(" ")
            creating[path.removeprefix("./").removesuffix("/creating")] = alive == "alive"
    found = [id for id in before if is_name(id) and (id in after) | ("agent.json" in files.get(id, {}))]
    evidence = [_evidence(id, files.get(id, {}), panes.get(id), creating, trouble, last) for id in found]
    return [e if e.pane else e.replace(is_of_kernel=True) for e in evidence] if is_of_kernel else evidence


def _evidence(
    id: str,
    files: dict[str, str],
    pane: Pane | None,
    creating: dict[str, bool],
    trouble: str | None,
    last: LastSeen | None,
) -> Evidence:
    told, damage = files.get("agent.json", ""), None
    agent = None if last is None else last.as_told(id, told)
    if agent is None:
        agent, damage = parse_record(id, told)
    return Evidence(
        id=id,
        agent=agent,
        told=told,
        damage=damage,
        written=read_written(files.get("state", "")),
        ended=read_ended(files.get("exit", "")),
        pane=pane,
        creating=id in creating,
        creator_alive=creating.get(id, False),
        tmux_trouble=trouble,
    )


def parse_record(id: str, text: str) -> tuple[Agent | None, str | None]:
    """agent.json of that agent, or what is wrong with it."""
    if not text.strip():
        return None, "the file is missing or empty"
    try:
        agent = Agent.from_dict(jsonline.loads(text))
    except (ValueError, RecursionError) as error:
        return None, str(error)
    flaw = _flaw(id, agent)
    return (None, flaw) if flaw else (agent, None)


def _flaw(id: str, agent: Agent) -> str | None:
    """What makes it useless although every field has its type. Agents can write this file: nothing in it may become an
    option, a target or a command in what is sent to sh, tmux and git later. This is the one place that says so."""
    if agent.id != id:
        return f"it says that it is {agent.id!r}"
    if not is_name(agent.name):
        return f"{agent.name!r} is not a name"
    if agent.mode not in MODES:
        return f"there is no mode {agent.mode!r}"
    if not agent.work_dir.startswith("/") or not (agent.source or "/").startswith("/"):
        return "its work dir or source is no absolute path"
    if agent.branch and (agent.branch[0] == "-" or " " in agent.branch or not agent.branch.isprintable()):
        return f"{agent.branch!r} is not a branch"
    if agent.base and not is_commit(agent.base):
        return f"{agent.base!r} is not a commit"
    if not all(map(is_name, agent.windows)):
        return "a window of it has no proper name"
    if not agent.command:
        return "its command is empty"
    words = [agent.work_dir, agent.source or "", agent.branch or "", agent.base or "", *agent.command]
    try:
        usable = b"\0" not in "".join(words).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        usable = False
    return None if usable else "it holds characters that no path has"


def find(statuses: Iterable[Status], id: str) -> Status | None:
    return next((status for status in statuses if status.id == id), None)


def natural(name: str) -> str:
    """As people count: runs of digits compare as numbers."""
    key = digits = ""
    for char in name + " ":
        if char.isdecimal():
            digits += char
        else:
            key += digits.zfill(64) + char if digits else char
            digits = ""
    return key
