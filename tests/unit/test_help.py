"""Help pages: what they say about a verb, how they fit the terminal, and how they get there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli import help as pages
from mngr.errors import EXIT_CODES, UsageError
from mngr.grammar import Argument, Command, option


def verb(name: str, **declared: object) -> Command:
    return Command(**{"name": name, "summary": f"do {name}", "usage": (name,), "run": lambda _: 0, **declared})  # type: ignore[arg-type]


LAUNCH = verb(
    "launch",
    summary="start an agent",
    usage=("launch [NAME] [--mode MODE] [-- ARGS...]", "launch --again"),
    about="It gets a work dir.\nAnd a branch.\n\n  an example\n    as it stands\n\nThe end.",
    aliases=("go",),
    arguments=(
        Argument(name="NAME", help="what to call it", optional=True),
        Argument(name="TAG", help="words to find it by", optional=True, many=True),
    ),
    options=(
        option("-m, --message TEXT", "the first message"),
        option("--[no-]connect", "attach at once"),
        option("--mode MODE", "how the work dir is made", choices=["worktree", "clone"]),
        option("-l, --label K=V", "label it", many=True),
    ),
    rest="ARGS",
    examples=(("mngr launch fix -- make", "run make as an agent"),),
)
KNOWN = {
    command.name: command
    for command in (
        LAUNCH,
        verb("list", aliases=("ls",)),
        verb("snapshot create"),
        verb("snapshot destroy", aliases=("rm",)),
        verb("secret", hidden=True),
    )
}


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_page_has_everything_that_the_verb_declares() -> None:
    told = rows(pages.page(LAUNCH))
    assert told[0] == "mngr launch: start an agent"
    for row in (
        "mngr launch [NAME] [--mode MODE] [-- ARGS...]",
        "mngr launch --again",
        "mngr go",
        "It gets a work dir. And a branch.",
        "NAME what to call it",
        "TAG words to find it by; may be repeated",
        "-- ARGS all words that follow, as they are",
        "-m, --message TEXT the first message",
        "--[no-]connect attach at once",
        "--mode MODE how the work dir is made; one of worktree, clone",
        "-l, --label K=V label it; may be repeated",
        "-h, --help show this help",
        "mngr launch fix -- make",
        "run make as an agent",
    ):
        assert row in told


def test_a_page_explains_every_exit_code() -> None:
    told = rows(pages.page(LAUNCH))
    assert [row for row in told if row[:1].isdecimal()] == [f"{code} {text}" for code, text in EXIT_CODES.items()]


def test_exec_has_exit_codes_of_its_own() -> None:
    told = [row.split()[0] for row in rows(pages.page(verb("exec"))) if row[:1].isdecimal()]
    assert told == ["0-255", "2", "3", "5", "6", "124", "125"]


def test_sections_that_a_verb_does_not_need_are_left_out() -> None:
    told = pages.page(verb("plain"))
    assert "Arguments" not in told
    assert "Examples" not in told
    assert "Aliases" not in told


@pytest.mark.parametrize("margin", ["", "        "])
def test_indented_paragraphs_keep_their_lines_whatever_the_margin_of_the_text(margin: str) -> None:
    text = "First line\nsecond line.\n\n  example one\n    example two\n\nLast.".replace("\n", "\n" + margin)
    assert pages.paragraphs(text) == ["First line second line.", "  example one\n    example two", "Last."]


WORDS = st.lists(st.text(alphabet="abc-", min_size=1, max_size=12), max_size=40).map(" ".join)


@given(summary=WORDS, about=WORDS, help=WORDS, width=st.integers(40, 100), rich=st.booleans())
def test_no_line_is_wider_than_the_terminal(summary: str, about: str, help: str, width: int, rich: bool) -> None:
    command = verb("x", summary=summary, about=about, options=(option("-m, --message TEXT", help),))
    text = pages.page(command, width, rich).replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, text.splitlines())) <= width
    assert text.replace("\n", " ").split() == pages.page(command, 1000).replace("\n", " ").split()


def test_the_overview_groups_the_verbs_and_leaves_none_out() -> None:
    told = pages.overview(pages.visible(KNOWN))
    look, work, more = told.index("\nLook\n"), told.index("\nWork\n"), told.index(f"\n{pages.OTHERS}\n")
    assert look < told.index("  list ") < work
    assert work < told.index("  snapshot ") < more
    assert more < told.index("  launch ")
    assert "create, destroy" in told
    assert "(or ls)" in told


def test_hidden_verbs_are_in_no_overview() -> None:
    assert "secret" not in pages.overview(pages.visible(KNOWN))
    with pytest.raises(UsageError):
        pages.find(["secret"], pages.visible(KNOWN))


@pytest.mark.parametrize(
    ("words", "name"), [("launch", "launch"), ("go", "launch"), ("snapshot create", "snapshot create")]
)
def test_a_verb_is_found_by_its_name_and_its_aliases(words: str, name: str) -> None:
    assert pages.find(words.split(), KNOWN) == KNOWN[name]


def test_an_alias_of_a_verb_of_two_words_follows_its_first_word() -> None:
    assert pages.find(["snapshot", "rm"], KNOWN) == KNOWN["snapshot destroy"]
    with pytest.raises(UsageError):
        pages.find(["rm"], KNOWN)


def test_the_first_word_of_a_family_gives_all_its_verbs() -> None:
    found = pages.find(["snapshot"], KNOWN)
    assert isinstance(found, list)
    told = rows(pages.family_page(["snapshot"], found))
    assert "snapshot create do snapshot create" in told
    assert "snapshot destroy do snapshot destroy" in told


@pytest.mark.parametrize(
    ("typed", "meant"), [("lunch", "launch"), ("snapsot", "snapshot"), ("snapshot rn", "snapshot rm")]
)
def test_an_unknown_verb_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        pages.find(typed.split(), KNOWN)
    assert repr(typed) in raised.value.message
    assert f"did you mean {meant}?" in (raised.value.hint or "")


def test_every_name_that_a_verb_of_ours_answers_to_is_in_its_help() -> None:
    from mngr import builtin, swarm
    from mngr.registry import own_commands

    told = {name for command in own_commands().values() for name in pages.names(command)}
    assert told == {*builtin.mngr_commands(), *swarm.mngr_commands()}


def test_the_overview_has_a_group_for_every_verb_of_ours() -> None:
    from mngr.registry import own_commands

    titles = [title for title, _ in pages.groups(pages.families(pages.visible(own_commands())))]
    assert pages.OTHERS not in titles


# On a real terminal.


def on_terminal(tmp_path: Path, rows: int = 200, columns: int = 80, **env: str) -> str:
    """What `mngr help --help` writes to a terminal of that size."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(["stty", "rows", str(rows), "cols", str(columns), "-opost"], stdin=theirs, check=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "mngr", "help", "--help"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"PATH": os.environ["PATH"], "MNGR_HOME": str(tmp_path), "TERM": "xterm", **env},
        )
        os.close(theirs)
        read = b""
        try:
            while chunk := os.read(ours, 4096):
                read += chunk
        except OSError:
            pass  # Linux says EIO where others say end of file
        assert process.wait(30) == 0
        return read.decode()
    finally:
        os.close(ours)


