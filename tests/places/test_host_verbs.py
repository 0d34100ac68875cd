"""`mngr host ...`, and hosts that mngr made: they stop and go with their last agent."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
from pathlib import Path

import pytest

from tests.home import Home, Mngr, Result, wait_until
from tests.places.containers import Podman
from tests.places.network import Machine, Network, run


def states(mngr: Mngr) -> dict[str, str]:
    return {agent["name"]: agent["state"] for agent in mngr.json("list")}


def host_states(mngr: Mngr, *words: str) -> dict[str, str]:
    return {host["name"] or host["provider"]: host["state"] for host in mngr.json("host", "list", *words)}


def is_up(podman: Podman) -> list[bool]:
    """Of each container of this test."""
    return [
        podman.run("container", "inspect", "--format", "{{.State.Running}}", container).strip() == "true"
        for container in podman.containers()
    ]


# Machines that stand somewhere.


def test_a_machine_is_added_listed_and_removed(mngr: Mngr, box: Machine) -> None:
    assert mngr.ok("host", "add", "box.ssh") == "added box.ssh\n"
    local, listed = mngr.json("host", "list")
    assert (local["name"], local["state"], local["made"]) == ("local", "up", False)
    assert (listed["name"], listed["state"], listed["made"]) == ("box.ssh", "up", False)
    assert listed["system"].startswith("Linux")
    assert mngr.ok("host", "remove", "box.ssh") == "forgotten box.ssh\n"
    assert host_states(mngr) == {"local": "up"}
    assert mngr("host", "remove", "box.ssh").code == 2


def test_a_machine_that_is_removed_has_no_open_connection(home: Home, mngr: Mngr, box: Machine) -> None:
    mngr.ok("host", "add", "box.ssh")
    sockets = home.socket.parent.glob(f"{home.socket.name}-*")
    assert list(sockets)
    mngr.ok("host", "remove", "box.ssh")
    wait_until(lambda: not list(home.socket.parent.glob(f"{home.socket.name}-*")), what="the connection to end")


def test_what_ssh_does_not_know_is_said_once(home: Home, mngr: Mngr, network: Network, box: Machine) -> None:
    refused = mngr("host", "add", "gpu.ssh", "--with", "door=2")
    assert (refused.code, "target, port, key" in refused.err) == (2, True), refused.err
    mngr.ok("host", "add", "gpu.ssh", "--with", f"target=root@{box.address}", "--with", "home=/srv/mngr")
    mngr.ok("create", "far@gpu.ssh", "--no-connect", "--", "sleep 1000")
    assert box.run("ls /srv/mngr/agents").strip()
    mngr.ok("host", "add", "gpu.ssh", "--with", "port=22")
    added = mngr.json("host", "add", "gpu.ssh", "--with", "port=")
    assert added["options"] == {"target": f"root@{box.address}", "home": "/srv/mngr"}
    assert states(mngr) == {"far": "running"}
    mngr.ok("destroy", "-f", "far")


def test_a_machine_with_another_key_is_not_trusted(home: Home, mngr: Mngr, network: Network, box: Machine) -> None:
    known, config = home.path / "known", home.path / "ssh_config"
    config.write_text(f"UserKnownHostsFile {known}\nStrictHostKeyChecking ask\n{Path(network.ssh_config).read_text()}")
    home.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(config)
    refused = mngr("host", "add", "box.ssh")
    assert refused.code == 5
    assert "its host key is not known here" in refused.err
    assert "ssh box" in refused.err
    assert "--accept-new" in refused.err
    assert host_states(mngr) == {"local": "up"}

    mngr.ok("host", "add", "box.ssh", "--accept-new")
    assert box.host_key in known.read_text()
    mngr.ok("host", "remove", "box.ssh")

    known.write_text(known.read_text().replace(box.host_key, network.boot("other").host_key))
    changed = mngr("host", "add", "box.ssh", "--accept-new")
    assert (changed.code, "not the one that was known" in changed.err) == (5, True), changed.err


def test_in_a_terminal_a_passphrase_can_be_said(home: Home, mngr: Mngr, network: Network, box: Machine) -> None:
    key, config = home.path / "key", home.path / "ssh_config"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(key)])
    box.run("cat >>.ssh/authorized_keys", input=key.with_suffix(".pub").read_text())
    text = Path(network.ssh_config).read_text()
    config.write_text(text.replace(str(network.directory / "key"), str(key)))
    home.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(config)
    refused = mngr("host", "add", "box.ssh")
    assert (refused.code, "Permission denied" in refused.err) == (5, True), refused.err

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home.cwd)
        line = f"{mngr.program} host add box.ssh; read answer"  # a terminal that closes takes along what it started
        os.execve("/bin/sh", ["sh", "-c", line], home.env)
    said = b""
    for waited_for, answer in ((b"passphrase", b"open sesame\n"), (b"added box.ssh", b"")):
        while waited_for not in said:
            said += os.read(terminal, 1000)
        os.write(terminal, answer)
    assert host_states(mngr)["box.ssh"] == "up"
    os.write(terminal, b"\n")
    os.waitpid(child, 0)
    os.close(terminal)


def test_machines_that_do_not_answer_are_told_with_the_reason(mngr: Mngr, over_ssh: Network) -> None:
    machines = [over_ssh.boot(name) for name in ("one", "two", "three")]
    try:
        for machine in machines:
            mngr.ok("host", "add", f"{machine.name}.ssh")
        for machine in machines[:2]:
            machine.crash()
        listed = {host["name"]: host for host in mngr.json("host", "list")}
    finally:
        for machine in machines:
            machine.remove()
    assert {name: host["state"] for name, host in listed.items()} == {
        "local": "up",
        "one.ssh": "unreachable",
        "two.ssh": "unreachable",
        "three.ssh": "up",
    }
    assert listed["one.ssh"]["reason"]


def test_a_machine_with_agents_is_not_removed(mngr: Mngr, repo: Path, box: Machine) -> None:
    mngr.ok("create", "far@box.ssh", "--no-connect", "--", "sleep 1000")
    refused = mngr("host", "remove", "box.ssh")
    assert (refused.code, "1 agent: far" in refused.err, "-f" in refused.err) == (1, True, True), refused.err
    assert states(mngr) == {"far": "running"}
    mngr.ok("host", "remove", "box.ssh", "-f")
    assert states(mngr) == {}
    assert box.run("ls .mngr/agents") == ""


def test_a_machine_that_is_gone_for_good_can_be_forgotten(mngr: Mngr, repo: Path, box: Machine) -> None:
    mngr.ok("create", "far@box.ssh", "--no-connect", "--", "sleep 1000")
    box.crash()
    failed = mngr("host", "remove", "box.ssh", "-f")
    assert (failed.code, "--forget -f" in failed.err) == (5, True), failed.err
    assert list(states(mngr)) == ["far"]
    assert mngr("host", "remove", "box.ssh", "--forget").code == 1
    mngr.ok("host", "remove", "box.ssh", "--forget", "-f")
    assert (states(mngr), host_states(mngr)) == ({}, {"local": "up"})
    mngr.ok("create", "far", "--no-connect", "--", "sleep 1000")


def test_agents_of_a_lost_home_are_adopted_but_for_names_that_are_taken(
    home: Home, mngr: Mngr, repo: Path, box: Machine
) -> None:
    for name in ("fix", "docs"):
        mngr.ok("create", f"{name}@box.ssh", "--no-connect", "--", "sleep 1000")
    shutil.rmtree(home.mngr_home / "names")
    shutil.rmtree(home.mngr_home / "hosts")
    mngr.ok("create", "docs", "--no-connect", "--", "sleep 1000")
    result = mngr("host", "add", "box.ssh", "--adopt")
    assert (result.code, result.out) == (0, "added box.ssh\nadopted fix\n"), result.err
    assert "docs is on box.ssh too" in result.err
    assert {agent["name"]: agent["host"] for agent in mngr.json("list")} == {"fix": "box.ssh", "docs": "local"}
    assert mngr.json("host", "add", "box.ssh", "--adopt")["taken"] == []
    assert mngr.ok("exec", "fix", "--", "hostname").strip() == "box"


# What a machine lacks.


def test_a_machine_is_checked_without_being_known(mngr: Mngr, box: Machine) -> None:
    told = mngr.ok("host", "check", "box.ssh")
    for word in ("Linux", "tmux ", "git ", "MB are free", "home /root/.mngr"):
        assert word in told
    assert host_states(mngr) == {"local": "up"}
    assert mngr.ok("host", "check", "local")
    box.run("mv /usr/bin/date /usr/bin/real-date; cat >/usr/bin/date; chmod +x /usr/bin/date", input=CLOCK)
    assert "its clock is" in mngr.ok("host", "check", "box.ssh")


CLOCK = "#!/bin/sh\nexec /usr/bin/real-date --date '90 seconds ago' \"$@\"\n"
# A repository of one package, made of the files of an installed one, so that apt-get has something to get.
REPOSITORY = """
set -e
rm -f /var/lib/man-db/auto-update
mkdir -p /srv/packages/tmux/DEBIAN && cd /srv/packages
dpkg-query --listfiles tmux | while read -r file; do
  [ ! -f "$file" ] || { mkdir -p "tmux${file%/*}" && cp -p "$file" "tmux$file"; }
