"""create: the environment of an agent. A small base, what was given, and mngr's own variables; secrets stay private."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import agent, directory, run_to_end
from tests.home import Home, Mngr, command_lines, wait_until


def environment_of(mngr: Mngr, name: str, *options: str, **how: dict[str, str]) -> dict[str, str]:
    work = run_to_end(mngr, name, "command", *options, "--", "tr '\\0' '\\1' </proc/self/environ >env.txt", **how)
    return dict(item.split("=", 1) for item in (work / "env.txt").read_text().split("\1") if item)


def test_an_agent_sees_a_small_base_and_mngrs_own_variables_only(mngr: Mngr, home: Home, repo: Path) -> None:
    caller = {"SECRET": "x", "EDITOR": "vi", "TMUX": "/tmp/x,1,0", "TMUX_PANE": "%0", "GIT_DIR": str(repo / ".git")}
    seen = environment_of(mngr, "foo", env=caller)
    base = {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM", "COLORTERM"}
    of_sh = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert {name for name in seen if not name.startswith("MNGR_")} - of_sh == base
    assert seen["HOME"] == home.env["HOME"]
    record = agent(mngr, "foo")
    assert {name: value for name, value in seen.items() if name.startswith("MNGR_")} == {
        "MNGR_HOME": str(home.mngr_home),
        "MNGR_AGENT_ID": record["id"],
        "MNGR_AGENT_NAME": "foo",
        "MNGR_AGENT_DIR": f"{home.mngr_home}/agents/{record['id']}",
        "MNGR_WORK_DIR": record["work_dir"],
        "MNGR_BRANCH": "mngr/foo",
        "MNGR_BASE": record["base"],
        "MNGR_RESULT": f"{home.mngr_home}/agents/{record['id']}/result.json",
        "MNGR_ARTIFACTS": f"{home.mngr_home}/agents/{record['id']}/artifacts",
    }


def test_what_is_given_reaches_the_agent_as_it_is(mngr: Mngr, repo: Path) -> None:
    values = {"QUOTES": 'it\'s "so"', "LINES2": "a\nb\n", "DOLLAR": "$HOME `id` \\n", "EMPTY": "", "UMLAUT": "höhe=1"}
    options = [word for key, value in values.items() for word in ("--env", f"{key}={value}")]
    seen = environment_of(mngr, "foo", *options)
    assert {key: seen[key] for key in values} == values


def test_of_the_ways_to_give_a_variable_the_most_explicit_wins(mngr: Mngr, repo: Path) -> None:
    (repo / ".env").write_text("# a comment\n\nA=file\nexport B='quoted file'\nC=\"file\"\nD=x=y\n")
    here = {"A": "here", "B": "here", "C": "here", "E": "here"}
    passed = [word for key in here for word in ("--pass-env", key)]
    seen = environment_of(mngr, "foo", "-e", "A=said", *passed, "--env-file", ".env", env=here)
    assert {key: seen[key] for key in "ABCDE"} == {
        "A": "said",
        "B": "quoted file",
        "C": "file",
        "D": "x=y",
        "E": "here",
    }


def test_variables_named_in_the_configuration_are_always_passed_on(mngr: Mngr, repo: Path) -> None:
    mngr.ok("config", "set", "pass_env", '["TOKEN", "ABSENT"]')
    seen = environment_of(mngr, "foo", env={"TOKEN": "t0ken"})
    assert seen["TOKEN"] == "t0ken"
    assert "ABSENT" not in seen


def test_secrets_lie_in_private_files_and_never_on_a_command_line(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / ".env").write_text("FROM_FILE=s3cret-file\n")
    gate = home.root / "gate"
    os.mkfifo(gate)
    held = os.open(gate, os.O_RDWR)
    try:
        running = mngr.popen(
            *("create", "foo", "command", "--env-file", ".env", "--pass-env", "PASSED"),
            *("--setup", f"touch '{home.root}/ready'; read go <'{gate}'", "--", "sleep", "100"),
            env={"PASSED": "s3cret-passed"},
        )
        wait_until((home.root / "ready").exists, what="the setup to run")
        assert "s3cret" not in "\n".join(command_lines())
        os.write(held, b"go\n")
        assert running.wait(20) == 0
    finally:
        os.close(held)
    assert "s3cret" not in "\n".join(command_lines())
    kept = directory(mngr, "foo")
    holders = [path for path in kept.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
    assert holders, "the test looks in the wrong place"
    assert {path.stat().st_mode & 0o777 for path in holders} == {0o600}
    assert kept.stat().st_mode & 0o777 == 0o700
    assert "s3cret" not in mngr.ok("list", "--json") + mngr.ok("explain", "foo") + mngr.ok("events", "foo")


def test_a_secret_said_outright_is_on_no_other_command_line_than_the_users_own(
    mngr: Mngr, home: Home, repo: Path
) -> None:
    mngr.ok("create", "foo", "command", "--env", "TOKEN=s3cret-said", "--", "sleep", "100")
    assert "s3cret-said" not in "\n".join(command_lines())
    mngr.ok("stop", "foo")
    mngr.ok("start", "foo")
    assert "s3cret-said" not in "\n".join(command_lines())
    assert mngr.ok("exec", "foo", "--", "printenv", "TOKEN") == "s3cret-said\n"


@pytest.mark.parametrize("name", ["A;touch pwned;B", "", "1A", "A B", "Ä", "MNGR_HOME"])
def test_the_name_of_a_variable_is_checked_for_callers_of_the_api_too(home: Home, repo: Path, name: str) -> None:
    script = f"import mngr; mngr.create(mngr.Fleet(), mngr.Request(args=['true'], env={{{name!r}: '1'}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=repo, env=home.env, text=True, capture_output=True)
    assert done.stderr.splitlines()[-1] in (
        f"mngr.errors.UsageError: {name!r} is not a name for a variable",
        f"mngr.errors.UsageError: {name} belongs to mngr itself",
    )
    assert not list(home.root.rglob("pwned"))


def test_a_directory_without_mngr_is_not_put_into_the_path(mngr: Mngr, home: Home, repo: Path) -> None:
    place = home.root / "interpreter"
    place.mkdir()
    (place / "python").symlink_to(sys.executable)
    words = ("env", f"PYTHONPATH={os.pathsep.join(filter(None, sys.path))}", "PATH=/usr/local/bin:/usr/bin:/bin")
    home.run(*words, str(place / "python"), "-m", "mngr", "create", "foo", "command", "--", "sleep", "100")
    assert str(place) not in mngr.ok("exec", "foo", "--", "printenv", "PATH")


def test_files_of_the_agent_have_the_users_umask(mngr: Mngr, home: Home, repo: Path) -> None:
    work = run_to_end(mngr, "foo", "command", "--", "touch", "made")
    (home.path / "made").touch()
    assert (work / "made").stat().st_mode == (home.path / "made").stat().st_mode
