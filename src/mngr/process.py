"""Child processes on this machine: start one, or run one to its end with a deadline.

Built on posix_spawn because `subprocess` costs 11 ms of import on every verb. Children are in a process group of their
own, so that a deadline or Ctrl-C ends everything they started, and inherit no file descriptor beyond the standard
three: a lock or a pipe of our caller must not live on inside the tmux server."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 4 ms
import os
import select
import time

from mngr import waiting
from mngr.errors import MngrError, TimedOut
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

INHERIT, PIPE, NULL = -1, -2, -3  # where a stream goes, besides a descriptor of one's own
_SIGINT, _SIGKILL, _SIGPIPE, _SIGTERM = 2, 9, 13, 15  # the same everywhere
_DYING = 5.0  # seconds that what was killed may take until it is gone: longer is a disk that does not answer


class Done(Record):
    """How a process ended and what it said."""

    code: int  # negative: the signal that ended it
    out: str
    err: str


class Child:
    """A started process. The pipes that were asked for are here as descriptors; the caller closes them."""

    told: tuple[str, bytes] | None = None  # a script that it was given as it was started, and the mark of its answer

    def __init__(self, pid: int, stdin: int | None, stdout: int | None, stderr: int | None) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self.code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def has_begun(self, limit: float) -> bool:
        """For those that somebody else starts: whether that was done by `limit`."""
        return True

    def wait(self, deadline: float | None = None) -> int:
        """Its exit code; TimedOut, with the process still running, when `deadline` (monotonic) passes first."""
        if self.code is None and deadline is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        pause = 0.0002
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut(f"process {self.pid} still runs")
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        assert self.code is not None
        return self.code

    def end(self, grace: float = 2.0) -> int:
        """TERM to its group, and KILL to what is left of the group after `grace` seconds. Returns when it is gone.
        Its children are ended too, since one that holds our pipe, or ignores TERM, could outlive it."""
        if self.code is None:  # not collected yet, so the number is still its own
            for signal, patience in ((_SIGTERM, grace), (_SIGKILL, _DYING)):
                limit, pause = time.monotonic() + patience, 0.001
                if not self._signal(signal):
                    break
                while (self.poll() is None or self._group_lives()) and time.monotonic() < limit:
                    time.sleep(pause)
                    pause = min(pause * 2, 0.05)
        return self.wait()

    def _group_lives(self) -> bool:
        """Zombies answer signals, and where nobody collects orphans (a container without an init) they do so for ever:
        where /proc tells, they do not count."""
        if not self._signal(0) or not os.path.isdir("/proc/1"):
            return self._signal(0)
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    state, _, group = file.read().rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue  # it has just ended
            if int(group) == self.pid and state not in b"ZX":
                return True
        return False

    def _signal(self, signal: int) -> bool:
        """To its whole group; False when nobody is left in it."""
        try:
            os.killpg(self.pid, signal)
        except (ProcessLookupError, PermissionError):  # macOS refuses a group of zombies
            return False
        return True


def start(
    argv: list[str],
    *,
    stdin: int = NULL,
    stdout: int = PIPE,
    stderr: int = PIPE,
    env: Mapping[str, str] | None = None,
    group: bool = True,
) -> Child:
    """`group=False` keeps the child in our process group: for what must read the terminal and get its Ctrl-C."""
    _keep_descriptors_from_children()
    actions: list[tuple[int, ...]] = []
    ours: list[int | None] = []
    theirs: list[int] = []
    for target, stream in enumerate((stdin, stdout, stderr)):
        mine, child = ends(stream, target)
        ours.append(mine)
        if child is not None:
            theirs.append(child)
            actions.append((os.POSIX_SPAWN_DUP2, child, target))
    options = {"setpgroup": 0} if group else {}
    # What would interrupt us waits until somebody has the child, to end it: it can be at work long before we are back.
    held = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_SIGINT, _SIGTERM))
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            os.environ if env is None else env,
            file_actions=actions,
            setsigdef=[_SIGPIPE, _SIGINT],
            setsigmask=held,
            **options,  # type: ignore[arg-type]
        )
    except OSError as error:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, held)
        for fd in ours:
            if fd is not None:
                os.close(fd)
        raise MngrError(f"cannot run {argv[0]}: {error.strerror}") from error
    finally:
        for fd in theirs:
            if fd not in (stdin, stdout, stderr):
                os.close(fd)
    made = Child(pid, *ours)
    try:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, held)
    except BaseException:
        made.end(grace=10)
        raise
    return made


def ends(stream: int, target: int) -> tuple[int | None, int | None]:
    """(our end, the child's end) of one stream, which is `target` there."""
    if stream == INHERIT:
        return None, None
    if stream == NULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if stream == PIPE:
        reader, writer = os.pipe()
        return (writer, reader) if target == 0 else (reader, writer)
    return None, stream


_kept = False


def _keep_descriptors_from_children() -> None:
    """Python's own descriptors are close-on-exec; those that our caller left open (`exec 9>lock; mngr ...`) are not."""
    global _kept
    if _kept:
        return
    _kept = True
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        return
    for name in names:
        if name.isdecimal() and int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                continue  # the one that listdir itself had open


def run_in_front(argv: list[str], *, env: Mapping[str, str] | None = None) -> int:
    """With our own streams and in our own process group: what must read the terminal, get its Ctrl-C and be suspended
    together with us. Its exit code, as a shell tells it."""
    child = start(argv, stdin=INHERIT, stdout=INHERIT, stderr=INHERIT, env=env, group=False)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        code = child.wait()  # it got the same Ctrl-C, and ends in its own way
    except SystemExit:
        os.kill(child.pid, _SIGTERM)
        raise
    return code if code >= 0 else 128 - code


def run(argv: list[str], *, input: bytes = b"", deadline: float = 60.0, env: Mapping[str, str] | None = None) -> Done:
    """Run to the end, feeding `input`, and return what it said. TimedOut, with everything it started ended, after
    `deadline` seconds. On Ctrl-C the group gets TERM and its time to clean up, then the interrupt goes on."""
    return finish(start(argv, stdin=PIPE if input else NULL, env=env), input=input, deadline=deadline)


def finish(child: Child, *, input: bytes = b"", deadline: float) -> Done:
    """The same with one that was started before."""
    limit = time.monotonic() + deadline
    try:
        out, err = _talk(child, input, limit)
        code = child.wait(limit)
    except TimedOut:
        child.end()
        raise TimedOut(f"no answer within {deadline:g} s") from None
    except BaseException:
        child.end(grace=10)
        raise
    finally:
        for fd in (child.stdin, child.stdout, child.stderr):
            if fd is not None:
                _close_quietly(fd)
    return Done(code=code, out=_text(out), err=_text(err))


def _talk(child: Child, input: bytes, limit: float) -> tuple[bytes, bytes]:
    said: dict[int, list[bytes]] = {fd: [] for fd in (child.stdout, child.stderr) if fd is not None}
    poller = select.poll()
    for fd in said:
        poller.register(fd, select.POLLIN)
    if child.stdin is not None:
        os.set_blocking(child.stdin, False)
        poller.register(child.stdin, select.POLLOUT)
    open_, left = set(said), memoryview(input)
    while open_ or child.stdin is not None:
        for fd, _ in waiting.ready(poller, limit):
            if fd == child.stdin:
                try:
                    left = left[os.write(fd, left[:65536]) :]
                except BrokenPipeError:
                    left = left[:0]
                if not left:
                    poller.unregister(fd)
                    os.close(fd)
                    child.stdin = None
            elif chunk := os.read(fd, 65536):
                said[fd].append(chunk)
            else:
                poller.unregister(fd)
                open_.discard(fd)
        if time.monotonic() > limit:
            raise TimedOut("deadline")
    out, err = (b"".join(said.get(fd, [])) if fd is not None else b"" for fd in (child.stdout, child.stderr))
    return out, err


def _close_quietly(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^")


def quote(text: str) -> str:
    """One shell word that means exactly `text`. The one place where shell text is quoted (tmux takes the same form)."""
    if "\0" in text:
        raise MngrError("a NUL character cannot be passed to a program")
    if text and _PLAIN.issuperset(text) and text[0] not in "~=":
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def command_words(words: list[str]) -> list[str]:
    """What a user wrote behind `--`: one word with blanks or shell signs in it is a line for the shell, as with ssh;
    anything else is a program and its arguments, run as they are."""
    if len(words) == 1 and any(char in words[0] for char in " \t\n;|&<>$`"):
        return ["sh", "-c", words[0]]
    return words
