"""What a test's key depends on and what not: one file of a small repository is changed, and the parts that differ are
compared with those that should."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mngr import process
from mngr.errors import MngrError, UsageError
from mngr.swarm.testing.collect import Found
from mngr.swarm.testing.keys import Key, audit, keys, parse_share, skips

MODULE = '''\
import pytest
from tests.helpers import home

BLOCK = """
    mngr list
"""


def test_one(sample):
    # as before
    home.write_tutorial_block(BLOCK)


def test_two():
    assert 2


class TestMore:
    limit = 3

    @pytest.mark.slow
    def test_three(self):
        assert self.limit
'''

FILES = {
    "src/app.py": "def main(): pass\n",
    "src/prompts/ask.md": "# part of the program\n",
    "src/test_runner.py": "def test(): pass  # of the program, whatever it is called\n",
    "tests/test_it.py": MODULE,
    "tests/test_other.py": "def test_other(): pass\n",
    "tests/helpers.py": "home = None\n",
    "tests/data/big.txt": "1\n",
    "tests/conftest.py": "",
    "tests/deep/conftest.py": "",
    "conftest.py": "",
    "pyproject.toml": "",
    "uv.lock": "",
    "README.md": "",
    "docs/guide.md": "",
    ".github/ci.yml": "",
    ".env.test": "",
    "tutorial.sh": "mngr list\n",
}


class Repo:
    def __init__(self, top: Path) -> None:
        self.top = top
        self._git("init", "-q")
        self.first = self.commit(FILES)

    def commit(self, texts: Mapping[str, str | None]) -> str:
        for name, text in texts.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        self._git("add", "-A")
        self._git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "Change")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *words: str) -> str:
        return subprocess.run(["git", "-C", self.top, *words], check=True, capture_output=True, text=True).stdout

    def keys(self, commit: str, *tests: Found, paths: tuple[str, ...] = (), model: str = "small") -> dict[str, Key]:
        return keys(str(self.top), commit, tests or TESTS, paths, "Do it", model, "tutorial.sh")

    def changed(
        self, texts: Mapping[str, str | None], *tests: Found, paths: tuple[str, ...] = ()
    ) -> dict[str, set[str]]:
        """Which parts differ after this change, by the name of the test."""
        before = self.keys(self.first, *tests, paths=paths)
        after = self.keys(self.commit(texts), *tests, paths=paths)
        named = {test.id: test.name for test in tests or TESTS}
        return {
            named[test]: {part for part in key.parts if key.parts[part] != before[test].parts[part]}
            for test, key in after.items()
        }


def found(function: str, file: str = "tests/test_it.py", source: str | None = None, **more: list[str]) -> Found:
    name = function.rpartition(".")[2]
    return Found(
        id=f"{file}::{function.replace('.', '::')}",
        file=file,
        source=file if source is None else source,
        line=1,
        name=name,
        function=function,
        doc="",
        markers=[],
        fixtures=more.get("fixtures", []),
        blocks=[],
    )


ONE = found("test_one")
TESTS = (ONE, found("test_two"), found("TestMore.test_three"))
NOTHING: dict[str, set[str]] = {"test_one": set(), "test_two": set(), "test_three": set()}


def all_by(*parts: str) -> dict[str, set[str]]:
    return {name: set(parts) for name in NOTHING}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def test_a_change_of_a_test_is_its_own_alone(repo: Repo) -> None:
    """A comment in it counts: an agent reads it too."""
    assert repo.changed({"tests/test_it.py": MODULE.replace("as before", "now")}) == {**NOTHING, "test_one": {"test"}}
    slower = MODULE.replace("slow", "slower")
    assert repo.changed({"tests/test_it.py": slower})["test_three"] == {"test"}


def test_new_tests_beside_it_do_not_count(repo: Repo) -> None:
    more = f"{MODULE}\n    def test_four(self):\n        pass\n\n\ndef test_five():\n    pass\n"
    assert repo.changed({"tests/test_it.py": more}) == NOTHING


def test_what_tests_of_a_module_share_counts_for_all_of_them(repo: Repo) -> None:
    """The blank line is in a text, where it can matter."""
    assert repo.changed({"tests/test_it.py": MODULE.replace("limit = 3", "limit = 4")}) == all_by("fixtures")
    blank = MODULE.replace("    mngr list\n", "    mngr list\n\n    mngr stop\n")
    assert repo.changed({"tests/test_it.py": blank}) == {**all_by("fixtures"), "test_one": {"fixtures", "block"}}


def test_a_test_that_others_use_counts_for_them(repo: Repo) -> None:
    used = f"{MODULE}\n\ndef test_again():\n    test_two()\n"
    repo.first = repo.commit({"tests/test_it.py": used})
    parts = repo.changed({"tests/test_it.py": used.replace("assert 2", "assert 3")})
    assert parts == {**all_by("fixtures"), "test_two": {"test", "fixtures"}}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("src/app.py", {"program"}),
        ("src/prompts/ask.md", {"program"}),
        ("src/test_runner.py", {"program"}),
        ("src/new.py", {"program"}),
        ("tests/helpers.py", {"program"}),
        ("tests/data/big.txt", {"program"}),
        ("pyproject.toml", {"program"}),
        (".env.test", {"program"}),
        ("conftest.py", {"fixtures"}),
        ("tests/conftest.py", {"fixtures"}),
        ("uv.lock", {"lock"}),
        ("web/package-lock.json", {"lock"}),
        ("tests/deep/conftest.py", set()),
        ("tests/test_other.py", set()),
        ("README.md", set()),
        ("docs/guide.md", set()),
        (".github/ci.yml", set()),
        ("tutorial.sh", set()),
    ],
)
def test_what_counts_as_what(repo: Repo, name: str, parts: set[str]) -> None:
    assert repo.changed({name: "changed = True\n"}) == all_by(*parts)


def test_a_file_of_the_program_that_is_gone_or_executable_now_is_a_change(repo: Repo) -> None:
    assert repo.changed({"src/app.py": None}) == all_by("program")
    repo.first = repo.commit({"src/app.py": ""})
    (repo.top / "src/app.py").chmod(0o755)
    assert repo.changed({}) == all_by("program")


def test_given_paths_narrow_the_program_but_not_what_surrounds_tests(repo: Repo) -> None:
    narrow = ("src/prompts/",)
    assert repo.changed({"src/app.py": "changed"}, paths=narrow) == NOTHING
    for name in ("src/prompts/ask.md", "tests/helpers.py", "pyproject.toml"):
        repo.first = repo.commit({name: "before"})
        assert repo.changed({name: "changed"}, paths=narrow) == all_by("program"), name


def test_files_of_fixtures_count_without_the_tests_in_them(repo: Repo) -> None:
    """Outside of the program, where the given paths leave them."""
    test = found("test_one", fixtures=["plugin/own.py"])
    plugin = "def sample(): return 1\n\ndef test_plugin(): pass\n"
    repo.first = repo.commit({"plugin/own.py": plugin})
    for new, parts in ((plugin.replace("pass", "..."), set()), (plugin.replace("1", "2"), {"fixtures"})):
        assert repo.changed({"plugin/own.py": new}, test, paths=("src",)) == {"test_one": parts}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("from tests.test_other import shared", "tests/test_other.py"),
        ("DOCS = TOP / 'docs'", "docs/guide.md"),
        ("PAGES = TOP.glob('*.md')", "README.md"),
        ("TEXT = 'tutorial.sh'", "tutorial.sh"),
    ],
)
def test_what_a_module_names_counts_after_all(repo: Repo, said: str, name: str) -> None:
    repo.first = repo.commit({"tests/test_it.py": f"{said}\n{MODULE}"})
    assert repo.changed({name: "changed = True\n"}) == all_by("fixtures")


def test_what_is_named_in_what_is_named_counts_too(repo: Repo) -> None:
    repo.first = repo.commit(
        {"tests/test_it.py": f"import test_other\n{MODULE}", "tests/test_other.py": "import test_third\n"}
    )
    assert repo.changed({"tests/test_third.py": "changed = True\n"}) == all_by("fixtures")


def test_an_inherited_test_has_its_text_elsewhere(repo: Repo) -> None:
    base = "class Base:\n    def test_base(self):\n        assert 1\n"
    repo.first = repo.commit({"tests/test_base.py": base})
    test = found("Base.test_base", source="tests/test_base.py")
    assert repo.changed({"tests/test_base.py": base.replace("1", "2")}, test) == {"test_base": {"test"}}
    moved = repo.changed({"tests/test_it.py": MODULE.replace("limit = 3", "limit = 4")}, test)
    assert moved == {"test_base": {"test", "fixtures"}}


@pytest.mark.parametrize("file", ["tests/cases.yaml", "tests/test_generated.py"])
def test_a_test_without_a_function_has_the_whole_file(repo: Repo, file: str) -> None:
    repo.first = repo.commit({file: "a = 1\n"})
    parts = repo.changed({file: "a = 1  # one\n"}, found("some case", file, source=""))
    assert "test" in parts["some case"]
    assert "program" not in parts["some case"]


def test_a_file_that_we_cannot_parse_counts_whole(repo: Repo) -> None:
    repo.first = repo.commit({"tests/test_it.py": "def test_one(:\n"})
    assert "test" in repo.changed({"tests/test_it.py": "def test_one(:\n\n"}, ONE)["test_one"]


def test_a_test_that_does_not_exist_at_a_commit_has_no_key(repo: Repo) -> None:
    new = [found("test_new"), found("test_new", "tests/test_new.py")]
    assert repo.keys(repo.first, ONE, *new).keys() == {ONE.id}


def test_odd_names_of_files_are_read(repo: Repo) -> None:
    """As git would quote them, were it asked to."""
    odd = 'tests/test_"ä b.py'
    commit = repo.commit({odd: "def test_one(): pass\n"})
    assert len(repo.keys(commit, found("test_one", odd))) == 1


def test_the_work_tree_is_not_looked_at_and_git_is_asked_twice(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    before = repo.keys("HEAD")
    (repo.top / "tests/test_it.py").write_text("")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    asked = []
    really = process.run

    def count(argv: list[str], **options: bytes | float | dict[str, str]) -> process.Done:
        asked.append(argv[3])
        return really(argv, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", count)
    assert repo.keys("HEAD") == before
    assert asked == ["ls-tree", "cat-file"]


def test_a_commit_that_is_not_there_is_an_error(repo: Repo) -> None:
    with pytest.raises(MngrError, match="the files of nowhere cannot be listed: Not a valid object name nowhere"):
        repo.keys("nowhere")
    with pytest.raises(UsageError, match="--name-only is no commit"):
        repo.keys("--name-only")


# What is made of them.


def test_a_skip_says_what_was_compared_and_with_what(repo: Repo) -> None:
    before = repo.keys(repo.first)
    now = repo.keys(repo.commit({"tests/test_it.py": MODULE.replace("as before", "now")}))
    skipped = skips(now, before)
    assert list(skipped) == [test.id for test in TESTS[1:]]
    reason = f"test, fixtures, block, program, lock, prompt and model are as they were at {repo.first[:12]}"
    assert set(skipped.values()) == {reason}
    assert list(skips(now, before, ok={ONE.id, TESTS[1].id})) == [TESTS[1].id]
    assert skips(now, {}) == {}


def test_a_key_can_be_written_down(repo: Repo) -> None:
    key = repo.keys("HEAD")[ONE.id]
    assert Key.from_dict(key.to_dict()).hash == key.hash
    assert key.replace(at="elsewhere").hash == key.hash
    assert key.replace(parts={**key.parts, "model": "other"}).hash != key.hash


def test_an_audit_draws_the_same_ones_for_the_same_seed() -> None:
    ids = [f"test_{number}" for number in range(100)]
    drawn = audit(ids, 0.05, "r1")
    assert len(drawn) == 5
    assert drawn == audit(ids, 0.05, "r1") == sorted(audit(ids[::-1], 0.05, "r1"), key=ids.index)
    assert drawn != audit(ids, 0.05, "r2")


@pytest.mark.parametrize(("many", "share", "drawn"), [(10, 0.01, 1), (10, 0.0, 0), (0, 0.5, 0), (3, 1.0, 3)])
def test_an_audit_draws_at_least_one_of_any(many: int, share: float, drawn: int) -> None:
    assert len(audit([str(number) for number in range(many)], share, "r1")) == drawn


@pytest.mark.parametrize(
    ("text", "share"), [("5%", 0.05), ("0.05", 0.05), (" 100% ", 1.0), ("0", 0.0), ("2.5%", 0.025)]
)
def test_a_share_is_read(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["5", "101%", "-1%", "nan", "five", "", "%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no share"):
        parse_share(text)
