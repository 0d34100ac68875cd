"""What was asked and what was handed out: one entry for each request, when its answer is complete."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from threading import Lock
from typing import IO

from mngr.dev.exchange import NO_USAGE, Json, Turn, Usage


class Ledger:
    def __init__(self, path: str | None = None) -> None:
        self._file: IO[str] | None = open(path, "a", encoding="utf-8") if path else None  # noqa: SIM115 - see close
        self._lock = Lock()
        self._entries: list[Json] = []
        self._begun = 0
        self._seen: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def begin(self, path: str, turn: Turn | None) -> Json:
        """The entry of a request that has just come in. It is nobody's business until `complete`."""
        with self._lock:
            self._begun += 1
            return {
                "n": self._begun,
                "time": time.time(),
                "path": path,
                "model": turn.model if turn else None,
                "tools": len(turn.tools) if turn else 0,
                "conversation": turn.conversation if turn else None,
                "new_user_texts": self._new_texts(turn) if turn else [],
            }

    def _new_texts(self, turn: Turn) -> list[str]:
        """Programs send the whole history each time. The same words said a second time are new all the same; a
        request aside has nothing that the user said to it."""
        if turn.is_aside:
            return []
        seen, here, new = self._seen[turn.conversation], Counter[str](), []
        for text in turn.said:
            here[text] += 1
            if here[text] > seen[text]:
                new.append(text)
        seen |= here
        return new

    def complete(self, entry: Json, answered: Json, status: int | None, usage: Usage | None, id: str | None) -> None:
        with self._lock:
            entry.update(answered=answered, status=status, usage=usage, id=id)
            self._entries.append(entry)
            if self._file:
                self._file.write(json.dumps(entry) + "\n")
                self._file.flush()

    def entries(self) -> list[Json]:
        with self._lock:
            return list(self._entries)

    def usage(self) -> dict[str, Usage]:
        sums: dict[str, Usage] = {}
        for entry in self.entries():
            if entry["usage"]:
                total = sums.setdefault(entry["model"], dict(NO_USAGE))
                for key, count in entry["usage"].items():
                    total[key] += count
        return sums

    def close(self) -> None:
        if self._file:
            self._file.close()
