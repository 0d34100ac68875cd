"""What a test leaves for people to look at: `.test_output/e2e/<run>/<test>/`, written as the test goes on, so that it
can be watched, and so that a killed test has left what there was. docs/e2e.md names the files.

Several processes of one run write below the same directory; what is shared is made once, by whoever comes first."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from mngr.e2e.transcript import Step, write_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.redaction import Redaction

_UNNAMED = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+")
_KEPT_RUNS = 20


class Run:
    """One run of pytest, which may be several processes."""

    def __init__(self, top: Path, runs: Path, name: str, argv: list[str], tutorials: list[str]) -> None:
        self.directory = runs / name
        self._begin = {"schema": 1, "name": name, "started": time.time(), "finished": None, "argv": argv}
        self._begin |= {"rootdir": str(top), "tutorial": tutorials}
        self._is_there = False

    def directory_of(self, node_id: str) -> Path:
        """A new one, for the artifacts of that test."""
        self._make()
        directory = self.directory / _slug(node_id)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir()
        return directory

    def _make(self) -> None:
        if self._is_there:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        ignore = self.directory.parents[1] / ".gitignore"
        if ignore.parent.name == ".test_output" and not ignore.exists():
            ignore.write_text("*\n")
        try:
            with open(self.directory / "run.json", "x", encoding="utf-8") as file:
                file.write(json.dumps(self._begin) + "\n")
        except FileExistsError:
            pass
        else:
            _point(self.directory.parent / "latest", self.directory.name)
            _clear(self.directory.parent, self.directory.name)
        self._is_there = True

    @property
    def edits(self) -> Path:
        """Where all processes of the run note what snapshots are to become."""
        self._make()
        return self.directory / "snapshots.jsonl"

    def finish(self) -> None:
        try:
            held = json.loads((self.directory / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        replace(self.directory / "run.json", json.dumps({**held, "finished": time.time()}) + "\n")
        for path in self.directory.glob("*/result.json"):
            about = json.loads(path.read_text(encoding="utf-8"))
            if about["status"] == "running":
                about |= {"status": "failed", "failure": "its process ended before it did"}
                replace(path, json.dumps(about) + "\n")

    def begin_anew(self) -> None:
        """A name that is used again means a new run."""
        shutil.rmtree(self.directory, ignore_errors=True)


class Artifacts:
    """Those of one test."""

    def __init__(self, directory: Path, about: dict[str, Any], redaction: Redaction) -> None:
        self.directory = directory
        self._redaction = redaction
        self._about = {"schema": 1, **about, "status": "running", "started": time.time(), "duration": None}
        self._about |= {"blocks": [], "casts": [], "failure": None}
        if about["docstring"]:
            (directory / "docstring.txt").write_text(about["docstring"] + "\n", encoding="utf-8")
        self._save()

    def cite(self, blocks: list[dict[str, str]]) -> None:
        self._about["blocks"] = blocks
        text = "\n\n".join(block["text"] for block in blocks) + "\n"
        (self.directory / "block.sh").write_text(text, encoding="utf-8", errors="replace")
        self._save()

    def add(self, step: Step) -> None:
        lines = [(stream, self._redaction.of_text(text)) for stream, text in step.lines]
        command, comment = (text and self._redaction.of_text(text) for text in (step.command, step.comment))
        step = step._replace(lines=lines, command=command, comment=comment)
        with open(self.directory / "steps.jsonl", "a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(step._asdict()) + "\n")
        with open(self.directory / "transcript.txt", "a", encoding="utf-8", errors="replace") as file:
            file.write(write_step(step))

    def finish(self, status: str, duration: float | None, failure: str | None) -> None:
        for path in self.directory.glob("*.cast"):
            text = path.read_bytes()
            if (hidden := self._redaction.of_json(text)) != text:
                path.write_bytes(hidden)
        duration = self._about["duration"] if duration is None else duration
        self._about |= {"status": status, "duration": duration, "casts": self._casts()}
        self._about["failure"] = failure and self._redaction.of_text(failure)
        self._save()

    def _casts(self) -> list[dict[str, Any]]:
        recorded = sorted(self.directory.glob("*.cast"))
        if not recorded:
            return []
        from mngr.e2e.cast import read

        found = []
        for path in recorded:
            try:
                cast = read(path)
            except (OSError, ValueError):
                continue  # nothing had been recorded when its recorder was killed
            about = {"file": path.name, "title": path.stem, "started": cast.started, "duration": cast.duration}
            found.append({**about, "width": cast.width, "height": cast.height})
        return sorted(found, key=lambda cast: cast["started"])

    def _save(self) -> None:
        replace(self.directory / "result.json", json.dumps(self._about) + "\n")


def replace(path: Path, text: str) -> None:
    """In one step: a reader finds the old text or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8", errors="replace")
    os.replace(new, path)


def _point(link: Path, target: str) -> None:
    new = link.with_name(f"{link.name}.{os.getpid()}")
    try:
        os.symlink(target, new)
        os.replace(new, link)
    except OSError:
        new.unlink(missing_ok=True)  # somebody made a file or directory of that name: a convenience less


def _clear(runs: Path, newest: str) -> None:
    """Runs that nobody gave a name go, but for the last ones: nobody asks for the others any more."""
    unnamed = sorted(path for path in runs.iterdir() if _UNNAMED.fullmatch(path.name) and path.name != newest)
    for old in unnamed[:-_KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)


def _slug(node_id: str) -> str:
    """A name that any file system takes, and that no other test has."""
    file, _, test = node_id.partition("::")
    name = f"{file.rpartition('/')[2].removesuffix('.py')}-{test.replace('::', '-')}"
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80]
    return f"{readable}-{hashlib.sha256(node_id.encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"
