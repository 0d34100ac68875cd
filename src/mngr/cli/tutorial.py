"""tutorial blocks, check: the two sides of a tutorial, and whether they agree. Findings are printed as a compiler
prints them, so that editors can jump to them."""

from __future__ import annotations

from itertools import groupby

from mngr.cli.output import JSON_OPTION, JSON_OPTIONS, clean, notice, print_json, print_table
from mngr.fleet.outcome import counted
from mngr.grammar import Argument, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.grammar import Args
    from mngr.tutorial.blocks import Blank, Block, Problem, Tutorial
    from mngr.tutorial.check import Edit, Ledger
    from mngr.tutorial.citations import Citation

FILE = Argument(name="FILE", help="the tutorial: a shell script in blocks, or a README.md", completes="files")
TESTS = Argument(name="TESTS", help="files of tests, or directories with test_*.py and *_test.py", completes="files")


@command(
    "tutorial blocks",
    summary="show the blocks of a tutorial",
    usage=["tutorial blocks FILE [--json | --jsonl]"],
    about="""A block is consecutive lines that are not empty, with a command among them. Its id comes from its words
alone, whatever its indentation and its place in the file. Sections begin at banners: comments with a rule of at least
8 equal characters around or under their title. Other paragraphs of comments alone are blanks, which wait for a command
and are shown without an id; the shebang, rules and shellcheck directives are passed over.

What a block cannot hold is told on standard error: a heredoc with a blank line in it, which would be two blocks, one
without an end, and a quote that is not closed.

--json prints an object with `file`, `blocks` (each with `id`, `text`, `section`, and its first and last line, `line`
and `end`), `blanks` (the same without `id`) and `problems` (`file`, `line`, `message`). --jsonl prints them in the
order of the file, each with its `kind`: block, blank or problem.""",
    arguments=[FILE],
    options=[*JSON_OPTIONS],
    examples=[
        ("mngr tutorial blocks tutorial.sh", "one line for each"),
        ("mngr tutorial blocks tutorial.sh --jsonl | grep '\"blank\"'", "what is still to be written"),
    ],
)
def blocks(args: Args) -> int:
    from mngr.tutorial.blocks import read_tutorial

    tutorial = read_tutorial(args.words[0])
    found = {"block": _dicts(tutorial.blocks), "blank": _dicts(tutorial.blanks), "problem": _dicts(tutorial.problems)}
    if args.flag("json"):
        print_json({"file": tutorial.path, **{f"{kind}s": items for kind, items in found.items()}})
    elif args.flag("jsonl"):
        lines = [{"kind": kind, **item} for kind, items in found.items() for item in items]
        for line in sorted(lines, key=lambda line: line["line"]):
            print_json(line, indent=None)
    else:
        _list(tutorial)
    return 0


@command(
    "tutorial check",
    summary="compare a tutorial with the tests that cite its blocks",
    usage=["tutorial check FILE TESTS... [--json]"],
    about="""A test cites a block with e2e.write_tutorial_block("..."); a block may have many tests. The tests are read,
not run. Told are blocks that no test cites, citations of blocks that are gone, blocks that were edited since they were
cited (the most similar one that nobody cites, if they are alike by 0.6 or more) with the difference, blocks that stand
in the file twice, and what cannot be read: a heredoc with a blank line, a test that is no Python, a citation outside of
a test or whose text is made only when it runs. Any of them is exit code 1. Blanks are counted, and leave it in sync.

In directories all Python files are looked at, without hidden directories and virtual environments. A citation in one
that pytest does not take for tests (neither test_*.py nor *_test.py) is told as a problem. A text is compared without
its indentation and trailing blanks. It may be a literal, literals added up, or a constant of the module.

--json prints an object with `file`, `in_sync`, the numbers of `blocks`, `blanks` and `citations`, and the lists
`uncited` (blocks as in mngr tutorial blocks), `gone` (citations: `file`, `line`, `test`, `text`, `id`), `edited`
(`citation`, `block`, `similarity`, `diff`), `duplicates` (lists of blocks) and `problems` (`file`, `line`, `message`);
`covered` has the citations of each block under its id.""",
    arguments=[FILE, TESTS.replace(many=True)],
    options=[JSON_OPTION],
    examples=[
        ("mngr tutorial check tutorial.sh tests/", "are they in sync?"),
        ("mngr tutorial check tutorial.sh tests/ --json | jq '.uncited[].id'", "for a script"),
    ],
)
def check(args: Args) -> int:
    from mngr.tutorial.blocks import read_tutorial
    from mngr.tutorial.check import check as compare
    from mngr.tutorial.citations import find_citations

    ledger = compare(read_tutorial(args.words[0]), find_citations(args.words[1:]))
    if args.flag("json"):
        print_json(_plain(ledger))
    else:
        _report(ledger)
    return 0 if ledger.in_sync else 1


