"""The ledger, and how it is filled: from real files of a home on this machine, through the real scripts."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr import hosts, registry
from mngr.agents import AgentType
from mngr.agents.log import LogReader, Spent, Usage, count, table, text
from mngr.fleet import collect as collecting
from mngr.fleet import ledger as ledgers
from mngr.fleet.collect import collect, collect_last
from mngr.fleet.fleet import Fleet
from mngr.fleet.ledger import Account, Ledger, Place, with_ledger
from mngr.fleet.survey import agents
from mngr.model import Agent, Ref

Tokens = list[int]


class Reader(LogReader):
    """A record is a message, or says which model the following ones are of."""

    def __init__(self) -> None:
        self.model = "fable"
        self.seen = 0

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        self.seen += 1
        if "trap" in record:
            raise KeyError("trap")
        if "model" in record:
            self.model = text(record["model"])
            return None
        tokens = table(record.get("tokens"))
        usage = Usage(input=count(tokens.get("in")), output=count(tokens.get("out")))
        return Spent(id=text(record.get("id")), time=float(count(record.get("time"))), model=self.model, usage=usage)


class Forgetful(Reader):
    """What it keeps is nothing that JSON could hold."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        self.ids.add(text(record.get("id")))
        return super().spent(record)


class Teller(AgentType):
    name = "teller"
    logs = ("logs/*.jsonl", "logs/*/deep/*.jsonl")

    def __init__(self, make: Callable[[], LogReader] = Reader) -> None:
        self.make = make

    def reader(self) -> LogReader:
        return self.make()


