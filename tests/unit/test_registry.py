"""Verbs by their words, and plugins by their entry points: installed here by hand, as a module and its dist-info."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mngr import builtin, plugin_index, registry, swarm
from mngr.errors import MngrError, UsageError
from mngr.hosts.place import Place
from mngr.model import Agent
from mngr.plugin_index import Plugin

Install = Callable[[str, str], Path]


def make_agent() -> Agent:
    return Agent(
        id="0", name="foo", type="command", host="local", command=["x"], work_dir="/w", mode="none", created=0.0
    )


@pytest.fixture(autouse=True)
def mngr_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(plugin_index, "_loaded", {})
    return (tmp_path / "home").resolve()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    site = tmp_path / "site"
    site.mkdir()
    # Without what others change while we look: the checkout, in which they leave what they print.
    monkeypatch.setattr(sys, "path", [path for path in sys.path if os.path.realpath(path) != os.getcwd()])
    monkeypatch.syspath_prepend(site)

    def install(name: str, source: str) -> Path:
        # Each test has modules of its own: a process imports a name only once.
        module = f"{name}_{os.urandom(4).hex()}"
        path = site / f"{module}.py"
        path.write_text(source.replace("SELF", module))
        info = site / f"mngr_{name}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mngr-{name}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[mngr]\n{name} = {module}\n")
        return path

    return install


def scanned(name: str) -> Plugin:
    """As a new process would see it."""
    plugin_index._loaded.clear()
    return next(plugin for plugin in registry.plugins() if plugin.name == name)


# Verbs.


def test_a_verb_takes_the_words_after_it() -> None:
    command, rest = registry.find_command(["help", "create", "--json"])
    assert (command.name, rest) == ("help", ["create", "--json"])


def test_a_verb_of_two_words_is_found_before_its_first_word() -> None:
    command, rest = registry.find_command(["plugin", "list", "--json"])
    assert (command.name, rest) == ("plugin list", ["--json"])


def test_the_first_of_two_words_alone_lists_what_can_follow() -> None:
    with pytest.raises(UsageError, match="snapshot needs one more word: create, destroy, list, restore"):
        registry.find_command(["snapshot"])


def test_a_wrong_second_word_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="snapshot has no verb 'creat'") as caught:
        registry.find_command(["snapshot", "creat"])
    assert caught.value.hint == "did you mean snapshot create?"


def test_help_for_the_first_of_two_words_is_help_about_all_of_them() -> None:
    command, rest = registry.find_command(["plugin", "--help"])
    assert (command.name, rest) == ("help", ["plugin"])


def test_an_unknown_verb_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no verb 'plugn'") as caught:
        registry.find_command(["plugn"])
    assert caught.value.hint == "did you mean plugin? see mngr help"


def test_an_unknown_verb_like_no_other_points_to_help() -> None:
    with pytest.raises(UsageError) as caught:
        registry.find_command(["xyzzy"])
    assert caught.value.hint == "see mngr help"


def test_a_built_in_verb_needs_no_plugin_index(mngr_home: Path) -> None:
    registry.find_command(["help"])
    assert not mngr_home.exists()


def test_every_verb_of_ours_answers_to_its_name_and_its_aliases() -> None:
    own = registry.own_commands()
    for name, command in own.items():
        parent = name.rpartition(" ")[0]
        for answer in (name, *(f"{parent} {alias}".strip() for alias in command.aliases)):
            assert registry.find_command(answer.split()) == (command, [])
    declared = {alias for command in own.values() for alias in command.aliases}
    registered = {*builtin.mngr_commands(), *swarm.mngr_commands()} - set(own)
    assert {name.split()[-1] for name in registered} == declared


def test_built_in_agent_type_and_provider_are_found() -> None:
    assert registry.agent_types() == ["command", "claude", "codex", "opencode", "replay"]
    assert registry.agent_type("command").name == "command"
    assert registry.providers() == list(builtin.mngr_providers())
    assert registry.provider("local").reach(Place(name="local")).name == "local"


def test_an_unknown_agent_type_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no agent type 'comand'") as caught:
        registry.agent_type("comand")
    assert caught.value.hint == "did you mean command?"


# Plugins.

GOOD = """
from mngr.agents import AgentType
from mngr.grammar import command

@command("hello", summary="say hello", usage=["hello"])
def hello(args):
    return 0

class Shout(AgentType):
    name = "shout"
    summary = "loud"
    def command(self, args):
        return ["echo", *args]

