"""explain: why an agent is said to be in its state."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTION, age, clean, print_json
from mngr.fleet.fleet import Fleet
from mngr.fleet.screen import capture
from mngr.fleet.select import one
from mngr.grammar import Argument, command
from mngr.state import how_it_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.survey import Status
    from mngr.grammar import Args


@command(
    "explain",
    summary="say why an agent is in its state",
    usage=["explain AGENT"],
    about="""Prints the state, the evidence that it was computed from, and the last lines of the screen. All verbs use
the same computation.""",
    arguments=[Argument(name="AGENT", help="the agent's name", completes="agents")],
    options=[JSON_OPTION],
    examples=[("mngr explain fix-login", "what list's one word rests on")],
)
def explain(args: Args) -> int:
    fleet = Fleet()
    status = one(fleet, args.words[0], of_tmux=True)
    evidence = _evidence(status)
    if args.flag("json"):
        print_json({"name": status.name, "state": status.state, **status.verdict.to_dict(), "evidence": evidence})
        return 0
    reason = f" ({clean(status.verdict.reason)})" if status.verdict.reason else ""
    print(
        f"{status.name} is {status.state}{reason}, since {age(status.verdict.since)}: {clean(status.verdict.because)}"
    )
    for what, value in evidence.items():
        print(f"  {what:12} {clean(str(value))}")
    if status.agent is not None:
        screen = capture(fleet, [status.agent.ref])[status.id] or ""
        for line in [line for line in screen.splitlines() if line.strip()][-10:]:
            print(f"  | {clean(line)}")
    return 0


def _evidence(status: Status) -> dict[str, object]:
    e = status.evidence
    return {
        "id": status.id,
        "host": status.host,
        "record": "damaged: " + str(e.damage) if e.agent is None else "agent.json is readable",
        "written": f"{e.written.state} {age(e.written.time)} ago {e.written.reason}".strip()
        if e.written
        else "nothing readable",
        "exit": f"{how_it_ended(e.ended.status, e.ended.signal)}, {age(e.ended.time)} ago"
        if e.ended
        else "none recorded",
        "pane": (f"pid {e.pane.pid}, " + ("dead" if e.pane.dead else "alive")) if e.pane else "no session",
        "second look": f"{e.seen.state} {e.seen.reason}".strip() if e.seen else "nothing that contradicts",
        "tmux": e.tmux_trouble or "answers, or has no server",
        "survivor": e.survivor or "none",
        "work dir": e.agent.work_dir if e.agent else "?",
        "command": " ".join(e.agent.command) if e.agent else "?",
    }
