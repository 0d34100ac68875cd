"""Blocks of a tutorial: where they begin and end, which paragraphs are none, and what their lines mean to a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.e2e.block import block_id
from mngr.errors import UsageError
from mngr.tutorial.blocks import Tutorial, parse, read_tutorial
from mngr.tutorial.shell import scan

TUTORIAL = """\
#!/usr/bin/env bash
# A tutorial.

########################################
# FIRST STEPS
#   with a few words about them
########################################

# make one
mngr create foo

# How do I see them all?
# And those of others?

# Ending
# --------

mngr stop foo \\
    --now
mngr destroy foo
"""


def told(tutorial: Tutorial) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in tutorial.problems]


def texts(text: str) -> list[str]:
    return [block.text for block in parse(text).blocks]


def blanks(text: str) -> list[str]:
    return [blank.text for blank in parse(text).blanks]


def test_blocks_have_their_id_section_and_lines() -> None:
    first, last = parse(TUTORIAL).blocks
    assert (first.id, first.section) == (block_id("# make one\nmngr create foo"), "FIRST STEPS")
    assert (first.line, first.end, first.command) == (9, 10, "mngr create foo")
    assert (last.section, last.line, last.end) == ("Ending", 18, 20)
    assert last.text == "mngr stop foo \\\n    --now\nmngr destroy foo"


def test_a_comment_without_a_command_is_a_blank_unless_it_is_a_banner_or_the_shebang() -> None:
    (blank,) = parse(TUTORIAL).blanks
    assert (blank.text, blank.section) == ("# How do I see them all?\n# And those of others?", "FIRST STEPS")
    assert (blank.line, blank.end) == (12, 13)


def test_the_id_is_of_the_words_and_not_of_their_place() -> None:
    (plain,) = parse("mngr list\n  --all").blocks
    (other,) = parse("\n\n\t\n    mngr list  \n      --all\t\r\n").blocks
    assert other.id == plain.id
    assert (other.line, other.end) == (4, 5)
    assert parse("mngr list\n --all").blocks[0].id != plain.id


def test_windows_lines_a_byte_order_mark_and_no_last_newline_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tutorial.sh"
    path.write_bytes(b"\xef\xbb\xbf" + TUTORIAL.rstrip("\n").replace("\n", "\r\n").encode())
    read, plain = read_tutorial(str(path)), parse(TUTORIAL)
    assert (read.blocks, read.blanks, read.problems) == (plain.blocks, plain.blanks, [])
    assert parse("cat <<EOF | cat\r\n\r\nEOF\r\n").problems[0].message.startswith("a blank line in the heredoc")


@pytest.mark.parametrize(
    "banner",
    [
        "########\n# Title\n########",
        "# ========\n# Title\n# ========",
        "# Title\n# --------",
        "#========#\n# Title\n#========#",
        "########\n#\n# Title\n#\n# what it is about\n########",
        "# ---------- Title ----------",
        "## Title ########",
        "# \N{BOX DRAWINGS LIGHT HORIZONTAL}" + "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 9 + "\n# Title\n# ________",
        "#!/bin/sh\n########\n# Title\n########",
    ],
)
def test_a_banner_is_a_title_with_a_rule_around_or_under_it(banner: str) -> None:
    tutorial = parse(f"{banner}\n\nmngr list\n")
    assert ([block.section for block in tutorial.blocks], tutorial.blanks) == (["Title"], [])


@pytest.mark.parametrize(
    "comment", ["# -------\n# Title\n# -------", "# ----------\n# a rule above alone", "# ab--------cd", "# Title"]
)
def test_other_comments_are_no_banner(comment: str) -> None:
    tutorial = parse(f"{comment}\n\nmngr list\n")
    assert ([block.section for block in tutorial.blocks], blanks(comment)) == ([""], [comment])


def test_rules_and_directives_alone_ask_for_no_command() -> None:
    assert blanks("########\n\n#\n\n# shellcheck disable=SC2034\n\n# ======== #\n") == []
    assert blanks("\n#!/bin/sh\n") == ["#!/bin/sh"]  # not on the first line, it is a comment as any other


def test_a_banner_right_above_a_command_begins_a_section_and_belongs_to_the_block() -> None:
    (block,) = parse("# Title\n# --------\nmngr list\n").blocks
    assert (block.section, block.text) == ("Title", "# Title\n# --------\nmngr list")


def test_a_blank_line_in_a_heredoc_splits_its_block_and_is_told() -> None:
    tutorial = parse("mngr message foo <<EOF\none\n  \n# two\n########\n\nEOF\nmngr list\n")
    assert [block.line for block in tutorial.blocks] == [1, 4, 7]  # what looks like a comment there is text
    assert (tutorial.blanks, {block.section for block in tutorial.blocks}) == ([], {""})
    message = "a blank line in the heredoc of line 1 splits its block"
    assert told(tutorial) == [(3, message), (6, message)]


def test_a_heredoc_without_an_end_hides_nothing_of_what_follows() -> None:
    tutorial = parse("cat <<EOF\n\n# Title\n# --------\n\nmngr list\n")
    assert told(tutorial) == [(1, "the heredoc has no end: EOF")]
    assert [(block.line, block.section) for block in tutorial.blocks] == [(1, ""), (6, "Title")]


def test_an_open_quote_is_told_and_spoils_its_own_block_alone() -> None:
    tutorial = parse("echo don't\n\n# say it\n\necho 'a\nb' \"it's\"\n\necho `date\n\ncat <<EOF\n\nEOF\n")
    assert [line for line, _ in told(tutorial)] == [1, 8, 11]
    assert len(tutorial.blanks) == 1


@pytest.mark.parametrize(
    "script",
    [
        "cat <<EOF\n{}\nEOF\necho after",
        "cat <<'E F' <<-\"X\"; cat <<\\Y\n{}\nE F\nX\n\tX\nY\necho after",
        "cat <<-EOF\n{}\n \tEOF\n\t\tEOF\necho after",
        "cat << EOF | tr a b; cat <<< '<<X' \\\n  && cat <<EOF\nEOF\n{}\nEOF\necho after",
        "cat <<EOF\n{}\nlonger \\\nEOF\nEOF\necho after",
        "cat <<'EOF'\n{}\n$( `\nliteral \\\nEOF\necho after",
        "cat <<<EOF\necho after",
        "echo '<<A' \"<<B\" \\<\\<C $'it\\'s <<D' # <<E it's\necho after",
        "echo $(( 1 << 2 )) $(((1) << (2)))\n((x = 1 << 2))\necho after",
        'x="$(cat <<EOF\nit\'s {}\nEOF\n)"; echo "${{x:-\'it <<Y\'}}" ${{#x}} $# ${{x#a}}\necho after',
        "echo `cat <<EOF\n{}\nEOF\n`\necho after",
        "case a in a) cat <<EOF ;; esac\n{}\nEOF\necho after",
        "(cat <<A; cat <<B)\n{}\nA\nb\nB\necho after",
        "cat <<E'O'F\n{}\nEOF\necho after",
        "echo a#b <<EOF#c\n{}\nEOF#c\necho after",
        "cat <<EOF \\\n  | cat 'a\nb'\n{}\nEOF\necho after",
        'echo "a\n<<EOF" "\\" <<EOF"\necho after',
        "echo \\\n# <<EOF\necho after",
        "cat <<-EOF\n\techo after",
    ],
)
def test_heredocs_end_where_bash_ends_them(script: str) -> None:
    script = script.format("don't \"\n( { # <<Z")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=10)
    ran = "after" in done.stdout.split("\n")
    lines = script.split("\n")
    found = scan(lines)
    ended = all(doc.end is not None and doc.end < len(lines) - 1 for doc in found.heredocs)
    assert (ended, found.open_quotes) == (ran, []), done


def test_where_the_word_is_not_quoted_a_backslash_joins_the_last_line_with_it() -> None:
    ends = [scan(f"cat <<{word}\nlonger \\\nEOF\nEOF\n".split("\n")).heredocs[0].end for word in ("EOF", "'EOF'")]
    assert ends == [3, 2]


@given(st.text(alphabet="ab #<-'\"`\\$(){}\n\t|;E", max_size=60))
def test_whatever_the_text_every_line_with_words_is_in_one_paragraph(text: str) -> None:
    tutorial = parse(f"mngr\n{text}")
    spans = [(block.line, block.end) for block in tutorial.blocks]
    spans += [(blank.line, blank.end) for blank in tutorial.blanks]
    lines = f"mngr\n{text}".split("\n")
    inside = [number for line, end in spans for number in range(line, end + 1)]
    assert len(inside) == len(set(inside))
    commands = [number for number, line in enumerate(lines, 1) if line.strip() and not line.strip().startswith("#")]
    assert set(commands) <= set(inside)
    assert all(lines[number - 1].strip() for number in inside)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"a\0b", "this is no text but a binary file"), (b"mngr\n\xff\n", "2: not valid UTF-8"), (None, "No such file")],
)
def test_what_is_no_text_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None, what: str) -> None:
    path = tmp_path / "tutorial.sh"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=what):
        read_tutorial(str(path))
    with pytest.raises(UsageError, match="Is a directory"):
        read_tutorial(str(tmp_path))


def test_a_file_without_words_is_a_tutorial_without_blocks() -> None:
    for text in ("", "\n \n", "#!/bin/sh"):
        assert parse(text, "x") == Tutorial(path="x", blocks=[], blanks=[], problems=[])
