"""`mngr config ...`: what it prints, what it writes, and that it never damages a file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr import config
from mngr.cli.main import main
from mngr.config_edit import set_in_file, unset_in_file
from mngr.config_values import as_toml
from mngr.errors import MngrError
from tests.home import Mngr, Result


class Cli:
    """The verbs in this process: each call reads the files anew, as a process of its own would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user_file = root / "m" / "config.toml"
        self.project_file = root / "project" / ".mngr.toml"

    def __call__(self, *words: str) -> Result:
        config.forget(overrides=True)
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["config", *words])
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, *words: str) -> str:
        result = self(*words)
        assert (result.code, result.err) == (0, ""), result
        return result.out


@contextmanager
def new_cli() -> Iterator[Cli]:
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        cli = Cli(Path(root).resolve())
        (cli.root / "project" / ".git").mkdir(parents=True)
        for name in [name for name in os.environ if name.upper().startswith("MNGR_")]:
            patch.delenv(name)
        patch.setenv("HOME", root)
        patch.setenv("MNGR_HOME", str(cli.user_file.parent))
        patch.chdir(cli.root / "project")
        yield cli
    config.forget(overrides=True)


@pytest.fixture
def cli() -> Iterator[Cli]:
    with new_cli() as cli:
        yield cli


# get


def test_get_prints_texts_plain_and_lists_by_line(cli: Cli) -> None:
    cli.ok("set", "setup", 'echo "hi"')
    cli.ok("set", "copy", "a,b")
    assert cli.ok("get", "setup") == 'echo "hi"\n'
    assert cli.ok("get", "copy") == "a\nb\n"
    assert cli.ok("get", "pass_env") == ""
    assert cli.ok("get", "stop_grace") == "5\n"
    assert cli.ok("get", "--json", "copy") == '[\n  "a",\n  "b"\n]\n'


def test_get_of_what_is_not_set_exits_1(cli: Cli) -> None:
    assert cli("get", "type") == Result(1, "", "mngr: type is not set\nhint: mngr config set type VALUE\n")
    assert cli("get", "templates.x.mode").code == 1


def test_get_of_an_unknown_key_suggests_the_nearest(cli: Cli) -> None:
    assert cli("get", "tpye") == Result(2, "", "mngr: tpye is not a key\nhint: did you mean type?\n")
    assert cli("get", "commands.create").code == 2


def test_get_obeys_an_override(cli: Cli) -> None:
    assert cli.ok("get", "type", "-S", "type=codex") == "codex\n"


# set


def test_set_keeps_comments_and_order(cli: Cli) -> None:
    cli.user_file.parent.mkdir()
    cli.user_file.write_text('# mine\nsetup = "make" # why\ntype = "a"\n\n[commands.create] # here\ndirty = true\n')
    cli.ok("set", "setup", "make all")
    cli.ok("set", "stop_grace", "7")
    cli.ok("set", "commands.create.count", "3")
    assert cli.user_file.read_text() == (
        '# mine\nsetup = "make all" # why\ntype = "a"\nstop_grace = 7\n\n'
        '[commands.create] # here\ndirty = true\ncount = "3"\n'
    )


