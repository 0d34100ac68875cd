"""What other machines add: three of them, each with namespaces, files and an sshd of its own, and sixty agents. The
floors are the bare commands over the same shared connections: `tmux list-panes` on the slowest of them (and a list of
nobody on this machine), `git clone --shared` and `tmux new-session` for each agent."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, Sizes
from world import CommandFailed, World

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.places.network import Network, close_connections

MACHINES = ("box1", "box2", "box3")
_BASE = """
ln -s .mngr/repos/*.git base.git
git -C base.git symbolic-ref HEAD "$(git -C base.git for-each-ref --format='%(refname)' --count=1)"
"""
_BARE = """
cd /root && for n in $(seq {count}); do
  git -c advice.detachedHead=false clone -q --shared --no-tags base.git "{run}-$n" &&
    tmux -S /tmp/bare new-session -d -s "{run}-$n" -x 200 -y 50 -c "/root/{run}-$n" {program} || exit 1
done
"""
_CLEAR = "tmux -S /tmp/bare kill-server; rm -rf /root/f*-*"
_LOOK = "tmux -u -S /tmp/mngr-0/* list-panes -a"


def hosts(sizes: Sizes) -> Iterator[Figure]:
    each = max(2, sizes.group // 5)
    with World(sizes.files // 20) as world, Network() as network:
        world.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(network.ssh_config)
        try:
            yield from _measure(world, network, each, sizes)
        finally:
            close_connections(world.root / "m")


def _measure(world: World, network: Network, each: int, sizes: Sizes) -> Iterator[Figure]:
    for name in MACHINES:
        network.boot(name)
        world.run(world.create(f"warm-{name}@{name}.ssh"))  # meets the host, and uploads the repository
        network.machines[name].run(_BASE)
    launch = Figure(f"create, {each} agents on each of 3 hosts", target=2)
    for run in range(sizes.few_runs):
        ours = [world.create(f"r{run}-{name}@{name}.ssh", "-n", str(each)) for name in MACHINES]
        launch.ours.append(_together(world, ours))
        script = _BARE.format(count=each, run=f"f{run}", program=" ".join(world.program))
        launch.floors.append(_together(world, [_ssh(world, network, name, script) for name in MACHINES]))
        for name in MACHINES:
            world.run(_ssh(world, network, name, _CLEAR))
        if run + 1 < sizes.few_runs:
            world.run(world.mngr("destroy", "-f", *[f"r{run}-{name}-*" for name in MACHINES]))
    yield launch
    # Wanted: one and a half times the slowest bare look at a host, beyond what a list costs that asks nobody.
    listing = Figure(f"list, {3 * each + 3} agents on 3 hosts, by 1.5 trips", target=1)
    # These hosts are processes on our own cores: what they cost each other there, the bare looks show without us.
    together = Figure("  the bare looks at once, by the slowest alone")
    looks = [_ssh(world, network, name, _LOOK) for name in MACHINES]
    for _ in range(3 * sizes.runs):  # it is about a few per cent of what varies by more
        listing.ours.append(world.run(world.mngr("list")))
        alone = world.run(world.mngr("list"), MNGR_HOME=str(world.root / "nobody"))
        slowest = max(map(world.run, looks))
        listing.floors.append(alone + 1.5 * slowest)
        together.ours.append(_together(world, looks))
        together.floors.append(slowest)
    yield listing
    yield together
    world.run(world.mngr("destroy", "-f", "--all"))


def _ssh(world: World, network: Network, name: str, script: str) -> list[str]:
    shared = [f"ControlPath={world.socket}-%C", "ControlMaster=auto", "ControlPersist=600"]
    return ["ssh", "-F", str(network.ssh_config), *[word for each in shared for word in ("-o", each)], name, script]


def _together(world: World, commands: list[list[str]]) -> float:
    begin = time.perf_counter()
    running = [subprocess.Popen(argv, cwd=world.repo, env=world.env, stdout=subprocess.DEVNULL) for argv in commands]
    for child in running:
        if child.wait():
            raise CommandFailed(f"{child.args!r} exited {child.returncode}"[:300])
    return time.perf_counter() - begin
