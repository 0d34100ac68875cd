"""Containers of docker and podman, which are equals: what they have in common of their command lines is all that is
used. Nothing has to run in an image but `sh`; agents need tmux and git in it.

A container is known by its name and its labels, so that it is found when everything here is lost. Its first process
does nothing but wait: it collects what others leave, and ends at once when it is told to."""

from __future__ import annotations

import os
import time

from mngr import process
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.hosts import program, settings
from mngr.hosts.lines import Lines
from mngr.hosts.owner import home_id
from mngr.hosts.place import RUNNING, STOPPED
from mngr.hosts.remote import Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.hosts.place import Place

_MAIN = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
_HOME, _HOST, _MADE, _ATTEMPT = "mngr.home", "mngr.host", "mngr.made", "mngr.attempt"
# The usual ones begin with Ctrl-P, which agents want for themselves; these nobody types.
_DETACH = "ctrl-^,ctrl-_,ctrl-^,ctrl-_"
_ANSWER, _MINUTES, _HOUR = 30.0, 300.0, 3600.0  # deadlines
_GRACE = 10  # seconds, for processes in a container that is stopped
_GONE = ("no such container", "no container with name")
_STOPPED = ("container state improper", "is not running")


class Containers:
    name = ""  # also of the program
    makes = True
    options: Mapping[str, str] = {
        "image": "what it is made from; it needs sh, tmux and git",
        "dockerfile": "file to build the image from, with its directory as the context",
        "mount": "HERE:THERE[:ro], a directory of this machine; as often as needed",
        "memory": "at most, as in 2g",
        "cpus": "at most, as in 1.5",
        "network": "none, host, bridge or the name of one",
        "user": "who agents are in it",
        "workdir": "working directory of its processes",
        "run": "one more argument for `run`; as often as needed",
        "home": "directory for mngr's files in it; ~/.mngr unless told",
    }

    def reach(self, place: Place) -> Remote:
        container = self._container(place)

        def there(script: str, tty: bool) -> list[str]:
            terminal = ["-t", "--detach-keys", _DETACH, "-e", f"TERM={os.environ.get('TERM') or 'xterm'}"]
            return [self.name, "exec", "-i", *(terminal if tty else []), container, "sh", "-c", script]

        host = Remote(place, there)
        host.lines = _Lines(place.name, host.three_pipes)
        return host

    def make(self, name: str, options: Mapping[str, str], tell: Callable[[str], None]) -> str:
        wanted = self._wanted(options)
        image = self._image(wanted, tell)
        attempt, container = os.urandom(8).hex(), self._name(name)
        labels = {_HOME: home_id(), _HOST: name, _MADE: str(int(time.time())), _ATTEMPT: attempt}
        words = ["run", "--detach", "--name", container, "--entrypoint", "/bin/sh"]
        words += [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
        words += [*_limits(wanted), *_lines(wanted, "run"), image, "-c", _MAIN]
        try:
            done = self._ask(*words, deadline=_MINUTES)
            if done.code:
                raise self._not_made(name, container, done)
        except BaseException:
            self._take_back(attempt)
            raise
        return container

    def find(self) -> dict[str, str]:
        done = self._ask("ps", "--all", "--filter", f"label={_HOME}={home_id()}", "--format", "{{.Names}}")
        if done.code:
            raise HostUnreachable(f"{self.name}: {_plain(program.said(done))}")
        start = self._name("")
        return {name.removeprefix(start): name for name in done.out.split() if name.startswith(start)}

    def stop(self, place: Place) -> Place:
        self._do(place, "stop", "-t", str(_GRACE))
        return place.replace(state=STOPPED)

    def start(self, place: Place) -> Place:
        self._do(place, "start")
        return place.replace(state=RUNNING)

    def remove(self, place: Place) -> None:
        done = self._ask("rm", "--force", "--volumes", self._container(place), deadline=_MINUTES)
        if done.code and not _is_gone(done):
            raise self._failed(done)

    def snapshot(self, place: Place, name: str) -> str:
        image = f"{self._images()}:{place.host}.{name}"  # names of hosts fit into tags, but not before them
        self._do(place, "commit", after=[image])
        return image

    def unused_images(self) -> list[str]:
        """Those that `snapshot` made and that no container is made of, whoever made it."""
        for _ in range(5):  # a list breaks off at an image that somebody else removes meanwhile
            kept = self._ask("images", "--format", "{{.Repository}}:{{.Tag}}", self._images())
            if not (kept.code and _is_unknown_image(kept)):
                break
        used = self._ask("ps", "--all", "--format", "{{.Image}}")
        if kept.code or used.code:
            raise HostUnreachable(f"{self.name}: {_plain(program.said(kept if kept.code else used))}")
        return sorted(set(kept.out.split()) - set(used.out.split()))

    def discard(self, image: str) -> None:
        """Refused by the program itself when a container has been made of it since."""
        done = self._ask("rmi", image, deadline=_MINUTES)
        if done.code and not _is_unknown_image(done):
            raise HostUnreachable(f"{self.name}: {_plain(program.said(done))}")

    def _images(self) -> str:
        return f"localhost/mngr-{home_id()}"

    def _name(self, host: str) -> str:
        return f"mngr-{home_id()}-{host}"

    def _container(self, place: Place) -> str:
        """A create that was killed has not kept the name, but it had no other to give."""
        return place.id or self._name(place.host)

    def _wanted(self, options: Mapping[str, str]) -> dict[str, str]:
        if options.get("image") and options.get("dockerfile"):
            raise UsageError("image and dockerfile are two ways to say one thing", "give one of them")
        usual = settings.defaults(self.name, self.options)
        if options.get("image") or options.get("dockerfile"):
            usual.pop("image", None)
            usual.pop("dockerfile", None)
        elif usual.get("dockerfile"):
            usual.pop("image", None)
        return {key: value for key, value in {**usual, **options}.items() if value}

    def _image(self, wanted: Mapping[str, str], tell: Callable[[str], None]) -> str:
        """It is here afterwards: what may take minutes is told, and not hidden in `run`."""
        if dockerfile := wanted.get("dockerfile"):
            return self._build(os.path.abspath(os.path.expanduser(dockerfile)), tell)
        image = wanted.get("image")
        if not image:
            raise UsageError(
                f"no image for a {self.name} host",
                f"--with image=IMAGE, or for all: mngr config set providers.{self.name}.image IMAGE",
            )
        if image.startswith("-"):
            raise UsageError(f"{image!r} is not the name of an image")
        done = self._ask("image", "inspect", "--format", "{{.Id}}", image)
        if done.code:
            if not _is_unknown_image(done):
                raise HostUnreachable(f"{self.name}: {_plain(program.said(done))}")
            if image.startswith("localhost/"):
                raise MngrError(f"there is no image {image}", f"{self.name} images shows those that there are")
            tell(f"fetching the image {image}")
            self._follow("pull", image, what=f"there is no image {image}")
        return image

    def _build(self, dockerfile: str, tell: Callable[[str], None]) -> str:
        """Each time anew, under a name that goes with what the file says: the program knows which of its steps are done
        already, also when another file of the directory has changed."""
        import hashlib

        try:
            with open(dockerfile, "rb") as file:
                digest = hashlib.sha256(os.fsencode(dockerfile) + b"\0" + file.read()).hexdigest()[:12]
        except OSError as error:
            raise UsageError(f"cannot read the dockerfile {dockerfile}: {error.strerror}") from None
        image, directory = f"localhost/mngr-built:{digest}", os.path.dirname(dockerfile)
        tell(f"building the image of {dockerfile}")

        def step(line: str) -> None:
            if _is_step(line):
                tell(line)

        self._follow(
            "build", "--file", dockerfile, "--tag", image, directory, line=step, what=f"{dockerfile} cannot be built"
        )
        return image

    def _take_back(self, attempt: str) -> None:
        """What this attempt made, and nothing of the same name that was there before. If that fails too, it has the
        labels by which it is found."""
        try:
            done = self._ask("ps", "--all", "--quiet", "--filter", f"label={_ATTEMPT}={attempt}")
            for container in done.out.split() if done.code == 0 else []:
                self._ask("rm", "--force", "--volumes", container)
        except HostUnreachable:
            pass

    def _do(self, place: Place, *words: str, after: list[str] | None = None) -> None:
        container = self._container(place)
        done = self._ask(*words, container, *(after or []), deadline=_MINUTES)
        if done.code and _is_gone(done):
            raise HostUnreachable(
                f"{place.name} is gone: {self.name} has no container {container}", f"mngr host remove {place.name}"
            )
        if done.code:
            raise self._failed(done)

    def _follow(self, *words: str, what: str, line: Callable[[str], None] = lambda _: None) -> None:
        done = program.watch([self.name, *words], line, deadline=_HOUR)
        if done.code:
            raise MngrError(f"{what}: {_plain(program.said(done))}")

    def _ask(self, *words: str, deadline: float = _ANSWER) -> process.Done:
        return program.ask([self.name, *words], deadline=deadline)

    def _failed(self, done: process.Done) -> MngrError:
        return MngrError(f"{self.name}: {_plain(program.said(done))}")

    def _not_made(self, name: str, container: str, done: process.Done) -> MngrError:
        if "already in use" in done.err:
            return MngrError(
                f"there is already a {self.name} container {container}",
                f"mngr host add {name}.{self.name} takes it over; {self.name} rm -f {container} removes it",
            )
        return self._failed(done)


class _Lines(Lines):
    """With words for what is wrong with a container: the program's own are about its insides."""

    def broken(self, words: str) -> HostUnreachable:
        text = words.lower()
        if any(sign in text for sign in _GONE):
            return HostUnreachable(f"{self.name}: its container is gone", f"mngr host remove {self.name}")
        if any(sign in text for sign in _STOPPED):
            return HostUnreachable(f"{self.name}: it is not running", f"mngr host start {self.name}")
        return super().broken(words)


class Docker(Containers):
    name = "docker"


class Podman(Containers):
    name = "podman"


def _limits(wanted: Mapping[str, str]) -> list[str]:
    words = [
        word
        for key in ("memory", "cpus", "network", "user", "workdir")
        if wanted.get(key)
        for word in (f"--{key}", wanted[key])
    ]
    return [*words, *(word for mount in _lines(wanted, "mount") for word in _mount(mount))]


def _mount(text: str) -> list[str]:
    here, colon, rest = text.partition(":")
    there, _, how = rest.partition(":")
    if not colon or not here or not there.startswith("/"):
        raise UsageError(f"{text!r} is no mount", "HERE:THERE[:ro], as in ~/data:/data:ro")
    if "/" not in here and not here.startswith((".", "~")):
        return ["--volume", text]  # one of the program's own volumes, by its name
    here = os.path.abspath(os.path.expanduser(here))
    if how in ("", "ro") and "," not in here + there:
        # For a directory that is not there this is an error, where --volume makes one, as root.
        return ["--mount", f"type=bind,source={here},target={there}{',readonly' if how else ''}"]
    return ["--volume", f"{here}:{rest}"]


def _lines(wanted: Mapping[str, str], key: str) -> list[str]:
    return [line.strip() for line in wanted.get(key, "").split("\n") if line.strip()]


def _is_gone(done: process.Done) -> bool:
    return any(sign in done.err.lower() for sign in _GONE)


def _is_unknown_image(done: process.Done) -> bool:
    text = done.err.lower()
    return "no such image" in text or "image not known" in text or "not found" in text


def _is_step(line: str) -> bool:
    """`STEP 2/3: RUN ...` of podman, `#6 [2/3] RUN ...` of docker, `Step 2/3 : RUN ...` of older ones."""
    return line[:5].lower() == "step " or (line.startswith("#") and " [" in line[:6] and "/" in line)


def _plain(text: str) -> str:
    """Without what the program puts before every error."""
    for start in ("docker: ", "Error: ", "Error response from daemon: "):
        text = text.removeprefix(start)
    return text
