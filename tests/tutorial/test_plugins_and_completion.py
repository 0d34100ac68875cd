"""PLUGINS AND COMPLETION of tutorial.sh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mngr.e2e import E2eSession, expect

PROMPT = re.compile("[>$#%]$", re.MULTILINE)  # of any shell


def test_what_is_installed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Plugins add verbs, agent types and places. What is installed, and what is wrong with it?
        mngr plugin list
        mngr plugin list --json
    """)
    expect(e2e.run("mngr plugin list", comment="mngr itself is one").stdout).to_match("^builtin .*verbs.*agent types")
    own = e2e.run("mngr plugin list --json", comment="and by name").json()[0]
    expect(own["commands"]).to_contain("create", "list")
    expect(own["agent_types"]).to_contain("command", "claude", "codex", "opencode")
    expect(own["providers"]).to_contain("local")
    expect(own["problems"]).to_be_empty()


def test_a_plugin_adds_a_verb(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Plugins add verbs, agent types and places. What is installed, and what is wrong with it?
        mngr plugin list
        mngr plugin list --json
    """)
    expect(e2e.run("mngr who", comment="there is no such verb")).to_have_exit_code(2)
    install(e2e.root / "site", "who", "def mngr_commands():\n    return {'who': 'mngr.cli.list:list_'}\n")
    e2e.env["PYTHONPATH"] = str(e2e.root / "site")
    expect(e2e.run("mngr plugin list", comment="now it is installed")).to_match(r"^who +1\.0 +mngr-who +verb who$")
    (who,) = (plugin for plugin in e2e.run("mngr plugin list --json").json() if plugin["name"] == "who")
    expect(who["commands"]).to_equal({"who": "mngr.cli.list:list_"})
    expect(e2e.run("mngr who --json", comment="and it works")).to_be_json([])


def test_what_is_wrong_with_a_plugin(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Plugins add verbs, agent types and places. What is installed, and what is wrong with it?
        mngr plugin list
        mngr plugin list --json
    """)
    install(e2e.root / "site", "who", "import nothing_of_that_name\n")
    e2e.env["PYTHONPATH"] = str(e2e.root / "site")
    told = e2e.run("mngr plugin list", comment="a plugin that cannot be loaded")
    expect(told).to_succeed().to_match("^problem: who: cannot be loaded: .*nothing_of_that_name")
    (who,) = (plugin for plugin in e2e.run("mngr plugin list --json").json() if plugin["name"] == "who")
    (problem,) = who["problems"]
    expect(problem).to_contain("cannot be loaded")
    expect(e2e.run("mngr list --json", comment="the rest goes on")).to_be_json([])


def install(site: Path, name: str, source: str) -> None:
    """The package mngr-NAME, as an installer leaves it; PYTHONPATH leads there."""
    info = site / f"mngr_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"mngr_{name}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mngr-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mngr]\n{name} = mngr_{name}\n")


def test_the_tab_key_from_now_on(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Complete verbs, options and the names of your agents with Tab, from now on in this shell.
        source <(mngr completion bash)
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent")
    shell = e2e.spawn("bash --norc", comment="your shell", name="bash")
    shell.wait_for_text(PROMPT).type("source <(mngr completion bash)\n").type("mngr sto").press("Tab")
    shell.wait_for_text("mngr stop").type("bu").press("Tab")
    shell.wait_for_text("mngr stop build").type("--gr").press("Tab")
    shell.wait_for_text("mngr stop build --grace").type("9\n").wait_for_text("stopped build")
    expect(e2e.run("mngr list build", comment="the words were the right ones")).to_match("^build +stopped")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_tab_key_for_good(e2e: E2eSession, shell: str) -> None:
    e2e.write_tutorial_block("""
        # For good, in the shell that you use.
        mkdir -p ~/.config/fish/completions
        mngr completion fish >~/.config/fish/completions/mngr.fish
        echo 'source <(mngr completion bash)' >>~/.bashrc
        echo 'source <(mngr completion zsh)' >>~/.zshrc
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent")
    e2e.run("mkdir -p ~/.config/fish/completions", comment="once")
    expect(e2e.run("mngr completion fish >~/.config/fish/completions/mngr.fish")).to_succeed()
    e2e.run("echo 'source <(mngr completion bash)' >>~/.bashrc")
    e2e.run("echo 'source <(mngr completion zsh)' >>~/.zshrc")

    terminal = e2e.spawn(shell, comment="each new shell", name=shell)
    terminal.wait_for_text(PROMPT).type("mngr stop bu").press("Tab")
    terminal.wait_for_text("mngr stop build").press("Enter").wait_for_text("stopped build")
    expect(e2e.run("mngr list build")).to_match("^build +stopped")


def test_a_shell_that_mngr_does_not_know(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # For good, in the shell that you use.
        mkdir -p ~/.config/fish/completions
        mngr completion fish >~/.config/fish/completions/mngr.fish
        echo 'source <(mngr completion bash)' >>~/.bashrc
        echo 'source <(mngr completion zsh)' >>~/.zshrc
    """)
    expect(e2e.run("mngr completion zhs", comment="a slip")).to_have_exit_code(2).to_contain("did you mean zsh?")


def test_help_about_help_and_the_library(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # All of this is in man pages too, one for each verb, and from Python it is an import away.
        mngr help help
        python3 -c 'import mngr; print(mngr.__doc__)'
    """)
    expect(e2e.run("mngr help help", comment="help has help")).to_succeed().to_contain("Usage", "mngr help [VERB...]")
    pages = e2e.run('ls "$(dirname "$(command -v mngr)")/../share/man/man1"', comment="man finds these beside mngr")
    expect(pages).to_contain("mngr-create.1", "mngr-help.1", "mngr-snapshot-list.1")
    told = e2e.run("python3 -c 'import mngr; print(mngr.__doc__)'", comment="and the library says how to begin")
    expect(told).to_succeed().to_contain("import mngr", "mngr.create(")
