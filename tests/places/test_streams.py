"""Commands, terminals, feeds and files between here and another machine: what becomes of them when somebody is killed,
a link breaks, or the other side means harm."""

from __future__ import annotations

import base64
import io
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from mngr.e2e.terminal import Terminal, Terminals
from tests.home import Home, Mngr, wait_until
from tests.places.network import Machine

STAY = ("command", "--", "sleep", "1000")
LINGER = "sleep 4711 & setsid sleep 4712 & touch begun; exec sleep 4713"


@pytest.fixture
def far(mngr: Mngr, repo: Path, box: Machine) -> Machine:
    """A machine with an agent `far` on it."""
    mngr.ok("create", "far@box.ssh", *STAY)
    return box


def work_dir(mngr: Mngr) -> str:
    return mngr.ok("exec", "far", "--", "pwd").strip()


def lingering(box: Machine) -> list[str]:
    return [line for line in box.run("ps -A -o args").splitlines() if line.startswith("sleep 47")]


# exec


def test_what_a_command_reads_says_and_ends_with_is_its_own(mngr: Mngr, far: Machine) -> None:
    done = mngr("exec", "far", "--", "sh", "-c", "cat; echo err >&2; exit 3", input="some\ndata\n")
    assert done == (3, "some\ndata\n", "err\n")
    assert mngr("exec", "far", "--", "sh", "-c", "exit 255").code == 255
    assert mngr("exec", "far", "--", "no-such-program").code == 127


def test_a_command_is_ended_there_at_its_deadline(mngr: Mngr, far: Machine) -> None:
    done = mngr("exec", "far", "--timeout", "2s", "--", LINGER, input="data that nobody reads\n")
    assert (done.code, done.err) == (124, "mngr: ended after 2s\n")
    assert lingering(far) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_command_is_ended_there_with_us(mngr: Mngr, far: Machine, how: signal.Signals) -> None:
    begun = f"{work_dir(mngr)}/begun"
    running = mngr.popen("exec", "far", "--", LINGER)
    assert running.stdin is not None
    running.stdin.write("data that nobody reads\n")
    running.stdin.flush()
    wait_until(lambda: far.run(f"ls {begun}", check=False), what="the command")
    wait_until(lambda: len(lingering(far)) == 3)
    running.send_signal(how)
    running.wait(30)
    wait_until(lambda: not lingering(far), what="their end there")


def test_a_host_that_is_away_is_not_the_commands_255(mngr: Mngr, far: Machine) -> None:
    far.cut()
    done = mngr("exec", "far", "--", "true")
    assert done.code == 5
    assert "box.ssh" in done.err
    assert mngr("exec", "far", "--json", "--", "true").code == 5


def test_many_commands_on_one_host(mngr: Mngr, repo: Path, box: Machine) -> None:
    mngr.ok("create", "many@box.ssh", "--count", "24", *STAY)
    done = mngr("exec", "many-*", "--", "sh", "-c", "echo $MNGR_AGENT_NAME; echo err >&2", timeout=120)
    assert done.code == 0, done.err
    assert sorted(line.split(" | ")[0].strip() for line in done.out.splitlines()) == sorted(
        line.split(" | ")[1] for line in done.out.splitlines()
    )
    assert len(done.out.splitlines()) == 24
    assert {line.split(" | ")[1] for line in done.err.splitlines()} == {"err"}  # and nothing of ssh's own
    timed = mngr(
        "exec", "many-*", "--timeout", "3s", "--", "[ $MNGR_AGENT_NAME != many-7 ] || exec sleep 4711", timeout=120
    )
    assert (timed.code, "many-7 timed out" in timed.err) == (6, True), timed.err
    assert lingering(box) == []


# Terminals


class Spawn(Protocol):
    def __call__(self, command: str) -> Terminal: ...


@pytest.fixture
def spawn(home: Home) -> Iterator[Spawn]:
    terminals = Terminals(home.root, None)
    yield lambda command: terminals.spawn(command, "t", home.env, home.cwd, 100, 30)
    terminals.close()


def test_a_command_in_a_terminal_has_one_there(far: Machine, spawn: Spawn) -> None:
    terminal = spawn("mngr exec far -- 'tty; stty size; read -r x; echo got $x; exit 4'")
    terminal.wait_for_text("/dev/pts/").wait_for_text("30 100")
    terminal.type("this").press("Enter").wait_for_text("got this")
    assert terminal.wait_for_exit() == 4


