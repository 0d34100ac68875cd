"""Hosts on Modal: the provider and its bridge, then the verbs. The SDK is the real one, the other end a stand-in."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import modal as sdk
import pytest

from mngr import hosts, process
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.hosts.modal import APP, ModalProvider
from mngr.hosts.owner import home_id
from mngr.hosts.place import RUNNING, STOPPED, Place, Places
from mngr.hosts.probe import arrive
from mngr.testing import Control, HostConformance
from mngr.testing.terminal import Terminal
from tests.home import Mngr, command_lines, wait_until
from tests.places.sandboxes import Sandboxes, end_servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host

PROVIDER = ModalProvider()
STAY = ("command", "--", "sleep", "1000")


def make(name: str = "one", **options: str) -> Place:
    place = Place(name=f"{name}.modal", made=True, options=options)
    place = place.replace(id=PROVIDER.make(name, options, lambda _: None))
    return arrive(PROVIDER, place)


def said(place: Place, script: str) -> str:
    host = PROVIDER.reach(place)
    try:
        return hosts.check(host, script)
    finally:
        assert host.lines is not None
        host.lines.close()


def of_this_home(modal: Sandboxes) -> list[dict[str, Any]]:
    return [sandbox for sandbox in modal.running() if sandbox["tags"]["mngr.home"] == home_id()]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for the tests of this file that need none of their own: so they share the process that has the SDK."""
    home = tmp_path_factory.mktemp("m")
    yield home
    end_servers(str(home))


@pytest.fixture
def stand_in(sandboxes: Sandboxes, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Sandboxes:
    """In that home. Whoever makes hosts removes them."""
    for name, value in {**sandboxes.env, "MNGR_HOME": str(kept)}.items():
        monkeypatch.setenv(name, value)
    return sandboxes


@pytest.fixture
def place(stand_in: Sandboxes) -> Iterator[Place]:
    place = make()
    yield place
    PROVIDER.remove(place)


@pytest.fixture(scope="module")
def shared(sandboxes: Sandboxes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, dict[str, str]]]:
    """A host that many tests use, and its environment: in a home where nobody looks for others."""
    env = {**sandboxes.env, "MNGR_HOME": str(tmp_path_factory.mktemp("m"))}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        place = make("shared")
    yield place, env
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        PROVIDER.remove(place)
    end_servers(env["MNGR_HOME"])


