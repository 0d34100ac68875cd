"""The configuration: layers of whole values, the later one wins, nothing is merged.

    built-in defaults < $MNGR_HOME/config.toml < .mngr.toml of the project < MNGR_CONFIG_KEY=... < -S key=value

Keys and their types are the table in `config_keys`. On the hot path: without files and variables nothing is imported
and nothing parsed. What depends on a verb's options (`commands`, `templates`) is checked when it is asked for, so that
a verb never pays for another one's import."""

from __future__ import annotations

import os

from mngr.config_keys import DEFAULTS, Misfit, check_own, check_verb, enclosing, find, is_section, leaf, table_name
from mngr.errors import MngrError, UsageError
from mngr.home import home_path
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

USER_FILE, PROJECT_FILE = "config.toml", ".mngr.toml"
_PREFIX = "MNGR_CONFIG_"
_LONGEST_SEARCH = 2000  # lines; beyond, an error names the file only

_overrides: dict[str, str] = {}
_cache: dict[tuple[object, ...], Config] = {}


class Setting(Record):
    value: object  # None: an agent type with nothing in it, which exists all the same
    origin: str  # the path of a file, the name of a variable, or -S
    typed: bool = False  # a text that still has to be read as the key's type


def load(cwd: str | None = None) -> Config:
    """The configuration as seen from a directory. Cached: a process sees one configuration as long as it lives."""
    here = _directory(cwd)
    variables = tuple((name, os.environ[name]) for name in os.environ if name[: len(_PREFIX)].upper() == _PREFIX)
    slot = (here, home_path(), variables)
    if slot not in _cache:
        settings = _from_file(user_file())
        project = _search(here)[0] if here is not None else None
        if project is not None:
            settings.update(_from_file(project, own=False))
        for name, value in variables:
            key = name[len(_PREFIX) :].lower().replace("__", ".")
            settings[key] = _typed(key, value, name)
        for key, value in _overrides.items():
            settings[key] = _typed(key, value, "-S")
        _cache[slot] = Config(settings)
    return _cache[slot]


def override(key: str, value: str) -> None:
    """`-S key=value`: the highest layer."""
    _overrides[key.strip()] = value
    _cache.clear()


def forget(*, overrides: bool = False) -> None:
    """The next load reads the files again; with `overrides`, what -S gave is dropped as well."""
    _cache.clear()
    if overrides:
        _overrides.clear()


def user_file() -> str:
    return os.path.join(home_path(), USER_FILE)


def project_file(cwd: str | None = None) -> str:
    """The project's `.mngr.toml`, or where a first one belongs: beside `.git`, else right here."""
    here = _directory(cwd)
    if here is None:
        raise MngrError("the current directory no longer exists", "cd to another one")
    found, top = _search(here)
    path = found or os.path.join(top or here, PROJECT_FILE)
    if found is None and os.path.lexists(path):
        raise MngrError(f"{path} belongs to somebody else", "make a directory of your own for the project")
    return path


def _search(here: str) -> tuple[str | None, str | None]:
    """The nearest project file from here upwards, and the top of the repository when the search came to it. It ends
    there, at $HOME or at /."""
    last = {os.path.realpath(os.path.expanduser("~")), "/"}
    place = here
    while True:
        path = os.path.join(place, PROJECT_FILE)
        if _is_trusted(path):
            return path, None
        if os.path.lexists(os.path.join(place, ".git")):
            return None, place
        if place in last:
            return None, None
        place = os.path.dirname(place)


def _is_trusted(path: str) -> bool:
    """A project file can run commands. One that a stranger left in a directory that everybody writes to (/tmp) is
    passed over."""
    try:
        file, directory = os.lstat(path), os.stat(os.path.dirname(path))
    except OSError:
        return False
    return directory.st_mode & 0o002 == 0 or file.st_uid in (0, os.geteuid())


def _directory(cwd: str | None) -> str | None:
    try:
        return os.path.realpath(cwd) if cwd is not None else os.getcwd()
    except OSError:
        return None


