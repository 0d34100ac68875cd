"""One run of a block by itself: in a new home, with a small git repository to work in, and a time limit. What it leaves
running, agents of mngr included, ends with it.

This keeps accidents away from the user's home. It is no jail: the commands run as the user."""

from __future__ import annotations

import os

from mngr.e2e.command import run
from mngr.e2e.sandbox import Sandbox
from mngr.hosts.sockets import end_of_server
from mngr.record import Record

LIMIT = 60.0  # seconds
_CANNOT_RUN = 126  # as a shell has it
_LONGEST = 20_000  # characters of output that are kept: the last ones
_REPOSITORY = """
git config --global user.name 'Ada Lovelace' && git config --global user.email ada@example.com &&
git config --global init.defaultBranch main && git config --global advice.detachedHead false &&
git init -q && echo '# Sample' >README.md && git add -A && git commit -q -m 'First commit'
"""


class Trial(Record):
    code: int
    seconds: float
    output: str  # both streams, in the order in which they came
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.code == 0


def try_block(text: str, limit: float = LIMIT) -> Trial:
    """What cannot be run at all has failed."""
    sandbox = Sandbox()
    try:
        home = str(sandbox.root / "m")
        sandbox.at_end(end_of_server(home))
        env = {**sandbox.env, "MNGR_HOME": home, "PATH": _path(sandbox.env["PATH"])}
        run(_REPOSITORY, env=env, cwd=sandbox.work, timeout=limit)
        # The first command that fails is the one that counts, not the last one of the block.
        result = run(f"set -e; {text}", env=env, cwd=sandbox.work, timeout=limit)
    except OSError as error:
        return Trial(code=_CANNOT_RUN, seconds=0, output=f"{error.strerror or error}\n")
    finally:
        sandbox.remove()
    return Trial(
        code=result.exit_code,
        seconds=round(result.duration, 2),
        output=result.output[-_LONGEST:],
        timed_out=result.timed_out,
    )


def _path(first: str) -> str:
    """With the user's own behind it: the program that the tutorial is about is installed somewhere."""
    theirs = os.environ.get("PATH", os.defpath)
    return os.pathsep.join(dict.fromkeys([*first.split(os.pathsep), *theirs.split(os.pathsep)]))