class World:
    """A home with agents in it, whose logs are counted."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.type = Teller()
        self.told: list[str] = []
        self.fetched: list[bytes] = []
        monkeypatch.setenv("MNGR_HOME", str(home))
        plain = AgentType()
        monkeypatch.setattr(registry, "type_of", lambda ref: self.type if ref.type == "teller" else plain)
        real = collecting._output_of

        def spy(host: hosts.Host, body: str) -> Any:
            for block in real(host, body):
                self.fetched.append(block)
                yield block

        monkeypatch.setattr(collecting, "_output_of", spy)

    def agent(self, id: str, name: str, created: float = 1.0, type: str = "teller", **more: Any) -> Path:
        """Its directory, with its record and its name."""
        record = Agent(
            id=id, name=name, type=type, host="local", command=["x"], work_dir="/", mode="none", created=created, **more
        )
        place = self.home / "agents" / id
        place.mkdir(parents=True, exist_ok=True)
        (place / "agent.json").write_text(json.dumps(record.to_dict()) + "\n")
        (place / "state").write_text("stopped 1\n")
        if not os.path.lexists(self.home / "names" / name):
            Fleet().names.reserve(Ref(id=id, name=name, type=type, host="local"))
        return place

    def collect(self) -> dict[str, tuple[str, str, Tokens]]:
        """What the ledger then knows: message to agent, model, and tokens in and out."""
        fleet = Fleet()
        self.fetched.clear()
        return with_ledger(fleet.home, self.told.append, lambda ledger: self._collect(ledger, fleet))

    def _collect(self, ledger: Ledger, fleet: Fleet) -> dict[str, tuple[str, str, Tokens]]:
        collect(ledger, fleet, agents(fleet), self.told.append)
        return self.known()

    def known(self) -> dict[str, tuple[str, str, Tokens]]:
        with sqlite3.connect(self.home / "usage.db") as database:
            rows = database.execute("SELECT id, agent, model, input, output FROM messages").fetchall()
        database.close()
        return {id: (agent, model, [input, output]) for id, agent, model, input, output in rows}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path / "m", monkeypatch)


def line(id: str, input: int = 10, output: int = 5, time: int = 100) -> str:
    return json.dumps({"id": id, "time": time, "tokens": {"in": input, "out": output}}) + "\n"


def write(file: Path, *lines: str, mode: str = "w") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode) as stream:
        stream.writelines(lines)
    return file


A, B, C = "aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"


# What counts.


def test_messages_of_all_logs_of_an_agent_are_counted(world: World) -> None:
    place = world.agent(A, "a")
    write(place / "logs" / "one.jsonl", line("m1", 1, 2), line("m2", 3, 4))
    write(place / "logs" / "two words's.jsonl", line("m3", 5, 6))
    write(place / "logs" / "x" / "deep" / "side.jsonl", line("m4", 7, 8))
    write(place / "elsewhere" / "one.jsonl", line("m5"))
    expected = {"m1": [1, 2], "m2": [3, 4], "m3": [5, 6], "m4": [7, 8]}
    assert world.collect() == {id: (A, "fable", tokens) for id, tokens in expected.items()}
    assert world.told == []
    assert os.listdir(world.home / "agents") == [A]


def test_a_message_in_several_lines_counts_once_with_its_largest_output(world: World) -> None:
    place = world.agent(A, "a")
    log = write(place / "logs" / "one.jsonl", line("m1", 10, 1), line("m1", 10, 50), line("m1", 10, 20))
    assert world.collect() == {"m1": (A, "fable", [10, 50])}
    write(log, line("m1", 10, 60), mode="a")
    assert world.collect() == {"m1": (A, "fable", [10, 60])}
    write(log, line("m1", 10, 55), mode="a")
    assert world.collect() == {"m1": (A, "fable", [10, 60])}


def test_a_message_in_the_logs_of_two_agents_is_of_the_one_that_was_made_first(world: World) -> None:
    write(world.agent(C, "old", created=5) / "logs" / "x.jsonl", line("m1"))
    write(world.agent(A, "young", created=9) / "logs" / "x.jsonl", line("m1"), line("m2"))
    known = world.collect()
    assert {id: agent for id, (agent, _, _) in known.items()} == {"m1": C, "m2": A}


def test_it_is_so_even_if_the_other_was_asked_before(world: World) -> None:
    write(world.agent(A, "young", created=9) / "logs" / "x.jsonl", line("m1"), line("m2"))
    assert {agent for agent, _, _ in world.collect().values()} == {A}
    write(world.agent(C, "old", created=5) / "logs" / "x.jsonl", line("m1"))
    assert {id: agent for id, (agent, _, _) in world.collect().items()} == {"m1": C, "m2": A}


def test_a_clone_does_not_take_the_messages_of_a_destroyed_agent(world: World) -> None:
    old = world.agent(A, "old", created=5)
    write(old / "logs" / "x.jsonl", line("m1"))
    write(world.agent(B, "clone", created=9) / "logs" / "x.jsonl", line("m1"), line("m2"))
    world.collect()
    (old / "logs" / "x.jsonl").unlink()
    (world.home / "names" / "old").unlink()
    for path in (old / "agent.json", old / "state"):
        path.unlink()
    os.rmdir(old / "logs")
    os.rmdir(old)
    write(world.home / "agents" / B / "logs" / "x.jsonl", line("m1"), line("m2"), line("m3"))
    assert {id: agent for id, (agent, _, _) in world.collect().items()} == {"m1": A, "m2": B, "m3": B}


@pytest.mark.parametrize(
    "garbage",
    [
        "no json\n",
        "\n\n",
        "[]\n",
        '"text"\n',
        '{"tokens": 5}\n',
        '{"id": "m9", "tokens": {"in": 1e300}}\n{"id": "", "tokens": {"in": 5}}\n',
        '{"id": "big", "time": 1, "tokens": {"in": 99999999999999999999999}}\n',
        '{"id": "\\ud800", "time": 1, "tokens": {"in": 5}}\n',
        "[" * 100_000 + "\n",
        "\0\0\0\n",
        "x" * 3_000_000 + "\n",
        '{"trap": "for its reader"}\n',
    ],
)
def test_garbage_in_a_log_hides_nothing_else(world: World, garbage: str) -> None:
    place = world.agent(A, "a")
    write(place / "logs" / "one.jsonl", line("m1"), garbage, line("m2"))
    known = world.collect()
    known.pop("m9", None)
    assert set(known) == {"m1", "m2"}
    (place / "logs" / "one.jsonl").write_bytes(b"\xff\xfe\n" + line("m3").encode())
    assert "m3" in world.collect()


def test_what_the_user_likes_ls_to_print_does_not_matter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TIME_STYLE": "+%s", "QUOTING_STYLE": "c", "BLOCK_SIZE": "1M", "LC_ALL": "de_DE"}.items():
        monkeypatch.setenv(name, value)
    log = write(world.agent(A, "a") / "logs" / "two words.jsonl", line("m1"))
    assert set(world.collect()) == {"m1"}
    write(log, line("m2"), mode="a")
    assert set(world.collect()) == {"m1", "m2"}


def test_odd_names_of_files_do_no_harm(world: World) -> None:
    place = world.agent(A, "a")
    write(place / "logs" / "new\nline.jsonl", line("m1"))
    write(place / "logs" / "-rf *.jsonl", line("m2"))
    write(place / "logs" / "$(touch x);'\".jsonl", line("m3"))
    assert set(world.collect()) == {"m2", "m3"}
    assert sorted(os.listdir(world.home / "agents")) == [A]


def test_a_type_without_logs_is_not_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world.agent(A, "a", type="command") / "logs" / "x.jsonl", line("m1"))
    monkeypatch.setattr(collecting, "_look", lambda *_: pytest.fail("it was asked"))
    assert world.collect() == {}


def test_a_damaged_agent_is_counted_under_its_name(world: World) -> None:
    place = world.agent(A, "a", labels={"x": "1"})
    write(place / "logs" / "x.jsonl", line("m1"))
    world.collect()
    (place / "agent.json").write_text("{")
    write(place / "logs" / "x.jsonl", line("m2"), mode="a")
    assert set(world.collect()) == {"m1", "m2"}
    with_ledger(str(world.home), world.told.append, lambda ledger: check_account(ledger.accounts()[A]))
    assert world.told == []


def check_account(account: Account) -> None:
    assert (account.name, account.labels, account.created) == ("a", {"x": "1"}, 1.0)


def test_names_and_labels_follow(world: World) -> None:
    place = world.agent(A, "a")
    write(place / "logs" / "x.jsonl", line("m1"))
    world.collect()
    (world.home / "names" / "a").unlink()
    world.agent(A, "renamed", labels={"k": "v"})
    world.collect()
    account = with_ledger(str(world.home), print, lambda ledger: ledger.accounts()[A])
    assert (account.name, account.labels) == ("renamed", {"k": "v"})


# Only what is new.


def test_the_second_time_nothing_is_read(world: World) -> None:
    for number in range(3):
        place = world.agent(f"{number:012x}", f"a-{number}")
        write(place / "logs" / "x.jsonl", line(f"m{number}"))
    assert len(world.collect()) == 3
    assert world.fetched
    before = (world.home / "usage.db").stat()
    assert len(world.collect()) == 3
    assert world.fetched == []
    assert (world.home / "usage.db").stat().st_mtime_ns == before.st_mtime_ns


def test_of_a_log_that_grew_only_the_new_lines_are_read(world: World) -> None:
    log = write(world.agent(A, "a") / "logs" / "x.jsonl", *(line(f"m{n}") for n in range(1000)))
    quiet = write(world.agent(B, "b") / "logs" / "x.jsonl", *(line(f"n{n}") for n in range(1000)))
    assert len(world.collect()) == 2000
    assert sum(map(len, world.fetched)) > log.stat().st_size + quiet.stat().st_size
    new = line("new")
    write(log, new, mode="a")
    assert "new" in world.collect()
    assert new.encode() in b"".join(world.fetched)
    assert sum(map(len, world.fetched)) < len(new) + 100


def test_a_line_counts_when_it_is_complete(world: World) -> None:
    whole = line("m2")
    log = write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"), whole[:20])
    assert set(world.collect()) == {"m1"}
    assert set(world.collect()) == {"m1"}
    assert world.fetched == []
    write(log, whole[20:-1], mode="a")
    assert set(world.collect()) == {"m1"}
    write(log, "\n", mode="a")
    assert set(world.collect()) == {"m1", "m2"}


def test_a_shorter_or_another_file_is_read_from_its_beginning(world: World) -> None:
    log = write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"), line("m2"))
    world.collect()
    write(log, line("m3"))
    assert set(world.collect()) == {"m1", "m2", "m3"}
    other = write(log.with_suffix(".new"), line("m4"), line("m5"), line("m6"))
    os.rename(other, log)
    assert set(world.collect()) == {f"m{n}" for n in range(1, 7)}


def test_an_empty_and_an_unreadable_log_are_read_when_they_can_be(world: World) -> None:
    place = world.agent(A, "a")
    write(place / "logs" / "empty.jsonl")
    os.symlink(place / "logs" / "nowhere", place / "logs" / "gone.jsonl")
    (place / "logs" / "directory.jsonl").mkdir()
    os.mkfifo(place / "logs" / "pipe.jsonl")
    assert world.collect() == {}
    write(place / "logs" / "empty.jsonl", line("m1"))
    write(place / "logs" / "nowhere", line("m2"))
    assert set(world.collect()) == {"m1", "m2"}
    assert world.told == [], "the pipe was not waited for"


def test_a_reader_goes_on_with_what_it_knew(world: World) -> None:
    log = write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"), '{"model": "saga"}\n', line("m2"))
    world.collect()
    write(log, line("m3"), mode="a")
    known = world.collect()
    assert {id: model for id, (_, model, _) in known.items()} == {"m1": "fable", "m2": "saga", "m3": "saga"}
    assert sum(map(len, world.fetched)) < 200


def test_a_log_whose_reader_cannot_be_stored_is_read_whole_when_it_grows(world: World) -> None:
    world.type = Teller(Forgetful)
    log = write(world.agent(A, "a") / "logs" / "x.jsonl", '{"model": "saga"}\n', line("m1"))
    world.collect()
    assert world.collect()
    assert world.fetched == []
    write(log, line("m2"), mode="a")
    assert {id: model for id, (_, model, _) in world.collect().items()} == {"m1": "saga", "m2": "saga"}


def test_a_thousand_logs_need_few_processes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        place = world.home / "agents" / A / "logs" / ("d" * 100 + str(number)) / "deep"
        write(place / ("x" * 100 + ".jsonl"), line(f"m{number}"))
    world.agent(A, "a")
    scripts: list[str] = []
    real = collecting._fetch

    def spy(logs: list[collecting.Log], mark: str) -> str:
        scripts.append(real(logs, mark))
        return scripts[-1]

    monkeypatch.setattr(collecting, "_fetch", spy)
    assert len(world.collect()) == 1000
    calls = [row for row in scripts[0].splitlines() if row.startswith("send ")]
    assert 1 < len(calls) < 10


cut_points = st.lists(st.integers(0, 400), max_size=6)


@settings(max_examples=15)
@given(cuts=cut_points, chunk=st.integers(1, 70))
def test_however_a_log_grows_and_however_it_arrives_each_message_counts_once(cuts: list[int], chunk: int) -> None:
    """A log of lines with odd contents that is written in pieces, collected after each, and comes in small blocks."""
    lines = [line("m1"), "\n", "x" * 90 + "\n", line("m2"), line("m2", output=9), '{"model": "saga"}\n', line("m3")]
    content = "".join(lines).encode()
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        world = World(Path(directory) / "m", patch)
        real = collecting._output_of

        def in_small_blocks(host: hosts.Host, body: str) -> Any:
            for block in real(host, body):
                yield from (block[at : at + chunk] for at in range(0, len(block), chunk))

        patch.setattr(collecting, "_output_of", in_small_blocks)
        log = write(world.agent(A, "a") / "logs" / "x.jsonl")
        write(world.agent(B, "b") / "logs" / "y.jsonl", line("n1"))
        for cut in [*sorted(cuts), len(content)]:
            with log.open("ab") as stream:
                stream.write(content[log.stat().st_size : cut])
            world.collect()
        expected = {"m1": [10, 5], "m2": [10, 9], "m3": [10, 5], "n1": [10, 5]}
        assert {id: tokens for id, (_, _, tokens) in world.known().items()} == expected
        assert world.known()["m3"][1] == "saga"


# Hosts that fail.


def test_a_host_that_breaks_off_is_told_and_what_came_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"))
    write(world.agent(B, "b") / "logs" / "x.jsonl", line("m2"))
    real = collecting._output_of

    def broken(host: hosts.Host, body: str) -> Any:
        said = b"".join(real(host, body))
        yield said[: said.index(b"m2")]

    with monkeypatch.context() as patch:
        patch.setattr(collecting, "_output_of", broken)
        assert set(world.collect()) == {"m1"}
    assert world.told == ["what agents on local have spent since the last time is not known: local broke off"]
    assert set(world.collect()) == {"m1", "m2"}


# Destroyed agents.


def test_collecting_before_a_destroy_never_raises(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"))
    fleet = Fleet()
    collect_last(fleet, agents(fleet))
    assert set(world.known()) == {"m1"}
    (world.home / "usage.db").unlink()
    (world.home / "usage.db").mkdir()
    collect_last(fleet, agents(fleet))
    told = capsys.readouterr().err
    assert told.startswith("mngr: what these agents have spent since the last time is not known: ")
    assert told.count("\n") == 1


def test_the_buried_keep_their_messages(world: World) -> None:
    write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"))
    world.collect()

    def act(ledger: Ledger) -> None:
        ledger.bury([A])
        assert ledger.accounts()[A].destroyed
        assert sum(batch.messages for batch in ledger.batches(0, [])) == 1
        assert ledger.places() == {}

    with_ledger(str(world.home), print, act)


# The file.


def test_the_ledger_is_for_its_user_alone(world: World) -> None:
    world.agent(A, "a")
    world.collect()
    assert stat.S_IMODE((world.home / "usage.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"this is no database at all, " * 100, b"SQLite format 3\0" + b"x" * 9000])
def test_a_damaged_ledger_is_moved_aside_and_made_again(world: World, content: bytes) -> None:
    write(world.agent(A, "a") / "logs" / "x.jsonl", line("m1"))
    world.home.mkdir(exist_ok=True)
    (world.home / "usage.db").write_bytes(content)
    (world.home / "usage.db-journal").write_bytes(b"")
    assert set(world.collect()) == {"m1"}
    (aside,) = (path for path in world.home.glob("usage.db.damaged-*") if not path.name.endswith("-journal"))
    assert aside.read_bytes() == content
    (told,) = world.told
    assert told.startswith(f"{world.home}/usage.db is damaged (")
    assert str(aside) in told
    assert "\n" not in told


def test_damage_that_shows_only_while_reading_is_found_too(world: World) -> None:
    write(world.agent(A, "a") / "logs" / "x.jsonl", *(line(f"message-{n:05}") for n in range(5000)))
    world.collect()
    size = (world.home / "usage.db").stat().st_size
    with (world.home / "usage.db").open("r+b") as file:
        file.seek(4096 * 4)
        file.write(b"\xff" * (size - 4096 * 4))
    found = with_ledger(
        str(world.home), world.told.append, lambda ledger: sum(batch.messages for batch in ledger.batches(0, []))
    )
    assert found == 0
    assert len(world.told) == 1
    assert len(world.collect()) == 5000


def test_of_two_that_find_the_damage_one_moves_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the second waits for the lock, the first has moved the damaged file and begun a new one."""
    world.home.mkdir()
    path = world.home / "usage.db"
    path.write_bytes(b"no database" * 100)

    def lock(*_: object) -> None:
        os.rename(path, world.home / "aside")
        path.write_bytes(b"the new one")

    monkeypatch.setattr(fcntl, "flock", lock)
    assert ledgers._move_aside(str(path)) is None
    assert path.read_bytes() == b"the new one"


