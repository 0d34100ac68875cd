"""The layers of the configuration, what is refused and how that is told, and what loading it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr import config
from mngr.config_keys import KEYS
from mngr.config_values import KINDS, as_toml
from mngr.errors import MngrError, UsageError
from mngr.home import home_path

DOCS = Path(__file__).parents[2] / "docs" / "config.md"


class World:
    """A user with a home, a project in a repository, and no variables."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.top = root / "project"
        self.user_file = root / "m" / "config.toml"
        self.project_file = self.top / ".mngr.toml"
        (self.top / ".git").mkdir(parents=True)
        self.user_file.parent.mkdir()
        for name in [name for name in os.environ if name.upper().startswith("MNGR_")]:
            patch.delenv(name)
        patch.setenv("HOME", str(root))
        patch.setenv("MNGR_HOME", str(self.user_file.parent))
        patch.chdir(self.top)
        config.forget(overrides=True)

    def load(self) -> config.Config:
        config.forget()
        return config.load()

    def refusal(self) -> MngrError:
        with pytest.raises(MngrError) as refused:
            self.load()
        return refused.value


@contextmanager
def new_world() -> Iterator[World]:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        yield World(Path(root).resolve(), patch)
    config.forget(overrides=True)


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as world:
        yield world


# Layers.


def test_without_any_layer_there_are_the_defaults(world: World) -> None:
    loaded = world.load()
    assert loaded.number("stop_grace") == 5
    assert loaded.origin("stop_grace") == "default"
    assert loaded.text("type") is None
    assert loaded.origin("type") == "unset"
    assert loaded.strings("copy") == []
    assert loaded.command("create") == {}
    assert loaded.get("setup", "make") == "make"
    assert loaded.keys() == []


def test_each_layer_wins_over_the_one_below_it(world: World) -> None:
    world.user_file.write_text('type = "user"')
    assert world.load().text("type") == "user"
    assert world.load().origin("type") == str(world.user_file)
    world.project_file.write_text('type = "project"')
    assert world.load().text("type") == "project"
    assert world.load().origin("type") == str(world.project_file)
    world.patch.setenv("MNGR_CONFIG_TYPE", "variable")
    assert world.load().text("type") == "variable"
    assert world.load().origin("type") == "MNGR_CONFIG_TYPE"
    config.override("type", "flag")
    assert world.load().text("type") == "flag"
    assert world.load().origin("type") == "-S"


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20)
LISTS = st.lists(TEXTS, max_size=3)


@settings(max_examples=40)
@given(user=st.none() | LISTS, project=st.none() | LISTS, variable=st.none() | LISTS, flag=st.none() | LISTS)
def test_the_highest_layer_gives_the_whole_list(
    user: list[str] | None, project: list[str] | None, variable: list[str] | None, flag: list[str] | None
) -> None:
    with new_world() as world:
        for path, items in ((world.user_file, user), (world.project_file, project)):
            if items is not None:
                path.write_text(f"stop_grace = 1\ncopy = {as_toml(items)}\n", newline="")
        if variable is not None:
            world.patch.setenv("MNGR_CONFIG_COPY", as_toml(variable))
        if flag is not None:
            config.override("copy", as_toml(flag))
        highest = next((items for items in (flag, variable, project, user) if items is not None), [])
        assert world.load().strings("copy") == highest


def test_keys_of_different_layers_stand_side_by_side(world: World) -> None:
    world.user_file.write_text('[agent_types.fast]\nparent = "claude"\nargs = ["-v"]\n')
    world.project_file.write_text('[agent_types.fast]\nargs = ["-q"]\n')
    world.patch.setenv("MNGR_CONFIG_AGENT_TYPES__SLOW__PARENT", "codex")
    loaded = world.load()
    fast = {"parent": "claude", "args": ["-q"]}
    assert loaded.table("agent_types") == {"fast": fast, "slow": {"parent": "codex"}}
    assert loaded.get("agent_types.fast") == fast
    assert loaded.get("agent_types.slow.parent") == "codex"


def test_an_agent_type_with_nothing_in_it_is_there_and_sets_nothing(world: World) -> None:
    world.user_file.write_text('[agent_types.fast]\nparent = "claude"\n')
    world.project_file.write_text("[agent_types.fast]\n[agent_types.slow]\n")
    assert world.load().table("agent_types") == {"fast": {"parent": "claude"}, "slow": {}}
    assert world.load().keys() == ["agent_types.fast.parent"]
    assert world.load().get("agent_types.slow") is None


