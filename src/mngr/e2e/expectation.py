"""`expect(x)`: what a test says about a result, a text, a file or a screen. The message of a failure is the product:
its first line says what was expected of what, and below it stands one difference or the output in question.

A check gives None, or the `_Failure` that it found. Everything else, negation, waiting, wording, is done once, in
`_judge` and `_wait`. Every function between a test and the error hides itself, so that a traceback ends in the test."""

from __future__ import annotations

import json
import pprint
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mngr.e2e import pattern, snapshot
from mngr.e2e.difference import cut, cut_lines, difference, filled, pretty, quoted, text_difference
from mngr.e2e.transcript import visible

_UNSET: Any = object()
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
_NOT_YET = (AssertionError, LookupError, OSError, ValueError)  # what a callable may raise while there is nothing to see


class ExpectationFailed(AssertionError):
    def __init__(self, message: str) -> None:
        """What a program printed is shown, but does not colour or clear the reader's terminal, nor break a pipe that
        takes UTF-8 alone."""
        super().__init__(visible(message).encode("utf-8", "backslashreplace").decode())


def expect(subject: object) -> Expectation:
    """Of a Result, a text, a Path (its text), a Terminal (its screen), any value, or a callable that gives one."""
    return Expectation(subject)


class Expectation:
    def __init__(self, subject: object, negated: bool = False) -> None:
        self._subject = subject
        # What is looked at: after a wait, newer than the subject.
        self._value: Any = _UNSET if callable(subject) else subject
        self._negated = negated

    @property
    def not_(self) -> Expectation:
        """The opposite, for all that follows in the chain; said again, it changes nothing."""
        other = Expectation(self._subject, negated=True)
        other._value = self._value
        return other

    def to_succeed(self) -> Expectation:
        __tracebackhide__ = True
        return self._judge("to succeed", _succeeds)

    def to_fail(self) -> Expectation:
        """With any exit code but 0. A command that ran out of time has not given an answer, so that is no failure."""
        __tracebackhide__ = True
        return self._judge("to fail", _fails)

    def to_have_exit_code(self, code: int) -> Expectation:
        __tracebackhide__ = True
        return self._judge(f"to have exit code {code}", lambda seen: _has_exit_code(seen, code))

    def to_contain(self, *texts: object) -> Expectation:
        """Each of them, in any order; not_: none of them."""
        __tracebackhide__ = True
        for text in texts:
            self._judge(*_containing(text))
        return self

    def to_match(self, regex: str | re.Pattern[str]) -> Expectation:
        """Somewhere; `^` and `$` are the ends of lines."""
        __tracebackhide__ = True
        return self._judge(*_matching(regex))

    def to_equal(self, wanted: object) -> Expectation:
        __tracebackhide__ = True
        return self._judge(*_equalling(wanted))

    def to_be_empty(self) -> Expectation:
        __tracebackhide__ = True
        return self._judge("to be empty", _is_empty)

    def to_be_json(self, wanted: object = _UNSET) -> Expectation:
        """Of a Result: its stdout. In what is wanted, `...` stands for anything, and a dict with `...: ...` for one
        that may have further keys."""
        __tracebackhide__ = True
        named = "to be JSON" if wanted is _UNSET else "to be this JSON"
        return self._judge(named, lambda seen: _is_json(seen, wanted))

    def to_match_snapshot(self, text: str = "") -> Expectation:
        """A pattern (mngr.e2e.pattern). With --e2e-update, one that does not match is rewritten in the test."""
        __tracebackhide__ = True
        edits, variables = snapshot.settings()
        if edits is None or self._negated:
            return self._judge("to match the snapshot", lambda seen: _matches_snapshot(seen, text, variables()))
        try:
            snapshot.note(sys._getframe(1), text, _see(self._look()).words)
        except (snapshot.CannotRewrite, _Unusable) as error:
            raise ExpectationFailed(f"{_name(self._value)}: expected to match the snapshot; {error}") from None
        return self

    def to_eventually_succeed(self, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, "to succeed", _succeeds)

    def to_eventually_fail(self, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, "to fail", _fails)

    def to_eventually_have_exit_code(self, code: int, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, f"to have exit code {code}", lambda seen: _has_exit_code(seen, code))

    def to_eventually_be_json(self, wanted: object = _UNSET, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        named = "to be JSON" if wanted is _UNSET else "to be this JSON"
        return self._wait(timeout, named, lambda seen: _is_json(seen, wanted))

    def to_eventually_contain(self, *texts: object, timeout: float = 10) -> Expectation:
        """All of them at the same time; not_: none of them."""
        __tracebackhide__ = True
        return self._wait(timeout, *_containing(*texts, none=self._negated))

    def to_eventually_match(self, regex: str | re.Pattern[str], timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, *_matching(regex))

    def to_eventually_equal(self, wanted: object, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, *_equalling(wanted))

    def to_eventually_be_empty(self, timeout: float = 10) -> Expectation:
        __tracebackhide__ = True
        return self._wait(timeout, "to be empty", _is_empty)

    def _judge(self, wanted: str, check: Check) -> Expectation:
        __tracebackhide__ = True
        failure = self._failure(wanted, check, self._look())
        if failure:
            raise ExpectationFailed(failure.message())
        return self

    def _wait(self, timeout: float, wanted: str, check: Check) -> Expectation:
        __tracebackhide__ = True
        again = self._again(wanted)
        begin = time.monotonic()
        pause, tries = _FIRST_PAUSE, 0
        while True:
            tries += 1
            try:
                if tries > 1 or self._value is _UNSET:
                    self._value = again()
                failure = self._failure(wanted, check, self._value)
            except _NOT_YET as error:
                shown = cut_lines("\n".join("  " + line for line in str(error).splitlines()))
                failure = _Failure(self._expected(wanted, self._subject), f", raised {type(error).__name__}", shown)
            if not failure:
                return self
            left = begin + timeout - time.monotonic()
            if left <= 0:
                raise ExpectationFailed(failure.message(f" within {timeout:g} s", _tried(tries, begin)))
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _look(self) -> Any:
        if self._value is _UNSET:
            assert callable(self._subject)
            self._value = self._subject()
        return self._value

    def _again(self, wanted: str) -> Callable[[], object]:
        subject = self._subject
        if callable(subject):
            return subject
        if isinstance(subject, Path) or _is_terminal(subject):
            return lambda: subject
        if _is_result(subject):
            again: Callable[[], object] = self._value.again
            return again
        raise TypeError(
            f"{_a(subject)} will never change, so it cannot come {wanted}: "
            "give expect() a Result, a Path, a Terminal, or a function that gets the value anew"
        )

    def _failure(self, wanted: str, check: Check, value: Any) -> _Failure | None:
        expected = self._expected(wanted, value)
        try:
            seen = _see(value)
            found = check(seen)
        except _Unusable as error:  # nothing can be said of it, nor the opposite
            return _Failure(expected, f", {error}", error.shown)
        if not self._negated:
            return found and found._replace(expected=expected)
        return None if found else _Failure(expected, "", seen.shown())

    def _expected(self, wanted: str, value: Any) -> str:
        return f"{_name(value, self._subject)}: expected {'not ' if self._negated else ''}{wanted}"


class _Failure(NamedTuple):
    expected: str  # "`$ hello`: expected to succeed"
    but: str  # ", exit code 2"
    shown: str = ""

    def message(self, deadline: str = "", tried: str = "") -> str:
        return "\n".join(part for part in (f"{self.expected}{deadline}{self.but}", tried, self.shown) if part)


class _Seen(NamedTuple):
    """A subject as it was at one moment: what was judged is shown, though a screen or a file goes on changing."""

    value: Any
    text: str | None  # None: it has none

    @property
    def held(self) -> Any:
        return self.value if self.text is None else self.text

    @property
    def words(self) -> str:
        if self.text is None:
            raise TypeError(f"{_a(self.value)} has no text: give expect() a str, a Path, a Result or a Terminal")
        return self.text

    @property
    def exit_code(self) -> int:
        if not hasattr(self.value, "exit_code"):
            raise TypeError(f"{_a(self.value)} has no exit code: give expect() what e2e.run() gave")
        if self.value.exit_code is None:
            raise _Unusable("it has not ended", self.shown())
        return int(self.value.exit_code)

    def shown(self) -> str:
        """Output as a transcript has it: errors after `! `."""
        if _is_result(self.value) and hasattr(self.value, "lines"):
            lines = [("! " if line.stream == "e" else "  ") + line.text for line in self.value.lines]
        else:
            text = pprint.pformat(self.value) if self.text is None else self.text
            lines = ["  " + line for line in text.splitlines()]
        return cut_lines("\n".join(lines)) or "  (nothing)"


Check = Callable[[_Seen], "_Failure | None"]


class _Unusable(Exception):
    """The subject cannot be judged at all."""

    def __init__(self, sentence: str, shown: str = "") -> None:
        super().__init__(sentence)
        self.shown = shown


def _tried(tries: int, begin: float) -> str:
    times = "once" if tries == 1 else f"{tries} times"
    return f"tried {times} in {time.monotonic() - begin:.1f} s; the last time:"


# The checks, in the order of the methods above. They leave `expected` open, which `_failure` fills in.


def _succeeds(seen: _Seen) -> _Failure | None:
    code = _own_exit_code(seen)
    return None if code == 0 else _Failure("", f", exit code {code}", seen.shown())


def _fails(seen: _Seen) -> _Failure | None:
    return None if _own_exit_code(seen) else _Failure("", ", exit code 0", seen.shown())


def _own_exit_code(seen: _Seen) -> int:
    """Of the program itself, which may be 124 too: then it was not us who ended it."""
    code = seen.exit_code
    if getattr(seen.value, "timed_out", False):
        raise _Unusable("timed out (exit code 124), which is neither success nor failure", seen.shown())
    return code


def _has_exit_code(seen: _Seen, code: int) -> _Failure | None:
    return None if seen.exit_code == code else _Failure("", f", exit code {seen.exit_code}", seen.shown())


def _containing(*texts: object, none: bool = False) -> tuple[str, Check]:
    def contains(seen: _Seen) -> _Failure | None:
        has = [text in seen.held for text in texts]
        if any(has) if none else all(has):
            return None
        absent = [quoted(text) for text, found in zip(texts, has, strict=True) if not found]
        return _Failure("", f", lacks {', '.join(absent)}" if len(texts) > 1 else "", seen.shown())

    return f"to contain {', '.join(map(quoted, texts))}", contains


def _matching(regex: str | re.Pattern[str]) -> tuple[str, Check]:
    compiled = re.compile(regex, re.MULTILINE) if isinstance(regex, str) else regex

    def matches(seen: _Seen) -> _Failure | None:
        return None if compiled.search(seen.words) else _Failure("", "", seen.shown())

    return f"to match /{cut(compiled.pattern)}/", matches


def _equalling(wanted: object) -> tuple[str, Check]:
    def equals(seen: _Seen) -> _Failure | None:
        held = seen.held if isinstance(wanted, str) else seen.value
        if held == wanted:
            return None
        if isinstance(wanted, str) and isinstance(held, str):
            return _Failure("", "", text_difference(wanted, held))
        if short:
            return _Failure("", f", is {cut(repr(held))}")
        return _Failure("", "", difference(pprint.pformat(wanted), pprint.pformat(held)))

    short = not isinstance(wanted, str) and len(repr(wanted)) <= 60
    return f"to equal {wanted!r}" if short else "to equal this", equals


def _is_empty(seen: _Seen) -> _Failure | None:
    return None if len(seen.held) == 0 else _Failure("", "", seen.shown())


def _is_json(seen: _Seen, wanted: Any) -> _Failure | None:
    found = seen.value
    if seen.text is not None:
        try:
            found = json.loads(found.stdout if _is_result(found) else seen.text)
        except ValueError as error:
            return _Failure("", f", {error}", seen.shown())
    if wanted is _UNSET:
        return None
    whole = filled(wanted, found)
    return None if whole == found else _Failure("", "", difference(pretty(whole), pretty(found)))


def _matches_snapshot(seen: _Seen, text: str, variables: dict[str, str]) -> _Failure | None:
    if not text.strip():
        raise _Unusable("which is empty; --e2e-update fills it in", seen.shown())
    found = pattern.diff(text, seen.words, variables)
    return _Failure("", "; --e2e-update rewrites it", cut_lines(found)) if found else None


# What there is to look at. A terminal is asked for its screen once per look: that is a question to tmux.


def _see(value: Any) -> _Seen:
    if isinstance(value, str):
        return _Seen(value, value)
    if _is_result(value):
        return _Seen(value, value.output)
    if _is_terminal(value):
        return _Seen(value, value.screen)
    if not isinstance(value, Path):
        return _Seen(value, None)
    try:
        return _Seen(value, value.read_text(encoding="utf-8", errors="surrogateescape"))
    except FileNotFoundError:
        raise _Unusable("there is no such file") from None
    except OSError as error:
        raise _Unusable(f"which cannot be read: {error.strerror}") from None


def _is_result(value: object) -> bool:
    return all(hasattr(value, name) for name in ("exit_code", "stdout", "stderr", "command", "again"))


def _is_terminal(value: object) -> bool:
    return hasattr(value, "wait_for_text")


def _name(value: Any, subject: Any = _UNSET) -> str:
    """In one line, whatever it is."""
    if _is_result(value):
        first, _, more = str(value.command).strip().partition("\n")
        return f"`$ {cut(first)}{' …' if more else ''}`"
    if isinstance(value, Path):
        return str(value)
    if _is_terminal(value):
        return f"the screen of {getattr(value, 'name', 'the terminal')}"
    if callable(subject):
        value = subject
    if isinstance(value, str):
        return "the text"
    if callable(value):
        name = getattr(value, "__name__", "")
        return f"{name}()" if name.isidentifier() else "what the function gives"
    return cut(repr(value), 60)


def _a(value: object) -> str:
    return f"a value of type {type(value).__name__}"
