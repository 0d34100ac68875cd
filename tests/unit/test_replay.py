"""The steps of a trajectory, played by real shells without an agent around them; which one is chosen; its log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.agents.log import Usage
from mngr.agents.replay import parts, trajectory
from mngr.agents.replay_log import ReplayLog
from mngr.errors import UsageError
from mngr.process import quote

STEPS = Path(__file__).parents[2] / "src" / "mngr" / "agents" / "replay.sh"
SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]
AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
MESSAGE = '{"hook_event_name": "UserPromptSubmit", "prompt": "say \\"prompt\\": \\u00e9 }"}'


class Stage:
    """The directory of one agent and its work dir."""

    def __init__(self, root: Path, shell: str = "sh") -> None:
        self.place, self.work, self.shell = root / "agent", root / "work", shell
        self.place.mkdir()
        self.work.mkdir()
        (self.place / "replay.jsonl").touch()

    def play(self, *turns: str) -> tuple[int, str]:
        """The status of the last of these turns, and what it showed."""
        first = len(list(self.place.glob("replay.[0-9]"))) + 1
        for number, text in enumerate(turns, first):
            (self.place / f"replay.{number}").write_text(text)
        return [self.tell() for _ in turns][-1]

    def tell(self) -> tuple[int, str]:
        line = f"d={quote(str(self.place))} record={quote(MESSAGE)}\n(. {quote(str(STEPS))}; play)"
        argv = ["busybox", "sh"] if self.shell == "busybox" else [self.shell]
        env = {**os.environ, **AUTHOR, "MNGR_AGENT_ID": "a1", "MNGR_RESULT": str(self.place / "result.json")}
        done = subprocess.run(
            [*argv, "-c", line], cwd=self.work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
        )
        assert done.stderr == b""
        return done.returncode, done.stdout.decode()

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.place / "replay.jsonl").read_text().split("\n")[:-1]]

    @property
    def result(self) -> Any:
        return json.loads((self.place / "result.json").read_bytes())


@pytest.fixture(params=SHELLS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(tmp_path, request.param)


def test_what_is_said_and_run_is_shown_and_logged_with_what_it_cost(stage: Stage) -> None:
    status, shown = stage.play("cost 10 2 300 4\nsay 'Hello.'\nrun printf '%s|' a 'b c' || say never\nsay Bye\n")
    assert (status, shown) == (0, "Hello.\n$ printf %s| a b c\na|b c|Bye\n")
    user, said, call, result, bye = stage.log
    assert user["text"] == 'say "prompt": é }'
    usage = {"input": 10, "output": 2, "cache_read": 300, "cache_write": 4}
    assert [(each["id"], each["model"], each["usage"]) for each in (said, call, bye)] == [
        (f"a1-1-{number}", "replay", usage) for number in (1, 2, 3)
    ]
    assert (call["tool"], call["input"]) == ("run", {"command": "printf %s| a b c"})
    assert (result["call"], result["failed"], result["text"]) == ("a1-1-2", False, "a|b c|")


def test_a_command_has_its_own_status_and_a_shell_of_its_own(stage: Stage) -> None:
    lines = ["run 'cd /; x=1; exit 3' || say \"$?$x\"", "run cd /", "run test -e nothing || say 'no such file'", "pwd"]
    assert stage.play("\n".join(lines))[1].splitlines()[-1] == str(stage.work)
    assert [each["failed"] for each in stage.log if each["type"] == "result"] == [True, False, True]
    assert [each["text"] for each in stage.log if each["type"] == "assistant"] == ["3", "no such file"]


def test_what_a_command_leaves_behind_does_not_hold_the_agent(stage: Stage) -> None:
    stage.play("run 'sleep 1000 & echo $!'\n")
    (result,) = [each for each in stage.log if each["type"] == "result"]
    os.kill(int(result["text"]), 9)


def test_files_are_written_and_edited_byte_for_byte(stage: Stage) -> None:
    (stage.work / "tool").write_bytes(b"#!/bin/sh\necho [a].* \\n\xff & b\nend")
    (stage.work / "tool").chmod(0o755)
    old, new = "[a].* \\n", "& \\1 'new'\nline \\\\"
    status, _ = stage.play(f"edit tool {quote(old)} {quote(new)}\nwrite deep/er/file <<'X'\nsome $text\nX\n")
    assert status == 0
    assert (stage.work / "tool").read_bytes() == b"#!/bin/sh\necho " + new.encode() + b"\xff & b\nend"
    assert (stage.work / "tool").stat().st_mode & 0o777 == 0o755
    assert (stage.work / "deep" / "er" / "file").read_text() == "some $text\n"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("edit file missing x", "cannot edit file: the text is not in it"),
        ("commit test 'Nothing at all'", "cannot commit: Nothing at all"),
        ("before maybe", "before is pass or fail, and not maybe"),
    ],
)
def test_a_step_that_cannot_be_done_ends_the_turn(tmp_path: Path, step: str, told: str) -> None:
    stage = Stage(tmp_path)
    (stage.work / "file").write_text("text")
    subprocess.run(["git", "init", "-q", str(stage.work)], check=True)
    if step.startswith("commit"):
        (stage.work / "file").unlink()
    status, shown = stage.play(f"{step}\nsay never\n")
    assert (status, shown.splitlines()[-1]) == (1, told)
    assert (stage.log[-1]["type"], stage.log[-1]["text"]) == ("error", told)


def test_the_result_is_what_all_turns_have_found(stage: Stage) -> None:
    subprocess.run(["git", "init", "-q", str(stage.work)], check=True)
    first = "test 'a.py::t[x y]'\nbefore fail\nwrite f <<X\n1\nX\ncommit test 'One \"more\"'\nescalate blocker 'a\nb'\n"
    assert (
        stage.play(first, "write f <<X\n2\nX\ncommit docs Two high\nafter pass\nfinish 'All \\ done'\nsay never\n")[0]
        == 0
    )
    told = subprocess.run(["git", "log", "--reverse", "--format=%H"], cwd=stage.work, capture_output=True, text=True)
    one, two = told.stdout.split()
    assert stage.result == {
        "test": "a.py::t[x y]",
        "passed_before": False,
        "passed_after": True,
        "changes": [
            {"kind": "test", "commit": one, "summary": 'One "more"', "importance": "medium"},
            {"kind": "docs", "commit": two, "summary": "Two", "importance": "high"},
        ],
        "escalations": [{"kind": "blocker", "summary": "a\nb"}],
        "blocked": None,
        "summary": "All \\ done",
    }


@settings(max_examples=15)
@given(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"])))
def test_the_result_is_json_whatever_the_texts_hold(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    stage = Stage(tmp_path_factory.mktemp("stage"))
    stage.play(f"escalate 'shared pattern' {quote(text)}\nblocked {quote(text)}\n")
    assert stage.result["blocked"].rstrip("\n") == text.rstrip("\n")
    assert stage.result["escalations"][0]["summary"] == stage.result["summary"] == stage.result["blocked"]
    assert stage.result["passed_before"] is None
    assert [each["type"] for each in stage.log] == ["user", "call", "result"]


def test_a_turn_that_was_cut_off_is_not_played_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.play("say one\nkill -s KILL $$\n")
    assert stage.play("say two\n")[1] == "two\n"
    assert stage.tell()[1] == "The trajectory has no part for this message.\n"


def test_an_agent_plays_the_file_with_the_longest_end_of_its_name(tmp_path: Path) -> None:
    for name in ("default", "add", "test-add", "list"):
        (tmp_path / f"{name}.sh").touch()
    (tmp_path / "padd").touch()
    names = {"r1-test-add": "test-add", "test-add": "test-add", "r1-add": "add", "r1-padd": "default", "x": "default"}
    assert {name: Path(trajectory(str(tmp_path), name)).stem for name in names} == names
    file = str(tmp_path / "add.sh")
    assert trajectory(file, "r1-list") == file


def test_a_line_divides_the_turns(tmp_path: Path) -> None:
    file = tmp_path / "t.sh"
    file.write_text("say 1\n# turn\nsay '# turn'\n# turns\n# turn \nsay 3\n")
    assert parts(str(file)) == ["say 1", "say '# turn'\n# turns", "say 3\n"]
    with pytest.raises(UsageError, match="cannot read the trajectory"):
        parts(str(tmp_path / "missing"))


def test_the_log_in_the_common_form(stage: Stage) -> None:
    stage.play("cost 7 3\nsay hi\nrun false\nlimit 5\n")
    reader = ReplayLog()
    found = [entry for record in stage.log for entry in reader.entries(record) or ()]
    assert [(entry.kind, entry.role, entry.tool, entry.failed, entry.id) for entry in found] == [
        ("message", "user", "", False, ""),
        ("message", "assistant", "", False, "a1-1-1"),
        ("tool_call", "assistant", "run", False, "a1-1-2"),
        ("tool_result", "tool", "run", True, ""),
        ("error", "system", "", False, ""),
    ]
    assert found[-1].text.startswith("usage limit reached, resets 20")
    spent = [each for record in stage.log if (each := reader.spent(record))]
    assert [(each.id, each.model, each.usage) for each in spent] == [
        (f"a1-1-{number}", "replay", Usage(input=7, output=3)) for number in (1, 2)
    ]
    assert reader.entries({"type": "else"}) is None
    assert reader.entries({"type": "assistant", "usage": 3, "time": "x", "text": 5}) is not None


def test_a_time_that_no_clock_shows_is_none() -> None:
    reader = ReplayLog()
    for time in (10**400, 10**12, -1, "soon"):
        record: dict[str, object] = {"type": "assistant", "time": time, "usage": {}}
        (entry,), spent = reader.entries(record) or [], reader.spent(record)
        assert spent is not None
        assert entry.time == spent.time == 0.0
