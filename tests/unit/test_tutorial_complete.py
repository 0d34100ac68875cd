"""tutorial.sh shows the whole of the interface, and nothing that is not there: each verb, each option of each verb, in
words that the verb's own declaration can read. What the commands do is for the tests that cite them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.cli import man
from mngr.errors import UsageError
from mngr.grammar import COMMON, Args, Command, parse
from mngr.tutorial import blocks
from mngr.tutorial.calls import calls as calls_in

TUTORIAL = Path(__file__).parents[2] / "tutorial.sh"


@pytest.fixture(scope="module")
def verbs() -> dict[str, Command]:
    return {name: command for command in man.own().values() for name in (command.name, *command.aliases)}


def test_every_verb_and_every_option_of_it_is_shown(verbs: dict[str, Command]) -> None:
    absent = missing(TUTORIAL.read_text(), verbs)
    assert not absent, "no block shows\n" + "\n".join(absent)


def test_every_command_is_one_that_there_is(verbs: dict[str, Command]) -> None:
    wrong = [told for told in (mistake(call, verbs) for call in calls(TUTORIAL.read_text())) if told]
    assert not wrong, "\n".join(wrong)


def test_what_is_not_shown_is_named(verbs: dict[str, Command]) -> None:
    whole = TUTORIAL.read_text()

    def lost(text: str) -> list[str]:
        assert text != whole
        return sorted({*missing(text, verbs)} - {*missing(whole, verbs)})

    without_gc = "\n\n".join(block for block in whole.split("\n\n") if "mngr gc" not in block)
    assert lost(without_gc) == ["gc", "gc --dry-run", "gc --json"]
    assert lost(whole.replace("mngr list --watch", "mngr list # --watch")) == ["list --watch"]
    assert lost(whole.replace("mngr stop build --grace", "echo --grace")) == ["stop --grace"]


def test_what_there_is_not_is_named(verbs: dict[str, Command]) -> None:
    def told(text: str) -> list[str | None]:
        return [mistake(call, verbs) for call in calls(text)]

    assert told("mngr lost") == ["mngr lost: there is no such verb"]
    assert told("mngr list --lost\nmngr ls") == ["mngr list --lost: list has no option --lost", None]
    assert told("mngr list --lost || echo no\nmngr lost") == [None, "mngr lost: there is no such verb"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1 mngr list --names | mngr pull - --merge", ["list --names", "pull - --merge"]),
        ("x=$(mngr create -- sleep 1)\nif mngr wait; then mngr stop; fi", ["create -- sleep 1", "wait", "stop"]),
        ("mngr create a -- mngr dev model-server", ["create a -- mngr dev model-server", "dev model-server"]),
        ("mngr message a <<'EOF'\nmngr list\nEOF\nmngr stop a >/dev/null", ["message a", "stop a"]),
        ("# mngr list\necho mngr list 'mngr list'  # mngr list\nsource <(mngr help)", ["help"]),
        ("mngr create a \\\n  -m 'b; mngr list'", ["create a -m b; mngr list"]),
    ],
)
def test_calls_are_found_where_a_shell_would_run_them(text: str, found: list[str]) -> None:
    assert [" ".join(call.words) for call in calls(text)] == found


class Call:
    def __init__(self, words: list[str], *, may_fail: bool) -> None:
        self.words = words  # without `mngr`
        self.may_fail = may_fail  # the tutorial says what is to happen then: `|| ...`


def missing(text: str, verbs: dict[str, Command]) -> list[str]:
    """`gc` and `gc --json`: what no call of the tutorial shows. An option that every verb has is to be shown once."""
    shown: defaultdict[str, set[str]] = defaultdict(set)
    for call in calls(text):
        try:
            args = understood(call, verbs)
        except UsageError:
            continue
        if args is not None:
            shown[args.command.name] |= args.given.keys()
    absent = [option.flags[-1] for option in COMMON if not any(option.key in keys for keys in shown.values())]
    for name, command in verbs.items():
        if name != command.name:
            continue
        absent += [] if name in shown else [name]
        absent += [f"{name} {option.flags[-1]}" for option in command.options if option.key not in shown[name]]
    return sorted(absent)


def mistake(call: Call, verbs: dict[str, Command]) -> str | None:
    try:
        known = understood(call, verbs) is not None
    except UsageError as error:
        return None if call.may_fail else f"mngr {' '.join(call.words)}: {error}"
    return None if known or call.may_fail else f"mngr {' '.join(call.words)}: there is no such verb"


def understood(call: Call, verbs: dict[str, Command]) -> Args | None:
    """None when there is no such verb."""
    if call.words == ["--version"]:
        call = Call(["help"], may_fail=False)
    for length in (2, 1):
        command = verbs.get(" ".join(call.words[:length]))
        if command is not None:
            return parse(command, call.words[length:])
    return None


def calls(text: str) -> Iterator[Call]:
    """Every call of mngr, block by block, and those that another call starts as a program of its own."""
    for block in blocks.parse(text).blocks:
        lines = "\n".join(line for line in block.text.split("\n") if not line.startswith("#"))
        forgiven = [call.words for before in lines.split("||")[:-1] for call in calls_in(before, "mngr")[-1:]]
        for call in calls_in(lines, "mngr"):
            yield Call(call.words, may_fail=call.words in forgiven)
            if "--" in call.words:
                started = call.words[call.words.index("--") + 1 :]
                if started[:1] == ["mngr"]:
                    yield Call(started[1:], may_fail=False)
