"""Which tests need no agent, because nothing that could matter to them has changed. A test's key is a hash of all that
can; equal keys mean that an agent would meet what an earlier one met. Everything is read from a commit: what lies
uncommitted in the work tree is in no agent's checkout.

A wrong skip costs more than an agent sent in vain, so what is not known to be irrelevant counts. The parts of a key:

    test      the function, as text
    fixtures  the rest of its module, every conftest.py from the top to its directory, the files of its fixtures and
              plugins: all without the tests in them. And every file that would not count, but is named in one of these
    block     the tutorial's blocks that it cites
    program   the whole repository, or what is below the given paths, below directories of tests, or configures pytest
    lock      the files that pin what is installed
    prompt, model

Not part of the program are other modules of tests, conftest.py, the tutorial (whose blocks count where they are cited),
documents at the top, and what only editors and services for continuous integration read. A helper or a file of data
beside the tests is, and counts for all of them."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from fnmatch import translate

from mngr import process
from mngr.errors import MngrError, UsageError
from mngr.record import Record
from mngr.swarm.testing.collector import FUNCTION, blocks, functions, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from mngr.swarm.testing.collect import Found


def _any_of(patterns: str) -> Callable[[str], object]:
    return re.compile("|".join(map(translate, patterns.split()))).match


_LOCKS = _any_of("""uv.lock poetry.lock pdm.lock Pipfile.lock pixi.lock pylock*.toml conda-lock.yml environment*.yml
    requirements*.txt requirements*.in constraints*.txt package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml
    bun.lock bun.lockb Cargo.lock go.sum Gemfile.lock composer.lock flake.lock""")
_INSTALLATION = frozenset(("pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "package.json"))
_CONFIGURATION = "pyproject.toml pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg".split()
_IRRELEVANT = _any_of("""docs doc man *.md *.rst LICENSE* COPYING* .github .gitlab .gitlab-ci.yml .circleci .vscode
    .idea .editorconfig .pre-commit-config.yaml""")  # at the top of the repository only
_DIRECTORIES_OF_TESTS = frozenset(("test", "tests"))
_CONFTEST = "conftest.py"
_COMPARED = "test, fixtures, block, program, lock, prompt and model"
_NOT_OURS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")


class Key(Record):
    parts: dict[str, str]  # a hash for each
    at: str = ""  # for people: the commit, or the run, that it is of

    @property
    def hash(self) -> str:
        return _hash(f"{name} {self.parts[name]}" for name in sorted(self.parts))


def keys(
    top: str,
    commit: str,
    found: Iterable[Found],
    paths: Sequence[str],
    prompt: str,
    model: str,
    tutorial: str = "",
) -> dict[str, Key]:
    """By id of the test. One that does not exist at that commit has none. `top` is the top of the repository, `prompt`
    the template: what is filled in differs from run to run. Two processes of git, however many tests there are."""
    tests = list(found)
    tree = _Tree(top, commit, tests, paths, tutorial)
    shared = {
        "program": _hash(f"{entry} {path}" for path, entry in tree.program.items()),
        "lock": _hash(f"{entry} {path}" for path, entry in tree.locks.items()),
        "prompt": _hash([prompt]),
        "model": _hash([model]),
    }
    made = {}
    for test in tests:
        if (own := tree.own(test)) is not None:
            function, cited = own
            parts = {"test": _hash(function), "fixtures": tree.around(test), "block": _hash(cited), **shared}
            made[test.id] = Key(parts=parts, at=commit[:12] if len(commit) >= 40 else commit)
    return made


def skips(now: Mapping[str, Key], before: Mapping[str, Key], ok: Collection[str] | None = None) -> dict[str, str]:
    """The tests that need no agent, each with the reason. `ok` are those that were well before, if not all were."""
    return {
        test: f"{_COMPARED} are as they were at {before[test].at}"
        for test, key in now.items()
        if test in before and (ok is None or test in ok) and key.hash == before[test].hash
    }


def audit(ids: Collection[str], share: float, seed: str) -> list[str]:
    """Of the skipped ones, those that are run anyway: the same ones for the same seed, in the order given."""
    many = min(len(ids), max(1, round(share * len(ids)))) if share > 0 else 0
    drawn = set(sorted(ids, key=lambda test: _hash([seed, test]))[:many])
    return [test for test in ids if test in drawn]


def parse_share(text: str) -> float:
    """`5%` or `0.05`."""
    bare = text.strip()
    try:
        share = float(bare.removesuffix("%")) / (100 if bare.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{text} is no share", "say 5% or 0.05; 0 is none, 100% is all")
    return share


def decides_what_is_installed(path: str) -> bool:
    name = os.path.basename(path)
    return name in _INSTALLATION or bool(_LOCKS(name))


def _hash(texts: Iterable[str | bytes]) -> str:
    """Each with its length: where one ends and the next one begins is part of it."""
    total = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


class _Tree:
    """The files of one commit, sorted by what they can matter to."""

    def __init__(self, top: str, commit: str, tests: list[Found], paths: Sequence[str], tutorial: str) -> None:
        self._files = _listing(top, commit)
        self._collected = {test.file for test in tests}
        self._functions = {(test.source, test.function) for test in tests}
        self._paths = [os.path.normpath(path) for path in paths]
        self._tutorial = os.path.normpath(tutorial) if tutorial else ""
        self.program: dict[str, str] = {}  # path to mode and id
        self.locks: dict[str, str] = {}
        self._named: dict[str, set[str]] = {}  # what counts for those alone that name it: by which names
        for path in self._files:
            self._sort_in(path)
        # All that may have to be read, at once: which modules of tests are named in others is not known yet.
        wanted = {path for test in tests for path in (test.file, test.source, *test.fixtures)} | self._named.keys()
        wanted |= {path for path in self._files if os.path.basename(path) == _CONFTEST}
        python = [path for path in wanted & self._files.keys() if path.endswith(".py")]
        self._contents = _contents(top, self._files, python)
        self._modules: dict[str, _Module] = {}
        self._arounds: dict[tuple[str, ...], str] = {}

    def _sort_in(self, path: str) -> None:
        directory, name = os.path.split(path)
        below_tests = not _DIRECTORIES_OF_TESTS.isdisjoint(directory.split("/"))
        irrelevant = bool(_IRRELEVANT(path.partition("/")[0]))
        if _LOCKS(name):
            self.locks[path] = self._files[path]
        elif name == _CONFTEST:
            pass  # it counts for the tests below it
        elif self._is_tests(path, name, below_tests) or path == self._tutorial:
            self._named[path] = _names(path)
        elif name in _CONFIGURATION or (below_tests or self._is_given(path) if self._paths else not irrelevant):
            self.program[path] = self._files[path]
        elif irrelevant:
            self._named[path] = _names(path)

    def _is_tests(self, path: str, name: str, below_tests: bool) -> bool:
        """A module of the program may be called test_something, or have a doctest: it stays program."""
        named = name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))
        collected = path in self._collected and (below_tests or named or not name.endswith(".py"))
        return collected or (named and below_tests)

    def _is_given(self, path: str) -> bool:
        return any(given in (path, ".") or path.startswith(f"{given}/") for given in self._paths)

    def own(self, test: Found) -> tuple[list[str | bytes], list[str]] | None:
        """The text of its function, and the blocks in it. Of a test that no function in a file stands for, and of a
        file that is no Python for us, the whole file."""
        if test.file not in self._files:
            return None
        module = self._module(test.source)
        if module is None or module.tree is None:
            return [self._files[test.file], self._files.get(test.source, "")], []
        written = module.functions.get(test.function)
        if not written:
            return None
        cited = [block for node in written for block in blocks(module.tree, node)]
        return [module.text(node) for node in written], cited

    def around(self, test: Found) -> str:
        """The same for all tests of a module with the same fixtures."""
        files = {test.file, test.source, *test.fixtures, *_conftests(test.file)} & self._files.keys()
        files -= self.program.keys()
        key = tuple(sorted(files))
        if key not in self._arounds:
            everything = sorted(self._with_named(files))
            self._arounds[key] = _hash(part for path in everything for part in (path, *self._rest(path)))
        return self._arounds[key]

    def _with_named(self, files: set[str]) -> set[str]:
        """With what they import, read or speak of: a name is enough. And with what those name."""
        reached: set[str] = set()
        new = files
        while new:
            reached |= new
            words = {word for path in new if (module := self._module(path)) for word in module.words}
            new = {path for path, names in self._named.items() if path not in reached and not names.isdisjoint(words)}
        return reached

    def _rest(self, path: str) -> list[str | bytes]:
        module = self._module(path)
        if module is None or module.tree is None:
            return [self._files[path]]
        return list(module.rest({function for source, function in self._functions if source == path}))

    def _module(self, path: str) -> _Module | None:
        if path in self._contents and path not in self._modules:
            self._modules[path] = _Module(self._contents[path])
        return self._modules.get(path)


class _Module:
    def __init__(self, data: bytes) -> None:
        self._lines = re.split(rb"\r\n?|\n", data)
        # What it speaks of. To define a test is not to speak of it, or of a module called like it.
        self.words = set(re.findall(r"(?<!def )\b\w+", data.decode("utf-8", "replace").lower()))
        self.tree = parse(data)
        self.functions = functions(self.tree) if self.tree else {}

    def text(self, node: ast.stmt) -> bytes:
        return b"\n".join(self._lines[_first_line(node) - 1 : node.end_lineno])

    def rest(self, tests: set[str]) -> Iterator[bytes]:
        """All statements but the tests. One that is spoken of in the module may be used by the others, and stays."""
        assert self.tree is not None
        return self._statements(self.tree.body, "", tests)

    def _statements(self, body: list[ast.stmt], prefix: str, tests: set[str]) -> Iterator[bytes]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield b"\n".join(self._lines[_first_line(node) - 1 : _first_line(node.body[0]) - 1])
                yield from self._statements(node.body, f"{prefix}{node.name}.", tests)
            elif not isinstance(node, FUNCTION) or not self._is_test(node.name, prefix, tests):
                yield self.text(node)

    def _is_test(self, name: str, prefix: str, tests: set[str]) -> bool:
        return (name.startswith("test") or f"{prefix}{name}" in tests) and name.lower() not in self.words


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _conftests(path: str) -> list[str]:
    """Every conftest.py that pytest would read for it."""
    parts = path.split("/")[:-1]
    return ["/".join([*parts[:count], _CONFTEST]) for count in range(len(parts) + 1)]


def _names(path: str) -> set[str]:
    """By which a file can be spoken of: a document by its directory's (docs), at the top by its kind's too (*.md)."""
    directory, name = os.path.split(path.lower())
    stem, extension = os.path.splitext(name.lstrip("."))
    top = path.partition("/")[0]
    if _IRRELEVANT(top):
        return {top.lower().lstrip(".")} if directory else {stem, extension[1:]} - {""}
    return {os.path.basename(directory) if stem == "__init__" else stem}


def _listing(top: str, commit: str) -> dict[str, str]:
    """Path to mode and object, links and submodules among them."""
    if commit.startswith("-"):
        raise UsageError(f"{commit} is no commit")
    listed = _git(top, ["ls-tree", "-r", "-z", "--full-tree", commit])
    if listed.code:
        raise MngrError(f"the files of {commit} cannot be listed: {listed.err.strip().removeprefix('fatal: ')}")
    entries = (line.partition("\t") for line in listed.out.split("\0") if line)
    return {path: entry for entry, _, path in entries}


def _contents(top: str, files: Mapping[str, str], paths: Iterable[str]) -> dict[str, bytes]:
    """Of those that are regular files."""
    wanted = {path: files[path].split()[2] for path in dict.fromkeys(paths) if files[path].startswith("100")}
    if not wanted:
        return {}
    done = _git(top, ["cat-file", "--batch"], "".join(f"{blob}\n" for blob in wanted.values()).encode())
    data, at, contents = done.out.encode("utf-8", "surrogateescape"), 0, {}
    for path, blob in wanted.items():
        end = data.find(b"\n", at)
        words = data[at:end].split()
        if done.code or end < 0 or len(words) != 3:
            raise MngrError(f"git cannot read {path} ({blob[:12]}): {done.err.strip() or 'it is missing'}")
        contents[path] = data[end + 1 : end + 1 + int(words[2])]
        at = end + 2 + int(words[2])
    return contents


def _git(top: str, words: list[str], input: bytes = b"") -> process.Done:
    """git in that very repository, whatever the caller's environment says."""
    env = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    return process.run(["git", "-C", top, *words], input=input, deadline=120, env={**env, "LC_ALL": "C"})
