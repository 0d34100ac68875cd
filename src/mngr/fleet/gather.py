"""Bringing home what agents have made: results, artifacts, histories, screens and transcripts, in one round trip per
host for any number of agents.

What an agent leaves in its directory may be anything, and of any size. The host sends regular files only, and of each
agent no more than its share; the same is enforced again here, where nothing but these files is ever written. An agent's
directory here is replaced as a whole, or stays as it was."""

from __future__ import annotations

import errno
import os
import select
import shutil
import tarfile
import tempfile
import time

from mngr import hosts, jsonline, process, registry, waiting
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.fleet.side_by_side import ask_hosts
from mngr.hosts.lifeline import SHELL, tied
from mngr.model import is_commit, new_id
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Any, Self

    from mngr.agents.log import Entry
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

RESULT = 1 << 20  # bytes of a result
ARTIFACTS = 64 << 20  # bytes of an agent's artifacts, unless told otherwise
_FILES = 20_000  # artifacts of an agent
_HISTORY = 256 << 20  # bytes of everything else that an agent has: its session logs, as a rule
_LEFT = 1000  # files that are named of those that were not brought
_LINE = 8 << 20  # bytes of a record in a session log
_SILENCE = 300.0  # seconds without a byte, after which a host is given up
_LOGS = "logs"  # where session logs are until they have been read
_KEPT = ("result.json", "artifacts", "events.jsonl", "messages.jsonl", "create.log")  # anything else is a session log
_NO_SUCH_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)


class Gathered(Record):
    """What is known of an agent besides its files."""

    result_bytes: int | None = None  # of its result, also of one that is too long to be brought; None: it has none
    head: str = ""  # the commit of its branch
    dirty: int = -1  # files in its work dir that are not committed; -1: not known
    on: str = ""  # the branch that is checked out there; empty for none
    left: list[str] = []  # noqa: RUF012 - Record copies defaults; what was not brought, as paths below its directory
    unread: int = 0  # records of its session logs that broke the reader, and are not in the transcript
    state: str = ""  # the text of its state file: STATE TIME [REASON]
    exit: str = ""  # the text of its exit file: TIME STATUS SIGNAL; empty as long as its program runs


def gather(fleet: Fleet, refs: Iterable[Ref], into: str, *, most: int = ARTIFACTS) -> dict[str, Gathered]:
    """For each agent a directory of its name in `into`, in the place of an older one, with result.json, artifacts/,
    events.jsonl, messages.jsonl, create.log, screen.txt and transcript.jsonl, as far as there are any. By id; agents
    that are gone, or whose host cannot be reached, are missing, and their directories as they were."""
    try:
        os.makedirs(into, exist_ok=True)
        return ask_hosts(fleet, refs, lambda host, group: _from_host(host, group, into, most))
    except OSError as error:
        raise MngrError(f"{into} cannot be written: {error.strerror}") from None


def _from_host(host: Host, refs: list[Ref], into: str, most: int) -> dict[str, Gathered]:
    mark = new_id()  # of this call alone: what a program shows must not pass for a line of ours
    limits = f"RESULT={RESULT} MOST={most} FILES={_FILES} HISTORY={_HISTORY} LEFT={_LEFT}"
    parts = [limits, hosts.read_script(__file__, "screen.sh"), hosts.read_script(__file__, "gather.sh")]
    parts.append(f"gather {mark} {' '.join(ref.id for ref in refs)}")
    fresh = tempfile.mkdtemp(prefix=".mngr.", dir=into)
    try:
        with _Answer(host, "\n".join(parts)) as answer:
            told = _Told(answer.until(f"{mark} tar\n"), mark, {ref.id for ref in refs})
            came = _Unpacked(answer, told, fresh, most)
            answer.check_end()
        found = {}
        for ref in refs:
            if ref.id in told.agents:
                found[ref.id] = _complete(ref, told, came, fresh)
                _put(fresh, ref, into)
        return found
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


