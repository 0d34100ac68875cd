"""`start`: a script and its three pipes. Files, git and feeds go through it."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from mngr.testing.running import AWKWARD
from mngr.testing.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.hosts import Host

MUCH = 100 << 20
BLOCK = 1 << 20
AT_ONCE = 30  # more than an sshd takes on one connection
ROOM = 64 << 20  # bytes that the local program may need on top while much more passes


class Streaming:
    def test_a_stream_has_three_ends(self, host: Host) -> None:
        with Stream(host, "cat; echo err >&2; exit 3") as stream:
            stream.write(b"in")
            stream.close_input()
            assert stream.rest() == (b"in", b"err\n", 3)

    @pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 128, 143, 254, 255])
    def test_its_exit_code_is_that_of_the_script(self, host: Host, code: int) -> None:
        with Stream(host, f"exit {code}") as stream:
            assert stream.rest()[2] == code

    def test_its_arguments_arrive_as_they_are(self, host: Host) -> None:
        words = ["", *AWKWARD, "", "last"]
        with Stream(host, 'printf \'%s\\0\' "$#" "$@"', words) as stream:
            out = stream.rest()[0]
        assert out == b"".join(os.fsencode(word) + b"\0" for word in [str(len(words)), *words])

    def test_every_byte_passes_both_ways(self, host: Host) -> None:
        data = bytes(range(256)) * 3 + b"\r\n~.\n\x04\x03\x1a" + bytes(range(255, -1, -1))
        with Stream(host, "cat") as stream:
            stream.write(data)
            stream.close_input()
            assert stream.rest()[0] == data

    def test_it_answers_before_its_input_ends(self, host: Host) -> None:
        with Stream(host, 'while read -r line; do echo "got $line"; done; echo end') as stream:
            for number in range(50):
                stream.write(b"%d\n" % number)
                assert stream.line() == b"got %d" % number
            stream.close_input()
            assert stream.line() == b"end"

    def test_much_passes_in(self, host: Host) -> None:
        with subprocess.Popen(["cksum"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as local:
            assert local.stdin is not None
            assert local.stdout is not None
            to_local = local.stdin

            def data() -> Iterator[bytes]:
                for _ in range(MUCH // BLOCK):
                    block = os.urandom(BLOCK)
                    to_local.write(block)
                    yield block

            said = bytearray()
            with Stream(host, "cksum") as stream:
                stream.pump(watched(stream.child.pid, data()), said.extend)
                assert stream.child.wait() == 0
            to_local.close()
            assert bytes(said).split()[:2] == local.stdout.read().split()[:2]

    def test_much_passes_out(self, host: Host) -> None:
        expected, sum = hashlib.sha256(b"0123456789abcde\n" * (MUCH // 16)), hashlib.sha256()
        with Stream(host, f"yes 0123456789abcde | head -n {MUCH // 16}") as stream:
            before = memory(stream.child.pid)
            stream.close_input()
            stream.pump([], sum.update)
            grown = memory(stream.child.pid) - before
            assert stream.child.wait() == 0
        assert sum.hexdigest() == expected.hexdigest()
        assert grown < ROOM

    def test_many_can_be_started_at_once(self, host: Host) -> None:
        streams = [Stream(host, 'read -r line; echo "$1 $line"', [str(number)]) for number in range(AT_ONCE)]
        try:
            for stream in streams:
                stream.__enter__()
            for stream in streams:  # all of them run now
                stream.write(b"go\n")
            for number, stream in enumerate(streams):
                assert stream.rest() == (b"%d go\n" % number, b"", 0)
        finally:
            for stream in streams:
                if hasattr(stream, "child"):
                    stream.__exit__(None, None, None)


def watched(pid: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks; at the end, the process through which they went has not kept them."""
    yield next(blocks)
    before = memory(pid)
    yield from blocks
    assert memory(pid) - before < ROOM


def memory(pid: int) -> int:
    """Bytes that a process has needed at most; 0 where that is not told, or when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0