def test_a_template_and_an_environment_are_replaced_as_a_whole(world: World) -> None:
    world.user_file.write_text('[templates.t]\ntype = "a"\ndirty = true\n[agent_types.x.env]\nA = "1"\nB = "2"\n')
    world.project_file.write_text('[templates.t]\nargs = ["-v"]\n[agent_types.x.env]\nA = "3"\n')
    assert world.load().template("t") == {"args": ["-v"]}
    assert world.load().get("agent_types.x.env") == {"A": "3"}


# Where the project's file is.


def test_the_nearest_project_file_is_taken_from_below(world: World) -> None:
    world.project_file.write_text('type = "top"')
    below = world.top / "a" / "b"
    below.mkdir(parents=True)
    assert config.load(str(below)).text("type") == "top"
    (world.top / "a" / ".mngr.toml").write_text('type = "nearer"')
    config.forget()
    assert config.load(str(below)).text("type") == "nearer"


def test_the_search_ends_at_the_top_of_the_repository(world: World) -> None:
    (world.top.parent / ".mngr.toml").write_text('type = "outside"')
    assert world.load().text("type") is None
    assert config.project_file() == str(world.project_file)


def test_the_search_ends_at_the_home_directory(world: World) -> None:
    home = world.top / "home"
    inside = home / "sub"
    inside.mkdir(parents=True)
    world.project_file.write_text('type = "outside"')
    world.patch.setenv("HOME", str(home))
    world.patch.chdir(inside)
    assert world.load().text("type") is None
    assert config.project_file() == str(inside / ".mngr.toml")
    (home / ".mngr.toml").write_text('type = "home"')
    assert world.load().text("type") == "home"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else")
def test_a_strangers_file_in_a_directory_open_to_all_is_passed_over(world: World) -> None:
    shared = world.top / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    world.patch.setenv("HOME", str(shared))
    world.patch.chdir(shared)
    planted = shared / ".mngr.toml"
    planted.write_text('setup = "evil"')
    assert world.load().text("setup") == "evil"
    os.chown(planted, 12345, 12345)
    assert world.load().text("setup") is None
    with pytest.raises(MngrError, match="belongs to somebody else"):
        config.project_file()


@pytest.mark.parametrize(
    "text",
    [
        '[commands.create]\nwith = ["image=x", "mount=/:/all"]',
        '[commands.create]\nwith = ["run=--privileged"]',
        '[commands.create]\nwith = "network=host"',
        '[commands.host_add]\nwith = ["target=elsewhere"]',
        '[templates.big]\nwith = ["memory=2g", "mount=~:/home"]',
        '[templates]\nbig = { with = [" mount=~:/home"] }',
    ],
)
def test_a_project_does_not_say_by_a_default_either_what_a_host_may_see(world: World, text: str) -> None:
    world.project_file.write_text(text)
    refused = world.refusal()
    assert f"{world.project_file}:2 has " in refused.message
    assert "which is yours to say, not a project's" in refused.message
    world.project_file.unlink()
    if '"network' not in text:
        world.user_file.write_text(text)
        world.load()


def test_a_project_says_what_the_hosts_of_its_agents_are_like(world: World) -> None:
    world.project_file.write_text(
        '[commands.create]\nwith = ["image=x", "memory=2g"]\n[templates.a]\nwith = ["cpus=1"]\n'
    )
    assert world.load().command("create") == {"with": ["image=x", "memory=2g"]}
    assert world.load().template("a") == {"with": ["cpus=1"]}


def test_a_vanished_current_directory_leaves_the_other_layers(world: World) -> None:
    world.user_file.write_text('type = "user"')
    gone = world.top / "gone"
    gone.mkdir()
    world.patch.chdir(gone)
    gone.rmdir()
    assert world.load().text("type") == "user"
    with pytest.raises(MngrError, match="no longer exists"):
        config.project_file()
    world.patch.setenv("MNGR_HOME", "relative")
    assert "MNGR_HOME=relative leads nowhere" in world.refusal().message


def test_home_is_a_real_absolute_path(world: World) -> None:
    (world.top / "link").symlink_to(world.user_file.parent)
    world.patch.setenv("MNGR_HOME", "link")
    assert home_path() == str(world.user_file.parent)
    world.patch.setenv("MNGR_HOME", "")
    assert home_path() == str(world.top.parent / ".mngr")


