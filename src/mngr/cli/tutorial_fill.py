"""tutorial fill: an agent proposes, a person decides."""

from __future__ import annotations

import os
import sys
import tempfile

from mngr.cli.create import create, request
from mngr.cli.output import JSON_OPTION, colour, notice, on_terminal, print_json
from mngr.errors import MngrError, UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.outcome import counted
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args
    from mngr.tutorial.fill import Source
    from mngr.tutorial.proposals import Proposal, Store

_AS_CREATE = ("env", "env_file", "pass_env", "setup", "copy")
_UNTRIED = "keep, try, edit, reject, skip or quit [k/t/e/r/s/q]? "
_TRIED = "keep, edit, reject, skip or quit [k/e/r/s/q]? "
_FAILED = "keep it anyway, edit, reject, skip or quit [k/e/r/s/q]? "


@command(
    "tutorial fill",
    summary="have an agent propose commands for the blanks of a tutorial, and decide about them",
    usage=["tutorial fill FILE [--review-file FILE | --yes] [--type TYPE] [--man DIR] [OPTIONS] [-- ARGS...]"],
    about="""A blank is a paragraph of comments alone: what to show, and no command yet. One agent reads the manual (the
pages in man/ of the repository, those of --man, else what --help says) and proposes up to three blocks for each blank.
It works in a work dir of its own, without its terminal interface if its program can do that; what it may do without
asking is for the arguments behind `--` to say. A program of type command finds its prompt in $MNGR_INPUT.

You see each proposal before anything of it is run, and keep it, edit it in $EDITOR, reject it with a reason, or skip
it. What you keep or edit is run once, with a new home and in a small git repository, for a minute at most, and you see
what came of it; when it fails you are asked again. It can also be tried before you decide. It runs as you: this keeps
accidents away, and is no jail. Rejections, and blocks that fail with a usage error, are kept for mngr tutorial
confusing.

With --review-file the same is done in an editor. If the file is not there it is written, and nothing is run; each
proposal has a line in it in which skip is to be changed. If it is there, it is carried out: what is kept is run, told
and written. A block that fails is not written, nor are others for the same blank: they are left in the file, with what
came of them, for another look, and the exit code is 1. `keep anyway` writes it all the same. When nothing is left in
it, the file is removed.

--yes asks nothing: it runs the proposals and keeps the first of each blank that succeeds. So commands that an agent
has made up run as you, and nobody has read them.

What you kept is written into the tutorial at the end, below its comment or in its place, if the file has not changed
meanwhile. What is not decided is kept in MNGR_HOME and offered the next time.

--json prints an object with `file`, the list `written` (each with `line`, `text` and its `trial`: `code`, `seconds`,
`output`, `timed_out`), and the numbers of proposals `rejected` by this call and `left` to decide; when a review file is
written, one with `file`, `review_file` and the number of `proposals`.""",
    arguments=[Argument(name="FILE", help="the tutorial: a shell script in blocks", completes="files")],
    rest="ARGS",
    options=[
        option(
            "--review-file FILE", "decide in this file: written if it is not there, else carried out", completes="files"
        ),
        option("-y, --yes", "run all of it as you, keep what succeeds, and ask nothing"),
        option("--type TYPE", "the type of the agent, as for create", completes="types"),
        option("--man DIR", "where the man pages are", completes="dirs"),
        option("--timeout TIME", "wait no longer than this for the agent, with exit code 4; it goes on"),
        *(declared for declared in create.options if declared.key in _AS_CREATE),
        JSON_OPTION,
    ],
    examples=[
        ("mngr tutorial fill tutorial.sh --type claude", "propose and decide, one after the other"),
        ("mngr tutorial fill tutorial.sh --review-file todo && $EDITOR todo", "decide in an editor"),
        ("mngr tutorial fill tutorial.sh --review-file todo", "then carry it out"),
    ],
)
def fill(args: Args) -> int:
    from mngr.tutorial.ask import ask
    from mngr.tutorial.fill import read_source, unanswered
    from mngr.tutorial.proposals import Store

    file, review = args.words[0], args.text("review_file")
    if review and args.flag("yes"):
        raise UsageError("--review-file and --yes exclude each other")
    if not (review or args.flag("yes") or on_terminal()):
        raise UsageError("there is no terminal to ask you in", "--review-file FILE, or --yes")
    if (manual := args.text("man")) and not os.path.isdir(manual):
        raise UsageError(f"--man {manual}: not a directory")
    fleet = Fleet()
    source = read_source(file)
    store = Store(fleet.home, file)
    store.load(source.tutorial.blanks)
    if not source.tutorial.blanks:
        notice(f"{file} has no blanks")
    before = _rejected(store)
    if review and os.path.exists(review):
        return _carry_out(args, fleet, source, store, before, review)
    if blanks := unanswered(source, store):
        wanted = request(args, fleet).replace(address=None, type=args.text("type"))
        ask(fleet, wanted, file, store, blanks, manual, notice, args.number("timeout"))
    if review:
        return _ask_by_file(args, store, review)
    try:
        if args.flag("yes"):
            _keep_what_succeeds(fleet, store)
        else:
            _ask_person(fleet, source, store)
    finally:  # also of Ctrl-C: what was decided is done
        _conclude(args, source, store, before)
    return 0


