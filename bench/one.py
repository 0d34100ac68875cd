"""What a single call costs: start-up, list with ever more agents, and the verbs on one agent."""

from __future__ import annotations

from collections.abc import Iterator

from figure import Figure, Sizes, agents
from world import INTERPRETER, World

from mngr.tmux import PANE_FIELDS


def start_up(sizes: Sizes) -> Iterator[Figure]:
    with World() as world:
        version = world.mngr("--version")
        world.run(version)
        yield Figure("start-up (--version)").take_turns(
            sizes.runs, lambda _: world.run(version), lambda _: world.run(INTERPRETER)
        )


def list_agents(sizes: Sizes) -> Iterator[Figure]:
    """The floor asks mngr's own server, so that both see the same sessions."""
    with World() as world:
        ours = world.mngr("list")
        panes = ["tmux", "-u", "-S", world.socket, "list-panes", "-a", "-F", PANE_FIELDS]
        there = 0
        for count in sizes.lists:
            more = count - there
            world.run(world.create(f"x{count}", "--count", str(more)))
            world.settle(count)
            there = count
            figure = Figure(f"list, {agents(count)}", target=4 if count == 100 else None)
            yield figure.take_turns(sizes.runs, lambda _: world.run(ours), lambda _: world.run(INTERPRETER, panes))


def verbs(sizes: Sizes) -> Iterator[Figure]:
    with World() as world:
        world.run(world.create("x"))
        world.run(world.bare(*world.bare_session("x")))
        world.settle(2)
        (world.root / "text").write_text("a line of text")
        message, paste = world.mngr("message", "x", "-m", "a line of text"), paste_into(world, ["x"])
        yield Figure("message to 1").take_turns(
            sizes.runs, lambda _: world.run(message), lambda _: world.run(INTERPRETER, *paste)
        )
        execute = world.mngr("exec", "x", "--", "true")
        yield Figure("exec true").take_turns(
            sizes.runs, lambda _: world.run(execute), lambda _: world.run(INTERPRETER, ["sh", "-c", "true"])
        )
        yield from _stop_and_start(world, sizes)


def _stop_and_start(world: World, sizes: Sizes) -> Iterator[Figure]:
    stop, start = Figure("stop 1"), Figure("start 1")
    for _ in range(sizes.runs):
        stop.ours.append(world.run(world.mngr("stop", "x")))
        stop.floors.append(world.run(INTERPRETER, world.bare("kill-session", "-t", "=x")))
        world.settle(0)
        start.ours.append(world.run(world.mngr("start", "x")))
        world.settle(1)
        start.floors.append(world.run(INTERPRETER, world.bare(*world.bare_session("x"))))
        world.settle(2)
    yield from (stop, start)


def paste_into(world: World, sessions: list[str]) -> list[list[str]]:
    """A text into each of these bare sessions, in two calls."""
    words: list[str] = []
    for name in sessions:
        words += ["paste-buffer", "-p", "-b", "b", "-t", f"={name}:", ";", "send-keys", "-t", f"={name}:", "Enter", ";"]
    return [world.bare("load-buffer", "-b", "b", str(world.root / "text")), world.bare(*words)]
