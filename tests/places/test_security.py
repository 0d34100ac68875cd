"""What a hostile host, a hostile agent and a curious neighbour get out of us: nothing. The attacks are real, and go
through the verbs that people use. Archives that lie are in test_streams.py; here is all else."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import hosts, process
from mngr.hosts.lines import Lines
from tests.agents import head
from tests.home import Home, Mngr, command_lines, wait_until
from tests.places.containers import Podman
from tests.places.network import Machine, Network, close_connections
from tests.places.test_streams import archive, send_instead

STAY = ("command", "--", "sleep", "1000")
# A title, a cleared screen, a colour in one byte (C1), a link, and letters that run the other way.
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x1b]8;;http://x\x07\u202e"


@pytest.fixture
def far(mngr: Mngr, repo: Path, box: Machine) -> Machine:
    """A machine with an agent `far` on it."""
    mngr.ok("create", "far@box.ssh", *STAY)
    return box


def agent_directory(mngr: Mngr, name: str = "far") -> str:
    (id,) = [each["id"] for each in mngr.json("list") if each["name"] == name]
    return f"/root/.mngr/agents/{id}"


# Host keys


def test_a_machine_whose_key_has_changed_since_gets_nothing(
    home: Home, mngr: Mngr, far: Machine, network: Network
) -> None:
    """Whoever has taken its place is told nothing, by no verb: neither a message nor a commit."""
    other = network.boot("other")
    close_connections(home.mngr_home)
    known = network.directory / "known_hosts"
    kept = known.read_text()
    far.run(": >/var/log/sshd.log")
    known.write_text(kept.replace(far.host_key, other.host_key))
    try:
        for words in (
            ["exec", "far", "--", "touch", "/root/been-here"],
            ["message", "far", "-m", "a secret"],
            ["push", "far"],
            ["pull", "far"],
            ["push", "README.md", "far:stolen"],
            ["create", "more@box.ssh", "-e", "TOKEN=secret", *STAY],
            ["host", "add", "box.ssh", "--accept-new"],
        ):
            done = mngr(*words)
            assert done.code == 5, (words, done)
            assert "host key" in done.err.lower(), (words, done.err)
        assert [each["state"] for each in mngr.json("list")] == ["unknown"]
    finally:
        known.write_text(kept)
        other.remove()
    assert "Accepted publickey" not in far.run("cat /var/log/sshd.log")
    assert not far.run("ls /root/been-here", check=False)
    assert mngr("exec", "far", "--", "true").code == 0


def test_a_machine_that_is_removed_leaves_no_connection_open(home: Home, mngr: Mngr, repo: Path, box: Machine) -> None:
    """Many commands at once have taken more than one."""
    mngr.ok("create", "many@box.ssh", "--count", "9", *STAY)
    mngr.ok("exec", "many-*", "--", "sh", "-c", "touch ../$MNGR_AGENT_NAME; until [ -e ../many-8 ]; do sleep 0.1; done")
    assert len(sockets(home)) > 1
    mngr.ok("destroy", "-f", "--all")
    mngr.ok("host", "remove", "box.ssh")
    wait_until(lambda: not sockets(home), what="the end of every connection")


def sockets(home: Home) -> list[Path]:
    return list(home.socket.parent.glob(f"{home.socket.name}-*"))


# Secrets


def test_a_secret_is_on_no_command_line_here_or_on_a_machine(home: Home, mngr: Mngr, repo: Path, box: Machine) -> None:
    """While an agent is made, spoken to, cloned and started again, everybody looks at the processes."""
    show_no_secret(home, mngr, "box.ssh")


def test_a_secret_is_on_no_command_line_here_or_in_a_container(
    home: Home, mngr: Mngr, repo: Path, pods: Podman
) -> None:
    show_no_secret(home, mngr, ".podman")


def show_no_secret(home: Home, mngr: Mngr, place: str) -> None:
    """Processes of the place are processes of this machine too, whose kernel it has: to look here is to look there."""
    secret = os.urandom(16).hex()
    (home.root / "secrets").write_text(f"TOKEN={secret}\n")
    (home.root / "text").write_text(f"the word is {secret}\n")
    looks = 0
    for words in (
        [
            "create",
            f"far@{place}",
            "--env-file",
            str(home.root / "secrets"),
            "--setup",
            "sleep 1",
            "command",
            "--",
            "cat",
        ],
        ["message", "far", "-F", str(home.root / "text")],
        ["exec", "far", "--", "sh", "-c", 'sleep 1; echo "${#TOKEN}"'],
        ["clone", "far", "twin"],
        ["stop", "far", "--keep-host"],
        ["start", "far"],
    ):
        running = mngr.popen(*words)
        while running.poll() is None:
            assert not [line for line in command_lines() if secret in line], words
            looks += 1
        assert running.returncode == 0, (words, running.communicate())
    assert looks > 20
    assert mngr.ok("exec", "far", "--", "sh", "-c", "echo $TOKEN").strip() == secret  # it had it all the time
    mngr.ok("destroy", "-f", "--all")


# Files


def test_the_files_of_an_agent_never_become_our_repository(home: Home, mngr: Mngr, far: Machine, repo: Path) -> None:
    """Hooks and settings of git are commands that run here."""
    planted = "[core]\n\tfsmonitor = touch owned\n"
    kinds = [
        ("./.git/hooks/post-checkout", "#!/bin/sh\ntouch owned\n"),
        ("./.git/config", planted),
        ("./new", "hello\n"),
    ]
    send_instead(far, archive(*((name, tarfile.REGTYPE, content) for name, content in kinds)))
    before, was = (repo / ".git" / "config").read_text(), head(home, repo)
    mngr.ok("pull", "far:.", ".")
    assert (repo / "new").read_text() == "hello\n"
    assert (repo / ".git" / "config").read_text() == before
    assert not (repo / ".git" / "hooks" / "post-checkout").exists()
    assert head(home, repo) == was
    home.run("git", "checkout", "-q", "-b", "other")
    assert not (repo / "owned").exists()


# Branches

NAMES = (
    "--upload-pack=touch${IFS}owned;",
    "-evil",
    "$(touch${IFS}owned)",
    "`touch${IFS}owned`",
    "a;touch${IFS}owned",
    "x'y\"z",
    "\x9b31m\u202eevil",
    "refs/heads/main",
)


def test_names_of_branches_are_names_and_nothing_else(home: Home, mngr: Mngr, far: Machine, repo: Path) -> None:
    """Git lets all of these be branches. Each has a commit that is nowhere else, so that each is pulled."""
    before = refs(home, repo)
    lines = "".join(f"one {quoted(name)}\n" for name in NAMES)
    done = mngr(
        "exec",
        "far",
        "--",
        "sh",
        "-ec",
        'one() { git update-ref "refs/heads/$1" "$(git commit-tree -p HEAD -m "$1" HEAD:)"; }\n' + lines,
    )
    assert done.code == 0, done
    said = mngr("pull", "far", "--merge")
    assert said.code == 0, said
    assert_harmless(said.out + said.err)
    after = refs(home, repo)
    assert {name: after[name] for name in before if name != "refs/heads/main"} == {
        name: before[name] for name in before if name != "refs/heads/main"
    }
    assert {name.removeprefix("refs/heads/mngr/far--") for name in after if "/far--" in name} == set(NAMES)
    assert_untouched(home, repo)
    said = mngr("destroy", "-f", "far")
    assert said.code == 0, said
    assert_harmless(said.out + said.err)
    assert_untouched(home, repo)


def quoted(name: str) -> str:
    return "'" + name.replace("'", "'\\''") + "'"


def refs(home: Home, repo: Path) -> dict[str, str]:
    lines = home.run("git", "for-each-ref", "--format=%(objectname) %(refname)", cwd=repo).splitlines()
    return {name: object for object, _, name in (line.partition(" ") for line in lines)}


def assert_untouched(home: Home, repo: Path) -> None:
    found = [path for place in (repo, home.root, home.path) for path in place.glob("*owned*")]
    assert not found


LIES = (
    *("refs/heads/x:refs/heads/main", "refs/heads/*:refs/heads/*", "refs/heads/../../config", "refs/heads/../main"),
    *("+refs/heads/x", "--upload-pack=touch owned", "refs/heads/--upload-pack=touch owned", "refs/heads/x main"),
    *("refs/heads/", "refs/heads/.", "refs/heads/a..b", f"refs/heads/{EVIL}", "refs/heads/x\nwork ID 0 COMMIT main"),
)


def test_a_host_that_lies_about_its_branches(home: Home, mngr: Mngr, far: Machine, repo: Path) -> None:
    """Its git says whatever it likes when we ask for them."""
    mngr.ok("exec", "far", "--", "sh", "-c", "git update-ref refs/heads/x $(git commit-tree -p HEAD -m evil HEAD:)")
    evil = mngr.ok("exec", "far", "--", "git", "rev-parse", "x").strip()
    (id,) = [each["id"] for each in mngr.json("list")]
    lying = (
        f'case " $* " in *" for-each-ref "*) echo "tip {id} {evil} $(cat /root/lie)" ;; esac; exec /usr/bin/git "$@"'
    )
    far.run("cat >/usr/local/bin/git && chmod +x /usr/local/bin/git", input=f"#!/bin/sh\n{lying}\n")
    before, files = refs(home, repo), of_git(repo)
    for lie in LIES:
        far.run("cat >/root/lie", input=lie.replace("ID", id).replace("COMMIT", evil))
        said = mngr("pull", "far")
        assert_harmless(said.out + said.err)
        after = refs(home, repo)
        assert {name: after.get(name) for name in before} == before, lie
        assert all(name.startswith("refs/heads/mngr/far") for name in after.keys() - before.keys()), (lie, after)
        assert all("/mngr" in path for path in of_git(repo) - files), lie
        assert_untouched(home, repo)
    assert "refs/heads/mngr/far--x" in after  # what it has of branches in truth has been pulled all the while


def test_a_host_that_lies_about_whose_its_agent_is(home: Home, mngr: Mngr, far: Machine, repo: Path) -> None:
    """The record is on its machine: what it says of our repositories and branches counts for nothing."""
    other = home.root / "other"
    home.run("git", "clone", "-q", str(repo), str(other))
    before = refs(home, other)
    mngr.ok("exec", "far", "--", "git", "commit", "-q", "--allow-empty", "-m", "Evil")
    lies = f's|: "mngr/far"|: "main"|; s|: "{repo}"|: "{other}"|; s|: "box.ssh"|: "local"|'
    far.run(f"sed -i '{lies}' /root/.mngr/agents/*/agent.json")
    assert '"branch": "main"' in far.run("cat /root/.mngr/agents/*/agent.json")
    main = home.run("git", "rev-parse", "main", cwd=repo)
    assert mngr.ok("pull", "far") == f"pulled far: mngr/far has 1 new commit in {repo}\n"
    assert home.run("git", "rev-parse", "main", cwd=repo) == main
    mngr.ok("destroy", "-f", "far")
    assert refs(home, other) == before


def of_git(repo: Path) -> set[str]:
    return {str(path) for path in (repo / ".git").rglob("*") if "objects" not in path.parts}


LYING_SERVER = r"""
import os, sys
if "upload-pack" not in sys.argv:
    os.execv("/usr/bin/git", sys.argv)
