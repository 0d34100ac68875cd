"""Which tests there are: asked of the user's own pytest, in their project and with their interpreter. What it prints is
for people; collector.py, which goes along as a plugin, writes down what was collected."""

from __future__ import annotations

import os
import re
import shutil
import tempfile

from mngr import jsonline, process
from mngr.errors import MngrError, TimedOut
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

DEADLINE = 300.0  # seconds
_PLUGIN = "mngr_swarm_collector"  # by its name in the user's interpreter, where nothing else has it
_INCOMPLETE = (2, 3, 4)  # pytest's codes: interrupted, broken, misused. Others are of what comes after collecting
_HOW = "--pytest CMD says how pytest is run in this project"


class Found(Record):
    id: str  # what pytest is given, in `top`, to run this test alone
    file: str  # relative to `top`, as all paths here
    source: str  # where its function is written: mostly the same file; empty if nobody knows
    line: int  # in it; 0 if nobody knows
    name: str  # with parameters
    function: str  # without them, with its classes: TestList.test_empty
    doc: str
    markers: list[str]
    fixtures: list[str]  # files of the project that have its fixtures, or a plugin of pytest
    blocks: list[str]  # the tutorial's, that it cites


def collect(
    top: str,
    paths: Sequence[str],
    flags: Sequence[str],
    pytest: str,
    env: Mapping[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> list[Found]:
    """In the order of their files, whatever order they would be run in, and each once. `pytest` is a line of shell.
    With `errors`, it is no error that there are no tests; files that cannot be collected are put there, with why."""
    private = tempfile.mkdtemp(prefix="mngr-collect-")
    try:
        plugin, out = os.path.join(private, "plugin"), os.path.join(private, "collected.json")
        os.mkdir(plugin)
        shutil.copyfile(os.path.join(os.path.dirname(__file__), "collector.py"), os.path.join(plugin, f"{_PLUGIN}.py"))
        child = dict(os.environ if env is None else env)
        child["PYTHONPATH"] = os.pathsep.join(filter(None, [plugin, child.get("PYTHONPATH")]))
        child |= {"MNGR_COLLECTED": out, "MNGR_COLLECT_TOP": os.path.realpath(top)}
        words = ["--collect-only", "-q", "--color=no", "-p", _PLUGIN, *flags, *paths]
        line = f"cd {quote(top)} && {with_path(pytest, plugin)} {' '.join(map(quote, words))}"
        try:
            done = process.run(["sh", "-c", line], deadline=DEADLINE, env=child)
        except TimedOut:
            late = f"{pytest} was still collecting tests after {DEADLINE:g} s"
            raise TimedOut(late, _by_hand(pytest, flags, paths)) from None
        return _read(out, done, pytest, flags, paths, errors)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def with_path(line: str, directory: str) -> str:
    """A line that sets PYTHONPATH itself would put ours out of force: there it is put in front."""
    return re.sub(r"(?<!\w)PYTHONPATH=", lambda _: f"PYTHONPATH={quote(directory)}:", line)


def _read(
    out: str,
    done: process.Done,
    pytest: str,
    flags: Sequence[str],
    paths: Sequence[str],
    errors: dict[str, str] | None,
) -> list[Found]:
    by_hand = _by_hand(pytest, flags, paths)
    try:
        with open(out, encoding="ascii") as file:
            collected = jsonline.loads(file.read())
    except (OSError, ValueError):  # there is none, or it was killed while it wrote
        raise _never_came_so_far(done, pytest, by_hand) from None
    if collected["errors"] and errors is None:
        raise _error(collected["errors"], by_hand)
    if errors is not None:
        errors.update({error["file"]: error["message"].partition("\n")[0] for error in collected["errors"]})
    if (done.code < 0 or done.code in _INCOMPLETE) and not errors:
        raise MngrError(f"{pytest} could not collect the tests: {_telling(done)}", by_hand)
    if not collected["tests"] and errors is None:
        where = " ".join(paths) or "this project"
        gone = f": {collected['deselected']} deselected by {' '.join(flags) or 'its settings'}"
        raise MngrError(f"no tests collected in {where}{gone if collected['deselected'] else ''}", by_hand)
    found: dict[str, Found] = {}
    for test in collected["tests"]:
        found.setdefault(test["id"], Found.from_dict(test))
    if outside := [test.id for test in found.values() if test.file.startswith(os.pardir)]:
        raise MngrError(f"{outside[0]} is outside of the project: no agent would have it")
    return list(found.values())


def _never_came_so_far(done: process.Done, pytest: str, by_hand: str) -> MngrError:
    if done.code == 127:
        return MngrError(f"{pytest} cannot be run: {_telling(done)}", _HOW)
    if done.code < 0 or done.code > 128:
        return MngrError(f"{pytest} was killed by signal {abs(done.code) % 128} while it collected the tests", by_hand)
    hint = _HOW if "No module named pytest" in done.err else by_hand
    return MngrError(f"{pytest} could not collect the tests: {_telling(done)}", hint)


def _error(errors: list[dict[str, Any]], by_hand: str) -> MngrError:
    first, more = errors[0], len({error["file"] for error in errors}) - 1
    message = first["message"].partition("\n")[0]
    others = f" (and {more} more)" if more else ""
    return MngrError(f"{first['file']} cannot be collected: {message}{others}", by_hand)


def _by_hand(pytest: str, flags: Sequence[str], paths: Sequence[str]) -> str:
    return f"see it all: {' '.join([pytest, '--collect-only', *map(quote, [*flags, *paths])])}"


def _telling(done: process.Done) -> str:
    """The line for people to read: the last one that speaks of an error, else the last one."""
    lines = [line.strip() for line in (done.err.strip() or done.out.strip()).splitlines() if line.strip()]
    of_errors = [line for line in lines if "error" in line.lower()]
    return (of_errors or lines or [f"it ended with status {done.code}"])[-1].removeprefix("E ").strip()
