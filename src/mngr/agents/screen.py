"""What a program shows on its screen, by rules that are data: a file per agent type beside this one, and the user's own
`screen/TYPE.rules` in MNGR_HOME in its place, because programs change their looks more often than we release.

A rule is a line `KIND [NAME] REGEX`, the regex searched in the whole screen with ^ and $ at each line:
  composer REGEX      where one types; its first group is what stands there
  placeholder REGEX   text in the composer that nobody typed
  dialog NAME REGEX   a dialog in front, which takes the keys; the first that matches names it
  busy REGEX          a turn goes on
  retry REGEX         the model's server does not answer and is asked again; its groups say more
  queued REGEX        a message that waits for the turn to come to it; its first group is how that begins
  refused REGEX       a command that it does not know, and leaves where one types; its first group is the command
  asks FORMAT         for tmux, which looks at it in the very command that presses keys: true while a dialog is in front
While the composer is there, nothing is in front of it: `dialog` rules count only without one."""

from __future__ import annotations

import os
import re

from mngr.errors import MngrError
from mngr.home import home_path
from mngr.record import Record

KINDS = ("asks", "composer", "placeholder", "dialog", "busy", "retry", "queued", "refused")


class Screen(Record):
    composer: str | None = None  # what stands where one types; None: there is no such place now
    dialog: str | None = None  # its name
    busy: bool = False
    retry: str | None = None
    queued: list[str] = []  # noqa: RUF012 - Record copies defaults
    refused: str | None = None


class Rules:
    def __init__(self, text: str, place: str) -> None:
        self._rules: list[tuple[str, str, re.Pattern[str]]] = []
        self.guard = ""  # what `asks` says
        for number, line in enumerate(text.splitlines(), 1):
            kind, _, rest = line.strip().partition(" ")
            if not kind or kind.startswith("#"):
                continue
            if kind not in KINDS:
                raise MngrError(f"{place}:{number}: there is no rule {kind!r}", f"one of {', '.join(KINDS)}")
            if kind == "asks":
                self.guard = rest.strip()
                continue
            name, _, pattern = rest.strip().partition(" ") if kind == "dialog" else ("", "", rest.strip())
            try:
                self._rules.append((kind, name, re.compile(pattern.strip(), re.MULTILINE)))
            except re.error as error:
                raise MngrError(f"{place}:{number}: {error}") from None

    def read(self, screen: str) -> Screen:
        composer = self._last("composer", screen)
        typed = None
        if composer is not None:
            typed = (composer.group(1) if composer.re.groups else "").replace("\xa0", " ").strip()
            if self._last("placeholder", typed):
                typed = ""
        retry, refused = self._last("retry", screen), self._last("refused", screen)
        return Screen(
            composer=typed,
            dialog=self._dialog(screen) if composer is None else None,
            busy=self._last("busy", screen) is not None,
            retry=" ".join(filter(None, retry.groups())) if retry else None,
            queued=[found.group(1) for found in self._all("queued", screen)],
            refused=refused.group(1) if refused else None,
        )

    def _last(self, wanted: str, screen: str) -> re.Match[str] | None:
        """The last place where it matches: what is higher up has scrolled by."""
        found = self._all(wanted, screen)
        return found[-1] if found else None

    def _all(self, wanted: str, screen: str) -> list[re.Match[str]]:
        """By the first of its rules that matches at all."""
        for kind, _, pattern in self._rules:
            if kind == wanted and (found := list(pattern.finditer(screen))):
                return found
        return []

    def _dialog(self, screen: str) -> str | None:
        return next((name for kind, name, rule in self._rules if kind == "dialog" and rule.search(screen)), None)


_loaded: dict[str, Rules] = {}


def rules(name: str) -> Rules:
    """Of a file beside this one, or of an absolute path; the user's own come first."""
    if name not in _loaded:
        stem = os.path.basename(name)
        own = os.path.join(home_path(), "screen", stem)
        path = own if os.path.exists(own) else os.path.join(os.path.dirname(__file__), name)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise MngrError(f"cannot read {path}: {error}") from None
        _loaded[name] = Rules(text, path)
    return _loaded[name]