# What is refused, and how.


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('\n# hi\ntpye = "x"', "tpye in {file}:3 is not a key", "did you mean type?"),
        ('a = """\nx\n"""\nsetup = "x"\nzzz = """\n"""\n', "a in {file}:1 is not a key", "mngr config list --all"),
        ('setup = """\nx\n"""\nzzz = [\n1]\n', "zzz in {file}:4 is not a key", "mngr config list --all"),
        (
            "[agent_types.x]\n\nparnet = 1",
            "agent_types.x.parnet in {file}:3 is not a key",
            "did you mean agent_types.x.parent?",
        ),
        ("[agent_type.x]", "agent_type in {file}:1 is not a key", "did you mean agent_types?"),
        ("[templates.Big]", "templates.Big in {file}:1 has an invalid name, 'Big'", "lower-case"),
        ("copy = 3", "copy in {file}:1 must be a list of texts", ""),
        ('copy = ["a", 3]', "copy in {file}:1 must be a list of texts", ""),
        ("type = true", "type in {file}:1 must be a text", ""),
        ('setup = "a\\u0000b"', "setup in {file}:1 must be a text", ""),
        ('stop_grace = "5"', "stop_grace in {file}:1 must be a number from 0 to 1e9", ""),
        ("stop_grace = nan", "stop_grace in {file}:1 must be a number from 0 to 1e9", ""),
        ("stop_grace = -1", "stop_grace in {file}:1 must be a number from 0 to 1e9", ""),
        ("stop_grace = true", "stop_grace in {file}:1 must be a number from 0 to 1e9", ""),
        ("commands = 1", "commands in {file}:1 must be a table", ""),
        ("[commands]\ncreate = 1", "commands.create in {file}:2 must be a table", ""),
        ("[commands.craete]\nmode = 1", "commands.craete in {file}:1 is not a verb", "did you mean create?"),
        ("[commands.ls]\ngit = true", "commands.ls in {file}:1 is not a verb", "did you mean commands.list?"),
        ("templates.x = 1", "templates.x in {file}:1 must be a table of options of create", ""),
        ("agent_types.x.env = { A = 1 }", "agent_types.x.env in {file}:1 must be a table of texts", "environment"),
        ('agent_types.x.env = { "A=B" = "1" }', "agent_types.x.env in {file}:1 must be a table of texts", ""),
        ('[agent_types.x.env]\nMNGR_A = "1"', "agent_types.x.env.MNGR_A in {file}:2 belongs to mngr itself", ""),
        ('"type.x" = 1', "type.x in {file} is not a key", "--all"),
        ('"\\u001b[2J" = 1', "'\\x1b[2J' in {file}:1 is not a key", "--all"),
        ('type = "x"\ntype "y"', "{file}:2: not valid TOML: ", ""),
        ('type = "x"\n[', "{file}: not valid TOML: ", ""),
        ("copy = " + "[" * 5000, "{file}: not valid TOML: ", ""),
    ],
)
def test_a_wrong_file_is_told_with_its_place(world: World, text: str, message: str, hint: str) -> None:
    world.user_file.write_text(text)
    refused = world.refusal()
    if hint == "environment":
        hint, message = "", message + ", each under the name of an environment variable"
    assert refused.message.startswith(message.format(file=world.user_file))
    if not message.endswith(": "):
        assert isinstance(refused, UsageError)
        assert hint in (refused.hint or "")


def test_bytes_that_are_no_text_are_told_with_their_line(world: World) -> None:
    world.project_file.write_bytes(b'type = "x"\nsetup = "\xff"\n')
    assert world.refusal().message == f"{world.project_file}:2: not valid UTF-8"


def test_a_file_that_cannot_be_read_is_told_in_one_line(world: World) -> None:
    world.user_file.mkdir()
    assert world.refusal().message == f"cannot read {world.user_file}: Is a directory"


def test_a_byte_order_mark_is_no_reason_to_refuse(world: World) -> None:
    world.user_file.write_bytes(b'\xef\xbb\xbftype = "x"\r\n')
    assert world.load().text("type") == "x"


@settings(max_examples=150)
@given(data=st.binary(max_size=60) | st.text("[]{}=\"'\n.,#\\ atype1_-", max_size=60).map(str.encode))
def test_garbage_is_refused_in_one_line_and_never_crashes(data: bytes) -> None:
    with new_world() as world:
        world.user_file.write_bytes(data)
        assert_loads_or_tells(world)


NAMES = st.sampled_from(["type", "copy", "commands", "create", "list", "templates", "agent_types", "env", "x"]) | TEXTS
VALUES = st.none().map(lambda _: True) | st.integers(-5, 5) | st.floats(allow_nan=False) | TEXTS
TREES = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3))


