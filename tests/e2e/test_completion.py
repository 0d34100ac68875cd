"""Completion as a user meets it: the tab key in real bash, zsh and fish, and what `mngr complete` answers them."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli import complete as completer
from mngr.grammar import Argument, Command, option, parse
from mngr.model import STATES
from tests.home import Home, Mngr

SHELLS = ("bash", "zsh", "fish")
TAB, ALL = b"\t", b"\x1b*"
SHOW = b"\x18p"  # bound to "tell the line as it is now, and empty it"
BASH_RC = r"""
source <(mngr completion bash)
bind 'set bell-style none'
show() { printf '%s\n' "$READLINE_LINE" >~/shown; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\C-xp": show'
echo ready >~/shown
"""
ZSH_RC = r"""
autoload -Uz compinit && compinit -u -D
source <(mngr completion zsh)
show() { print -r -- "$BUFFER" >~/shown; BUFFER= }
zle -N show
bindkey '^Xp' show
unsetopt beep
echo ready >~/shown
"""


class Terminal:
    """An interactive bash or zsh with mngr's completion in it. `line(text)` types it and presses the tab key, and gives
    the line that results. That comes by a pipe: what is on the screen depends on when the shell redraws it."""

    def __init__(self, shell: str, home: Home) -> None:
        assert shutil.which(shell, path=home.env["PATH"]), f"{shell} is not here: make system"
        rc = home.path / f".{shell}rc"
        rc.write_text({"bash": BASH_RC, "zsh": ZSH_RC}[shell])
        os.mkfifo(home.path / "shown")
        self.shown = os.open(home.path / "shown", os.O_RDWR)  # not only reading: it has no end when a writer closes it
        self.screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            {"bash": ["bash", "--noprofile", "--rcfile", str(rc), "-i"], "zsh": ["zsh", "-d", "-i"]}[shell],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=home.cwd,
            env={**home.env, "ZDOTDIR": str(home.path)},
            start_new_session=True,
        )
        os.close(theirs)
        self.unread = b""
        assert self._next_shown() == "ready"

    def line(self, text: str, key: bytes = TAB) -> str:
        os.write(self.screen, text.encode() + key + SHOW)
        return self._next_shown()

    def _next_shown(self) -> str:
        end = time.monotonic() + 30
        screen = b""
        while b"\n" not in self.unread:
            readable, _, _ = select.select([self.screen, self.shown], [], [], max(0, end - time.monotonic()))
            assert readable, f"no answer within 30 s; on the screen: {screen!r}"
            if self.screen in readable:
                screen += os.read(self.screen, 4096)
            if self.shown in readable:
                self.unread += os.read(self.shown, 4096)
        line, _, self.unread = self.unread.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(10)
        os.close(self.screen)
        os.close(self.shown)


@pytest.fixture
def agents(home: Home) -> None:
    """Three agents, as far as the registry of names is concerned."""
    names = home.mngr_home / "names"
    names.mkdir()
    for name, target in {
        "bold-fox": "local/1/claude",
        "brave-wolf": "box.ssh/2/command",
        "calm-owl": "local/3/x",
    }.items():
        (names / name).symlink_to(target)
    (names / ".lock").touch()


@pytest.fixture(params=["bash", "zsh"])
def terminal(request: pytest.FixtureRequest, home: Home, repo: Path, agents: None) -> Iterator[Terminal]:
    (repo / "notes on it.txt").touch()
    (repo / "settings.env").touch()
    opened = Terminal(request.param, home)
    yield opened
    opened.close()


def fish(home: Home, line: str) -> dict[str, str]:
    """What fish offers for that line, with descriptions. `complete -C` is fish's own way to ask its own engine."""
    assert shutil.which("fish", path=home.env["PATH"]), "fish is not here: make system"
    told = home.run("fish", "--no-config", "-c", "mngr completion fish | source; complete -C $argv[1]", "--", line)
    pairs = (offer.partition("\t") for offer in told.splitlines())
    return {word: about for word, _, about in pairs}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_is_valid_in_its_shell(mngr: Mngr, home: Home, shell: str) -> None:
    assert shutil.which(shell, path=home.env["PATH"]), f"{shell} is not here: make system"
    script = home.path / "script"
    script.write_text(mngr.ok("completion", shell))
    home.run(shell, "-n", str(script))
    script.write_text(script.read_text() + "\nif (((\n")
    with pytest.raises(AssertionError):
        home.run(shell, "-n", str(script))


def test_shellcheck_has_nothing_to_say_about_the_bash_script(mngr: Mngr, home: Home) -> None:
    home.run("shellcheck", "--shell=bash", "-", input=mngr.ok("completion", "bash"))


def test_a_shell_without_a_script_is_a_usage_error_that_names_the_nearest(mngr: Mngr) -> None:
    result = mngr("completion", "zhs")
    assert result.code == 2
    assert "did you mean zsh?" in result.err


TYPED = {  # typed, and the line after a press of the tab key
    "a verb": ("mngr exp", "mngr explain "),
    "a verb of two words": ("mngr snapshot cre", "mngr snapshot create "),
    "an alias": ("mngr ms", "mngr msg "),
    "an option": ("mngr list --sta", "mngr list --state "),
    "the opposite of an option": ("mngr create --no-c", "mngr create --no-connect "),
    "a value": ("mngr list --state runn", "mngr list --state running "),
    "a value after =": ("mngr list --state=runn", "mngr list --state=running "),
    "one more value": ("mngr list --state=done,wai", "mngr list --state=done,waiting "),
    "a choice": ("mngr create x --mode work", "mngr create x --mode worktree "),
    "an agent": ("mngr stop br", "mngr stop brave-wolf "),
    "another agent": ("mngr stop bold-fox b", "mngr stop bold-fox brave-wolf "),
    "an agent in quotes": ("mngr stop 'br", "mngr stop 'brave-wolf' "),
    "an argument after a quoted value": ("mngr message -m 'a b' br", "mngr message -m 'a b' brave-wolf "),
    "a file": ("mngr create --env-file set", "mngr create --env-file settings.env "),
    "a file after =": ("mngr create --env-file=set", "mngr create --env-file=settings.env "),
    "a file with blanks": ("mngr create --env-file no", r"mngr create --env-file notes\ on\ it.txt "),
    "a directory": ("mngr create --from s", "mngr create --from src/"),
    "an agent to start from": ("mngr create --from br", "mngr create --from brave-wolf "),
    "a file to push": ("mngr push sett", "mngr push settings.env "),
    "an agent to push to": ("mngr push settings.env --rev main cal", "mngr push settings.env --rev main calm-owl"),
    "a file after --": ("mngr exec bold-fox -- cat READ", "mngr exec bold-fox -- cat README.md "),
    "a branch": ("mngr create --base mai", "mngr create --base main "),
    "a key and its =": ("mngr list -S stop_g", "mngr list -S stop_grace="),
    "a section of keys": ("mngr config get agent_t", "mngr config get agent_types."),
    "a shell": ("mngr completion fi", "mngr completion fish "),
    "a verb to explain": ("mngr help snapshot dest", "mngr help snapshot destroy "),
    "nothing after an unknown verb": ("mngr nonsense x", "mngr nonsense x"),
    "nothing for an unknown agent": ("mngr stop zz", "mngr stop zz"),
}


def test_the_tab_key_completes(terminal: Terminal) -> None:
    got = {what: terminal.line(typed) for what, (typed, _) in TYPED.items()}
    assert got == {what: wanted for what, (_, wanted) in TYPED.items()}


def test_a_colon_after_an_agent_does_not_confuse_the_shell(terminal: Terminal) -> None:
    assert terminal.line("mngr pull cal") == "mngr pull calm-owl"  # alone, or with a colon and a path
    assert terminal.line("mngr pull calm-owl:sr") == "mngr pull calm-owl:sr"  # no host is asked
    assert terminal.line("mngr pull calm-owl:src READ") == "mngr pull calm-owl:src README.md "


def test_bash_offers_all_candidates_and_nothing_else(home: Home, repo: Path, agents: None) -> None:
    terminal = Terminal("bash", home)
    try:
        assert terminal.line("mngr stop ", ALL).split() == ["mngr", "stop", "bold-fox", "brave-wolf", "calm-owl"]
        assert terminal.line("mngr pull c", ALL).split() == ["mngr", "pull", "calm-owl", "calm-owl:"]
        assert terminal.line("mngr list --state=", ALL).split()[3:] == sorted(STATES)[1:]
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("mngr expl", {"explain"}),
        ("mngr snapshot ", {"create", "list", "restore", "destroy"}),
        ("mngr stop ", {"bold-fox", "brave-wolf", "calm-owl"}),
        ("mngr stop wolf", {"brave-wolf"}),
        ("mngr stop bold-fox -- b", {"brave-wolf"}),
        ("mngr list --state=wa", {"--state=waiting"}),
        ("mngr create --env-file=set", {"--env-file=settings.env"}),
        ("mngr create --from=s", {"--from=src/"}),
        ("mngr create --env-file READ", {"README.md"}),
        ("mngr completion ", {"bash", "fish", "zsh"}),
        ("mngr nonsense ", set()),
    ],
)
def test_fish_offers(home: Home, repo: Path, agents: None, typed: str, offered: set[str]) -> None:
    (repo / "settings.env").touch()
    assert set(fish(home, typed)) == offered


