"""One client of a tmux server in control mode: commands go in as lines, replies and all that panes print come out.

A thread reads, so that output has the time at which it came, whatever the test is busy with. All it changes is changed
under `changed`, and whoever waits for something waits there."""

from __future__ import annotations

import codecs
import os
import re
import string
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Replies = list[list[str]]

_PLAIN = frozenset(string.ascii_letters + string.digits + " _-+=./:,@%")
_LEAF = re.compile(r"(\d+)x(\d+),\d+,\d+,(\d+)")  # a pane in a layout: its size, its place, its number
_PAINT_FIELDS = "cursor_x cursor_y cursor_flag alternate_on scroll_region_upper scroll_region_lower".split()


class Listener(Protocol):
    """Called by the reading thread, in the order of events. It may `send`, but not wait for anything."""

    def output(self, pane: str, text: str) -> None: ...
    def resized(self, pane: str, width: int, height: int) -> None: ...
    def noticed(self, notice: str) -> None: ...


class Control:
    def __init__(self, words: Sequence[str], env: Mapping[str, str], listener: Listener) -> None:
        """`words`: what follows `tmux`: the socket, -C, and the command that attaches."""
        self.changed = threading.Condition()
        self.ended: str | None = None  # why there is nothing to talk to any more
        self._listener = listener
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._questions: deque[_Question] = deque()
        self._writing = threading.Lock()  # the order of questions is that of their lines
        self._last_words = ""
        self._is_attached = False
        try:
            self._process = subprocess.Popen(
                ["tmux", "-u", *words],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the one who runs the tests
            )
        except FileNotFoundError:
            raise RuntimeError("there is no tmux on the PATH, which every terminal of a test needs") from None
        self._thread = threading.Thread(target=self._listen, name="tmux control client", daemon=True)
        self._thread.start()
        self._wait_until_attached()

    def ask(self, *commands: str, then: Callable[[Replies], None] | None = None, timeout: float = 15) -> Replies:
        """The lines that each command replied; RuntimeError with the words of tmux when one of them fails."""
        question = self.send(*commands, then=then)
        if not self.wait(question.is_done, timeout):
            raise RuntimeError(f"tmux has not answered within {timeout:g} s: {commands[0][:200]}")
        if question.error is not None:
            raise RuntimeError(f"tmux: {question.error}")
        return question.replies

    def send(self, *commands: str, then: Callable[[Replies], None] | None = None) -> _Question:
        """Does not wait. In one piece, so that nothing happens to a pane between these commands. `then` gets the
        replies in the reading thread, before any event that came after them."""
        question = _Question(len(commands), then)
        with self._writing:
            self._questions.extend([question] * len(commands))
            try:
                assert self._process.stdin is not None
                self._process.stdin.write("".join(f"{command}\n" for command in commands).encode())
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):  # ValueError: closed by `close`
                pass  # the reading thread finds out why
        return question

    def wait(self, is_so: Callable[[], bool], timeout: float) -> bool:
        """Until it is so; False when it is not within the time. RuntimeError when it cannot become so any more."""
        with self.changed:
            self.changed.wait_for(lambda: is_so() or self.ended is not None, timeout)
            if is_so():
                return True
            if self.ended is not None:
                raise RuntimeError(f"the tmux server has ended: {self.ended}")
            return False

    def wait_for_end(self) -> None:
        self._thread.join()

    def close(self) -> None:
        """Leave the server. Its last words are heard before this returns."""
        streams = self._process.stdin, self._process.stdout
        assert streams[0] is not None
        assert streams[1] is not None
        with self._writing:
            try:
                streams[0].close()  # tmux takes the end of its input for a wish to leave
            except BrokenPipeError:
                pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        streams[1].close()

    def _wait_until_attached(self) -> None:
        """The server reads our lines as soon as it knows us, which can be before it carries out tmux's own words."""
        try:
            if not self.wait(lambda: self._is_attached, 15):
                raise RuntimeError("tmux has not attached its client within 15 s")
        except RuntimeError:
            self.close()
            raise

    def _listen(self) -> None:
        why = "its reader failed"
        try:
            self._read_lines()
            why = self._last_words or "without a word"
        except OSError as error:  # a recording that cannot be written: the disk is full
            why = f"its reader failed: {error}"
        finally:
            with self.changed:
                self.ended = why
                self.changed.notify_all()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        reply: list[str] | None = None
        guard = b""
        for line in self._process.stdout:
            line = line.rstrip(b"\n")
            with self.changed:
                if reply is None and line.startswith(b"%begin "):
                    guard, reply = line[len(b"%begin ") :], []
                elif reply is None:
                    self._notice(line)
                elif line in (b"%end " + guard, b"%error " + guard):
                    if guard.endswith(b" 1"):  # the others answer the words on tmux's own command line
                        self._reply(reply, failed=line.startswith(b"%error "))
                    elif line.startswith(b"%error "):
                        self._last_words = " ".join(reply)
                    reply = None
                else:
                    reply.append(line.decode("utf-8", "replace"))
                self.changed.notify_all()

    def _reply(self, lines: list[str], *, failed: bool) -> None:
        question = self._questions.popleft()
        question.take(lines, failed=failed)
        if question.is_done() and question.then and question.error is None:
            question.then(question.replies)

    def _notice(self, line: bytes) -> None:
        if line.startswith(b"%output "):
            _, pane, data = line.split(b" ", 2)
            self._output(pane.decode(), data)
        elif line.startswith(b"%layout-change "):
            visible = line.decode().split(" ")[3:4] or line.decode().split(" ")[2:3]
            for width, height, number in _LEAF.findall(visible[0]):
                self._listener.resized(f"%{number}", int(width), int(height))
        elif line.startswith(b"%"):
            words = line.decode("utf-8", "replace")
            self._is_attached |= words.startswith("%session-changed ")
            if words.startswith("%exit "):
                self._last_words = words.removeprefix("%exit ")
            self._listener.noticed(words)
        else:
            self._last_words = line.decode("utf-8", "replace")

    def _output(self, pane: str, data: bytes) -> None:
        """tmux cuts where its buffer ends, also inside a character."""
        decoder = self._decoders.get(pane)
        if decoder is None:
            decoder = self._decoders[pane] = codecs.getincrementaldecoder("utf-8")("replace")
        raw = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), data)
        self._listener.output(pane, decoder.decode(raw))


