"""swarm run, estimate and resume: an agent for each test."""

from __future__ import annotations

import os
import sys
import threading
import time

from mngr import registry
from mngr.address import parse_address
from mngr.cli.create import create, request
from mngr.cli.integrate import time_for_a_test
from mngr.cli.output import JSON_OPTIONS, clean, notice, print_json
from mngr.errors import MngrError, UsageError
from mngr.fleet.fleet import LOCAL, Fleet
from mngr.fleet.hosting import host_for
from mngr.fleet.plan import choose
from mngr.fleet.preflight import check_program
from mngr.grammar import Argument, command, option
from mngr.swarm import settings as tuning
from mngr.swarm.hands import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.fleet.plan import Request
    from mngr.grammar import Args
    from mngr.swarm.state import Run
    from mngr.swarm.testing.recipe import TestRecipe

_AS_CREATE = ("headless", "env", "env_file", "pass_env", "setup", "copy", "base")
_REGRETS = 3.0  # seconds after Ctrl-C in which another one stops the agents as well


def _explained(setting: tuning.Setting) -> str:
    default = setting.default
    if default is None:
        return setting.help
    number = f"{default:g}" if isinstance(default, float) else default
    return f"{setting.help} (default: {number}{'s' if setting.word == 'TIME' else ''})"


_ARGUMENTS = [
    Argument(
        name="PATHS",
        help="tests: files, directories or ids, as pytest takes them",
        optional=True,
        many=True,
        completes="files",
    ),
]
_OPTIONS = (
    option("--type TYPE", "the type of the agents, as for create", completes="types"),
    option("--agent-arg WORD", "an argument for the agent's program", many=True),
    option("--at PLACES", "where: box1.ssh,box2.ssh, or .docker for a host each (default: this machine)"),
    option(
        "--pytest CMD",
        "how tests are run in a work dir (default: pytest of the project's .venv, or of python3)",
    ),
    option("--test-timeout TIME", "what a test may take (default: 120s)"),
    option("--tutorial FILE", "the tutorial that tests cite (default: tutorial.sh)", completes="files"),
    option("--changed-since REV", "skip tests that no change since REV can have affected; `last`: since the last run"),
    option("--program PATH", "for that, what tests depend on besides themselves (default: everything)", many=True),
    option("--audit SHARE", "of those skipped, so many are run all the same (default: 5%)"),
    option("--permissions POLICY", "what agents may do without asking", choices=("allowlist", "bypass")),
    option("--bypass-here", "with --permissions bypass: also on this very machine"),
    option("--allow COMMAND", "a command that agents may run, besides git and the tests", many=True),
    option("--account NAME", "what shares a rate limit with this run (default: the agent's program)"),
    *(declared for declared in create.options if declared.key in _AS_CREATE),
    *(option(f"--{each.name} {each.word}", _explained(each)) for each in tuning.SETTINGS),
    *JSON_OPTIONS,
)


