"""Where everything of one user's agents is."""

from __future__ import annotations

import os

from mngr.errors import MngrError

_known: dict[str, str] = {}


def home_path() -> str:
    """$MNGR_HOME, as a real absolute path: everything of one home (socket, locks) is derived from its name. It is the
    same one as long as the process lives, unless it depends on where that stands."""
    path = os.path.expanduser(os.environ.get("MNGR_HOME") or "~/.mngr")
    if path in _known:
        return _known[path]
    try:
        home = os.path.realpath(path)
    except OSError as error:  # a relative path, and the current directory is gone
        raise MngrError(f"MNGR_HOME={path} leads nowhere: {error.strerror}", "make it an absolute path") from error
    if os.path.isabs(path):
        _known[path] = home
    return home