def test_set_reaches_into_templates_and_environments(cli: Cli) -> None:
    cli.ok("set", "templates.fast", '{ mode = "copy" }')
    cli.ok("set", "--", "templates.fast.args", "-v,-x")
    cli.ok("set", "agent_types.a.env.TOKEN", "t")
    assert tomllib.loads(cli.user_file.read_text()) == {
        "templates": {"fast": {"mode": "copy", "args": ["-v", "-x"]}},
        "agent_types": {"a": {"env": {"TOKEN": "t"}}},
    }
    assert cli.ok("get", "templates.fast.mode") == "copy\n"
    assert cli.ok("get", "templates.fast") == '{ mode = "copy", args = ["-v", "-x"] }\n'


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tpye", "x", "tpye is not a key"),
        ("stop_grace", "soon", "stop_grace must be a number from 0 to 1e9"),
        ("commands.create.connect", "maybe", "commands.create.connect must be true or false"),
        ("commands.create.conect", "true", "commands.create.conect is not an option of create"),
        ("commands.craete.connect", "true", "commands.craete is not a verb"),
        ("commands.ls.git", "true", "commands.ls is not a verb"),
        ("templates.x.tpye", "x", "templates.x.tpye is not an option of create"),
        ("agent_types.x.env.A-B", "x", "agent_types.x.env.A-B is not the name of an environment variable"),
        ("agent_types.x.env.MNGR_A", "x", "agent_types.x.env.MNGR_A belongs to mngr itself"),
        ("agent_types.x.modell", "m", "agent_types.x.modell is not a key"),
        ("providers.box.token", "x", "providers.box.token is not a key"),
        ("templates", "{}", "templates is a table of keys, not a key"),
        ("type", "\udcff", "type must be a text"),
    ],
)
def test_set_refuses_what_the_key_cannot_hold(cli: Cli, key: str, value: str, message: str) -> None:
    result = cli("set", key, value)
    assert (result.code, result.err.splitlines()[0]) == (2, f"mngr: {message}")
    assert not cli.user_file.exists()


def test_set_project_writes_beside_git_and_says_when_something_hides_it(cli: Cli) -> None:
    (cli.root / "project" / "sub").mkdir()
    os.chdir(cli.root / "project" / "sub")
    cli.ok("set", "--project", "type", "codex")
    assert cli.project_file.read_text() == 'type = "codex"\n'
    result = cli("set", "type", "claude")
    assert result == Result(0, "", f"mngr: type is set, but {cli.project_file} wins over it\n")
    assert cli.ok("get", "type") == "codex\n"


def test_set_follows_a_symlink_and_keeps_the_permissions(cli: Cli) -> None:
    dotfile = cli.root / "dotfile.toml"
    dotfile.write_text("")
    dotfile.chmod(0o640)
    cli.user_file.parent.mkdir()
    cli.user_file.symlink_to(dotfile)
    cli.ok("set", "type", "x")
    assert cli.user_file.is_symlink()
    assert dotfile.read_text() == 'type = "x"\n'
    assert dotfile.stat().st_mode & 0o777 == 0o640


def test_a_new_file_of_the_user_is_private(cli: Cli) -> None:
    cli.ok("set", "agent_types.a.env.TOKEN", "secret")
    assert cli.user_file.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(cli.user_file.parent)) == ["config.lock", "config.toml"]


def test_set_in_a_file_that_is_not_toml_leaves_it_alone(cli: Cli) -> None:
    cli.user_file.parent.mkdir()
    cli.user_file.write_text("type = \n")
    result = cli("set", "type", "x")
    assert result.code == 2
    assert result.err.startswith(f"mngr: {cli.user_file}:1: not valid TOML")
    assert cli.user_file.read_text() == "type = \n"


def test_set_where_nothing_can_be_written_is_told_in_one_line(cli: Cli) -> None:
    cli.user_file.parent.write_text("a file where a directory should be")
    result = cli("set", "type", "x")
    assert (result.code, result.err) == (1, f"mngr: cannot lock {cli.user_file.parent}: File exists\n")


def test_parallel_sets_lose_nothing(mngr: Mngr) -> None:
    names = [f"K{number}" for number in range(12)]
    running = [mngr.popen("config", "set", f"agent_types.a.env.{name}", name) for name in names]
    assert [process.communicate(timeout=60)[1] for process in running] == [""] * len(names)
    written = tomllib.loads((mngr.home.mngr_home / "config.toml").read_text())
    assert written == {"agent_types": {"a": {"env": {name: name for name in names}}}}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
BEFORE = (
    "",
    "# only a comment",
    '\nstop_grace = 1\n\n[agent_types.a]\nparent = "m" # c\n',
    "templates = { a = {} }\r\n",
)