def test_fish_shows_what_the_candidates_are(home: Home, mngr: Mngr, agents: None) -> None:
    assert fish(home, "mngr stop br") == {"brave-wolf": "command on box.ssh"}
    assert fish(home, "mngr ls")["ls"] == "same as list"


# What stands behind the scripts.


KNOWN = {
    verb.name: verb
    for verb in (
        Command(
            name="send",
            summary="copy files",
            usage=("send",),
            run=lambda _: 0,
            aliases=("cp",),
            arguments=(
                Argument(name="[AGENT:]PATH", help="", many=True),
                Argument(name="AGENT[:PATH]", help=""),
            ),
            options=(
                option("-q, --quiet", "say nothing"),
                option("-m, --message TEXT", "with a message"),
                option("-l, --label K=V", "to those", many=True, completes="labels"),
                option("-s, --snapshot NAME", "from that", completes="snapshots"),
                option("-t, --template NAME", "like that", completes="templates"),
                option("--host HOST", "on that", completes="hosts"),
                option("--type TYPE", "of that", completes="types"),
            ),
            rest="ARGS",
        ),
        Command(
            name="box open",
            summary="open it",
            usage=("box open",),
            run=lambda _: 0,
            arguments=(
                Argument(name="AGENT", help="", optional=True, completes="agents"),
                Argument(name="SHELL", help="", completes="shells"),
                Argument(name="STATE", help="", optional=True, completes="states"),
            ),
        ),
        Command(name="secret", summary="not told", usage=("secret",), run=lambda _: 0, hidden=True),
    )
}


