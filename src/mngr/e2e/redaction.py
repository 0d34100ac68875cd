"""Secrets, kept out of everything that a test leaves or reports: the values of variables whose names say what they hold
are replaced by those names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 6  # characters: a shorter value would blacken ordinary words


class Redaction:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # by what is hidden

    def learn(self, env: Mapping[str, str]) -> None:
        """Of a value with several lines, each. One may begin another: the longest are replaced first."""
        for name, value in env.items():
            if _SECRET.search(name):
                self._names |= {line: name for line in value.splitlines() if len(line) >= _SHORTEST}
        self._names = dict(sorted(self._names.items(), key=lambda item: -len(item[0])))

    def of_text(self, text: str) -> str:
        for value, name in self._names.items():
            text = text.replace(value, f"[{name}]")
        return text

    def of_json(self, data: bytes) -> bytes:
        """As the values stand in JSON text."""
        for value, name in self._names.items():
            data = data.replace(json.dumps(value)[1:-1].encode(), f"[{name}]".encode())
        return data
