"""The contract of a host: a place that can run `sh`. Everything else (files, git, tmux, attach) is derived from
`start`, once, for every provider. Two Protocols, a handful of methods; `run` is what nearly all verbs use.

Scripts are the `.sh` files beside the functions that send them. A call is: two variables that say where things are,
`common.sh`, the verb's functions, then lines that call them with quoted arguments; a batch of 100 agents is 100 lines
of one script, hence one round trip."""

from __future__ import annotations

import os

from mngr import process
from mngr.errors import HostUnreachable, MngrError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Host(Protocol):
        """One place. `home` is its MNGR_HOME and `socket` its private tmux server's, both as paths there."""

        name: str
        home: str
        socket: str

        def argv(self, script: str, args: list[str], *, tty: bool = False) -> list[str]:
            """The local command line that runs `script` with sh there, `args` as $1..., stdio passed through."""
            ...

        def start(self, script: str, args: list[str], *, stdin: int, stdout: int, stderr: int) -> process.Child:
            """Start it and hand over the process. Raises HostUnreachable."""
            ...

    class Provider(Protocol):
        """Makes, finds and removes hosts."""

        name: str

        def host(self, name: str | None) -> Host:
            """The host of that name, or a new one when None."""
            ...


_ARG_LIMIT = 100_000  # Linux takes 128 KiB in one argument; a longer script goes by stdin


def script_for(host: Host, body: str) -> str:
    """What every script begins with: where things are, and common.sh."""
    return f"H={process.quote(host.home)} S={process.quote(host.socket)}\n{read_script(__file__, 'common.sh')}\n{body}"


def run(host: Host, body: str, *, deadline: float = 60.0, private: bool = False) -> process.Done:
    """Run a script to its end on the host. TimedOut is raised; an exit code is not, whatever it is.
    `private` scripts hold what no other user may see in the list of processes: they go by stdin."""
    script, input = script_for(host, body), b""
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
    if done.code == 255:
        raise HostUnreachable(f"{host.name}: {said[-1] if said else 'cannot be reached'}")
    raise MngrError(said[-1].removeprefix("fatal: ") if said else f"{host.name}: script ended with {done.code}")


_scripts: dict[str, str] = {}


def read_script(beside: str, name: str) -> str:
    path = os.path.join(os.path.dirname(beside), name)
    if path not in _scripts:
        with open(path, encoding="utf-8") as file:
            _scripts[path] = file.read()
    return _scripts[path]