class Cellar:
    name = "cellar"
    def reach(self, place):
        raise NotImplementedError

SHOUT = Shout()

def mngr_commands():
    return {"hello": "SELF:hello", "hi": "SELF:hello", "snapshot hello": "SELF:hello"}

def mngr_agent_types():
    return {"shout": "SELF:SHOUT"}

def mngr_providers():
    return {"cellar": "SELF:Cellar"}
"""


def test_a_plugin_adds_verbs_agent_types_and_providers(install: Install) -> None:
    install("good", GOOD)
    assert registry.find_command(["hello", "x"])[1] == ["x"]
    assert registry.find_command(["hi"])[0].name == "hello"
    assert registry.find_command(["snapshot", "hello"])[0].name == "hello"
    assert registry.agent_types() == ["command", "claude", "codex", "opencode", "replay", "shout"]
    assert registry.agent_type("shout").command(["a"]) == ["echo", "a"]
    assert registry.providers() == [*builtin.mngr_providers(), "cellar"]
    assert registry.provider("cellar").name == "cellar"
    plugin = scanned("good")
    assert (plugin.version, plugin.distribution, plugin.problems) == ("1.5", "mngr-good", [])


def test_a_verb_of_a_plugin_is_among_all_commands_under_its_own_name(install: Install) -> None:
    install("good", GOOD)
    assert set(registry.commands()) - set(registry.own_commands()) == {"hello"}


def test_the_swarm_is_a_plugin_like_any_other_and_its_verbs_are_ours() -> None:
    plugin = scanned("swarm")
    assert (plugin.distribution, plugin.problems) == ("mngr", [])
    assert set(plugin.commands) <= set(registry.own_commands())
    assert not set(plugin.commands) & set(builtin.mngr_commands())


EAR = """
from pathlib import Path

def mngr_lifecycle(event, agent):
    Path(HEARD).write_text(f"{event} {agent.name}")
