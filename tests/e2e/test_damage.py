"""Damaged agents, through the real CLI: `list` shows every agent and says which one is damaged; the others are right;
and no verb answers a damaged one with a traceback.

The damaged agents are copies of a real one, many in one home, so that one call looks at all of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import EXIT_CODES
from tests.agents import worktrees
from tests.home import Home, Mngr, Result

Damage = Callable[[Path], None]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def truncated(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 3])


def binary(file: Path) -> None:
    file.write_bytes(b"\0\xff\xfe\x1b[2J\x80" * 50 + b"\n\n|:/ \n./../x:\n")


def directory(file: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


def loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def missing(file: Path) -> None:
    file.unlink()


KINDS: list[Damage] = [empty, truncated, binary, directory, loop, missing]


class Ward:
    """A home with agents that are well, and copies of one that can be damaged."""

    def __init__(self, mngr: Mngr) -> None:
        self.mngr = mngr
        self.home = mngr.home
        mngr.ok("create", "well", "command", "--mode", "none", "--", "sleep", "1000")
        mngr.ok("create", "ended", "command", "--mode", "none", "--", "sh", "-c", "exit 3")
        (model,) = mngr.json("create", "model", "command", "--", "sleep", "1000")
        mngr.ok("stop", "model")
        mngr.ok("wait", "ended", "--for", "failed")
        self.model = model["id"]

    def place(self, id: str) -> Path:
        return self.home.mngr_home / "agents" / id

    def add(self, name: str, **files: str) -> Path:
        """A stopped agent like the model, with these files put in; its id is its name."""
        place = self.place(name)
        shutil.copytree(self.place(self.model), place)
        for file in filter(Path.is_file, place.iterdir()):
            file.write_text(file.read_text().replace(self.model, name).replace("model", name))
        for file_name, content in files.items():
            (place / file_name.replace("_json", ".json")).write_text(content)
        (self.home.mngr_home / "names" / name).symlink_to(f"local/{name}/command")
        return place

    def change(self, agent: str, **changes: object) -> None:
        file = self.place(agent) / "agent.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}) + "\n")

    def listed(self, *words: str) -> dict[str, Any]:
        return {item["name"]: item for item in self.mngr.json("list", *words)}

    def told(self) -> dict[str, tuple[str, str]]:
        return {name: (item["state"], item["reason"]) for name, item in self.listed().items()}


@pytest.fixture
def ward(mngr: Mngr, repo: Path) -> Ward:
    return Ward(mngr)


def is_clear(result: Result) -> bool:
    """One line of what failed and at most one hint; or success."""
    lines = result.err.splitlines()
    problems = [line for line in lines if not line.startswith("hint: ")]
    return (
        "Traceback" not in result.out + result.err
        and result.code in EXIT_CODES.keys() | {125}
        and all(line.startswith("mngr: ") for line in problems)
        and (result.code == 0 or len(problems) == 1)
        and len(lines) - len(problems) <= 1
    )


def test_list_says_which_agents_are_damaged_and_the_others_are_right(ward: Ward) -> None:
    for damage in KINDS:
        damage(ward.add(f"record-{damage.__name__}") / "agent.json")
        damage(ward.add(f"state-{damage.__name__}") / "state")
        damage(ward.add(f"exit-{damage.__name__}", state="running 5", exit="9 0 -") / "exit")
        damage(ward.add(f"creating-{damage.__name__}", creating="x99999999\n") / "creating")
        damage(ward.add(f"pid-{damage.__name__}", state="running 5", pid="1 1\n") / "pid")
        damage(ward.add(f"session-{damage.__name__}") / "session")
    told = ward.told()
    assert {name: told.pop(name) for name in ("well", "ended", "model")} == {
        "well": ("running", ""),
        "ended": ("failed", "exit 3"),
        "model": ("stopped", ""),
    }
    expected = {}
    for kind in (damage.__name__ for damage in KINDS):
        expected[f"record-{kind}"] = ("unknown", "damaged")
        expected[f"state-{kind}"] = ("stopped", "session gone")
        expected[f"exit-{kind}"] = ("stopped", "session gone")
        expected[f"creating-{kind}"] = ("stopped", "") if kind in ("loop", "missing") else ("failed", INTERRUPTED)
        expected[f"pid-{kind}"] = ("stopped", "session gone")
        expected[f"session-{kind}"] = ("stopped", "")
    assert told == expected


INTERRUPTED = "create was interrupted"


def test_a_record_with_the_wrong_content_is_damaged_and_says_how(ward: Ward) -> None:
    wrong: dict[str, dict[str, object]] = {
        "wrong-id": {"id": "somebody-else"},
        "wrong-name": {"name": "../../etc"},
        "wrong-mode": {"mode": "magic"},
        "no-command": {"command": []},
        "number": {"work_dir": 5},
        "text": {"labels": "a=b"},
        "not-text": {"labels": {"a": 5}},
        "nul": {"work_dir": "/tmp\0/x"},
        "surrogate": {"source": "\ud800"},
        "infinite": {"created": float("inf")},
    }
    for name, changes in wrong.items():
        ward.add(name)
        ward.change(name, **changes)
    ward.add("list", agent_json="[]")
    ward.add("deep", agent_json="[" * 100_000)
    ward.add("long", agent_json="9" * 10_000)
    listed = ward.listed()
    damaged = {name for name, item in listed.items() if item["damage"]}
    assert damaged == {*wrong, "list", "deep", "long"}
    assert "somebody-else" in listed["wrong-id"]["damage"]
    assert "work_dir is not str" in listed["number"]["damage"]
    assert all(listed[name]["state"] == "unknown" for name in damaged)
    ward.mngr.ok("list", "--git", "--labels")


def test_a_record_of_a_newer_version_is_no_damage_and_keeps_its_new_keys_out_of_the_way(ward: Ward) -> None:
    ward.add("newer")
    (ward.home.mngr_home / "work" / "newer").mkdir()
    ward.change("newer", colour="blue", format=7, mood={"deep": ["thing"]})
    item = ward.listed()["newer"]
    assert (item["state"], item["damage"]) == ("stopped", None)
    ward.mngr.ok("label", "newer", "a=b")
    ward.mngr.ok("start", "newer")
    assert ward.listed()["newer"]["labels"] == {"a": "b"}


def test_a_record_that_lies_about_its_host_keeps_nobody_else_from_being_stopped(ward: Ward) -> None:
    ward.add("lost")
    ward.change("lost", host="nowhere.ssh")
    assert ward.listed()["lost"]["state"] == "stopped"
    result = ward.mngr("stop", "--state", "running,stopped")
    assert result.code == 6
    assert "mngr: lost: there is no host nowhere.ssh" in result.err
    assert "stopped well" in result.out


def test_an_agent_whose_directory_cannot_be_read_is_damaged(ward: Ward) -> None:
    place = ward.add("locked")
    place.chmod(0)
    try:
        told = json.loads(without_privileges(ward.home, ward.mngr.program, "list", "--json"))
    finally:
        place.chmod(0o700)
    assert {item["name"]: item["state"] for item in told} == {
        "ended": "failed",
        "locked": "unknown",
        "model": "stopped",
        "well": "running",
    }


def without_privileges(home: Home, *argv: str) -> str:
    """As somebody whom file modes concern: root may read everything."""
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root may read everything, and there is no setpriv")
        argv = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *argv)
    done = subprocess.run(argv, cwd=home.cwd, env=home.env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


VERBS = {
    "that look": [
        ["list", "{}"],
        ["list", "{}", "--git", "--labels"],
        ["list", "{}", "--format", "{name} {state}"],
        ["explain", "{}"],
        ["explain", "{}", "--json"],
        ["events", "{}"],
        ["capture", "{}"],
        ["wait", "{}", "--timeout", "0.1"],
        ["snapshot", "list", "{}"],
    ],
    "that talk": [
        ["connect", "{}"],
        ["message", "{}", "-m", "hello"],
        ["message", "{}", "--start", "-m", "hello"],
        ["exec", "{}", "--", "true"],
        ["label", "{}", "a=b"],
        ["rename", "{}", "{}-new"],
    ],
    "that carry work": [
        ["pull", "{}"],
        ["pull", "{}:README.md", "/dev/null/x"],
        ["push", "{}"],
        ["push", "README.md", "{}:"],
        ["snapshot", "create", "{}", "before"],
    ],
    "that make": [
        ["clone", "{}", "{}-clone"],
        ["create", "{}-from", "--from", "{}", "--mode", "clone"],
        ["create", "{}", "--reuse"],
        ["create", "{}", "command", "--", "true"],
        ["start", "{}"],
    ],
    "that end": [
        ["stop", "{}"],
        ["destroy", "{}", "--dry-run"],
        ["destroy", "-f", "{}"],
        ["destroy", "--purge", "{}"],
    ],
}
BROKEN = [
    ("agent.json", truncated),
    ("agent.json", directory),
    ("env", truncated),
    ("session", empty),
    ("given", missing),
]


@pytest.mark.parametrize("verbs", VERBS)
def test_a_verb_on_a_damaged_agent_ends_in_one_clear_line(ward: Ward, verbs: str) -> None:
    """Each has a damaged agent of its own: no verb meets what another has made of one."""
    for place, verb in enumerate(VERBS[verbs]):
        for number, (file, damage) in enumerate(BROKEN):
            name = f"sick-{place}-{number}"
            damage(ward.add(name) / file)
            words = [word.format(name) if "{}" in word else word for word in verb]
            result = ward.mngr(*words)
            assert is_clear(result), f"{damage.__name__} {file}: {' '.join(words)}\n{result}"
    told = ward.told()
    assert (told["well"], told["ended"], told["model"]) == (("running", ""), ("failed", "exit 3"), ("stopped", ""))


def test_a_verb_on_many_with_a_damaged_one_among_them_is_clear_too(ward: Ward) -> None:
    for damage in (truncated, directory):
        damage(ward.add(f"sick-{damage.__name__}") / "agent.json")
    for words in (["list", "-a"], ["doctor"], ["gc"], ["stop", "--state", "unknown"], ["stop", "--all"]):
        result = ward.mngr(*words)
        assert "Traceback" not in result.out + result.err, words
        assert result.code in EXIT_CODES, words
        assert ward.told().keys() >= {"sick-truncated", "sick-directory"}, words


def test_of_a_batch_only_the_damaged_ones_do_not_start(ward: Ward) -> None:
    files = ["session", "env", "launch"]
    for name in ("one", "two", *files):
        ward.add(name)
        (ward.home.mngr_home / "work" / name).mkdir()
    (ward.place("session") / "session").write_text("new-session -d -s session 'sleep 1000\n")
    (ward.place("env") / "env").write_text("export MNGR_WORK_DIR='/tmp\n")
    empty(ward.place("launch") / "launch")
    result = ward.mngr("start", "one", *files, "two")
    assert sorted(result.out.splitlines()) == ["started one", "started two"], result.err
    assert result.code == 6
    assert "mngr: env: its files are damaged" in result.err
    assert "mngr: launch: its files are damaged" in result.err
    assert "mngr: session: tmux did not bring it up: " in result.err
    assert len(result.err.splitlines()) == 4


def test_with_a_damaged_environment_nothing_runs_in_the_wrong_place(ward: Ward) -> None:
    """A lost MNGR_WORK_DIR must not mean the directory that the user happens to be in."""
    (ward.add("sick") / "env").write_text("export MNGR_AGENT_ID=sick\n")
    for words in (["exec", "sick", "--", "touch", "here"], ["push", "README.md", "sick:here"]):
        result = ward.mngr(*words, env={"MNGR_WORK_DIR": str(ward.home.cwd)})
        assert is_clear(result), result
        assert "env file is damaged" in result.err
    assert not (ward.home.cwd / "here").exists()


def test_a_damaged_agent_can_be_stopped_and_destroyed_with_all_that_is_its_own(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "sick", "command", "--", "sleep", "1000")
    (item,) = mngr.json("list")
    place = mngr.home.mngr_home / "agents" / item["id"]
    truncated(place / "agent.json")
    assert mngr.ok("stop", "sick") == "stopped sick\n"
    assert mngr.ok("destroy", "-f", "sick").startswith("destroyed sick")
    assert mngr.json("list") == []
    assert not place.exists()
    assert not Path(item["work_dir"]).exists()
    assert "mngr/sick" not in mngr.home.run("git", "branch", "--list", "--all")
    assert len(worktrees(mngr.home)) == 1
    mngr.ok("create", "sick", "command", "--", "sleep", "1000")


def test_doctor_names_the_damaged_agent_and_what_to_do(ward: Ward) -> None:
    truncated(ward.add("sick") / "agent.json")
    result = ward.mngr("doctor")
    assert "sick is damaged" in result.out
    assert "mngr destroy -f sick" in result.out


def test_garbage_in_a_history_hides_nothing_else_of_it(ward: Ward) -> None:
    events = ward.place(ward.model) / "events.jsonl"
    whole = ward.mngr.json("events", "model")
    binary(ward.add("noise") / "events.jsonl")
    with events.open("ab") as file:
        for time in (b"1e400", b"1e300", b"-1", b"9" * 400, b"NaN", b'"soon"', b"null"):
            file.write(b'{"time":%s,"agent":"%s","event":"odd"}\n' % (time, ward.model.encode()))
        file.write(b"[" * 100_000 + b"\n[]\n5\n\xff\x1b[2J\n{\n")
    told = ward.mngr.ok("events", "model", "noise")
    assert [event for event in ward.mngr.json("events", "model") if event["event"] != "odd"] == whole
    assert told.count("odd") == 7
    assert "\x1b" not in told


def test_half_a_snapshot_is_none(ward: Ward) -> None:
    names = [f"s{number}" for number in range(8)]
    for name in names:
        ward.mngr.ok("snapshot", "create", "model", name)
    place = ward.home.mngr_home / "snapshots" / ward.model
    good = json.loads((place / "s0" / "snapshot.json").read_text())
    for name, damage in zip(names[1:], [*KINDS, None], strict=True):
        file = place / name / "snapshot.json"
        if damage:
            damage(file)
        else:
            file.write_text(json.dumps({**good, "time": float("inf")}))
    assert [item["name"] for item in ward.mngr.json("snapshot", "list", "model")] == ["s0"]
    assert ward.mngr("snapshot", "list").code == 0


def test_a_record_without_its_last_newline_can_be_changed(ward: Ward) -> None:
    file = ward.place(ward.model) / "agent.json"
    file.write_text(file.read_text().strip())
    ward.mngr.ok("label", "model", "a=b")
    assert ward.listed()["model"]["labels"] == {"a": "b"}


def test_a_name_that_leads_nowhere_is_told(ward: Ward) -> None:
    (ward.home.mngr_home / "names" / "ghost").symlink_to("local/nobody/command")
    for words in (
        ["list", "ghost"],
        ["explain", "ghost"],
        ["stop", "ghost"],
        ["start", "ghost"],
        ["exec", "ghost", "--", "ls"],
    ):
        result = ward.mngr(*words)
        assert result.code == 3, f"{words}: {result}"
        assert is_clear(result), result


def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(ward: Ward) -> None:
    before = ward.told()
    place = ward.place(ward.model)
    for name in ("exit", "creating"):
        os.mkfifo(place / name)
    assert ward.told().keys() == before.keys()
    for name in ("exit", "creating"):
        (place / name).unlink()


def test_a_name_cannot_smuggle_a_command(ward: Ward) -> None:
    (ward.home.mngr_home / "names" / "evil").symlink_to("local/$(touch smuggled)/command")
    assert ward.mngr("stop", "evil").code == 3
    assert ward.mngr("exec", "evil", "--", "ls").code == 3
    assert not list(ward.home.path.rglob("smuggled"))


def test_garbage_among_the_agents_and_names_is_passed_over(ward: Ward) -> None:
    before = ward.told()
    agents, names = ward.home.mngr_home / "agents", ward.home.mngr_home / "names"
    (agents / "a file").write_text("x")
    (agents / "Not A Name").mkdir()
    (agents / ".hidden").mkdir()
    (names / "a-file").write_text("x")
    (names / "two-parts").symlink_to("local/x")
    (names / "itself").symlink_to("itself")
    assert ward.told() == before
    ward.mngr.ok("stop", "--all")
    ward.mngr.ok("gc")
