"""tutorial blocks, check and confusing, as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.agents import directory, make
from tests.home import Home, Mngr

TUTORIAL = """\
#!/usr/bin/env bash

########################################
# FIRST STEPS
########################################

# make one
mngr create foo

# How do I see them all?

mngr stop foo
"""
TESTS = '''\
def test_create(e2e):
    e2e.write_tutorial_block("""
        # make one
        mngr create foo
    """)


class TestStop:
    def test_stop(self, e2e):
        e2e.write_tutorial_block("mngr stop foo")
'''


@pytest.fixture
def project(home: Home) -> Path:
    """Where a tutorial and its tests are in sync; `mngr` runs in it."""
    top = home.root / "project"
    (top / "tests").mkdir(parents=True)
    (top / "tutorial.sh").write_text(TUTORIAL)
    (top / "tests" / "test_it.py").write_text(TESTS)
    home.cwd = top
    return top


def test_blocks_are_listed_with_their_sections_and_blanks(mngr: Mngr, project: Path) -> None:
    assert mngr.ok("tutorial", "blocks", "tutorial.sh") == (
        "LINE  ID        SECTION      COMMAND\n"
        "7     76d8982c  FIRST STEPS  mngr create foo\n"
        "10    -         FIRST STEPS  # How do I see them all?\n"
        "12    0c8cc3d7  FIRST STEPS  mngr stop foo\n"
    )


def test_blocks_for_scripts(mngr: Mngr, project: Path) -> None:
    (project / "tutorial.sh").write_text(f"{TUTORIAL}\ncat <<EOF\n\nEOF\n")
    told = mngr.json("tutorial", "blocks", "tutorial.sh")
    assert told["file"] == "tutorial.sh"
    assert told["blocks"][0] == {
        "id": "76d8982c",
        "text": "# make one\nmngr create foo",
        "section": "FIRST STEPS",
        "line": 7,
        "end": 8,
    }
    assert told["blanks"] == [
        {"text": "# How do I see them all?", "section": "FIRST STEPS", "line": 10, "end": 10},
    ]
    message = "a blank line in the heredoc of line 14 splits its block"
    assert told["problems"] == [{"file": "tutorial.sh", "line": 15, "message": message}]
    lines = [json.loads(line) for line in mngr.ok("tutorial", "blocks", "tutorial.sh", "--jsonl").splitlines()]
    assert [(line["kind"], line["line"]) for line in lines] == [
        ("block", 7),
        ("blank", 10),
        ("block", 12),
        ("block", 14),
        ("problem", 15),
        ("block", 16),
    ]
    assert mngr("tutorial", "blocks", "tutorial.sh").err == f"mngr: tutorial.sh:15: {message}\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "tutorial.sh: No such file or directory"),
        (b"a\0", "tutorial.sh: this is no text but a binary file"),
        (b"\xff", "tutorial.sh:1: not valid UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_one_line(mngr: Mngr, project: Path, content: bytes | None, told: str) -> None:
    (project / "tutorial.sh").unlink()
    if content is not None:
        (project / "tutorial.sh").write_bytes(content)
    for words in (["blocks", "tutorial.sh"], ["check", "tutorial.sh", "tests"]):
        assert mngr("tutorial", *words) == (2, "", f"mngr: {told}\n")
    assert mngr("tutorial", "blocks", "tests") == (2, "", "mngr: tests: Is a directory\n")


def test_an_empty_file_has_no_blocks(mngr: Mngr, project: Path) -> None:
    (project / "tutorial.sh").write_text("")
    assert mngr("tutorial", "blocks", "tutorial.sh") == (0, "no blocks in tutorial.sh\n", "")
    assert mngr("tutorial", "check", "tutorial.sh", "tests").out.endswith("0 blocks, 2 citations: 2 gone\n")


def test_check_is_content_when_both_sides_agree(mngr: Mngr, project: Path) -> None:
    summary = "2 blocks, 2 citations: in sync, 1 blank to fill\n"
    assert mngr("tutorial", "check", "tutorial.sh", "tests") == (0, summary, "")
    told = mngr.json("tutorial", "check", "tutorial.sh", "tests/test_it.py")
    assert (told["in_sync"], told["blocks"], told["blanks"], told["citations"]) == (True, 2, 1, 2)
    assert [(id, cited[0]["test"]) for id, cited in told["covered"].items()] == [
        ("76d8982c", "tests/test_it.py::test_create"),
        ("0c8cc3d7", "tests/test_it.py::TestStop::test_stop"),
    ]


def test_check_tells_all_that_is_out_of_sync_like_a_compiler(mngr: Mngr, project: Path) -> None:
    edited = TUTORIAL.replace("create foo", "create foo \\\n    --now")
    (project / "tutorial.sh").write_text(f"{edited}\n# see\nmngr list\n\n# see\nmngr list\n")
    lost = 'def test_lost(e2e):\n    e2e.write_tutorial_block("# now\\ngit push --force")\n'
    (project / "tests" / "test_more.py").write_text(lost)
    (project / "tests" / "test_wrong.py").write_text("def test_wrong(:\n    e2e.write_tutorial_block('x')\n")
    result = mngr("tutorial", "check", "tutorial.sh", "tests")
    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "tests/test_wrong.py:1: this is no Python: invalid syntax\n"
        "tutorial.sh:15: not cited by any test: mngr list\n"
        "tutorial.sh:18: the same block as on line 15: mngr list\n"
        "tests/test_more.py:2: test_lost cites a block that is gone: git push --force\n"
        "tests/test_it.py:2: test_create cites tutorial.sh:7 as it was before an edit\n"
        "    --- cited\n"
        "    +++ tutorial.sh:7\n"
        "    @@ -1,2 +1,3 @@\n"
        "     # make one\n"
        "    -mngr create foo\n"
        "    +mngr create foo \\\n"
        "    +    --now\n"
        "4 blocks, 3 citations: 1 uncited, 1 gone, 1 edited, 1 duplicate, 1 problem, 1 blank to fill\n"
    )
    told = mngr("tutorial", "check", "tutorial.sh", "tests", "--json")
    assert told.code == 1
    ledger = json.loads(told.out)
    assert [(edit["citation"]["line"], edit["block"]["line"]) for edit in ledger["edited"]] == [(2, 7)]
    assert [[block["line"] for block in blocks] for blocks in ledger["duplicates"]] == [[15, 18]]
    assert (len(ledger["uncited"]), len(ledger["gone"]), len(ledger["problems"])) == (1, 1, 1)


def test_lines_that_python_joined_are_explained(mngr: Mngr, project: Path) -> None:
    (project / "tutorial.sh").write_text("mngr create foo \\\n    --now\n")
    cite = 'def test_x(e2e):\n    e2e.write_tutorial_block({}"""\n    mngr create foo \\\n        --now\n    """)\n'
    test = project / "tests" / "test_it.py"
    test.write_text(cite.format(""))
    assert 'r"""...""" keeps a backslash at the end' in mngr("tutorial", "check", "tutorial.sh", "tests").out
    (project / "tutorial.sh").write_text("mngr create  foo --now\n")
    assert "keeps a backslash" not in mngr("tutorial", "check", "tutorial.sh", "tests").out
    (project / "tutorial.sh").write_text("mngr create foo \\\n    --now\n")
    test.write_text(cite.format("r"))
    mngr.ok("tutorial", "check", "tutorial.sh", "tests")


def test_check_needs_tests_that_are_there(mngr: Mngr, project: Path) -> None:
    assert mngr("tutorial", "check", "tutorial.sh").code == 2
    assert mngr("tutorial", "check", "tutorial.sh", "nowhere") == (2, "", "mngr: nowhere: No such file or directory\n")


# Confusion.


def ran(command: str, said: str, time: str = "2026-11-15T13:19:06.051Z") -> str:
    """Two lines, as Claude Code writes a failed command."""
    call = {"type": "tool_use", "id": command, "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": command, "content": said, "is_error": True}
    lines = [
        {"type": "assistant", "timestamp": time, "message": {"id": command, "model": "m", "content": [call]}},
        {"type": "user", "timestamp": time, "message": {"content": [result]}},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def ada(mngr: Mngr, home: Home) -> Path:
    """The log of an agent of type claude, whose program only sleeps."""
    program = home.root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" != --version ] || { echo "2.1.197 (Claude Code)"; exit; }\nexec sleep 1000\n')
    program.chmod(0o755)
    home.env.update(PATH=f"{program.parent}:{home.env['PATH']}", ANTHROPIC_API_KEY="sk-ant-none")
    mngr.ok("create", "ada", "claude", "--mode", "none")
    log = directory(mngr, "ada") / "log.jsonl"
    (log.parent / "conversations").write_text(f"{log}\n")
    return log


def test_what_agents_got_wrong_is_ranked_with_what_was_kept(mngr: Mngr, home: Home, ada: Path) -> None:
    make(mngr, "plain", "--mode", "none")  # keeps no log, and is passed over
    wrong = mngr("list", "--jason")
    ada.write_text(
        ran("cd x && mngr list --jason", f"Exit code 2\n{wrong.err}")
        + ran("mngr status 2>&1 | head", mngr("status").err, "2026-11-15T14:00:00Z")
        + ran("gh pr creat", "unknown command 'creat'")
    )
    kept = {"time": 1e9, "kind": "rejected", "subcommand": "create", "source": "tutorial.sh"}
    kept.update(words="mngr create a\nmngr list", detail="too much\nat once")
    (home.mngr_home / "confusion.jsonl").write_text(json.dumps(kept) + "\nhalf a li")
    result = mngr("tutorial", "confusing")
    complaint = wrong.err.split("\n")[0]
    unknown = mngr("status").err.split("\n")[0]
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "mngr create: 3 (1 rejected)\n"
        "    mngr create a\n"
        "    mngr list\n"
        "        rejected: too much at once (tutorial.sh, 2001-09-09 01:46)\n"
        "mngr list: 2 (1 unknown-flag)\n"
        "    mngr list --jason\n"
        f"        unknown-flag: {complaint} (ada, 2026-11-15 13:19)\n"
        "mngr status: 2 (1 usage-error)\n"
        "    mngr status\n"
        f"        usage-error: {unknown} (ada, 2026-11-15 14:00)\n"
    )
    told = mngr.json("tutorial", "confusing", "--since", "2026-11-15T13:30:00Z")
    assert [(each["subcommand"], each["weight"], each["counts"]) for each in told["subcommands"]] == [
        ("status", 2, {"usage-error": 1})
    ]
    told = mngr.json("tutorial", "confusing", "ada", "--program", "gh")
    assert [(each["subcommand"], each["examples"][0]["words"]) for each in told["subcommands"]] == [
        ("pr", "gh pr creat")
    ]
    only = mngr("tutorial", "confusing", "plain")
    assert only == (
        0,
        "nothing about mngr has confused anybody\n",
        "mngr: plain is a command: it keeps no transcript\n",
    )


def test_where_nothing_was_ever_done_nothing_confused(mngr: Mngr, home: Home) -> None:
    shutil.rmtree(home.mngr_home)
    assert mngr("tutorial", "confusing") == (0, "nothing about mngr has confused anybody\n", "")
    assert mngr("tutorial", "confusing", "nobody").code == 3
