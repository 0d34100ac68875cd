"""A tutorial's block as a test cites it: the same words with another indentation are the same block. The ids are in
artifacts and ledgers, so what is normalised away here cannot be changed without changing them all."""

from __future__ import annotations

import hashlib
import textwrap


def normalise(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def block_id(text: str) -> str:
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogateescape")).hexdigest()[:8]
