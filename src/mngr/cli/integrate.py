"""integrate: the work of many branches as one, for review."""

from __future__ import annotations

import os
import sys

from mngr.cli.main import end_in_order
from mngr.cli.output import JSON_OPTION, clean, notice, print_json, print_table
from mngr.cli.selection import pairs
from mngr.errors import MngrError, SomeFailed, UsageError
from mngr.grammar import Argument, command, option, seconds
from mngr.integrate.plain import counted, shown
from mngr.integrate.wanted import Wanted
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.grammar import Args

_MOST = 20  # lines of one kind in the ending
_WIDEST = 72  # characters of a subject
_NONE_RUN = ": no test was run"
_NONE_PASSES = ": no test passes"
_SKIPPED = "skipped"

_CONTRADICTIONS = (
    ("check", "pytest"),
    ("no_verify", "check"),
    ("no_agent", "type"),
    ("no_agent", "rank_agent"),
    ("rank_file", "rank_agent"),
    ("dry_run", "push"),
    ("dry_run", "pr"),
)
# Those of `swarm integrate` too.
OPTIONS = (
    option("--no-verify", "run no tests: what is picked without a conflict is in"),
    option(
        "--setup CMD", "run this in a checkout before its first test (default: that of the run or the configuration)"
    ),
    option("--copy PATH", "carry this ignored file or directory into each checkout", many=True, completes="files"),
    option("--pytest CMD", "how tests are run in a checkout (default: pytest of the project's .venv, or of python3)"),
    option("--test-timeout TIME", "what a test may take (default: 120s)"),
    option("--check CMD", "a command that says by its exit code whether a checkout is good, in place of pytest"),
    option("--workers N", "run tests in so many checkouts at once (default: one for each core)"),
    option("--forget", "run every test again: forget how they ended before"),
    option("--rank-file FILE", "the order of the fixes: lines `pick NAME` and `drop NAME`", completes="files"),
    option("--rank-agent", "let an agent of --type change the order of the fixes, and say why"),
    option("--drop NAME", "leave this change out: the names are those of the plan", many=True),
    option("--type TYPE", "the type of the agent that is asked about conflicts", completes="types"),
    option("--agent-arg WORD", "an argument for that agent's program", many=True),
    option("-e, --env K=V", "set a variable for that agent", many=True),
    option("--no-agent", "ask no agent: what conflicts is left out"),
    option("--push", "push the branch"),
    option("--remote NAME", "where to (default: git's remote.pushDefault, or origin)"),
    option("--pr", "push it, and open a pull request with gh, or bring the one that is open up to date"),
    option("--resume", "go on with one that was interrupted; an error if there is none"),
    option("--reintegrate", "make the branch anew, in the order of its rank file if you have edited that"),
    option("--dry-run", "show what would be in it, and in which order; no tests, no agents, no branch"),
    JSON_OPTION,
)


@command(
    "integrate",
    summary="make one branch of many, for review",
    usage=["integrate BRANCH... --into NEW [--base REV] [OPTIONS] [-- PYTEST FLAGS...]"],
    about="""Takes the commits that these branches have and the base lacks, and makes the new branch NEW of them on the
base. Nothing is checked out, and your repository sees nothing of it but that branch, at the end. The same branches,
base and decisions give the same commit ids.

Each commit is of a kind: test, docs, tutorial or implementation. Its paths decide (the keys [integrate] of the
configuration say which are which), not what its trailer `Kind:` declares; one that changes the program and something
else is split in two. All that is not implementation becomes one commit. Each fix of the program becomes a commit of
its own, so that it can be reverted alone: what fixes most tests comes first, then by declared severity, by how many
made the same fix, and the smaller one. The same fix on several branches is taken once, and everybody is named.

Conflicts are solved by the order, or by keeping both sides where both only add something; what remains is given to an
agent, if there is a --type, and is else left out. Left out means that it is told: where, why, against what, and how to
go on by hand.

Then the tests are run, in clean checkouts: those of every change, then all of them. What breaks a test that was green
on the base, twice, is set aside with that evidence; a new test that is red without a certain fix goes into the commit
of that fix. --no-verify does without. What is known of a commit is not asked twice, so that an integration that was
interrupted, or is made anew with another branch or order, does only what is new.

The directory of the integration, which is told at the end, has the report, the title and text of a pull request, the
patches, a receipt that compares each branch with what has become of it, and the file `rank`: edit its lines and use
--reintegrate.

Exit code 0 when everything is in; 6 when something was left out or set aside, a test is red that was green, or none of
the tests passes, and the branch is there. When nothing is left of it, no branch is made, and one that is there stays as
it was, with exit code 6.""",
    arguments=[
        Argument(
            name="BRANCH",
            help="to take commits from; 'work/*' for all of these, but for what integrations have made",
            many=True,
            completes="branches",
        )
    ],
    rest="PYTEST FLAGS",
    options=[
        option("--into NEW", "the branch to make", completes="branches"),
        option("--base REV", "what it is built on (default: what is checked out)", completes="branches"),
        *OPTIONS,
    ],
    examples=[
        ("mngr integrate fix-a fix-b fix-c --into review", "three branches as one, tested"),
        ("mngr integrate 'work/*' --base main --into review --dry-run", "what would be in it, and in which order"),
        ("mngr integrate 'work/*' --into review --type claude", "let an agent solve what conflicts"),
        (
            "mngr integrate 'work/*' --into review --reintegrate --pr",
            "with the branches that came since, as a pull request",
        ),
    ],
)
def integrate(args: Args) -> int:
    if args.text("into") is None:
        raise UsageError("integrate needs --into NEW: the branch to make", "mngr help integrate has examples")
    return carry_out(args, wanted(args).replace(branches=args.words, base=args.text("base") or ""))