class _Told:
    """What the host says before the archive."""

    def __init__(self, text: str, mark: str, ids: set[str]) -> None:
        self.agents: dict[str, Gathered] = {}
        self.screens: dict[str, str] = {}
        self.files: dict[str, str] = {}  # by their names in the archive: whose
        self.logs: dict[str, list[str]] = {id: [] for id in ids}
        self.left: dict[str, list[str]] = {id: [] for id in ids}
        facts, *sections = text.split(f"{mark} ")
        for line in facts.split("\n"):
            word, _, rest = line.partition(" ")
            id, _, value = rest.partition(" ")
            if id in ids:
                self._fact(word, id, value)
        for section in sections:
            head, _, body = section.partition("\n")
            if head == "lists":
                for line in body.split("\n"):
                    self._listed(*line.partition(" ")[::2])
            elif head in self.agents:
                self.screens[head] = body.rstrip("\n") + "\n"

    def _fact(self, word: str, id: str, value: str) -> None:
        if word == "agent":
            head, dirty, on = words if len(words := value.split(" ")) == 3 else ("", "", "")  # its env may be damaged
            self.agents[id] = Gathered(
                head=head if is_commit(head) else "",
                dirty=int(dirty) if dirty.isdecimal() else -1,
                on="" if on in ("-", "(detached)") else on,
            )
        elif id in self.agents:
            self.agents[id] = self.agents[id].replace(**{word: value})

    def _listed(self, word: str, value: str) -> None:
        if word in ("result", "more"):
            id, _, number = value.partition(" ")
            if id in self.agents and word == "result":
                self.agents[id] = self.agents[id].replace(result_bytes=int(number))
            elif id in self.agents:
                self.left[id].append(f"and {number} more")
            return
        parts = value.split("/")
        if len(parts) < 3 or parts[0] != "." or parts[1] not in self.agents or {"", ".", ".."} & set(parts[1:]):
            return
        path = "/".join(parts[2:])
        if word == "file":
            self.files[value] = parts[1]
        elif word == "log" and value not in self.logs[parts[1]]:
            self.logs[parts[1]].append(value)
        elif word == "left":
            self.left[parts[1]].append(path)