def _list(tutorial: Tutorial) -> None:
    rows = [(block.line, block.id, block.section, block.command) for block in tutorial.blocks]
    rows += [(blank.line, "-", blank.section, blank.text.split("\n")[0]) for blank in tutorial.blanks]
    if rows:
        print_table([[str(line), *rest] for line, *rest in sorted(rows)], ["LINE", "ID", "SECTION", "COMMAND"])
    else:
        print(f"no blocks in {clean(tutorial.path)}")
    for problem in tutorial.problems:
        notice(clean(f"{problem.file}:{problem.line}: {problem.message}"))


def _report(ledger: Ledger) -> None:
    path = ledger.tutorial.path
    for problem in ledger.problems:
        _say(problem.file, problem.line, problem.message)
    for block in ledger.uncited:
        _say(path, block.line, f"not cited by any test: {block.command}")
    for first, *others in ledger.duplicates:
        for block in others:
            _say(path, block.line, f"the same block as on line {first.line}: {block.command}")
    for citation in ledger.gone:
        _say(citation.file, citation.line, f"{_name(citation)} cites a block that is gone: {_command(citation)}")
    _report_edits(ledger)
    print(_summary(ledger))


def _report_edits(ledger: Ledger) -> None:
    """The tests of a block follow each other, and share the difference."""
    for diff, edits in groupby(ledger.edited, key=lambda edit: edit.diff):
        for edit in edits:
            citation, place = edit.citation, f"{ledger.tutorial.path}:{edit.block.line}"
            _say(citation.file, citation.line, f"{_name(citation)} cites {place} as it was before an edit")
        for line in diff.split("\n"):
            print(f"    {clean(line.expandtabs())}")
        if _is_joined(edit):
            print('    Python has joined its lines: r"""...""" keeps a backslash at the end of one')


def _is_joined(edit: Edit) -> bool:
    return "\\\n" in edit.block.text and edit.citation.text.split() == edit.block.text.replace("\\\n", " ").split()


def _say(file: str, line: int, message: str) -> None:
    print(clean(f"{file}:{line}: {message}"))


def _name(citation: Citation) -> str:
    return citation.test.partition("::")[2]


def _command(citation: Citation) -> str:
    from mngr.tutorial.blocks import first_command

    return first_command(citation.text)


def _summary(ledger: Ledger) -> str:
    edited = len({edit.block.id for edit in ledger.edited})
    counts = {
        "uncited": len(ledger.uncited),
        "gone": len(ledger.gone),
        "edited": edited,
        "duplicate": sum(len(blocks) - 1 for blocks in ledger.duplicates),
    }
    wrong = [f"{number} {what}" for what, number in counts.items() if number]
    if ledger.problems:
        wrong.append(counted(len(ledger.problems), "problem"))
    if ledger.tutorial.blanks:
        wrong.append(f"{counted(len(ledger.tutorial.blanks), 'blank')} to fill")
    have = f"{counted(len(ledger.tutorial.blocks), 'block')}, {counted(len(ledger.citations), 'citation')}"
    verdict = ["in sync"] if ledger.in_sync else []
    return f"{have}: {', '.join(verdict + wrong)}"


def _plain(ledger: Ledger) -> dict[str, object]:
    return {
        "file": ledger.tutorial.path,
        "in_sync": ledger.in_sync,
        "blocks": len(ledger.tutorial.blocks),
        "blanks": len(ledger.tutorial.blanks),
        "citations": len(ledger.citations),
        "uncited": _dicts(ledger.uncited),
        "gone": [_cited(citation) for citation in ledger.gone],
        "edited": [
            {**edit.to_dict(), "citation": _cited(edit.citation), "block": edit.block.to_dict()}
            for edit in ledger.edited
        ],
        "duplicates": [_dicts(blocks) for blocks in ledger.duplicates],
        "covered": {id: [_cited(citation) for citation in found] for id, found in ledger.covered.items()},
        "problems": _dicts(ledger.problems),
    }


def _dicts(records: list[Block] | list[Blank] | list[Problem]) -> list[dict[str, Any]]:
    return [record.to_dict() for record in records]


def _cited(citation: Citation) -> dict[str, object]:
    return {**citation.to_dict(), "id": citation.id}
