"""create: names, programs, labels, windows, messages, many at once. What agents see of the environment is in
test_create_environment.py, how work dirs are made in test_create_modes.py, failures in test_create_failures.py."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from mngr.address import is_name
from tests.agents import agent, commit, run_to_end, work_dir, worktrees
from tests.home import Home, Mngr, wait_until


def made(home: Home) -> set[str]:
    """What is in MNGR_HOME, but for what may be deleted at any time."""
    return set(os.listdir(home.mngr_home)) - {"cache"}


# Names.


def test_a_single_word_is_the_name(mngr: Mngr, repo: Path) -> None:
    mngr.ok("config", "set", "type", "command")
    assert mngr.ok("create", "foo") == "foo\n"
    assert agent(mngr, "foo")["type"] == "command"
    assert agent(mngr, "foo")["state"] in ("starting", "running")


def test_a_name_is_made_up_when_none_is_given(mngr: Mngr, repo: Path) -> None:
    names = [mngr.ok("create", *words, "--", "sleep", "100").strip() for words in ([], ["@local", "command"])]
    assert all(is_name(name) and "-" in name for name in names)
    assert sorted(mngr.ok("list", "--names").split()) == sorted(names)


def test_the_name_of_an_agent_type_is_refused_as_a_name(mngr: Mngr, repo: Path) -> None:
    result = mngr("create", "command")
    assert result.code == 2
    assert result.err.splitlines() == [
        "mngr: command is the name of an agent type",
        "hint: a single word is the agent's name: mngr create NAME command",
    ]
    assert mngr.json("list") == []


@pytest.mark.parametrize(
    "name",
    ["", "Foo", "two words", "a/b", "höhe", "-", "_x", "a.b", "../x", "a\nb", "x" * 64, "a;rm", "$(id)", "a@", "a@b."],
)
def test_what_is_no_name_is_refused_and_nothing_is_made(mngr: Mngr, home: Home, repo: Path, name: str) -> None:
    result = mngr("create", name, "command", "--", "sleep", "100")
    assert result.code == 2
    assert result.err.startswith("mngr: ")
    assert not made(home)


def test_a_name_of_63_characters_works(mngr: Mngr, repo: Path) -> None:
    name = "x" * 63
    assert run_to_end(mngr, name, "command", "--", "touch", "here").joinpath("here").exists()


def test_an_unknown_type_is_refused_with_the_nearest(mngr: Mngr, home: Home, repo: Path) -> None:
    result = mngr("create", "foo", "comand", "--", "true")
    assert result.code == 2
    assert "did you mean command?" in result.err
    assert not made(home)


def test_the_address_may_name_this_machine(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo@local", "command", "--", "sleep", "100")
    assert agent(mngr, "foo@local")["host"] == "local"


@pytest.mark.parametrize("address", ["foo@nowhere", "foo@.nowhere", "foo@box.nowhere", "@nowhere"])
def test_an_unknown_place_is_refused(mngr: Mngr, home: Home, repo: Path, address: str) -> None:
    result = mngr("create", address, "command", "--", "true")
    assert result.code == 2
    assert "nowhere" in result.err
    assert not made(home)


def test_a_taken_name_is_refused_and_its_agent_goes_on(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--", "sleep", "100")
    before = agent(mngr, "foo")["id"]
    result = mngr("create", "foo", "command", "--", "sleep", "200")
    assert result.code == 1
    assert "there is already an agent called foo" in result.err
    assert [each["id"] for each in mngr.json("list")] == [before]


def test_of_several_creates_of_one_name_one_wins(mngr: Mngr, home: Home, repo: Path) -> None:
    started = [mngr.popen("create", "foo", "command", "--", "sleep", "100") for _ in range(4)]
    codes = sorted(each.wait(30) for each in started)
    assert codes == [0, 1, 1, 1]
    assert [each["name"] for each in mngr.json("list")] == ["foo"]
    assert len(worktrees(home)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pass-env", "NO_SUCH"], "--pass-env NO_SUCH: there is no such variable here"),
        (["--env", "NOVALUE"], "--env takes K=V, not 'NOVALUE'"),
        (["--env", "=x"], "--env takes K=V, not '=x'"),
        (["--env", "A B=x"], "'A B' is not a name for a variable"),
        (["--env", "1A=x"], "'1A' is not a name for a variable"),
        (["--env", "MNGR_HOME=/x"], "MNGR_HOME belongs to mngr itself"),
        (["--env-file", "absent"], "cannot read absent: No such file or directory"),
        (["--env-file", "README.md"], "README.md:2: not K=V"),
        (["--label", "novalue"], "--label takes K=V, not 'novalue'"),
        (["--window", "novalue"], "--window takes K=V, not 'novalue'"),
        (["--window", "a b=true"], "'a b' is not a valid window name"),
        (["--count", "0"], "--count takes a whole number from 1 to 10000, not '0'"),
        (["--count", "-1"], "--count takes a whole number from 1 to 10000, not '-1'"),
        (["--mode", "magic"], "--mode is one of worktree, clone, copy, none, not 'magic'"),
        (["--template", "absent"], "absent"),
        (["--message", "a", "--message-file", "b"], "--message and --message-file exclude each other"),
        (["--message-file", "absent"], "cannot read absent: No such file or directory"),
        (["--colour", "red"], "create has no option --colour"),
        (["--base"], "--base needs a value: --base REV"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(
    mngr: Mngr, home: Home, repo: Path, options: list[str], said: str
) -> None:
    (repo / "README.md").write_text("A=1\nno equals sign\n")
    result = mngr("create", "foo", "command", *options)
    assert result.code == 2
    assert said in result.err.splitlines()[0]
    assert not made(home)


# What runs.


def test_the_program_gets_its_arguments_as_they_are(mngr: Mngr, repo: Path) -> None:
    words = ["", "two words", "it's", '"', "$HOME", "*", "-x", "a\nb", "höhe", "\\", "#{pid}", ";"]
    work = run_to_end(
        mngr, "foo", "command", "--", "sh", "-c", 'for w in "$@"; do printf "%s\\0" "$w"; done >w', "sh", *words
    )
    assert (work / "w").read_text().split("\0")[:-1] == words
    assert agent(mngr, "foo")["command"][-len(words) :] == words


def test_one_word_with_blanks_is_a_line_for_the_shell(mngr: Mngr, repo: Path) -> None:
    work = run_to_end(mngr, "foo", "command", "--", "echo one >out; echo two >>out")
    assert (work / "out").read_text() == "one\ntwo\n"


def test_a_program_may_be_a_file_of_the_repository(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / "fix.sh").write_text("#!/bin/sh\npwd -P >where\n")
    (repo / "fix.sh").chmod(0o755)
    commit(home, repo, "A program")
    work = run_to_end(mngr, "foo", "command", "--", "./fix.sh")
    assert (work / "where").read_text().strip() == str(work)


def test_the_program_has_a_terminal(mngr: Mngr, repo: Path) -> None:
    work = run_to_end(mngr, "foo", "command", "--", "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size >size")
    assert (work / "size").read_text() == "50 200\n"


def test_json_is_the_record_of_the_new_agents(mngr: Mngr, repo: Path) -> None:
    (made,) = mngr.json("create", "foo", "command", "--label", "a=1", "--", "sleep", "100")
    listed = agent(mngr, "foo")
    assert made == {key: listed[key] for key in made}
    assert made["branch"] == "mngr/foo"
    assert made["labels"] == {"a": "1"}


# Labels, windows, templates, messages.


def test_labels_are_kept(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "-l", "owner=ann", "--label", "why=it's = so", "--", "sleep", "100")
    assert agent(mngr, "foo")["labels"] == {"owner": "ann", "why": "it's = so"}


def test_windows_run_beside_the_agent_in_its_work_dir_and_environment(mngr: Mngr, home: Home, repo: Path) -> None:
    window = 'echo "$A $MNGR_AGENT_NAME" >window.txt; exec sleep 100'
    mngr.ok("create", "foo", "command", "-e", "A=1", "--window", f"logs={window}", "--", "sleep", "100")
    id = agent(mngr, "foo")["id"]
    assert home.tmux("list-windows", "-t", f"={id}", "-F", "#{window_name}").split() == ["agent", "logs"]
    said = work_dir(mngr, "foo") / "window.txt"
    assert wait_until(lambda: said.exists() and said.read_text()) == "1 foo\n"


def test_the_end_of_a_window_is_not_the_end_of_the_agent(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--window", "short=exit 3", "--", "sleep", "100")
    wait_until(lambda: "1" in home.tmux("list-panes", "-a", "-F", "#{pane_dead}").split())
    assert agent(mngr, "foo")["state"] == "running"


def test_a_template_gives_options_and_what_is_said_wins(mngr: Mngr, repo: Path) -> None:
    mngr.ok("config", "set", "templates.nightly.label", '["run=nightly", "from=template"]')
    mngr.ok("config", "set", "templates.nightly.env", '["A=template"]')
    mngr.ok("config", "set", "templates.nightly.args", '["sh", "-c", "echo $A >a"]')
    work = run_to_end(mngr, "foo", "-t", "nightly")
    assert (work / "a").read_text() == "template\n"
    assert agent(mngr, "foo")["labels"] == {"run": "nightly", "from": "template"}
    work = run_to_end(mngr, "bar", "-t", "nightly", "--env", "A=said", "--", "echo $A >b")
    assert (work / "b").read_text() == "said\n"


def test_the_message_is_typed_once_it_runs(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--message", "it's\nthis", "--", "head -n 2 >got; exec sleep 100")
    got = work_dir(mngr, "foo") / "got"
    assert wait_until(lambda: got.exists() and got.read_text()) == "it's\nthis\n"


@pytest.mark.parametrize("file", ["-", "prompt.md"])
def test_the_message_may_come_from_a_file_or_standard_input(mngr: Mngr, repo: Path, file: str) -> None:
    (repo / "prompt.md").write_text("do it\n")
    mngr.ok(
        *("create", "foo", "command", "--count", "2", "--message-file", file, "--", "head -n 1 >got; exec sleep 100"),
        input="do it\n",
    )
    for name in ("foo-1", "foo-2"):
        got = work_dir(mngr, name) / "got"
        assert wait_until(lambda got=got: got.exists() and got.read_text()) == "do it\n"  # type: ignore[misc]


# --reuse, --count.


def test_reuse_makes_the_agent_when_there_is_none(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--reuse", "--", "sleep", "100")
    assert agent(mngr, "foo")["state"] == "running"


def test_reuse_leaves_a_running_agent_alone_and_starts_a_stopped_one(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--", "sleep", "100")
    first = agent(mngr, "foo")
    result = mngr("create", "foo", "command", "--reuse", "--", "sleep", "200")
    assert (result.code, result.out) == (0, "foo\n")
    assert "foo exists already: reused" in result.err
    mngr.ok("stop", "foo")
    mngr.ok("create", "foo", "command", "--reuse", "--", "sleep", "200")
    again = agent(mngr, "foo")
    assert (again["id"], again["command"], again["state"]) == (first["id"], ["sleep", "100"], "running")


def test_count_makes_that_many_with_numbers(mngr: Mngr, home: Home, repo: Path) -> None:
    out = mngr.ok("create", "foo", "command", "--count", "6", "--label", "batch=1", "--", "sleep", "100")
    names = [f"foo-{number}" for number in range(1, 7)]
    assert out.split() == names
    found = mngr.json("list", "--label", "batch=1")
    assert [each["name"] for each in found] == names
    assert {each["state"] for each in found} <= {"starting", "running"}
    assert len({each["work_dir"] for each in found}) == 6
    assert [each["branch"] for each in found] == [f"mngr/{name}" for name in names]


def test_a_count_of_one_keeps_the_name_as_it_is(mngr: Mngr, repo: Path) -> None:
    assert mngr.ok("create", "foo", "command", "--count", "1", "--", "sleep", "100") == "foo\n"


def test_count_with_a_branch_numbers_the_branches(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--count", "2", "--branch", "topic", "--", "sleep", "100")
    assert [each["branch"] for each in mngr.json("list")] == ["topic-1", "topic-2"]


def test_when_one_of_many_fails_the_others_run_and_the_exit_code_says_so(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "branch", "mngr/foo-2")
    before = home.run("git", "rev-parse", "mngr/foo-2")
    result = mngr("create", "foo", "command", "--count", "3", "--", "sleep", "100")
    assert result.code == 6
    assert result.err.splitlines()[0].startswith("mngr: foo-2 was not created: ")
    assert "1 of 3 agents were not created" in result.err
    assert mngr.ok("list", "--names").split() == ["foo-1", "foo-3"]
    assert home.run("git", "rev-parse", "mngr/foo-2") == before, "a branch that was there before is never removed"


def test_a_batch_of_which_one_name_is_taken_makes_nothing(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo-2", "command", "--", "sleep", "100")
    result = mngr("create", "foo", "command", "--count", "3", "--", "sleep", "100")
    assert result.code == 1
    assert "there is already an agent called foo-2" in result.err
    assert mngr.ok("list", "--names").split() == ["foo-2"]
    assert len(worktrees(home)) == 2


# Connecting.


def test_without_a_terminal_create_does_not_connect(mngr: Mngr, repo: Path) -> None:
    result = mngr("create", "foo", "command", "--", "sleep", "100")
    assert (result.code, result.out, result.err) == (0, "foo\n", "")


def test_a_connect_command_runs_in_place_of_the_attach_and_gives_the_exit_code(mngr: Mngr, repo: Path) -> None:
    line = 'echo "connecting to $MNGR_AGENT_NAME in $MNGR_WORK_DIR"; exit 7'
    result = mngr("create", "foo", "command", "--connect-command", line, "--", "sleep", "100")
    assert result.code == 7
    assert result.out == f"foo\nconnecting to foo in {work_dir(mngr, 'foo')}\n"


def test_no_connect_wins_over_a_connect_command(mngr: Mngr, repo: Path) -> None:
    mngr.ok("config", "set", "commands.create.connect_command", "echo connected")
    assert mngr.ok("create", "foo", "command", "--no-connect", "--", "sleep", "100") == "foo\n"
    assert mngr.ok("create", "bar", "command", "--connect", "--", "sleep", "100") == "bar\nconnected\n"


def test_connect_with_several_agents_says_that_one_must_be_named(mngr: Mngr, repo: Path) -> None:
    result = mngr("create", "foo", "command", "--count", "2", "--connect", "--", "sleep", "100")
    assert (result.code, result.out) == (0, "foo-1\nfoo-2\n")
    assert "connect to one of them by name" in result.err


def test_in_a_terminal_create_attaches_unless_told_not_to(mngr: Mngr, home: Home, repo: Path) -> None:
    master, terminal = pty.openpty()
    os.set_blocking(master, False)

    def start(*words: str) -> subprocess.Popen[str]:
        return mngr.popen("create", *words, "--", "sleep", "100", stdin=terminal, stdout=terminal, stderr=terminal)

    try:
        assert start("quiet", "command", "--no-connect").wait(20) == 0
        attached = start("foo", "command")
        wait_until(lambda: drain(master) and home.tmux("list-clients", check=False), what="a client in the session")
        assert home.tmux("list-clients", "-F", "#{session_name}").strip() == agent(mngr, "foo")["id"]
        attached.send_signal(signal.SIGHUP)  # the terminal is closed: the agent does not care
        wait_until(lambda: drain(master) and attached.poll() is not None, what="the client to end")
        assert agent(mngr, "foo")["state"] == "running"
    finally:
        os.close(terminal)
        os.close(master)


def drain(master: int) -> bool:
    try:
        os.read(master, 65536)
    except OSError:
        pass
    return True
