"""Three versions of a file as one, by git. It knows no repository and no settings, so the same three always give the
same."""

from __future__ import annotations

import os
import tempfile

from mngr import process
from mngr.errors import MngrError

_DEADLINE = 600.0


def three_way(ours: bytes, base: bytes, theirs: bytes, *flags: str) -> tuple[bytes, bool]:
    """What it becomes, and whether without a conflict. MngrError where it cannot: not all is text."""
    with tempfile.TemporaryDirectory(prefix="mngr-merge-") as directory:
        names = [os.path.join(directory, name) for name in ("ours", "base", "theirs")]
        for name, content in zip(names, (ours, base, theirs), strict=True):
            with open(name, "wb") as file:
                file.write(content)
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.devnull, "LC_ALL": "C"}
        done = process.run(["git", "merge-file", "-p", "--quiet", *flags, *names], deadline=_DEADLINE, env=env)
    if not 0 <= done.code <= 127:
        raise MngrError(f"git merge-file failed: {done.err.strip() or done.code}")
    return done.out.encode("utf-8", "surrogateescape"), done.code == 0


def is_text(*contents: bytes) -> bool:
    return not any(b"\0" in content for content in contents)
