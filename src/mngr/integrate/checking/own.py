"""Which tests are a change's own: functions that it adds or changes in files of tests, and the tests that its branches
were made for. Which of these functions are tests is for pytest to say: the others are missing when they are run."""

from __future__ import annotations

from functools import lru_cache

from mngr.errors import MngrError
from mngr.swarm.testing.checker import functions_in
from mngr.swarm.testing.kinds import TEST, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mngr.integrate.change import Change, Group, Source
    from mngr.integrate.picking.scratch import Scratch


class Own:
    """Of these groups; by key, in the order in which they stand in their files."""

    def __init__(self, scratch: Scratch, groups: Iterable[Group], sources: Iterable[Source]) -> None:
        found = list(groups)
        self._touched = touched(scratch, [group.first for group in found])
        self._tests = {source.branch: source.test for source in sources if source.test}
        self._there: set[str] | None = None

    def limit_to(self, there: Iterable[str] | None) -> None:
        """What pytest would run by itself: functions in files of data can be called like tests. None: nobody knows."""
        self._there = None if there is None else {name for test in there for name in (test, test.partition("[")[0])}

    def written(self, group: Group) -> list[str]:
        """What it adds or changes itself. Of a file that cannot be collected, all."""
        found = self._touched.get(group.first.id, [])
        if self._there is None:
            return found
        return [test for test in found if test in self._there or test.partition("::")[0] in self._there]

    def of(self, group: Group) -> list[str]:
        """With what its branches were made for."""
        asked = [self._tests[change.branch] for change in group.changes if change.branch in self._tests]
        return list(dict.fromkeys([*asked, *self.written(group)]))


def touched(scratch: Scratch, changes: Iterable[Change]) -> dict[str, list[str]]:
    """By change's id. Two processes of git at most, however many changes there are."""
    pairs = [(change, path) for change in changes for path in change.paths if _may_have_tests(change, path)]
    names = [f"{commit}:{path}" for change, path in pairs for commit in (change.parent, change.id)]
    texts = _blobs(scratch, names)
    found: dict[str, list[str]] = {}
    for change, path in pairs:
        then, now = (_functions(texts, f"{commit}:{path}") for commit in (change.parent, change.id))
        new = [f"{path}::{name}" for name, code in now.items() if then.get(name) != code]
        found.setdefault(change.id, []).extend(new)
    return found


def written_in(scratch: Scratch, tree: str, tests: Iterable[str]) -> list[str]:
    """Those whose function stands in their file."""
    files = {test: f"{tree}:{test.partition('::')[0]}" for test in tests if "\n" not in test}
    texts = _blobs(scratch, list(files.values()))
    return [test for test, file in files.items() if function_of(test).partition("::")[2] in _functions(texts, file)]


def function_of(test: str) -> str:
    """Its id, without parameters."""
    return test.partition("[")[0]


def _may_have_tests(change: Change, path: str) -> bool:
    """The kind of a change that is no fix follows from the project's own rules, which we need not know here."""
    return path.endswith(".py") and "\n" not in path and (not change.is_fix or kind_of(path) == TEST)


def _functions(texts: Mapping[str, bytes], name: str) -> dict[str, str]:
    return _functions_in(texts[name]) if name in texts else {}


@lru_cache(maxsize=4)  # large files take long, and most changes begin with the same
def _functions_in(text: bytes) -> dict[str, str]:
    return functions_in(text)


def _blobs(scratch: Scratch, names: list[str]) -> dict[str, bytes]:
    """Those that there are."""
    if not names:
        return {}
    asked = "".join(f"{name}\n" for name in dict.fromkeys(names)).encode("utf-8", "surrogateescape")
    done = scratch.run("cat-file", "--batch", input=asked)
    if done.code:
        raise MngrError(f"git cat-file failed: {done.err.strip()}")
    data, at, found = done.out.encode("utf-8", "surrogateescape"), 0, {}
    for name in dict.fromkeys(names):
        end = data.index(b"\n", at)
        words = data[at:end].split(b" ")
        if words[-1] == b"missing":
            at = end + 1
        else:
            size = int(words[-1])
            if words[-2] == b"blob":
                found[name] = data[end + 1 : end + 1 + size]
            at = end + 2 + size
    return found