@settings(max_examples=150)
@given(tree=st.dictionaries(NAMES, TREES, max_size=4))
def test_any_tree_of_values_is_loaded_or_refused_in_one_line(tree: dict[str, object]) -> None:
    with new_world() as world:
        lines = [f"{as_toml(name)} = {as_toml(value)}\n" for name, value in tree.items()]
        world.user_file.write_text("".join(lines), newline="")
        assert_loads_or_tells(world)


def assert_loads_or_tells(world: World) -> None:
    told = None
    try:
        loaded = world.load()
        for key in loaded.keys():  # noqa: SIM118 - not a dict
            loaded.get(key)
    except MngrError as error:
        told = error.message
    assert told is None or (str(world.user_file) in told and told.isprintable())


# Variables and -S.


def test_a_variable_may_have_any_case_and_its_text_may_be_quoted(world: World) -> None:
    world.patch.setenv("mngr_config_Type", '"quo\'ted"')
    world.patch.setenv("MNGR_CONFIG_SETUP", "'a' 'b'")
    assert world.load().text("type") == "quo'ted"
    assert world.load().text("setup") == "'a' 'b'"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("copy", '["a,b"]', ["a,b"]),
        ("copy", " a, b ,", ["a", "b"]),
        ("copy", "", []),
        ("stop_grace", "1.5", 1.5),
        ("stop_grace", "2", 2),
        ("setup", "5", "5"),
        ("setup", '"as it is"', '"as it is"'),
        ("templates.fast", '{ type = "claude", args = ["-x"] }', {"type": "claude", "args": ["-x"]}),
        ("agent_types.a.env", '{ A = "1" }', {"A": "1"}),
        ("commands.create.connect", "false", False),
        ("commands.create.count", "3", "3"),
        ("commands.create.connect_command", "ssh box", "ssh box"),
        ("commands.connect.connect_command", "ssh box", "ssh box"),
        ("commands.config_list.all", "true", True),
        ("agent_types.a.parent", "22", "22"),
        ("agent_types.a.args", "-v, me", ["-v", "me"]),
    ],
)
def test_a_text_is_read_as_the_type_of_its_key(world: World, key: str, text: str, value: object) -> None:
    config.override(key, text)
    assert world.load().get(key) == value


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("tpye", "x", "tpye in -S is not a key"),
        ("", "x", "'' in -S is not a key"),
        ("commands.create", "x", "commands.create in -S is a table of keys, not a key"),
        ("commands.create.conect", "x", "commands.create.conect in -S is not an option of create"),
        ("commands.create.connect", "yes", "commands.create.connect in -S must be true or false"),
        ("commands.create.mode", "x", "commands.create.mode in -S must be one of worktree, clone, copy, none"),
        ("copy", "[1]", "copy in -S must be a list of texts"),
        ("copy", "[x]", "copy in -S must be a list of texts"),
        ("stop_grace", "9" * 5000, "stop_grace in -S must be a number from 0 to 1e9"),
        ("type", "\udcff", "type in -S must be a text"),
        ("templates.x", "x", "templates.x in -S must be a table of options of create"),
        ("templates.x", "{ a = 1 }\ny = 2", "templates.x in -S must be a table of options of create"),
        ("templates.x", "{ modee = 1 }", "templates.x.modee in -S is not an option of create"),
        ("templates.x.type", "x", "templates.x.type in -S lies inside templates.x, which is one value"),
    ],
)
def test_a_wrong_override_is_refused(world: World, key: str, text: str, message: str) -> None:
    config.override(key, text)
    assert world.refusal().message == message


def test_a_wrong_variable_is_named(world: World) -> None:
    world.patch.setenv("MNGR_CONFIG_STOP_GRACE", "soon")
    assert world.refusal().message == "stop_grace in MNGR_CONFIG_STOP_GRACE must be a number from 0 to 1e9"
    world.patch.delenv("MNGR_CONFIG_STOP_GRACE")
    world.patch.setenv("MNGR_CONFIG_STOPGRACE", "1")
    assert world.refusal().hint == "did you mean stop_grace?"


# Verbs and templates.


def test_defaults_of_a_verb_of_two_words_are_found(world: World) -> None:
    world.user_file.write_text("[commands.config_list]\nall = true\n")
    world.patch.setenv("MNGR_CONFIG_COMMANDS__CONFIG_LIST__JSON", "true")
    assert world.load().command("config list") == {"all": True, "json": True}
    assert world.load().command("config get") == {}