@settings(max_examples=60)
@given(before=st.sampled_from(BEFORE), text=TEXTS)
def test_a_text_comes_back_as_it_was_set(before: str, text: str) -> None:
    with new_cli() as cli:
        cli.project_file.write_text(before, newline="")
        cli.ok("set", "--project", "--", "setup", text)
        assert json.loads(cli.ok("get", "--json", "setup")) == text
        assert cli.ok("get", "setup") == text + "\n"
        assert {**tomllib.loads(before), "setup": text} == tomllib.loads(cli.project_file.read_bytes().decode())


KEYS_AND_VALUES = st.one_of(
    st.tuples(st.just("copy"), st.lists(TEXTS, max_size=4)),
    st.tuples(st.just("stop_grace"), st.integers(0, 10**9) | st.floats(0, 1e9)),
    st.tuples(st.just("commands.create.connect"), st.booleans()),
    st.tuples(st.just("agent_types.a.env"), st.dictionaries(st.from_regex("[A-Z_]{1,9}", fullmatch=True), TEXTS)),
    st.tuples(st.just("templates.a"), st.fixed_dictionaries({"message": TEXTS, "label": st.lists(TEXTS, max_size=2)})),
)


@settings(max_examples=60)
@given(before=st.sampled_from(BEFORE), setting=KEYS_AND_VALUES)
def test_any_value_comes_back_as_it_was_set(before: str, setting: tuple[str, object]) -> None:
    key, value = setting
    with new_cli() as cli:
        cli.project_file.write_text(before, newline="")
        cli.ok("set", "--project", "--", key, as_toml(value))
        assert json.loads(cli.ok("get", "--json", key)) == value
        cli.ok("unset", "--project", key)
        assert cli("unset", "--project", key).code == 1


def test_what_a_project_may_not_say_is_not_set_there(cli: Cli) -> None:
    for key, value in (("commands.create.with", "mount=/:/all"), ("templates.a.with", "mount=/:/all")):
        refused = cli("set", "--project", key, value)
        assert (refused.code, "yours to say" in refused.err) == (2, True), refused
        assert not cli.project_file.exists()
        cli.ok("set", key, value)


LINES = (
    "# a comment",
    "a = 1",
    "b.c = 2",
    "b.d = { e = 3 }",
    "q = 1",
    "[t]",
    "[t.u]",
    "[b.x]",
    "[t.v.w]",
    "x = [1,\n  2, # two\n]",
    "y = '''\n[no]\n'''",
    "[[l]]",
    "",
)


@settings(max_examples=150)
@given(
    lines=st.lists(st.sampled_from(LINES), max_size=8),
    key=st.sampled_from(("a", "b.c", "b.y.z", "t.u.z", "b.x", "t.v.w.q")),
)
def test_an_edit_changes_its_key_alone_or_is_refused(lines: list[str], key: str) -> None:
    with new_cli() as cli:
        text = "\n".join(lines)
        cli.project_file.write_text(text)
        try:
            wanted = tomllib.loads(text)
            set_in_file(str(cli.project_file), key, "new")
        except (ValueError, MngrError):
            assert cli.project_file.read_text() == text
            return
        *above, last = key.split(".")
        table = wanted
        for part in above:
            table = table.setdefault(part, {})
        is_whole_table = last in table and isinstance(table[last], dict)
        table[last] = "new"
        assert tomllib.loads(cli.project_file.read_text()) == wanted
        assert is_whole_table or cli.project_file.read_text().count("# ") == text.count("# ")
        assert unset_in_file(str(cli.project_file), key)
        del table[last]
        assert without_empty(tomllib.loads(cli.project_file.read_text())) == without_empty(wanted)


def test_an_edit_that_would_move_other_keys_is_refused(cli: Cli) -> None:
    before = 'agent_types.a.parent = "x"\ntype = "t"\n'
    cli.project_file.write_text(before)
    result = cli("set", "--project", "agent_types.b.parent", "y")
    assert (result.code, result.err.splitlines()[1]) == (1, "hint: edit the file by hand")
    assert cli.project_file.read_text() == before


def without_empty(tree: dict[str, Any]) -> dict[str, Any]:
    filled = {name: without_empty(value) if isinstance(value, dict) else value for name, value in tree.items()}
    return {name: value for name, value in filled.items() if value != {}}


# unset


