"""Podman for tests, with an image that is made of this machine's own packages: no registry is asked, no network needed.

    with Podman() as podman:
        subprocess.run(["podman", "run", "--rm", podman.image, "tmux", "-V"], env=os.environ | podman.env)

`podman.env` turns any `podman` to the storage of the tests, which lies in a cache of the user's, by the versions of
what is in the image, and which all tests share. It also marks each container, whoever makes it, with the process that
tests it: at the end its containers are removed, and at the next beginning those of processes that were killed."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Self

from tests.home import is_alive
from tests.places.network import file_system, run, which

IMAGE = "localhost/mngr-test:1"
# What a host needs for agents, and what an image without Python usually has.
PACKAGES = """
    base-files bash coreutils dash debianutils diffutils findutils git grep gzip hostname libc-bin mawk ncurses-base
    ncurses-bin procps sed tar tmux util-linux
""".split()
LEFT_OUT = re.compile("/usr/share/(doc|man|info|locale|lintian|bash-completion|bug)/|/(proc|sys|dev)/")
LIBRARY = re.compile(r"(?:=> |^\t)(/\S+) \(", re.MULTILINE)
MARK = "mngr.test.process"

_numbers = count(1)
prepared: set[Path] = set()  # storages that have the image, as this process knows


class Podman:
    image = IMAGE

    def __enter__(self) -> Self:
        assert sys.platform == "linux", "podman for tests runs on Linux"
        assert os.geteuid() == 0, "podman for tests keeps its containers as root: run these tests as root"
        assert shutil.which("dpkg-query"), "the image for tests is made of the packages of a Debian or an Ubuntu"
        self._mark = f"{os.getpid()}-{next(_numbers)}"
        place = place_of_storage()
        self._directory = place / "processes" / self._mark
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self.env = write_configuration(self._directory, place, self._mark)
            if place not in prepared:
                self._prepare(place)
                prepared.add(place)
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        return self

    def _prepare(self, place: Path) -> None:
        with open(place / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the first of all workers makes the image
            if IMAGE not in self.run("images", "--format", "{{.Repository}}:{{.Tag}}").split():
                self._import_image()
            self._remove_leftovers(self._directory.parent)

    def __exit__(self, *_: object) -> None:
        try:
            for container in self.containers():
                self._remove(container)
        finally:
            shutil.rmtree(self._directory)

    def run(self, *words: str, check: bool = True) -> str:
        """What podman prints: `podman.run("exec", "foo", "ps")`."""
        env = {"PATH": os.environ["PATH"], "HOME": "/root", **self.env}
        for _ in range(9 if words[0] == "images" else 0):
            try:
                return run(["podman", *words], env=env)
            except AssertionError as error:  # a list breaks off at an image that another test removes meanwhile
                if "image not known" not in str(error):
                    raise
        return run(["podman", *words], check=check, env=env)

    def containers(self) -> list[str]:
        """The ids of those that were made with this `env`."""
        return [container for container, mark in self._marked() if mark == self._mark]

    def _marked(self) -> list[tuple[str, str]]:
        every = self.run("ps", "--all", "--quiet", "--no-trunc").split()
        if not every:
            return []
        shown = f'{{{{.Id}}}} {{{{index .Config.Annotations "{MARK}"}}}}'
        # Unchecked, because others remove theirs at any time: of those that are there, it tells.
        told = self.run("container", "inspect", "--format", shown, *every, check=False)
        if not told:  # one that somebody was killed while removing makes it tell of none at all
            told = "".join(self.run("container", "inspect", "--format", shown, each, check=False) for each in every)
        return [(words[0], words[1]) for words in map(str.split, told.splitlines()) if len(words) == 2]

    def _remove_leftovers(self, processes: Path) -> None:
        for container, mark in self._marked():
            if not is_alive(pid_of(mark)):
                self._remove(container, check=False)
        for directory in processes.iterdir():
            if not is_alive(pid_of(directory.name)):
                shutil.rmtree(directory, ignore_errors=True)

    def _remove(self, container: str, *, check: bool = True) -> None:
        self.run("rm", "--force", "--time", "0", "--volumes", container, check=check)

    def _import_image(self) -> None:
        command = [which("podman"), "import", "--quiet", "--change", 'CMD ["sh"]', "-", IMAGE]
        with subprocess.Popen(
            command, env=os.environ | self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as importing:
            assert importing.stdin
            assert importing.stdout
            try:
                with tarfile.open(fileobj=importing.stdin, mode="w|") as archive:
                    write_root(archive)
                importing.stdin.close()
            except BrokenPipeError:
                pass  # what it said tells why
            told = importing.stdout.read().decode()
        assert importing.returncode == 0, f"podman import failed: {told}"


def pid_of(mark: str) -> int:
    return int(mark.partition("-")[0])


def place_of_storage() -> Path:
    """Another one for every set of versions, and for every change to this file."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parent = Path(os.environ.get("MNGR_PLACES") or caches / "mngr-places")
    versions = run(["dpkg-query", "--show", *PACKAGES]) + run(["podman", "--version"])
    key = hashlib.sha256(f"{parent}\n{versions}\n{Path(__file__).read_text()}".encode()).hexdigest()[:8]
    place = parent / key
    place.mkdir(parents=True, exist_ok=True)
    return place