def test_connect_shows_a_far_screen_in_the_size_of_ours(mngr: Mngr, repo: Path, box: Machine, spawn: Spawn) -> None:
    echo = 'trap "stty size" WINCH; echo ready; while :; do read -r x && echo "<$x>"; done'
    mngr.ok("create", "shell@box.ssh", "command", "--", "sh", "-c", echo)
    wait_until(lambda: "ready" in mngr.ok("capture", "shell"))
    terminal = spawn("mngr connect shell").wait_for_text("29 100")
    terminal.type("one").press("Enter").wait_for_text("<one>")
    terminal.resize(120, 40).wait_for_text("39 120")
    terminal.press("C-b", "d").wait_for_text("[detached")
    assert terminal.wait_for_exit() == 0


def test_connect_over_a_link_that_is_cut_ends_with_one_line(mngr: Mngr, repo: Path, box: Machine, spawn: Spawn) -> None:
    mngr.ok("create", "shell@box.ssh", "command", "--", "sh", "-c", "echo here I am; exec cat")
    terminal = spawn("mngr connect shell").wait_for_text("here I am")
    box.cut()
    terminal.wait_for_text("mngr: the connection to box.ssh broke off; shell goes on there", 40)
    terminal.wait_for_text("mngr connect shell attaches again")
    assert terminal.wait_for_exit() == 5
    box.heal()
    spawn("mngr connect shell").wait_for_text("here I am")


