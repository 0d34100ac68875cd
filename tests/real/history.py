"""The changes of a real project, scattered over thirty branches: something to integrate.

more-itertools (MIT) keeps each function, its tests and its line of documentation apart. 23 functions that its release
10.8.0 has changed since 9.0.0, and 11 that it has added, are cut out of the source packages, letter for letter. Each
becomes commits on a branch that starts at 9.0.0 (and one commit with imports). The changes are real; that each is a
commit, and its author, is not. Nothing of it is in this repository: pip fetches the packages by name, once. Dates and
authors are fixed, so the commits are the same every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

from mngr.record import Record
from tests.real.pieces import Module, with_line

PROJECT = "more-itertools"
OLD, MIDDLE, NEW = "9.0.0", "10.3.0", "10.8.0"
SUMS = {
    OLD: "5a6257e40878ef0520b1803990e3e22303a41b5714006c32a3fd8304b26ea1ab",
    MIDDLE: "e5d93ef411224fbcef366a6e8ddc4c5781bc6359d43412a65dd5964e46111463",
    NEW: "f638ddf8a1a0d134181275fb5d58b086ead7c6a72429ad725c67503f13ba30bd",
}
# Which branch has what: a function, and the class with its tests.
CHANGES = """
01 first FirstTests
02 last LastTests
03 one OneTests
04 distinct_permutations DistinctPermutationsTests
05 windowed WindowedTests
06 sort_together SortTogetherTest
07 numeric_range NumericRangeTests
08 seekable SeekableTest
09 circular_shifts CircularShiftsTests
10 set_partitions SetPartitionsTests
11 ichunked IchunkedTests
12 sample SampleTests
13 is_sorted IsSortedTests
14 zip_broadcast ZipBroadcastTests
15 unique_in_window UniqueInWindowTests
16 all_equal AllEqualTests
17 pairwise PairwiseTests
18 unique_everseen UniqueEverseenTests
19 unique_justseen UniqueJustseenTests
20 sliding_window SlidingWindowTests
21 split_after SplitAfterTest
22 nth_combination_with_replacement NthCombinationWithReplacementTests
23 classify_unique ClassifyUniqueTests
24 unique UniqueTests
25 interleave_randomly InterleaveRandomlyTests
26 derangements DerangementsTests
27 iter_index IterIndexTests
28 batched BatchedTests
29 takewhile_inclusive TakewhileInclusiveTests
30 filter_map FilterMapTests
03 combination_with_replacement_index CombinationWithReplacementIndexTests
07 transpose TransposeTests
18 doublestarmap DoubleStarMapTests
24 iterate IterateTests
"""
# Code, tests and docs of these are one commit, with this as its kind.
MIXED = {"windowed": "implementation", "zip_broadcast": "test", "unique": "", "derangements": ""}
# Their code is on this branch too.
COPIES = {"last": 11, "sort_together": 20, "set_partitions": 27, "seekable": 2, "classify_unique": 16}
RENAMED = ("set_partitions", "classify_unique")  # copies with a message in other words
# On this branch their code is that of the release between.
RIVALS = {"unique_justseen": 13, "all_equal": 5, "iter_index": 9}
CROWDED = (  # these add to the same place: both belong in
    ("takewhile_inclusive", "filter_map"),
    ("takewhile_inclusive", "doublestarmap"),
    ("takewhile_inclusive", "iterate"),
    ("filter_map", "doublestarmap"),
    ("filter_map", "iterate"),
    ("doublestarmap", "iterate"),
    ("batched", "transpose"),
    ("combination_with_replacement_index", "derangements"),
)
CODE, TESTS, DOCS, NEWS = "more_itertools", "tests", "docs/api.rst", "docs/versions.rst"
MODULES = (f"{CODE}/more.py", f"{CODE}/recipes.py", f"{TESTS}/test_more.py", f"{TESTS}/test_recipes.py")
BRANCHES = 30
BEGIN = 1_700_000_000  # of time, for these commits
Files = dict[str, str]


class History(Record):
    path: str
    base: str  # a commit, `main`: every branch starts there
    complete: str  # a commit, the tag `complete`: the base with every real change in it
    branches: list[str]
    commits: int  # on the branches
    changes: dict[str, dict[str, str]]  # by function: its commits by kind; a mixed one has only the kind `mixed`
    duplicates: dict[str, str]  # a commit that does the same as another: that other one
    conflicts: dict[str, str]  # a commit that changes the same lines as a real one, differently: that real one
    crowded: list[tuple[str, str]]  # functions whose commits add to the same place: a conflict where both belong in
    command: list[str]  # that runs the tests, in a checkout
    tests_at_base: int = 560
    tests_when_complete: int = 645


def build(directory: Path, attributes: bool = True) -> History:
    """A repository in `directory`, which is there and empty. `main` is checked out. The project has attributes by which
    git joins what is added to the same place of its largest file; without them, that is a conflict."""
    old, middle, new = release(OLD), release(MIDDLE), release(NEW)
    if not attributes:
        del old[".gitattributes"]
    writer = _Writer(directory)
    first = writer.commit("refs/heads/main", 0, f"{PROJECT} {OLD}", {}, old)
    start = _prepared(old, new)
    base = writer.commit("refs/heads/main", 0, f"Import what {NEW} imports", old, start, first)
    branches = [_Branch(writer, number, start, base) for number in range(BRANCHES + 1)]  # none has the number 0
    complete = dict(start)
    changes, twins, rivals = {}, {}, {}
    for number, function, tests in real_changes():
        changes[function] = branches[number].change(function, tests, new)
        complete = _with_tests(_with_docs(_with_code(complete, function, new), function, new), tests, new)
    for function, number in COPIES.items():
        words = f"Mend {function}" if function in RENAMED else _words(function, start, new)
        twins[branches[number].implement(function, new, words)] = changes[function]["implementation"]
    for function, number in RIVALS.items():
        words = f"Improve {function}, as in {MIDDLE}"
        rivals[branches[number].implement(function, middle, words)] = changes[function]["implementation"]
    end = writer.commit("refs/tags/complete", 0, f"All that is here of {NEW}", start, complete, base)
    ids = writer.finish()
    return History(
        path=str(directory),
        base=ids[base],
        complete=ids[end],
        branches=[branch.name for branch in branches[1:]],
        commits=len(ids) - len((first, base, end)),
        changes={name: {kind: ids[mark] for kind, mark in parts.items()} for name, parts in changes.items()},
        duplicates={ids[twin]: ids[mark] for twin, mark in twins.items()},
        conflicts={ids[rival]: ids[mark] for rival, mark in rivals.items()},
        crowded=list(CROWDED),
        command=[sys.executable, "-m", "pytest", "-q", "tests"],
    )


def real_changes() -> list[tuple[int, str, str]]:
    """Each with the number of its branch, its function, and the class with the tests of it."""
    rows = (line.split() for line in CHANGES.strip().splitlines())
    return [(int(number), function, tests) for number, function, tests in rows]


def release(version: str) -> Files:
    """The text of every file in the source package."""
    files = {}
    with tarfile.open(_package(version)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                files[member.name.partition("/")[2]] = content.read().decode()
    return files


def _package(version: str) -> Path:
    cache = Path(os.environ.get("MNGR_TEST_CACHE") or Path.home() / ".cache" / "mngr-tests")
    place = cache / f"{PROJECT}-{version}.tar.gz"
    if not place.exists():
        cache.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
        wanted = ["--no-deps", "--no-binary", ":all:", f"{PROJECT}=={version}"]
        with tempfile.TemporaryDirectory(dir=cache) as new:
            done = subprocess.run([*pip, *wanted, "--dest", new], capture_output=True, text=True)
            assert done.returncode == 0, f"pip cannot download {PROJECT} {version}: {done.stderr}"
            (file,) = Path(new).iterdir()
            file.replace(place)  # in one step: others may want it at the same time
    found = sha256(place.read_bytes()).hexdigest()
    assert found == SUMS[version], f"{place} is not the package it should be: remove it, and see what pip downloads"
    return place


def _prepared(old: Files, new: Files) -> Files:
    files = dict(old) | {".gitignore": "__pycache__/\n.pytest_cache/\n"}
    importable = {name for piece in Module(old[f"{CODE}/recipes.py"]).pieces for name in piece.names}
    for path in MODULES:
        module = Module(old[path])
        module.import_what(Module(new[path]), importable)
        files[path] = module.text
    return files


def _with_code(files: Files, function: str, later: Files) -> Files:
    return _with_piece(files, function, later, CODE)


def _with_tests(files: Files, tests: str, later: Files) -> Files:
    return _with_piece(files, tests, later, TESTS)


def _with_piece(files: Files, name: str, later: Files, directory: str) -> Files:
    path = home_of(name, later, directory)
    module = Module(files[path])
    module.take(name, Module(later[path]))
    return files | {path: module.text}


def home_of(name: str, files: Files, directory: str) -> str:
    return next(path for path in MODULES if path.startswith(f"{directory}/") and Module(files[path]).defines(name))


def _with_docs(files: Files, function: str, later: Files) -> Files:
    return files | {DOCS: with_line(files[DOCS], later[DOCS], f".. autofunction:: {function}\n")}


def _words(function: str, start: Files, later: Files) -> str:
    """The message of its commits: what the project says about it in its list of changes."""
    known = any(Module(start[path]).defines(function) for path in MODULES)
    news = later[NEWS][: later[NEWS].index(f"\n{OLD}\n")]
    said = [line.strip(" *") for line in news.splitlines() if f"`{function}`" in line]
    plain = [re.sub(r":(?:func|class):`(\w+)`", r"\1", line) for line in said]
    return "\n\n".join([f"{'Change' if known else 'Add'} {function}", *plain])


class _Branch:
    def __init__(self, writer: _Writer, number: int, files: Files, base: int) -> None:
        self.name, self.number = f"work/{number:02}", number
        self._writer, self._start, self._files, self._tip = writer, files, files, base

    def change(self, function: str, tests: str, later: Files) -> dict[str, int]:
        words = _words(function, self._start, later)
        code = _with_code(self._files, function, later)
        proven = _with_tests(code, tests, later)
        told = _with_docs(proven, function, later)
        if function in MIXED:
            return {"mixed": self._commit(words, MIXED[function], told)}
        marks = {"implementation": self._commit(words, "implementation", code)}
        marks["test"] = self._commit(f"Test {function}", "test", proven)
        if told != proven:
            marks["docs"] = self._commit(f"Tell of {function}", "docs", told)
        return marks

    def implement(self, function: str, later: Files, words: str) -> int:
        return self._commit(words, "implementation", _with_code(self._files, function, later))

    def _commit(self, words: str, kind: str, files: Files) -> int:
        message = f"{words}\n\nKind: {kind}" if kind else words
        before, self._files = self._files, files
        self._tip = self._writer.commit(f"refs/heads/{self.name}", self.number, message, before, files, self._tip)
        return self._tip


class _Writer:
    """Commits into a new repository, all at once. Until then they are known by marks, which are numbers from 1."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stream: list[bytes] = []
        self._marks = 0

    def commit(self, ref: str, author: int, message: str, before: Files, after: Files, parent: int = 0) -> int:
        self._marks += 1
        who = f"Author {author:02} <author-{author:02}@example.org> {BEGIN + 60 * self._marks} +0000"
        self._say(f"commit {ref}\nmark :{self._marks}\nauthor {who}\ncommitter {who}\n{_data(message)}")
        if parent:
            self._say(f"from :{parent}\n")
        changed = [path for path in sorted(after) if after[path] != before.get(path)]
        assert changed, f"nothing changes: {message}"
        for path in changed:
            self._say(f"M 100644 inline {path}\n{_data(after[path])}")
        return self._marks

    def _say(self, text: str) -> None:
        self._stream.append(text.encode())

    def finish(self) -> dict[int, str]:
        """The commits of the marks."""
        self._git("init", "--quiet", "--initial-branch=main")
        marks = self._directory / ".git" / "marks"
        self._git("fast-import", "--quiet", f"--export-marks={marks}", input=b"".join(self._stream))
        self._git("reset", "--quiet", "--hard", "main")
        pairs = (line.split() for line in marks.read_text().splitlines())
        return {int(mark[1:]): commit for mark, commit in pairs}

    def _git(self, *words: str, input: bytes = b"") -> None:
        subprocess.run(["git", "-C", str(self._directory), *words], input=input, check=True)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
