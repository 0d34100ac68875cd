"""What has become of a run's work: the branch that an integration has made of it, as the log of that says. The
integration itself is none of the swarm's business."""

from __future__ import annotations

import os

from mngr.swarm.log import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.swarm.state import Run

DIRECTORY, LOG = "integration", "log.jsonl"  # of the integration, in the directory of the run
PUBLISHED = "published"
_MEMBERS = ("branch", "commit", "base", "commits", "left", "aside", "time")


def integrated(run: Run) -> dict[str, Any] | None:
    """The last branch that was made of it."""
    found = None
    for event in Reader(os.path.join(run.directory, DIRECTORY, LOG)).events():
        if event.get("event") == PUBLISHED:
            found = {member: event.get(member) for member in _MEMBERS}
    return found


def line(told: dict[str, Any] | None) -> list[str]:
    """For people; none if there is no branch."""
    if told is None:
        return []
    count = told["commits"] or 0
    parts = ["1 commit" if count == 1 else f"{count} commits"]
    parts += [f"{told['left']} left out"] if told["left"] else []
    parts += [f"{told['aside']} set aside"] if told["aside"] else []
    return [f"integrated: {told['branch']} ({', '.join(parts)})"]
