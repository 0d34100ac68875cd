"""Reading back what a host says of its agents: whatever is in the files, the survey is read to its end, and damage
stays with the one agent that has it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mngr import hosts
from mngr.errors import HostUnreachable
from mngr.fleet import survey
from mngr.fleet.asking import question
from mngr.fleet.survey import parse_record, read_survey
from mngr.hosts.local import LocalHost
from mngr.model import Agent
from mngr.process import quote
from mngr.state import Evidence, verdict

WELL = Agent(
    id="aaa", name="well", type="command", host="local", command=["true"], work_dir="/w", mode="none", created=1.0
)
SICK = "bbb"


def record(**changes: object) -> str:
    return json.dumps({**WELL.replace(id=SICK, name="sick").to_dict(), **changes})


def ask(home: Path, trouble: str | None = None) -> list[Evidence]:
    """What survey.sh says about this home, read by read_survey."""
    host = LocalHost(str(home))
    done = hosts.run(host, question(), deadline=20)
    assert done.code == 0
    return read_survey(done.out, trouble)


def put(home: Path, id: str, **files: bytes) -> None:
    place = home / "agents" / id
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name.replace("_json", ".json")).write_bytes(content)


def put_well(home: Path) -> None:
    put(home, "aaa", agent_json=json.dumps(WELL.to_dict()).encode() + b"\n", state=b"stopped 5\n")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
damaged_records = st.one_of(
    st.binary(max_size=200),
    st.integers(0, len(record()) - 1).map(lambda cut: record().encode()[:cut]),
    st.builds(lambda field, value: record(**{field: value}).encode(), st.sampled_from(list(Agent.FIELDS)), json_values),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000, b"\xff\xfe\0\0", b"\n\n\n", b"null", b"{}"]),
)
small_files = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"running 5\n", b"20 0 -\n", b"running " + b"9" * 5000, b"pane aaa|0|||1\nend\n", b"\r\n\0"]),
)


def is_no_pid(content: bytes) -> bool:
    return not content.strip().isdigit() or int(content) == 0


@settings(max_examples=60)
@given(agent_json=damaged_records, state=small_files, exit=small_files, creating=small_files.filter(is_no_pid))
@example(agent_json=b"", state=b"", exit=b"", creating=b"0\n")
@example(agent_json=b"", state=b"", exit=b"", creating=b"-1\n")
def test_damage_stays_with_the_agent_that_has_it(agent_json: bytes, state: bytes, exit: bytes, creating: bytes) -> None:
    with TemporaryDirectory() as directory:
        home = Path(directory)
        put_well(home)
        put(home, SICK, agent_json=agent_json, state=state, exit=exit, creating=creating)
        put(home, "ccc", agent_json=json.dumps(WELL.replace(id="ccc").to_dict()).encode(), exit=b"20 3 -\n")
        well, sick, other = ask(home)
    assert (well.id, well.agent, verdict(well).state) == ("aaa", WELL, "stopped")
    assert (other.id, verdict(other).reason) == ("ccc", "exit 3")
    assert sick.id == SICK
    assert (sick.agent is None) == bool(sick.damage)
    assert sick.creating
    assert not sick.creator_alive
    assert verdict(sick).state in ("unknown", "failed")


lines = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        "alive|alive aaa|alive aaa 5|alive aaa x|before aaa|after aaa|creating|creating x|"
        "creating ./aaa/creating alive|before|./|./aaa|./aaa/|"
        "./aaa/agent.json:|./aaa/agent.json|./:/:".split("|")
    ),
    st.sampled_from(["pane ||||", "pane aaa|1|||5", "pane aaa|0|||" + "9" * 5000]),
)


@given(st.lists(lines, max_size=12), st.none() | st.text())
def test_no_text_whatever_makes_the_reader_raise(said: list[str], trouble: str | None) -> None:
    for evidence in read_survey("\n".join(said), trouble):
        verdict(evidence)


@given(damaged_records)
def test_a_record_is_read_or_its_damage_told_in_one_line(content: bytes) -> None:
    agent, damage = parse_record(SICK, content.decode("utf-8", "surrogateescape"))
    assert (agent is None) != (damage is None)
    if agent is not None:
        assert agent.id == SICK
        json.dumps(agent.to_dict(), allow_nan=False)
        # Everything in it that becomes a word of a script can be one.
        for word in (agent.work_dir, agent.mode, agent.source, agent.branch, agent.base, *agent.command):
            quote(word or "").encode("utf-8", "surrogateescape")
        assert agent.command
    else:
        assert damage
        assert "\n" not in damage


@pytest.mark.parametrize(
    ("changes", "damage"),
    [
        ({"id": "other"}, "it says that it is 'other'"),
        ({"name": "Not A Name"}, "'Not A Name' is not a name"),
        ({"mode": "magic"}, "there is no mode 'magic'"),
        ({"command": []}, "its command is empty"),
        ({"created": float("nan")}, "created is not float"),
        ({"work_dir": "/w\0"}, "characters that no path has"),
        ({"source": "/\ud800"}, "characters that no path has"),
        ({"branch": "x --all"}, "'x --all' is not a branch"),
        ({"branch": "--force"}, "'--force' is not a branch"),
        ({"base": "HEAD; touch x"}, "is not a commit"),
        ({"work_dir": "--upload-pack=touch x;"}, "no absolute path"),
        ({"windows": {"w ; run-shell x": "y"}}, "a window of it has no proper name"),
        ({"labels": {"a": 1}}, "labels is not dict"),
    ],
)
def test_what_is_wrong_with_a_record_is_named(changes: dict[str, object], damage: str) -> None:
    agent, told = parse_record(SICK, record(**changes))
    assert agent is None
    assert told is not None
    assert damage in told


def test_a_record_of_a_newer_version_is_read(tmp_path: Path) -> None:
    put(tmp_path, SICK, agent_json=record(colour="blue", windows={"logs": "tail -f log"}).encode())
    (evidence,) = ask(tmp_path)
    assert evidence.agent is not None
    assert evidence.agent.windows == {"logs": "tail -f log"}


def test_a_directory_or_a_loop_in_the_place_of_a_file_is_damage(tmp_path: Path) -> None:
    put_well(tmp_path)
    for id, name in (("dir", "agent.json"), ("dir", "state"), ("dir", "exit"), ("dir", "creating")):
        (tmp_path / "agents" / id / name).mkdir(parents=True)
    (tmp_path / "agents" / "loop").mkdir()
    for name in ("agent.json", "state", "exit", "creating"):
        (tmp_path / "agents" / "loop" / name).symlink_to(name)
    told = {evidence.id: verdict(evidence) for evidence in ask(tmp_path)}
    assert {id: v.state for id, v in told.items()} == {"aaa": "stopped", "dir": "unknown", "loop": "unknown"}


def test_what_is_no_agent_is_not_listed(tmp_path: Path) -> None:
    put_well(tmp_path)
    for name in (".new.1234", "Capital", "white space", "-n", "a:b"):
        (tmp_path / "agents" / name).mkdir()
    assert [evidence.id for evidence in ask(tmp_path)] == ["aaa"]


def test_an_agent_that_comes_or_goes_during_the_survey_is_never_called_damaged() -> None:
    """Directories are listed before and after the files are read."""
    comes = read_survey("before aaa\nafter aaa\nafter bbb\n", None)
    goes = read_survey("before aaa\nbefore bbb\nafter aaa\n", None)
    assert [e.id for e in comes] == [e.id for e in goes] == ["aaa"]


def test_a_home_without_agents_has_none(tmp_path: Path) -> None:
    assert ask(tmp_path) == []
    (tmp_path / "agents").mkdir()
    assert ask(tmp_path) == []


def test_a_server_that_does_not_answer_makes_agents_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "aaa", agent_json=json.dumps(WELL.to_dict()).encode(), state=b"running 5\n")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path := str(tmp_path / "s"))
        host = LocalHost(str(tmp_path))
        host.socket = path
        programs = tmp_path / "bin"
        programs.mkdir()
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        for program, state, because in (
            ("echo lost it >&2; exit 1", "unknown", "lost it"),
            ("exit 1", "unknown", "tmux ended without a word"),
            ("kill -KILL $$", "unknown", "tmux ended without a word"),
            ("echo no server running on /x >&2; exit 1", "stopped", "there is no session, and no exit was recorded"),
            ("exit 0", "stopped", "there is no session, and no exit was recorded"),
        ):
            (programs / "tmux").write_text(f"#!/bin/sh\n{program}\n")
            (programs / "tmux").chmod(0o755)
            (evidence,) = survey.ask(host)
            assert (verdict(evidence).state, verdict(evidence).because) == (state, because), program


def test_an_answer_that_breaks_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is missing in it is not gone."""
    put_well(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "grep").write_text("#!/bin/sh\nkill -KILL $PPID\n")
    (programs / "grep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(HostUnreachable, match="local: the answer is incomplete"):
        survey.ask(LocalHost(str(tmp_path)))


def test_survivors_are_told_by_their_environment_and_not_by_a_pid_alone(tmp_path: Path) -> None:
    script = hosts.read_script(survey.__file__, "survey.sh")
    with subprocess.Popen(["sleep", "100"], env={"MNGR_AGENT_ID": "mine"}) as child:
        try:
            for id, pid in (("mine", child.pid), ("other", child.pid), ("init", 1), ("none", 0), ("group", -1)):
                put(tmp_path, id, pid=f"1 {pid}\n".encode())
            put(tmp_path, "binary", pid=b"\xff\0 \xff")
            put(tmp_path, "empty", pid=b"")
            ids = "mine other init none group binary empty missing"
            told = hosts.check(LocalHost(str(tmp_path)), f"{script}\nsurvivors {ids}", deadline=20)
            assert told == f"mine {child.pid}\n"
        finally:
            child.kill()