class _Question:
    def __init__(self, count: int, then: Callable[[Replies], None] | None) -> None:
        self.then = then
        self.replies: Replies = []
        self.error: str | None = None
        self._left = count

    def take(self, lines: list[str], *, failed: bool) -> None:
        self._left -= 1
        if failed:
            self.error = self.error or " ".join(lines)
        self.replies.append(lines)

    def is_done(self) -> bool:
        return self._left == 0


def quote(word: str) -> str:
    """One argument for tmux, in which every character that could mean anything is written as its octal number."""
    plain = "".join(chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f'"{plain}"'


def paint_commands(pane: str) -> tuple[str, str]:
    """Two commands to `send` together; `painted` makes what they reply into output that draws the screen."""
    fields = " ".join(f"#{{{field}}}" for field in _PAINT_FIELDS)
    return f"display-message -p -t {pane} {quote(fields)}", f"capture-pane -p -e -t {pane}"


def painted(replies: Replies) -> str:
    x, y, visible, alternate, top, bottom = map(int, replies[0][0].split())
    screen = "\r\n".join(replies[1]).rstrip("\r\n")
    return (
        f"\x1b[?1049{'h' if alternate else 'l'}\x1b[r\x1b[m\x1b[H\x1b[2J{screen}\x1b[m"
        f"\x1b[{top + 1};{bottom + 1}r\x1b[{y + 1};{x + 1}H\x1b[?25{'h' if visible else 'l'}"
    )
