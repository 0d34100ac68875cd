"""swarm integrate: what a run has verified, as one branch."""

from __future__ import annotations

from mngr.cli.integrate import OPTIONS, carry_out, say, tell, wanted
from mngr.cli.main import end_in_order
from mngr.cli.output import clean, notice
from mngr.errors import MngrError
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.grammar import Args
    from mngr.swarm.state import Run


@command(
    "swarm integrate",
    summary="make one branch of all that a run has verified",
    usage=["swarm integrate [RUN...] [OPTIONS] [-- PYTEST FLAGS...]"],
    about="""Takes the branches of all tasks that ended well, and makes the branch mngr/RUN-integrated of them, on the
commit that the run began with, as mngr integrate does with branches that you name: its page says how. Agents, tests,
severities and escalations are those of the run, and so are the setup, the pytest command and the type of agent that is
asked about conflicts. mngr swarm run does this at its end unless it is told --no-integrate.

Several runs of one repository become one branch, on the latest commit that one of them began with.

Branches of tasks that did not end well are named, and not taken. Work that ended well and is missing in the repository
is named too, and makes the exit code 6. What the integration has written is in the directory `integration` of the
(first) run: the report, the pull request's title and text, the patches, the rank file, a receipt.

Exit code 0 when everything is in; 6 when something was left out or set aside, a test is red that was green, or none of
the tests passes, and the branch is there. When nothing is left of it, no branch is made, and one that is there stays as
it was, with exit code 6.""",
    arguments=[
        Argument(name="RUN", help="the latest one, when none is named", optional=True, many=True, completes="runs")
    ],
    rest="PYTEST FLAGS",
    options=[
        option("--into NEW", "the branch to make (default: mngr/RUN-integrated)", completes="branches"),
        *OPTIONS,
    ],
    examples=[
        ("mngr swarm integrate", "the latest run"),
        ("mngr swarm integrate r3 --dry-run", "the order and the conflicts, without making anything"),
        ("mngr swarm integrate r3 --drop 1f3870be274f --reintegrate", "once more, without one of the fixes"),
        ("mngr swarm integrate r3 --reintegrate --push --pr", "publish what has been looked at"),
    ],
)
def integrate(args: Args) -> int:
    return carry_out(args, wanted(args).replace(runs=args.words))


def at_the_end_of(run: Run, fleet: Fleet, quiet: bool) -> int:
    """Of `swarm run` and `swarm resume`, if the run is over and was begun so. What is in the way is told, and takes
    nothing from the run."""
    from mngr.swarm import words

    begun_so = run.plan.get("notes", {}).get("integrate")
    verified = any(task.outcome in words.GOOD and task.home.get("commits") for task in run.tasks.values())
    if not (begun_so and verified and run.is_done) or run.cancelled:
        return 0
    from mngr.integrate import Wanted
    from mngr.integrate import integrate as make

    end_in_order(1)  # HUP: what is left of the run is only this, and `swarm integrate` does it again
    try:
        report = make(fleet, Wanted(runs=[run.id], reintegrate=True), (lambda _: None) if quiet else say)
    except MngrError as error:
        notice(clean(f"{run.id} is not integrated: {error.message}" + (f" ({error.hint})" if error.hint else "")))
        notice(f"mngr swarm integrate {run.id} tries it again")
        return 6
    except KeyboardInterrupt:
        notice(f"mngr swarm integrate {run.id} goes on with it")
        return 130
    if not quiet:
        print()
    return tell(report, quiet=quiet)
