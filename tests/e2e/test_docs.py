"""What the documents show is what happens: their examples are run, their commands parsed, their links followed."""

from __future__ import annotations

import itertools
import re
import shlex
import time
from pathlib import Path

import pytest

from mngr import registry
from mngr.builtin import mngr_commands
from mngr.grammar import parse
from tests.home import Home, Mngr

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests" / "README.md", ROOT / "bench" / "README.md"]
)

# What differs from run to run, and what it is replaced with before two outputs are compared.
VARIES = (
    (r"/[\w./-]+/[\w.-]+", "PATH"),
    (r"\b([0-9a-f]{10}|[0-9a-f]{12})\b", "ID"),
    (r"(?m)^[0-9a-f]{7} ", "COMMIT "),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+[smhd]\b", "AGE"),
    (r" +(?m:$)", ""),
    (r"  +", "  "),
)
# Until the picture is as shown: a program needs a moment to get there, and asking changes nothing.
LOOKS = ("mngr list", "mngr capture")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def examples(page: Path) -> list[tuple[str, str]]:
    """The commands of the page's console blocks, in their order, each with the output shown below it."""
    found = []
    for block in blocks(page, "console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = example.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=lambda page: page.name)
def test_the_examples_print_what_the_page_shows(home: Home, mngr: Mngr, repo: Path, page: Path) -> None:
    for command, shown in examples(page):
        said = run(home, command)
        deadline = time.monotonic() + 10
        while command.startswith(LOOKS) and steady(said) != steady(shown) and time.monotonic() < deadline:
            said = run(home, command)
        assert steady(said) == steady(shown), f"$ {command}\n{said}"


def run(home: Home, command: str) -> str:
    return home.run("sh", "-c", f"exec 2>&1 </dev/null; {command}", check=False)


def steady(output: str) -> str:
    for pattern, name in VARIES:
        output = re.sub(pattern, name, output)
    return output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_such_that_mngr_takes_them(page: Path) -> None:
    verbs = {name.partition(" ")[0] for name in registry.own_commands()}
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    for line in lines + [command for command, _ in examples(page)]:
        if line.startswith("mngr ") and words(line)[1] in verbs:
            command, rest = registry.find_command(words(line)[1:])
            parse(command, rest)
    for verb in re.findall(r"`mngr ([a-z]+)[^`]*`", page.read_text()):  # running text may stop at the verb
        assert verb in verbs or f'"{verb}": "' in page.read_text(), f"{verb} is neither ours nor the page's own"


def words(line: str) -> list[str]:
    """Of the first command of a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>()"), lexer))


def test_the_readme_names_every_verb() -> None:
    table = (ROOT / "README.md").read_text().partition("## Verbs")[2].partition("\n\n`mngr help")[0]
    verbs = {command.name for command in registry.own_commands().values() if not command.hidden}
    assert set(re.findall(r"`([^`]+)`", table)) == verbs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_index_of_the_documents_is_complete() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", index))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_the_map_of_the_house_names_every_file_and_none_that_is_gone() -> None:
    """But for those of the verbs, which are called like them."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    sources = [path for kind in ("*.py", "*.sh") for path in (ROOT / "src" / "mngr").rglob(kind)]
    verbs = {f"{name.partition(' ')[0]}.py" for name in mngr_commands()}
    named = re.findall(r"`([\w/]+\.(?:py|sh))`", page)
    missing = {path.name for path in sources} - {Path(name).name for name in named} - verbs
    assert missing <= {"__init__.py", "__main__.py", "version.py"}
    there = [*map(str, sources), *map(str, ROOT.glob("tests/*/*.py"))]
    for name in named:
        assert any(path.endswith(f"/{name}") for path in there), name
