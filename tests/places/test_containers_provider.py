"""Hosts that are containers of a real podman; docker is the same class with another program behind it."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import config, registry
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.hosts.owner import home_id
from mngr.hosts.place import STOPPED, Place
from mngr.hosts.probe import arrive
from tests.home import Home, Mngr, wait_until
from tests.places.containers import Podman

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host, Provider

STAY = ("command", "--", "sleep", "1000")


class Yard:
    """The containers of one home, by the provider in this process and by `mngr` outside of it."""

    def __init__(self, home: Home, podman: Podman) -> None:
        self.home, self.podman = home, podman
        self.owner = home_id()
        self.told: list[str] = []

    def provider(self, name: str = "podman") -> Provider:
        return registry.provider(name)

    def make(self, host: str = "box", provider: str = "podman", **options: str) -> Place:
        made = self.provider(provider).make(host, {"image": self.podman.image, **options}, self.told.append)
        return Place(name=f"{host}.{provider}", made=True, id=made, options=options)

    def containers(self) -> list[str]:
        every = f"label=mngr.home={self.owner}"
        return self.podman.run("ps", "--all", "--filter", every, "--format", "{{.Names}}").split()

    def remove(self) -> None:
        for container in self.containers():
            self.podman.run("rm", "--force", "--time", "0", "--volumes", container)
        for image in self.podman.run("images", "--quiet", f"localhost/mngr-{self.owner}").split():
            self.podman.run("rmi", "--force", image)


@pytest.fixture
def yard(home: Home, podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    # docker is podman here, as in the package podman-docker
    shim = home.path / "bin" / "docker"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} "$@"\n')
    shim.chmod(0o755)
    home.env |= podman.env | {"PATH": f"{shim.parent}:{home.env['PATH']}"}
    for name in ("podman", "docker"):
        home.env[f"MNGR_CONFIG_PROVIDERS__{name.upper()}__IMAGE"] = podman.image
    for key in (*podman.env, "PATH", "HOME", "MNGR_HOME"):
        monkeypatch.setenv(key, home.env[key])
    config.forget()
    yard = Yard(home, podman)
    yield yard
    yard.remove()
    config.forget()


def reach(yard: Yard, place: Place) -> Host:
    return yard.provider(place.provider).reach(place)


def say(yard: Yard, place: Place, script: str) -> str:
    host = reach(yard, place)
    assert host.lines is not None
    try:
        done = host.lines.run(script, deadline=30)
    finally:
        host.lines.close()
    assert done.code == 0, done.err
    return done.out


def refusal(yard: Yard, **options: str) -> MngrError:
    with pytest.raises(MngrError) as refused:
        yard.make("refused", **options)
    assert yard.containers() == []
    return refused.value


# What a host is made with.


@pytest.mark.parametrize("provider", ["podman", "docker"])
def test_limits_network_and_mounts_are_real(yard: Yard, provider: str) -> None:
    shelf = yard.home.root / "shelf"
    shelf.mkdir()
    (shelf / "book").write_text("words\n")
    place = yard.make(
        provider=provider,
        memory="100m",
        cpus="0.5",
        network="none",
        user="nobody",
        workdir="/tmp",
        mount=f"{shelf}:/shelf:ro\n{shelf}:/again",
        run="--env=COLOUR=red\n--label=size=two words",
    )
    told = say(
        yard,
        place,
        """
        cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max
        ls /sys/class/net; id -un; pwd; echo $COLOUR; cat /shelf/book
        touch /shelf/new 2>/dev/null || echo read only
        """,
    )
    assert told.splitlines() == ["104857600", "lo", "nobody", "/tmp", "red", "words", "read only"]
    shown = '{{.HostConfig.NanoCpus}} {{index .Config.Labels "size"}}'
    assert yard.podman.run("inspect", "--format", shown, place.id) == "500000000 two words\n"


def test_the_network_of_this_machine(yard: Yard) -> None:
    place = yard.make(network="host")
    assert say(yard, place, "readlink /proc/self/ns/net") == f"{os.readlink('/proc/self/ns/net')}\n"


def test_what_is_wrong_is_said_in_one_line_and_leaves_nothing(yard: Yard) -> None:
    assert refusal(yard, image="localhost/mngr-nowhere:1").message == "there is no image localhost/mngr-nowhere:1"
    assert "invalid size" in refusal(yard, memory="much").message
    assert "nowhere" in refusal(yard, network="nowhere").message
    assert "no such file" in refusal(yard, mount="/nowhere/at/all:/there").message
    assert refusal(yard, mount="/tmp").hint == "HERE:THERE[:ro], as in ~/data:/data:ro"
    assert "cannot read the dockerfile" in refusal(yard, image="", dockerfile="/nowhere/Dockerfile").message
    assert "two ways" in refusal(yard, dockerfile="Dockerfile").message
    assert refusal(yard, user="stranger").message.startswith("podman: unable to find user stranger")
    assert not Path("/nowhere").exists()


def test_without_an_image_an_example_is_given(yard: Yard) -> None:
    with pytest.raises(UsageError) as refused:
        yard.make(image="")
    assert refused.value.message == "no image for a podman host"
    assert refused.value.hint is not None
    assert "mngr config set providers.podman.image IMAGE" in refused.value.hint


def test_the_configuration_says_what_nobody_else_did(yard: Yard) -> None:
    yard.home.mngr_home.joinpath("config.toml").write_text(
        f'[providers.podman]\nimage = "{yard.podman.image}"\nnetwork = "none"\nworkdir = "/usr"\n'
        'home = "/opt/{host}"\nrun = ["--env=A=1", "--env=B=2"]\n'
    )
    config.forget()
    made = yard.provider().make("box", {"workdir": "/etc"}, print)
    place = arrive(yard.provider(), Place(name="box.podman", id=made))
    assert place.home == "/opt/box"
    assert say(yard, place, "pwd; echo $A$B").split() == ["/etc", "12"]


def test_what_is_no_option_of_containers_is_refused_where_it_stands(yard: Yard) -> None:
    file = yard.home.mngr_home / "config.toml"
    file.write_text('[providers.podman]\nexec = ["podman"]\n')
    config.forget()
    with pytest.raises(UsageError, match=r"providers\.podman\.exec in .*config\.toml:2 would make a provider podman"):
        yard.make()
    file.write_text('[providers.podman]\noptions = { size = "9" }\n')
    config.forget()
    with pytest.raises(UsageError, match=r"providers\.podman\.options in .* has size in it, which is no option"):
        yard.make()


def test_a_dockerfile_is_built_and_told(yard: Yard) -> None:
    context = yard.home.root / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM {yard.podman.image}\nCOPY note /note\nENV COLOUR=red\n")
    (context / "note").write_text("one\n")
    images = set()
    try:
        for host, text in (("first", "one\n"), ("second", "two\n")):
            (context / "note").write_text(text)
            place = yard.make(host, image="", dockerfile=str(context / "Dockerfile"))
            images.add(yard.podman.run("inspect", "--format", "{{.Image}}", place.id).strip())
            assert say(yard, place, "cat /note; echo $COLOUR") == f"{text}red\n"
        assert yard.told[0] == f"building the image of {context}/Dockerfile"
        assert any("COPY note /note" in line for line in yard.told)
        (context / "Dockerfile").write_text(f"FROM {yard.podman.image}\nCOPY nowhere /note\n")
        with pytest.raises(MngrError, match=r"cannot be built: .*nowhere"):
            yard.make("third", image="", dockerfile=str(context / "Dockerfile"))
    finally:
        yard.remove()
        yard.podman.run("rmi", "--force", *images, check=False)


# Its life.


@pytest.mark.parametrize("provider", ["podman", "docker"])
def test_files_survive_a_stop_and_everything_can_be_done_twice(yard: Yard, provider: str) -> None:
    place, by = yard.make(provider=provider), yard.provider(provider)
    say(yard, place, "echo kept >/root/file")
    for _ in range(2):
        assert by.stop(place).state == STOPPED
    host = reach(yard, place)
    assert host.lines is not None
    with pytest.raises(HostUnreachable, match=rf"box\.{provider}: it is not running") as away:
        host.lines.run("echo", deadline=30)
    assert away.value.hint == f"mngr host start box.{provider}"
    for _ in range(2):
        by.start(place)
    assert say(yard, place, "cat /root/file") == "kept\n"
    assert host.lines.run("echo back", deadline=30).out == "back\n"
    host.lines.close()
    for _ in range(2):
        by.remove(place)
    assert yard.containers() == []
    with pytest.raises(HostUnreachable, match=rf"box\.{provider} is gone"):
        by.start(place)
    with pytest.raises(HostUnreachable, match="its container is gone"):
        host.lines.run("echo", deadline=30)


def test_a_host_from_a_snapshot_has_its_files(yard: Yard) -> None:
    place = yard.make("some-_name-")
    say(yard, place, "echo kept >/root/file")
    image = yard.provider().snapshot(place, "first")
    yard.provider().remove(place)
    other = yard.make("other", image=image)
    assert say(yard, other, "cat /root/file") == "kept\n"
    assert yard.provider().find() == {"other": other.id}


def test_hosts_are_found_when_everything_here_is_lost(yard: Yard, mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo@box.podman", *STAY)
    shutil.rmtree(yard.home.mngr_home / "hosts")
    shutil.rmtree(yard.home.mngr_home / "names")
    (container,) = yard.containers()
    assert yard.provider().find() == {"box": container}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNGR_HOME", str(yard.home.root / "another"))
        assert yard.provider().find() == {}
    refused = mngr("create", "foo@box.podman", *STAY)
    assert refused.code == 1
    assert f"there is already a podman container {container}" in refused.err
    assert "sleep 1000" in yard.podman.run("exec", container, "ps", "-ef")


def test_a_program_that_cannot_be_asked_is_not_one_without_hosts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.make()
    with monkeypatch.context() as patch:
        patch.setenv("CONTAINERS_STORAGE_CONF", "/nowhere/storage.conf")
        with pytest.raises(HostUnreachable, match="podman: "):
            yard.provider().find()
        patch.setenv("PATH", "/nowhere")
        with pytest.raises(HostUnreachable, match="cannot run podman") as away:
            yard.provider().find()
        assert away.value.hint == "is podman installed?"
    assert list(yard.provider().find()) == ["box"]


def test_what_orphans_leave_is_collected(yard: Yard) -> None:
    place = yard.make()
    say(yard, place, "setsid sh -c 'sh -c : & sh -c : & exec sleep 0.1' </dev/null >/dev/null 2>&1 &")
    wait_until(lambda: "sleep 0.1" not in say(yard, place, "ps -e -o args"))
    wait_until(lambda: say(yard, place, "ps -e -o stat= | grep -c ^Z || :") == "0\n")


def test_a_terminal_passes_every_key_at_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker and podman keep back a Ctrl-P, in case that a Ctrl-Q follows."""
    monkeypatch.setenv("TERM", "screen-256color")
    place = yard.make()
    script = "stty raw -echo; printf 'ready %s\n' $TERM; head -c 1 | od -An -tx1"
    ours, theirs = pty.openpty()
    words = reach(yard, place).argv(script, [], tty=True)
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        told = b""
        while b"ready screen-256color\n" not in told:
            told += os.read(ours, 1000)
        os.write(ours, b"\x10")
        while b" 10" not in told:
            told += os.read(ours, 1000)
        assert process.wait(30) == 0
    os.close(ours)


