"""Hosts of any program that can run something somewhere, by configuration alone:

    [providers.k8s]
    exec = ["kubectl", "exec", "-i", "{host}", "--", "sh", "-c", "{script}"]

and, as far as there are such commands, `tty`, `create`, `list`, `destroy`, `stop`, `start` and `snapshot`. Each is a
list of words, run as they are, without a shell. In them stand {host}, its name; {id}, what `create` printed last;
{home}, an id of this MNGR_HOME for labels and names; and every option. A word with an empty one in it is left out."""

from __future__ import annotations

import re

from mngr import config
from mngr.address import is_name
from mngr.config_keys import PROVIDER_COMMANDS, Misfit
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.hosts import program, settings
from mngr.hosts.owner import home_id
from mngr.hosts.place import RUNNING, STOPPED, Place
from mngr.hosts.remote import Remote
from mngr.hosts.ssh import far_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr import process

SCRIPT, LINE = "script", "line"
_OURS = ("host", "id", "home")
_BEYOND = {"exec": (SCRIPT, LINE), "tty": (SCRIPT, LINE), "snapshot": ("name",)}  # placeholders of these alone
_PLACEHOLDER = re.compile(r"(?<![{$])\{([a-z][a-z0-9_-]*)\}(?!\})")  # {{.Names}} and ${x} are somebody else's
_ANSWER, _MINUTES = 60.0, 600.0  # deadlines


class PrefixProvider:
    """The provider of that name in the configuration. Raises Misfit when what it says is not enough for one."""

    def __init__(self, name: str) -> None:
        self.name = name
        given = config.load().table(f"providers.{name}")
        self._commands = {key: config.load().strings(f"providers.{name}.{key}") for key in PROVIDER_COMMANDS}
        self._defaults = settings.options(name)
        self.options: Mapping[str, str] = {
            **{key: f"{value or 'nothing'}, unless told" for key, value in self._defaults.items()},
            "home": "directory for mngr's files there; ~/.mngr unless told",
        }
        self.makes = bool(self._commands["create"])
        self._check(given)

    def reach(self, place: Place) -> Remote:
        def there(script: str, tty: bool) -> list[str]:
            command = "tty" if tty and self._commands["tty"] else "exec"
            return self._words(command, place, {SCRIPT: script, LINE: far_word(script)})

        return Remote(place, there)

    def make(self, name: str, options: Mapping[str, str], tell: Callable[[str], None]) -> str:
        place = Place(name=f"{name}.{self.name}", options=dict(options))
        if not self.makes:
            raise UsageError(f"the provider {self.name} makes no hosts: name one, as in NAME@BOX.{self.name}")
        if self._commands["list"] and name in self.find():
            raise MngrError(f"there is already a host {place.name}", f"mngr host add {place.name} takes it over")
        try:
            done = self._do("create", place, deadline=_MINUTES)
        except BaseException:
            self._take_back(place)
            raise
        return _last_word(done)

    def find(self) -> dict[str, str]:
        """Lines of NAME, or of NAME and id."""
        if not self._commands["list"]:
            if not self.makes:
                return {}
            raise UsageError(f"nobody knows which {self.name} hosts there are: providers.{self.name}.list is missing")
        done = program.ask(self._words("list", Place(name="")), deadline=_ANSWER)
        if done.code:
            raise HostUnreachable(f"{self.name}: {program.said(done)}")
        lines = [line.split() for line in done.out.splitlines()]
        return {words[0]: words[-1] if words[1:] else "" for words in lines if words and is_name(words[0])}

    def stop(self, place: Place) -> Place:
        self._do("stop", place, deadline=_MINUTES)
        return place.replace(state=STOPPED)

    def start(self, place: Place) -> Place:
        self._do("start", place, deadline=_MINUTES)
        return place.replace(state=RUNNING)

    def remove(self, place: Place) -> None:
        try:
            self._do("destroy", place, deadline=_MINUTES)
        except MngrError:
            # It may be gone already, which only the list can tell.
            if not self._commands["list"] or place.host in self.find():
                raise

    def snapshot(self, place: Place, name: str) -> str:
        return _last_word(self._do("snapshot", place, {"name": name}, deadline=_MINUTES)) or name

    def _take_back(self, place: Place) -> None:
        """It was not there before, so that it is ours to take away; without a list nobody can tell."""
        try:
            if self._commands["list"] and place.host in (found := self.find()):
                self._do("destroy", place.replace(id=found[place.host]), deadline=_MINUTES)
        except MngrError:
            pass

    def _do(
        self, command: str, place: Place, more: Mapping[str, str] | None = None, *, deadline: float
    ) -> process.Done:
        if not self._commands[command]:
            raise UsageError(
                f"the provider {self.name} has no command for this", f"providers.{self.name}.{command} would be it"
            )
        words = self._words(command, place, more)
        done = program.ask(words, deadline=deadline)
        if done.code:
            raise MngrError(f"{place.name}: {words[0]}: {program.said(done)}")
        return done

    def _words(self, command: str, place: Place, more: Mapping[str, str] | None = None) -> list[str]:
        ours = {"host": place.host, "id": place.id or place.host}
        values = {**self._defaults, **place.options, **ours, **(more or {})}
        if any("{home}" in word for word in self._commands[command]):
            values["home"] = home_id()
        return filled(self._commands[command], values)

    def _check(self, given: Mapping[str, object]) -> None:
        for key in given:
            if key not in (*PROVIDER_COMMANDS, "home", "options"):
                raise self._misfit(key, "has no meaning for a provider made of commands", "its options are in options")
        if not self._commands["exec"]:
            raise self._misfit("exec", "is missing", "the command that runs {script} on {host}, as a list of words")
        if self.makes and not self._commands["destroy"]:
            raise self._misfit("destroy", "is missing", "what create makes, somebody has to remove")
        for key in self._defaults:
            if key in (*_OURS, SCRIPT, LINE, "name"):
                raise self._misfit("options", f"has {key} in it, a name that mngr uses itself", "choose another one")
        for command, words in self._commands.items():
            self._check_placeholders(command, words)

    def _check_placeholders(self, command: str, words: list[str]) -> None:
        known = [*_OURS, *self._defaults, *_BEYOND.get(command, ())]
        for found in (match.group(1) for word in words for match in _PLACEHOLDER.finditer(word)):
            if found not in known:
                hint = f"there are {', '.join(known)}; an option of yours needs a default in options"
                raise self._misfit(command, f"has {{{found}}} in it, which stands for nothing", hint)
        runs = command in ("exec", "tty") and words
        if runs and "{script}" not in words and not any("{line}" in word for word in words):
            hint = "{script} is a word of its own behind sh -c; or {line}, part of a line that a shell there reads"
            raise self._misfit(command, "does not say where the script goes", hint)

    def _misfit(self, key: str, problem: str, hint: str) -> Misfit:
        key = f"providers.{self.name}.{key}"
        origin = config.load().origin(key)
        return Misfit(key, problem, hint, "" if origin == "unset" else origin)


def filled(words: list[str], values: Mapping[str, str]) -> list[str]:
    """All placeholders at once, so that a value with braces in it stays what it is."""
    return [
        _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group(0)), word)
        for word in words
        if all(values.get(match.group(1), "?") for match in _PLACEHOLDER.finditer(word))
    ]


def _last_word(done: process.Done) -> str:
    words = done.out.split()
    return words[-1] if words else ""