def test_a_ledger_that_cannot_be_written_is_one_line(world: World) -> None:
    world.home.mkdir()
    database = sqlite3.connect(world.home / "usage.db")
    database.execute("CREATE TABLE agents (something TEXT)")
    database.close()
    with pytest.raises(Exception, match=r"usage\.db: table agents has") as caught:
        with_ledger(str(world.home), print, lambda ledger: ledger.remember([ACCOUNT]))
    assert type(caught.value).__name__ == "MngrError"


ACCOUNT = Account(id=A, name="a", host="local", type="teller", labels={}, created=1.0)


def test_several_at_once_count_nothing_twice(world: World) -> None:
    for number in range(20):
        place = world.agent(f"{number:012x}", f"a-{number}", created=number)
        write(place / "logs" / "x.jsonl", *(line(f"m{number}-{n}") for n in range(50)), line("shared"))
    ready = threading.Barrier(4)
    failed: list[BaseException] = []

    def run() -> None:
        ready.wait()
        try:
            world.collect()
        except BaseException as error:  # noqa: BLE001 - told by the assertion below
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    known = world.known()
    assert len(known) == 20 * 50 + 1
    assert known["shared"][0] == f"{0:012x}"
    world.fetched.clear()
    world.collect()
    assert world.fetched == []