def wanted(args: Args) -> Wanted:
    """What the options say."""
    limit = args.text("test_timeout")
    for one, other in _CONTRADICTIONS:
        if args.given.get(one) and args.given.get(other):
            raise UsageError(f"--{one.replace('_', '-')} and --{other.replace('_', '-')} do not go together")
    return Wanted(
        where=os.getcwd(),
        into=args.text("into") or "",
        verify=not args.flag("no_verify"),
        setup=args.text("setup"),
        copy=args.many("copy") or None,
        pytest=args.text("pytest"),
        flags=args.rest,
        limit=time_for_a_test(limit) if limit else None,
        check=args.text("check"),
        workers=args.count("workers", 0),
        forget=args.flag("forget"),
        rank_file=args.text("rank_file"),
        rank_agent=args.flag("rank_agent"),
        drop=args.many("drop"),
        agents=not args.flag("no_agent"),
        type=args.text("type"),
        args=args.many("agent_arg"),
        env=pairs(args.many("env"), "--env"),
        push=args.flag("push") or args.flag("pr"),
        remote=args.text("remote") or "",
        pull_request=args.flag("pr"),
        resume=args.flag("resume"),
        reintegrate=args.flag("reintegrate"),
        dry_run=args.flag("dry_run"),
    )


def time_for_a_test(text: str) -> float:
    found = seconds(text, "--test-timeout")
    if not found:
        raise UsageError("no test passes in no time", "--test-timeout takes more than 0s")
    return found


def carry_out(args: Args, asked: Wanted) -> int:
    from mngr.fleet.fleet import Fleet
    from mngr.integrate.api import integrate as make

    quiet = args.flag("json")
    end_in_order(1)  # HUP: there is no agent in this terminal that goes on, and checkouts are large
    try:
        report = make(Fleet(), asked, (lambda _: None) if quiet else say)
    except KeyboardInterrupt:
        notice("interrupted: the same words with --resume go on from here, with all that was found out")
        return 130
    if quiet:
        print_json(report)
    code = tell(report, quiet=quiet, is_plan=asked.dry_run)
    if asked.push and not report["tip"]:
        sys.stdout.flush()
        raise SomeFailed(
            "nothing was pushed: nothing is left to make a branch of", "what is dropped or left out is named above"
        )
    return code


def say(text: str) -> None:
    """What is being done, on the way."""
    notice(clean(text))


def tell(report: dict[str, Any], *, quiet: bool = False, is_plan: bool = False) -> int:
    """What it came to, and the exit code for it."""
    if not quiet:
        if is_plan:
            _print_plan(report)
        for line in _plan_lines(report) if is_plan else _ending_lines(report):
            print(clean(line))
    pushed = report.get("pushed") or {}
    if pushed.get("problem"):
        sys.stdout.flush()
        raise MngrError(pushed["problem"], pushed["hint"])
    is_unknown = bool(report["tests"]) and not report["verified"]
    is_short = report["counts"]["left"] or report["counts"]["aside"] or report["still_red"] or report["stays"]
    return 6 if is_short or is_unknown or _missing(report) else 0


# The plan


def _print_plan(report: dict[str, Any]) -> None:
    rows = [
        (str(step["rank"]), pick["name"], pick["kind"], _subject(pick["subject"]), "; ".join(step["reasons"]))
        for step in report["steps"]
        if step["rank"]
        for pick in step["picks"][:1]
    ]
    if rows:
        print_table(rows, ("RANK", "NAME", "KIND", "SUBJECT", "WHY"))


def _plan_lines(report: dict[str, Any]) -> list[str]:
    folded = [pick for step in report["steps"] if not step["rank"] for pick in step["picks"]]
    out = _section("folded into one commit", [f"{pick['name']}  {pick['kind']}: {_what(pick)}" for pick in folded])
    return [*out, *_not_in(report), "", _counted(report)]


# The end


