"""The parser of command lines: options in all their spellings, what follows `--`, errors that say what was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.grammar import Args, Argument, Command, command, option, parse, seconds


@command(
    "launch",
    summary="start agents",
    usage=["launch [NAME] [TYPE] [-- ARGS...]"],
    arguments=[Argument(name="NAME", help="", optional=True), Argument(name="TYPE", help="", optional=True)],
    rest="ARGS",
    options=[
        option("-m, --message TEXT", "the text"),
        option("-e, --env K=V", "a variable", many=True),
        option("-f, --force", "do not ask"),
        option("-q, --quiet", "say nothing"),
        option("--[no-]connect", "attach"),
        option("--mode MODE", "how", choices=["worktree", "clone"]),
        option("--dry-run", "only say"),
        option("--count N", "how many"),
    ],
)
def launch(args: Args) -> int:
    return 0


@command(
    "move",
    summary="move files",
    usage=["move FROM... TO"],
    arguments=[Argument(name="FROM", help="", many=True), Argument(name="TO", help="")],
)
def move(args: Args) -> int:
    return 0


def refusal(verb: Command, *words: str) -> UsageError:
    with pytest.raises(UsageError) as refused:
        parse(verb, list(words))
    return refused.value


def test_words_and_options_come_in_any_order() -> None:
    args = parse(launch, ["--force", "foo", "-m", "hello", "command"])
    assert args.words == ["foo", "command"]
    assert args.flag("force")
    assert args.text("message") == "hello"
    assert (args.word(0), args.word(1), args.word(2)) == ("foo", "command", None)
    assert args.rest is None


@pytest.mark.parametrize(
    "words",
    [["--message", "a=b"], ["--message=a=b"], ["-m", "a=b"], ["-ma=b"], ["-fma=b"], ["-fm", "a=b"]],
)
def test_a_value_follows_its_option_in_every_usual_way(words: list[str]) -> None:
    assert parse(launch, words).text("message") == "a=b"


def test_a_value_may_look_like_an_option_or_be_empty() -> None:
    assert parse(launch, ["-m", "--force"]).text("message") == "--force"
    assert parse(launch, ["-m", "--"]).text("message") == "--"
    assert parse(launch, ["--message="]).text("message") == ""
    assert parse(launch, ["-m", ""]).text("message") == ""
    assert not parse(launch, ["-m", "--force"]).flag("force")


def test_the_last_value_wins_unless_there_can_be_many() -> None:
    args = parse(launch, ["-m", "a", "--message", "b", "-e", "A=1", "--env=B=2", "-eC=3"])
    assert args.text("message") == "b"
    assert args.many("env") == ["A=1", "B=2", "C=3"]
    assert args.many("missing") == []


def test_short_switches_go_together() -> None:
    args = parse(launch, ["-fq"])
    assert args.flag("force")
    assert args.flag("quiet")
    assert refusal(launch, "-fx").message == "launch has no option -x"


def test_a_switch_can_be_turned_off_and_the_last_word_counts() -> None:
    assert parse(launch, ["--connect"]).flag("connect")
    assert not parse(launch, ["--no-connect"]).flag("connect", default=True)
    assert not parse(launch, ["--connect", "--no-connect"]).flag("connect")
    assert parse(launch, []).flag("connect", default=True)
    assert refusal(launch, "--no-force").message == "launch has no option --no-force"


def test_dashes_in_an_option_are_underscores_in_its_key() -> None:
    assert parse(launch, ["--dry-run"]).flag("dry_run")


def test_what_follows_two_dashes_is_left_as_it_is() -> None:
    args = parse(launch, ["foo", "--", "make", "-j", "--", "--force", "-x"])
    assert args.words == ["foo"]
    assert args.rest == ["make", "-j", "--", "--force", "-x"]
    assert not args.flag("force")
    assert parse(launch, ["foo", "--"]).rest == []


def test_for_a_verb_without_a_rest_two_dashes_end_the_options() -> None:
    assert parse(move, ["a", "--", "-b", "--help"]).words == ["a", "-b", "--help"]


def test_a_single_dash_is_a_word() -> None:
    assert parse(launch, ["-"]).words == ["-"]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--forec"], "launch has no option --forec", "did you mean --force?"),
        (["--mesage=x"], "launch has no option --mesage", "did you mean --message?"),
        (["--no-conect"], "launch has no option --no-conect", "did you mean --no-connect?"),
        (["--mess"], "launch has no option --mess", "did you mean --message?"),  # never taken for it
        (["--zzzzzz"], "launch has no option --zzzzzz", "see mngr help launch"),
        (["-m"], "-m needs a value: -m TEXT", None),
        (["--message"], "--message needs a value: --message TEXT", None),
        (["--force=yes"], "--force takes no value", None),
        (["--force="], "--force takes no value", None),
        (["--no-connect=x"], "--no-connect takes no value", None),
        (["--mode", "magic"], "--mode is one of worktree, clone, not 'magic'", None),
        (["a", "b", "c"], "launch does not take 'c'", "usage: mngr launch [NAME] [TYPE] [-- ARGS...]"),
    ],
)
def test_a_wrong_word_is_named_with_what_was_probably_meant(words: list[str], message: str, hint: str | None) -> None:
    error = refusal(launch, *words)
    assert (error.message, error.hint) == (message, hint)
    assert error.code == 2


def test_a_missing_argument_is_named_and_many_may_be_any_number() -> None:
    assert refusal(move).message == "move needs FROM"
    assert refusal(move, "a").message == "move needs TO"
    assert parse(move, ["a", "b", "c", "d"]).words == ["a", "b", "c", "d"]
    assert refusal(launch, "a", "b", "c").hint == "usage: mngr launch [NAME] [TYPE] [-- ARGS...]"


def test_help_needs_no_arguments_and_every_verb_has_it() -> None:
    assert parse(move, ["--help"]).flag("help")
    assert parse(move, ["-h"]).flag("help")
    assert parse(move, ["a", "b", "-S", "a.b=c", "--set", "d=e"]).many("set") == ["a.b=c", "d=e"]


def test_what_was_given_wins_over_a_default_from_elsewhere() -> None:
    args = parse(launch, ["--no-connect", "-m", "mine"])
    args.defaults = {"connect": True, "message": "theirs", "force": True, "env": ["A=1"], "count": 3}
    assert not args.flag("connect")
    assert args.text("message") == "mine"
    assert args.flag("force")
    assert args.many("env") == ["A=1"]
    assert args.count("count", 1) == 3


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten", "", "10001", "٣" * 6, "9" * 5000])
def test_a_count_is_a_whole_number_that_makes_sense(text: str) -> None:
    with pytest.raises(UsageError, match="--count takes a whole number"):
        parse(launch, [f"--count={text}"]).count("count", 1)


def test_a_count_has_a_default() -> None:
    assert parse(launch, []).count("count", 1) == 1
    assert parse(launch, ["--count", "10000"]).count("count", 1) == 10000


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("1.5", 1.5), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400), ("0", 0), ("0.5m", 30)],
)
def test_a_time_is_read_with_its_unit(text: str, value: float) -> None:
    assert seconds(text, "--timeout") == value


@pytest.mark.parametrize("text", ["", "s", "-1", "-1s", "soon", "5x", "5 minutes", "nan", "inf", "1e99", "5ms"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--timeout takes seconds"):
        seconds(text, "--timeout")


words = st.lists(
    st.text(max_size=6)
    | st.sampled_from(
        ["-", "--", "-f", "-fq", "-m", "--message", "--mode=clone", "-e", "--connect", "--no-", "-=", "-hx"]
    ),
    max_size=8,
)


@given(words)
def test_any_words_are_parsed_or_refused_in_one_line_and_none_are_lost(line: list[str]) -> None:
    try:
        args = parse(launch, line)
    except UsageError:
        return
    before = line[: line.index("--")] if args.rest is not None and "--" in line else line
    assert [word for word in args.words if word not in before] == []
    if args.rest:
        assert line[-len(args.rest) :] == args.rest
