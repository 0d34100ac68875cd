"""A stranger's plugin: the files in docs/plugins.md, as a package that pip installs, used through the real CLI."""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.home import Home, Mngr, wait_until

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment_with_plugin() -> Iterator[Path]:
    """A virtual environment that sees mngr, with the plugin of the documentation installed into it by pip."""
    home = Home()
    package, place = home.root / "mngr-journal", home.root / "venv"
    for path, text in documented_files().items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    venv.create(place, with_pip=False, symlinks=True)
    (installed,) = (place / "lib").glob("python*/site-packages")
    (installed / "mngr-itself.pth").write_text(
        "".join(f"import site; site.addsitedir({path!r})\n" for path in site.getsitepackages())
    )
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--disable-pip-version-check"]
    home.run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", str(package))
    program = place / "bin" / "mngr"
    program.write_text((TOP / "bin" / "mngr").read_text().replace("#!python", f"#!{place}/bin/python", 1))
    program.chmod(0o755)
    yield place
    home.remove()


def documented_files() -> dict[str, str]:
    """Each is a line with its name, then a fenced block with its text."""
    text = (TOP / "docs" / "plugins.md").read_text()
    return dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def extended(mngr: Mngr, environment_with_plugin: Path) -> Mngr:
    """`mngr` of the environment that has the plugin."""
    mngr.program = str(environment_with_plugin / "bin" / "mngr")
    return mngr


def test_the_list_of_plugins_tells_what_an_installed_one_adds(extended: Mngr) -> None:
    own, journal, swarm = extended.json("plugin", "list")
    assert (own["name"], swarm["name"]) == ("builtin", "swarm")
    assert (journal["name"], journal["version"], journal["distribution"]) == ("journal", "1.0", "mngr-journal")
    assert list(journal["commands"]) == ["journal"]
    assert list(journal["agent_types"]) == ["every"]
    assert journal["lifecycle"] is True
    assert journal["problems"] == []
    (told,) = (line for line in extended.ok("plugin", "list").splitlines() if line.startswith("journal"))
    assert told.split(maxsplit=3) == [
        "journal",
        "1.0",
        "mngr-journal",
        "verb journal, agent type every, a lifecycle hook",
    ]


def test_a_verb_of_a_plugin_works_like_any_other(extended: Mngr, home: Home) -> None:
    (home.mngr_home / "journal").write_text("one\ntwo\nthree\n")
    assert extended.ok("journal", "--last", "2") == "two\nthree\n"
    assert "mngr journal [--last N]" in extended.ok("journal", "--help")
    wrong = extended("journal", "--lats", "2")
    assert (wrong.code, wrong.err) == (2, "mngr: journal has no option --lats\nhint: did you mean --last?\n")


def test_the_verb_is_unknown_where_the_plugin_is_not_installed(mngr: Mngr) -> None:
    assert mngr("journal").err.startswith("mngr: there is no verb 'journal'\n")


def test_an_agent_of_a_plugins_type_runs_and_its_life_is_told(extended: Mngr, home: Home) -> None:
    extended.ok("create", "ci", "every", "--mode", "none", "--", "1", "sh", "-c", "echo again >>$HOME/ran")
    wait_until((home.path / "ran").exists)
    (agent,) = extended.json("list")
    assert (agent["name"], agent["type"], agent["state"]) == ("ci", "every", "running")
    extended.ok("stop", "ci")
    extended.ok("start", "ci")
    extended.ok("rename", "ci", "cd")
    extended.ok("destroy", "-f", "cd")
    told = ["ci created", "ci stopped", "ci started", "cd renamed", "cd destroyed"]
    assert extended.ok("journal").splitlines() == told


def test_an_agent_type_refuses_wrong_arguments_before_anything_is_made(extended: Mngr) -> None:
    result = extended("create", "ci", "every", "--mode", "none", "--", "often")
    assert result.code == 2
    assert result.err.startswith("mngr: every needs SECONDS COMMAND...\nhint: ")
    assert extended.json("list") == []


def test_a_broken_plugin_is_told_once_and_breaks_nothing(mngr: Mngr, home: Home) -> None:
    place = put_plugin(home, "broken", "import no_such_module")
    first = mngr("plugin", "list", env={"PYTHONPATH": str(place)})
    assert first.code == 0
    assert first.err == (
        "mngr: plugin broken: cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'; "
        "see mngr plugin list\n"
    )
    second = mngr("plugin", "list", env={"PYTHONPATH": str(place)})
    assert second.err == ""
    assert second.out.splitlines()[-1].startswith("problem: broken: cannot be loaded: ModuleNotFoundError")


def test_a_removed_plugin_takes_its_verb_along(mngr: Mngr, home: Home) -> None:
    place = put_plugin(home, "brief", "def mngr_commands():\n    return {'brief': 'mngr.cli.plugin:list_'}")
    env = {"PYTHONPATH": str(place)}
    assert "brief" in mngr.ok("brief", env=env)
    shutil.rmtree(place / "brief-1.0.dist-info")
    assert mngr("brief", env=env).code == 2


def test_two_at_once_in_a_new_home_both_find_the_plugin(mngr: Mngr, home: Home) -> None:
    place = put_plugin(home, "brief", "def mngr_commands():\n    return {'brief': 'mngr.cli.plugin:list_'}")
    running = [mngr.popen("brief", env={"PYTHONPATH": str(place)}) for _ in range(4)]
    ended = [process.communicate(timeout=60) for process in running]
    assert [err for _, err in ended] == [""] * 4
    assert all("brief" in out for out, _ in ended)
    assert os.listdir(home.mngr_home / "cache") == ["plugins.json"]


def put_plugin(home: Home, name: str, source: str) -> Path:
    """A plugin as an installer would leave it, in a directory for PYTHONPATH."""
    place = home.root / "site"
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (place / f"{name}_plugin.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mngr]\n{name} = {name}_plugin\n")
    return place
