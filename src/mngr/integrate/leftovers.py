"""What an integration has in its directory only while it goes on. It goes at its end, and with the next one there; who
was killed and is never begun again leaves it to `mngr gc`."""

from __future__ import annotations

import os
import shutil
from glob import escape, glob

from mngr.integrate.log import Log
from mngr.swarm.integrated import DIRECTORY
from mngr.swarm.log import is_taken
from mngr.swarm.runs import runs_directory

_PASSING = ("repo.git", "attributes", "checkouts")


def leftovers(home: str) -> list[str]:
    """Directories of integrations that nobody is at, and that still have something of the kind."""
    patterns = (
        os.path.join(escape(home), "integrations", "*"),
        os.path.join(escape(runs_directory(home)), "*", DIRECTORY),
    )
    places = [place for pattern in patterns for place in sorted(glob(pattern))]
    return [place for place in places if _there(place) and not is_taken(place)]


def sweep(directory: str) -> None:
    """MngrError if somebody is at it again."""
    with Log(directory):
        clear(directory)


def clear(directory: str) -> None:
    """By whoever holds its lock."""
    for path in _there(directory):
        shutil.rmtree(path, ignore_errors=True)


def _there(directory: str) -> list[str]:
    return [path for name in _PASSING if os.path.lexists(path := os.path.join(directory, name))]
