"""What follows from running `sh`: git's own transport, and a terminal."""

from __future__ import annotations

import shlex

from mngr import hosts
from mngr.hosts import git
from mngr.testing.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from mngr.hosts import Host

COMMIT = "-c user.name=Test -c user.email=test@example.com commit -q"


class Derived:
    def test_commits_go_there_and_come_back(self, host: Host, there: str, tmp_path: Path) -> None:
        here, far = str(tmp_path / "here"), f"{there}/a repo & more"
        hosts.check(host, f"git init -q --bare '{far}'")
        git.run(".", "init", "-q", here)
        (tmp_path / "here" / "file").write_text("first\n")
        git.run(here, "add", "file")
        ok(here, *shlex.split(COMMIT), "-m", "first")
        ok(here, "push", "-q", git.push_url(host, far), "HEAD:refs/heads/one")
        hosts.check(
            host,
            f"git clone -q -b one '{far}' {there}/clone && cd {there}/clone && echo second >>file &&"
            f" git {COMMIT} -a -m second && git push -q origin HEAD:refs/heads/two",
        )
        ok(here, "fetch", "-q", git.fetch_url(host, far), "refs/heads/two:refs/heads/two")
        assert ok(here, "log", "--format=%s", "two") == "second\nfirst\n"
        assert ok(here, "show", "two:file") == "first\nsecond\n"

    def test_a_repository_that_is_not_there_is_an_error(self, host: Host, there: str, tmp_path: Path) -> None:
        git.run(".", "init", "-q", str(tmp_path))
        assert git.run(str(tmp_path), "fetch", git.fetch_url(host, f"{there}/none"), "refs/heads/a").code != 0

    def test_a_script_can_have_a_terminal(self, host: Host) -> None:
        script = 'tty >/dev/null && echo "a terminal"; while read -r line; do echo "<$line $1>"; done'
        with Terminal(host.argv(script, ["é'\""], tty=True), 30, 100) as terminal:
            terminal.expect(b"a terminal")
            terminal.write("grüße\n".encode())
            terminal.expect("<grüße é'\">".encode())

    def test_its_terminal_is_as_large_as_ours(self, host: Host) -> None:
        with Terminal(host.argv("echo begun; while read -r x; do stty size; done", [], tty=True), 30, 100) as terminal:
            terminal.expect(b"begun")
            for rows, columns in ((30, 100), (41, 123)):
                terminal.resize(rows, columns)
                size = b"%d %d" % (rows, columns)
                for _ in range(300):  # nobody tells when that has got there
                    terminal.write(b"\n")
                    while size not in terminal.said and terminal.read(0.1):
                        pass
                    if size in terminal.said:
                        break
                assert size in terminal.said

    def test_an_interrupt_on_its_terminal_gets_there(self, host: Host) -> None:
        script = "trap 'echo interrupted; exit 9' INT; echo begun; while :; do sleep 1; done"
        with Terminal(host.argv(script, [], tty=True), 30, 100) as terminal:
            terminal.expect(b"begun")
            terminal.write(b"\x03")
            terminal.expect(b"interrupted")


def ok(repo: str, *words: str) -> str:
    done = git.run(repo, *words, deadline=60)
    assert done.code == 0, done.err
    return done.out