@command(
    "swarm run",
    summary="send an agent to each test, and bring everything home",
    usage=["swarm run [PATHS...] [OPTIONS] [-- PYTEST FLAGS...]"],
    about="""Collects the tests with pytest, and makes an agent for each, in a clone of its own on the branch
mngr/RUN-TEST. Each runs its test; if it fails it mends the test or the program, if it passes it makes the test
verify just what its tutorial block and docstring promise; and hands in a result. What it claims is checked: the
commits are there and are of the kind that they say, and the test is run again, before and after, in a clean
checkout that was set up like a work dir. Branch, result, transcript, artifacts and costs are brought home, and the
agent is stopped. At the end, all that was verified becomes one branch, as mngr swarm integrate makes it.

No more agents are at work than --max-agents, the budget and the machine allow; `auto` finds out what the account
can take. What each is expected to cost is put aside before it starts, and is as much as it may spend unless there
is more.

Everything is in the run's log: kill this at any moment, and mngr swarm resume goes on, with nothing lost and
nothing done twice. Ctrl-C leaves the agents at work; a second one stops them. While it goes on, mngr swarm status
shows how, and mngr swarm set changes its settings.

Agents may do without asking what --permissions says: `allowlist` (the default) is editing files, git, the tests,
and what --allow adds; `bypass` is everything, and on this machine needs --bypass-here.

Exit code 0 when every task ended well or was skipped, 6 when some did not or could not be integrated, 1 when dispatch
is paused.""",
    arguments=_ARGUMENTS,
    rest="PYTEST FLAGS",
    options=(
        option("--name RUN", "of the run (default: r1, r2 and so on)"),
        option("--no-integrate", "leave the branches as they are: mngr swarm integrate makes one of them later"),
        *_OPTIONS,
    ),
    examples=[
        ("mngr swarm run tests/e2e --type claude --budget 20usd -- -m release", "one agent for each of these tests"),
        ("mngr swarm run --type codex --max-agents 8 --changed-since origin/main", "what this branch may have broken"),
        ("mngr swarm run tests/test_login.py --type claude --keep all", "keep the agents, to talk to them afterwards"),
    ],
)
def run(args: Args) -> int:
    from mngr.swarm.begin import begin

    fleet = Fleet()
    recipe, template, places, settings, notes = _asked(args, fleet)
    directory = begin(
        fleet,
        recipe,
        template,
        places=places,
        settings=settings,
        name=args.text("name"),
        account=args.text("account"),
        notes={**notes, "integrate": not args.flag("no_integrate")},
    )
    return _carry_out(args, fleet, directory)


@command(
    "swarm estimate",
    summary="what a run would do, cost and send, without launching anything",
    usage=["swarm estimate [PATHS...] [OPTIONS] [-- PYTEST FLAGS...]"],
    about="""Takes the same words as mngr swarm run, collects the tests and says how many agents there would be,
which tests would be skipped and why, what it is likely to cost (from earlier agents of this repository; before
there are any, from 20,000 to 50,000 tokens for each), and what would leave this machine: bytes of the repository,
names of variables, hosts.""",
    arguments=_ARGUMENTS,
    rest="PYTEST FLAGS",
    options=_OPTIONS,
    examples=[("mngr swarm estimate tests/e2e --type claude --at .docker", "before the real thing")],
)
def estimate(args: Args) -> int:
    from mngr.swarm.estimate import estimate as reckon

    fleet = Fleet()
    recipe, template, places, settings, notes = _asked(args, fleet)
    found = reckon(fleet, recipe, template, places, settings)
    found["permissions"] = notes["permissions"]
    if args.flag("json") or args.flag("jsonl"):
        print_json(found, indent=None if args.flag("jsonl") else 2)
    else:
        from mngr.swarm.estimate import lines

        print(*(clean(line) for line in lines(found)), sep="\n")
    return 0


@command(
    "swarm resume",
    summary="go on with a run",
    usage=["swarm resume [RUN]"],
    about="""Goes on where the log of the run ends, whatever ended it: Ctrl-C, kill -9, a reboot. Agents that are
still at work are watched again, those that have ended since are brought home, those whose terminal is gone are
started again, and what was not begun is begun. A run that was paused goes on: whoever resumes it has looked at what
was wrong. At its end it is integrated, unless it was begun with --no-integrate.""",
    arguments=[Argument(name="RUN", help="the latest one, when none is named", optional=True, completes="runs")],
    options=JSON_OPTIONS,
    examples=[("mngr swarm resume r3", "after a reboot, say")],
)
def resume(args: Args) -> int:
    from mngr.swarm.runs import find_run

    fleet = Fleet()
    return _carry_out(args, fleet, find_run(fleet.home, args.word(0)))