def test_a_writer_waits_for_another(world: World) -> None:
    world.home.mkdir()
    with_ledger(str(world.home), print, lambda ledger: ledger.remember([ACCOUNT]))
    other = sqlite3.connect(world.home / "usage.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    begun = threading.Event()

    def write_too(ledger: Ledger) -> None:
        begun.set()
        ledger.add([(A, Spent(id="m1", time=1.0, model="fable", usage=Usage(input=1)))], [])

    thread = threading.Thread(target=lambda: with_ledger(str(world.home), print, write_too))
    thread.start()
    assert begun.wait(10)
    other.execute("INSERT INTO messages VALUES ('m2', ?, 'fable', 1.0, 1, 0, 0, 0, 0, 0)", (A,))
    other.execute("COMMIT")
    other.close()
    thread.join()
    assert set(world.known()) == {"m1", "m2"}


def test_messages_and_how_far_the_log_was_read_are_written_together(world: World) -> None:
    world.home.mkdir()
    place = Place(inode=1, size=2, offset=2, state="{}")
    spent = Spent(id="m1", time=time.time(), model="fable", usage=Usage(input=1))

    def act(ledger: Ledger) -> None:
        with pytest.raises(sqlite3.ProgrammingError):
            ledger.add([(A, spent)], [(A, object(), place)])  # type: ignore[list-item]
        assert list(ledger.batches(0, [])) == []
        ledger.add([(A, spent)], [(A, "x", place)])
        assert ledger.places() == {(A, "x"): place}

    with_ledger(str(world.home), print, act)
