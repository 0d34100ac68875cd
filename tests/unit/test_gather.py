"""Bringing home what agents have made, whatever that is: real files of a home here, through the real script."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mngr import registry
from mngr.agents import AgentType
from mngr.agents.log import Entry, LogReader, Usage, text
from mngr.errors import MngrError
from mngr.fleet import gather as gathering
from mngr.fleet.fleet import Fleet
from mngr.fleet.gather import RESULT, Gathered, gather
from mngr.hosts.local import LocalHost
from mngr.model import Ref
from tests.agents import WEIRD_NAMES, files

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


class Reader(LogReader):
    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        if "say" not in record:
            return None
        if record["say"] == "boom":
            raise OverflowError
        return [Entry(kind="message", role="assistant", text=text(record["say"]), usage=Usage(input=1))]


class Talker(AgentType):
    name = "talker"

    def reader(self) -> LogReader:
        return Reader()


class World:
    """A home with agents that never ran: what counts is what lies in their directories."""

    def __init__(self, home: Path, into: Path) -> None:
        self.home, self.into = home, into

    def agent(self, id: str = A) -> Path:
        place = self.home / "agents" / id
        (place / "artifacts").mkdir(parents=True)
        (place / "state").write_text("done 1700000000\n")
        return place

    def gather(self, *ids: str, host: str = "local", **how: Any) -> dict[str, Gathered]:
        refs = [Ref(id=id, name=f"n-{id[0]}", type="talker", host=host) for id in ids or (A,)]
        return gather(Fleet(), refs, str(self.into), **how)

    def home_of(self, id: str = A) -> dict[str, str]:
        """What is there now: path to content."""
        return {path: content.rstrip(" ") for path, content in files(self.into / f"n-{id[0]}").items()}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setattr(registry, "type_of", lambda _: Talker())
    return World(tmp_path / "m", tmp_path / "into")


def program(world: World, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A tar that does something first: what an agent might do at that moment."""
    path = world.home / "bin" / "tar"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nPATH=${{PATH#*:}}\n[ "$1" = --version ] || {{ {script}; }}\nexec tar "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


def test_everything_comes_home_and_nothing_else(world: World) -> None:
    place = world.agent()
    made = {"result.json": "{}", "events.jsonl": "e\n", "messages.jsonl": "m\n", "create.log": "c\n"}
    for name, content in {**made, "env": "secret", "artifacts/a/b.txt": "deep"}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content)
    (place / "exit").write_text("1700000009 3 -\n")
    gathered = Gathered(result_bytes=2, state="done 1700000000", exit="1700000009 3 -")
    assert world.gather() == {A: gathered}
    assert world.home_of() == {**made, "artifacts/a/b.txt": "deep"}
    assert os.listdir(world.into) == ["n-a"]


def test_each_agent_has_a_directory_of_its_own_and_one_that_is_gone_has_none(world: World) -> None:
    for id in (A, B):
        (world.agent(id) / "result.json").write_text(f'"{id}"')
    assert set(world.gather(A, B, "cccccccccccc")) == {A, B}
    assert (world.home_of(A), world.home_of(B)) == ({"result.json": f'"{A}"'}, {"result.json": f'"{B}"'})
    assert not (world.into / "n-c").exists()


def test_an_older_directory_is_replaced_as_a_whole(world: World) -> None:
    place = world.agent()
    (place / "artifacts" / "old").write_text("old")
    world.gather()
    (place / "artifacts" / "old").rename(place / "artifacts" / "new")
    world.gather()
    assert world.home_of() == {"artifacts/new": "old"}
    assert os.listdir(world.into) == ["n-a"]


# Results


@pytest.mark.parametrize("what", ["directory", "link", "dangling", "pipe"])
def test_a_result_that_is_no_file_is_none(world: World, what: str) -> None:
    result = world.agent() / "result.json"
    if what == "directory":
        result.mkdir()
        (result / "x").write_text("x")
    elif what == "pipe":
        os.mkfifo(result)
    else:
        result.symlink_to("/etc/hosts" if what == "link" else "/nowhere")
    assert world.gather()[A].result_bytes is None
    assert world.home_of() == {}


def test_pipes_in_the_place_of_any_file_hold_nobody_up(world: World) -> None:
    place = world.agent()
    (place / "state").unlink()
    for name in ("state", "exit", "env", "conversations", "events.jsonl"):
        os.mkfifo(place / name)
    assert world.gather() == {A: Gathered()}


def test_a_result_that_is_too_long_is_only_measured(world: World) -> None:
    (world.agent() / "result.json").write_bytes(b"x" * (RESULT + 1))
    (world.agent(B) / "result.json").write_bytes(b"x" * RESULT)
    found = world.gather(A, B)
    assert (found[A].result_bytes, found[A].left, world.home_of(A)) == (RESULT + 1, ["result.json"], {})
    assert (found[B].result_bytes, found[B].left, len(world.home_of(B)["result.json"])) == (RESULT, [], RESULT)


@pytest.mark.parametrize(
    "env", ["exit 3", "echo noise; echo 1 2 3", "(", "export MNGR_BRANCH=x MNGR_WORK_DIR=/nowhere"]
)
def test_a_damaged_environment_tells_nothing_of_the_branch(world: World, env: str) -> None:
    (world.agent() / "env").write_text(f"{env}\n")
    assert world.gather() == {A: Gathered(state="done 1700000000")}


def test_no_file_in_the_work_dir_passes_for_a_branch(world: World, tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", "-b", "mine", str(work)], check=True)
    for name in ("branch.head x", "branch.oid x"):
        (work / name).touch()
    (world.agent() / "env").write_text(f"MNGR_BRANCH=mine MNGR_WORK_DIR={work}\n")
    found = world.gather()[A]
    assert (found.on, found.dirty) == ("mine", 2)


# Artifacts


def test_of_too_many_bytes_the_smallest_files_come(world: World) -> None:
    for id in (A, B):
        place = world.agent(id) / "artifacts"
        for size in (500, 300, 200, 400, 10_000_000):
            with (place / str(size)).open("wb") as file:
                file.truncate(size)
    found = world.gather(A, B, most=1000)
    for id in (A, B):  # each has its own share
        assert set(world.home_of(id)) == {"artifacts/200", "artifacts/300", "artifacts/400"}
        assert found[id].left == ["artifacts/500", "artifacts/10000000"]


def test_of_too_many_files_some_come_and_a_few_of_the_others_are_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_FILES", 3)
    monkeypatch.setattr(gathering, "_LEFT", 2)
    place = world.agent() / "artifacts"
    for number in range(9):
        (place / f"{number}").write_text("x" * number)
    left = world.gather()[A].left
    assert set(world.home_of()) == {"artifacts/0", "artifacts/1", "artifacts/2"}
    assert left == ["artifacts/3", "artifacts/4", "and 4 more"]


def test_more_files_than_fit_on_a_command_line(world: World) -> None:
    place = world.agent() / "artifacts"
    for number in range(30):
        (place / f"{number:0200}").mkdir()
        for other in range(100):
            (place / f"{number:0200}" / f"{other:0250}").touch()
    assert world.gather()[A].left == []
    assert len(list((world.into / "n-a" / "artifacts").glob("*/*"))) == 3_000


def test_names_come_as_they_are_and_those_of_several_lines_are_told(world: World) -> None:
    place = world.agent() / "artifacts"
    names = [*WEIRD_NAMES, "a\\tb", "\\", " ", os.fsdecode(b"\xff\xfe"), "x" * 255]
    for name in names:
        (place / name).write_text("x")
    assert world.gather()[A].left == ["artifacts/new?line"]
    assert sorted(os.listdir(world.into / "n-a" / "artifacts")) == sorted(set(names) - {"new\nline"})


def test_only_files_come_and_what_else_there_is_is_told(world: World) -> None:
    place = world.agent() / "artifacts"
    (place / "to-file").symlink_to("/etc/hosts")
    (place / "to-directory").symlink_to("/etc")
    os.mkfifo(place / "pipe")
    (place / "one").write_text("same")
    os.link(place / "one", place / "two")
    assert sorted(world.gather()[A].left) == ["artifacts/pipe", "artifacts/to-directory", "artifacts/to-file"]
    assert world.home_of() == {"artifacts/one": "same", "artifacts/two": "same"}


def test_artifacts_that_are_a_link_are_not_followed(world: World) -> None:
    place = world.agent()
    (place / "artifacts").rmdir()
    (place / "artifacts").symlink_to("/etc")
    assert world.gather()[A].left == ["artifacts"]
    assert world.home_of() == {}


def test_a_name_that_no_file_can_have_here_is_told(world: World) -> None:
    deep = world.agent() / "artifacts"
    inside = os.getcwd()
    try:
        os.chdir(deep)
        for _ in range(16):  # longer, with the path before it, than a path may be here, but not there
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
        Path("x").write_text("x")
    finally:
        os.chdir(inside)
    (deep / "y").write_text("y")
    (left,) = world.gather()[A].left
    assert left.endswith("/x")
    assert world.home_of() == {"artifacts/y": "y"}


def test_what_is_changed_while_it_is_read_does_no_harm(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.agent()
    (place / "result.json").write_text("{}")
    for name in ("gone", "grown", "linked", "piped", "stays"):
        (place / "artifacts" / name).write_text("x")
    here = f"cd {place}/artifacts"
    change = "rm gone linked piped; ln -s /etc/hosts linked; mkfifo piped; head -c 2000 /dev/zero >grown"
    program(world, monkeypatch, f"({here}; {change}; head -c 2000000 /dev/zero >../result.json)")
    left = world.gather(most=1000)[A].left
    assert sorted(left) == ["artifacts/gone", "artifacts/grown", "artifacts/linked", "artifacts/piped", "result.json"]
    assert world.home_of() == {"artifacts/stays": "x"}


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_told(world: World) -> None:
    place = world.agent() / "artifacts"
    (place / "shut").mkdir()
    (place / "shut" / "x").write_text("x")
    (place / "file").write_text("x")
    for name in ("shut", "file"):
        (place / name).chmod(0)
    try:
        assert sorted(world.gather()[A].left) == ["artifacts/file", "artifacts/shut"]
    finally:
        (place / "shut").chmod(0o700)


# Transcripts


def log(place: Path, name: str, *lines: str) -> str:
    path = place / "logs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_the_transcript_is_of_all_logs_in_their_order_and_the_logs_stay_where_they_are(world: World) -> None:
    place = world.agent()
    outside = world.home / "outside"
    outside.write_text('{"say": "not ours"}\n')
    logs = [
        log(place, "z", '{"say": "first"}', "garbage", "[]", '{"other": 1}', '{"say": "h\\ud800lf"}'),
        log(place, "a b", '{"say": "last"}' + " " * 5000),
        str(outside),
        f"{place}/logs/../../../outside",
        f"{place}/logs",
        f"{place}/logs/missing",
    ]
    (place / "conversations").write_text("\n".join(logs))
    assert world.gather()[A].left == []
    assert set(world.home_of()) == {"transcript.jsonl"}
    entries = [json.loads(line) for line in (world.into / "n-a" / "transcript.jsonl").read_text().splitlines()]
    assert [entry["text"] for entry in entries] == ["first", "h\ud800lf", "last"]
    assert entries[0]["usage"] == Usage(input=1).to_dict()


def test_records_that_break_the_reader_are_counted_and_the_others_come(world: World) -> None:
    place = world.agent()
    logs = [log(place, name, '{"say": "before"}', '{"say": "boom"}', '{"say": "after"}') for name in ("x", "y")]
    (place / "conversations").write_text("\n".join(logs))
    assert world.gather()[A].unread == 2
    said = [json.loads(line)["text"] for line in world.home_of()["transcript.jsonl"].splitlines()]
    assert said == ["before", "after"] * 2


def test_a_record_as_long_as_no_record_is_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_LINE", 100)
    place = world.agent()
    (place / "conversations").write_text(log(place, "x", '{"say": "' + "x" * 1000 + '"}', '{"say": "short"}'))
    world.gather()
    assert [json.loads(line)["text"] for line in world.home_of()["transcript.jsonl"].splitlines()] == ["short"]


def test_logs_beyond_their_share_are_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_HISTORY", 50)
    place = world.agent()
    (place / "events.jsonl").write_text("x" * 30)
    (place / "conversations").write_text(log(place, "x", '{"say": "' + "x" * 100 + '"}'))
    assert world.gather()[A].left == ["logs/x"]
    assert set(world.home_of()) == {"events.jsonl"}


# Hosts and disks that fail


def test_a_host_that_breaks_off_leaves_everything_as_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.agent()
    (place / "result.json").write_text("1")
    world.gather()
    (place / "result.json").write_text("2")
    for bytes_sent in (0, 100, 5000, 1_000_000):
        monkeypatch.setattr(
            LocalHost, "argv", lambda *_, n=bytes_sent, **__: ["/bin/sh", "-c", f"sh -s | head -c {n}; exit 255"]
        )
        assert world.gather() == {}
        assert world.home_of() == {"result.json": "1"}
        assert os.listdir(world.into) == ["n-a"]


def test_a_host_that_nobody_knows_takes_nothing_from_the_others(world: World) -> None:
    (world.agent() / "result.json").write_text("{}")
    refs = [Ref(id=id, name=id, type="talker", host=host) for id, host in ((A, "local"), (B, "box.nowhere"))]
    assert set(gather(Fleet(), refs, str(world.into))) == {A}


def test_a_place_that_cannot_be_written_is_one_line(world: World) -> None:
    world.agent()
    world.into.write_text("a file")
    with pytest.raises(MngrError, match="into cannot be written: File exists"):
        world.gather()