def read_toml(path: str) -> tuple[str, dict[str, object]]:
    """The text of a file and what it says; empty when there is no such file. Raises one line that names the place."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return "", {}
    except OSError as error:
        raise MngrError(f"cannot read {path}: {error.strerror}", "make it readable, or move it away") from error
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not valid UTF-8") from error
    except (ValueError, RecursionError) as error:
        problem, _, position = str(error).partition(" (at ")
        line_number = position.removeprefix("line ").partition(",")[0]
        place = f"{path}:{line_number}" if line_number.isdecimal() else path
        raise UsageError(f"{place}: not valid TOML: {problem}", "edit the file by hand") from error


def _from_file(path: str, *, own: bool = True) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    _placing(path, _collect, read_toml(path)[1], [], path, found, own)
    return found


def _collect(tree: dict[str, object], above: list[str], path: str, found: dict[str, Setting], own: bool) -> None:
    for name, value in tree.items():
        parts = [*above, name]
        key = ".".join(parts)
        declared = leaf(parts)
        if declared is not None:
            if not own:
                check_own(key, declared, value)
            found[key] = Setting(value=value, origin=path)
        elif not is_section(parts):
            find(key)
            raise Misfit(key, "is not a key", "mngr config list --all shows every key")
        elif isinstance(value, dict):
            _collect(value, parts, path, found, own)
            if not value and above == ["agent_types"]:
                found[key] = Setting(value=None, origin=path)
        else:
            raise Misfit(key, "must be a table")


def _typed(key: str, value: str, origin: str) -> Setting:
    if leaf(key.split(".")) is None:
        outer = enclosing(key)
        if outer:
            hint = f"give the whole table, as TOML: {outer}={{ name = value }}"
            raise Misfit(key, f"lies inside {outer}, which is one value", hint, origin)
        _placing(origin, find, key)
    return Setting(value=value, origin=origin, typed=True)


def _placing(origin: str, step: Callable[..., T], *args: object) -> T:
    """The result of the step; what it finds wrong is told with its place: a file and line, a variable, -S."""
    try:
        return step(*args)
    except Misfit as misfit:
        raise misfit.at(file_and_line(origin, misfit.key.split(".")) if os.path.isabs(origin) else origin) from None


def file_and_line(path: str, parts: list[str]) -> str:
    """The TOML reader keeps no positions, so the file is read again, a line more each time: the key begins on the line
    after the last beginning that could be read without it."""
    import tomllib

    lines = read_toml(path)[0].split("\n")
    begins = 1
    for count in range(1, min(len(lines), _LONGEST_SEARCH) + 1):
        try:
            tree: object = tomllib.loads("\n".join(lines[:count]))
        except (ValueError, RecursionError):
            continue
        for part in parts:
            tree = tree.get(part) if isinstance(tree, dict) else None
        if tree is not None:
            return f"{path}:{begins}"
        begins = count + 1
    return path


class Config:
    """What `load` found. A dotted key names a value (`agent_types.fast.args`) or the table of what lies below it."""

    def __init__(self, settings: dict[str, Setting]) -> None:
        self._settings = {key: setting for key, setting in settings.items() if setting.value is not None}
        self._empty = settings.keys() - self._settings.keys()
        self._values: dict[str, object] = {}
        for key, setting in self._settings.items():
            if key.startswith("commands.") and setting.origin != "-S":
                _placing(setting.origin, check_verb, key.split(".")[1])
            elif not key.startswith("templates.") or not isinstance(setting.value, dict):
                self._read(key)

    def get(self, key: str, default: object = None) -> object:
        if key in self._settings:
            return self._read(key)
        return self.table(key) or DEFAULTS.get(key, default)

    def text(self, key: str) -> str | None:
        value = self.get(key)
        return None if value is None else str(value)

    def flag(self, key: str) -> bool | None:
        value = self.get(key)
        return None if value is None else bool(value)

    def number(self, key: str) -> float | None:
        value = self.get(key)
        return float(value) if isinstance(value, int | float) else None

    def strings(self, key: str) -> list[str]:
        value = self.get(key)
        return [str(item) for item in value] if isinstance(value, list) else []

    def table(self, key: str) -> dict[str, object]:
        """What lies below a key, each value from its own layer: `table("agent_types")["fast"]["args"]`."""
        below: dict[str, object] = {}
        for name in self._settings:
            if name.startswith(key + "."):
                inner = below
                *above, last = name[len(key) + 1 :].split(".")
                for part in above:
                    inner = inner.setdefault(part, {})  # type: ignore[assignment]
                inner[last] = self._read(name)
        for name in self._empty:
            if name.startswith(key + "."):
                below.setdefault(name[len(key) + 1 :], {})
        return below

    def command(self, verb: str) -> dict[str, object]:
        """Defaults for the options of a verb: `command("snapshot create")` is `[commands.snapshot_create]`."""
        return self.table(f"commands.{table_name(verb)}")

    def template(self, name: str) -> dict[str, object]:
        key = f"templates.{name}"
        if key in self._settings:
            value = self._read(key)
            assert isinstance(value, dict)
            return dict(value)
        from mngr.address import nearest

        names = [known.partition(".")[2] for known in self._settings if known.startswith("templates.")]
        close = nearest(name, names)
        others = (
            f"there are {', '.join(sorted(names))}"
            if names
            else "mngr config set templates.NAME.OPTION VALUE makes one"
        )
        raise UsageError(f"there is no template {name!a}", f"did you mean {close}?" if close else others)

    def origin(self, key: str) -> str:
        """The layer that gave the value: a file, a variable, -S, default or unset."""
        if key in self._settings:
            return self._settings[key].origin
        return "default" if key in DEFAULTS else "unset"

    def keys(self) -> list[str]:
        """Every key that a layer above the defaults sets."""
        return sorted(self._settings)

    def _read(self, key: str) -> object:
        if key not in self._values:
            setting = self._settings[key]
            self._values[key] = _placing(setting.origin, _value, key, setting)
        return self._values[key]


def _value(key: str, setting: Setting) -> object:
    from mngr.config_values import check, from_text

    declared = find(key)
    if setting.typed:
        return from_text(key, str(setting.value), declared, quoted=setting.origin != "-S")
    check(key, setting.value, declared)
    return setting.value