@pytest.fixture
def offers(home: Home, agents: None, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    monkeypatch.chdir(home.path)
    return home


def offered(*words: str) -> list[str]:
    return [word for word, _ in completer.candidates(list(words), KNOWN)]


def test_verbs_and_aliases_are_offered_and_hidden_ones_are_not(offers: Home) -> None:
    assert offered("") == ["box", "cp", "send"]
    assert offered("box", "") == ["open"]
    assert offered("-") == ["--help", "--version"]


def test_brackets_in_the_name_say_whether_agent_and_path_may_stand_alone(offers: Home) -> None:
    agents = ["bold-fox", "brave-wolf", "calm-owl"]
    colons = [agent + ":" for agent in agents]
    assert offered("send", "") == [*colons, completer.FILES]
    assert offered("send", "file", "") == [*colons, completer.FILES, *colons, *agents]


def test_an_argument_that_may_be_left_out_is_offered_together_with_the_next_one(offers: Home) -> None:
    assert offered("box", "open", "") == ["bold-fox", "brave-wolf", "calm-owl", *SHELLS]
    assert offered("box", "open", "calm-owl", "") == list(SHELLS)
    assert offered("box", "open", "calm-owl", "zsh", "") == list(STATES)
    assert offered("box", "open", "calm-owl", "zsh", "done", "x") == []


def test_an_option_is_offered_once_unless_it_may_be_repeated(offers: Home) -> None:
    left = offered("send", "-ql", "a=b", "--message=x", "--")
    assert "--label" in left
    assert "--quiet" not in left
    assert "--message" not in left


def test_a_value_that_cannot_be_known_gets_no_candidates(offers: Home) -> None:
    assert offered("send", "-m", "") == []
    assert offered("send", "-qm", "") == []
    assert offered("send", "--message=") == []
    assert offered("send", "--nonsense=") == []
    assert offered("send", "--quiet=") == []


def test_values_come_from_what_lies_in_the_home(offers: Home) -> None:
    (offers.mngr_home / "snapshots" / "1" / "before").mkdir(parents=True)
    (offers.mngr_home / "agents" / "1").mkdir(parents=True)
    (offers.mngr_home / "agents" / "1" / "agent.json").write_text('{"labels": {"run": "night"}}')
    (offers.mngr_home / "agents" / "2").mkdir()
    (offers.mngr_home / "agents" / "2" / "agent.json").write_text("damaged")
    (offers.mngr_home / "config.toml").write_text('[templates.review]\nmode = "clone"\n')
    assert completer.candidates(["send", "-s", ""], KNOWN) == [("before", "of bold-fox")]
    assert offered("send", "-l", "") == ["run=night"]
    assert offered("send", "-t", "") == ["review"]
    assert {"local", "box.ssh"} <= set(offered("send", "--host", ""))
    assert "command" in offered("send", "--type", "")


def test_the_shell_offers_files_after_two_dashes(offers: Home) -> None:
    assert offered("send", "a", "--", "") == [completer.FILES]
    assert offered("send", "a", "--", "-") == [completer.FILES]


def test_every_kind_of_value_that_a_verb_of_ours_declares_is_known() -> None:
    from mngr.registry import own_commands

    declared = [
        kinds
        for verb in own_commands().values()
        for kinds in (*(a.completes for a in verb.arguments), *(o.completes for o in verb.options))
    ]
    assert {kind for kinds in declared for kind in kinds.split()} <= {*completer.SOURCES, "config", "tasks", "verbs"}


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNGR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def answer(words: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = completer.complete.run(parse(completer.complete, ["--describe", "--", *words]))
    return code, out.getvalue(), err.getvalue()


@given(
    st.lists(
        st.sampled_from(["config", "set", "create", "-S", "--", "list", "--state", "-", "="]) | st.text(), max_size=6
    )
)
def test_no_words_make_it_fail_or_complain(empty_home: None, words: list[str]) -> None:
    from mngr.registry import commands

    completer.candidates(words or [""], commands())  # `complete` would hide what this raises
    code, out, err = answer(words)
    assert (code, err) == (0, "")
    assert all(line.partition("\t")[0].isprintable() for line in out.splitlines())


@pytest.mark.parametrize("words", [[], [""], ["-"], ["--x=", "\udcff"], ["\n", "", "a\nb"], ["stop"] * 500])
def test_garbage_is_answered_with_silence_and_success(mngr: Mngr, words: list[str]) -> None:
    result = mngr("complete", "--", *words)
    assert (result.code, result.err) == (0, "")


def test_a_broken_configuration_and_an_unreadable_home_are_answered_with_silence(mngr: Mngr, home: Home) -> None:
    (home.mngr_home / "config.toml").write_text("= broken")
    result = mngr("complete", "--", "create", "-t", "")
    assert (result.code, result.out, result.err) == (0, "", "")
    result = mngr("complete", "--", "stop", "", env={"MNGR_HOME": "/dev/null/x"})
    assert (result.code, result.out, result.err) == (0, "", "")
