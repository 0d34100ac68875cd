"""Agent types of the configuration: what they make of their parent, and how one that leads nowhere is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mngr import config, plugin_index, registry
from mngr.agents import AgentType
from mngr.errors import UsageError

Configure = Callable[[str], Path]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Writes the user's file, and gives its path."""
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MNGR_HOME", str(home))
    monkeypatch.setattr(plugin_index, "_loaded", {})
    monkeypatch.chdir(home)

    def write(text: str) -> Path:
        (home / "config.toml").write_text(text)
        config.forget(overrides=True)
        return home / "config.toml"

    yield write
    config.forget(overrides=True)


def command(type: AgentType, *args: str) -> list[str]:
    """As create does it."""
    return type.command([*type.preset, *args])


def test_arguments_and_variables_come_before_those_of_the_call(configure: Configure) -> None:
    configure('[agent_types.gentle]\nparent = "command"\nargs = ["nice", "-n", "19"]\nenv = { CI = "1" }\n')
    gentle = registry.agent_type("gentle")
    assert gentle.name == "gentle"
    assert command(gentle, "make", "test") == ["nice", "-n", "19", "make", "test"]
    assert command(gentle) == ["nice", "-n", "19"]
    assert gentle.env == {"CI": "1"}


def test_a_variant_of_a_variant_has_what_both_have_and_its_own_variables_win(configure: Configure) -> None:
    configure("""
[agent_types.gentle]
parent = "command"
args = ["nice"]
env = { CI = "1", KEPT = "yes" }
[agent_types.gentler]
parent = "gentle"
args = ["-n", "19"]
env = { CI = "2" }
""")
    gentler = registry.agent_type("gentler")
    assert command(gentler, "make") == ["nice", "-n", "19", "make"]
    assert gentler.env == {"CI": "2", "KEPT": "yes"}


def test_a_parent_alone_makes_the_same_under_another_name(configure: Configure) -> None:
    configure('agent_types.same.parent = "command"')
    same = registry.agent_type("same")
    assert command(same, "a b") == registry.agent_type("command").command(["a b"])
    assert command(same) == registry.agent_type("command").command([])
    assert same.env == {}


def test_variants_are_known_types(configure: Configure) -> None:
    configure('[agent_types.b]\nparent = "command"\n[agent_types.a]\n')
    assert registry.agent_types() == ["command", "claude", "codex", "opencode", "replay", "a", "b"]


def test_each_layer_can_bring_one(configure: Configure) -> None:
    configure('agent_types.gentle.args = ["nice"]')
    config.override("agent_types.gentle.parent", "command")
    assert command(registry.agent_type("gentle"), "make") == ["nice", "make"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[agent_types.x]", "agent_types.x.parent is missing", "set agent_types.x.parent command"),
        ('agent_types.x.args = ["a"]', "agent_types.x.parent is missing", "set agent_types.x.parent command"),
        ('agent_types.x.parent = ""', "agent_types.x.parent is missing", "set agent_types.x.parent command"),
        (
            'agent_types.x.parent = "comand"',
            "agent_types.x.parent in {file} is 'comand', which is not an agent type",
            "did you mean command?",
        ),
        (
            'agent_types.x.parent = "gentel"\nagent_types.gentle.parent = "command"',
            "agent_types.x.parent in {file} is 'gentel', which is not an agent type",
            "did you mean gentle?",
        ),
        (
            'agent_types.x.parent = "far-away"',
            "agent_types.x.parent in {file} is 'far-away', which is not an agent type",
            "there is claude, codex, command, opencode",
        ),
        (
            'agent_types.x.parent = "xx"\nagent_types.xx.parent = "xxx"',
            "agent_types.xx.parent in {file} is 'xxx', which is not an agent type",
            "there is claude, codex, command, opencode",
        ),
        ('agent_types.x.parent = "x"', "agent_types.x.parent in {file} leads back to x", "something else"),
        (
            'agent_types.x.parent = "y"\nagent_types.y.parent = "z"\nagent_types.z.parent = "y"',
            "agent_types.z.parent in {file} leads back to y",
            "something else",
        ),
        (
            'agent_types.x.parent = "command"\nagent_types.command.args = ["nice"]',
            "agent_types.command has the name of an agent type that exists already",
            "choose another name",
        ),
    ],
)
def test_one_that_leads_nowhere_is_refused_when_it_is_used(
    configure: Configure, text: str, message: str, hint: str
) -> None:
    file = configure(text)
    with pytest.raises(UsageError) as refused:
        registry.agent_type("x")
    assert refused.value.message == message.format(file=file)
    assert hint in (refused.value.hint or "")


def test_a_broken_one_is_in_nobodys_way(configure: Configure) -> None:
    configure('agent_types.x.parent = "x"')
    assert registry.agent_types() == ["command", "claude", "codex", "opencode", "replay", "x"]
    assert registry.agent_type("command").name == "command"


def test_an_unknown_type_suggests_a_variant(configure: Configure) -> None:
    configure('agent_types.gentle.parent = "command"')
    with pytest.raises(UsageError) as refused:
        registry.agent_type("gentel")
    assert (refused.value.message, refused.value.hint) == ("there is no agent type 'gentel'", "did you mean gentle?")
    with pytest.raises(UsageError) as refused:
        registry.agent_type("far-away")
    assert (
        refused.value.hint == "there is claude, codex, command, gentle, opencode, replay; "
        "a program goes behind --: mngr create NAME command -- far-away"
    )
