"""A group of agents through its life, several times over: create --count, message, stop, start, destroy."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from figure import Figure, Sizes
from one import paste_into
from world import INTERPRETER, World


def group(sizes: Sizes) -> Iterator[Figure]:
    size = sizes.group
    with World() as world:
        (world.root / "text").write_text("a line of text")
        world.run(world.create("first"))
        world.settle(1)
        world.run(world.mngr("stop", "first"))
        life = _Life(world, size)
        for _ in range(sizes.few_runs):
            life.create()
            life.message(sizes.few_runs)
            life.stop()
            life.start()
            life.destroy()
    yield from life.figures


class _Life:
    def __init__(self, world: World, size: int) -> None:
        self.world, self.size = world, size
        self.names = [f"x-{number}" for number in range(1, size + 1)]
        self.creating = Figure(f"create --count {size}", target=1.5)
        self.messaging = Figure(f"message to {size}")
        self.stopping = Figure(f"stop {size}")
        self.starting = Figure(f"start {size}")
        self.destroying = Figure(f"destroy -f {size}")
        self.figures = (self.creating, self.messaging, self.stopping, self.starting, self.destroying)

    def create(self) -> None:
        """The floor is one shell, with all the commands in it."""
        self.creating.ours.append(self.world.run(self.world.create("x", "--count", str(self.size))))
        self.world.settle(self.size)
        lines = []
        for name in self.names:
            lines.append(shlex.join(self.world.worktree_add(name)))
            lines.append(shlex.join(self.world.bare(*self.world.bare_session(name, self.world.work(name)))))
        script = self.world.run_script(lines)
        self.creating.floors.append(self.world.run(script))
        self.world.settle(2 * self.size)

    def message(self, runs: int) -> None:
        message = self.world.mngr("message", "x-*", "-m", "a line of text")
        paste = paste_into(self.world, self.names)
        self.messaging.take_turns(
            runs, lambda _: self.world.run(message), lambda _: self.world.run(INTERPRETER, *paste)
        )

    def stop(self) -> None:
        self.stopping.ours.append(self.world.run(self.world.mngr("stop", "x-*")))
        self.world.settle(self.size)
        self.stopping.floors.append(self.world.run(INTERPRETER, self._kill_sessions()))
        self.world.settle(0)

    def start(self) -> None:
        self.starting.ours.append(self.world.run(self.world.mngr("start", "x-*")))
        self.world.settle(self.size)
        words: list[str] = []
        for name in self.names:
            words += [*self.world.bare_session(name, self.world.work(name)), ";"]
        self.starting.floors.append(self.world.run(INTERPRETER, self.world.bare(*words)))
        self.world.settle(2 * self.size)

    def destroy(self) -> None:
        self.destroying.ours.append(self.world.run(self.world.mngr("destroy", "-f", "x-*")))
        self.world.settle(self.size)
        commands = [self.world.worktree_remove(name) for name in self.names]
        commands.append(self.world.git("branch", "-q", "-D", *(f"bare/{name}" for name in self.names)))
        self.destroying.floors.append(self.world.run(INTERPRETER, self._kill_sessions(), *commands))
        self.world.settle(0)

    def _kill_sessions(self) -> list[str]:
        words: list[str] = []
        for name in self.names:
            words += ["kill-session", "-t", f"={name}", ";"]
        return self.world.bare(*words)