"""


def test_a_listener_is_told_what_happened_to_which_agent(install: Install, tmp_path: Path) -> None:
    install("ear", EAR.replace("HEARD", repr(str(tmp_path / "heard"))))
    registry.notify("created", make_agent())
    assert (tmp_path / "heard").read_text() == "created foo"


def test_a_failing_listener_is_told_and_the_next_one_is_called(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("a_bad", "def mngr_lifecycle(event):\n    raise ValueError('deaf')")
    install("b_good", EAR.replace("HEARD", repr(str(tmp_path / "heard"))))
    registry.notify("stopped", make_agent())
    assert (tmp_path / "heard").read_text() == "stopped foo"
    assert capsys.readouterr().err == "mngr: plugin a_bad failed when told that foo was stopped: ValueError: deaf\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("def mngr_commands():\n    return ['x']", "mngr_commands gave list, not a dict of names and references"),
        ("def mngr_commands():\n    raise ValueError('no')", "mngr_commands failed: ValueError: no"),
        ("def mngr_commands():\n    return {'list': 'a:b'}", "verb 'list' clashes with 'list' of plugin builtin"),
        ("def mngr_commands():\n    return {'ls': 'a:b'}", "verb 'ls' clashes with 'ls' of plugin builtin"),
        ("def mngr_commands():\n    return {'list me': 'a:b'}", "verb 'list me' clashes with 'list' of plugin builtin"),
        (
            "def mngr_commands():\n    return {'config': 'a:b'}",
            "verb 'config' clashes with 'config get' of plugin builtin",
        ),
        ("def mngr_commands():\n    return {'a': 'a:b', 'a b': 'a:b'}", "verb 'a b' clashes with 'a' of plugin itself"),
        ("def mngr_commands():\n    return {'-x': 'a:b'}", "verb '-x' is not a valid name"),
        ("def mngr_agent_types():\n    return {'a b': 'a:b'}", "agent type 'a b' is not a valid name"),
        ("def mngr_providers():\n    return {'x': len}", "which is not module:attribute"),
        ("def mngr_providers():\n    return {'x': 'a.b'}", "which is not module:attribute"),
        ("def mngr_lifecycle(event, agnet):\n    pass", "agnet"),
        ("def mngr_comands():\n    return {}", "mngr_comands"),
    ],
)
def test_a_broken_plugin_is_told_once_and_left_out(
    install: Install, capsys: pytest.CaptureFixture[str], source: str, problem: str
) -> None:
    install("bad", source)
    assert problem in scanned("bad").problems[0]
    said = capsys.readouterr().err
    assert said.startswith("mngr: plugin bad: ")
    assert said.count("\n") == 1
    scanned("bad")
    assert capsys.readouterr().err == ""
    assert registry.find_command(["plugin", "list"])[0].name == "plugin list"


def test_what_a_plugin_refers_to_is_checked_for_the_list_of_plugins(install: Install) -> None:
    install("gone", "def mngr_agent_types():\n    return {'x': 'no_such_module:X', 'y': 'SELF:mngr_agent_types'}")
    plugin = scanned("gone")
    assert plugin.problems == []
    first, second = registry.problems(plugin)
    assert first == "agent type 'x' cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"
    assert second.startswith("agent type 'y' cannot be used: ")
    with pytest.raises(MngrError, match="agent type 'x' cannot be loaded"):
        registry.agent_type("x")


def test_two_plugins_with_one_name_for_a_verb_the_first_has_it(install: Install) -> None:
    install("aa", "def mngr_commands():\n    return {'v': 'one:x'}")
    install("bb", "def mngr_commands():\n    return {'v': 'two:x'}")
    assert scanned("aa").commands == {"v": "one:x"}
    assert scanned("bb").commands == {}
    assert scanned("bb").problems == ["verb 'v' clashes with 'v' of plugin aa"]


# The cache.


def edit_cache(home: Path, version: str) -> None:
    path = home / "cache" / "plugins.json"
    kept = json.loads(path.read_text())
    next(plugin for plugin in kept["plugins"] if plugin["name"] == "good")["version"] = version
    path.write_text(json.dumps(kept))


def test_the_cache_is_used_while_nothing_changes(install: Install, mngr_home: Path) -> None:
    install("good", GOOD)
    assert scanned("good").version == "1.5"
    edit_cache(mngr_home, "from the cache")
    assert scanned("good").version == "from the cache"


def test_an_edited_plugin_is_asked_again(install: Install, mngr_home: Path) -> None:
    path = install("good", GOOD)
    scanned("good")
    edit_cache(mngr_home, "from the cache")
    os.utime(path, ns=(1, 1))
    assert scanned("good").version == "1.5"


def test_a_plugin_that_cannot_be_imported_is_asked_again_when_mended(install: Install) -> None:
    path = install("bad", "1 / 0")
    assert scanned("bad").problems
    path.write_text("def mngr_agent_types():\n    return {'t': 'a:b'}")
    assert scanned("bad").agent_types == {"t": "a:b"}


def test_an_installed_and_a_removed_plugin_are_noticed(install: Install) -> None:
    first = install("one", "")
    scanned("one")
    install("two", "")
    assert scanned("two").version == "1.5"
    shutil.rmtree(first.parent / "mngr_one-1.5.dist-info")
    plugin_index._loaded.clear()
    assert [plugin.name for plugin in registry.plugins()] == ["builtin", "swarm", "two"]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"environment": 1}', "\x00\xff"])
def test_a_damaged_cache_is_made_anew(install: Install, mngr_home: Path, damage: str) -> None:
    install("good", GOOD)
    scanned("good")
    cache = mngr_home / "cache" / "plugins.json"
    whole = cache.read_bytes()
    cache.write_bytes(damage.encode("latin-1"))
    assert scanned("good").version == "1.5"
    assert cache.read_bytes() == whole
    assert os.listdir(cache.parent) == ["plugins.json"]


def test_damage_inside_a_record_of_the_cache_is_seen(install: Install, mngr_home: Path) -> None:
    install("good", GOOD)
    scanned("good")
    edit_cache(mngr_home, 15)  # type: ignore[arg-type]
    assert scanned("good").version == "1.5"


def test_a_home_that_cannot_be_written_is_no_obstacle(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install("good", GOOD)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "file" / "home"))
    assert registry.agent_types() == ["command", "claude", "codex", "opencode", "replay", "shout"]
    assert capsys.readouterr() == ("", "")


def test_with_a_cache_nothing_slow_is_imported(mngr_home: Path) -> None:
    code = "import sys; from mngr.registry import agent_types; agent_types(); print(*sys.modules)"
    argv = [sys.executable, "-c", code]
    first, second = (
        set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()) for _ in range(2)
    )
    slow = {"pluggy", "importlib.metadata", "inspect", "typing"}
    assert slow <= first
    assert second & slow == set()
