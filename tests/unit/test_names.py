"""Who has which name: one winner per name, however many ask at once; nobody frees what is another's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mngr.errors import NoSuchAgent
from mngr.model import Ref
from mngr.names import Names, NameTaken


def ref(id: str, name: str = "foo") -> Ref:
    return Ref(id=id, name=name, type="command", host="local")


@pytest.fixture
def names(tmp_path: Path) -> Names:
    return Names(str(tmp_path))


def test_a_reserved_name_is_found_with_everything_that_is_known_of_it(names: Names) -> None:
    there = Ref(id="a1", name="foo", type="claude", host="box.ssh")
    names.reserve(there)
    assert names.find("foo") == names.get("foo") == names.by_id("a1") == there
    assert names.all() == [there]
    assert names.by_id("b2") is None


def test_nothing_is_there_before_the_first_name(names: Names) -> None:
    assert names.all() == []
    assert names.find("foo") is None
    names.release(ref("a1"))
    with pytest.raises(NoSuchAgent, match="no agent called foo"):
        names.get("foo")


def test_a_name_that_is_not_there_suggests_the_nearest(names: Names) -> None:
    names.reserve(ref("a1", "fix-login"))
    with pytest.raises(NoSuchAgent) as refused:
        names.get("fix-logn")
    assert refused.value.hint == "did you mean fix-login?"


def test_a_taken_name_tells_who_holds_it(names: Names) -> None:
    names.reserve(ref("a1"))
    with pytest.raises(NameTaken, match="there is already an agent called foo") as refused:
        names.reserve(ref("b2"))
    assert refused.value.holder == ref("a1")
    assert names.get("foo") == ref("a1")


def test_a_release_frees_only_ones_own_name(names: Names) -> None:
    names.reserve(ref("a1"))
    names.release(ref("b2"))
    assert names.get("foo") == ref("a1")
    names.release(ref("a1"))
    names.release(ref("a1"))
    assert names.find("foo") is None
    names.reserve(ref("b2"))
    assert names.get("foo") == ref("b2")


def test_of_many_threads_one_gets_the_name(names: Names) -> None:
    """In rounds, so that the first reservation ever (which makes the directory) is among them."""
    for number in range(20):
        name = f"foo-{number}"
        won: list[str] = []
        ready = threading.Barrier(8)

        def work(id: str, name: str = name, won: list[str] = won, ready: threading.Barrier = ready) -> None:
            ready.wait()
            try:
                names.reserve(ref(id, name))
            except NameTaken:
                return
            won.append(id)

        in_threads(work, 8)
        assert len(won) == 1
        assert names.get(name).id == won[0]


def test_reserving_and_releasing_side_by_side_never_takes_a_name_from_its_holder(names: Names) -> None:
    """Each holder sees its own entry from the moment it has it until it gives it back."""
    wrong: list[str] = []
    had = Counter[str]()

    def work(id: str) -> None:
        for _ in range(150):
            try:
                names.reserve(ref(id))
            except NameTaken:
                names.release(ref(id))  # not ours: must change nothing
                continue
            held = names.find("foo")
            if held != ref(id):
                wrong.append(f"{id} holds it, and {held} is there")
            had[id] += 1
            names.release(ref(id))

    in_threads(work, 6)
    assert wrong == []
    assert sum(had.values()) > 0
    assert names.find("foo") is None


PROCESS = """
import sys
from mngr.model import Ref
from mngr.names import Names, NameTaken
names, id = Names(sys.argv[1]), sys.argv[2]
sys.stdin.readline()
for number in range(200):
    try:
        names.reserve(Ref(id=id, name=f"foo-{number}", type="command", host="local"))
        print(number)
    except NameTaken as taken:
        assert taken.holder.id != id, taken.holder
        names.release(Ref(id=id, name=f"foo-{number}", type="command", host="local"))
"""


def test_of_many_processes_one_gets_each_name(names: Names, tmp_path: Path) -> None:
    ids = [f"id{number}" for number in range(4)]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, tmp_path, id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for id in ids
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=30)[0].split() for worker in workers]
    won = {id: set(map(int, numbers)) for id, numbers in zip(ids, said, strict=True)}
    assert [worker.returncode for worker in workers] == [0] * 4
    assert sorted(number for numbers in won.values() for number in numbers) == list(range(200))
    assert all(names.get(f"foo-{number}").id == id for id, numbers in won.items() for number in numbers)


def test_what_is_no_entry_is_passed_over(names: Names, tmp_path: Path) -> None:
    names.reserve(ref("a1"))
    there = tmp_path / "names"
    (there / "bar").write_text("not a link")
    (there / "baz").symlink_to("too/few")
    (there / "Not A Name").symlink_to("local/b2/command")
    (there / "qux").mkdir()
    assert names.all() == [ref("a1")]
    for name in ("bar", "baz", "qux", "Not A Name", "../names/foo", ""):
        assert names.find(name) is None
        with pytest.raises(NoSuchAgent):
            names.get(name)


def test_a_name_is_a_leftover_only_after_its_agent_had_time_to_appear(names: Names, tmp_path: Path) -> None:
    names.reserve(ref("a1"))
    assert not names.is_leftover(ref("a1"))
    os.utime(tmp_path / "names" / "foo", (1, 1), follow_symlinks=False)
    assert names.is_leftover(ref("a1"))
    assert not names.is_leftover(ref("a1", "bar"))


def test_nobody_else_may_read_the_names(names: Names, tmp_path: Path) -> None:
    names.reserve(ref("a1"))
    assert (tmp_path / "names").stat().st_mode & 0o077 == 0


def in_threads(work: Callable[[str], None], count: int) -> None:
    """`work` side by side, each with an id of its own."""
    threads = [threading.Thread(target=work, args=(f"id{number}",)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