def say(*lines):
    for line in lines:
        sys.stdout.write(f"{len(line) + 5:04x}{line}\n")
    sys.stdout.write("0000")
    sys.stdout.flush()
say("version 2", "agent=git/2", "ls-refs", "fetch")
while (size := int(sys.stdin.read(4) or "0", 16)) != 0:
    sys.stdin.read(max(0, size - 4))
say(*("COMMIT " + name for name in (REFS)))
"""
OFFERED = ("refs/heads/../../hooks/post-checkout", "refs/../config", "refs/heads/main", "refs/heads/mngr/far")


def test_a_server_that_offers_refs_which_lead_out(home: Home, mngr: Mngr, far: Machine, repo: Path) -> None:
    mngr.ok("exec", "far", "--", "sh", "-c", "echo more >>README.md; git commit -q -a -m more")
    before = refs(home, repo)
    far.run("cat >/root/lie.py", input=LYING_SERVER.replace("COMMIT", head(home, repo)).replace("REFS", repr(OFFERED)))
    lie = f'#!/bin/sh\nexec {sys.executable} -I -S /root/lie.py "$@"\n'
    far.run("cat >/usr/local/bin/git && chmod +x /usr/local/bin/git", input=lie)
    said = mngr("pull", "far")
    assert_harmless(said.out + said.err)
    after = refs(home, repo)
    assert {name: after.get(name) for name in before} == before
    assert after.keys() - before.keys() <= {"refs/heads/mngr/far"}
    assert not (repo / ".git" / "hooks" / "post-checkout").exists()
    home.run("git", "fsck", "--strict", cwd=repo)


# Terminals


def in_terminal(mngr: Mngr, *words: str) -> str:
    """What the verb writes to a terminal, with both its streams."""
    ours, theirs = pty.openpty()
    env = {"NO_COLOR": "1"}  # nothing of our own, so that all there is would be theirs
    running = mngr.popen(*words, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = io.BytesIO()
    while True:
        select.select([ours], [], [], 60)
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        said.write(chunk)
    os.close(ours)
    running.wait(30)
    return said.getvalue().decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def assert_harmless(text: str) -> None:
    bad = {char for char in text if not (char.isprintable() or char in "\n\t")}
    assert not bad, f"{sorted(bad)} in {text!r}"


@pytest.fixture
def hostile(mngr: Mngr, far: Machine) -> Machine:
    """Everything that the agent can write has escape sequences in it."""
    there, work = agent_directory(mngr), mngr.ok("exec", "far", "--", "pwd").strip()
    id, name = there.rpartition("/")[2], quoted(EVIL.replace("/", "_"))
    record = {**json.loads(far.run(f"cat {there}/agent.json")), "labels": {"k": EVIL}}
    far.run(f"cat >{there}/agent.json", input=json.dumps(record) + "\n")
    far.run(f"cat >{there}/state", input=f"waiting 1 {EVIL}\n")
    event = json.dumps({"time": 1, "agent": id, "event": EVIL, "more": EVIL}, ensure_ascii=False)
    far.run(f"cat >>{there}/events.jsonl", input=event + "\n")
    far.run(f"mkdir -p {work}/d/{name} .mngr/agents/{name} .mngr/work/{name} .mngr/snapshots/{id}/{name}")
    far.run(f"touch {work}/d/{name}/{name}; git -C {work} checkout -q -b {quoted(chr(0x9B) + chr(0x202E))}")
    return far


LOOKS = """
list
list --git --labels
list --json
list --jsonl
explain far
explain far --json
events far
events far --json
transcript far
usage
wait far --for waiting
capture far
host list
host list --json
host check box.ssh
gc --dry-run
doctor
destroy far --dry-run
destroy far
snapshot list
"""
DEEDS = """
pull far
pull far:d out
push far
message far -m hello
label far a=b
snapshot create far
gc
stop far
start far
rename far near
destroy -f near
"""


@pytest.mark.parametrize("lines", [LOOKS, DEEDS], ids=["looks", "deeds"])
def test_what_a_hostile_agent_has_written_does_nothing_to_our_terminal(
    mngr: Mngr, hostile: Machine, lines: str
) -> None:
    for line in lines.strip().splitlines():
        said = in_terminal(mngr, *line.split())
        assert said, line
        assert_harmless(said)


def test_screens_and_commands_of_a_hostile_host_do_nothing_to_our_terminal(mngr: Mngr, far: Machine) -> None:
    """Its tmux shows whatever it likes, and its commands say so."""
    mngr.ok("create", "more@box.ssh", *STAY)
    lying = f'/usr/bin/tmux "$@"; code=$?; printf "%s\\n" {quoted(EVIL)} "$(printf "\\033[31mred")"; exit $code'
    far.run("cat >/usr/local/bin/tmux && chmod +x /usr/local/bin/tmux", input=f"#!/bin/sh\n{lying}\n")
    for words in (["capture", "far"], ["capture", "far", "more"], ["capture", "far", "--json"]):
        said = in_terminal(mngr, *words)
        assert "owned" in said, words
        assert_harmless(said)
    assert "\x1b[31mred" in mngr.ok("capture", "far", "--colours")
    say = ["--", "printf", "%s\\n", EVIL]
    for words in (["capture", "far", "--colours"], ["exec", "far", "more", *say], ["exec", "far", "--json", *say]):
        said = in_terminal(mngr, *words)
        assert "owned" in said, words
        for ours in ("\x1b[31m", "\x1b[0m", "\x0f"):
            said = said.replace(ours, "")
        assert_harmless(said)
    assert mngr.ok("exec", "far", "more", *say).count(EVIL) == 2  # who reads it by a pipe has it as it was said


def test_a_format_is_harmless_on_a_terminal_and_exact_in_a_pipe(mngr: Mngr, hostile: Machine) -> None:
    template = r"{name}\t{reason}|{labels[k]}|{labels}"
    shown = in_terminal(mngr, "list", "--format", template)
    assert_harmless(shown)
    assert shown.startswith("far\t")
    assert "owned" in shown
    assert mngr.ok("list", "--format", "{labels[k]}") == EVIL + "\n"


# Locks: one belongs to the script that took it, also on a line that many scripts go through.


@pytest.fixture
def line() -> Iterator[Lines]:
    pipe = process.PIPE

    def start(script: str, _: bool) -> process.Child:
        return process.start(["/bin/sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe)

    lines = Lines("here", start)
    yield lines
    lines.close()


def run_on(line: Lines, there: Path, body: str) -> process.Done:
    parts = [f"H={there} S={there}/socket", *(hosts.read_script(hosts.__file__, f"{n}.sh") for n in ("common", "lock"))]
    return line.run("\n".join([*parts, body]), deadline=30)


def test_a_lock_goes_with_its_script(line: Lines, tmp_path: Path) -> None:
    assert run_on(line, tmp_path, f"lock {tmp_path}/lock && cat {tmp_path}/lock").code == 0
    assert not (tmp_path / "lock").exists()


def test_a_lock_of_a_script_that_was_killed_is_taken_over(line: Lines, tmp_path: Path) -> None:
    """The line that it went through lives on."""
    killed = run_on(line, tmp_path, f"lock {tmp_path}/lock; exec 2>/dev/null; sh -c 'kill -s KILL $PPID'; sleep 1000")
    assert killed.code == 128 + 9
    owner = (tmp_path / "lock").read_text()
    assert run_on(line, tmp_path, f"lock {tmp_path}/lock 5 && cat {tmp_path}/lock").out not in ("", owner)
    assert not (tmp_path / "lock").exists()


def test_a_lock_that_somebody_holds_is_not_taken(line: Lines, tmp_path: Path) -> None:
    holding = ["/bin/sh", "-c", f"echo $$ >{tmp_path}/lock; echo held; read -r x"]
    shell = process.start(holding, stdin=process.PIPE, stdout=process.PIPE, stderr=process.NULL)
    assert shell.stdout is not None
    with open(shell.stdout, "rb") as said:
        assert said.readline() == b"held\n"
        assert run_on(line, tmp_path, f"lock {tmp_path}/lock 3").code == 1
        shell.end()
    assert run_on(line, tmp_path, f"lock {tmp_path}/lock").code == 0
