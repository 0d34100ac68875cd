"""Terminal programs in a test: each runs in a window of one tmux server that belongs to the test, is driven with keys,
looked at as a screen, and recorded.

Waits look again whenever the program has printed something, so they need no sleeps and end as soon as they can. The
server ends with its only client, this process: nothing is left of it even when the tests are killed."""

from __future__ import annotations

import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mngr.e2e.cast import Clock, Writer, claim
from mngr.e2e.command import shell
from mngr.e2e.control import Control, Replies, quote

# exit-unattached: the end of our client is the end of the server. The placeholder keeps the session there.
_SERVER = [
    *"start-server ; set -g exit-unattached on ; set -g automatic-rename off ; set -g allow-rename off".split(),
    *"; set -g remain-on-exit on ; set -gq remain-on-exit-format".split(),
    "",
    *"; new-session -s e2e true".split(),
]
# tmux loses the last output of a program that ends while it is being read, now and then. So the program has a parent
# that stays, and that tells its exit code by a sequence which no screen shows, behind all output. It survives what is
# meant for the whole group (Ctrl-C, `kill 0`), and keeps to itself what shells say about children that were killed.
_LAUNCH = r"""
token=$1 where=$2
shift 2
exec 3>&2 2>/dev/null
trap : INT QUIT TERM
(cd -- "$where" && exec /usr/bin/env -i "$@") 2>&3 3>&-
code=$?
trap '' TTOU
printf '\033]7777;%s;%s\007' "$token" "$code"
exec sleep 2147483647 3>&-
"""
# For when that parent is killed too: asked now and then while a test waits, since no event tells it reliably.
_DEAD = "#{pane_dead} [#{pane_dead_status}] [#{pane_dead_signal}]"
_LOOK_AGAIN = 0.5  # seconds
_BETWEEN_KEYS = 0.005  # seconds

_KEY = re.compile(r"([CMS]-)*(\S|F([1-9]|1[0-2])|[A-Za-z]{2,})")
_KEY_NAMES = frozenset(
    """
    up down left right home end pageup pagedown pgup pgdn ppage npage insert ic delete dc tab btab enter escape space
    bspace
    """.split()
)

Tell = Callable[[str, str, float, float], None]  # a step of the test: its kind and text, when it began, its duration


