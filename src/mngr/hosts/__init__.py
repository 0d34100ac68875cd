"""The contract of a host: a place that can run `sh`. Everything else (files, git, tmux, attach) is derived from
`start`, once, for every provider. Two Protocols, a handful of methods; `run` is what nearly all verbs use.

Scripts are the `.sh` files beside the functions that send them. A call is: two variables that say where things are,
`common.sh`, the verb's functions, then lines that call them with quoted arguments; a batch of 100 agents is 100 lines
of one script, hence one round trip."""

from __future__ import annotations

import os

from mngr import process
from mngr.errors import MngrError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from mngr.hosts.lines import Lines
    from mngr.hosts.place import Place

    class Host(Protocol):
        """One place. `home` is its MNGR_HOME and `socket` its private tmux server's, both as paths there."""

        name: str
        home: str
        socket: str
        lines: Lines | None  # open lines to it; None on this machine, where a process costs less

        def argv(self, script: str, args: list[str], *, tty: bool = False) -> list[str]:
            """The local command line that runs `script` with sh there, `args` as $1..., stdio passed through."""
            ...

        def start(self, script: str, args: list[str], *, stdin: int, stdout: int, stderr: int) -> process.Child:
            """Start it and hand over the process. Raises HostUnreachable."""
            ...

    class Provider(Protocol):
        """Makes, finds, stops and removes hosts, and says how each is reached. What it cannot do raises UsageError."""

        name: str
        makes: bool  # hosts that were not there before, and that go with their last agent
        options: Mapping[str, str]  # what `--with KEY=VALUE` takes for a new host, with one line of help for each

        def reach(self, place: Place) -> Host:
            """How to get there. No traffic."""
            ...

        def make(self, name: str, options: Mapping[str, str], tell: Callable[[str], None]) -> str:
            """A host of that name, ready to run `sh`: the provider's own id of it, or "" when it has none. One that
            exists already is a MngrError, and one that cannot be finished is taken away again."""
            ...

        def find(self) -> dict[str, str]:
            """The hosts of ours that there are: name to the provider's id. Raises HostUnreachable when that cannot be
            known: an answer that is missing is never an empty one."""
            ...

        def stop(self, place: Place) -> Place:
            """It costs nothing any more, and keeps its files. What is to be known for its start is in the Place."""
            ...

        def start(self, place: Place) -> Place: ...

        def remove(self, place: Place) -> None:
            """With everything in it. One that is gone already is no error."""
            ...

        def snapshot(self, place: Place, name: str) -> str:
            """Its files as an image that `--with image=...` takes."""
            ...


_ARG_LIMIT = 100_000  # Linux takes 128 KiB in one argument; a longer script goes by stdin


def script_for(host: Host | Place, body: str) -> str:
    """What every script begins with: where things are, and common.sh."""
    return f"H={process.quote(host.home)} S={process.quote(host.socket)}\n{read_script(__file__, 'common.sh')}\n{body}"


def run(host: Host, body: str, *, deadline: float = 60.0, private: bool = False) -> process.Done:
    """Run a script to its end on the host. TimedOut is raised; an exit code is not, whatever it is.
    `private` scripts hold what no other user may see in the list of processes: they go by stdin."""
    script, input = script_for(host, body), b""
    if host.lines is not None:
        return host.lines.run(script, deadline=deadline)
    if private or len(script) > _ARG_LIMIT:
        # Parsed as one group before anything runs, so that no command in it can eat the rest of the script.
        script, input = "exec sh -s", f"{{ {script}\n}} </dev/null\n".encode("utf-8", "surrogateescape")
    try:
        return process.run(host.argv(script, []), input=input, deadline=deadline)
    except TimedOut as error:
        raise TimedOut(f"{host.name}: {error.message}") from None


def check(host: Host, body: str, *, deadline: float = 60.0, private: bool = False) -> str:
    """Like run, for scripts whose failure is an error: its stdout, or MngrError with the last thing it said."""
    done = run(host, body, deadline=deadline, private=private)
    if done.code == 0:
        return done.out
    said = [line for line in (done.err or done.out).splitlines() if line.strip()]
    said = [line for line in said if line.startswith("fatal: ")] or said  # git may go on, with where it looked
    raise MngrError(said[-1].removeprefix("fatal: ") if said else f"{host.name}: script ended with {done.code}")


_scripts: dict[str, str] = {}


def read_script(beside: str, name: str) -> str:
    path = os.path.join(os.path.dirname(beside), name)
    if path not in _scripts:
        with open(path, encoding="utf-8") as file:
            _scripts[path] = file.read()
    return _scripts[path]
