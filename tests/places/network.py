"""A small real network for tests: machines with a kernel's worth of namespaces and files of their own, and a real sshd.

    with Network() as network:
        box = network.boot("box1")
        subprocess.run(["ssh", "-F", network.ssh_config, "box1", "hostname"])

A network is a switch in a network namespace of its own, so addresses may repeat between networks, and no packet leaves.
`network.ssh_config` works from anywhere: its ProxyCommand steps into that namespace (relay.py), where the connection to
the machine then lives with all that TCP does. Any other program reaches the machines with `network.prefix` before it.

A machine is this machine's file system as it was, with what the machine writes laid over it; /tmp and /run are in its
memory, /root begins empty. The pipe on which each one waits breaks when this process dies, so none outlives it. What
else a killed run leaves behind, names in /run/netns and directories, the next run removes."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from glob import glob
from itertools import count, cycle
from pathlib import Path
from socket import create_connection
from typing import Self, TypeVar

from mngr.hosts.sockets import socket_path
from tests.home import is_alive, wait_until

T = TypeVar("T")
HERE = Path(__file__).parent
HANG_UP = "for pid in $(pgrep -x sshd); do kill -9 $pid; done"  # on a machine
NETNS = Path("/run/netns")
NAMED = re.compile(r"mngr-net-([0-9]+)-[0-9]+(-[a-z0-9-]+)?")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLONE_NEWNET = 0x40000000

_numbers = count(1)
_present: set[str] = set()  # the networks of this process


class Network:
    def __init__(self) -> None:
        self.name = f"mngr-net-{os.getpid()}-{next(_numbers)}"
        self.directory = directory_for_layers() / self.name
        self.ssh_config = self.directory / "ssh_config"
        self.prefix = [which("nsenter"), f"--net={NETNS / self.name}"]
        self.machines: dict[str, Machine] = {}
        self._next = cycle(range(1, 250))

    def __enter__(self) -> Self:
        assert sys.platform == "linux", "test machines are made of Linux namespaces"
        assert os.geteuid() == 0, "test machines are made by root: run these tests as root"
        remove_leftovers()
        _present.add(self.name)
        try:
            self.directory.mkdir(mode=0o700)
            ip(f"netns add {self.name}")
            # A fixed address: a bridge would else take one of its machines', and change it as they come and go.
            ip("link add br0 address 02:00:00:00:01:00 type bridge", "link set br0 up", "link set lo up", at=self.name)
            ip("addr add 10.231.0.1/24 dev br0", at=self.name)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(self.directory / "key")])
            self._write_ssh_config()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for machine in list(self.machines.values()):
            machine.remove()
        remove_namespace(self.name)
        shutil.rmtree(self.directory, ignore_errors=True)
        _present.discard(self.name)

    def boot(self, name: str) -> Machine:
        """The machine of that name, running; a new one if there is none. Its sshd answers."""
        assert re.fullmatch("[a-z][a-z0-9-]*", name), f"not a name for a machine: {name!r}"
        if name not in self.machines:
            # The address that has been out of use for longest: somebody may still be trying the last one.
            used = {machine.number for machine in self.machines.values()}
            number = next(number for number in self._next if number not in used)
            self.machines[name] = Machine(self, name, number)
            self._write_ssh_config()
        machine = self.machines[name]
        if not machine.is_up:
            machine.boot()
        return machine

    def forget(self, machine: Machine) -> None:
        self.machines.pop(machine.name, None)
        self._write_ssh_config()

    def inside(self, function: Callable[[], T]) -> T:
        """What the function gives when it runs inside this network, where it reaches the machines: a thread of its own
        goes there. A socket that it makes stays there."""
        results: list[T] = []
        errors: list[BaseException] = []

        def there() -> None:
            try:
                with open(NETNS / self.name) as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), f"cannot enter {self.name}")
                results.append(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was called
                errors.append(error)

        thread = threading.Thread(target=there, name=self.name)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def _write_ssh_config(self) -> None:
        known, lines = [], []
        for machine in self.machines.values():
            known.append(f"{machine.name},{machine.address} {machine.host_key}")
            lines.append(f"Host {machine.name}\n  HostName {machine.address}")
        relay = [*self.prefix, sys.executable, "-I", "-S", str(HERE / "relay.py"), "%h", "%p"]
        lines += [
            "Host *",
            "  User root",
            f"  IdentityFile {self.directory / 'key'}",
            "  IdentitiesOnly yes",
            "  IdentityAgent none",
            f"  UserKnownHostsFile {self.directory / 'known_hosts'}",
            "  GlobalKnownHostsFile /dev/null",
            "  StrictHostKeyChecking yes",
            f"  ProxyCommand {' '.join(relay)}",
            "  ProxyUseFdpass yes",
        ]
        for path, content in ((self.directory / "known_hosts", known), (self.ssh_config, lines)):
            new = path.with_suffix(".new")
            new.write_text("\n".join([*content, ""]))
            new.replace(path)  # somebody may be reading


class Machine:
    """Made by `network.boot`. It can be cut off and crash; a crash is what the loss of power is: not a packet tells."""

    def __init__(self, network: Network, name: str, number: int) -> None:
        self.network = network
        self.name = name
        self.number = number
        self.address = f"10.231.0.{number + 1}"
        self._netns = f"{network.name}-{name}"
        self._cable = f"v{number}"  # the end in the switch
        self._hardware = f"02:00:00:00:00:{number:02x}"
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = network.directory / name
        for part in ("files", "work", "root"):
            (self._directory / part).mkdir(parents=True)
        self.host_key = self._prepare_files()

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def boot(self) -> None:
        assert not self.is_up, f"{self.name} is running"
        self._connect()
        init = ["sh", str(HERE / "machine.sh"), str(self._directory), self.name]
        spaces = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        with open(self._directory / "console", "wb") as console:
            self._process = subprocess.Popen(
                [which("nsenter"), f"--net={NETNS / self._netns}", which("unshare"), *spaces, *init],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=console,
                env={"PATH": PATH},
                cwd="/",
                start_new_session=True,  # a Ctrl-C is for pytest, which ends the machines in its own order
            )
        self._wait_for_sshd()

    def cut(self) -> None:
        """No packet passes any more, either way, and nobody is told."""
        ip(f"link set {self._cable} nomaster", at=self.network.name)

    def heal(self) -> None:
        ip(f"link set {self._cable} master br0", at=self.network.name)

    def crash(self) -> None:
        """Nothing on it runs any more, and /tmp and /run are lost with its memory. `boot` brings it back."""
        # The cable first: a kernel that ends processes closes their connections properly, a dead machine does not.
        ip(f"link del {self._cable}", at=self.network.name)
        self._end()
        ip(f"netns del {self._netns}")

    def hang_up(self) -> None:
        """Its sshd ends with all connections. Who asks is refused at once, which takes less time than silence."""
        self.run(HANG_UP)
        self.network.inside(lambda: wait_until(lambda: not self._answers(), 30, f"the end of the sshd of {self.name}"))

    def serve(self, port: int = 22, *options: str) -> None:
        """By an sshd, which is in the background before it listens."""
        self.run(" ".join(["/usr/sbin/sshd", "-p", str(port), *options]))
        self._wait_for_sshd(port)

    def run(self, command: str, *, input: str = "", check: bool = True) -> str:
        """The output of a shell command as root on the machine, in its /root, without a network."""
        assert self._process is not None
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]
        enter = [which("nsenter"), "--target", str(self._first_process()), *spaces]
        env = {"PATH": PATH, "HOME": "/root", "USER": "root", "LANG": "C.UTF-8"}
        return run([*enter, "sh", "-c", f"cd\n{command}"], input=input, check=check, env=env)

    def remove(self) -> None:
        """Machine and files. The name is free for another one, which then has another address and host key."""
        try:
            self._end()
        finally:
            remove_namespace(self._netns)
            shutil.rmtree(self._directory, ignore_errors=True)
            self.network.forget(self)

    def _prepare_files(self) -> str:
        files = self._directory / "files"
        ssh = files / "etc" / "ssh"
        ssh.mkdir(parents=True)
        key = ssh / "ssh_host_ed25519_key"
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(key)])
        config = [
            f"HostKey /etc/ssh/{key.name}",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "UsePAM no",
            "AcceptEnv LANG LC_*",
            "Subsystem sftp internal-sftp",
            # The newer ones cost more time than all the rest of a connection, and prove nothing here.
            "KexAlgorithms curve25519-sha256",
            "PidFile /run/sshd.pid",
        ]
        (ssh / "sshd_config").write_text("\n".join([*config, ""]))
        (files / "etc" / "hostname").write_text(f"{self.name}\n")
        (files / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        # Nobody listens there, so a look-up fails at once; it would wait for seconds if its question vanished.
        (files / "etc" / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        home = files / "root"
        home.mkdir(mode=0o700)
        os.setxattr(home, "trusted.overlay.opaque", b"y")  # nothing of this machine's own /root shows through
        (home / ".ssh").mkdir(mode=0o700)
        allowed = home / ".ssh" / "authorized_keys"
        allowed.write_text((self.network.directory / "key.pub").read_text())
        allowed.chmod(0o600)
        return " ".join(key.with_suffix(".pub").read_text().split()[:2])

    def _connect(self) -> None:
        hub = self.network.name
        if (NETNS / self._netns).exists():  # it went down without `crash`
            run(["ip", "-n", hub, "link", "del", self._cable], check=False)
            remove_namespace(self._netns)
        cable = f"link add {self._cable} netns {hub} type veth peer name eth0 address {self._hardware}"
        ip(f"netns add {self._netns}", f"{cable} netns {self._netns}")
        ip(
            f"link set {self._cable} master br0 up",
            # Known for good, or connecting to a machine that is cut off would be answered, with "No route to host".
            f"neigh replace {self.address} lladdr {self._hardware} dev br0 nud permanent",
            at=hub,
        )
        ip("link set lo up", f"addr add {self.address}/24 dev eth0", "link set eth0 up", at=self._netns)

    def _wait_for_sshd(self, port: int = 22) -> None:
        self.network.inside(lambda: wait_until(lambda: self._answers(port), 30, f"sshd of {self.name}"))

    def _answers(self, port: int = 22) -> bool:
        assert self.is_up, f"{self.name} did not come up: {(self._directory / 'console').read_text()}"
        try:
            with create_connection((self.address, port), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _first_process(self) -> int:
        assert self._process is not None
        outside = self._process.pid
        return int(Path(f"/proc/{outside}/task/{outside}/children").read_text().split()[0])

    def _end(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            try:
                # When the first process of a pid namespace is gone, so are all the others.
                os.kill(self._first_process(), signal.SIGKILL)
            except (IndexError, OSError):
                self._process.kill()
        self._process.wait(30)
        assert self._process.stdin
        self._process.stdin.close()
        self._process = None


def close_connections(home: Path) -> None:
    """Those that `mngr` of that home keeps open for a while: they have the home in their environment."""
    for socket in glob(f"{socket_path(str(home))}-*"):
        subprocess.run(["ssh", "-O", "exit", "-S", socket, "any"], capture_output=True, timeout=20)


def directory_for_layers() -> Path:
    """Where the files of an overlay can lie: not on an overlay."""
    usual = Path(os.environ.get("MNGR_E2E_TMPDIR") or tempfile.gettempdir()).resolve()
    return usual if file_system(usual) != "overlayfs" else Path("/dev/shm")


def file_system(path: Path) -> str:
    return run([which("stat"), "--file-system", "--format=%T", str(path)]).strip()


def remove_leftovers() -> None:
    """Of runs that were killed: everything is named for the process that made it."""
    named = [*(NETNS.iterdir() if NETNS.exists() else ()), *directory_for_layers().glob("mngr-net-*")]
    for path in named:
        match = NAMED.fullmatch(path.name)
        if not match or is_theirs(int(match[1]), path.name):
            continue
        if path.parent == NETNS:
            remove_namespace(path.name)
        else:
            shutil.rmtree(path, ignore_errors=True)


def is_theirs(pid: int, name: str) -> bool:
    if pid == os.getpid():  # now ours, once another's
        return any(name == ours or name.startswith(f"{ours}-") for ours in _present)
    return is_alive(pid)


def remove_namespace(name: str) -> None:
    """And every process in it: in that of a network, connections of ssh that stay open, say. Another run may be at it
    too, or it may be gone."""
    if not (NETNS / name).exists():
        return
    for pid in run(["ip", "netns", "pids", name], check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    run(["ip", "netns", "del", name], check=False)


def ip(*lines: str, at: str = "") -> None:
    where = ["-n", at] if at else []
    run(["ip", *where, "-batch", "-"], input="\n".join([*lines, ""]))


def run(argv: list[str], *, input: str = "", check: bool = True, env: dict[str, str] | None = None) -> str:
    env = env or {"PATH": PATH, "LC_ALL": "C"}
    done = subprocess.run([which(argv[0]), *argv[1:]], input=input, text=True, capture_output=True, env=env, timeout=60)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)} exited {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def which(program: str) -> str:
    found = shutil.which(program, path=PATH)
    assert found, f"{program} is missing: run make places"
    return found
