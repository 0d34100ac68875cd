"""What links that are cut do to agents on other machines. Two proofs, with real machines:

Sixty agents on three of them, and one is cut off: `list` answers within its deadline, verbs on the other two do not
notice, and five seconds after the link has healed all states are right, also of what ended meanwhile, for those who
look then and for those who have waited all the while. Nothing is lost, and nothing is there twice.

Is a create that loses its host in the middle whole or nothing? It is cut off at random moments of it, and healed. Then
its agent works, or there is nothing of it and the same words make it.

    bench/proof_hosts.py [--agents 20] [--cuts 20]"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from world import World

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.places.network import Machine, Network, close_connections

LONGEST = 0.3  # seconds; an undisturbed create takes about as long
MACHINES = ("box1", "box2", "box3")
DEADLINE = (
    20.0  # seconds in which `list` gives a host up: for an answer over a dead connection, or for a new one, and its own
)
HEALED = 5.0  # seconds after which all is as it should be
_END_ONE = "read -r _ pid <.mngr/agents/{id}/pid && kill $pid"
_COUNT = """
ls .mngr/agents | wc -l
ls .mngr/work | wc -l
tmux -S /tmp/mngr-0/* list-sessions -F '#{session_name}' | sort
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/proof_hosts.py", description=__doc__)
    parser.add_argument("--agents", type=int, default=20, help="on each of three machines")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with Network() as network:
        wrong = _one_of_three(network, args.agents) + _in_the_middle(network, args.cuts, random.Random(args.seed))
    for line in wrong:
        print(f"WRONG  {line}")
    return 1 if wrong else 0


def _one_of_three(network: Network, each: int) -> list[str]:
    """What is wrong."""
    wrong = []
    with World() as world:
        world.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(network.ssh_config)
        try:
            boxes = [network.boot(name) for name in MACHINES]
            for name in MACHINES:
                world.run(world.create(f"{name}@{name}.ssh", "-n", str(each)))
            world.run(world.mngr("wait", "--all", "--for", "running", "--timeout", "60"))
            right = _agents(world)
            there = [box.run(_COUNT) for box in boxes]
            ids = {row["name"]: row["id"] for row in _list(world)}
            undisturbed = [world.run(world.mngr("exec", f"{name}-1", "--", "true")) for name in ("box1", "box3")]

            boxes[1].cut()
            waiting = subprocess.Popen(world.mngr("wait", "box2-1", "--for", "failed"), cwd=world.repo, env=world.env)
            took = world.run(world.mngr("list"))
            print(f"list, {3 * each} agents, one of three hosts cut off: {took:.1f} s")
            if took > DEADLINE:
                wrong.append(f"list took {took:.1f} s")
            shown = {row["name"]: row["state"] for row in _list(world)}
            expected = {name: "unknown" if name.startswith("box2-") else state for name, state in right.items()}
            wrong += _differences("while box2 was cut off", shown, expected)
            meanwhile = [world.run(world.mngr("exec", f"{name}-1", "--", "true")) for name in ("box1", "box3")]
            print(f"exec on the others: {_both(undisturbed)} s before, {_both(meanwhile)} s meanwhile")
            world.run(world.mngr("stop", "box1-2", "box3-2"))
            boxes[1].run(_END_ONE.format(id=ids["box2-1"]))
            right |= {"box1-2": "stopped", "box3-2": "stopped", "box2-1": "failed"}

            boxes[1].heal()
            begin = time.monotonic()
            while (shown := {row["name"]: row["state"] for row in _list(world)}) != right:
                if time.monotonic() - begin > 60:
                    wrong += _differences("a minute after the link had healed", shown, right)
                    break
            took = time.monotonic() - begin
            waiting.wait(60)
            waited = time.monotonic() - begin
            print(f"after the link had healed: list was right after {took:.1f} s, wait ended after {waited:.1f} s")
            wrong += [f"{what} took {late:.1f} s" for what, late in (("list", took), ("wait", waited)) if late > HEALED]
            if {row["name"]: row["id"] for row in _list(world)} != ids:
                wrong.append("the agents are not the ones that they were")
            world.run(world.mngr("start", "box1-2", "box2-1", "box3-2"))
            wrong += [
                f"on {box.name} there was\n{before}and now there is\n{now}"
                for box, before in zip(boxes, there, strict=True)
                if (now := box.run(_COUNT)) != before
            ]
            world.run(world.mngr("destroy", "-f", "--all"))
            for box in boxes:
                box.remove()
        finally:
            close_connections(world.root / "m")
    return wrong


def _differences(when: str, shown: dict[str, str], expected: dict[str, str]) -> list[str]:
    names = sorted(shown.keys() | expected.keys())
    return [
        f"{when}, {name} was {shown.get(name)} and not {expected.get(name)}"
        for name in names
        if shown.get(name) != expected.get(name)
    ]


def _both(seconds: list[float]) -> str:
    return " and ".join(f"{each:.2f}" for each in seconds)


def _in_the_middle(network: Network, cuts: int, chance: random.Random) -> list[str]:
    with World() as world:
        world.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(network.ssh_config)
        box = network.boot("box")
        try:
            world.run(world.create("first@box.ssh"))
            worked = sum(_one(world, box, f"x{number}", chance.uniform(0, LONGEST)) for number in range(cuts))
            world.run(world.mngr("destroy", "-f", "--all"))
            left = box.run("ls .mngr/agents .mngr/work .mngr/carry 2>/dev/null", check=False).split()
            left = [word for word in left if not word.endswith(":")]
        finally:
            close_connections(world.root / "m")
    print(f"{cuts} cuts: {worked} agents worked, {cuts - worked} were never there")
    return [f"left over: {' '.join(left)}"] if left else []


def _one(world: World, box: Machine, name: str, delay: float) -> bool:
    """Whether the agent was there after all."""
    creating = subprocess.Popen(
        world.create(f"{name}@box.ssh"), cwd=world.repo, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(delay)
    box.cut()
    _, said = creating.communicate(timeout=120)
    box.heal()
    there = _agents(world).get(name)
    print(f"cut after {delay:.2f} s: create exited {creating.returncode}, {name} is {there or 'not there'}")
    if creating.returncode == 0 and there is None:
        raise SystemExit(f"{name} was told to be made, and is not there")
    if there is None:
        world.run(world.create(f"{name}@box.ssh"))
        if _agents(world).get(name) is None:
            raise SystemExit(f"{name} could not be made in the second place: {said.decode()}")
    head = subprocess.run(
        world.mngr("exec", name, "--", "git", "status", "--porcelain"),
        cwd=world.repo,
        env=world.env,
        capture_output=True,
        check=True,
    )
    if head.stdout:
        raise SystemExit(f"{name} has a dirty work dir: {head.stdout!r}")
    return there is not None


def _agents(world: World) -> dict[str, str]:
    found = {row["name"]: row["state"] for row in _list(world)}
    if "unknown" in found.values():
        raise SystemExit(f"the link is whole again, and something is unknown: {found}")
    return found


def _list(world: World) -> list[dict[str, str]]:
    told = subprocess.run(world.mngr("list", "--json"), cwd=world.repo, env=world.env, capture_output=True, check=True)
    found: list[dict[str, str]] = json.loads(told.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