def test_a_wrong_option_is_told_only_to_who_uses_the_verb(world: World) -> None:
    world.user_file.write_text("[commands.create]\nmode = 'copy'\nlable = ['a=b']\n")
    loaded = world.load()
    assert loaded.command("config list") == {}
    with pytest.raises(UsageError) as refused:
        loaded.command("create")
    assert refused.value.message == f"commands.create.lable in {world.user_file}:3 is not an option of create"
    assert refused.value.hint == "did you mean label?"


def test_an_option_that_takes_a_value_may_be_a_number(world: World) -> None:
    world.user_file.write_text("[commands.create]\ncount = 3\n")
    assert world.load().command("create") == {"count": 3}
    world.user_file.write_text("[commands.create]\ncount = true\n")
    with pytest.raises(UsageError, match=r"count in .*:2 must be a text or a number"):
        world.load().command("create")


def test_a_missing_template_suggests_the_nearest(world: World) -> None:
    with pytest.raises(UsageError, match="there is no template 'reveiw'") as refused:
        world.load().template("reveiw")
    assert "mngr config set templates" in str(refused.value.hint)
    world.user_file.write_text("[templates.review]\n")
    with pytest.raises(UsageError) as refused:
        world.load().template("reveiw")
    assert refused.value.hint == "did you mean review?"


def test_an_unknown_option_in_a_template_is_told_with_its_line(world: World) -> None:
    world.user_file.write_text('[templates.review]\ntype = "x"\nmesage = "hi"\n')
    with pytest.raises(UsageError) as refused:
        world.load().template("review")
    assert refused.value.message == f"templates.review.mesage in {world.user_file}:3 is not an option of create"
    assert refused.value.hint == "did you mean message?"


def test_a_template_that_is_changed_by_its_user_stays_as_it_was(world: World) -> None:
    world.user_file.write_text('[templates.review]\ntype = "x"\n')
    loaded = world.load()
    loaded.template("review")["type"] = "y"
    assert loaded.template("review") == {"type": "x"}


# Cost.


def test_a_process_reads_the_files_once_per_directory(world: World) -> None:
    world.user_file.write_text('type = "before"')
    first = config.load()
    world.user_file.write_text('type = "after"')
    assert config.load() is first
    assert config.load(str(world.top)) is first
    config.override("setup", "make")
    assert config.load().text("type") == "after"


def imported(world: World, code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after the code."""
    code = f"import os, __future__; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    argv = [
        sys.executable,
        "-S",
        "-E",
        "-c",
        f"import sys; sys.path.insert(0, {os.path.dirname(config.__file__)!r} + '/..'); {code}",
    ]
    done = subprocess.run(argv, cwd=world.top, text=True, capture_output=True, check=True)
    return set(done.stdout.split())


def test_loading_without_files_imports_nothing_heavy(world: World) -> None:
    modules = imported(world, "from mngr import config; config.load().command('list')")
    parts = ("address", "config", "config_keys", "errors", "home", "record")
    assert modules == {"mngr", *(f"mngr.{part}" for part in parts)}


def test_a_table_for_one_verb_does_not_import_that_verb(world: World) -> None:
    world.user_file.write_text("[commands.create]\nmode = 'none'\n[templates.x]\nmode = 'none'\n")
    modules = imported(world, "from mngr import config; config.load().command('list')")
    assert "tomllib" in modules
    assert "mngr.cli.create" not in modules
    assert "mngr.registry" not in modules


def test_finding_a_verb_looks_at_no_configuration(world: World) -> None:
    world.user_file.write_text('[agent_types.x]\nparent = "command"\n')
    modules = imported(world, "from mngr import registry; registry.find_command(['list'])")
    assert "mngr.cli.list" in modules
    assert "mngr.variants" not in modules
    assert "tomllib" not in modules


# How values are shown, and the documentation.


@given(value=st.dictionaries(TEXTS, TREES, max_size=3))
def test_what_is_shown_is_toml_without_control_characters(value: dict[str, object]) -> None:
    shown = as_toml(value)
    assert shown.isprintable()
    assert tomllib.loads(f"value = {shown}") == {"value": value}
    assert tomlkit.parse(f"value = {shown}").unwrap() == {"value": value}


def test_the_documentation_has_every_key_as_it_is_declared() -> None:
    text = DOCS.read_text()
    for key in KEYS:
        default = "" if key.default is None else f"`{as_toml(key.default)}`"
        assert f"| `{key.name}` | {KINDS[key.kind]} | {default} | {key.help} |" in text