def test_connect_inside_the_users_own_tmux_opens_a_window(mngr: Mngr, repo: Path, box: Machine, home: Home) -> None:
    mngr.ok("create", "shell@box.ssh", "command", "--", "sh", "-c", "echo here I am; exec cat")
    socket = str(home.root / "own")
    home.run("tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "sh")
    try:
        home.run("tmux", "-S", socket, "send-keys", "mngr connect shell", "Enter")
        wait_until(lambda: "shell" in home.run("tmux", "-S", socket, "list-windows", "-F", "#W").split())
        wait_until(lambda: "here I am" in home.run("tmux", "-S", socket, "capture-pane", "-p", "-t", ":shell"))
    finally:
        home.run("tmux", "-S", socket, "kill-server")


# Feeds


def break_feeds(box: Machine) -> None:
    """As an sshd does that is restarted."""
    followers = wait_until(lambda: box.run("pidof tail", check=False).split(), what="somebody who follows")
    box.run(f"kill {' '.join(followers)}")
    wait_until(lambda: set(followers).isdisjoint(box.run("pidof tail", check=False).split()))


def test_who_waits_is_not_disturbed_by_a_feed_that_breaks(mngr: Mngr, repo: Path, box: Machine) -> None:
    mngr.ok("create", "far@box.ssh", "command", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")
    waiting = mngr.popen("wait", "far", "--for", "done", "--timeout", "60")
    break_feeds(box)
    mngr.ok("exec", "far", "--", "touch", "go")
    assert waiting.wait(30) == 0


def test_who_waits_outlives_a_cut(mngr: Mngr, repo: Path, box: Machine, home: Home) -> None:
    mngr.ok("create", "far@box.ssh", "command", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")
    place = work_dir(mngr)
    waiting = mngr.popen("wait", "far", "--for", "done", "--timeout", "120")
    followers = wait_until(lambda: box.run("pidof tail", check=False).split(), what="somebody who follows")
    assert followers
    box.cut()
    box.run(f"touch {place}/go")
    # Nobody tells of a cut, but after some seconds the connection gives up.
    wait_until(lambda: mngr.json("list", "--state", "unknown"), 60)
    assert waiting.poll() is None
    box.heal()
    assert waiting.wait(60) == 0


def test_who_waits_for_agents_on_a_machine_that_is_rebooted(mngr: Mngr, far: Machine) -> None:
    waiting = mngr.popen("wait", "far", "--for", "stopped", "--timeout", "120")
    wait_until(lambda: far.run("pidof tail", check=False), what="somebody who follows")
    far.crash()
    far.boot()
    assert waiting.wait(60) == 0


def test_every_event_is_told_once_over_a_break(mngr: Mngr, far: Machine) -> None:
    following = mngr.popen("events", "far", "--follow", "--jsonl")
    assert following.stdout is not None
    lines: list[str] = []
    (id,) = [each["id"] for each in mngr.json("list")]

    def tell(number: int) -> None:
        far.run(f"""echo '{{"time":1,"agent":"{id}","event":"number{number}"}}' >>.mngr/feed""")

    def heard(number: int) -> None:
        assert following.stdout is not None
        while not lines or f"number{number}" not in lines[-1]:
            lines.append(following.stdout.readline())

    wait_until(lambda: far.run("pidof tail", check=False), what="somebody who follows")
    tell(1)
    heard(1)
    break_feeds(far)
    tell(2)
    tell(3)
    heard(3)
    tell(4)
    heard(4)
    assert [line.count("number") for line in lines if "number" in line] == [1, 1, 1, 1]


def test_a_list_that_is_watched_shows_a_host_going_and_coming(mngr: Mngr, far: Machine) -> None:
    mngr.ok("wait", "far", "--for", "running", "--timeout", "20")
    watching = mngr.popen("list", "--watch", "--format", "{name} {state}")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "far running\n"
    wait_until(lambda: far.run("pidof tail", check=False), what="somebody who follows")
    far.crash()
    far.boot()
    while watching.stdout.readline() != "far stopped\n":
        assert watching.poll() is None


# Files of a host that means harm


def archive(*members: tuple[str, bytes, str]) -> bytes:
    """Of (name, type, link or content)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        for name, kind, rest in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            content = rest.encode() if kind == tarfile.REGTYPE else b""
            member.linkname = "" if content else rest
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def send_instead(box: Machine, data: bytes, code: int = 0, words: str = "") -> None:
    """From now on, every tar on that machine sends this."""
    box.run("base64 -d >/root/evil.tar", input=base64.b64encode(data).decode())
    box.run(
        "cat >/usr/local/bin/tar && chmod +x /usr/local/bin/tar",
        input=f'#!/bin/sh\n[ "$1" != --version ] || {{ echo GNU; exit; }}\ncat /root/evil.tar\n{words}\nexit {code}\n',
    )


FILE, LINK, HARD, DEVICE, PIPE, FOLDER = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
)
HARM: dict[str, Callable[[str], list[tuple[str, bytes, str]]]] = {
    "none": lambda top: [(f"{top}/a", FILE, "sent")],  # so that we know: what is sent is read
    "names that lead out": lambda top: [(f"{top}/../../planted", FILE, "x"), ("../planted", FILE, "x")],
    "absolute names": lambda top: [("{outside}/planted", FILE, "x")],
    "a file through a link": lambda top: [(f"{top}/a", LINK, "{outside}"), (f"{top}/a/planted", FILE, "x")],
    "a file through two links": lambda top: [
        (f"{top}/a", LINK, ".."),
        (f"{top}/b", LINK, "a/.."),
        (f"{top}/b/planted", FILE, "x"),
    ],
    "the top is a link": lambda top: [(top, LINK, "{outside}"), (f"{top}/planted", FILE, "x")],
    "a link that takes the place of a directory": lambda top: [
        (f"{top}/d", FOLDER, ""),
        (f"{top}/d", LINK, "{outside}"),
        (f"{top}/d/planted", FILE, "x"),
    ],
    "a second name of a file outside": lambda top: [
        (f"{top}/a", HARD, "{outside}/precious"),
        (f"{top}/a", FILE, "overwritten"),
    ],
    "devices and pipes": lambda top: [(f"{top}/null", DEVICE, ""), (f"{top}/pipe", PIPE, "")],
}


@pytest.mark.parametrize("what", HARM)
def test_a_hostile_archive_writes_nothing_outside(mngr: Mngr, far: Machine, home: Home, what: str) -> None:
    outside = home.root / "outside"
    (outside / "inner" / "target").mkdir(parents=True)
    (outside / "precious").write_text("precious")
    target = outside / "inner" / "target"
    mngr.ok("exec", "far", "--", "mkdir", "stuff")
    members = [
        tuple(part.replace("{outside}", str(outside)) if isinstance(part, str) else part for part in member)
        for member in HARM[what]("./stuff")
    ]
    send_instead(far, archive(*members))  # type: ignore[arg-type]
    mngr("pull", "far:stuff", str(target))
    assert sorted(path.name for path in outside.iterdir()) == ["inner", "precious"]
    assert sorted(path.name for path in (outside / "inner").iterdir()) == ["target"]
    assert (outside / "precious").read_text() == "precious"
    assert (outside / "precious").stat().st_nlink == 1
    assert not [path for path in target.rglob("*") if not (path.is_symlink() or path.is_file() or path.is_dir())]
    assert not list(target.glob(".mngr.*"))
    assert what != "none" or (target / "stuff" / "a").read_text() == "sent"


@pytest.mark.parametrize("what", HARM)
def test_a_hostile_host_brings_nothing_home_but_results(mngr: Mngr, far: Machine, home: Home, what: str) -> None:
    outside = home.root / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "precious").write_text("precious")
    (id,) = [each["id"] for each in mngr.json("list")]
    mngr.ok(
        "exec",
        "far",
        "--",
        "sh",
        "-c",
        "cd $MNGR_HOME/agents/$MNGR_AGENT_ID && mkdir -p artifacts && echo 1 >artifacts/a && echo '{}' >result.json",
    )
    members = [
        tuple(part.replace("{outside}", str(outside)) if isinstance(part, str) else part for part in member)
        for member in HARM[what](f"./{id}/artifacts")
    ]
    send_instead(far, archive(*members))  # type: ignore[arg-type]
    into = outside / "inner" / "results"
    gather = f"import mngr; f = mngr.Fleet(); mngr.gather(f, f.names.all(), {str(into)!r})"
    home.run(sys.executable, "-c", gather)
    assert sorted(path.name for path in outside.iterdir()) == ["inner", "precious"]
    assert sorted(path.name for path in (outside / "inner").iterdir()) == ["results"]
    assert (outside / "precious").read_text() == "precious"
    assert not [path for path in into.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir())]
    assert what != "none" or (into / "far" / "artifacts" / "a").read_text() == "sent"


def test_what_a_hostile_host_says_does_nothing_to_our_terminal(mngr: Mngr, far: Machine) -> None:
    evil = "\033]0;owned\007\033[2J"
    mngr.ok("exec", "far", "--", "mkdir", "stuff")
    send_instead(far, b"", code=1, words=f"printf '%s\\n' '{evil}' >&2")
    said = mngr("pull", "far:stuff", "stuff")
    assert said.code == 1
    assert "\033" not in said.out + said.err
    (id,) = [each["id"] for each in mngr.json("list")]
    far.run(f"printf 'waiting 1 %s\\n' '{evil}' >.mngr/agents/{id}/state")
    far.run(f"""sed -i 's|"branch":"[^"]*"|"branch":"\\\\u001b]0;owned\\\\u0007"|' .mngr/agents/{id}/agent.json""")
    for words in (["list"], ["list", "--git"], ["show", "far"], ["explain", "far"], ["events", "far"]):
        said = mngr(*words)
        assert "\033" not in said.out + said.err, words
    assert "\033" not in mngr("pull", "far").err


# A cut in the middle


def test_a_pull_that_is_cut_leaves_nothing_half(mngr: Mngr, far: Machine, home: Home) -> None:
    mngr.ok("exec", "far", "--", "sh", "-c", "mkdir d; echo small >d/a; cat /dev/zero >d/b & sleep 1; kill $!")
    far.run("printf '#!/bin/sh\\n/bin/tar \"$@\"; exec sleep 1000\\n' >/usr/local/bin/tar; chmod +x /usr/local/bin/tar")
    target = home.root / "target"
    target.mkdir()
    pulling = mngr.popen("pull", "far:d", str(target))
    wait_until(lambda: list(target.rglob("b")), what="a part of it")
    far.cut()
    assert pulling.wait(60) == 5
    assert list(target.iterdir()) == []


def test_a_push_that_is_cut_leaves_nothing_half(mngr: Mngr, far: Machine, home: Home) -> None:
    place = work_dir(mngr)
    source = home.root / "source"
    source.mkdir()
    (source / "a").write_text("small")
    with open(source / "b", "wb") as file:
        file.truncate(4 << 30)
    pushing = mngr.popen("push", str(source), "far:d")
    wait_until(lambda: far.run(f"ls {place}/.mngr.*/it/b", check=False), what="a part of it")
    far.cut()
    assert pushing.wait(60) == 5
    assert not far.run(f"ls {place}/d", check=False)
    far.heal()
    wait_until(lambda: not far.run(f"ls -d {place}/.mngr.*", check=False), 60, what="the end of the other side")
    assert not far.run(f"ls {place}/d", check=False)
