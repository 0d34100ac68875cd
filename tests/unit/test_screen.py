"""Screen rules: what is read from screens that real programs showed (tests/data/screens), and rules of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.agents import screen
from mngr.agents.screen import Rules, Screen
from mngr.errors import MngrError

SCREENS = Path(__file__).parents[1] / "data" / "screens"


def shown(name: str) -> str:
    return (SCREENS / f"{name}.txt").read_text()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    monkeypatch.setattr(screen, "_loaded", {})
    return tmp_path


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("idle", Screen(composer="")),
        ("busy", Screen(composer="", busy=True)),
        ("queued", Screen(composer="", busy=True)),
        ("retry", Screen(composer="", busy=True, retry="API error attempt 1/10")),
        ("limit", Screen(composer="", busy=True, retry="Session limit reached (12:46am) attempt 3/10")),
        ("taken-back", Screen(composer='FAULT: {"status":529,"times":9,"retry_after":30}')),
        ("permission", Screen(dialog="permission")),
        ("question", Screen(dialog="question")),
        ("trust", Screen(dialog="trust")),
        ("model", Screen(dialog="choice")),
    ],
)
def test_what_claude_shows(name: str, seen: Screen) -> None:
    assert screen.rules("claude.rules").read(shown(f"claude-{name}")) == seen


def test_nothing_is_seen_on_an_empty_screen() -> None:
    assert screen.rules("claude.rules").read("\n" * 50) == Screen()


def test_a_dialog_behind_the_composer_has_scrolled_by() -> None:
    rules = Rules("composer ^> (.*)$\ndialog sure Sure\\?\n", "here")
    assert rules.read("Sure?\n") == Screen(dialog="sure")
    assert rules.read("Sure?\n> draft\n") == Screen(composer="draft")


def test_of_several_composers_the_last_one_is_where_one_types() -> None:
    assert Rules("composer ^> (.*)$", "here").read("> said before\n> now\n").composer == "now"


def test_a_placeholder_is_nobodys_text() -> None:
    assert Rules("composer ^> (.*)$\nplaceholder ^Type here$", "here").read("> Type here\n").composer == ""


def test_ones_own_rules_come_first(home: Path) -> None:
    (home / "screen").mkdir()
    (home / "screen" / "claude.rules").write_text("# new looks\n\ncomposer ^% (.*)$\n")
    assert screen.rules("claude.rules").read("% hello\n").composer == "hello"


@pytest.mark.parametrize(
    ("text", "said"),
    [("\nbusy (", "here:2: "), ("composr x", "here:1: there is no rule 'composr'")],
)
def test_a_wrong_rule_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(MngrError) as refused:
        Rules(text, "here")
    assert refused.value.message.startswith(said)
