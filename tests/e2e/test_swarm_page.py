"""What docs/swarm.md and the README show of the swarm is what happens."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from pathlib import Path

import pytest

from mngr import swarm
from mngr.swarm.begin import begin
from mngr.swarm.settings import SETTINGS, defaults
from mngr.swarm.words import ENDINGS
from tests.agents import commit
from tests.e2e.test_docs import ROOT, blocks, run, steady
from tests.home import Home, Mngr

PAGE = ROOT / "docs" / "swarm.md"
TEXT = PAGE.read_text()


@pytest.fixture
def pages(home: Home, repo: Path) -> Path:
    """A repository with three pages: two of them have blanks at the ends of lines."""
    (repo / "tidy.py").write_text(blocks(PAGE, "python")[0])
    (repo / "docs").mkdir()
    (repo / "docs" / "guide.md").write_text("One  \ntwo\nthree \n")
    (repo / "docs" / "a map.md").write_text("Here. \n")
    commit(home, repo, "Pages")
    return repo


def test_the_pipeline_of_the_page_tidies_every_page(home: Home, mngr: Mngr, pages: Path) -> None:
    said = home.run(sys.executable, "tidy.py")
    assert sorted(said.splitlines()) == [
        "3 lines mended",
        "README.md: unchanged",
        "docs/a map.md: improved",
        "docs/guide.md: improved",
    ]
    assert (pages / "docs" / "guide.md").read_text() == "One\ntwo\nthree\n"
    assert (pages / "docs" / "a map.md").read_text() == "Here.\n"
    assert mngr.json("list") == []
    resumed = mngr.ok("swarm", "resume", env={"PYTHONPATH": str(pages)})
    assert "r1: done, 2 improved, 1 unchanged" in resumed


def test_the_pipeline_of_the_page_trusts_no_claim(home: Home, mngr: Mngr, pages: Path) -> None:
    script = pages / "tidy.py"
    script.write_text(script.read_text().replace("sed 's/ *$//'", "sed 's/^/ /'"))
    said = home.run(sys.executable, "tidy.py")
    assert "docs/guide.md: failed the check says {'left': 2}\n" in said
    assert said.endswith("0 lines mended\n")
    assert (pages / "docs" / "guide.md").read_text() == "One  \ntwo\nthree \n"


def test_the_names_of_the_page_are_those_that_are_public_with_their_parameters() -> None:
    rows = dict(re.findall(r"^\| `(\w+)(?:\(([^`]*)\))?` \|", TEXT.partition("## Your own pipeline")[2], re.MULTILINE))
    assert set(rows) == set(swarm.__all__)
    for name, told in rows.items():
        thing = getattr(swarm, name)
        if name == "run":
            own = [each for each in inspect.signature(thing).parameters if each != "options"]
            options = [
                each.name for each in inspect.signature(begin).parameters.values() if each.kind is each.KEYWORD_ONLY
            ]
            assert told.split(", ") == own + options
        elif name != "Recipe":
            assert told.split(", ") == list(getattr(thing, "FIELDS", None) or inspect.signature(thing).parameters), name


def test_the_page_has_every_ending_and_every_setting() -> None:
    endings = TEXT.partition("## Endings")[2].partition("##")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", endings, re.MULTILINE)) == set(ENDINGS)
    table = TEXT.partition("| setting |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    assert {name for names, _ in rows for name in re.findall(r"`([^`]+)`", names)} == {each.name for each in SETTINGS}
    read = {each.name: each.read for each in SETTINGS}
    for names, values in rows:
        for name, value in zip(re.findall(r"`([^`]+)`", names), values.strip(" `").split(", "), strict=False):
            assert defaults()[name] == (None if value == "none" else read[name](value)), name


def test_the_run_of_the_readme_is_what_it_prints(home: Home, mngr: Mngr) -> None:
    """With scripts in the agents' place, as it says."""
    shutil.copytree(ROOT / "demo" / "sample", home.root / "shelf")
    shutil.copyfile(ROOT / "demo" / "prices.toml", home.mngr_home / "prices.toml")
    home.cwd = home.root / "shelf"
    home.run("git", "init", "-q")
    commit(home, home.cwd, "First commit")
    home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    section = (ROOT / "README.md").read_text().partition("## The swarm")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```text\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = example.partition("\n")
        replayed = command.replace("--type claude", f"--type replay --max-load 99 --agent-arg {ROOT}/demo/trajectories")
        assert lines(run(home, replayed)) == lines(shown), command


def lines(output: str) -> list[str]:
    """In any order: agents do not wait for each other. Without what is told on the way of the integration."""
    shown = [line for line in steady(output).splitlines() if line and not line.startswith("mngr: ")]
    return sorted(re.sub(r"^\[\d", "[N", line) for line in shown)
