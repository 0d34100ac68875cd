"""The work of agents on other machines: commits both ways, destroy that loses nothing, snapshots and gc, with a real
sshd and a file system that is not ours; and what is said when such a machine is not there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import SLEEP, agent, entries, make
from tests.home import Home, Mngr
from tests.places.containers import Podman
from tests.places.network import HANG_UP, Machine, Network


@pytest.fixture
def other(over_ssh: Network) -> Iterator[Machine]:
    machine = over_ssh.boot("other")
    yield machine
    machine.remove()


def commit(box: Machine, place: Path, text: str) -> str:
    """A commit of an agent there; its id."""
    name = text.lower().replace(" ", "-")
    return box.run(
        f"cd {place} && echo {text} >{name} && git add {name} && git commit -q -m '{text}' && git rev-parse HEAD"
    ).strip()


def refs(home: Home, *patterns: str) -> dict[str, str]:
    """Of the user's repository: name to commit."""
    lines = home.run("git", "for-each-ref", "--format=%(refname) %(objectname)", *patterns).splitlines()
    return dict(line.split(" ") for line in lines)


def names(mngr: Mngr) -> list[str]:
    return entries(mngr.home.mngr_home / "names")


# Commits.


def test_commits_come_home_from_a_file_system_that_is_not_ours(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    assert not work.exists()
    commit(box, work, "One")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a has 1 new commit in {repo}\n"
    commit(box, work, "Two")
    tip = commit(box, work, "Three")
    box.run(f"touch {work}/untracked")
    assert mngr.ok("pull", "a") == f"pulled a: mngr/a has 2 new commits in {repo}; 1 uncommitted file stays there\n"
    assert refs(home)["refs/heads/mngr/a"] == tip
    assert "up to date" in mngr.ok("pull", "a")
    assert "ext::" not in home.run("git", "reflog", "mngr/a")


def test_a_branch_that_is_checked_out_here_moves_with_its_files(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    commit(box, work, "One")
    mngr.ok("pull", "a", "--merge")
    assert (repo / "one").exists()
    home.run("git", "checkout", "-q", "mngr/a")
    tip = commit(box, work, "Two")
    mngr.ok("pull", "a")
    assert home.run("git", "rev-parse", "HEAD").strip() == tip
    assert (repo / "two").exists()


def test_other_branches_come_too(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    work = make(mngr, "a@box.ssh")
    box.run(f"cd {work} && git checkout -q -b aside")
    tip = commit(box, work, "Aside")
    assert "it is on aside, not on mngr/a; aside is here as mngr/a--aside" in mngr.ok("pull", "a")
    assert refs(home)["refs/heads/mngr/a--aside"] == tip
    home.run("git", "branch", "-f", "mngr/a--aside", "main~0")
    home.run("git", "checkout", "-q", "mngr/a--aside")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "In the way")
    said = mngr.ok("pull", "a")
    assert "aside is not pulled" in said
    assert "mngr pull a --repo DIR" in said
    assert str(work) not in said


def test_commits_go_there(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    work = make(mngr, "a@box.ssh")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "More")
    tip = home.run("git", "rev-parse", "HEAD").strip()
    assert mngr.ok("push", "a") == f"pushed a: {tip[:12]} is now in mngr/a, 1 commit on\n"
    assert box.run(f"git -C {work} rev-parse HEAD").strip() == tip
    elsewhere = home.root / "elsewhere"
    home.run("git", "clone", "-q", str(repo), str(elsewhere))
    home.run("git", "commit", "-q", "--allow-empty", "-m", "From elsewhere", cwd=elsewhere)
    mngr.ok("push", "a", "--repo", str(elsewhere))
    assert box.run(f"git -C {work} log -1 --format=%s") == "From elsewhere\n"


def test_the_agents_of_a_host_that_is_away_fail_and_nothing_is_changed(
    mngr: Mngr, home: Home, repo: Path, box: Machine, other: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    there = make(mngr, "b@other.ssh")
    commit(box, work, "One")
    commit(other, there, "Two")
    box.crash()
    before = refs(home)
    alone = mngr("pull", "a")
    assert (alone.code, alone.out, alone.err.count("\n")) == (5, "", 1), alone.err
    assert alone.err.startswith("mngr: a: box.ssh: ")
    assert mngr("push", "a").code == 5
    assert refs(home) == before
    both = mngr("pull", "a", "b")
    assert both.code == 6
    assert both.out.startswith("pulled b: mngr/b has 1 new commit")
    assert "mngr: a: box.ssh: " in both.err


def test_a_cut_in_the_middle_of_a_pull_is_told_in_one_line(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    work = make(mngr, "a@box.ssh")
    commit(box, work, "One")
    before = refs(home)
    # the connection ends after the agent was looked at, when git asks for its commits
    ends = f"{HANG_UP}; exec sleep 60; :"
    box.run(f"git config --global uploadpack.packObjectsHook '{ends}'")
    result = mngr("pull", "a")
    assert (result.code, result.out, result.err.count("\n")) == (5, "", 1), result.err
    assert result.err.startswith("mngr: a: box.ssh: ")
    assert refs(home) == before


# Destroy.


def test_unpulled_commits_make_destroy_refuse_until_they_are_pulled(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    assert mngr.ok("destroy", "a", "--dry-run") == "a: would be destroyed; nothing is lost\n"
    commit(box, work, "One")
    commit(box, work, "Two")
    refused = mngr("destroy", "a")
    assert refused.code == 1
    assert "2 commits would be lost: mngr pull it first" in refused.err
    mngr.ok("pull", "a")
    commit(box, work, "Three")
    assert "refused: 1 commit would be lost" in mngr.ok("destroy", "a", "--dry-run")
    mngr.ok("pull", "a")
    assert mngr.ok("destroy", "a", input="y\n") == "destroyed a\n"
    assert not names(mngr)
    assert box.run("ls .mngr/work .mngr/agents .mngr/trash 2>/dev/null", check=False).split() == [
        ".mngr/agents:",
        ".mngr/work:",
    ]


def test_uncommitted_files_make_destroy_refuse_and_come_home_with_f(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    commit(box, work, "One")
    box.run(f"echo draft >{work}/draft")
    assert "1 commit and 1 uncommitted file would be lost" in mngr("destroy", "a").err
    id = agent(mngr, "a")["id"]
    trash = f"refs/mngr/trash/{id}"
    said = mngr.ok("destroy", "-f", "a")
    assert said == f"destroyed a: 1 commit and 1 uncommitted file kept for 14 days as {trash} in {repo}\n"
    assert home.run("git", "show", f"{trash}:draft") == "draft\n"
    assert home.run("git", "log", "-1", "--format=%s", f"{trash}^") == "One\n"
    assert box.run("ls .mngr/trash; git -C .mngr/repos/*.git for-each-ref refs/mngr/trash") == ""
    record = home.mngr_home / "trash" / id
    assert record.read_text().splitlines()[1:] == ["a", str(repo), trash]
    assert mngr.ok("gc") == "nothing is left over\n"
    record.write_text(record.read_text().replace(record.read_text().splitlines()[0], "1000000000", 1))
    assert "parked work, older than 14 days" in mngr.ok("gc")
    assert not refs(home, "refs/mngr/trash")


def test_what_cannot_come_home_stays_parked_there_and_is_told(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    work = make(mngr, "a@box.ssh")
    commit(box, work, "One")
    id = agent(mngr, "a")["id"]
    repo.rename(repo.with_name("gone"))
    said = mngr.ok("destroy", "-f", "a", cwd=home.root)
    assert f"kept for 14 days as refs/mngr/trash/{id} in box.ssh:/root/.mngr/repos/" in said
    assert id in box.run("git -C .mngr/repos/*.git for-each-ref refs/mngr/trash")


def test_what_a_copy_has_changed_stays_parked_there_and_is_told(mngr: Mngr, home: Home, box: Machine) -> None:
    place = home.root / "plain"
    place.mkdir()
    (place / "file").write_text("old\n")
    work = make(mngr, "a@box.ssh", "--from", str(place))
    box.run(f"echo new >{work}/file")
    id = agent(mngr, "a")["id"]
    assert "1 uncommitted file would be lost" in mngr("destroy", "a").err
    said = mngr.ok("destroy", "-f", "a")
    assert said.endswith(f"kept for 14 days as box.ssh:/root/.mngr/trash/{id}.files\n")
    assert box.run(f"cat .mngr/trash/{id}.files/file") == "new\n"
    box.run(f"sed -i 1s/.*/1000000000/ .mngr/trash/{id}")
    assert f"box.ssh:trash/{id}: parked work" in mngr.ok("gc")  # although no agent is there any more
    assert box.run("ls .mngr/trash") == ""


def test_a_base_that_only_the_host_has_counts(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    home.run("git", "checkout", "-q", "-b", "topic")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Topic")
    make(mngr, "a@box.ssh")
    assert "nothing is lost" in mngr.ok("destroy", "a", "--dry-run")
    home.run("git", "checkout", "-q", "main")
    home.run("git", "branch", "-q", "-D", "topic")
    assert "1 commit would be lost" in mngr.ok("destroy", "a", "--dry-run")


def test_a_branch_here_that_goes_too_keeps_nothing(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    here = make(mngr, "here")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Only here", cwd=here)
    make(mngr, "there@box.ssh", "--from", "here")
    assert "there: would be destroyed; nothing is lost" in mngr.ok("destroy", "there", "--dry-run")
    both = mngr.ok("destroy", "here", "there", "--dry-run").splitlines()
    assert [line.split(": ", 1)[1][:16] for line in both] == ["would be refused", "would be refused"]


def test_of_two_hosts_the_one_that_is_away_forgets_nothing(
    mngr: Mngr, home: Home, repo: Path, box: Machine, other: Machine
) -> None:
    for name in ("a@box.ssh", "b@box.ssh", "c@other.ssh"):
        make(mngr, name)
    box.crash()
    assert "a: would not be destroyed: box.ssh: " in mngr.ok("destroy", "a", "--dry-run")
    alone = mngr("destroy", "-f", "a")
    assert (alone.code, alone.err.count("\n")) == (5, 1)
    assert alone.err.startswith("mngr: a: box.ssh: ")
    together = mngr("destroy", "-f", "--all")
    assert together.code == 6
    assert together.out == "destroyed c\n"
    assert "mngr: a: box.ssh: " in together.err
    assert "mngr: b: box.ssh: " in together.err
    assert names(mngr) == ["a", "b"]
    box.boot()
    assert mngr.ok("destroy", "-f", "--all") == "destroyed a\ndestroyed b\n"


def test_a_cut_in_the_middle_of_destroy_loses_nothing_and_the_next_one_finishes(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    tip = commit(box, work, "One")
    id = agent(mngr, "a")["id"]
    # the connection ends while the commit is on its way to where it is parked
    box.run(
        f"""
        cd .mngr/repos/*.git && mkdir -p hooks && cd hooks
        printf '%s\\n' '#!/bin/sh' '{HANG_UP}; exec sleep 60' >pre-receive
        chmod +x pre-receive
        """
    )
    result = mngr("destroy", "-f", "a")
    assert (result.code, result.out, result.err.count("\n")) == (5, "", 1), result.err
    assert "how far it came is not known: destroy it again" in result.err
    assert names(mngr) == ["a"]
    box.run("rm .mngr/repos/*.git/hooks/pre-receive")
    box.serve()
    assert mngr.ok("destroy", "-f", "a").endswith(f"kept for 14 days as refs/mngr/trash/{id} in {repo}\n")
    assert tip in home.run("git", "rev-list", f"refs/mngr/trash/{id}")


def test_a_destroy_that_broke_off_after_it_parked_is_finished_by_the_next(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    make(mngr, "a@box.ssh")
    id = agent(mngr, "a")["id"]
    # as the first one left it: the work parked, the agent away, and nobody told
    box.run(
        f"""
        cd .mngr && mkdir -p trash && mv agents/{id} agents/.gone.{id}.1 && rm -rf work/{id}
        printf '%s\\n' 2000000000 a /root/.mngr/repos/r.git refs/mngr/trash/{id} >trash/{id}
        """
    )
    old = time.time() - 100
    os.utime(home.mngr_home / "names" / "a", (old, old), follow_symlinks=False)
    said = mngr.ok("destroy", "-f", "a")
    assert said.endswith(f"kept for 14 days as refs/mngr/trash/{id} in box.ssh:/root/.mngr/repos/r.git\n")
    assert not names(mngr)


# Snapshots.


def test_snapshots_there_are_taken_listed_restored_and_destroyed(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    commit(box, work, "One")
    box.run(f"echo draft >{work}/draft")
    assert mngr.ok("snapshot", "create", "a", "s") == "a/s\n"
    box.run(f"rm {work}/draft && git -C {work} reset -q --hard HEAD~1")
    mngr.ok("snapshot", "restore", "a", "s")
    assert box.run(f"cat {work}/draft {work}/one; git -C {work} log -1 --format=%s") == "draft\nOne\nOne\n"
    clone = make(mngr, "same@box.ssh", "--from", "a/s")
    assert box.run(f"cat {clone}/draft") == "draft\n"
    mngr.ok("snapshot", "destroy", "a", "s")
    mngr.ok("destroy", "--purge", "a", "same")
    assert mngr.ok("snapshot", "list") == "no snapshots\n"
    assert box.run("git -C .mngr/repos/*.git for-each-ref refs/mngr/snapshots") == ""


def test_an_agent_elsewhere_starts_from_a_snapshot_there(
    mngr: Mngr, home: Home, repo: Path, box: Machine, other: Machine
) -> None:
    work = make(mngr, "a@box.ssh")
    tip = commit(box, work, "One")
    box.run(f"echo draft >{work}/draft")
    mngr.ok("snapshot", "create", "a", "s")
    mngr.ok("destroy", "-f", "a")
    assert [each["name"] for each in mngr.json("snapshot", "list")] == ["s"]  # it outlives its agent
    here = make(mngr, "here@local", "--from", "a/s", "--mode", "clone")
    assert (here / "draft").read_text() == "draft\n"
    there = make(mngr, "there@other.ssh", "--from", "a/s")
    assert other.run(f"cat {there}/draft; git -C {there} rev-parse HEAD") == f"draft\n{tip}\n"


def test_snapshots_of_a_host_that_is_away_are_said_to_be_missing(
    mngr: Mngr, home: Home, repo: Path, box: Machine
) -> None:
    make(mngr, "a@box.ssh")
    make(mngr, "b")
    for name in ("a", "b"):
        mngr.ok("snapshot", "create", name, f"of-{name}")
    box.hang_up()
    listed = mngr("snapshot", "list", "--json")
    assert [each["name"] for each in json.loads(listed.out)] == ["of-b"]
    assert (listed.code, listed.err.count("\n")) == (0, 1)
    assert "the snapshots on box.ssh are not shown" in listed.err
    assert mngr("snapshot", "list", "a").code == 5
    assert mngr("snapshot", "restore", "a", "of-a").code == 5
    assert mngr("create", "c", "command", "--from", "a/of-a", *SLEEP).code == 5
    assert mngr.ok("snapshot", "restore", "b", "of-b")


# Counting and clearing away.


def test_list_git_counts_there_and_not_where_nobody_answers(
    mngr: Mngr, home: Home, repo: Path, box: Machine, other: Machine
) -> None:
    commit(box, make(mngr, "a@box.ssh"), "One")
    commit(other, make(mngr, "b@other.ssh"), "Two")
    rows = {row.split()[0]: row for row in mngr.ok("list", "--git").splitlines()}
    assert "1" in rows["a"].split()
    box.hang_up()
    listed = mngr("list", "--git")
    assert listed.code == 0
    rows = {row.split()[0]: row for row in listed.out.splitlines()}
    assert "unknown" in rows["a"]
    assert "1" in rows["b"].split()


def test_gc_clears_there_and_takes_silence_for_nothing(mngr: Mngr, home: Home, repo: Path, box: Machine) -> None:
    make(mngr, "a@box.ssh")
    mngr.ok("rename", "a", "b")  # what was seen last still has the old name
    old = time.time() - 1000
    os.utime(home.mngr_home / "names" / "b", (old, old), follow_symlinks=False)
    box.run("mkdir -p .mngr/carry/0123456789ab/files .mngr/carry/ba9876543210 && touch .mngr/carry/big.pack.part")
    box.run("find .mngr/carry/0123456789ab .mngr/carry/big.pack.part -exec touch -d '2 days ago' {} +")
    box.hang_up()
    silent = mngr("gc")
    assert (silent.code, silent.out) == (0, "nothing is left over\n")
    assert "box.ssh was not looked at: " in silent.err
    assert names(mngr) == ["b"]
    box.serve()
    said = mngr.ok("gc")
    assert "removed box.ssh:carry/0123456789ab: files on their way to an agent that was never made" in said
    assert "carry/big.pack.part" in said
    assert box.run("ls .mngr/carry") == "ba9876543210\n"
    assert names(mngr) == ["b"]


def test_gc_removes_containers_without_agents_and_those_that_nobody_knows(mngr: Mngr, home: Home, pods: Podman) -> None:
    for name in ("kept", "empty", "lost"):
        make(mngr, f"{name}@{name}.podman")
    mngr.ok("destroy", "-f", "--keep-host", "empty", "lost")
    known = home.mngr_home / "hosts"
    assert mngr.ok("gc") == "nothing is left over\n"  # somebody may be about to use them
    old = time.time() - 10000
    os.utime(known / "empty.podman", (old, old))
    (known / "lost.podman").unlink()
    found = {(each["kind"], each["what"]) for each in mngr.json("gc", "--dry-run")}
    assert found == {("host", "empty.podman"), ("unknown host", "lost.podman")}
    assert len(pods.containers()) == 3
    mngr.ok("gc")
    assert len(pods.containers()) == 1
    assert [name for name in entries(known) if name[0] != "."] == ["kept.podman"]


def test_gc_leaves_a_container_with_snapshots_alone(mngr: Mngr, home: Home, pods: Podman) -> None:
    make(mngr, "a@pod.podman")
    mngr.ok("snapshot", "create", "a", "s")
    mngr.ok("destroy", "-f", "a")
    old = time.time() - 10000
    os.utime(home.mngr_home / "hosts" / "pod.podman", (old, old))
    result = mngr("gc")
    assert result.code == 0
    assert "pod.podman: host without an agent: look at it" in result.err
    assert len(pods.containers()) == 1