def _ask_by_file(args: Args, store: Store, review: str) -> int:
    shown = store.undecided()
    if not shown:
        notice("there is nothing to decide")
        return 0
    again = _write_review(args, review, "x", shown)
    if args.flag("json"):
        print_json({"file": args.words[0], "review_file": review, "proposals": len(shown)})
    else:
        print(f"{review}: {counted(len(shown), 'proposal')} to decide about; then: {again}")
    return 0


def _write_review(args: Args, review: str, mode: str, shown: list[Proposal]) -> str:
    """The command that carries it out."""
    from mngr.process import quote
    from mngr.tutorial.review import write_review

    again = " ".join(["mngr tutorial fill", quote(args.words[0]), "--review-file", quote(review)])
    with open(review, mode, encoding="utf-8") as file:
        file.write(write_review(args.words[0], again, shown))
    return again


def _carry_out(args: Args, fleet: Fleet, source: Source, store: Store, before: set[str], review: str) -> int:
    """What is kept is marked as such only when all of it has been run: who ends this before has the file as it was."""
    from mngr.tutorial.blocks import read_text
    from mngr.tutorial.fill import edited, keep, read_source, reject, tried
    from mngr.tutorial.proposals import KEEP, OPEN, REJECT
    from mngr.tutorial.review import read_review

    known = {proposal.id: proposal for proposal in store.proposals}
    decisions = [each for each in read_review(read_text(review), review) if each.decision != OPEN]
    lost = [decision for decision in decisions if decision.id not in known]
    for decision in lost:
        notice(f"{review}:{decision.line}: {decision.id} is no proposal for {args.words[0]} any more")
    if lost:
        raise MngrError(
            f"nothing of {review} was carried out",
            f"has the comment in {args.words[0]} been edited, or the id? skip what has no place any more",
        )
    kept: list[Proposal] = []
    failed: set[str] = set()
    for decision in decisions:
        proposal = known[decision.id]
        if decision.decision == REJECT:
            if proposal.decision != REJECT:  # by a call before that was ended half-way
                reject(fleet.home, store, proposal, decision.reason)
        else:
            proposal = tried(fleet.home, store, edited(proposal, decision.block))
            _tell_trial(f"{review}:{decision.line}", proposal)
            kept.append(proposal)
            if decision.decision == KEEP and not (proposal.trial and proposal.trial.ok):
                failed.add(proposal.id)
    waiting = {(each.line, each.blank) for each in kept if each.id in failed}
    again = {each.id: OPEN if each.id in failed else KEEP for each in kept if (each.line, each.blank) in waiting}
    for proposal in kept:
        if proposal.id not in again:
            keep(store, proposal)
    _conclude(args, source, store, before)
    if not again:
        os.unlink(review)
        return 0
    store.load(read_source(args.words[0]).tutorial.blanks)  # whose lines have moved
    shown = [each.replace(decision=again[each.id]) for each in store.proposals if each.id in again]
    _write_review(args, review, "w", shown)
    notice(f"{review}: {counted(len(shown), 'proposal')} left in it for another look")
    return 1


def _tell_trial(place: str, proposal: Proposal) -> None:
    from mngr.tutorial.review import told

    assert proposal.trial
    how, *lines = told(proposal.trial)
    notice(f"{place}: {how}")
    print("".join(f"  {line}\n" for line in lines), end="", file=sys.stderr)


