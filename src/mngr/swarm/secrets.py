"""Values that agents were given and nobody else should read: taken out of everything that came home, whatever it is.
Artifacts may be large, so files are read in blocks, and only one that holds a secret is written again.

What counts as a secret is decided by mngr.e2e.redaction. Not found are values that an agent has changed: compressed,
encoded or cut in pieces."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile

from mngr import registry
from mngr.e2e.redaction import Redaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    import mngr

_BLOCK = 1 << 20  # bytes


def known(request: mngr.Request, type_name: str) -> dict[str, str]:
    """The variables of the agents: those that they were given, and those that their type hands on from ours."""
    passed = registry.agent_type(type_name).passes
    return {**{name: os.environ[name] for name in passed if name in os.environ}, **request.env}


def redact(directory: str, values: Mapping[str, str]) -> None:
    """In every file below the directory, `[NAME]` takes the place of each value that is a secret."""
    hidden = _hidden(values)
    if not hidden:
        return
    for place, _, names in os.walk(directory):
        for path in (os.path.join(place, name) for name in names):
            if stat.S_ISREG(os.lstat(path).st_mode) and _holds_one(path, hidden):
                _rewrite(path, hidden)


def _hidden(values: Mapping[str, str]) -> dict[bytes, str]:
    """The names by what is hidden: each line of a value, as it is and as JSON has it, also JSON inside of JSON."""
    found: dict[bytes, str] = {}
    for name, value in values.items():
        for line in value.splitlines():
            rule = Redaction()
            rule.learn({name: line})
            if rule.of_text(line) != line:
                found |= {form.encode("utf-8", "surrogateescape"): name for form in _forms(line)}
    return found


def _forms(text: str) -> set[str]:
    forms = {text}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (True, False)}
    return forms


def _holds_one(path: str, hidden: Mapping[bytes, str]) -> bool:
    with open(path, "rb") as file:
        return any(name for _, name in _stretches(file, hidden))


def _rewrite(path: str, hidden: Mapping[bytes, str]) -> None:
    """At once: nobody finds half a file, and a kill leaves the old one to be redacted again."""
    descriptor, draft = tempfile.mkstemp(dir=os.path.dirname(path))
    with open(path, "rb") as file, open(descriptor, "wb") as out:
        out.writelines(f"[{name}]".encode() if name else stretch for stretch, name in _stretches(file, hidden))
    shutil.copymode(path, draft)
    os.replace(draft, path)


def _stretches(file: BinaryIO, hidden: Mapping[bytes, str]) -> Iterator[tuple[bytes, str]]:
    """The file piece by piece, each with the name of the secret that it is, or "". One secret may begin another, so
    the longest come first; and one that begins near the end of a block waits for the next."""
    pattern = re.compile(b"|".join(map(re.escape, sorted(hidden, key=len, reverse=True))))
    longest = max(map(len, hidden))
    held, is_last = b"", False
    while not is_last:
        block = file.read(_BLOCK)
        held, is_last = held + block, not block
        certain = len(held) if is_last else len(held) - longest + 1  # what begins before this ends in `held`
        done = 0
        for match in pattern.finditer(held):
            if match.start() >= certain:
                break
            yield held[done : match.start()], ""
            yield match[0], hidden[match[0]]
            done = match.end()
        rest = max(done, certain)
        yield held[done:rest], ""
        held = held[rest:]
