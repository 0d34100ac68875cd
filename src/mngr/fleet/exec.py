"""exec: run a command in an agent's work dir and environment, on its host. Its output and exit code are the command's
own."""

from __future__ import annotations

import os
import select as polling
import sys
import time

from mngr import hosts, process
from mngr.errors import NoSuchAgent, TimedOut
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref

TIMEOUT, OUR_FAULT = 124, 125  # exit codes, as timeout and docker have them
_SCRIPT = """
[ -r "$H/agents/$1/env" ] || exit 125
e=$H/agents/$1/env
shift
exec env -i TERM="${TERM:-dumb}" sh -c '
command . "$1" 2>/dev/null
[ -n "$MNGR_WORK_DIR" ] || { echo "mngr: its env file is damaged: $1" >&2; exit 125; }
cd "$MNGR_WORK_DIR" || exit 125
shift
exec "$@"' mngr "$e" "$@"
"""


class Ran(Record):
    id: str
    name: str
    code: int
    seconds: float
    stdout: str = ""  # when nobody took the lines as they came
    stderr: str = ""


def execute(fleet: Fleet, ref: Ref, words: list[str], *, timeout: float | None = None) -> int:
    """In the foreground, with our own standard streams: the exit code, or 124 after `timeout` seconds. What may be
    ended by a timeout has a process group of its own, and so no terminal to read from."""
    host = fleet.host(ref.host)
    script, args = hosts.script_for(host, _SCRIPT), [ref.id, *process.command_words(words)]
    on_terminal = sys.stdin.isatty()
    if on_terminal and timeout is None:
        code = process.run_in_front(host.argv(script, args))
    else:
        stdin = process.NULL if on_terminal else process.INHERIT
        child = host.start(script, args, stdin=stdin, stdout=process.INHERIT, stderr=process.INHERIT)
        try:
            code = child.wait(None if timeout is None else time.monotonic() + timeout)
        except TimedOut:
            child.end()
            return TIMEOUT
        except (KeyboardInterrupt, SystemExit):
            child.end()
            raise
        code = code if code >= 0 else 128 - code
    if code == OUR_FAULT:
        _check_there(fleet, ref)
    return code


def execute_many(
    fleet: Fleet,
    refs: list[Ref],
    words: list[str],
    line: Callable[[Ref, bool, bytes], None] | None = None,
    *,
    timeout: float | None = None,
) -> list[Ran]:
    """On all of them side by side. `line` gets each line of output as it comes, told apart by agent and by stream;
    without it, what each has said is in its Ran."""
    said: dict[tuple[str, bool], list[bytes]] = {(ref.id, error): [] for ref in refs for error in (False, True)}

    def keep(ref: Ref, is_error: bool, text: bytes) -> None:
        said[ref.id, is_error].append(text + b"\n")

    children: dict[int, tuple[Ref, process.Child, float]] = {}
    streams: dict[int, tuple[Ref, bool, bytearray]] = {}
    poller = polling.poll()
    for ref in refs:
        host = fleet.host(ref.host)
        script = hosts.script_for(host, _SCRIPT)
        child = host.start(
            script,
            [ref.id, *process.command_words(words)],
            stdin=process.NULL,
            stdout=process.PIPE,
            stderr=process.PIPE,
        )
        children[child.pid] = (ref, child, time.monotonic())
        for fd, is_error in ((child.stdout, False), (child.stderr, True)):
            assert fd is not None
            streams[fd] = (ref, is_error, bytearray())
            poller.register(fd, polling.POLLIN)
    limit = None if timeout is None else time.monotonic() + timeout
    try:
        _pump(poller, streams, line or keep, limit)
        ran = [_ending(ref, child, began, limit) for ref, child, began in children.values()]
    except BaseException:
        for _, child, _ in children.values():
            child.end(grace=1)
        raise
    texts = {key: b"".join(lines).decode("utf-8", "replace") for key, lines in said.items()}
    return [each.replace(stdout=texts[each.id, False], stderr=texts[each.id, True]) for each in ran]


def _pump(
    poller: polling.poll,
    streams: dict[int, tuple[Ref, bool, bytearray]],
    line: Callable[[Ref, bool, bytes], None],
    limit: float | None,
) -> None:
    while streams:
        wait = None if limit is None else max(0.0, limit - time.monotonic()) * 1000
        for fd, _ in poller.poll(wait):
            ref, is_error, held = streams[fd]
            chunk = os.read(fd, 65536)
            held += chunk
            *whole, rest = held.split(b"\n")
            for each in whole:
                line(ref, is_error, bytes(each))
            held[:] = rest
            if not chunk:
                if rest:
                    line(ref, is_error, bytes(rest))
                poller.unregister(fd)
                os.close(fd)
                del streams[fd]
        if limit is not None and time.monotonic() > limit:
            return


def _ending(ref: Ref, child: process.Child, began: float, limit: float | None) -> Ran:
    try:
        code = child.wait(limit)
    except TimedOut:
        child.end()
        code = TIMEOUT
    return Ran(id=ref.id, name=ref.name, code=code if code >= 0 else 128 - code, seconds=time.monotonic() - began)


def _check_there(fleet: Fleet, ref: Ref) -> None:
    """125 can be the command's own; it is ours when the agent is not there."""
    if hosts.run(fleet.host(ref.host), f'[ -r "$H/agents/{ref.id}/env" ]', deadline=20).code:
        raise NoSuchAgent(f"{ref.name} is known by name but not there any more", "mngr gc clears such names")
