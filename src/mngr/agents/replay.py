"""`replay`: an agent that plays a trajectory, a script of what a live one would say and do, and needs no model. It is a
program in a pane like any other, with the same states, receipts, transcript and usage; all that it shows and logs
says that it is a replay. The steps are in replay.sh.

It does a turn per message and has no terminal interface: turns.sh runs it."""

from __future__ import annotations

import os
import time

from mngr import jsonline
from mngr.agents import AgentType, Permissions, Seat, Seed, turns
from mngr.errors import UsageError
from mngr.hosts import read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.log import LogReader

_NEXT = "# turn"  # the line between two parts of a trajectory

# What turns.sh calls. The steps have names that it uses itself, so they are there only in the subshell of a turn.
_TURN = """\
take_turn() (
  cat >/dev/null # the message, which $record has as well
  . "$d/replay.sh"
  play
)

failure() { # failure OUTPUT: its last line says why the turn cannot go on
  told=$(tail -n 1 "$1") kind=rate_limit
  case $told in 'usage limit reached, '*) ;; *) return 1 ;; esac
}"""

# $2: log of the other agent. How many parts were played is in there too: a clone goes on with the next one.
_ADOPT = """\
session=$MNGR_AGENT_ID
own_log=$MNGR_AGENT_DIR/replay.jsonl
LC_ALL=C sed '${/}$/!d;}' "$2" >"$own_log"
"""


class ReplayType(AgentType):
    name = "replay"
    summary = "plays a script of what an agent says and does, without a model"
    has_terminal = False
    launch = read_script(__file__, "replay_launch.sh")
    adopt = _ADOPT
    reports = proves = True
    rules = os.devnull  # nobody types on its screen
    logs = ("replay.jsonl",)

    def command(self, args: list[str]) -> list[str]:
        if len(args) != 1:
            raise UsageError("a replay needs one trajectory", "a file or a directory: mngr create NAME replay -- FILE")
        path = os.path.abspath(args[0])
        if not os.path.exists(path):
            raise UsageError(f"there is no trajectory {args[0]}")
        return ["sh", path]

    def headless(self, args: list[str]) -> list[str]:
        return self.command(args)

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions:
        """A script does what its author has written."""
        return Permissions()

    def seed(self, seat: Seat) -> Seed:
        path = trajectory(seat.agent.command[1], seat.agent.name)
        log = f"{seat.directory}/replay.jsonl"
        notice = {"type": "notice", "time": int(time.time()), "text": f"A replay of {path}: no model was asked."}
        return Seed(
            files={
                **turns.laid(_TURN),
                **{f"replay.{number}": part for number, part in enumerate(parts(path), 1)},
                "replay.sh": read_script(__file__, "replay.sh"),
                "replay.jsonl": jsonline.dumps(notice),
                "conversation": f"{seat.agent.id}\n{log}",
                "conversations": log,
            }
        )

    def receipt(self, record: Mapping[str, object], text: str) -> str | None:
        return turns.receipt(record, text)

    def line(self, text: str) -> str:
        return turns.line(text)

    def reader(self) -> LogReader:
        from mngr.agents.replay_log import ReplayLog

        return ReplayLog()


def trajectory(path: str, name: str) -> str:
    """The file that an agent of this name plays. In a directory that is the one whose name is the longest end of its
    own, so that one directory serves a whole swarm; `default.sh` is for all others."""
    if not os.path.isdir(path):
        return path
    stems = [file.removesuffix(".sh") for file in os.listdir(path) if file.endswith(".sh")]
    fitting = [stem for stem in stems if f"-{name}".endswith(f"-{stem}")]
    return os.path.join(path, f"{max(fitting, key=len, default='default')}.sh")


def parts(path: str) -> list[str]:
    """What is played for the first message, for the second, and so on."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise UsageError(f"cannot read the trajectory {path}: {error.strerror}") from None
    found: list[list[str]] = [[]]
    for line in lines:
        if line.rstrip() == _NEXT:
            found.append([])
        else:
            found[-1].append(line)
    return ["\n".join(part) for part in found]


REPLAY = ReplayType()
