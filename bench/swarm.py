"""What a swarm costs beyond the work of its agents, which is next to nothing here: each only hands in its result. The
floor makes the same work dirs and tmux sessions, and plays the same steps in them, bare."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from figure import COUNT, KIB, Figure, Sizes
from world import PYTHON, CommandFailed, World

import mngr.agents
from mngr.swarm.state import load

_TASKS = str(Path(__file__).with_name("tasks.py"))
_STEPS = Path(mngr.agents.__file__).with_name("replay.sh")
_PERIOD = 0.05  # seconds between two looks at the processes of a run
_AGENT = """\
d={root}/floor/$1
git clone -q --shared {repo} "$d/work"
echo '{{"type":"notice"}}' >"$d/replay.jsonl"
cp {trajectory} "$d/replay.1"
{tmux} new-session -d -s "f$1" -x 200 -y 50 -c "$d/work" "d=$d MNGR_AGENT_ID=f$1 MNGR_RESULT=$d/result.json \
  record='{{\\"prompt\\": \\"Play.\\"}}' sh -c '. {steps}; play'"
"""
_FLOOR = """\
for number in $(seq {count}); do mkdir -p {root}/floor/$number; done
seq {count} | xargs -P 4 -n 1 sh {root}/agent
while [ "$(ls {root}/floor/*/result.json 2>/dev/null | wc -l)" -lt {count} ]; do sleep 0.02; done
rm -rf {root}/floor
"""


def swarm(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.group
    with World() as world:
        runs = _Runs(world)
        each = Figure(f"swarm of {count} agents, each", over=0.1)
        for _ in range(sizes.few_runs):
            each.ours.append(runs.take(count, count).seconds / count)
            each.floors.append(runs.floor(count) / count)
        yield each
        if max(runs.processes):
            yield Figure("  processes of ours at any time", unit=COUNT, ours=[max(runs.processes)], most=20)
            yield Figure("  memory of the orchestrator", unit=KIB, ours=[max(runs.memory)], most=150_000)
        yield from _flat(runs, [count, 3 * count, 10 * count], count // 2)


def _flat(runs: _Runs, counts: list[int], slots: int) -> Iterator[Figure]:
    """What a task costs must not grow with their number: the floor is what one costs in the shortest run."""
    taken = []
    for count in counts:
        took = runs.take(count, slots)
        taken.append((took.seconds / count, took.processor / count))
        (shortest, cheapest), (seconds, processor) = taken[0], taken[-1]
        yield Figure(f"{count} tasks through {slots} slots, each", 1.25, ours=[seconds], floors=[shortest])
        yield Figure("  processor, without the agents", 1.25, ours=[processor], floors=[cheapest])


class _Taken(NamedTuple):
    seconds: float
    processor: float  # seconds of the orchestrator and of all that it started: agents are no children of it


class _Runs:
    def __init__(self, world: World) -> None:
        self.world = world
        self.processes: list[int] = []  # the most that each run had at any time, without those of its agents
        self.memory: list[float] = []  # the most that each orchestrator used, in KiB
        self._number = 0
        self._trajectory = world.root / "trajectory.sh"
        self._trajectory.write_text("finish 'There was nothing to do.'\n")
        # From here on there is a tmux server, and what runs in it is no child of an orchestrator.
        world.run(world.create("first", "--mode", "none"))

    def take(self, tasks: int, slots: int) -> _Taken:
        """A whole run, from nothing to nothing left."""
        self._number += 1
        name = f"r{self._number}"
        argv = [PYTHON, _TASKS, "begin", name, str(tasks), str(self._trajectory), f"max-agents={slots}", "keep=none"]
        world, begin, spent = self.world, time.perf_counter(), _processor()
        with open(world.root / "log", "w+") as log:
            child = subprocess.Popen(argv, cwd=world.repo, env=world.env, stdout=log, stderr=log)
            seen = _Seen(child.pid)
            try:
                code = child.wait()
                taken = _Taken(time.perf_counter() - begin, _processor() - spent)
            finally:
                child.kill()
                seen.stop()
            log.seek(0)
            if code:
                raise CommandFailed(f"a run of {tasks} tasks exited {code}: {log.read().strip()[-500:]}")
        if (counts := load(str(world.root / "m" / "runs" / name)).counts()) != {"unchanged": tasks}:
            raise CommandFailed(f"a run of {tasks} tasks came to {counts}")
        self.processes.append(seen.processes)
        self.memory.append(seen.memory)
        return taken

    def floor(self, count: int) -> float:
        world = self.world
        values = {
            "root": world.root,
            "repo": world.repo,
            "trajectory": self._trajectory,
            "steps": _STEPS,
            "tmux": " ".join(world.bare()),
            "count": count,
        }
        (world.root / "agent").write_text(_AGENT.format(**values))
        return world.run(world.run_script(_FLOOR.format(**values).splitlines()))


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Seen:
    """Looks at a process and everything below it, until it is stopped. Where there is no /proc it sees nothing."""

    def __init__(self, pid: int) -> None:
        self.processes, self.memory = 0, 0.0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD):
            self.processes = max(self.processes, len(_tree(self._pid)))
            self.memory = max(self.memory, _peak(self._pid))


def _tree(pid: int) -> set[int]:
    """Not by `ps`: that would be a process more, and looks at all there are. Without those that have ended, and whose
    parent has not asked yet how: a line in a table is left of them, and no process."""
    try:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX":
            return set()
        threads = os.listdir(f"/proc/{pid}/task")
        children = [Path(f"/proc/{pid}/task/{thread}/children").read_text().split() for thread in threads]
    except OSError:
        return set()  # it has just ended
    return {pid}.union(*(_tree(int(child)) for some in children for child in some))


def _peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((float(line.split()[1]) for line in lines if line.startswith("VmHWM:")), default=0.0)
