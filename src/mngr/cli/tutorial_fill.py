"""tutorial fill: an agent proposes, a person decides."""

from __future__ import annotations

import os
import tempfile

from mngr.cli.create import create, request
from mngr.cli.output import JSON_OPTION, colour, notice, on_terminal, print_json
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.outcome import counted
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args
    from mngr.tutorial.fill import Source
    from mngr.tutorial.proposals import Proposal, Store

_AS_CREATE = ("env", "env_file", "pass_env", "setup", "copy")
_QUESTION = "keep, edit, reject, skip or quit [k/e/r/s/q]? "


@command(
    "tutorial fill",
    summary="have an agent propose commands for the blanks of a tutorial, and decide about them",
    usage=["tutorial fill FILE [--review-file FILE | --yes] [--type TYPE] [--man DIR] [OPTIONS] [-- ARGS...]"],
    about="""A blank is a paragraph of comments alone: what to show, and no command yet. One agent reads the manual (the
pages in man/ of the repository, those of --man, else what --help says) and proposes up to three blocks for each blank.
It works in a work dir of its own, without its terminal interface if its program can do that; what it may do without
asking is for the arguments behind `--` to say. A program of type command finds its prompt in $MNGR_INPUT.

Each proposal is run once, with a new home and in a small git repository, for a minute at most. It runs as you: this
keeps accidents away, and is no jail. You see the block and what came of it, and keep it, edit it in $EDITOR, reject it
with a reason, or skip it. Rejections, and blocks that fail with a usage error, are kept for mngr tutorial confusing.

With --review-file the same is done in an editor. If the file is not there it is written, with a line for each proposal
in which skip is to be changed; if it is there, it is carried out and removed. --yes keeps the first proposal of each
blank that succeeds.

What you kept is written into the tutorial at the end, below its comment or in its place, if the file has not changed
meanwhile. What is not decided is kept in MNGR_HOME and offered the next time.""",
    arguments=[Argument(name="FILE", help="the tutorial", completes="files")],
    rest="ARGS",
    options=[
        option(
            "--review-file FILE", "decide in this file: written if it is not there, else carried out", completes="files"
        ),
        option("-y, --yes", "keep what succeeds, and ask nothing"),
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
    if review and os.path.exists(review):
        return _carry_out(args, fleet, source, store, review)
    if blanks := unanswered(source, store):
        wanted = request(args, fleet).replace(address=None, type=args.text("type"))
        ask(fleet, wanted, file, store, blanks, manual, notice, args.number("timeout"))
    if review:
        return _write_review(args, fleet, store, review)
    try:
        if args.flag("yes"):
            _keep_what_succeeds(fleet, store)
        else:
            _ask_person(fleet, source, store)
    finally:  # also of Ctrl-C: what was decided is done
        _conclude(args, source, store)
    return 0


def _write_review(args: Args, fleet: Fleet, store: Store, review: str) -> int:
    from mngr.process import quote
    from mngr.tutorial.fill import tried
    from mngr.tutorial.review import write_review

    shown = [tried(fleet.home, store, proposal) for proposal in store.undecided()]
    if not shown:
        notice("there is nothing to decide")
        return 0
    again = " ".join(["mngr tutorial fill", quote(args.words[0]), "--review-file", quote(review)])
    with open(review, "x", encoding="utf-8") as file:
        file.write(write_review(args.words[0], again, shown))
    if args.flag("json"):
        print_json({"file": args.words[0], "review_file": review, "proposals": len(shown)})
    else:
        print(f"{review}: {counted(len(shown), 'proposal')} to decide about; then: {again}")
    return 0


def _carry_out(args: Args, fleet: Fleet, source: Source, store: Store, review: str) -> int:
    from mngr.tutorial.blocks import read_text
    from mngr.tutorial.fill import edited, keep, reject, tried
    from mngr.tutorial.proposals import KEEP, REJECT
    from mngr.tutorial.review import read_review

    known = {proposal.id: proposal for proposal in store.proposals}
    for decision in read_review(read_text(review), review):
        proposal = known.get(decision.id)
        if proposal is None:
            notice(f"{review}:{decision.line}: {decision.id} is no proposal for {args.words[0]} any more")
        elif decision.decision == REJECT:
            reject(fleet.home, store, proposal, decision.reason)
        elif decision.decision == KEEP:
            new = tried(fleet.home, store, edited(proposal, decision.block))
            if new is not proposal and new.trial:
                notice(f"{review}:{decision.line}: run as it is now: exit code {new.trial.code}")
            keep(store, new)
    _conclude(args, source, store)
    os.unlink(review)
    return 0


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
    """False: the person wants no more of this."""
    from mngr.tutorial.fill import edited, keep, reject

    place = f"{source.path}:{proposal.line}" + (f"  {proposal.section}" if proposal.section else "")
    print(f"\n{colour(place, '1')}  ({left} to go)")
    while True:
        proposal = _show(fleet, store, proposal)
        try:
            answer = input(_QUESTION).strip().lower()[:1]
            if answer == "k":
                keep(store, proposal)
            elif answer == "r":
                reason = input("why? ").strip()
                if not reason:
                    continue
                reject(fleet.home, store, proposal, reason)
            elif answer == "e":
                proposal = edited(proposal, _in_editor(proposal.result))
                continue
            elif answer not in ("s", "q"):
                continue
        except EOFError:
            print()
            return False
        return answer != "q"


def _show(fleet: Fleet, store: Store, proposal: Proposal) -> Proposal:
    from mngr.tutorial.fill import tried
    from mngr.tutorial.review import told

    print("\n" + "\n".join(f"  {line}" for line in proposal.result.split("\n")) + "\n", flush=True)
    proposal = tried(fleet.home, store, proposal)
    assert proposal.trial
    how, *lines = told(proposal.trial)
    print(colour(how, "32" if proposal.trial.ok else "31"))
    print("".join(f"  {line}\n" for line in lines))
    return proposal


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


def _conclude(args: Args, source: Source, store: Store) -> None:
    from mngr.tutorial.fill import write_kept
    from mngr.tutorial.proposals import REJECT

    rejected = len(store.having(REJECT))
    written = write_kept(source, store)
    left = len(store.undecided())
    if args.flag("json"):
        blocks = [{"line": each.line, "text": each.result} for each in written]
        print_json({"file": source.path, "written": blocks, "rejected": rejected, "left": left})
    else:
        print(f"{source.path}: {counted(len(written), 'block')} written, {rejected} rejected, {left} to decide")