class _Unpacked:
    """The files that were announced, as far as they have come. One that was changed meanwhile, into a link or beyond
    its agent's share, does not count."""

    def __init__(self, answer: _Answer, told: _Told, fresh: str, most: int) -> None:
        self.names: set[str] = set()
        self._files, self._fresh = told.files, fresh
        self._limits = {"artifacts": most, "result.json": RESULT}
        self._room: dict[tuple[str, str], int] = {}
        if not told.files:
            return
        stream: Any = answer  # all that tarfile needs of a file is `read`
        try:
            with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as archive:
                for member in archive:
                    if member.name in self._files and member.name not in self.names and self._fits(member):
                        self._take(archive, member)
        except tarfile.TarError as error:
            raise HostUnreachable(f"{answer.host.name} broke off: {error}") from None

    def path(self, name: str) -> str:
        return os.path.join(self._fresh, "" if name.split("/")[2] in _KEPT else _LOGS, name)

    def _fits(self, member: tarfile.TarInfo) -> bool:
        kind = member.name.split("/")[2]
        share = (self._files[member.name], kind if kind in self._limits else "")
        left = self._room.get(share, self._limits.get(kind, _HISTORY)) - member.size
        if left >= 0:
            self._room[share] = left
        return left >= 0

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self.path(member.name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if member.islnk() and member.linkname in self.names:  # a second name of the same file
                os.link(self.path(member.linkname), path)
            elif member.isreg() and (source := archive.extractfile(member)):
                with open(path, "xb") as file:
                    shutil.copyfileobj(source, file, 1 << 18)
            else:
                return
        except OSError as error:
            if error.errno not in _NO_SUCH_NAME:
                raise
        else:
            self.names.add(member.name)


def _complete(ref: Ref, told: _Told, came: _Unpacked, fresh: str) -> Gathered:
    """Adds what is no file of the agent's own, and says what is missing."""
    place = os.path.join(fresh, ref.id)
    os.makedirs(place, exist_ok=True)
    if ref.id in told.screens:
        with open(os.path.join(place, "screen.txt"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(told.screens[ref.id])
    logs = [came.path(name) for name in told.logs[ref.id] if name in came.names]
    unread = _transcribe(ref, logs, os.path.join(place, "transcript.jsonl"))
    lost = [name.split("/", 2)[2] for name, id in told.files.items() if id == ref.id and name not in came.names]
    unseen = [
        path for path in told.left[ref.id] if not os.path.isdir(os.path.join(place, path))
    ]  # root can look anywhere
    return told.agents[ref.id].replace(left=lost + unseen, unread=unread)


def _transcribe(ref: Ref, logs: list[str], target: str) -> int:
    """In the form that docs/transcripts.md describes. What cannot be read is passed over; how many records a reader
    broke on is returned. An agent can write anything into its log: that must not keep its work, and that of all others
    on its host, from coming home."""
    type = registry.type_of(ref)
    unread = 0
    if not logs or type.reader() is None:
        return unread
    with open(target, "w", encoding="ascii") as out:
        for log in logs:
            reader = type.reader()
            assert reader is not None
            for record in _records(log):
                try:
                    lines = [_line(entry) for entry in reader.entries(record) or []]
                except Exception:  # noqa: BLE001 - whatever it is
                    unread += 1
                else:
                    out.writelines(lines)
    return unread


def _line(entry: Entry) -> str:
    import json

    return json.dumps({**entry.to_dict(), "usage": entry.usage.to_dict() if entry.usage else None}) + "\n"


def _records(log: str) -> Iterator[dict[str, object]]:
    with open(log, "rb") as file:
        while line := file.readline(_LINE):
            try:
                record = jsonline.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _put(fresh: str, ref: Ref, into: str) -> None:
    """In place of what was there; and of what another puts there at the same time, whichever comes last."""
    target = os.path.join(into, ref.name)
    for number in range(100):
        try:
            os.rename(target, os.path.join(fresh, f"old-{ref.id}-{number}"))
        except FileNotFoundError:
            pass
        try:
            return os.rename(os.path.join(fresh, ref.id), target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    raise MngrError(f"{target} cannot be written: others keep writing to it")


class _Answer:
    """What a script on a host says: a text first, and then bytes. A context manager: the script ends with it."""

    def __init__(self, host: Host, body: str) -> None:
        self.host, self._body = host, body
        self._held = b""

    def __enter__(self) -> Self:
        pipe, null = process.PIPE, process.NULL
        self._child = self.host.start(SHELL, [], stdin=pipe, stdout=pipe, stderr=null)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._poller = select.poll()
        self._poller.register(self._child.stdout, select.POLLIN)
        # Parsed as one group before anything runs, so that the script is read before it says anything.
        script = hosts.script_for(self.host, self._body)
        if self.host.lines is None:
            text = f"{{ {script}\n}} </dev/null; exit\n"
        else:
            text = f"{{ {tied(script)}\nexit; }}\n"  # it ends with us; on this machine, our end is its end
        data = text.encode("utf-8", "surrogateescape")
        try:
            while data:
                data = data[os.write(self._child.stdin, data) :]
        except BrokenPipeError:
            pass  # there will be no answer either
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.end(grace=1)
        for fd in (self._child.stdin, self._child.stdout):
            assert fd is not None
            os.close(fd)

    def until(self, end: str) -> str:
        """The text before that line."""
        mark, text = end.encode(), bytearray()
        while (at := text.find(mark)) < 0:
            block = self.read(1 << 16)
            if not block:
                raise HostUnreachable(f"{self.host.name} broke off")
            text += block
        self._held = bytes(text[at + len(mark) :])
        return text[:at].decode("utf-8", "surrogateescape")

    def read(self, size: int) -> bytes:
        """As much as there is, up to `size`; nothing at the end."""
        if not self._held:
            if not waiting.ready(self._poller, time.monotonic() + _SILENCE):
                raise TimedOut(f"{self.host.name}: nothing came for {_SILENCE:g} s")
            assert self._child.stdout is not None
            self._held = os.read(self._child.stdout, 1 << 18)
        block, self._held = self._held[:size], self._held[size:]
        return block

    def check_end(self) -> None:
        """That it was said to its end: a connection that breaks can look like one."""
        while self.read(1 << 18):
            pass
        if self._child.wait():
            raise HostUnreachable(f"{self.host.name} broke off")