def _keep_what_succeeds(fleet: Fleet, store: Store) -> None:
    from mngr.tutorial.fill import keep, tried

    done: set[tuple[int, str]] = set()
    for proposal in store.undecided():
        place = (proposal.line, proposal.blank)
        if place in done:
            continue
        proposal = tried(fleet.home, store, proposal)
        if proposal.trial and proposal.trial.ok:
            keep(store, proposal)
            done.add(place)


def _ask_person(fleet: Fleet, source: Source, store: Store) -> None:
    asked: set[str] = set()
    while left := [proposal for proposal in store.undecided() if proposal.id not in asked]:
        asked.add(left[0].id)
        if not _decide(fleet, source, store, left[0], len(left)):
            return


def _decide(fleet: Fleet, source: Source, store: Store, proposal: Proposal, left: int) -> bool:
    """False: the person wants no more of this. Nothing is run before they have seen it and said so."""
    from mngr.tutorial.fill import edited, keep, reject, tried

    place = f"{source.path}:{proposal.line}" + (f"  {proposal.section}" if proposal.section else "")
    print(f"\n{colour(place, '1')}  ({left} to go)")
    _show(proposal)
    while True:
        try:
            answer = input(_question(proposal)).strip().lower()[:1]
            reason = input("why? ").strip() if answer == "r" else ""
        except EOFError:
            print()
            return False
        if answer in ("s", "q"):
            return answer == "s"
        if reason:
            reject(fleet.home, store, proposal, reason)
            return True
        if answer == "e":
            new = edited(proposal, _in_editor(proposal.result))
            if new is proposal:
                continue
            proposal = new
            store.put(proposal)
            _show(proposal)
        if answer in ("k", "e", "t"):
            is_known = proposal.trial is not None
            if not is_known:
                proposal = tried(fleet.home, store, proposal)
                _show_trial(proposal)
            assert proposal.trial
            if answer != "t" and (is_known or proposal.trial.ok):
                keep(store, proposal)
                return True


def _question(proposal: Proposal) -> str:
    if proposal.trial is None:
        return _UNTRIED
    return _TRIED if proposal.trial.ok else _FAILED


def _show(proposal: Proposal) -> None:
    """With what came of it, if it was run on another day."""
    print("\n" + "\n".join(f"  {line}" for line in proposal.result.split("\n")) + "\n", flush=True)
    if proposal.trial:
        _show_trial(proposal)


def _show_trial(proposal: Proposal) -> None:
    from mngr.tutorial.review import told

    assert proposal.trial
    how, *lines = told(proposal.trial)
    print(colour(how, "32" if proposal.trial.ok else "31"))
    print("".join(f"  {line}\n" for line in lines))


def _in_editor(text: str) -> str:
    """What the person has made of it; unchanged when that can be no block."""
    from mngr.e2e.block import normalise
    from mngr.process import run_in_front
    from mngr.tutorial.proposals import flaw_of

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="mngr-fill-") as directory:
        path = os.path.join(directory, "block.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        code = run_in_front(["sh", "-c", f'{editor} "$1"', "sh", path])
        with open(path, encoding="utf-8", errors="replace") as file:
            new = normalise(file.read())
    flaw = f"the editor ended with {code}" if code else flaw_of(new)
    if flaw:
        notice(f"left as it was: {flaw}")
    return text if flaw else new


def _rejected(store: Store) -> set[str]:
    from mngr.tutorial.proposals import REJECT

    return {proposal.id for proposal in store.having(REJECT)}


def _conclude(args: Args, source: Source, store: Store, before: set[str]) -> None:
    from mngr.tutorial.fill import write_kept

    rejected = len(_rejected(store) - before)  # by this call
    written = write_kept(source, store)
    left = len(store.undecided())
    if args.flag("json"):
        blocks = [
            {"line": each.line, "text": each.result, "trial": each.trial.to_dict() if each.trial else None}
            for each in written
        ]
        print_json({"file": source.path, "written": blocks, "rejected": rejected, "left": left})
    else:
        print(f"{source.path}: {counted(len(written), 'block')} written, {rejected} rejected, {left} to decide")