def test_unset_removes_a_key_and_keeps_the_rest(cli: Cli) -> None:
    cli.user_file.parent.mkdir()
    cli.user_file.write_text('# mine\ntype = "a"\nsetup = "b" # why\n[templates.x]\nmode = "copy"\n')
    cli.ok("unset", "type")
    cli.ok("unset", "templates.x.mode")
    assert cli.user_file.read_text() == '# mine\nsetup = "b" # why\n[templates.x]\n'
    cli.ok("unset", "templates.x")
    assert tomllib.loads(cli.user_file.read_text()) == {"setup": "b"}


def test_unset_of_what_is_not_there_says_so(cli: Cli) -> None:
    result = cli("unset", "type")
    assert (result.code, result.err.splitlines()[0]) == (1, f"mngr: type is not set in {cli.user_file}")
    assert not cli.user_file.exists()
    assert cli("unset", "tpye").err == "mngr: tpye is not a key\nhint: did you mean type?\n"


def test_a_mistake_in_a_file_can_be_mended(cli: Cli) -> None:
    cli.project_file.write_text('tpye = "x"\ncopy = 3\n')
    assert cli("get", "type").code == 2
    assert cli("list").err.splitlines()[0] == f"mngr: tpye in {cli.project_file}:1 is not a key"
    assert cli.ok("path", "--project") == f"{cli.project_file}\n"
    cli.ok("unset", "--project", "tpye")
    assert cli("list").err == f"mngr: copy in {cli.project_file}:1 must be a list of texts\n"
    cli.ok("set", "--project", "copy", "a")
    assert cli.ok("get", "copy") == "a\n"


# list and path


def test_list_says_what_is_set_and_where_as_toml(cli: Cli) -> None:
    assert cli.ok("list") == ""
    cli.ok("set", "type", 'a"b')
    cli.ok("set", "--project", "templates.x.mode", "copy")
    shown = cli.ok("list")
    assert shown == (f'templates.x = {{ mode = "copy" }}  # {cli.project_file}\ntype = "a\\"b"  # {cli.user_file}\n')
    assert tomllib.loads(shown) == {"templates": {"x": {"mode": "copy"}}, "type": 'a"b'}
    assert json.loads(cli.ok("list", "--json")) == [
        {"key": "templates.x", "value": {"mode": "copy"}, "origin": str(cli.project_file)},
        {"key": "type", "value": 'a"b', "origin": str(cli.user_file)},
    ]


def test_list_all_has_the_defaults_and_the_meaning_of_every_key(cli: Cli) -> None:
    shown = cli.ok("list", "--all")
    assert "stop_grace = 5  # default: seconds between" in shown
    assert "# templates.NAME =  # unset: a named set" in shown
    assert tomllib.loads(shown) == {"copy": [], "pass_env": [], "ready_timeout": 120, "stop_grace": 5}


def test_list_tells_of_a_wrong_option_of_another_verb(cli: Cli) -> None:
    cli.project_file.write_text("[commands.create]\nconect = true\n")
    result = cli("list")
    assert (result.code, result.err.splitlines()[1]) == (2, "hint: did you mean connect?")


def test_list_tells_of_an_agent_type_that_leads_nowhere(cli: Cli) -> None:
    cli.ok("set", "agent_types.a.parent", "comand")
    assert cli("list") == Result(
        2,
        "",
        f"mngr: agent_types.a.parent in {cli.user_file} is 'comand', which is not an agent type\n"
        "hint: did you mean command?\n",
    )
    cli.ok("set", "agent_types.a.parent", "command")
    assert cli.ok("list") == f'agent_types.a.parent = "command"  # {cli.user_file}\n'


def test_a_configured_default_applies_to_the_verb_itself(cli: Cli) -> None:
    cli.ok("set", "commands.config_list.json", "true")
    assert json.loads(cli.ok("list"))[0]["value"] is True


def test_path_names_the_file_whether_or_not_it_exists(cli: Cli) -> None:
    assert cli.ok("path") == f"{cli.user_file}\n"
    assert cli.ok("path", "--project") == f"{cli.project_file}\n"
