"""What runs have left in `.test_output/e2e`, read for the combined view. A test may still be running, its pytest may
have been killed in the middle of a line, and what it printed may be anything: nothing here raises for what is in a
file. Each value is given the type that the page relies on, and what could not be read is told as a problem."""

from __future__ import annotations

import json
import math
import os
import stat
from typing import Any, NamedTuple

from mngr.e2e.cast import parse as parse_cast

Json = dict[str, Any]
VERDICTS = ("passed", "failed", "skipped")
_MOST = 32 << 20  # bytes of one file: more than anybody reads on a page


class Problem(NamedTuple):
    path: str
    what: str


class Inputs(NamedTuple):
    """The files of one test as they were when somebody looked."""

    names: list[str]
    signature: str  # changes with any of them
    touched: float  # when the last of them was written


def inputs_of(directory: str) -> Inputs | None:
    """None for a directory that no test has made."""
    found: list[tuple[str, int, int]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name in ("result.json", "steps.jsonl") or entry.name.endswith(".cast"):
                    status = entry.stat(follow_symlinks=False)  # a link could lead anywhere on this machine
                    if stat.S_ISREG(status.st_mode):
                        found.append((entry.name, status.st_mtime_ns, status.st_size))
    except OSError:
        return None
    if not found:
        return None
    found.sort()
    return Inputs([name for name, _, _ in found], repr(found), max(time for _, time, _ in found) / 1e9)


def read_run(directory: str, problems: list[Problem]) -> Json:
    about = _read_object(os.path.join(directory, "run.json"), problems)
    return {
        "name": _text(about.get("name")) or os.path.basename(directory),
        "started": _number(about.get("started")) or os.stat(directory).st_mtime,
        "finished": _number(about.get("finished")),
        "argv": [_text(word) for word in _list(about.get("argv"))],
        "rootdir": _text(about.get("rootdir")),
        "tutorial": [_text(path) for path in _list(about.get("tutorial")) if _text(path)],
    }


def read_test(directory: str, inputs: Inputs, problems: list[Problem]) -> Json:
    about = _read_object(os.path.join(directory, "result.json"), problems)
    status = about.get("status")
    name = os.path.basename(directory)
    return {
        "test": _text(about.get("test")) or name,
        "name": _text(about.get("name")) or name,
        "file": _text(about.get("file")),
        "line": _whole(about.get("line")),
        "status": status if status in (*VERDICTS, "running") else "unreadable",
        "started": _number(about.get("started")) or inputs.touched,
        "duration": _number(about.get("duration")),
        "docstring": _text(about.get("docstring")),
        "failure": _text(about.get("failure")),
        "blocks": [
            {"id": _text(block.get("id")), "text": _text(block.get("text"))} for block in _objects(about.get("blocks"))
        ],
        "steps": _read_steps(os.path.join(directory, "steps.jsonl"), problems) if "steps.jsonl" in inputs.names else [],
        "casts": _read_casts(directory, inputs, about, problems),
    }


def _read_steps(path: str, problems: list[Problem]) -> list[Json]:
    steps: list[Json] = []
    for number, line in enumerate(_content(path, problems).split("\n"), 1):
        if not line.strip():
            continue
        try:
            step = json.loads(line)
        except (ValueError, RecursionError):
            step = None
        if isinstance(step, dict):
            steps.append(_step(step, len(steps) + 1))
        else:
            problems.append(Problem(f"{path}:{number}", "this line is no step, or was cut"))
    return steps


def _step(step: Json, n: int) -> Json:
    return {
        "n": _whole(step.get("n")) or n,
        "time": _number(step.get("time")),
        "duration": _number(step.get("duration")),
        "kind": _text(step.get("kind")) or "run",
        "comment": _text(step.get("comment")),
        "command": _text(step.get("command")),
        "exit_code": _whole(step.get("exit_code")),
        "timed_out": bool(step.get("timed_out")),
        "lines": [
            ["e" if line[0] == "e" else "o", _text(line[1])]
            for line in _list(step.get("lines"))
            if isinstance(line, list) and len(line) == 2
        ],
    }


def _read_casts(directory: str, inputs: Inputs, about: Json, problems: list[Problem]) -> list[Json]:
    """Those on disk decide: while the test runs, none are listed yet."""
    listed = {_text(cast.get("file")): cast for cast in _objects(about.get("casts"))}
    found = []
    for name in inputs.names:
        if not name.endswith(".cast"):
            continue
        told = listed.get(name, {})
        path = os.path.join(directory, name)
        try:
            text = _content(path, problems)
            cast = parse_cast(text)
            events = _in_order(cast.events)
            started = _number(told.get("started")) or cast.started
            size = {"width": _whole(cast.width) or 80, "height": _whole(cast.height) or 24}
        except Exception as error:  # noqa: BLE001 - whatever is in the file, the other recordings are worth showing
            if text:  # an empty one belongs to a recorder that has just begun
                problems.append(Problem(path, f"this is no recording ({type(error).__name__})"))
            continue
        title = _text(told.get("title")) or name.removesuffix(".cast")
        found.append({"file": name, "title": title, "started": _number(started) or 0, **size, "events": events})
    return sorted(found, key=lambda cast: cast["started"])


def _in_order(events: list[tuple[float, str, str]]) -> list[list[Any]]:
    ordered: list[list[Any]] = []
    for at, code, data in events:
        if isinstance(data, str):
            ordered.append([max(_number(at) or 0, ordered[-1][0] if ordered else 0), code, data])
    return ordered


def _read_object(path: str, problems: list[Problem]) -> Json:
    content = _content(path, problems)
    try:
        value = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        problems.append(Problem(path, "this is no JSON object, or was cut"))
        return {}
    return value


def _content(path: str, problems: list[Problem]) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST + 1)
    except OSError as error:
        problems.append(Problem(path, error.strerror or str(error)))
        return ""
    if len(data) > _MOST:
        problems.append(Problem(path, f"only its first {_MOST >> 20} MB are shown"))
        data = data[: data.rfind(b"\n", 0, _MOST) + 1]
    return data.decode("utf-8", "replace")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if usable and math.isfinite(value) else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: object) -> list[Json]:
    return [item for item in _list(value) if isinstance(item, dict)]
