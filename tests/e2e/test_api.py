"""The Python API, as docs/api.md shows it."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from pathlib import Path

import pytest

import mngr as api
from tests.agents import branches, commit
from tests.home import Home, Mngr

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
CHAPTERS = {"one.txt": "It was a dark night.\n", "two.txt": "A shot!\n", "three.txt": "The end.\n"}


@pytest.fixture
def book(home: Home, repo: Path) -> Path:
    for name, text in CHAPTERS.items():
        (repo / name).write_text(text)
    commit(home, repo, "Write a book")
    return repo


def python(home: Home, script: str) -> str:
    """What a script that imports mngr prints, in this home."""
    return home.run(sys.executable, "-c", script)


def test_the_map_reduce_of_the_page_counts_words(home: Home, mngr: Mngr, book: Path) -> None:
    assert python(home, map_reduce()) == "9 words in 3 chapters\nfailed: none\n"
    assert mngr.json("list") == []
    assert branches(home) == ["main"]
    assert (book / "results" / "one.txt").read_text().strip() == "5"


def test_the_map_reduce_of_the_page_tells_what_failed(home: Home, mngr: Mngr, book: Path) -> None:
    home.run("git", "rm", "-q", "two.txt")
    home.run("git", "commit", "-q", "-m", "Cut a chapter")
    assert python(home, map_reduce()) == "7 words in 2 chapters\nfailed: count-2\n"
    assert mngr.json("list") == []


def map_reduce() -> str:
    return PAGE.split("```python\n")[1].split("```")[0]


def test_the_page_names_everything_that_is_public_with_its_parameters() -> None:
    rows = [line.split("|")[1].strip().strip("`") for line in PAGE.splitlines() if line.startswith("| `")]
    documented = {name.partition("(")[0]: name.partition("(")[2].rstrip(")") for name in rows}
    assert set(documented) == set(api.__all__)
    for name, told in documented.items():
        thing = getattr(api, name)
        parameters = list(getattr(thing, "FIELDS", None) or inspect.signature(thing).parameters)
        if told.endswith(", ..."):
            assert set(told.split(", ")[:-1]) <= set(parameters), name
        elif name != "MngrError":
            assert told.split(", ") == parameters or not (told or parameters), name


def test_no_public_name_is_that_of_a_module() -> None:
    """The import of such a module would take the place of the function."""
    modules = {module.name for module in pkgutil.iter_modules(api.__path__)}
    assert not modules & set(api.__all__)


@pytest.mark.parametrize("text", ["a b", 'it\'s "quoted" $HOME `id`', "two\nlines\n", "", "-n", "ü"])
def test_an_input_reaches_its_agent_as_it_is(home: Home, repo: Path, text: str) -> None:
    script = f"""
import mngr
fleet = mngr.Fleet()
request = mngr.Request(address="a", inputs=["first", {text!r}], args=['printf %s "$MNGR_INPUT" >got'])
agents = mngr.create(fleet, request)
mngr.wait(fleet, agents, ["done"], timeout=30)
print([open(agent.work_dir + "/got").read() for agent in agents])
"""
    assert python(home, script) == f"{['first', text]}\n"


def test_no_inputs_make_no_agents(home: Home, mngr: Mngr, repo: Path) -> None:
    assert python(home, "import mngr; print(mngr.create(mngr.Fleet(), mngr.Request(address='a', inputs=[])))") == "[]\n"
    assert mngr.json("list") == []


def test_an_agent_of_a_script_finds_mngr(home: Home, repo: Path) -> None:
    """Also when the PATH of the script has none: beside the interpreter, and never in a directory that happens to be
    the script's."""
    home.env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    script = """
import mngr
fleet = mngr.Fleet()
agents = mngr.create(fleet, mngr.Request(args=["mngr list --names >got; echo $PATH >>got"]))
mngr.wait(fleet, agents, ["done"], timeout=30)
print(agents[0].name)
print(open(agents[0].work_dir + "/got").read(), end="")
"""
    name, listed, path = python(home, script).splitlines()
    assert listed == name
    assert path.split(":")[-1] == str(Path(sys.executable).parent)
    assert str(repo) not in path
