"""Agents on other machines, by the ordinary verbs: real sshd, real links that break."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agents import commit_noise
from tests.home import Mngr, wait_until
from tests.places.network import Machine

STAY = ("command", "--", "sleep", "1000")


def test_one_word_changes_and_nothing_else(mngr: Mngr, repo: Path, box: Machine) -> None:
    mngr.ok("create", "far@box.ssh", "command", "--", "cat")
    mngr.ok("create", "near", "command", "--", "cat")
    mngr.ok("wait", "far", "near", "--for", "running", "--timeout", "20")
    assert mngr.ok("list", "--format", "{name} {state} {host} {branch}") == (
        "far running box.ssh mngr/far\nnear running local mngr/near\n"
    )
    assert mngr.ok("exec", "far", "--", "hostname") == "box\n"
    assert mngr.ok("exec", "far", "--", "git", "log", "-1", "--format=%s") == "First commit\n"
    assert mngr.ok("message", "far", "near", "-m", "hello") == "typed far\ntyped near\n"
    wait_until(lambda: "hello" in mngr.ok("capture", "far"))
    mngr.ok("exec", "far", "--", "sh", "-c", "echo new >new; git add new; git commit -qm 'From afar'")
    assert mngr.ok("exec", "far", "--", "git", "log", "-1", "--format=%an") == "Test User\n"
    assert mngr.ok("pull", "far").startswith("pulled far: mngr/far has 1 new commit")
    assert mngr.home.run("git", "log", "-1", "--format=%s", "mngr/far") == "From afar\n"
    assert mngr.ok("stop", "far", "near") == "stopped far\nstopped near\n"
    assert mngr.ok("start", "far") == "started far\n"
    assert mngr.ok("destroy", "-f", "far", "near") == "destroyed far\ndestroyed near\n"
    assert mngr.ok("list") == "no agents yet: mngr create NAME command -- PROGRAM\n"
    assert box.run("ls .mngr/agents .mngr/work") == ".mngr/agents:\n\n.mngr/work:\n"


def test_what_agents_start_from_comes_along(mngr: Mngr, repo: Path, box: Machine) -> None:
    (repo / ".env").write_text("KEY=1\n")
    (repo / "README.md").write_text("changed\n")
    told = mngr("create", "plain@box.ssh", *STAY)
    assert "1 uncommitted change stays behind" in told.err
    told = mngr("create", "dirty@box.ssh", "--dirty", "--copy", ".env", *STAY)
    assert told.code == 0, told.err
    assert (
        mngr.ok("exec", "plain", "--", "sh", "-c", "cat README.md; ls -A")
        == "# Sample\n.git\n.gitignore\nREADME.md\nsrc\n"
    )
    assert mngr.ok("exec", "dirty", "--", "cat", "README.md", ".env") == "changed\nKEY=1\n"
    plain = mngr.home.root / "plain"
    plain.mkdir()
    (plain / "a file").write_text("text\n")
    mngr.ok("create", "copied@box.ssh", "--from", str(plain), *STAY)
    assert mngr.ok("exec", "copied", "--", "cat", "a file") == "text\n"
    assert box.run("ls -A .mngr/carry") == ""
    assert box.run("ls .mngr/repos | wc -l").strip() == "1"
    mngr.ok("destroy", "-f", "--all")


def test_a_create_that_is_interrupted_leaves_nothing_there_and_no_name_here(
    mngr: Mngr, repo: Path, box: Machine
) -> None:
    mngr.ok("create", "first@box.ssh", *STAY)
    creating = mngr.popen("create", "far@box.ssh", "-n", "3", "--setup", "touch ~/begun; sleep 1000", *STAY)
    wait_until(lambda: box.run("ls") == "begun\n", 30)
    creating.send_signal(signal.SIGINT)
    _, err = creating.communicate(timeout=60)
    assert creating.returncode == 130
    assert "kept" not in err
    assert set(os.listdir(mngr.home.mngr_home / "names")) == {"first", ".lock"}
    assert box.run("ls .mngr/agents .mngr/work | grep -c '^[0-9a-f]\\{12\\}$'").strip() == "2"
    mngr.ok("destroy", "-f", "first")


@pytest.mark.parametrize("megabytes", [1, 20], ids=["pushed", "as a pack"])
def test_creates_at_once_share_what_one_of_them_sends(mngr: Mngr, repo: Path, box: Machine, megabytes: int) -> None:
    commit_noise(mngr.home, repo, megabytes)
    creates = [mngr.popen("create", f"far-{number}@box.ssh", *STAY) for number in range(4)]
    told = [create.communicate(timeout=120)[1] for create in creates]
    assert [create.returncode for create in creates] == [0] * 4, told
    assert sum("packing" in each for each in told) == (megabytes > 16)
    sizes = mngr.ok("exec", "far-0", "far-3", "--", "sh", "-c", "wc -c <large").split()
    assert sizes.count(str(megabytes << 20)) == 2
    assert box.run("ls .mngr/carry 2>/dev/null || :") == ""
    assert not [path.name for path in (mngr.home.mngr_home / "hosts").iterdir() if "repo-" in path.name]
    mngr.ok("destroy", "-f", "--all")


@pytest.mark.proof
def test_a_large_repository_goes_on_after_a_cut(mngr: Mngr, repo: Path, box: Machine) -> None:
    commit_noise(mngr.home, repo, 64)
    creating = mngr.popen("create", "far@box.ssh", *STAY)
    part = "cat .mngr/carry/*.part 2>/dev/null | wc -c"
    wait_until(lambda: int(box.run(part)) > 1 << 20, 60)
    box.cut()
    before = int(box.run(part))
    assert before < 64 << 20
    assert creating.stderr
    while "went away" not in (line := creating.stderr.readline()):
        assert line, "it ended"
    box.heal()
    out, err = creating.communicate(timeout=60)
    assert (creating.returncode, out) == (0, "far\n"), err
    size = "git -C .mngr/repos/*.git count-objects -v | grep size-pack"
    assert int(box.run(size).split()[1]) >= 64 << 10
    assert mngr.ok("exec", "far", "--", "sh", "-c", "wc -c <large").strip() == str(64 << 20)
    mngr.ok("destroy", "-f", "far")
