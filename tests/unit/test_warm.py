"""A call by tests/warm.py is as one of the program itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.home import Home
from tests.warm import PROGRAM, Warm, can_run

Run = Callable[..., subprocess.CompletedProcess[str]]


def itself(argv: list[str], **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, text=True, capture_output=True, **how)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module", params=[False, True], ids=["itself", "warm"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    warm = Warm() if request.param else None
    yield warm.run if warm else itself
    if warm:
        warm.close()


def call(run: Run, home: Home, *words: str, input: str = "", **env: str) -> tuple[int, str, str]:
    done = run([PROGRAM, *words], input=input, env={**home.env, **env}, cwd=home.path, timeout=30)
    return done.returncode, done.stdout, done.stderr


def test_output_errors_and_codes(run: Run, home: Home) -> None:
    assert call(run, home, "list", "--json") == (0, "[]\n", "")
    code, out, err = call(run, home, "stop", "nobody")
    assert (code, out, err.splitlines()[0]) == (3, "", "mngr: no agent called nobody")
    assert call(run, home, "list", "--no-such-option")[0] == 2


def test_directory_environment_and_input(run: Run, home: Home) -> None:
    words = ("create", "a", "--mode", "none", "-e", "GIVEN=é", "command", "--", "sh", "-c", "pwd; echo $GIVEN; cat")
    assert call(run, home, *words)[:2] == (0, "a\n")
    long = "x" * 200_000
    code, out, err = call(run, home, "exec", "a", "--", "sh", "-c", "wc -c; pwd", input=long)
    assert (code, out, err) == (0, f"200000\n{home.path}\n", "")
    assert call(run, home, "exec", "a", "--", "sh", "-c", "exit 42")[0] == 42
    set_here = {"MNGR_CONFIG_COMMANDS__CREATE__CONNECT_COMMAND": "true"}
    assert call(run, home, "config", "get", "commands.create.connect_command", **set_here) == (0, "true\n", "")


def test_several_at_once_and_one_that_takes_too_long(run: Run, home: Home) -> None:
    call(run, home, "create", "a", "command", "--mode", "none", "--", "sleep", "1000")
    with pytest.raises(subprocess.TimeoutExpired):
        run([PROGRAM, "wait", "a", "--for", "done"], input="", env=home.env, cwd=home.path, timeout=0.3)
    with ThreadPoolExecutor(10) as pool:
        told = pool.map(lambda number: call(run, home, "exec", "a", "--", "echo", str(number)), range(20))
        assert list(told) == [(0, f"{number}\n", "") for number in range(20)]


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONWARNINGS": "error"}, {"BIG": "x" * 40_000}])
def test_what_is_not_for_it(home: Home, env: dict[str, str]) -> None:
    assert can_run([PROGRAM, "list"], home.env)
    assert not can_run([PROGRAM, "list"], {**home.env, **env})
    assert not can_run([str(Path("/bin/true"))], home.env)
