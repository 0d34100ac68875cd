"""`hosts.run`: a script to its end. What nearly all verbs use."""

from __future__ import annotations

import os
import threading

import pytest

from mngr import hosts
from mngr.errors import MngrError
from mngr.process import quote
from mngr.testing.control import eventually

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host

PRINTABLE = "".join(map(chr, range(32, 127)))
# What shells, terminals and encodings stumble over. The last one is a byte that is no text at all.
AWKWARD = [
    PRINTABLE,
    "line\nanother\n\n",
    " \t leading, trailing \t ",
    "-n",
    "\\n \\\\ \\0",
    "$HOME `id` $(id) !! %s %%",
    "'\"'\"'",
    "über 🦊 \u202e",
    "\r\n\x1b[31m\x07",
    "\udcff\udc80",
]


class Running:
    def test_its_streams_are_told_apart(self, host: Host) -> None:
        done = hosts.run(host, "echo out; echo err >&2; printf 'no newline'")
        assert (done.code, done.out, done.err) == (0, "out\nno newline", "err\n")

    def test_nothing_is_added_to_what_it_says(self, host: Host) -> None:
        assert hosts.run(host, ":").out == ""
        assert hosts.run(host, "printf '\\n\\n'").out == "\n\n"
        assert hosts.run(host, "exit 3").err == ""

    def test_every_exit_code_is_told(self, host: Host) -> None:
        assert [hosts.run(host, f"exit {code}").code for code in range(256)] == list(range(256))

    def test_the_end_of_a_program_by_a_signal_is_told(self, host: Host) -> None:
        for number in (9, 15):
            assert hosts.run(host, f"sh -c 'kill -{number} $$'\nexit $?").code == 128 + number

    def test_it_runs_plain_sh_whatever_the_shell_of_the_user_is(self, host: Host) -> None:
        script = (
            'f() { local x=1; echo "${1#a}$x"; }\nfor i in ab; do f "$i"; done; case $0 in *fish*) echo fish ;; esac'
        )
        assert hosts.check(host, script) == "b1\n"

    def test_it_knows_where_things_are(self, host: Host) -> None:
        assert hosts.check(host, 'printf "%s\\n" "$H" "$S"') == f"{host.home}\n{host.socket}\n"

    def test_one_script_leaves_nothing_to_the_next(self, host: Host) -> None:
        hosts.run(host, "left=over; cd /; set -f; trap 'echo trapped' EXIT; exit 4")
        assert hosts.check(host, 'echo "${left-nothing}"; echo /et[c]') == "nothing\n/etc\n"

    def test_it_has_no_input(self, host: Host) -> None:
        assert hosts.check(host, "cat; echo end; read -r line || echo none") == "end\nnone\n"

    def test_nothing_of_our_environment_goes_there(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        if host.lines is None:
            pytest.skip("this host has our environment")
        monkeypatch.setenv("MNGR_CANARY", "sings")
        host.lines.close()
        assert "sings" not in hosts.check(host, "env")

    @pytest.mark.parametrize("text", AWKWARD, ids=ascii)
    def test_every_character_arrives(self, host: Host, text: str) -> None:
        assert hosts.check(host, f"printf %s {quote(text)}") == text

    def test_what_it_reads_from_a_here_document_is_as_it_was(self, host: Host) -> None:
        assert hosts.check(host, f"cat <<'END'\n{PRINTABLE}\n  $x `y`\nEND\n") == f"{PRINTABLE}\n  $x `y`\n"

    def test_a_comment_may_be_its_last_line(self, host: Host) -> None:
        assert hosts.check(host, "echo said # and no more") == "said\n"

    def test_a_script_that_is_none_is_an_error_and_harms_nobody(self, host: Host) -> None:
        try:
            assert hosts.run(host, "if then fi").code != 0
        except MngrError:
            pass
        assert hosts.check(host, "echo next") == "next\n"

    def test_a_script_may_have_a_megabyte(self, host: Host) -> None:
        text = os.urandom(1 << 19).hex()
        assert hosts.check(host, f"printf %s {text} | cksum; text={text}; echo ${{#text}}").split()[1:] == [
            str(1 << 20),
            str(1 << 20),
        ]

    def test_an_answer_may_have_many_megabytes(self, host: Host) -> None:
        said = hosts.check(host, "yes 0123456789abcde | head -n 1000000")
        assert len(said) == 16_000_000
        assert said == "0123456789abcde\n" * 1_000_000

    def test_many_at_once_do_not_mix(self, host: Host) -> None:
        said: dict[int, str] = {}

        def ask(number: int) -> None:
            said[number] = hosts.check(host, f"i=0; while [ $i -lt 200 ]; do echo {number}; i=$((i + 1)); done")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == {number: f"{number}\n" * 200 for number in range(20)}

    def test_a_secret_is_on_no_command_line(self, host: Host, there: str) -> None:
        secret = os.urandom(16).hex()
        told: list[str] = []
        asking = threading.Thread(
            target=lambda: told.append(
                hosts.check(
                    host,
                    f"key={secret}; : >{there}/begun; until [ -e {there}/seen ]; do sleep 0.1; done; echo ${{#key}}",
                    private=True,
                )
            )
        )
        asking.start()
        try:
            eventually(lambda: hosts.run(host, f"[ -e {there}/begun ]").code == 0, "the script runs")
            # The pattern does not match itself, and `ps` is asked by a script that has no secret in it.
            half = f"{secret[:16]}[{secret[16]}]{secret[17:]}"
            assert hosts.run(host, f"ps -A -ww -o args 2>/dev/null | grep {half}").out == ""
            with os.popen("ps -A -ww -o args") as here:
                assert secret not in here.read()
        finally:
            hosts.check(host, f": >{there}/seen")
            asking.join()
        assert told == ["32\n"]
