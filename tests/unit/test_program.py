"""Programs that keep hosts, when they fail, hang or are not there."""

from __future__ import annotations

import pytest

from mngr.errors import HostUnreachable
from mngr.hosts.program import ask, said, watch
from mngr.process import Done


def test_one_that_does_not_answer_is_out_of_reach() -> None:
    with pytest.raises(HostUnreachable, match=r"sleep does not answer within 0\.1 s"):
        ask(["sleep", "1000"], deadline=0.1)
    with pytest.raises(HostUnreachable, match=r"sh is not done within 0\.1 s"):
        watch(["sh", "-c", "exec sleep 1000"], lambda _: None, deadline=0.1)


def test_one_that_is_not_there_is_out_of_reach() -> None:
    with pytest.raises(HostUnreachable, match="cannot run nowhere") as missing:
        ask(["nowhere"], deadline=9)
    assert missing.value.hint == "is nowhere installed?"
    with pytest.raises(HostUnreachable, match="cannot run nowhere"):
        watch(["nowhere"], lambda _: None, deadline=9)


def test_lines_are_told_as_they_come() -> None:
    told: list[str] = []
    done = watch(["sh", "-c", "echo one; echo two >&2; printf 'Error: three'; exit 3"], told.append, deadline=30)
    assert [line for line in told if line] == ["one", "two", "Error: three"]
    assert (done.code, said(done)) == (3, "Error: three")


@pytest.mark.parametrize(
    ("err", "reason"),
    [
        ("Error: no such thing\n", "Error: no such thing"),
        (
            "docker: Error response from daemon: no.\n\nRun 'docker run --help' for more\n",
            "docker: Error response from daemon: no.",
        ),
        ("invalid argument\n\nUsage:  docker run\n\nRun 'docker run --help'\n", "invalid argument"),
        ("", "exit code 7"),
        ("Error: \x1b]0;mine\x07 no\n", "Error:  ]0;mine  no"),
    ],
)
def test_the_reason_is_one_line(err: str, reason: str) -> None:
    assert said(Done(code=7, out="", err=err)) == reason
