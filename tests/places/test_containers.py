"""The containers of tests have what a host needs, and do not outlive the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.home import is_alive
from tests.places.containers import Podman, prepared


def in_container(podman: Podman, script: str) -> str:
    return podman.run("run", "--rm", podman.image, "sh", "-c", script)


def test_the_image_has_what_hosts_need(podman: Podman) -> None:
    tmux, git = in_container(podman, "tmux -V && git --version").splitlines()
    assert tmux.startswith("tmux ")
    assert git.startswith("git version ")


def test_its_programs_find_their_libraries(podman: Podman) -> None:
    programs = "bash grep sed find tar gzip ps awk flock setsid tput"
    script = f"cd /bin; for p in {programs}; do ./$p --version 2>&1 || ./$p -V; done"
    told = in_container(podman, script)
    assert "not found" not in told
    assert "error while loading" not in told


def test_tmux_and_git_work_in_it(podman: Podman) -> None:
    made = in_container(
        podman,
        """
        cd && git init -q r && cd r && git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m first
        export TERM=xterm-256color LANG=C.UTF-8
        tmux new-session -d -s one 'git log --format=%s > ../log; tmux wait-for -S done; sleep 100'
        tmux wait-for done; cat ../log; tmux list-sessions -F '#S'; find / -name python3 -type f 2>/dev/null
        """,
    )
    assert made == "first\none\n"


def test_a_container_of_the_tests_has_no_network(podman: Podman) -> None:
    assert in_container(podman, "ls /sys/class/net") == "lo\n"


def test_what_others_make_with_its_environment_ends_with_it() -> None:
    with Podman() as podman:
        argv = ["podman", "run", "--detach", podman.image, "sleep", "1000"]
        made = subprocess.run(argv, env=os.environ | podman.env, text=True, capture_output=True, check=True, timeout=60)
        container = made.stdout.strip()
        assert container in podman.containers()
    with Podman() as podman:
        assert container not in podman.run("ps", "--all", "--quiet", "--no-trunc")


KILLED = """
import os, signal
from tests.places.containers import Podman, prepared
podman = Podman().__enter__()
container = podman.run("run", "--detach", podman.image, "sleep", "1000").strip()
pid = podman.run("container", "inspect", "--format", "{{.State.Pid}}", container).strip()
print(podman._directory, container, pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_leaves_is_removed_by_the_next() -> None:
    top = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=top, text=True, capture_output=True, timeout=60)
    directory, container, pid = killed.stdout.split()
    prepared.clear()  # a process of its own would know of none
    with Podman() as podman:
        assert container not in podman.run("ps", "--all", "--quiet", "--no-trunc")
    assert not is_alive(int(pid))
    assert not Path(directory).exists()