def _asked(args: Args, fleet: Fleet) -> tuple[TestRecipe, Request, list[str], dict[str, Any], dict[str, Any]]:
    """What the words of the command line come to."""
    from mngr.swarm.testing.recipe import TestRecipe

    settings = {
        each.name: tuning.read(each.name, text)
        for each in tuning.SETTINGS
        if (text := args.text(each.name.replace("-", "_"))) is not None
    }
    limit = args.text("test_timeout")
    places, made = _places(args, fleet), _made(args, fleet)
    recipe = TestRecipe.planned(
        os.getcwd(),
        home=fleet.home,
        paths=args.words,
        flags=args.rest or [],
        pytest=args.text("pytest"),
        limit=time_for_a_test(limit) if limit else 120.0,
        tutorial=args.text("tutorial"),
        base=args.text("base"),
        since=args.text("changed_since"),
        program=args.many("program"),
        audit=args.text("audit") or "5%",
        setup=made.setup,
        here=places == [LOCAL],
    )
    template, policy = _template(args, fleet, made, recipe, places)
    recipe.model = " ".join([template.type or "", *(template.args or [])])
    if left := len(git(recipe.top, "status", "--porcelain").splitlines()):
        files = "1 file is not committed and stays" if left == 1 else f"{left} files are not committed and stay"
        notice(f"{files} behind: agents start from a commit")
    return recipe, template, places, settings, {"permissions": policy}


def _places(args: Args, fleet: Fleet) -> list[str]:
    """Those of --at, refused as far as that can be done without making one. This machine has one name."""
    places = []
    for word in (args.text("at") or LOCAL).split(","):
        address = parse_address("@" + word.strip().removeprefix("@"))
        if address.provider in (None, LOCAL):
            places.append(host_for(fleet, address, "", {})[0].name)
        else:
            registry.provider(address.provider or LOCAL)
            places.append(str(address).removeprefix("@"))
    return list(dict.fromkeys(places))


def _made(args: Args, fleet: Fleet) -> Request:
    """As `create` reads the options; words and what follows -- are for pytest."""
    words, args.words, rest, args.rest = args.words, [], args.rest, None
    made = request(args, fleet)
    args.words, args.rest = words, rest
    return made.replace(per_host=None)  # a setting here, which can change while it goes on


def _template(args: Args, fleet: Fleet, made: Request, recipe: TestRecipe, places: list[str]) -> tuple[Request, str]:
    """How the agents are made, and what they may do."""
    name = args.text("type") or fleet.config.text("type")
    if name is None:
        raise UsageError("which agent type?", "--type claude, or once and for all: mngr config set type claude")
    found = registry.agent_type(name)
    policy = args.text("permissions") or "allowlist"
    if policy == "bypass" and LOCAL in places and not args.flag("bypass_here"):
        raise UsageError(
            "agents that may do everything, on this very machine?",
            "--bypass-here says yes; --at .docker puts them elsewhere",
        )
    permissions = found.permissions(policy, ["git", recipe.pytest, *args.many("allow")])
    if permissions is None:
        raise UsageError(
            f"{name} has no {policy} for what it may do", "--permissions bypass, in a place that can bear it"
        )
    template = made.replace(
        address=None,
        type=name,
        args=[*permissions.args, *args.many("agent_arg")],
        env={**permissions.env, **made.env},
        mode="clone",
        source=recipe.top,
    )
    choose(template, None)  # it refuses arguments that no agent could be started with
    if LOCAL in places:  # a program that is missing is missing for all of them
        passed = {key: os.environ[key] for key in found.passes if key in os.environ}
        check_program(fleet.host(LOCAL), found, template.replace(env={**passed, **template.env}), inherits=False)
    return template, policy


def _carry_out(args: Args, fleet: Fleet, directory: str) -> int:
    from mngr.swarm.api import resume as go_on
    from mngr.swarm.api import stop_agents

    name = os.path.basename(directory)
    screen, interrupts = _Screen(args, directory), _Interrupts()
    try:
        found = go_on(fleet, directory, heard=screen.heard)
    except KeyboardInterrupt:
        screen.end()
        notice(f"the agents of {name} go on; mngr swarm resume {name} goes on with them. Ctrl-C again stops them")
        if interrupts.come_again(_REGRETS):
            stopped = stop_agents(fleet, name)
            notice(f"{stopped} agents stopped; mngr swarm resume {name} starts them again")
        _go_at_once(130)
    screen.end()
    return _end(args, fleet, found)


