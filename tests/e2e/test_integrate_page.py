"""What docs/integrate.md shows is what happens: its project is made, and its commands are run one after the other in
one shell, as a reader would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mngr.cli.integrate import tell
from mngr.integrate.picking.read import IMPORTANCE
from mngr.swarm import words
from mngr.swarm.testing.kinds import KINDS
from tests.e2e.test_docs import ROOT, blocks, steady
from tests.home import Home, Mngr

PAGE = ROOT / "docs" / "integrate.md"
TEXT = PAGE.read_text()
NEXT = "\0"  # between the outputs of two commands
AND_SO_ON = "...\n"  # at the end of an output of which only the beginning is shown


def sessions() -> list[tuple[str, str]]:
    """All commands of the page with the outputs below them, in their order."""
    found = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in blocks(PAGE, "shellsession")]
    parts = [example.partition("\n") for examples in found for example in examples]
    return [(command, shown) for command, _, shown in parts]


def test_the_project_of_the_page_is_integrated_as_it_shows(home: Home, mngr: Mngr) -> None:
    home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    (setup,) = [block for block in blocks(PAGE, "sh") if "git init" in block]
    lines = [command.replace("~/.mngr", str(home.mngr_home)) for command, _ in sessions()]
    script = home.root / "session.sh"
    script.write_text(f"{setup}\n" + "\n".join(f"printf '\\0'\n{line}" for line in lines) + "\n")
    said = home.run("bash", "-c", f"bash {script} 2>{home.root}/told", check=False)
    told = (home.root / "told").read_text()
    before, *outputs = said.split(NEXT)
    assert before == "", told
    for (command, shown), output in zip(sessions(), outputs, strict=True):
        wanted, seen = comparable(shown.removesuffix(AND_SO_ON)), comparable(output)
        assert seen[: len(wanted)] == wanted, f"$ {command}\n{output}\n{told}"
        assert len(seen) == len(wanted) or shown.endswith(AND_SO_ON), f"$ {command}\n{output}"
    (place,) = (home.mngr_home / "integrations").iterdir()
    assert_the_page_names_what_is_in(place)


def comparable(output: str) -> list[str]:
    """Lines without what differs from run to run: paths and commits."""
    text = re.sub(r"\b([0-9a-f]{40}|[0-9a-f]{10}|[0-9a-f]{7})\b", "COMMIT", steady(output))
    return text.rstrip("\n").splitlines()


def assert_the_page_names_what_is_in(place: Path) -> None:
    section = TEXT.partition("## The directory")[2].partition("\n## ")[0]
    named = set(re.findall(r"^([a-z-]+(?:\.\w+)?)\b.*  ", section, re.MULTILINE))
    there = {path.name for path in place.iterdir()}
    assert there <= named, there - named
    assert {"report.json", "pull-request.md", "title", "patches", "receipt.txt", "rank", "resolutions"} <= there


def test_every_word_for_what_is_not_in_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    change = dict.fromkeys(("subject", "branch", "commit", "why", "outcome", "work_dir"), "something")
    places = ("left", "aside", "dropped", "there", "ignored", "passed")
    report: dict[str, Any] = {
        **{place: [change] for place in places},
        "passed": [change, {**change, "outcome": words.FIXED}],
        **{
            member: []
            for member in ("steps", "notes", "warnings", "still_red", "red_at_base", "red_below", "flaky", "removed")
        },
        **dict.fromkeys(("into", "base", "tip", "directory", "again", "stays", "rank_file"), ""),
        "verified": True,
        "tests": None,
        "counts": dict.fromkeys(places, 1),
    }
    assert tell(report) == 6
    printed = re.findall(r"^([a-z ]+) \(1\)$", capsys.readouterr().out, re.MULTILINE)
    table = TEXT.partition("| word |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE) == printed


def test_the_words_of_trailers_are_those_that_are_read() -> None:
    section = TEXT.partition("## Branches that no run has made")[2].partition("\n## ")[0]
    kinds, importance = re.findall(r"`Kind` is (.*), and `Importance` is (.*)\. Both", section, re.DOTALL)[0]
    assert re.findall(r"`(\w+)`", kinds) == list(KINDS)
    assert re.findall(r"`(\w+)`", importance) == list(reversed(IMPORTANCE))