def write_configuration(directory: Path, place: Path, mark: str) -> dict[str, str]:
    """The environment that leads to it."""
    # Short, because sockets lie in there, and not beside the storage, because it describes what is running now.
    state = f"/run/mngr-{place.name}"
    # Overlays do not go on overlays, as in a container that runs these tests. Copies go everywhere, and are slower.
    driver = "vfs" if file_system(place) == "overlayfs" else "overlay"
    containers = [
        "[containers]",
        # The usual ones are more than what an unprivileged machine can give.
        f'default_ulimits = ["nofile={limit(resource.RLIMIT_NOFILE)}", "nproc={limit(resource.RLIMIT_NPROC)}"]',
        f'annotations = ["{MARK}={mark}"]',
        'netns = "none"',  # what wants a network says so
        "[engine]",
        'runtime = "runc"',  # crun refuses machines with both kinds of cgroups
        'cgroup_manager = "cgroupfs"',
        'events_logger = "file"',
        'lock_type = "file"',  # the other kind is shared with the user's own podman
        f'tmp_dir = "{state}"',
        "[network]",
        'network_backend = "netavark"',
    ]
    storage = [
        "[storage]",
        f'driver = "{driver}"',
        f'graphroot = "{place / "storage"}"',
        f'runroot = "{state}/storage"',
    ]
    (directory / "containers.conf").write_text("\n".join([*containers, ""]))
    (directory / "storage.conf").write_text("\n".join([*storage, ""]))
    return {
        "CONTAINERS_CONF": str(directory / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
    }


def limit(what: int) -> str:
    hard = resource.getrlimit(what)[1]
    value = 32768 if hard == resource.RLIM_INFINITY else min(hard, 32768)
    return f"{value}:{value}"


def write_root(archive: tarfile.TarFile) -> None:
    """The files of the packages, the libraries that their programs load, and the few that installing them writes."""
    listed = run(["dpkg-query", "--listfiles", *PACKAGES]).splitlines()
    paths = on_the_way(path for path in listed if path.startswith("/") and os.path.lexists(path))
    paths |= on_the_way(LIBRARY.findall(run(["ldd", *filter(is_program, sorted(paths))], check=False)))
    for path in sorted(paths):
        archive.add(path, recursive=False)
    for name, content in (
        ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
        ("etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"),
    ):
        file = tarfile.TarInfo(name)
        file.size = len(content)
        archive.addfile(file, io.BytesIO(content.encode()))
    awk = tarfile.TarInfo("usr/bin/awk")
    awk.type, awk.linkname = tarfile.SYMTYPE, "mawk"
    archive.addfile(awk)


def on_the_way(wanted: Iterable[str]) -> set[str]:
    """The paths as they are without links, with all directories and links that lead to them: /bin may be a link."""
    found: set[str] = set()
    todo = list(wanted)
    while todo:
        directory, name = os.path.split(todo.pop())
        path = os.path.join(os.path.realpath(directory), name)
        if not name or name == "." or path in found or LEFT_OUT.match(f"{path}/"):
            continue
        found.add(path)
        todo += [directory, os.path.dirname(path)]
        if os.path.islink(path):
            todo.append(os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path))))
    return {path for path in found if os.path.lexists(path)}


def is_program(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
