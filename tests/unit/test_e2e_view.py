"""The combined view as files: what is written, what is written again, and that nothing in artifacts breaks it. How it
looks and works in a browser is in tests/page."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mngr.e2e import evidence
from mngr.e2e import view as view_module
from mngr.e2e.block import block_id
from mngr.e2e.serve import ViewServer
from mngr.e2e.view import NotOurs, Part, View
from tests.home import wait_until
from tests.page.artifacts import START, cast, make_run, make_test, step

BLOCK = "# Make one.\nmngr create foo"
HELLO = cast((0.5, "o", "hello\r\n"), (1.0, "m", "1 say it"), (2.0, "o", "bye\r\n"))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path / "e2e"


def data(view: View, path: str) -> Any:
    """As the page gets it."""
    text = (view.output / "data" / f"{path}.js").read_text(encoding="ascii")
    found = re.fullmatch(r'deliver\("([^"]+)", (.*)\);\n', text)
    assert found
    assert found[1] == path
    return json.loads(found[2])


def test_each_run_has_its_tests_and_each_test_its_steps_and_recordings(top: Path) -> None:
    run = make_run(top, "first")
    steps = (step(1, "mngr list", at=2, out="\x1b[1mNAME\x1b[0m", comment="look"), step(2, "false", exit_code=1))
    make_test(run, "test_it", "failed", steps, {"foo.cast": HELLO}, (BLOCK,), failure="E  assert", slug="t")
    view = View(top, top / "view")
    built = view.build()
    assert (built.runs, built.tests, built.written, built.problems) == (1, 1, 1, [])
    assert [run["name"] for run in data(view, "index")["runs"]] == ["first"]
    (row,) = data(view, "runs/first")
    assert (row["key"], row["name"], row["status"], row["duration"], row["casts"]) == (
        "t",
        "test_it",
        "failed",
        1.25,
        1,
    )
    assert "mngr create foo" in data(view, "search/first")["t"]
    assert "mngr list" in data(view, "search/first")["t"]
    test = data(view, "tests/first/t")
    assert test["failure"] == "E  assert"
    assert [(s["n"], s["command"], s["exit_code"], s["lines"]) for s in test["steps"]] == [
        (1, "mngr list", 0, [["o", "\x1b[1mNAME\x1b[0m"]]),
        (2, "false", 1, []),
    ]
    (shown,) = test["casts"]
    assert (shown["title"], shown["started"], shown["duration"]) == ("foo", START, 2.0)
    assert data(view, shown["path"]) == [[0.5, "o", "hello\r\n"], [1.0, "m", "1 say it"], [2.0, "o", "bye\r\n"]]
    assert (view.output / "data" / f"{shown['path']}.cast").read_text() == HELLO


def test_runs_are_sorted_newest_first_and_the_link_to_the_newest_is_no_run(top: Path) -> None:
    for name, age in (("b", 2), ("a", 3), ("c", 1)):
        make_run(top, name, started=START - age)
    (top / "latest").symlink_to("c")
    view = View(top, top / "view")
    view.build()
    view.build()  # the view itself lies among them now
    assert [run["name"] for run in data(view, "index")["runs"]] == ["c", "b", "a"]


def test_one_run_can_be_shown_alone(top: Path) -> None:
    make_run(top, "other")
    make_test(make_run(top, "mine"), "test_it")
    view = View(top / "mine", top / "view")
    assert view.build().runs == 1
    assert [run["name"] for run in data(view, "index")["runs"]] == ["mine"]


def stamps(directory: Path) -> dict[str, int]:
    return {
        str(path.relative_to(directory)): path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("in_another_process", [True, False])
def test_what_has_not_changed_is_not_written_again(top: Path, in_another_process: bool) -> None:
    run = make_run(top, "r", finished=None)
    for name in ("one", "two"):
        make_test(run, name, steps=(step(1, "true"),), casts={"c.cast": HELLO}, slug=name)
    view = View(top, top / "view")
    first = view.build()
    before = stamps(view.output)
    view = View(top, top / "view") if in_another_process else view
    again = view.build()
    assert (again.written, again.version) == (0, first.version)
    assert stamps(view.output) == before

    with open(run / "one" / "steps.jsonl", "a") as file:
        file.write(json.dumps(step(2, "echo more")) + "\n")
    view = View(top, top / "view") if in_another_process else view
    third = view.build()
    assert third.written == 1
    assert third.version != first.version
    after = stamps(view.output)
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {
        ".mngr-e2e-view/r.json",
        "data/index.js",
        "data/runs/r.js",
        "data/search/r.js",
        "data/tests/r/one.js",
        "data/tests/r/one/c.cast",
    }


def test_pages_of_another_version_of_the_code_are_written_anew(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_test(make_run(top, "r"), "test_it")
    View(top, top / "view").build()
    monkeypatch.setattr(view_module, "_CODE", "another")
    assert View(top, top / "view").build().written == 1


def test_a_page_that_somebody_removed_is_written_again(top: Path) -> None:
    make_test(make_run(top, "r"), "test_it", slug="t")
    view = View(top, top / "view")
    view.build()
    (view.output / "data" / "tests" / "r" / "t.js").unlink()
    assert View(top, top / "view").build().written == 1
    assert data(view, "tests/r/t")["name"] == "test_it"


def test_what_is_gone_is_gone_from_the_view(top: Path) -> None:
    run = make_run(top, "r", finished=None)
    make_run(top, "other")
    make_test(run, "one", slug="one", casts={"c.cast": HELLO})
    make_test(run, "two", slug="two")
    view = View(top, top / "view")
    view.build()
    shutil.rmtree(run / "one")
    shutil.rmtree(top / "other")
    assert (view.build().runs, view.build().tests) == (1, 1)
    left = set(stamps(view.output))
    assert not {path for path in left if "one" in path or "other" in path}
    assert "data/tests/r/two.js" in left


def test_a_test_that_is_removed_while_it_is_read_is_passed_over(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(top, "r")
    make_test(run, "one", slug="one", casts={"c.cast": HELLO})
    make_test(run, "two", slug="two")
    read = evidence.read_test

    def and_then_it_is_gone(directory: str, *rest: Any) -> Any:
        found = read(directory, *rest)
        if directory.endswith("one"):
            shutil.rmtree(directory)
        return found

    monkeypatch.setattr(view_module, "read_test", and_then_it_is_gone)
    assert View(top, top / "view").build().tests == 1


def test_a_folder_with_other_files_is_left_alone(top: Path, tmp_path: Path) -> None:
    make_run(top, "r")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("my page")
    with pytest.raises(NotOurs):
        View(top, mine).build()
    assert os.listdir(mine) == ["index.html"]


DAMAGE = {
    "an empty result": ("result.json", b""),
    "half of a result": ("result.json", b'{"schema": 1, "status": "pas'),
    "a result that is a list": ("result.json", b"[1, 2]"),
    "a result of other types": (
        "result.json",
        b'{"name": 5, "file": [], "line": "x", "status": {}, "started": "now", "duration": true, "docstring": {}}',
    ),
    "lists of other things": (
        "result.json",
        b'{"failure": 3, "blocks": {"a": 1}, "casts": [1, {"file": "../../../secret"}, {"file": 7}]}',
    ),
    "numbers that are none": (
        "result.json",
        b'{"status": "passed", "started": NaN, "duration": -Infinity, "line": 1e999}',
    ),
    "a result nested too deep": ("result.json", b"[" * 100_000),
    "bytes that are no text": ("result.json", b"\xff\xfe\x00\x80"),
    "a step that was cut": ("steps.jsonl", b'{"n": 1, "command": "true"}\n{"n": 2, "comm'),
    "steps of other types": (
        "steps.jsonl",
        b'{"n": "x", "time": [], "lines": [1, ["o"], ["o", 5], {}]}\n7\n"a"\nnull\n',
    ),
    "an empty recording": ("foo.cast", b""),
    "a recording without a header": ("foo.cast", b"hello\n"),
    "a recording with half an event": ("foo.cast", HELLO.encode() + b'[3.0, "o", "ha'),
    "a recording of other types": (
        "foo.cast",
        b'{"version": 2, "width": "a", "height": []}\n[1, "o", 5]\n[null, 3]\n{}\n["x", "o", "y"]\n',
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_never_break_the_view(top: Path, damage: str) -> None:
    file, content = DAMAGE[damage]
    run = make_run(top, "r")
    make_test(run, "test_whole", slug="whole")
    directory = make_test(run, "test_it", steps=(step(1, "true"),), casts={"foo.cast": HELLO}, slug="t")
    (directory / file).write_bytes(content)
    view = View(top, top / "view")
    assert view.build().tests == 2
    test = data(view, "tests/r/t")
    assert isinstance(test["name"], str)
    assert all(isinstance(s["lines"], list) and isinstance(s["n"], int) for s in test["steps"])
    assert all(cast["file"] == "foo.cast" for cast in test["casts"])
    assert data(view, "tests/r/whole")["status"] == "passed"


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("result.json", b'{"sta', "r/t/result.json"),
        ("steps.jsonl", b'{"n": 1}\n{"n"', "r/t/steps.jsonl:2"),
        ("foo.cast", b"nonsense", "r/t/foo.cast"),
        ("../run.json", b"{", "r/run.json"),
    ],
)
def test_what_cannot_be_read_is_counted_and_named(top: Path, file: str, content: bytes, told: str) -> None:
    directory = make_test(make_run(top, "r"), "test_it", slug="t")
    (directory / file).write_bytes(content)
    for _ in range(2):  # the second time it is remembered, not read
        view = View(top, top / "view")
        assert [problem.path for problem in view.build().problems] == [told]
        assert data(view, "index")["problems"]["count"] == 1


def test_a_test_without_a_result_is_there_and_unreadable(top: Path) -> None:
    directory = make_test(make_run(top, "r"), "test_it", steps=(step(1, "true"),), slug="t")
    (directory / "result.json").unlink()
    view = View(top, top / "view")
    view.build()
    assert [(row["name"], row["status"]) for row in data(view, "runs/r")] == [("t", "unreadable")]


@pytest.mark.parametrize("way", ["a link", "a path as content"])
def test_a_recording_leads_to_no_other_file(top: Path, tmp_path: Path, way: str) -> None:
    secret = tmp_path / "secret.cast"
    secret.write_text(HELLO)
    directory = make_test(make_run(top, "r"), "test_it", slug="t")
    if way == "a link":
        (directory / "foo.cast").symlink_to(secret)
    else:
        (directory / "foo.cast").write_text(str(secret))
    view = View(top, top / "view")
    view.build()
    assert data(view, "tests/r/t")["casts"] == []


def test_names_of_any_kind_become_addresses_that_need_no_quoting(top: Path) -> None:
    names = ["plain", "a b", "#?&%/".replace("/", "-"), "ünï", "tutorial", "-x", "\udcff", "x" * 200]
    for name in names:
        make_test(make_run(top, name), "test_it", slug=name)
    view = View(top, top / "view")
    view.build()
    keys = [run["key"] for run in data(view, "index")["runs"]]
    assert len(set(keys)) == len(names)
    assert "plain" in keys
    assert "tutorial" not in keys  # that is a page
    for key in keys:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", key)
        (row,) = data(view, f"runs/{key}")
        assert data(view, f"tests/{key}/{row['key']}")["name"] == "test_it"


def test_what_tests_print_cannot_leave_its_string(top: Path) -> None:
    nasty = '</script><!-- \u2028 \u2029 \ud800 \x00 "); alert(1); (" ` ${x} \\'
    make_test(make_run(top, "r"), nasty, steps=(step(1, nasty, out=nasty, comment=nasty),), slug="t", failure=nasty)
    view = View(top, top / "view")
    view.build()
    for path in ("index", "runs/r", "search/r", "tests/r/t"):
        text = (view.output / "data" / f"{path}.js").read_bytes()
        assert b"<" not in text
        assert all(byte < 128 for byte in text)
    assert data(view, "tests/r/t")["name"] == nasty


def tutorial_of(*texts: str) -> list[Part]:
    return [Part("FIRST", 1, "# Words before."), *(Part("FIRST", 3, text, block_id(text)) for text in texts)]


def shown_blocks(view: View) -> dict[str, list[tuple[str, str, str]]]:
    return {
        part["text"]: [(proof["run"], proof["name"], proof["status"]) for proof in part["proofs"]]
        for file in data(view, "tutorial")
        for part in file["parts"]
    }


def test_a_block_has_the_last_verdict_of_each_of_its_tests_over_all_runs(top: Path) -> None:
    old = make_run(top, "old", started=START - 100)
    make_test(old, "test_a", "failed", blocks=(BLOCK,), started=START - 100)
    make_test(old, "test_b", "failed", blocks=(BLOCK,), started=START - 99)
    new = make_run(top, "new")
    make_test(new, "test_a", "passed", blocks=(BLOCK,))
    make_test(
        make_run(top, "now", started=START + 9, finished=None), "test_b", "running", blocks=(BLOCK,), started=START + 9
    )
    view = View(top, top / "view", ["t.sh"], lambda _: tutorial_of(BLOCK, "true"))
    view.build()
    assert shown_blocks(view) == {
        "# Words before.": [],
        BLOCK: [("new", "test_a", "passed"), ("old", "test_b", "failed")],  # a test at work has no verdict yet
        "true": [],
    }


def test_a_test_that_cites_a_block_no_longer_proves_it_no_longer(top: Path) -> None:
    make_test(make_run(top, "old", started=START - 100), "test_a", blocks=(BLOCK,), started=START - 100)
    make_test(make_run(top, "new"), "test_a", blocks=("true",))
    view = View(top, top / "view", ["t.sh"], lambda _: tutorial_of(BLOCK, "true"))
    view.build()
    assert shown_blocks(view)[BLOCK] == []
    assert shown_blocks(view)["true"] == [("new", "test_a", "passed")]


def test_a_block_that_is_cited_but_in_no_tutorial_is_shown_apart(top: Path) -> None:
    make_test(make_run(top, "r"), "test_a", blocks=(BLOCK,))
    view = View(top, top / "view", ["t.sh"], lambda _: tutorial_of("true"))
    view.build()
    assert [file["path"] for file in data(view, "tutorial")] == ["t.sh", None]
    assert shown_blocks(view)[BLOCK] == [("r", "test_a", "passed")]


def test_the_newest_run_names_the_tutorials_unless_they_are_given(top: Path, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.sh", tmp_path / "other.sh"
    make_run(top, "old", started=START - 9, tutorial=(other,))
    make_run(top, "new", tutorial=(mine,))
    for given, shown in (([], str(mine)), (["given.sh"], "given.sh")):
        view = View(top, top / "view", given, lambda _: tutorial_of("true"))
        view.build()
        assert [file["path"] for file in data(view, "tutorial")] == [shown]


def test_a_tutorial_that_cannot_be_read_is_told(top: Path, tmp_path: Path) -> None:
    make_run(top, "r", tutorial=(tmp_path / "gone.sh",))

    def read(path: str) -> list[Part]:
        raise ValueError("it is gone")

    assert [problem.what for problem in View(top, top / "view", [], read).build().problems] == ["it is gone"]


def test_without_the_player_the_view_is_written_and_says_so(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_test(make_run(top, "r"), "test_it", casts={"c.cast": HELLO}, slug="t")
    monkeypatch.setattr(view_module, "PLAYER", top / "nowhere.js")
    view = View(top, top / "view")
    assert view.build().player is False
    assert data(view, "index")["player"] is False
    assert len(data(view, "tests/r/t")["casts"]) == 1


def test_the_folder_names_no_other_place(top: Path) -> None:
    make_test(make_run(top, "r"), "test_it")
    view = View(top, top / "view")
    view.build()
    ours = [
        path
        for path in view.output.rglob("*")
        if path.suffix in (".html", ".js", ".css") and "player" not in path.parts
    ]
    assert len(ours) > 8
    for path in ours:
        assert not re.search(r"https?:|//[a-z]+\.[a-z]", path.read_text()), path


def get(server: ViewServer, path: str, host: str | None = None) -> tuple[int, bytes]:
    port = int(server.url.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_the_server_gives_the_folder_and_says_that_it_is_live(top: Path) -> None:
    make_run(top, "r")
    with ViewServer(View(top, top / "view")) as server:
        assert b"<!DOCTYPE html>" in get(server, "/")[1]
        assert get(server, "/data/live.js?1")[1] == b"deliver('live', true);\n"
        assert get(server, "/data/index.js")[0] == 200
        for path in ("/data/", "/../run.json", "/%2e%2e/r/run.json", "/nothing"):
            assert get(server, path)[0] == 404


def test_the_server_answers_to_no_name_but_this_machines(top: Path) -> None:
    make_run(top, "r")
    with ViewServer(View(top, top / "view")) as server:
        port = server.url.rstrip("/").rpartition(":")[2]
        assert get(server, "/", f"localhost:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil.example"):
            assert get(server, "/", host)[0] == 403
            assert get(server, "/events", host)[0] == 403


def test_the_server_gives_nothing_but_the_page(top: Path, tmp_path: Path) -> None:
    make_run(top, "r")
    (tmp_path / "secret").write_text("x")
    with ViewServer(View(top, top / "view")) as server:
        (top / "view" / "data" / "leak.js").symlink_to(tmp_path / "secret")
        (top / "view" / ".notes").write_text("x")
        assert get(server, "/data/index.js")[0] == 200
        for path in ("/data/leak.js", "/.notes", "/data/../.notes", "/../secret", "/%2e%2e/secret"):
            assert get(server, path)[0] == 404


def test_a_page_is_told_of_a_new_version(top: Path) -> None:
    run = make_run(top, "r", finished=None)
    view = View(top, top / "view")
    with ViewServer(view) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", f"/events?version={server.version}")
        response = connection.getresponse()
        wait_until(lambda: server.pages == 1)
        make_test(run, "test_new", "running", slug="new")
        assert response.readline() == f"data: {data(view, 'index')['version']}\n".encode()
        assert [row["name"] for row in data(view, "runs/r")] == ["test_new"]
        response.close()
        connection.close()


def test_an_old_page_is_told_at_once(top: Path) -> None:
    make_run(top, "r")
    with ViewServer(View(top, top / "view")) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/events?version=old")
        response = connection.getresponse()
        assert response.readline() == f"data: {server.version}\n".encode()
        response.close()
        connection.close()


def test_the_server_ends_although_a_page_is_open(top: Path) -> None:
    make_run(top, "r")
    with ViewServer(View(top, top / "view")) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)  # shorter than the next heartbeat
        connection.request("GET", f"/events?version={server.version}")
        response = connection.getresponse()
        wait_until(lambda: server.pages == 1)
    assert b"data" not in response.read()
    connection.close()
