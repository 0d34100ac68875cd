"""Which paths are tests, documentation and the tutorial; everything else is the program. What the configuration says of
a kind replaces what is assumed of it. What is assumed is what a run assumes of its agents' commits, and what pytest's
settings in the base commit tell.

In doubt a path is the program: a test that is taken for a fix stands on its own, a fix that is taken for a test would
be folded away."""

from __future__ import annotations

import os
import re

from mngr.errors import UsageError
from mngr.record import Record
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mngr.config import Config
    from mngr.integrate.picking.scratch import Scratch

KEYS = {TUTORIAL: "integrate.tutorial", TEST: "integrate.tests", DOCS: "integrate.docs"}
_PYTEST_FILES = {  # pytest reads the first that has something for it; the section of each
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "pyproject.toml": "",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}
_ANY_FILE = ("*", "*.py")  # says nothing of what is a test


class Policy(Record):
    rules: list[list[str]]  # kinds with the regular expressions their paths are found by; the first that fits counts

    def kind_of(self, path: str) -> str:
        return next((kind for kind, rule in self.rules if re.search(rule, path)), IMPLEMENTATION)


def policy(scratch: Scratch, config: Config, tutorial: Iterable[str] = ()) -> Policy:
    """`tutorial`: paths that a run knew it by."""
    said = {kind: config.get(key) for kind, key in KEYS.items()}
    own = [
        [kind, pattern(glob, KEYS[kind])] for kind, globs in said.items() if isinstance(globs, list) for glob in globs
    ]
    named = config.get("commands.swarm_run.tutorial")
    known = [*tutorial, *([named] if isinstance(named, str) else [])]
    exact = [[TUTORIAL, f"^{re.escape(os.path.normpath(path))}\\Z"] for path in known]
    assumed = [*exact, *_of_project(scratch), *rules()]
    return Policy(rules=own + [rule for rule in assumed if said[rule[0]] is None])


def pattern(glob: str, key: str) -> str:
    """As in .gitignore: with a slash in it, it is meant from the top; a directory is all that is below it."""
    plain = glob.removeprefix("./").strip("/")
    if not plain or glob.startswith("!"):
        raise UsageError(f"{key} has a pattern that says nothing: {glob!a}", "patterns are written as in .gitignore")
    anchored = "/" in glob.removeprefix("./").rstrip("/") or glob.startswith("./")
    return ("^" if anchored else "(^|/)") + _expression(plain) + ("/" if glob.endswith("/") else "(/|\\Z)")


def _expression(glob: str) -> str:
    said = ""
    for part in re.split(r"(\*\*/|/\*\*\Z|\*\*|\*|\?|\[!?\]?[^\]/]*\])", glob):
        if part in _SIGNS:
            said += _SIGNS[part]
        elif part.startswith("[") and part.endswith("]") and len(part) > 2:
            negated = part.startswith("[!")
            inner = part[2 if negated else 1 : -1].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            said += f"[{'^/' if negated else ''}{inner}]"
        else:
            said += re.escape(part)
    try:
        re.compile(said)
    except re.error:  # a range that runs backwards
        return re.escape(glob)
    return said


_SIGNS = {"**/": "(.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


# What the project itself says


def _of_project(scratch: Scratch) -> list[list[str]]:
    said = _pytest_settings(scratch)
    tutorials = [path for path in _words(said.get("e2e_tutorials")) if _is_inside(path)]
    files = [glob for glob in _words(said.get("python_files")) if glob not in _ANY_FILE and glob.strip("/!")]
    by_name = [pattern(glob, "python_files") + "(?<=\\.py)" for glob in files]
    found = [[TUTORIAL, f"^{re.escape(os.path.normpath(path))}\\Z"] for path in tutorials]
    found += [[TEST, rule] for rule in by_name]
    places = [os.path.normpath(path) for path in _words(said.get("testpaths")) if _is_inside(path)]
    if places:
        names = scratch.git("ls-tree", "-r", "-z", "--full-tree", "--name-only", scratch.base).split("\0")
        below = [f"^{_expression(place)}/" for place in places]
        found += [[TEST, rule] for rule in below if _holds_tests(rule, by_name, names)]
    return found


def _holds_tests(rule: str, by_name: list[str], names: list[str]) -> bool:
    """Whether most of what is there are tests: doctests make some projects name the program itself."""
    below = [name for name in names if name.endswith(".py") and re.search(rule, name)]
    told = [name for name in below if not name.endswith("/__init__.py")]
    known = [*by_name, r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py\Z"]
    tests = [name for name in told if any(re.search(each, name) for each in known)]
    return 2 * len(tests) > len(told)


def _is_inside(path: str) -> bool:
    plain = os.path.normpath(path)
    return bool(path) and plain != "." and not plain.startswith(("/", ".."))


def _pytest_settings(scratch: Scratch) -> Mapping[str, Any]:
    """As they are in the base commit; those that cannot be read say nothing."""
    entries = scratch.entries(scratch.base, _PYTEST_FILES)
    for path, section in _PYTEST_FILES.items():
        entry = entries[path]
        if entry is not None and entry[0].startswith("100"):
            text = scratch.blob(entry[1]).decode("utf-8", "replace")
            said = _from_ini(text, section) if section else _from_toml(text)
            if said is not None or path in ("pytest.ini", ".pytest.ini"):
                return said or {}
    return {}


def _from_ini(text: str, section: str) -> Mapping[str, Any] | None:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except Error:
        return None
    return dict(parser[section]) if parser.has_section(section) else None


def _from_toml(text: str) -> Mapping[str, Any] | None:
    import tomllib

    try:
        said: Any = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in ("tool", "pytest"):
        said = said.get(name) if isinstance(said, dict) else None
    if isinstance(said, dict) and "ini_options" in said:
        said = said["ini_options"]
    return said if isinstance(said, dict) else None


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        import shlex

        try:
            return shlex.split(value)
        except ValueError:
            return []
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