@pytest.fixture
def there(shared: tuple[Place, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Place:
    """For tests that need a host and leave it as it was."""
    place, env = shared
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return place


class TestModal(HostConformance):
    @pytest.fixture
    def host(self, shared: tuple[Place, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
        place, env = shared
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        host = PROVIDER.reach(place)
        yield host
        assert host.lines is not None
        host.lines.close()

    @pytest.fixture
    def control(self, sandboxes: Sandboxes) -> Iterator[Control]:
        """One that crashes is gone, with its files: there is nothing to boot."""
        yield Control(cut=lambda: sandboxes.ask(stall=True), heal=lambda: sandboxes.ask(stall=False))
        sandboxes.ask(stall=False)


def bridge(place: Place, script: str, **how: int) -> subprocess.Popen[bytes]:
    argv = PROVIDER.reach(place).argv(script, [])
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **how}
    return subprocess.Popen(argv, start_new_session=True, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_what_a_killed_bridge_ran_ends(there: Place, number: signal.Signals) -> None:
    with bridge(there, "sleep 1001 & echo up; sleep 1002") as process:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
    wait_until(lambda: not {"sleep 1001", "sleep 1002"} & set(said(there, "ps -A -o args=").splitlines()), 30)


def test_what_is_not_wanted_any_more_before_it_has_begun_ends(there: Place, sandboxes: Sandboxes) -> None:
    """To start it is not to see it run: for a moment there is nobody to end."""
    host, pipe, before = PROVIDER.reach(there), process.PIPE, execs(sandboxes)
    for child in [host.start("exec sleep 1003", [], stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(8)]:
        child.end()
        for fd in (child.stdin, child.stdout, child.stderr):
            assert fd is not None
            os.close(fd)
    wait_until(lambda: execs(sandboxes) >= before + 2 * 8, 60, "each to be started, and looked for")
    wait_until(lambda: not any("sleep 1003" in line for line in command_lines()), 60, "nobody to be left")


def execs(sandboxes: Sandboxes) -> int:
    return int(sandboxes.ask(calls=True).get("TaskExecStart", 0))


def test_the_bridge_has_ended_when_nobody_reads(there: Place) -> None:
    with bridge(there, "while echo more; do :; done") as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) != 0
    wait_until(lambda: "echo more" not in said(there, "ps -A -o args="), 30)


def test_a_connection_that_is_dropped_is_not_noticed(there: Place, sandboxes: Sandboxes) -> None:
    with bridge(there, "cat") as process:
        assert process.stdin
        assert process.stdout
        for line in (b"one\n", b"two\n", b"three\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
            sandboxes.ask(cut=True)
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(30) == 0


def test_to_stop_is_to_keep_the_files(stand_in: Sandboxes, kept: Path) -> None:
    place = make("two", cpu="0.5", memory="256", timeout="2h")
    Places(str(kept)).keep(place)
    assert said(place, "echo kept >~/file; sleep 1000 & uname -s") == "Linux\n"
    stopped = PROVIDER.stop(place)
    assert (stopped.state, stopped.id) == (STOPPED, "")
    assert PROVIDER.find() == {}
    record = Places(str(kept)).find("two.modal")
    assert record is not None
    assert record.options["snapshot"].startswith("im-")
    with pytest.raises(HostUnreachable, match="stopped"):
        said(stopped, "true")
    started = arrive(PROVIDER, PROVIDER.start(stopped))
    assert started.state == RUNNING
    assert started.id != place.id
    assert said(started, "cat ~/file; ps -A -o args= | grep -c '[s]leep 1000' || :") == "kept\n0\n"
    (there,) = [each for each in stand_in.running() if each["id"] == started.id]
    assert there["definition"]["timeout_secs"] == 2 * 3600
    assert there["definition"]["resources"].items() >= {"memory_mb": 256, "milli_cpu": 500}.items()
    assert PROVIDER.start(started) == started
    assert PROVIDER.start(stopped).id == started.id  # a start that was killed had made it
    PROVIDER.remove(started)
    with pytest.raises(MngrError, match="nobody kept its files") as raised:
        PROVIDER.start(started)
    assert record.options["snapshot"] in str(raised.value.hint)  # older than what has been done since


def test_a_snapshot_is_an_image_for_new_hosts(place: Place) -> None:
    said(place, "echo prepared >~/file")
    image = PROVIDER.snapshot(place, "any")
    other = make("other", image=image)
    assert said(other, "cat ~/file") == "prepared\n"
    assert PROVIDER.find() == {"one": place.id, "other": other.id}
    PROVIDER.remove(other)
    assert PROVIDER.find() == {"one": place.id}
    PROVIDER.remove(other)


def test_another_home_has_its_own_hosts(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(MngrError, match=r"already"):
        make("one")
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    assert PROVIDER.find() == {}
    mine = make("one")
    assert PROVIDER.find() == {"one": mine.id}
    PROVIDER.remove(mine)
    end_servers(str(tmp_path))


def test_what_a_killed_create_left_is_found_by_its_name(place: Place) -> None:
    PROVIDER.remove(place.replace(id=""))
    assert PROVIDER.find() == {}


def test_its_variables_and_its_network_are_as_told(stand_in: Sandboxes) -> None:
    sdk.Secret.objects.create("given", {"WORD": "hush"}, allow_existing=True)
    place = make("three", secret="given", network="none")
    assert said(place, "echo $WORD; ls /sys/class/net") == "hush\nlo\n"
    PROVIDER.remove(place)
    place = make("four", allow="198.51.100.0/24,203.0.113.7/32")
    assert sorted(said(place, "cut -f 2 /proc/net/route").split()[1:]) == ["006433C6", "077100CB"]
    PROVIDER.remove(place)


def test_its_image_can_be_a_dockerfile(stand_in: Sandboxes, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm\nRUN echo built >/built\n")
    place = make("five", dockerfile=str(tmp_path / "Dockerfile"))
    assert said(place, "cat /built") == "built\n"
    PROVIDER.remove(place)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": "25h"}, "24 hours at most"),
        ({"timeout": "soon"}, "timeout takes"),
        ({"cpu": "many"}, "cpu is a number"),
        ({"network": "host"}, "none or left out"),
        ({"network": "none", "allow": "10.0.0.0/8"}, "allows nothing"),
        ({"image": "debian", "dockerfile": "x"}, "two ways"),
        ({"dockerfile": "/nowhere"}, "no dockerfile"),
        ({"secret": "nobody-made-it"}, "nobody-made-it"),
        ({"image": "im-nobodymadeit"}, "im-nobodymadeit"),
    ],
)
def test_what_cannot_be_is_refused(stand_in: Sandboxes, options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        PROVIDER.make("six", options, lambda _: None)
    assert PROVIDER.find() == {}


def test_a_create_that_fails_leaves_nothing(stand_in: Sandboxes) -> None:
    stand_in.ask(lose="SandboxCreateV2", times=4)  # the SDK asks as often
    with pytest.raises(HostUnreachable):
        make("nine")
    assert of_this_home(stand_in) == []


def test_an_image_that_cannot_be_built_is_told(stand_in: Sandboxes) -> None:
    with pytest.raises(MngrError, match="could not be built: there is no such image: FROM nobody/made:it"):
        PROVIDER.make("seven", {"image": "nobody/made:it"}, lambda _: None)


def test_one_whose_time_is_over_says_so(stand_in: Sandboxes) -> None:
    made = PROVIDER.make("eight", {"timeout": "3"}, lambda _: None)  # nobody goes there: that could take longer
    place = Place(name="eight.modal", made=True, id=made, options={"timeout": "3"})
    sandbox = sdk.Sandbox.from_id(place.id)
    with pytest.raises(sdk.exception.SandboxTimeoutError):
        sandbox.wait()
    with pytest.raises(HostUnreachable, match=f"{place.id} has ended .*end of its time"):
        said(place, "true")
    with pytest.raises(MngrError, match="nobody kept its files"):
        PROVIDER.start(place)
    PROVIDER.remove(place)


def test_a_service_that_does_not_answer_is_not_an_empty_one(stand_in: Sandboxes) -> None:
    make_nothing = sdk.App.lookup(APP, create_if_missing=True)
    assert make_nothing.app_id
    stand_in.ask(refuse="SandboxListV2", times=100)
    try:
        with pytest.raises(HostUnreachable, match="Modal cannot be reached"):
            PROVIDER.find()
    finally:
        stand_in.ask(refuse="SandboxListV2", times=0)


def test_one_word_changes_and_nothing_else(mngr: Mngr, repo: Path, modal: Sandboxes) -> None:
    mngr.ok("create", "foo@.modal", "command", "--", "cat")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "30")
    assert mngr.ok("list", "--format", "{name} {state} {host} {branch}") == "foo running foo.modal mngr/foo\n"
    assert mngr.ok("exec", "foo", "--", "git", "log", "-1", "--format=%s") == "First commit\n"
    mngr.ok("message", "foo", "-m", "hello")
    wait_until(lambda: "hello" in mngr.ok("capture", "foo"))
    mngr.ok("exec", "foo", "--", "sh", "-c", "echo new >new; git add new; git commit -qm 'From afar'; echo more >more")
    assert mngr.ok("pull", "foo").startswith("pulled foo: mngr/foo has 1 new commit")
    assert mngr.home.run("git", "log", "-1", "--format=%s", "mngr/foo") == "From afar\n"
    (before,) = of_this_home(modal)
    assert before["tags"]["mngr.host"] == "foo"
    mngr.ok("stop", "foo")
    mngr.ok("start", "foo")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "30")
    assert mngr.ok("exec", "foo", "--", "cat", "more") == "more\n"
    mngr.ok("destroy", "-f", "foo")
    assert mngr.ok("list") == "no agents yet: mngr create NAME command -- PROGRAM\n"
    assert of_this_home(modal) == []


def test_who_has_no_account_is_told_so_in_one_line(mngr: Mngr, repo: Path, modal: Sandboxes) -> None:
    del mngr.home.env["MODAL_TOKEN_ID"]
    result = mngr("create", "foo@.modal", *STAY)
    assert result.code == HostUnreachable.code
    assert re.search("Modal does not let you in: Token missing", result.err)
    assert "modal token new" in result.err
    assert "Traceback" not in result.err
    assert mngr.ok("list").startswith("no agents yet")


def test_who_has_no_sdk_is_told_how_to_get_it(mngr: Mngr, repo: Path, modal: Sandboxes) -> None:
    (mngr.home.root / "hidden").mkdir()
    (mngr.home.root / "hidden" / "modal.py").write_text("raise ImportError('hidden')\n")
    result = mngr("create", "foo@.modal", *STAY, env={"PYTHONPATH": str(mngr.home.root / "hidden")})
    assert result.code == 1
    assert "pip install 'mngr[modal]'" in result.err


def test_the_other_verbs_never_import_the_sdk(mngr: Mngr, modal: Sandboxes) -> None:
    (mngr.home.root / "hidden").mkdir()
    (mngr.home.root / "hidden" / "modal.py").write_text("raise SystemExit('imported')\n")
    env = {"PYTHONPATH": str(mngr.home.root / "hidden")}
    assert mngr.ok("list", env=env).startswith("no agents yet")
    assert mngr.ok("help", "create", env=env)


def test_it_is_found_when_everything_here_is_lost(mngr: Mngr, repo: Path, modal: Sandboxes) -> None:
    mngr.ok("create", "foo@.modal", "--with", "timeout=1h", *STAY)
    for lost in ("hosts", "names"):
        shutil.rmtree(mngr.home.mngr_home / lost)
    assert mngr.ok("list").startswith("no agents yet")
    assert "foo.modal" in mngr.ok("host", "list", "--discover")
    mngr.ok("host", "add", "foo.modal", "--adopt")
    assert [each["state"] for each in mngr.json("list")] == ["running"]
    mngr.ok("destroy", "-f", "foo")
    mngr("host", "remove", "foo.modal", "--purge")
    assert of_this_home(modal) == []


def test_connect_gives_the_terminal(mngr: Mngr, repo: Path, modal: Sandboxes) -> None:
    mngr.ok("create", "foo@.modal", "command", "--", "cat")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "30")
    clients = "tmux -S \"$(ls -d /tmp/mngr-0/*)\" list-clients -F '#{client_width}x#{client_height}'"

    def size() -> str:
        return mngr.ok("exec", "foo", "--", "sh", "-c", clients).strip()

    env = [f"{key}={value}" for key, value in mngr.home.env.items()]
    with Terminal(
        ["env", "-C", str(repo), "-i", *env, "TERM=xterm", mngr.program, "connect", "foo"], 30, 100
    ) as terminal:
        terminal.expect(b"[")  # whatever tmux draws first
        terminal.write(b"typed here\r")
        terminal.expect(b"typed here")  # by its terminal
        terminal.expect(b"typed here")  # by cat
        assert size() == "100x30"
        terminal.resize(20, 90)
        wait_until(lambda: size() == "90x20", 30)
    wait_until(lambda: size() == "", 30)
    mngr.ok("destroy", "-f", "foo")
