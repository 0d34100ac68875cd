"""Names and addresses: what is accepted is safe everywhere it is put to use; everything else is a usage error."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.address import (
    LONGEST_NAME,
    Address,
    check_name,
    is_name,
    made_up_name,
    nearest,
    parse_address,
    split_path,
)
from mngr.errors import UsageError
from mngr.process import quote

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
names = st.from_regex(NAME, fullmatch=True)
# Mostly what nearly is a name or an address: plain text is hardly ever one.
nearly = st.text(alphabet=st.sampled_from("ab09-_@.:/ ~*=#$'\"\\\n\tAÄ٣é\x00"), max_size=70) | st.text(max_size=70)


@given(nearly | names)
@example("")
@example("a" * LONGEST_NAME)
@example("a" * (LONGEST_NAME + 1))
@example("a\n")
@example("٣")
def test_a_name_is_exactly_what_the_rule_says(text: str) -> None:
    assert is_name(text) == bool(NAME.fullmatch(text))
    if is_name(text):
        assert check_name(text) == text
    else:
        with pytest.raises(UsageError, match="not a valid host name"):
            check_name(text, "host name")


@given(st.builds(Address, name=st.none() | names, host=st.none() | names, provider=st.none() | names))
def test_an_address_is_read_back_as_it_was_written(address: Address) -> None:
    if address == Address():
        with pytest.raises(UsageError):
            parse_address(str(address))
    else:
        assert parse_address(str(address)) == address


@given(nearly | st.builds("{}@{}.{}".format, names, names, names))
@example("@")
@example("foo@")
@example("foo@.")
@example("foo@box.")
@example("foo@box.ssh.ssh")
@example("foo@box@box")
@example("@.modal")
def test_a_text_is_an_address_of_names_or_a_usage_error(text: str) -> None:
    try:
        address = parse_address(text)
    except UsageError:
        return
    parts = [part for part in (address.name, address.host, address.provider) if part is not None]
    assert parts
    assert all(NAME.fullmatch(part) for part in parts)
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("foo", Address(name="foo")),
        ("foo@box", Address(name="foo", host="box")),
        ("foo@box.ssh", Address(name="foo", host="box", provider="ssh")),
        ("foo@.modal", Address(name="foo", provider="modal")),
        ("@box", Address(host="box")),
    ],
)
def test_addresses_as_people_type_them(text: str, address: Address) -> None:
    assert parse_address(text) == address


# Names that look like something else to one of the programs that get them.
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TRICKY = ["0", "1", "a-", "a_", "0-0", "head", "refs", "lock", "a--b", "a__", "x" * LONGEST_NAME, "do", "done", "if"]


def test_a_name_is_one_shell_word_that_needs_no_quoting() -> None:
    assert [quote(name) for name in TRICKY] == TRICKY
    said = subprocess.run(["sh", "-c", "printf '%s\n' " + " ".join(TRICKY)], capture_output=True, text=True)
    assert said.stdout.split("\n") == [*TRICKY, ""]


def test_a_name_is_a_branch_component(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path], check=True)
    commit = subprocess.run(
        ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a", "commit-tree", "-m", "x", EMPTY_TREE],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    lines = "".join(f"create refs/heads/mngr/{name} {commit}\n" for name in TRICKY)
    subprocess.run(["git", "-C", tmp_path, "update-ref", "--stdin"], input=lines, text=True, check=True)
    listed = subprocess.run(
        ["git", "-C", tmp_path, "for-each-ref", "--format=%(refname:lstrip=3)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(listed.stdout.split()) == sorted(TRICKY)


def test_a_name_is_a_file_name(tmp_path: Path) -> None:
    for name in TRICKY:
        (tmp_path / name).touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TRICKY)


def test_a_name_is_an_exact_tmux_target(tmp_path: Path) -> None:
    tmux = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "s")]
    commands = [word for name in TRICKY for word in ("new-session", "-d", "-s", name, "sleep 100", ";")]
    try:
        subprocess.run([*tmux, *commands[:-1]], check=True)
        asked = [word for name in TRICKY for word in ("display", "-p", "-t", f"={name}:", "#{session_name}", ";")]
        told = subprocess.run([*tmux, *asked[:-1]], capture_output=True, text=True, check=True)
        assert told.stdout.split() == TRICKY
    finally:
        subprocess.run([*tmux, "kill-server"])


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("foo:a/b", ("foo", "a/b")),
        ("foo:", ("foo", "")),
        ("foo@box.ssh:a:b", ("foo@box.ssh", "a:b")),
        ("./foo:a", None),
        ("/foo:a", None),
        ("foo", None),
        (":a", None),
        ("", None),
    ],
)
def test_a_colon_means_a_file_of_an_agent_unless_a_slash_comes_first(text: str, halves: tuple[str, str] | None) -> None:
    assert split_path(text) == halves


def test_made_up_names_are_names_and_seldom_the_same() -> None:
    made = [made_up_name() for _ in range(200)]
    assert all(NAME.fullmatch(name) for name in made)
    assert len(set(made)) > 150


def test_the_nearest_word_is_found_and_a_far_one_is_not() -> None:
    known = ["create", "connect", "list"]
    assert nearest("craete", known) == "create"
    assert nearest("conect", known) == "connect"
    assert nearest("zzz", known) is None
    assert nearest("create", []) is None