# By the verbs.


@pytest.mark.parametrize("provider", ["podman", "docker"])
def test_several_agents_share_a_container(yard: Yard, mngr: Mngr, repo: Path, provider: str) -> None:
    both = [mngr.popen("create", f"{name}@box.{provider}", *STAY) for name in ("one", "two")]
    for each in both:
        out, err = each.communicate(timeout=60)
        assert each.returncode == 0, out + err
    assert len(yard.containers()) == 1
    mngr.ok("create", f"three@.{provider}", *STAY)
    assert len(yard.containers()) == 2
    mngr.ok("wait", "--all", "--for", "running", "--timeout", "20")
    assert mngr.ok("list", "--format", "{name} {state} {host}") == (
        f"one running box.{provider}\nthree running three.{provider}\ntwo running box.{provider}\n"
    )
    assert mngr.ok("exec", "one", "--", "git", "log", "-1", "--format=%s") == "First commit\n"
    mngr.ok("exec", "two", "--", "sh", "-c", "echo new >new; git add new; git commit -qm 'From inside'")
    assert mngr.ok("pull", "two").startswith("pulled two: mngr/two has 1 new commit")
    assert mngr("exec", "one", "--", "sh", "-c", "exit 125").code == 125


def test_a_container_that_is_killed_behind_our_back(yard: Yard, mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo@box.podman", *STAY)
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")
    (container,) = yard.containers()
    assert mngr.json("list")[0]["state"] == "running"
    yard.podman.run("kill", container)
    (found,) = mngr.json("list")
    assert (found["state"], found["reason"]) == ("unknown", "host cannot be reached; it was running")
    refused = mngr("stop", "foo")
    assert refused.code != 0
    assert "box.podman: it is not running" in refused.err
    yard.podman.run("start", container)
    assert mngr.json("list")[0]["state"] == "stopped"
    mngr.ok("start", "foo")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")


@pytest.fixture
def held_up(yard: Yard) -> Iterator[Path]:
    """The first `podman run` makes its container and then hangs: this directory holds `made` then."""
    held, wrapper = yard.home.root / "held", yard.home.path / "bin" / "podman"
    real = shutil.which("podman", path=os.defpath)
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = run ] && mkdir {held} 2>/dev/null || exec {real} "$@"\n'
        f'{real} "$@" >/dev/null\necho $$ >{held}/pid\nmv {held}/pid {held}/made\nexec sleep 1000\n'
    )
    wrapper.chmod(0o755)
    yield held
    if (held / "made").exists():
        try:
            os.kill(int((held / "made").read_text()), signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_a_create_that_is_interrupted_leaves_no_container(yard: Yard, mngr: Mngr, repo: Path, held_up: Path) -> None:
    creating = mngr.popen("create", "foo@box.podman", *STAY)
    wait_until((held_up / "made").exists, 30)
    assert len(yard.containers()) == 1
    creating.send_signal(signal.SIGINT)
    creating.communicate(timeout=60)
    assert creating.returncode != 0
    assert yard.containers() == []
    mngr.ok("create", "foo@box.podman", *STAY)


def test_what_a_killed_create_leaves_is_in_nobodys_way(yard: Yard, mngr: Mngr, repo: Path, held_up: Path) -> None:
    creating = mngr.popen("create", "foo@box.podman", *STAY)
    wait_until((held_up / "made").exists, 30)
    creating.kill()
    creating.communicate(timeout=60)
    assert list(yard.provider().find()) == ["box"]
    mngr.ok("create", "foo@box.podman", *STAY)
    assert len(yard.containers()) == 1


def test_a_container_that_a_killed_create_gets_late_is_in_nobodys_way(yard: Yard, mngr: Mngr, repo: Path) -> None:
    """`podman run` goes on without its caller, and has the name when the next create has just removed what had it."""
    held, wrapper = yard.home.root / "held", yard.home.path / "bin" / "podman"
    real = shutil.which("podman", path=os.defpath)
    wrapper.write_text(f"""#!/bin/sh
cd {held.parent}
case $1 in
run) mkdir held 2>/dev/null && touch held/begun && until [ -e held/go ]; do sleep 0.05; done && last=held/made ;;
rm) [ -d held ] && mkdir held/go 2>/dev/null && until [ -e held/made ]; do sleep 0.05; done && exit ;;
esac
{real} "$@"
code=$?
[ -z "$last" ] || touch "$last"
exit $code
""")
    wrapper.chmod(0o755)
    creating = mngr.popen("create", "foo@box.podman", *STAY)
    wait_until((held / "begun").exists)
    creating.kill()
    creating.communicate(timeout=60)
    mngr.ok("create", "foo@box.podman", *STAY)
    assert (held / "made").exists()
    assert len(yard.containers()) == 1
    assert mngr.ok("exec", "foo", "--", "echo", "here") == "here\n"


@pytest.mark.skipif(shutil.which("docker") is None, reason="there is no docker on this machine")
def test_docker_itself(yard: Yard, mngr: Mngr, repo: Path) -> None:
    """Its real command line, talking to podman in the place of a daemon."""
    (yard.home.path / "bin" / "docker").unlink()
    listening = yard.home.root / "docker.sock"
    yard.home.env["DOCKER_HOST"] = f"unix://{listening}"
    service = ["podman", "system", "service", "--time", "0", f"unix://{listening}"]
    with subprocess.Popen(service, env=yard.home.env, stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_until(lambda: answers(listening))
            mngr.ok("create", "foo@box.docker", "--with", "memory=100m", "--with", "network=none", *STAY)
            mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")
            assert mngr.ok("exec", "foo", "--", "git", "log", "-1", "--format=%s") == "First commit\n"
            refused = mngr("create", "bar@.docker", "--with", "memory=much", *STAY)
            assert "invalid size" in refused.err
            mngr.ok("stop", "foo")
            mngr.ok("start", "foo")
            mngr.ok("destroy", "-f", "foo")
        finally:
            yard.remove()
            daemon.terminate()


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0
