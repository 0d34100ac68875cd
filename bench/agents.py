"""What real agent programs cost under mngr, beside the same programs bare: until they are ready, for a message, and
while they wait. They speak to the scripted model server, so that the model takes no time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figure import COUNT, Figure, Sizes
from programs import PROGRAMS, install
from tree import HAS_PROC, memory, seconds, tree
from world import HEIGHT, INTERPRETER, WIDTH, CommandFailed, World

from mngr import registry
from mngr.agents import AgentType
from mngr.agents.screen import Screen, rules
from mngr.dev.model_server import ModelServer

_TEXT = "SAY: noted"
_SLOW = 10.0  # seconds of starting after which it is not repeated
_CALM = 3.0  # seconds after which a program that has come up, or answered, is idle
_WINDOW = 10.0  # seconds in which an idle one is looked at


def agents(sizes: Sizes) -> Iterator[Figure]:
    with ModelServer() as server, World() as world:
        (world.root / "text").write_text(_TEXT)
        install(world, server)
        programs = [_Program(world, server, name) for name in PROGRAMS]
        for program in programs:
            yield program.start(sizes.few_runs)
            yield from program.message(2 * sizes.few_runs)
        yield from _idle(world, programs)


class _Program:
    """An agent of that type, one without a terminal interface, and the bare program."""

    def __init__(self, world: World, server: ModelServer, name: str) -> None:
        self.name, self.agent, self.headless = name, f"{name}-agent", f"{name}-headless"
        self._world, self._server, self._type = world, server, registry.agent_type(name)
        self.bare = self._make_bare()

    def _make_bare(self) -> _Bare:
        """An agent that was stopped lends it its configuration and its work dir: with others it would ask questions."""
        lender = f"{self.name}-lender"
        self._world.run(self._create(lender), self._rest(lender), self._world.mngr("stop", lender))
        return _Bare(self._world, self._type, _directory(self._world, lender))

    def start(self, runs: int) -> Figure:
        """Until its state says so, and one can type. The floor makes a worktree too. Each is alone: these programs keep
        a processor busy for a while after they have come up."""
        figure = Figure(f"{self.name}: create, until ready")
        for run in range(runs):
            name = f"{self.name}-{run}"
            begin = time.perf_counter()
            self._world.run(self._create(name), self._rest(name))
            pane = _Pane(self._world.socket, _directory(self._world, name).name, self._type)
            _until(pane.can_be_typed_to, f"{name} to be ready")
            figure.ours.append(time.perf_counter() - begin)
            self._world.run(self._world.mngr("destroy", "-f", name))
            begin = time.perf_counter()
            self._world.run(INTERPRETER, self._world.worktree_add(name))
            self.bare.start()
            figure.floors.append(time.perf_counter() - begin)
            self._world.run(self.bare.end())
            if sum(figure.ours) > _SLOW:
                break
        return figure

    def message(self, runs: int) -> Iterator[Figure]:
        """mngr's own is over when it has proof that the text arrived: the floor, when the model is asked. An Enter
        right behind the paste may be lost, so the floor, too, looks before it presses."""
        arrived, typed = Figure(f"{self.name}: message"), Figure(f"{self.name}: message, beside paste and Enter")
        self._world.run(self._create(self.headless, "--headless"), self._create(self.agent))
        self._world.run(self._say(self.headless), self._rest(self.headless), self._rest(self.agent))
        self.bare.start()
        time.sleep(_CALM)
        for _ in range(runs):
            arrived.ours.append(self._world.run(self._say(self.agent)))
            self._world.run(self._rest(self.agent))
            asked, begin = self._asked(), time.perf_counter()
            pasting = self._world.run(INTERPRETER, *self.bare.paste())
            _until(lambda: self.bare.pane.look().composer, "the bare program to show what was pasted")
            typed.floors.append(pasting + self._world.run(self.bare.enter()))
            self._until_asked(asked + 1)
            arrived.floors.append(time.perf_counter() - begin)
            _until(lambda: not self.bare.pane.look().busy, "the bare program to rest")
        typed.ours = arrived.ours
        yield from (arrived, typed)

    def _until_asked(self, times: int) -> None:
        _until(lambda: self._asked() >= times, "the model server to be asked")

    def _asked(self) -> int:
        """How often, without what programs ask for titles and the like."""
        return len([entry for entry in self._server.requests() if entry["tools"]])

    def _create(self, name: str, *options: str) -> list[str]:
        return self._world.mngr("create", name, self.name, *options)

    def _say(self, name: str) -> list[str]:
        return self._world.mngr("message", name, "-m", _TEXT)

    def _rest(self, name: str) -> list[str]:
        return self._world.mngr("wait", name, "--for", "waiting", "--timeout", "60")


class _Pane:
    """The terminal of a program, whoever started it."""

    def __init__(self, socket: str, session: str, type: AgentType) -> None:
        self._tmux, self._target = ["tmux", "-u", "-S", socket], f"={session}:"
        self._rules = rules(type.rules)

    def look(self) -> Screen:
        return self._rules.read(self._ask("capture-pane", "-p", "-t", self._target))

    def can_be_typed_to(self) -> bool:
        return self.look().composer is not None

    def pid(self) -> int:
        return int(self._ask("display", "-p", "-t", self._target, "#{pane_pid}"))

    def _ask(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True).stdout


class _Bare:
    """A program without mngr, on the bare tmux server: with the configuration that mngr made for it, and no more."""

    def __init__(self, world: World, type: AgentType, directory: Path) -> None:
        self._world, self._session, self._directory = world, type.name, directory
        self._script = f'. "$0/env" && cd "$MNGR_WORK_DIR"\n{type.launch}\nexec "$@"'
        self._command = json.loads((directory / "agent.json").read_text())["command"]
        self.pane = _Pane(str(world.root / "bare"), type.name, type)

    def start(self) -> None:
        """Until one can type."""
        session = ["new-session", "-d", "-s", self._session, "-x", WIDTH, "-y", HEIGHT]
        launch = ["sh", "-c", self._script, str(self._directory), *self._command]
        self._world.run(self._world.bare(*session, *launch))
        _until(self.pane.can_be_typed_to, f"the bare {self._session} to be ready")

    def end(self) -> list[str]:
        return self._world.bare("kill-session", "-t", f"={self._session}")

    def paste(self) -> list[list[str]]:
        text = str(self._world.root / "text")
        load = self._world.bare("load-buffer", "-b", "b", text)
        return [load, self._world.bare("paste-buffer", "-p", "-b", "b", "-t", f"={self._session}:")]

    def enter(self) -> list[str]:
        return self._world.bare("send-keys", "-t", f"={self._session}:", "Enter")


def _idle(world: World, programs: list[_Program]) -> Iterator[Figure]:
    """All of them in the same seconds. The floor of both kinds of agent is the bare program with its terminal."""
    if not HAS_PROC:
        print("bench: there is no /proc/PID/smaps_rollup here: idle programs are not measured", file=sys.stderr)
        return
    time.sleep(_CALM)
    trees = {}
    for program in programs:
        trees[program.name] = tree(world, program.bare.pane.pid())
        for agent in (program.agent, program.headless):
            launcher, _ = (_directory(world, agent) / "pid").read_text().split()
            trees[agent] = tree(world, int(launcher))
    before = {key: seconds(pids) for key, pids in trees.items()}
    time.sleep(_WINDOW)
    percents = {key: round((seconds(pids) - before[key]) / _WINDOW * 100, 1) for key, pids in trees.items()}
    sizes = {key: memory(pids) / 1024 for key, pids in trees.items()}
    for program in programs:
        for name, agent in ((program.name, program.agent), (f"{program.name} --headless", program.headless)):
            ours, bare = percents[agent], percents[program.name]
            yield Figure(f"{name}: idle, % of a core", unit=COUNT, ours=[ours], floors=[bare])
            yield Figure(f"{name}: idle, memory", unit="MiB", ours=[sizes[agent]], floors=[sizes[program.name]])


def _directory(world: World, name: str) -> Path:
    """Of the agent of that name."""
    home = world.root / "m"
    _, id, *_ = os.readlink(home / "names" / name).split("/")
    return home / "agents" / id


def _until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > deadline:
            raise CommandFailed(f"waited a minute for {what}")
        time.sleep(0.02)