class Terminal:
    """Made by `Terminals.spawn`. All that a test does with it waits by itself."""

    def __init__(self, control: Control, name: str, command: str, width: int, height: int, cast: Path | None) -> None:
        self.name, self.command = name, command
        self.width, self.height = width, height
        self.cast = cast
        self.exit_code: int | None = None  # 128 and its number for a signal
        self.tell: Tell | None = None  # who writes down what is done here
        self.token = secrets.token_hex(8)  # by which the exit code is known from whatever else a program prints
        self._control = control
        self._pane = ""
        self._mark, self._held_back = f"\x1b]7777;{self.token};", ""
        self._changes = 0  # how often something happened that a wait should look at
        self._clock = Clock()
        self._writer = Writer(cast, width, height, self._clock.started, name) if cast else None
        self._closed = False
        self._last_key = 0.0

    @property
    def screen(self) -> str:
        """What is visible now, without the spaces at the ends of lines and the empty lines at the end."""
        return self._capture()

    def wait_for_text(self, wanted: str | re.Pattern[str], timeout: float = 10) -> Terminal:
        """A text that the screen had to break into several lines counts as well."""
        __tracebackhide__ = True
        with self._step("wait", f"for {_described(wanted)}") as what:
            self._wait(lambda: self._shows(wanted), timeout, what)
        return self

    def wait_for_no_text(self, unwanted: str | re.Pattern[str], timeout: float = 10) -> Terminal:
        __tracebackhide__ = True
        with self._step("wait", f"for {_described(unwanted)} to go away") as what:
            self._wait(lambda: not self._shows(unwanted), timeout, what)
        return self

    def type(self, text: str) -> Terminal:
        """These characters as they are; a newline is the Enter key, as there is no other key for it."""
        __tracebackhide__ = True
        with self._step("type", text):
            self._check_that_it_runs("type")
            self._pause_like_a_hand()
            data = text.replace("\n", "\r").encode("utf-8", "surrogateescape")
            for start in range(0, len(data), 500):
                self._control.ask(f"send-keys -t {self._pane} -H {data[start : start + 500].hex(' ')}")
        return self

    def press(self, *keys: str) -> Terminal:
        """Keys by the names that tmux has for them: Enter, Escape, Up, F5, C-c, M-x, or one character."""
        __tracebackhide__ = True
        for key in keys:
            _check_key(key)
        with self._step("press", " ".join(keys)):
            self._check_that_it_runs("press a key")
            for key in keys:
                self._pause_like_a_hand()
                self._control.ask(f"send-keys -t {self._pane} -- {quote(key)}")
        return self

    def _pause_like_a_hand(self) -> None:
        """Keys that follow each other within a millisecond are a paste for some programs, tmux for one, and do not mean
        what they mean when they are pressed."""
        time.sleep(max(0.0, self._last_key + _BETWEEN_KEYS - time.monotonic()))
        self._last_key = time.monotonic()

    def wait_for_exit(self, timeout: float = 10) -> int:
        __tracebackhide__ = True
        with self._step("wait", "for the end") as what:
            if not self._until(lambda: self.exit_code is not None, timeout):
                raise AssertionError(self._in_vain(f"waited {timeout:g} s in vain {what}"))
        assert self.exit_code is not None
        return self.exit_code

    def resize(self, width: int, height: int) -> Terminal:
        self._check_that_it_is_open()
        self._control.ask(f"resize-window -t {self._pane} -x {width} -y {height}")
        self.width, self.height = width, height
        return self

    def close(self) -> None:
        """Hang up, as closing the window of a terminal does."""
        if self._closed:
            return
        self._closed = True
        if self._control.ended is None:
            self._control.ask(f"kill-window -t {self._pane}")
        if self._writer:
            self._writer.close(self._clock.now())

    @contextmanager
    def _step(self, kind: str, text: str) -> Iterator[str]:
        """Told also when it fails: the transcript of a failure ends with it."""
        __tracebackhide__ = True
        began, begin = time.time(), time.monotonic()
        try:
            yield text
        finally:
            if self.tell:
                self.tell(kind, text, began, time.monotonic() - begin)

    def _wait(self, is_so: Callable[[], bool], timeout: float, what: str) -> None:
        __tracebackhide__ = True
        deadline = time.monotonic() + timeout
        while True:
            changes, over = self._changes, self.exit_code is not None
            if is_so():
                return
            if over:
                raise AssertionError(self._in_vain(f"waited in vain {what}: the program has ended"))
            left = deadline - time.monotonic()
            if not self._until(lambda: self._changes != changes, max(left, 0)):  # noqa: B023 (called at once)
                raise AssertionError(self._in_vain(f"waited {timeout:g} s in vain {what}"))

    def _until(self, is_so: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            if self._control.wait(is_so, min(left, _LOOK_AGAIN)):
                return True
            self._look_whether_it_is_dead()
        return self._control.wait(is_so, 0)

    def _look_whether_it_is_dead(self) -> None:
        told = self._control.ask(f"display-message -p -t {self._pane} {quote(_DEAD)}")[0]
        if self.exit_code is None and (dead := re.fullmatch(r"1 \[(\d*)\] \[(\d*)\]", told[0])):
            self._changes += 1
            # tmux does not always know how. The parent ends silently by one signal alone.
            self.exit_code = int(dead[1]) if dead[1] else 128 + int(dead[2] or signal.SIGKILL)

    def _shows(self, wanted: str | re.Pattern[str]) -> bool:
        """-J joins the lines that were broken at the edge of the screen."""
        for text in map(self._capture, ("", "-J")):
            if wanted in text if isinstance(wanted, str) else wanted.search(text):
                return True
        return False

    def _capture(self, how: str = "") -> str:
        self._check_that_it_is_open()
        lines = self._control.ask(f"capture-pane -p {how} -t {self._pane}")[0]
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")

    def _check_that_it_runs(self, what: str) -> None:
        __tracebackhide__ = True
        self._check_that_it_is_open()
        if self.exit_code is not None:
            raise AssertionError(self._in_vain(f"cannot {what}: the program has ended"))

    def _check_that_it_is_open(self) -> None:
        __tracebackhide__ = True
        if self._closed:
            raise RuntimeError(f"the terminal {self.name} is closed")

    def _in_vain(self, what: str) -> str:
        """The message of a failure: what was expected, and all that can be known of the terminal."""
        status = "still running" if self.exit_code is None else f"exit code {self.exit_code}"
        rule = "─" * self.width
        screen = "\n".join(f"│{line}" for line in self.screen.split("\n"))
        return f"{self.name}: {what}\n$ {self.command}  ({status})\n┌{rule}\n{screen}\n└{rule}"

    # What the reading thread reports.

    def began(self, pane: str) -> None:
        self._pane = pane

    def printed(self, text: str) -> None:
        """The exit code's sequence is taken out; what may be its beginning is held back until more comes."""
        text, mark, rest = (self._held_back + text).partition(self._mark)
        self._held_back = ""
        if mark and "\a" in rest:
            code, _, rest = rest.partition("\a")
            self.exit_code = int(code)
            text += rest
        elif mark:
            self._held_back = mark + rest
        elif (escape := text.rfind("\x1b")) >= 0 and self._mark.startswith(text[escape:]):
            text, self._held_back = text[:escape], text[escape:]
        self._changes += 1
        if self._writer:
            self._writer.output(self._clock.now(), text)

    def was_resized(self, width: int, height: int) -> None:
        self._changes += 1
        if self._writer:
            self._writer.resize(self._clock.now(), width, height)


class Terminals:
    """The terminals of one test. tmux is started at the first of them."""

    def __init__(self, root: Path, casts: Path | None) -> None:
        self._socket = root / "terminals"
        self._casts = casts
        self._control: Control | None = None
        self._terminals: list[Terminal] = []
        self._by_pane: dict[str, Terminal] = {}

    def spawn(
        self, command: str, name: str, env: Mapping[str, str], cwd: Path, width: int = 80, height: int = 24
    ) -> Terminal:
        """Run `command` in a shell, with exactly this environment."""
        control = self._control or self._start(env)
        cast = claim(self._casts, name) if self._casts else None
        terminal = Terminal(control, name, command, width, height, cast)
        self._terminals.append(terminal)

        def began(replies: Replies) -> None:
            terminal.began(replies[1][0])
            self._by_pane[replies[1][0]] = terminal

        variables = [f"{key}={value}" for key, value in env.items()]
        words = ["/bin/sh", "-c", _LAUNCH, "sh", terminal.token, str(cwd), *variables, shell(), "-c", command]
        control.ask(
            f"set -t e2e default-size {width}x{height}",
            f"new-window -d -t e2e: -P -F {quote('#{pane_id}')} {' '.join(map(quote, words))}",
            then=began,
        )
        return terminal

    def close(self) -> None:
        """Everything that runs in these terminals is hung up; the recordings are complete."""
        if self._control is not None:
            self._control.send("kill-server")
            self._control.close()
            self._control = None
            self._socket.unlink(missing_ok=True)
        for terminal in self._terminals:
            terminal.close()

    def _start(self, env: Mapping[str, str]) -> Control:
        """The server gets the environment of the first terminal, whose marks show to whom it belongs."""
        outer = {key: value for key, value in env.items() if key not in ("TMUX", "TMUX_PANE")}
        self._control = Control(["-S", str(self._socket), "-f", "/dev/null", "-C", *_SERVER], outer, self)
        return self._control

    # What the control client reports.

    def output(self, pane: str, text: str) -> None:
        if terminal := self._by_pane.get(pane):
            terminal.printed(text)

    def resized(self, pane: str, width: int, height: int) -> None:
        if terminal := self._by_pane.get(pane):
            terminal.was_resized(width, height)

    def noticed(self, notice: str) -> None:
        pass


def _described(wanted: str | re.Pattern[str]) -> str:
    return repr(wanted) if isinstance(wanted, str) else f"/{wanted.pattern}/"


def _check_key(key: str) -> None:
    """tmux types the letters of a name that it does not know, which no test means."""
    match = _KEY.fullmatch(key)
    if not match or (len(match[2]) > 1 and not match[3] and match[2].lower() not in _KEY_NAMES):
        raise ValueError(f"no such key: {key!r}; names are like Enter, Escape, Up, F5, C-c (type() is for text)")
