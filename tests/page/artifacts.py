"""Artifacts of runs that never were, in the very form in which the pytest plugin writes them (docs/e2e.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mngr.e2e.block import block_id, normalise

START = 1_700_000_000.0
Event = tuple[float, str, str]


def make_run(
    top: Path, name: str, started: float = START, finished: float | None = START + 60, tutorial: tuple[Path, ...] = ()
) -> Path:
    run = top / name
    run.mkdir(parents=True)
    about = {"schema": 1, "name": name, "started": started, "finished": finished, "argv": ["pytest", "tests/e2e"]}
    about |= {"rootdir": str(top), "tutorial": [str(path) for path in tutorial]}
    (run / "run.json").write_text(json.dumps(about) + "\n")
    return run


def make_test(
    run: Path,
    name: str,
    status: str = "passed",
    steps: tuple[dict[str, Any], ...] = (),
    casts: dict[str, str] | None = None,
    blocks: tuple[str, ...] = (),
    file: str = "tests/e2e/test_sample.py",
    slug: str | None = None,
    **more: Any,
) -> Path:
    directory = run / (slug or f"test_sample-{name}-abc123")
    directory.mkdir()
    about = {"schema": 1, "test": f"{file}::{name}", "name": name, "file": file, "line": 12, "status": status}
    about |= {"started": START, "duration": None if status == "running" else 1.25, "docstring": None, "failure": None}
    about["blocks"] = [{"id": block_id(text), "text": normalise(text)} for text in blocks]
    about["casts"] = [{"file": cast, "title": cast.removesuffix(".cast"), "started": START} for cast in casts or {}]
    (directory / "result.json").write_text(json.dumps(about | more) + "\n")
    if steps:
        (directory / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    for cast, text in (casts or {}).items():
        (directory / cast).write_text(text)
    return directory


def step(n: int, command: str, at: float = 0, out: str = "", err: str = "", **more: Any) -> dict[str, Any]:
    lines = [["o", line] for line in out.split("\n") if out] + [["e", line] for line in err.split("\n") if err]
    about = {"n": n, "time": START + at, "duration": 0.1, "kind": "run", "comment": None, "command": command}
    return {**about, "exit_code": 0, "timed_out": False, "lines": lines, **more}


def cast(*events: Event, width: int = 80, height: int = 24) -> str:
    header = {"version": 2, "width": width, "height": height, "timestamp": int(START), "mngr_started": START}
    return "".join(json.dumps(line) + "\n" for line in (header, *events))
