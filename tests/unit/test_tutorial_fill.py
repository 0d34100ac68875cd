"""Proposals for blanks: what counts as one, what is kept of them, the review file, and how a tutorial is filled."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.e2e.sandbox import processes
from mngr.errors import MngrError, UsageError
from mngr.hosts.sockets import socket_path
from mngr.tutorial.blocks import parse
from mngr.tutorial.fill import edited, keep, read_source, reject, tried, unanswered, write_kept
from mngr.tutorial.proposals import KEEP, OPEN, REJECT, Proposal, Store, flaw_of, read_answer
from mngr.tutorial.review import ANYWAY, read_review, write_review
from mngr.tutorial.trial import Trial, try_block

TUTORIAL = """\
# One
# ========

# show the version

true

# list
# everything

# show the version
"""


@pytest.fixture
def tutorial(tmp_path: Path) -> Path:
    path = tmp_path / "tutorial.sh"
    path.write_text(TUTORIAL)
    return path


@pytest.fixture
def store(tmp_path: Path, tutorial: Path) -> Store:
    """With two proposals for the first blank, and one for each of the others."""
    store = Store(str(tmp_path / "home"), str(tutorial))
    store.proposals, problems = read_answer(
        answer(
            (4, "# show the version", "tool -V", "tool --version"),
            (8, "# list\n# everything", "# all\ntool ls"),
            (11, "# show the version", "tool -V"),
        ),
        parse(TUTORIAL).blanks,
    )
    assert problems == []
    store.save()
    return store


def answer(*items: tuple[object, ...]) -> str:
    return json.dumps({"proposals": [{"line": line, "text": text, "blocks": blocks} for line, text, *blocks in items]})


# What is a proposal.


def test_an_answer_is_read_blank_by_blank(store: Store) -> None:
    assert [(each.line, each.section, each.block) for each in store.proposals] == [
        (4, "One", "tool -V"),
        (4, "One", "tool --version"),
        (8, "One", "# all\ntool ls"),
        (11, "One", "tool -V"),
    ]
    assert len({each.id for each in store.proposals}) == 4


@pytest.mark.parametrize(
    ("block", "flaw"),
    [
        ("tool ls", ""),
        ("# all of it\ntool ls \\\n  --all", ""),
        ("cat <<E\nx\nE", ""),
        ("", "it has no command in it"),
        ("# only words", "it has no command in it"),
        ("tool ls\n\ntool rm", "it is not one paragraph"),
        ("tool ls\n\n# and then", "it is not one paragraph"),
        ("cat <<E\n\nE", "a blank line in the heredoc of line 1 splits its block"),
        ("tool \x1b[31m", "it has control characters in it"),
        ("# Title\n# ========\ntool ls", "it begins with a heading"),
        ("tool " + "x" * 10_000, "it is longer than 10000 characters"),
    ],
)
def test_only_a_block_can_be_proposed(block: str, flaw: str) -> None:
    assert flaw_of(block) == flaw


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"proposals": {}}', "null", "[" * 100_000])
def test_an_answer_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(MngrError):
        read_answer(text, parse(TUTORIAL).blanks)


def test_what_is_wrong_in_an_answer_is_told_and_the_rest_is_taken() -> None:
    items: list[object] = json.loads(
        answer((4, "# another"), (8, "# list\n# everything", "x\n\ny", "tool ls"), (4, "# show the version"))
    )["proposals"]
    items += [7, {"line": 4, "text": "# show the version", "blocks": "tool"}, {"line": 4, "text": None}]
    found, problems = read_answer(json.dumps({"proposals": items}), parse(TUTORIAL).blanks)
    assert [each.block for each in found] == ["tool ls"]
    assert problems == [
        "proposal 1: no such paragraph in the tutorial",
        "proposal 2, for line 8: it is not one paragraph",
        "proposal 3: no blocks",
        "proposal 4: no such paragraph in the tutorial",
        "proposal 5: no blocks",
        "proposal 6: no such paragraph in the tutorial",
    ]


def test_no_more_than_three_are_taken_for_a_blank() -> None:
    found, _ = read_answer(answer((4, "# show the version", "a", "b", "c", "d")), parse(TUTORIAL).blanks)
    assert [each.block for each in found] == ["a", "b", "c"]


@settings(max_examples=50)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_answer_breaks_the_reader(value: object) -> None:
    read_answer(
        json.dumps({"proposals": [value, {"text": "# list\n# everything", "blocks": value}]}), parse(TUTORIAL).blanks
    )


@pytest.mark.parametrize("name", ["README.md", "Notes.MARKDOWN"])
def test_headings_of_markdown_are_no_blanks(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# Title\n\n## Use\n")
    with pytest.raises(UsageError, match="blanks are filled in shell files, not in Markdown"):
        read_source(str(tmp_path / name))


# What is kept of them.


def test_proposals_survive_and_move_with_their_blanks(store: Store, tutorial: Path) -> None:
    keep(store, store.proposals[0].replace(trial=Trial(code=0, seconds=0.5, output="1.0\n")))
    tutorial.write_text("# new\n\n" + TUTORIAL)
    again = Store(os.path.dirname(os.path.dirname(store.path)), str(tutorial))
    again.load(read_source(str(tutorial)).tutorial.blanks)
    assert [(each.line, each.id) for each in again.proposals] == [
        (line, each.id) for line, each in zip((6, 6, 10, 13), store.proposals, strict=True)
    ]
    assert again.proposals[0].trial == Trial(code=0, seconds=0.5, output="1.0\n")
    assert again.proposals[0].decision == KEEP
    assert [each.block for each in again.undecided()] == ["# all\ntool ls", "tool -V"]  # one is kept for the first


def test_proposals_for_a_blank_that_is_gone_are_offered_when_it_is_back(store: Store, tutorial: Path) -> None:
    tutorial.write_text("# show the version\n")
    store.load(read_source(str(tutorial)).tutorial.blanks)
    assert [(each.line, each.block) for each in store.proposals] == [(1, "tool -V"), (1, "tool --version")]
    store.save()
    tutorial.write_text("\n" * 20 + "# show the version\n")  # below where the other one was
    store.load(read_source(str(tutorial)).tutorial.blanks)
    assert [(each.line, each.block) for each in store.undecided()] == [(21, "tool -V"), (21, "tool --version")]
    store.save()
    tutorial.write_text(TUTORIAL)
    store.load(read_source(str(tutorial)).tutorial.blanks)
    assert [(each.line, each.block) for each in store.undecided()] == [
        (4, "tool -V"),
        (4, "tool --version"),
        (8, "# all\ntool ls"),
        (11, "tool -V"),
    ]


def test_a_damaged_store_is_told_and_left(store: Store) -> None:
    for text in ("{", "[]", '{"proposals": [1]}', '{"proposals": [{"id": "a"}]}'):
        Path(store.path).write_text(text)
        with pytest.raises(MngrError, match="is damaged"):
            store.load(parse(TUTORIAL).blanks)
        assert Path(store.path).read_text() == text


def test_blanks_with_nothing_but_rejections_are_asked_for_again(store: Store, tutorial: Path) -> None:
    source = read_source(str(tutorial))
    assert unanswered(source, store) == []
    home = os.path.dirname(os.path.dirname(store.path))
    reject(home, store, store.proposals[0], "too short")
    assert unanswered(source, store) == []
    reject(home, store, store.proposals[1], "too long")
    assert [blank.line for blank in unanswered(source, store)] == [4]


# Writing them.


def test_a_block_goes_below_its_comment_or_takes_its_place(store: Store, tutorial: Path) -> None:
    source = read_source(str(tutorial))
    for proposal in store.proposals[:3]:
        keep(store, proposal)
    assert [each.line for each in write_kept(source, store)] == [4, 4, 8]
    assert tutorial.read_text() == (
        "# One\n# ========\n\n# show the version\ntool -V\n\ntool --version\n\ntrue\n\n# all\ntool ls\n\n"
        "# show the version\n"
    )
    assert [each.line for each in store.proposals] == [11]
    store.load(read_source(str(tutorial)).tutorial.blanks)
    assert [each.line for each in store.proposals] == [14]


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks_stay_as_they_are(store: Store, tutorial: Path, end: str, last: bool, mark: bytes) -> None:
    text = TUTORIAL if last else TUTORIAL.removesuffix("\n")
    tutorial.write_bytes(mark + text.replace("\n", end).encode())
    tutorial.chmod(0o755)
    source = read_source(str(tutorial))
    for proposal in store.proposals[2:]:
        keep(store, proposal)
    write_kept(source, store)
    wanted = text.replace("# list\n# everything", "# all\ntool ls").removesuffix("\n") + "\ntool -V" + "\n" * last
    assert tutorial.read_bytes() == mark + wanted.replace("\n", end).encode()
    assert tutorial.stat().st_mode & 0o777 == 0o755


def test_a_tutorial_that_has_changed_is_left_alone_and_nothing_is_forgotten(store: Store, tutorial: Path) -> None:
    source = read_source(str(tutorial))
    keep(store, store.proposals[0])
    tutorial.write_text(TUTORIAL + "\necho new\n")
    with pytest.raises(MngrError, match="has changed meanwhile"):
        write_kept(source, store)
    assert tutorial.read_text() == TUTORIAL + "\necho new\n"
    assert sorted(os.listdir(tutorial.parent)) == ["home", "tutorial.sh"]
    write_kept(read_source(str(tutorial)), store)
    assert "# show the version\ntool -V\n" in tutorial.read_text()


def test_without_anything_kept_nothing_is_written(store: Store, tutorial: Path) -> None:
    source = read_source(str(tutorial))
    tutorial.unlink()
    assert write_kept(source, store) == []


# The review file.


def test_a_review_file_says_what_is_proposed_and_unchanged_decides_nothing(store: Store) -> None:
    ran = store.proposals[0].replace(trial=Trial(code=2, seconds=0.25, output="\x1b[31mno\x1b[0m\n" * 20))
    text = write_review("tutorial.sh", "do it", [ran, *store.proposals[1:]])
    assert "# tutorial.sh:4, One: exit code 2 in 0.2 s\n#   ... 8 more lines before\n" in text
    assert "\x1b" not in text
    assert f"{ran.id} skip\n    # show the version\n    tool -V\n" in text
    found = read_review(text, "f")
    assert [each.id for each in found] == [each.id for each in store.proposals]
    assert {each.decision for each in found} == {OPEN}
    assert text.count("not run yet") == 3
    assert [each.block for each in found] == [each.result for each in store.proposals]


def test_decisions_are_read_with_reasons_and_edited_blocks(store: Store) -> None:
    text = write_review("tutorial.sh", "do it", store.proposals)
    one, two, three, _ = store.proposals
    text = text.replace(f"{one.id} skip", f"{one.id} reject:  nobody: ever says that ")
    text = text.replace(f"{two.id} skip", f"{two.id} KEEP").replace("    tool --version", "\ttool --version | cat")
    text = text.replace(f"{three.id} skip", f"{three.id} keep")
    found = read_review(text, "f")
    assert [(each.decision, each.reason) for each in found] == [
        (REJECT, "nobody: ever says that"),
        (KEEP, ""),
        (KEEP, ""),
        (OPEN, ""),
    ]
    assert edited(three, found[2].block) is three
    (anyway,) = read_review(f"{one.id}  keep  Anyway\n    tool\n", "f")
    assert anyway.decision == ANYWAY


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("    tool\n", "f:1: a block with no decision before it"),
        ("# x\n\n1a2b3c4d drop\n    tool\n", "f:3: neither keep, nor skip, nor reject: REASON, but 'drop'"),
        ("1a2b3c4d\n    tool\n", "f:1: neither"),
        ("1a2b3c4d reject\n    tool\n", "f:1: a rejection needs a reason"),
        ("1a2b3c4d reject:\n    tool\n", "f:1: a rejection needs a reason"),
        ("1a2b3c4d keep perhaps\n    tool\n", "f:1: neither"),
        ("1a2b3c4d keep anyway\n", "f:1: this cannot be a block: it has no command in it"),
        ("1a2b3c4d keep\n", "f:1: this cannot be a block: it has no command in it"),
        ("1a2b3c4d keep\n    tool\n\n    tool\n", "f:1: this cannot be a block: it is not one paragraph"),
        ("1a2b3c4d skip\n    a\n\n9a2b3c4d skip\n1a2b3c4d keep\n    a\n", "f:5: 1a2b3c4d is decided in line 1 already"),
        ("1a2b3c4d keep\n    a\n# b\n    c\n", "f:3: a note inside of a block would be lost"),
        ("1a2b3c4d keep\n# b\n    c\n", "f:2: a note inside of a block would be lost"),
    ],
)
def test_a_review_file_that_cannot_be_understood_is_told_by_its_line(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_review(text, "f")
    assert caught.value.message.startswith(told)


# Running them.


def test_a_trial_has_a_home_a_repository_and_the_users_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool $1 >&2\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    monkeypatch.setenv("SECRET", "1")
    trial = try_block('# look\ngit log --format=%s\necho "$HOME $MNGR_HOME ${SECRET-none}"\ntool 1')
    lines = trial.output.splitlines()
    assert (trial.code, lines[0], lines[2]) == (0, "First commit", "tool 1")
    home, mngr_home, secret = lines[1].split()
    assert secret == "none"
    assert home != os.environ["HOME"]
    assert not os.path.exists(home)
    assert os.path.dirname(home) == os.path.dirname(mngr_home)


def test_a_block_that_cannot_be_run_at_all_has_failed() -> None:
    trial = try_block("# " + "x" * 3_000_000)
    assert (trial.ok, "too long" in trial.output) == (False, True), trial.output


def test_the_first_command_that_fails_counts() -> None:
    assert try_block("true\n(exit 3)\ntrue").code == 3


def test_a_trial_that_does_not_end_is_ended_and_leaves_nothing() -> None:
    trial = try_block("echo $HOME\nsleep 100 & sleep 100", limit=1)
    assert (trial.code, trial.timed_out) == (124, True)
    assert not try_block("exit 124").timed_out
    assert processes(Path(trial.output.strip()).parent) == {}


def test_agents_that_a_trial_starts_end_with_it() -> None:
    trial = try_block("echo $MNGR_HOME\nmngr create a command -- sleep 100\nmngr list --format '{state}'")
    assert trial.code == 0, trial.output
    home, _, state = trial.output.split()
    assert state == "running"
    assert processes(Path(home).parent) == {}
    assert not Path(home).parent.exists()
    assert not os.path.lexists(socket_path(home))


def test_each_proposal_is_run_once(store: Store, tmp_path: Path) -> None:
    proposal = Proposal(id="1", blank="# show", section="", line=4, block=f"echo x >>{tmp_path}/ran; exit 1")
    once = tried(str(tmp_path / "home"), store, proposal)
    again = tried(str(tmp_path / "home"), store, once)
    assert once is again
    assert (tmp_path / "ran").read_text() == "x\n"
    changed = edited(again, "true")
    assert changed.trial is None
    assert changed.id == proposal.id
