"""Reading what programs have logged: the transcript of one long conversation, and what many agents have spent. The
agents are no more than directories, and their logs are made up. The floors read the same files, without a thought."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, Sizes
from world import INTERPRETER, CommandFailed, World

from mngr.model import NONE, Agent

_LINES = 200  # in the log of each agent that has spent
_SIZE = 50_000_000  # of the log that is read


def logs(sizes: Sizes) -> Iterator[Figure]:
    with World() as world:
        yield from _transcript(world, sizes.few_runs)
    with World() as world:
        yield from _usage(world, sizes.few_runs, 10 * sizes.group)


def _transcript(world: World, runs: int) -> Iterator[Figure]:
    log = _agent(world, 1)
    lines = [_line(number) for number in range(1000)]
    log.write_text("".join(lines) * (_SIZE // sum(map(len, lines)) + 1))
    (log.parents[3] / "conversations").write_text(f"{log}\n")
    tail = world.mngr("transcript", "x1", "--tail", "20")
    yield Figure("transcript --tail 20 of 50 MB").take_turns(
        runs, lambda _: world.run(tail), lambda _: world.run(INTERPRETER, ["tail", "-n", "20", str(log)])
    )
    whole = world.mngr("transcript", "x1")
    yield Figure("transcript of 50 MB, first line").take_turns(
        runs, lambda _: _first_line(world, whole), lambda _: world.run(INTERPRETER, ["head", "-n", "1", str(log)])
    )


def _first_line(world: World, argv: list[str]) -> float:
    """The rest is not read: it ends when its pipe is closed."""
    begin = time.perf_counter()
    with subprocess.Popen(argv, cwd=world.repo, env=world.env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        passed = time.perf_counter() - begin
    if not line:
        raise CommandFailed("the transcript has no line")
    return passed


def _usage(world: World, runs: int, count: int) -> Iterator[Figure]:
    lines = [_line(number) for number in range(_LINES)]
    for number in range(1, count + 1):
        _agent(world, number).write_text("".join(lines).replace("msg_", f"msg_{number}_"))
    files = shlex.quote(str(world.root / "m" / "agents")) + "/*/claude/projects/x/*.jsonl"
    ledger, usage = world.root / "m" / "usage.db", world.mngr("usage")
    first, again = Figure(f"usage of {count} agents, first time"), Figure(f"usage of {count} agents, again")
    for _ in range(runs):
        ledger.unlink(missing_ok=True)
        first.ours.append(world.run(usage))
        first.floors.append(world.run(INTERPRETER, ["sh", "-c", f"cat {files}"]))
        again.ours.append(world.run(usage))
        again.floors.append(world.run(INTERPRETER, ["sh", "-c", f"ls -l {files}"]))
    yield from (first, again)


def _agent(world: World, number: int) -> Path:
    """The log, not yet written, of a new agent that does not run."""
    home, id, name = world.root / "m", f"{number:012x}", f"x{number}"
    agent = Agent(
        id=id,
        name=name,
        type="claude",
        host="local",
        command=["claude"],
        work_dir=str(world.repo),
        mode=NONE,
        created=time.time(),
    )
    log = home / "agents" / id / "claude" / "projects" / "x" / "log.jsonl"
    log.parent.mkdir(parents=True)
    (home / "agents" / id / "agent.json").write_text(json.dumps(agent.to_dict()) + "\n")
    (home / "names").mkdir(exist_ok=True)
    os.symlink(f"local/{id}/claude", home / "names" / name)
    return log


def _line(number: int) -> str:
    """As Claude Code writes an answer: every message in two lines, one for each of its blocks."""
    usage = {"input_tokens": number, "cache_read_input_tokens": 1000, "output_tokens": 40}
    content = [{"type": "text", "text": f"The words of answer {number}. " * 10}]
    message = {"id": f"msg_{number // 2}", "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage}
    record = {"type": "assistant", "uuid": f"u{number}", "timestamp": "2026-11-01T12:00:00.000Z", "sessionId": "x"}
    return json.dumps({**record, "message": {**message, "content": content}}) + "\n"