def _ending_lines(report: dict[str, Any]) -> list[str]:
    out = [_counted(report), *_staying(report), *(f"note: {note}" for note in report["notes"]), *_not_in(report)]
    for title, tests in (
        ("red, and no single change is to blame", report["still_red"]),
        ("red on the base too", report["red_at_base"]),
        ("red before the fixes", report["red_below"]),
        ("flaky", report["flaky"]),
        ("no longer there", [_gone(each) for each in report["removed"] if each["how"] != _SKIPPED]),
        ("skipped, and run on the base", [_gone(each) for each in report["removed"] if each["how"] == _SKIPPED]),
        ("to look at closely", [f"{_what(each)}: {each['text']}" for each in report["warnings"]]),
    ):
        out += _section(title, tests)
    pushed = report.get("pushed") or {}
    out += [f"pushed to {pushed['remote']}"] if pushed.get("remote") else []
    out += [f"pull request: {pushed['pull_request']}"] if pushed.get("pull_request") else []
    return [*out, *_next_steps(report)]


def _gone(removed: dict[str, str]) -> str:
    did = "skipped" if removed["how"] == _SKIPPED else "removed"
    by = f": {did} by {removed['name']}, {_subject(removed['subject'])}" if removed["name"] else ""
    return removed["test"] + by


def _counted(report: dict[str, Any]) -> str:
    counts, steps = report["counts"], len(report["steps"])
    if not steps:
        return f"{report['into']}: nothing to integrate on {report['base'][:10]}"
    others = counted(counts["folded"] + counts["carried"], "other change")
    fixes, branches = counted(counts["fixes"], "fix", "fixes"), counted(counts["branches"], "branch", "branches")
    text = f"{report['into']}: {counted(steps, 'commit')} on {report['base'][:10]}, {fixes} and {others} of {branches}"
    if counts["duplicates"]:
        text += f", {counts['duplicates']} made by more than one"
    return f"{text}; {_verification(report)}"


def _verification(report: dict[str, Any]) -> str:
    lost = counted(report["counts"]["lost"], "test of the base is", "tests of the base are")
    more = f"{lost} not run any more" if report["counts"]["lost"] else ""
    if report["verified"]:
        return f"verified, but {more}" if more else "verified"
    why = _NONE_RUN if report["tests"] == {} else _NONE_PASSES if report["tests"] else ""
    return f"not verified{why}; {more}" if more else f"not verified{why}"


def _staying(report: dict[str, Any]) -> list[str]:
    if not report["stays"]:
        return []
    return [
        f"The branch {report['into']} is as it was before, at {report['stays'][:10]}: nothing is left to make it of"
    ]


def _not_in(report: dict[str, Any]) -> list[str]:
    """Everything that is not in, and why."""
    out = _section("left out", [f"{_what(each)}: {each['why']}" for each in report["left"]])
    out += _section("set aside", [f"{_what(each)}: {each['why']}" for each in report["aside"]])
    out += _section("dropped", [_what(each) for each in report["dropped"]])
    out += _section("there already", [_what(each) for each in report["there"]])
    out += _section(
        "ignored", [f"{each['commit'][:10]} ({each['branch']}): {each['why']}" for each in report["ignored"]]
    )
    missing = _missing(report)
    out += _section("missing", [f"{each['branch']}: {each['outcome']}, but {each['why']}" for each in missing])
    unused = [each for each in report["passed"] if each["branch"] and each not in missing]
    return out + _section("not taken", [f"{each['branch']}: {each['outcome']}, {each['why']}" for each in unused])


def _missing(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Work that ended well, and is not there any more."""
    from mngr.integrate.sources import is_missing

    return [each for each in report["passed"] if is_missing(each["outcome"], each["branch"])]


def _next_steps(report: dict[str, Any]) -> list[str]:
    steps = {}
    if report["tip"]:
        steps[f"git log --stat {report['base'][:10]}..{report['into']}"] = "what is in it"
        steps[f"less {quote(os.path.join(report['directory'], 'pull-request.md'))}"] = "for whoever reviews it"
    if report["stays"]:
        steps[f"git branch -D {quote(report['into'])}"] = "to remove what was made before"
    if solvable := [each["work_dir"] for each in report["left"] if each["work_dir"]]:
        steps[f"cd {quote(solvable[0])}"] = "to solve a conflict by hand: git commit there"
    steps[f"${{EDITOR:-vi}} {quote(report['rank_file'])}"] = "to change the order or drop some"
    steps[report["again"]] = "then: the same branch, made anew"
    width = min(_WIDEST, max(map(len, steps)))
    return ["", "next", *(f"  {line:<{width}}  {what}" for line, what in steps.items())]


def _section(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return ["", f"{title} ({len(lines)})", *(f"  {line}" for line in lines[:_MOST]), *more]


def _what(change: dict[str, Any]) -> str:
    return f"{_subject(change['subject'])} ({change['branch']})"


def _subject(text: str) -> str:
    return shown(text, _WIDEST)
