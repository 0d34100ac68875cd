"""What tutorial sync finds, how it is divided among agents, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.cli.tutorial_sync import verdict
from mngr.errors import MngrError
from mngr.tutorial.blocks import parse
from mngr.tutorial.check import Ledger, check
from mngr.tutorial.citations import Citation, Citations
from mngr.tutorial.errand import prompt
from mngr.tutorial.sync import SKILL, Place, Report, findings, prompt_for, split

TUTORIAL = """\
# One
# ========

tool first

tool second --with=this

# Two
# ========

tool third
"""
PLACE = Place(top="/top", file="tutorial.sh", tests=["tests/e2e", "more tests"])


def cited(*texts: str) -> Citations:
    names = [f"test_{number}" for number in range(len(texts))]
    file = "/top/tests/e2e/test_it.py"
    found = [
        Citation(file=file, line=10 + number, test=f"{file}::{name}", text=text)
        for number, (name, text) in enumerate(zip(names, texts, strict=True))
    ]
    return Citations(found=found, problems=[])


def ledger(*texts: str) -> Ledger:
    return check(parse(TUTORIAL, "tutorial.sh"), cited(*texts))


def test_findings_are_in_the_order_of_the_tutorial_and_each_block_is_there_once() -> None:
    found = findings(ledger("tool second --with=that", "unheard of, twice", "unheard of, twice"), PLACE)
    assert [(each.what, each.line, each.section) for each in found] == [
        ("uncited", 4, "One"),
        ("edited", 6, "One"),
        ("uncited", 11, "Two"),
        ("gone", 0, ""),
    ]
    assert found[1].cited == ["tests/e2e/test_it.py:10 test_0"]
    assert found[3].cited == ["tests/e2e/test_it.py:11 test_1", "tests/e2e/test_it.py:12 test_2"]


def test_two_stale_citations_of_one_block_are_one_finding() -> None:
    found = findings(ledger("tool second --with=that", "tool second --with=than", "tool first", "tool third"), PLACE)
    assert [(each.what, len(each.cited), len(each.stale)) for each in found] == [("edited", 2, 2)]


def test_what_is_in_step_has_no_findings() -> None:
    assert findings(ledger("tool first", "tool second --with=this", "  tool third  "), PLACE) == []


def test_tasks_are_blocks_or_sections() -> None:
    found = findings(ledger("unheard of"), PLACE)
    assert [len(task.findings) for task in split(found)] == [1, 1, 1, 1]
    assert [len(task.findings) for task in split(found, by_section=True)] == [2, 1, 1]
    assert [task.name for task in split(found)] == [f"sync-{each.id}" for each in found]


def test_a_prompt_has_everything_that_the_agent_needs(tmp_path: Path) -> None:
    for task in split(findings(ledger("tool second --with=that"), PLACE)):
        text = prompt_for(str(tmp_path), task, PLACE, "pytest -q")
        (finding,) = task.findings
        assert finding.text in text
        assert f"mngr/{task.name}" in text
        assert "`pytest -q`" in text
        assert "mngr tutorial check tutorial.sh tests/e2e 'more tests'" in text
        assert "e2e.write_tutorial_block" in text
        assert finding.diff in text


def test_the_rules_of_the_prompt_are_those_of_the_skill(tmp_path: Path) -> None:
    rules = Path(SKILL).read_text().partition("\n## Rules\n")[2]
    assert len(rules) > 1000
    (task,) = split(findings(ledger(), PLACE)[:1])
    assert rules.strip() in prompt_for(str(tmp_path), task, PLACE, "pytest")


def test_a_block_with_a_fence_and_dollars_is_told_as_it_is(tmp_path: Path) -> None:
    text = "cat <<EOF >$HOME/x\n```\n$name ${file} $$\n```\nEOF"
    (task,) = split(findings(check(parse(text), cited()), PLACE))
    assert f"``````sh\n{text}\n``````" in prompt_for(str(tmp_path), task, PLACE, "pytest")


def test_a_users_own_prompt_takes_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    own = tmp_path / "prompts" / "sync.md"
    own.write_text("Only $file, for 5 $$.\n\n")
    assert prompt(str(tmp_path), "sync", file="a.sh") == "Only a.sh, for 5 $.\n"
    own.write_text("What is $this?")
    with pytest.raises(MngrError, match=r"sync\.md: 'this'") as caught:
        prompt(str(tmp_path), "sync", file="a.sh")
    assert "$file" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"in_sync": True, "commits": 1}, "in sync"),
        ({"in_sync": True, "commits": 1, "tests": 0}, "in sync, its tests pass"),
        ({"left": ["a"], "commits": 1}, "1 of 2 blocks not in sync"),
        ({"left": ["a", "b"]}, "2 of 2 blocks not in sync, nothing committed"),
        ({"broken": ["c"], "commits": 1}, "in sync, but 1 other block lost its tests"),
        ({"broken": ["c", "d"], "commits": 1}, "in sync, but 2 other blocks lost their tests"),
        ({"tests": 1, "said": "1 failed", "commits": 1}, "its tests fail (1): 1 failed"),
        ({"tests": 1, "commits": 1}, "its tests fail (1)"),
    ],
)
def test_a_verdict_in_words(changes: dict[str, object], told: str) -> None:
    report = Report(name="a", branch="mngr/a", state="done", reason="", blocks=["a", "b"], in_sync=False)
    assert verdict(report.replace(**changes)) == told