done
{
  echo 'Package: tmux'
  dpkg-query --show --showformat 'Version: ${Version}\\nArchitecture: ${Architecture}\\n' tmux
  echo 'Maintainer: Ada <ada@example.com>'
  echo 'Description: terminals'
} >tmux/DEBIAN/control
dpkg-deb --build tmux tmux.deb >/dev/null
{
  cat tmux/DEBIAN/control
  echo "Filename: ./tmux.deb"
  echo "Size: $(stat -c %s tmux.deb)"
  echo "SHA256: $(sha256sum <tmux.deb | cut -d' ' -f1)"
} >Packages
rm -r /etc/apt/sources.list* /var/lib/apt/lists; mkdir -p /var/lib/apt/lists/partial
dpkg --remove --force-depends tmux >/dev/null
"""


def test_what_is_missing_is_named_and_installed(mngr: Mngr, repo: Path, box: Machine) -> None:
    box.run(REPOSITORY)
    added = mngr("host", "add", "box.ssh")
    assert (added.code, "there is no tmux on it" in added.err) == (1, True), added.err
    assert host_states(mngr)["box.ssh"] == "unfinished"
    refused = mngr("create", "far@box.ssh", "--no-connect", "--", "sleep 1000")
    assert (refused.code, "mngr host check box.ssh --install" in refused.err) == (1, True), refused.err

    lacking = mngr("host", "check", "box.ssh")
    assert (lacking.code, "tmux is missing" in lacking.out) == (1, True), lacking.out
    failed = mngr("host", "check", "box.ssh", "--install")
    assert (failed.code, "apt-get on box.ssh failed" in failed.err) == (1, True), failed.err
    assert "tmux" in failed.err

    box.run("echo 'deb [trusted=yes] file:/srv/packages ./' >/etc/apt/sources.list")
    installed = mngr("host", "check", "box.ssh", "--install")
    assert (installed.code, "tmux 3" in installed.out) == (0, True), installed.err
    assert host_states(mngr)["box.ssh"] == "up"
    mngr.ok("create", "far@box.ssh", "--no-connect", "--", "sleep 1000")
    mngr.ok("destroy", "-f", "far")


# Hosts that mngr made.


def test_a_container_stops_and_starts_with_its_agents(mngr: Mngr, pods: Podman) -> None:
    for name in ("one", "two"):
        mngr.ok("create", f"{name}@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("stop", "one")
    assert (is_up(pods), host_states(mngr)["pod.podman"]) == ([True], "up")
    stopped = mngr("stop", "two")
    assert (stopped.code, "pod.podman is stopped" in stopped.err) == (0, True), stopped.err
    assert (is_up(pods), host_states(mngr)["pod.podman"]) == ([False], "stopped")
    assert states(mngr) == {"one": "stopped", "two": "stopped"}
    assert mngr.ok("stop", "--all") == "idle one\nidle two\n"

    for verb in (["message", "one", "-m", "hello"], ["exec", "one", "--", "true"], ["capture", "one"]):
        refused = mngr(*verb)
        assert (refused.code, "pod.podman is stopped" in refused.err, "mngr start" in refused.err) == (5, True, True)
    assert is_up(pods) == [False]

    assert mngr.ok("start", "one") == "started one\n"
    assert (is_up(pods), states(mngr)) == ([True], {"one": "running", "two": "stopped"})
    mngr.ok("host", "stop", "pod.podman")
    assert (is_up(pods), states(mngr)) == ([False], {"one": "stopped", "two": "stopped"})
    mngr.ok("connect", "two", "--connect-command", "true")
    assert states(mngr) == {"one": "stopped", "two": "running"}


def test_a_new_agent_wakes_its_container(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("stop", "one")
    mngr.ok("create", "two@pod.podman", "--no-connect", "--", "sleep 1000")
    assert (is_up(pods), states(mngr)) == ([True], {"one": "stopped", "two": "running"})
    mngr.ok("host", "stop", "pod.podman")
    assert mngr("create", "one", "--no-connect", "--", "true").err.startswith("mngr: there is already an agent")


def test_a_container_goes_with_its_last_agent(mngr: Mngr, pods: Podman) -> None:
    for name in ("one", "two"):
        mngr.ok("create", f"{name}@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("destroy", "-f", "one")
    assert (is_up(pods), states(mngr)) == ([True], {"two": "running"})
    mngr.ok("stop", "two")
    mngr.ok("destroy", "two", "--dry-run")
    assert is_up(pods) == [False]
    mngr.ok("destroy", "-f", "two")
    assert (pods.containers(), host_states(mngr)) == ([], {"local": "up"})


def test_of_two_agents_the_last_that_runs_decides(mngr: Mngr, pods: Podman) -> None:
    for name in ("one", "two"):
        mngr.ok("create", f"{name}@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("stop", "one")
    mngr.ok("destroy", "-f", "two")
    assert (is_up(pods), states(mngr)) == ([False], {"one": "stopped"})


def test_keep_host_keeps_it(home: Home, mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("stop", "one", "--keep-host")
    assert (is_up(pods), states(mngr)) == ([True], {"one": "stopped"})
    home.env["MNGR_CONFIG_COMMANDS__DESTROY__KEEP_HOST"] = "true"
    mngr.ok("destroy", "-f", "one")
    assert (is_up(pods), host_states(mngr)["pod.podman"]) == ([True], "up")
    mngr.ok("host", "remove", "pod.podman")
    assert pods.containers() == []


def test_a_container_with_a_snapshot_outlives_its_agent(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("snapshot", "create", "one", "before")
    kept = mngr("destroy", "-f", "one")
    assert (kept.code, "pod.podman is kept: there are snapshots" in kept.err) == (0, True), kept.err
    assert is_up(pods) == [True]
    refused = mngr("host", "remove", "pod.podman")
    assert (refused.code, "--purge" in refused.err) == (1, True), refused.err
    mngr.ok("host", "remove", "pod.podman", "--purge")
    assert pods.containers() == []


def test_a_bad_option_is_refused_before_anything_is_made(mngr: Mngr, pods: Podman) -> None:
    for words in (["one@.podman"], ["one@pod.podman"]):
        refused = mngr("create", *words, "--with", "flavour=mint", "--no-connect", "--", "true")
        assert (refused.code, "no option 'flavour'" in refused.err, "memory" in refused.err) == (2, True, True)
    assert (pods.containers(), states(mngr), host_states(mngr)) == ([], {}, {"local": "up"})
    refused = mngr("create", "one", "--with", "image=x", "--no-connect", "--", "true")
    assert (refused.code, "NAME@.docker" in refused.err) == (2, True), refused.err


def test_a_create_that_fails_leaves_no_container(mngr: Mngr, pods: Podman) -> None:
    assert mngr("create", "one@.podman", "--setup", "exit 3", "--no-connect", "--", "true").code == 1
    assert (pods.containers(), states(mngr), host_states(mngr)) == ([], {}, {"local": "up"})


def test_containers_are_discovered_and_taken_over(home: Home, mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    shutil.rmtree(home.mngr_home / "names")
    shutil.rmtree(home.mngr_home / "hosts")
    assert "pod.podman" not in host_states(mngr)
    found = host_states(mngr, "--discover")
    assert found["pod.podman"] == "new"
    assert mngr("host", "add", "other.podman").code == 1
    assert mngr.ok("host", "add", "pod.podman", "--adopt") == "added pod.podman\nadopted one\n"
    assert states(mngr) == {"one": "running"}
    mngr.ok("destroy", "-f", "one")
    assert pods.containers() == []


def test_a_provider_that_gives_no_answer_is_not_one_without_hosts(home: Home, mngr: Mngr, pods: Podman) -> None:
    home.env["CONTAINERS_STORAGE_CONF"] = "/nonexistent"
    told = mngr("host", "list", "--discover")
    assert (told.code, "podman was not asked" in told.err) == (0, True), told.err
    assert host_states(mngr, "--discover")["podman"] == "unreachable"


# Whatever happens in between.


def test_a_container_that_was_stopped_by_another_is_started(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    pods.run("stop", "--time", "0", *pods.containers())
    assert states(mngr) == {"one": "unknown"}
    assert host_states(mngr)["pod.podman"] == "unreachable"
    assert mngr.ok("start", "one") == "started one\n"
    assert states(mngr) == {"one": "running"}


def test_a_container_that_another_took_away_is_removed_with_its_agents(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    pods.run("rm", "--force", "--time", "0", *pods.containers())
    assert mngr("host", "remove", "pod.podman").code == 1
    assert states(mngr) == {"one": "unknown"}
    assert mngr.ok("host", "remove", "pod.podman", "-f") == "removed pod.podman\n"
    assert (states(mngr), host_states(mngr)) == ({}, {"local": "up"})


def test_an_empty_container_that_another_took_away_is_removed(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("destroy", "-f", "one", "--keep-host")
    pods.run("rm", "--force", "--time", "0", *pods.containers())
    assert mngr.ok("host", "remove", "pod.podman") == "removed pod.podman\n"
    assert host_states(mngr) == {"local": "up"}


def test_a_container_that_another_stopped_is_stopped_and_removed(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    pods.run("stop", "--time", "0", *pods.containers())
    mngr.ok("host", "stop", "pod.podman")
    assert (states(mngr), host_states(mngr)["pod.podman"]) == ({"one": "stopped"}, "stopped")
    mngr.ok("host", "start", "pod.podman")
    mngr.ok("destroy", "-f", "one", "--keep-host")
    pods.run("stop", "--time", "0", *pods.containers())
    mngr.ok("host", "remove", "pod.podman")
    assert pods.containers() == []


def test_what_a_killed_remove_leaves_is_finished_by_the_next_create(home: Home, mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    record = home.mngr_home / "hosts" / "pod.podman"
    before, place = pods.containers(), json.loads(record.read_text())
    mngr.ok("destroy", "-f", "one", "--keep-host")
    record.write_text(json.dumps({**place, "state": "going"}))
    assert host_states(mngr)["pod.podman"] == "unfinished"
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    assert (states(mngr), is_up(pods)) == ({"one": "running"}, [True])
    assert pods.containers() != before


def test_a_killed_create_leaves_a_host_that_the_next_one_makes_anew(home: Home, mngr: Mngr, pods: Podman) -> None:
    creating = mngr.popen("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    wait_until((home.mngr_home / "hosts" / "pod.podman").exists, what="the record of the host")
    creating.send_signal(signal.SIGKILL)
    creating.wait(20)
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    assert (states(mngr), is_up(pods)) == ({"one": "running"}, [True])


def test_two_creates_at_once_share_the_container_that_one_of_them_makes(mngr: Mngr, pods: Podman) -> None:
    creates = [
        mngr.popen("create", f"{name}@pod.podman", "--no-connect", "--", "sleep 1000") for name in ("one", "two")
    ]
    ended = [Result(create.wait(60), *create.communicate()) for create in creates]
    assert [result.code for result in ended] == [0, 0], ended
    assert (states(mngr), is_up(pods)) == ({"one": "running", "two": "running"}, [True])
    destroys = [mngr.popen("destroy", "-f", name) for name in ("one", "two")]
    assert [destroy.wait(60) for destroy in destroys] == [0, 0]
    assert (pods.containers(), host_states(mngr)) == ([], {"local": "up"})


@pytest.mark.parametrize("words", [["stop", "one"], ["destroy", "-f", "one"]], ids=["stopped", "removed"])
def test_a_container_that_goes_under_a_create_comes_back(
    home: Home, mngr: Mngr, pods: Podman, words: list[str]
) -> None:
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    # Another verb comes in between: when create, which has seen that the host is up, looks at the repository.
    path, git = home.env["PATH"], shutil.which("git")
    between = home.root / "between"
    between.mkdir()
    (between / "git").write_text(
        f"#!/bin/sh\nPATH='{path}'\nmkdir {between}/once 2>/dev/null && {mngr.program} {' '.join(words)} >&2\n"
        f'exec {git} "$@"\n'
    )
    (between / "git").chmod(0o755)
    mngr.ok("create", "two@pod.podman", "--no-connect", "--", "sleep 1000", env={"PATH": f"{between}:{path}"})
    assert (between / "once").exists()
    assert is_up(pods) == [True]
    assert states(mngr) == {"two": "running"} | ({"one": "stopped"} if words[0] == "stop" else {})


def test_doctor_asks_hosts_that_are_up(mngr: Mngr, repo: Path, box: Machine, pods: Podman) -> None:
    mngr.ok("create", "far@box.ssh", "--no-connect", "--", "sleep 1000")
    mngr.ok("create", "one@pod.podman", "--no-connect", "--", "sleep 1000")
    mngr.ok("stop", "one")
    told = mngr.ok("doctor")
    assert "pod.podman is stopped" in told
    assert "box.ssh: tmux 3" in told
    box.crash()
    bad = mngr("doctor")
    assert (bad.code, "bad   box.ssh: " in bad.out) == (1, True), bad.out


def test_the_names_of_hosts_are_completed(mngr: Mngr, box: Machine) -> None:
    mngr.ok("host", "add", "box.ssh")
    assert mngr.ok("complete", "--", "host", "remove", "b") == "box.ssh\n"
    assert mngr.ok("complete", "--", "list", "--host", "b") == "box.ssh\n"
