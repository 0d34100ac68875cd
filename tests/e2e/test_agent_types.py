"""Agent types of the user's own configuration, used like any other: create, names, clones, completion."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.agents import agent, commit, work_dir
from tests.home import Home, Mngr

DOCS = Path(__file__).parents[2] / "docs" / "config.md"
TELL = 'printf "%s\\n" "$FIRST" "$SECOND" "$@" >told.txt'  # for `sh -c`: two variables, then the arguments


@pytest.fixture
def teller(home: Home) -> None:
    """Two types of agents that write down what they got, one a variant of the other, and end."""
    (home.mngr_home / "config.toml").write_text(f"""
[agent_types.teller]
parent = "command"
args = ["sh", "-c", '{TELL}', "sh", "one"]
env = {{ FIRST = "1", SECOND = "2" }}

[agent_types.louder]
parent = "teller"
args = ["two"]
env = {{ SECOND = "22" }}
""")


def told(mngr: Mngr, name: str) -> list[str]:
    """What that agent wrote down, once it has ended."""
    mngr.ok("wait", name, "--for", "done", "--timeout", "20")
    return (work_dir(mngr, name) / "told.txt").read_text().splitlines()


def test_the_example_of_the_documentation_does_what_it_says(mngr: Mngr, home: Home, repo: Path) -> None:
    section = DOCS.read_text().partition("### Agent types of your own\n")[2].partition("\n## ")[0]
    configuration, line = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    (home.mngr_home / "config.toml").write_text(configuration)
    (repo / "build.sh").write_text('#!/bin/sh\necho "$(nice) $CI $*" >told.txt\n')
    (repo / "build.sh").chmod(0o755)
    commit(home, repo, "A build")
    program, *words = shlex.split(line)
    assert program == "mngr"
    mngr.ok(*words)
    assert told(mngr, "build") == [f"{min(19, os.nice(0) + 19)} 1 --fast"]
    assert mngr.json("list", "--type", "gentle")[0]["name"] == "build"


@pytest.mark.usefixtures("repo", "teller")
def test_arguments_add_up_and_what_is_said_wins_over_the_types_variables(mngr: Mngr) -> None:
    mngr.ok("create", "a", "louder", "--env", "FIRST=11", "--", "three", "a b")
    assert told(mngr, "a") == ["11", "22", "one", "two", "three", "a b"]
    assert agent(mngr, "a")["type"] == "louder"


@pytest.mark.usefixtures("repo", "teller")
def test_variables_that_are_always_passed_on_win_over_the_types(mngr: Mngr) -> None:
    mngr.ok("create", "a", "teller", "-S", "pass_env=FIRST", env={"FIRST": "mine"})
    assert told(mngr, "a")[:2] == ["mine", "2"]


@pytest.mark.usefixtures("teller")
def test_a_project_can_make_its_own_type_the_default(mngr: Mngr, repo: Path) -> None:
    (repo / ".mngr.toml").write_text('type = "ours"\n[agent_types.ours]\nparent = "teller"\nargs = ["ours"]\n')
    mngr.ok("create", "a")
    assert told(mngr, "a") == ["1", "2", "one", "ours"]
    assert mngr.json("list")[0]["type"] == "ours"


@pytest.mark.usefixtures("repo", "teller")
def test_its_name_is_refused_as_the_name_of_an_agent(mngr: Mngr) -> None:
    wrong = mngr("create", "teller")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "mngr: teller is the name of an agent type")
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    wrong = mngr("rename", "a", "teller")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "mngr: teller is the name of an agent type")
    assert [agent["name"] for agent in mngr.json("list")] == ["a"]


@pytest.mark.usefixtures("repo", "teller")
def test_it_is_known_to_suggestions_and_completion(mngr: Mngr) -> None:
    assert mngr("create", "a", "tellre").err.splitlines()[1] == "hint: did you mean teller?"
    known = ["claude", "codex", "command", "louder", "opencode", "replay", "teller"]
    assert mngr.ok("complete", "--", "create", "a", "").split() == known
    assert mngr.ok("complete", "--", "list", "--type", "l").split() == ["louder"]


@pytest.mark.usefixtures("repo")
def test_a_broken_one_is_refused_before_anything_is_made_and_hinders_nobody_else(mngr: Mngr, home: Home) -> None:
    (home.mngr_home / "config.toml").write_text("[agent_types.bare]\n")
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    wrong = mngr("create", "b", "bare", "--", "sleep", "1000")
    assert wrong.code == 2
    assert wrong.err == (
        "mngr: agent_types.bare.parent is missing\n"
        "hint: say what it is a variant of: mngr config set agent_types.bare.parent command\n"
    )
    assert [agent["name"] for agent in mngr.json("list")] == ["a"]
    assert home.run("git", "branch", "--list", "mngr/b") == ""
    mngr.ok("config", "set", "agent_types.bare.parent", "command")
    assert mngr.ok("create", "b", "bare", "--", "sleep", "1000") == "b\n"


@pytest.mark.usefixtures("repo", "teller")
def test_an_agent_outlives_its_type_and_so_do_its_clones(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "a", "teller", "--env", "FIRST=11", "--", "x")
    before = told(mngr, "a")
    (home.mngr_home / "config.toml").unlink()
    mngr.ok("clone", "a", "b")
    mngr.ok("create", "c", "--from", "a")
    mngr.ok("create", "d", "teller", "--from", "a", "--env", "SECOND=dd")
    mngr.ok("start", "a")
    assert [told(mngr, name) for name in ("a", "b", "c")] == [before] * 3
    assert told(mngr, "d") == ["11", "dd", "one", "x"]
    assert {agent["type"] for agent in mngr.json("list")} == {"teller"}
    wrong = mngr("clone", "a", "e", "--", "new")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "mngr: there is no agent type 'teller'")


@pytest.mark.usefixtures("repo", "teller")
def test_a_clone_with_new_arguments_keeps_the_variables_that_its_parent_was_given(mngr: Mngr) -> None:
    mngr.ok("create", "a", "teller", "--env", "FIRST=11", "--", "x")
    mngr.ok("clone", "a", "b", "--", "y")
    assert told(mngr, "b") == ["11", "2", "one", "y"]


@pytest.mark.usefixtures("repo", "teller")
def test_another_type_from_the_same_work_brings_its_variables(mngr: Mngr) -> None:
    mngr.ok("create", "a", "teller", "--env", "FIRST=11", "--", "x")
    mngr.ok("create", "b", "louder", "--from", "a", "--", "y")
    assert told(mngr, "b") == ["1", "22", "one", "two", "y"]
