"""Whose a host is, when all that is left of it is what the provider tells."""

from __future__ import annotations

import os

from mngr.home import home_path


def home_id() -> str:
    """One for each MNGR_HOME, the same for ever: of the machine, the user and the path. It is kept nowhere, so that
    hosts can be found again when the home is lost."""
    import hashlib

    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            machine = file.read().strip()
    except (OSError, ValueError):
        machine = ""
    owner = "\0".join((machine or os.uname().nodename, str(os.getuid()), home_path()))
    return hashlib.sha256(os.fsencode(owner)).hexdigest()[:12]
