"""Signs of confusion: the calls that a shell line makes, what transcripts tell of them, what is kept, the ranking."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.log import Entry
from mngr.cli.main import main
from mngr.tutorial.calls import calls
from mngr.tutorial.confusion import FILE, Signal, from_entries, kept, rank, record, subcommand_of

# Calls.


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("mngr list", ["list"]),
        ("cd x && A=b C='d e' mngr create foo -- make; mngr ls|grep mngr", ["create foo -- make", "ls"]),
        ("env -i X=1 timeout 10s /opt/bin/mngr wait foo >log 2>&1", ["wait foo"]),
        ("bash -lc 'mngr message a \"b c\" && ls' && mngr stop a", ["message a b c", "stop a"]),
        ("x=$(mngr list --json)", ["list --json"]),
        ("mngr message foo <<EOF\nmngr create\nEOF\nmngr stop foo", ["message foo", "stop foo"]),
        ("mngr stop a # it is mngr stop b\nmngr stop c", ["stop a", "stop c"]),
        ("mngr create \\\n  --foo\nif ! mngr wait x; then mngr start x; fi", ["create --foo", "wait x", "start x"]),
        ("for a in 1 2; do mngr stop $a; done", ["stop $a"]),
        ("python3 -m mngr list", ["list"]),
        ("echo don't; mngr list --bad", ["list --bad"]),
        ("mngr", [""]),
        ("echo mngr list && cat mngr; ls src/mngr/ mngr2", []),
        ("mngr2 list", []),
    ],
)
def test_the_calls_of_a_program_are_found_in_a_line_of_shell(line: str, made: list[str]) -> None:
    assert [" ".join(call.words) for call in calls(line, "mngr")] == made


def test_the_last_command_has_the_exit_code_of_the_line() -> None:
    lines = ["mngr a; mngr b", "mngr a | cat", "bash -c 'mngr a; ls'", "bash -c 'mngr a'; ls", "bash -c 'ls; mngr a'"]
    assert [[call.last for call in calls(line, "mngr")] for line in lines] == [
        [False, True],
        [False],
        [False],
        [False],
        [True],
    ]


@given(st.text("mngr '\"\\$(){}<>&|;#\n-cEOF", max_size=60))
def test_no_line_is_too_strange(line: str) -> None:
    calls(f"mngr x; bash -c {line}", "mngr")


# Transcripts.


def ran(line: object, said: str, *, failed: bool = False, key: str = "command", tool: str = "Bash") -> list[Entry]:
    """A command that an agent has run, and what came of it."""
    id = f"{line}{said}"
    return [
        Entry(kind="tool_call", role="assistant", tool=tool, call=id, input={key: line}, time=1.0),
        Entry(kind="tool_result", role="tool", tool=tool, call=id, text=said, failed=failed, time=2.0),
    ]


def signs(*entries: list[Entry], program: str = "mngr") -> list[tuple[str, str, str]]:
    found = from_entries([entry for pair in entries for entry in pair], program, "ada")
    return [(signal.kind, signal.subcommand, signal.detail) for signal in found]


@pytest.mark.parametrize(
    ("words", "kind", "subcommand"),
    [
        ("create foo --nowait", "unknown-flag", "create"),
        ("ls --jason=1", "unknown-flag", "list"),
        ("snapshot create --fast", "unknown-flag", "snapshot create"),
        ("status", "usage-error", "status"),
        ("snapshot foo", "usage-error", "snapshot"),
        ("snapshot", "usage-error", "snapshot"),
        ("rename foo", "usage-error", "rename"),
        ("rename a b c", "usage-error", "rename"),
        ("list --json=yes", "usage-error", "list"),
        ("create -m", "usage-error", "create"),
    ],
)
def test_what_mngr_itself_calls_wrong_is_a_sign_with_and_without_its_exit_code(
    words: str, kind: str, subcommand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    complaint = said.split("\n")[0]
    assert signs(ran(f"mngr {words}", f"Exit code 2\n{said}", failed=True)) == [(kind, subcommand, complaint)]
    assert signs(ran(f"mngr {words} | head", said)) == [(kind, subcommand, complaint)]


def test_other_programs_are_understood_by_what_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="tool")
    verbs = parser.add_subparsers(required=True).add_parser("pr").add_subparsers(required=True)
    verbs.add_parser("create").add_argument("--title", choices=["a"])
    said = {}
    for words in ("pr create --titel=x", "pr create --title x", "pr remove"):
        with pytest.raises(SystemExit):
            parser.parse_args(words.split())
        said[words] = f"Exit code 2\n{capsys.readouterr().err}"
    found = signs(*(ran(f"tool {words}", text, failed=True) for words, text in said.items()), program="tool")
    assert [(kind, subcommand) for kind, subcommand, _ in found] == [
        ("unknown-flag", "pr"),
        ("usage-error", "pr create"),
        ("usage-error", "pr"),
    ]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    git = subprocess.run(["git", "-C", str(tmp_path), "status", "--shrt"], capture_output=True, text=True).stderr
    assert [sign[:2] for sign in signs(ran("git status --shrt", git), program="git")] == [("unknown-flag", "status")]
    click = "Usage: tool run [OPTIONS]\nTry 'tool run --help' for help.\n\nError: No such option: --fast"
    assert signs(ran("tool run --fast", click), program="tool") == [
        ("unknown-flag", "run", "Error: No such option: --fast")
    ]


def test_all_kinds_of_agents_are_read() -> None:
    said = "Chunk ID: d98ab8\nProcess exited with code 2\nOutput:\nmngr: --port takes a number up to 65535, not 'x'\n"
    sign = ("usage-error", "dev model-server", "mngr: --port takes a number up to 65535, not 'x'")
    line = "mngr dev model-server --port x"
    assert signs(ran(line, said, key="cmd", tool="exec_command")) == [sign]
    assert signs(ran(["bash", "-lc", line], said, tool="shell")) == [sign]
    assert signs(ran(line, "", key="file_path", tool="Read")) == []


def test_what_went_well_or_wrong_in_another_way_is_no_sign() -> None:
    told = "mngr: there is no verb 'status'\n"
    assert (
        signs(
            ran("mngr list", "no agents yet"),
            ran("mngr stop foo", "Exit code 3\nmngr: there is no agent foo", failed=True),
            ran("mngr list; ls /nowhere", "Exit code 2\nls: cannot access '/nowhere'", failed=True),
            ran("mngr transcript foo", f"Process exited with code 0\nOutput:\n{told}"),
            ran("cat log", told),
            ran("mngr create --help", "Usage\n  mngr create"),
        )
        == []
    )


def test_the_call_that_is_named_is_the_one_that_was_wrong() -> None:
    line = "mngr create a --quick; mngr list --jason; mngr statsu; mngr stop a"
    assert signs(ran(line, "mngr: list has no option --jason"))[0][:2] == ("unknown-flag", "list")
    assert signs(ran(line, "mngr: there is no verb 'statsu'"))[0][:2] == ("usage-error", "statsu")


def test_help_that_is_asked_for_again_is_a_sign() -> None:
    asked = [ran(f"mngr {words}", f"page {n}") for n, words in enumerate(["create --help", "help create", "create -h"])]
    once = [ran("mngr list -h", ""), ran("mngr exec a -- ls --help", ""), ran("mngr --help", "")]
    assert [sign[:2] for sign in signs(*asked, *once)] == [("help", "create")] * 2
    assert signs(asked[0]) + signs(asked[1]) == []  # in two conversations


def test_a_sign_says_what_was_tried_where_and_when() -> None:
    (signal,) = from_entries(ran("mngr create 'a b' --x", "mngr: create has no option --x"), "mngr", "ada")
    assert (signal.words, signal.source, signal.time) == ("mngr create 'a b' --x", "ada", 2.0)


# What is kept, and the ranking.


def test_what_is_recorded_is_kept_for_its_program(tmp_path: Path) -> None:
    home = str(tmp_path / "new")
    assert list(kept(home)) == []
    record(home, "rejected", "create", "# why\nmngr create \N{SNOWMAN}\n", "too long", "tutorial.sh")
    record(home, "usage-error", "pr", "gh pr x", "unknown", "tutorial.sh")
    with (tmp_path / "new" / FILE).open("a") as file:
        file.write('{"half": \n[]\n{"kind": "new"}\n')
    record(home, "help", "list", "mngr list", "again", "ada")
    assert [(signal.kind, signal.words) for signal in kept(home)] == [
        ("rejected", "# why\nmngr create \N{SNOWMAN}\n"),
        ("help", "mngr list"),
    ]
    assert [signal.subcommand for signal in kept(home, "gh")] == ["pr"]


def signal(kind: str, subcommand: str, detail: str = "", time: float = 0.0, source: str = "ada") -> Signal:
    return Signal(time=time, kind=kind, subcommand=subcommand, words=subcommand, detail=detail, source=source)


def test_the_most_confusing_comes_first_with_examples_of_each_complaint() -> None:
    found = [signal("help", "list", "again", n) for n in range(1, 5)]
    found += [signal("rejected", "create", "too long", 1), signal("unknown-flag", "create", "no --x", 2)]
    found += [signal("usage-error", "wait", f"complaint {n % 5}", n) for n in range(5)]
    wait, create, listing = rank(found)
    assert [(each.subcommand, each.weight) for each in (wait, create, listing)] == [
        ("wait", 10),
        ("create", 5),
        ("list", 4),
    ]
    assert create.counts == {"rejected": 1, "unknown-flag": 1}
    assert [example.detail for example in create.examples] == ["too long", "no --x"]
    assert [example.detail for example in wait.examples] == ["complaint 4", "complaint 3", "complaint 2"]
    assert [example.time for example in listing.examples] == [4]


def test_a_conversation_that_a_clone_has_too_counts_once() -> None:
    (only,) = rank([signal("help", "list", "again", 7.0), signal("help", "list", "again", 7.0, source="clone")])
    assert (only.weight, only.examples[0].source) == (1, "ada")


@pytest.mark.parametrize(
    ("line", "program", "subcommand"),
    [
        ("# see all\nmngr ls --json", "mngr", "list"),
        ("mngr snapshot create foo", "mngr", "snapshot create"),
        ("mngr --version", "mngr", "mngr"),
        ("gh pr create", "gh", "pr"),
        ("echo", "gh", ""),
    ],
)
def test_the_subcommand_of_a_block_is_that_of_its_first_call(line: str, program: str, subcommand: str) -> None:
    assert subcommand_of(line, program) == subcommand
