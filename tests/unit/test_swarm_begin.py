"""How a run begins: names that fit, and everything written down before the first agent is made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import mngr
from mngr.address import is_name
from mngr.errors import MngrError, UsageError
from mngr.swarm.begin import begin, read_request, slug
from mngr.swarm.log import EVENTS
from mngr.swarm.recipe import Piece, Recipe
from mngr.swarm.runs import known_runs
from mngr.swarm.state import load


class Pieces(Recipe):
    def __init__(self, *pieces: Piece) -> None:
        self._pieces = list(pieces)

    def pieces(self) -> list[Piece]:
        return self._pieces


ONE = Pieces(Piece(title="one", prompt="do it"))


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mngr.Request:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "home"))
    repo = tmp_path / "repo"
    identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    subprocess.run(["git", *identity, "-C", str(repo), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    return mngr.Request(type="command", args=["true"], source=str(repo), env={"TOKEN": "sesame"})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("tests/e2e/test_x.py::test_y[a b]", "tests-e2e-test-x-py-test-y-a-b"),
        ("Ünïcode ÄÖ", "n-code"),
        ("日本", "task"),
        ("--", "task"),
        ("x" * 35 + "-y", "x" * 35),
    ],
)
def test_a_slug_is_what_is_left_in_the_alphabet_of_names(text: str, made: str) -> None:
    assert slug(text) == made
    assert is_name(made)


def test_every_task_and_its_checker_have_a_name_of_their_own(request_: mngr.Request) -> None:
    pieces = [Piece(title="the very same and very long title of a test", prompt="") for _ in range(12)]
    run = load(begin(mngr.Fleet(), Pieces(*pieces), request_, name="r" * 20))
    names = {name for task in run.tasks.values() for name in (task.name, f"{task.name}-check")}
    assert len(names) == 24
    assert all(is_name(name) and len(name) <= 63 for name in names)


def test_everything_is_written_down(request_: mngr.Request) -> None:
    odd = Piece(title="odd", prompt="a\udcff b", data={"x": [1]})
    directory = begin(
        mngr.Fleet(),
        Pieces(odd, Piece(title="old", prompt="", skip="nothing changed")),
        request_,
        settings={"retries": 7},
    )
    run = load(directory)
    assert (run.id, run.settings["retries"], run.tasks["odd"].data) == ("r1", 7, {"x": [1]})
    assert (run.tasks["old"].outcome, run.tasks["old"].why) == ("skipped", "nothing changed")
    kept = read_request(directory)
    assert (kept.base, kept.mode, kept.env) == (run.plan["base"], "clone", {"TOKEN": "sesame"})
    assert os.stat(os.path.join(directory, "request.json")).st_mode & 0o077 == 0
    assert "sesame" not in Path(directory, EVENTS).read_text()
    assert Path(directory, "prompts", "odd.md").read_bytes() == b"a\xff b"


def test_runs_are_numbered_past_the_branches_that_others_have_left(request_: mngr.Request) -> None:
    subprocess.run(["git", "-C", str(request_.source), "branch", "mngr/r1-x"], check=True)
    assert [os.path.basename(begin(mngr.Fleet(), ONE, request_)) for _ in range(2)] == ["r2", "r3"]


@pytest.mark.parametrize("left", [None, "", '{"event": "plann'])
def test_a_beginning_that_was_killed_is_begun_again(request_: mngr.Request, left: str | None) -> None:
    directory = Path(begin(mngr.Fleet(), ONE, request_, name="mine"))
    with pytest.raises(UsageError, match="there is a run mine already"):
        begin(mngr.Fleet(), ONE, request_, name="mine")
    (directory / EVENTS).unlink()
    if left is not None:
        (directory / EVENTS).write_text(left)
    assert list(load(begin(mngr.Fleet(), ONE, request_, name="mine")).tasks) == ["one"]


def test_a_name_whose_branches_others_have_left_is_refused(request_: mngr.Request) -> None:
    subprocess.run(["git", "-C", str(request_.source), "branch", "mngr/mine-x"], check=True)
    with pytest.raises(UsageError, match="there is a branch mngr/mine-x in "):
        begin(mngr.Fleet(), ONE, request_, name="mine")
    assert known_runs(mngr.Fleet().home) == []
    assert os.path.basename(begin(mngr.Fleet(), ONE, request_, name="min")) == "min"


def test_a_schema_that_no_result_can_be_held_against_is_refused(request_: mngr.Request) -> None:
    recipe = Pieces(Piece(title="one", prompt="do it"))
    recipe.schema = {"type": "object", "properties": {"x": {"oneOf": []}}}
    with pytest.raises(MngrError, match="the recipe's schema: 'oneOf' is not supported"):
        begin(mngr.Fleet(), recipe, request_)
    assert known_runs(mngr.Fleet().home) == []


def test_what_cannot_begin_says_why(request_: mngr.Request, tmp_path: Path) -> None:
    fleet = mngr.Fleet()
    with pytest.raises(MngrError, match="there is nothing to do"):
        begin(fleet, Pieces(), request_)
    with pytest.raises(UsageError, match="is not a name for a run"):
        begin(fleet, ONE, request_, name="../x")
    with pytest.raises(UsageError, match="which agent type"):
        begin(fleet, ONE, request_.replace(type=None))
    with pytest.raises(MngrError, match="no-such is not a commit"):
        begin(fleet, ONE, request_.replace(base="no-such"))
    with pytest.raises(MngrError, match="is not in a git repository"):
        begin(fleet, ONE, request_.replace(source=str(tmp_path)))
    assert known_runs(fleet.home) == os.listdir(tmp_path / "home" / "runs") == []