def test_a_terminal_gets_bold_headings(tmp_path: Path) -> None:
    assert "\x1b[1mUsage\x1b[0m" in on_terminal(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_is_written_when_it_is_not_wanted(tmp_path: Path, name: str, value: str) -> None:
    told = on_terminal(tmp_path, 200, 80, **{name: value})
    assert "Usage\n" in told
    assert "\x1b" not in told


def test_a_pipe_gets_plain_text(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "MNGR_HOME": str(tmp_path), "TERM": "xterm", "PAGER": "false"}
    told = subprocess.run(
        [sys.executable, "-m", "mngr", "help", "-h"], env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("mngr help: ")
    assert "\x1b" not in told.stdout


@pytest.mark.parametrize("columns", [50, 80])
def test_the_page_is_as_wide_as_the_terminal(tmp_path: Path, columns: int) -> None:
    longest = max(map(len, on_terminal(tmp_path, columns=columns, NO_COLOR="1").splitlines()))
    assert columns - 15 < longest <= columns


def test_a_page_longer_than_the_screen_goes_through_the_pager(tmp_path: Path) -> None:
    told = on_terminal(tmp_path, rows=5, PAGER="sed 's/^/paged: /'", NO_COLOR="1")
    assert told.startswith("paged: mngr help: ")
    assert all(line.startswith("paged:") for line in told.splitlines())


def test_a_page_that_fits_does_not_go_through_the_pager(tmp_path: Path) -> None:
    assert on_terminal(tmp_path, PAGER="echo paged", NO_COLOR="1").startswith("mngr help: ")


@pytest.mark.parametrize("pager", ["", "no-such-pager-here 2>/dev/null"])
def test_without_a_working_pager_the_page_is_printed(tmp_path: Path, pager: str) -> None:
    assert on_terminal(tmp_path, rows=5, PAGER=pager, NO_COLOR="1").startswith("mngr help: ")