class _Interrupts:
    """Ctrl-C from here on. The first one interrupts; others are counted, since they may come while the first is still
    being seen to, and what that does must come to its end."""

    def __init__(self) -> None:
        import signal

        self._count = 0
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # a job in the background of a script
            signal.signal(signal.SIGINT, self._heard)

    def _heard(self, _number: int, _frame: object) -> None:
        self._count += 1
        if self._count == 1:
            raise KeyboardInterrupt

    def come_again(self, seconds: float) -> bool:
        """Has there been another one, or is there within so many seconds?"""
        limit = time.monotonic() + seconds
        while self._count < 2 and time.monotonic() < limit:
            time.sleep(0.05)
        return self._count > 1


def _go_at_once(code: int) -> None:
    """Without waiting for threads that ask hosts: what they do is found again."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end(args: Args, fleet: Fleet, found: Run) -> int:
    from mngr.cli.swarm_integrate import at_the_end_of
    from mngr.swarm.report import ending_lines, rows, summary

    code = 6 if any(task.is_bad or not task.is_over for task in found.tasks.values()) else 0
    as_json = args.flag("jsonl") or args.flag("json")
    if not as_json:
        print(*(clean(line) for line in ending_lines(found)), sep="\n", flush=True)
    code = at_the_end_of(found, fleet, as_json) or code
    if args.flag("jsonl"):
        for row in rows(found, time.time()):
            print_json(row, indent=None)
    elif args.flag("json"):
        print_json({**summary(found), "tasks": rows(found, time.time())})
    if found.paused and not found.is_done:
        raise MngrError(f"{found.id} is paused: {found.paused}", f"mend that, then mngr swarm resume {found.id}")
    return code


class _Screen:
    """While it goes on: the picture of `swarm status` on a terminal, lines elsewhere."""

    def __init__(self, args: Args, directory: str) -> None:
        self._quiet = args.flag("json") or args.flag("jsonl")
        self._painter: threading.Thread | None = None
        if not self._quiet and sys.stdout.isatty():
            from mngr.cli.swarm_status import live

            self._painter = threading.Thread(target=live, args=[directory], daemon=True)

    def heard(self, run: Run, event: dict[str, Any]) -> None:
        if self._painter is not None:
            if event["event"] == "started":  # it paints as long as somebody works on the run
                self._painter.start()
        elif not self._quiet and (line := told(run, event)):
            print(clean(line), flush=True)

    def end(self) -> None:
        """When the run is left to itself."""
        if self._painter is not None and self._painter.ident is not None:
            self._painter.join(5.0)
            print()


def told(run: Run, event: dict[str, Any]) -> str:
    """What somebody who reads along wants to know."""
    from mngr.swarm.report import permissions

    kind = event["event"]
    task = run.tasks.get(str(event.get("task")))
    if kind == "started":
        waiting = len([each for each in run.tasks.values() if not each.is_over])
        may = f", permissions: {policy}" if (policy := permissions(run)) else ""
        where = f"mngr swarm status {run.id} shows how it goes"
        return f"{run.id}: {len(run.tasks)} task{'s' if len(run.tasks) != 1 else ''}, {waiting} to do{may} ({where})"
    if kind == "paused":
        return f"paused: {event['why']}"
    if kind == "unpaused" and event.get("why"):
        return f"going on: {event['why']}"
    if kind == "warned":
        return f"warning: {event['why']}"
    if kind == "full":
        return f"waiting for room on {event['host']}: {event['why']}"
    if kind == "alert failed":
        return f"alert failed: {event['why']} ({event['pattern']})"
    if task is None:
        return ""
    if kind == "settled":
        done = len([each for each in run.tasks.values() if each.is_over])
        why = f" ({event['why']})" if event.get("why") else ""
        return f"[{done}/{len(run.tasks)}] {event['outcome']}: {task.title}{why}"
    if kind == "parked":
        return (
            f"parked until {time.strftime('%H:%M:%S', time.localtime(event['until']))}: {task.title} ({event['why']})"
        )
    if kind in ("nudged", "restarted", "relaunch"):
        return f"{kind}: {task.title} ({event.get('why', '')})"
    return ""
