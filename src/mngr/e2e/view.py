"""The combined view: one static folder with all runs, tests, recordings and the tutorial, for any web server or none.

Pages opened from a disk may not fetch, so data comes as scripts that call `deliver(path, value)`: a small index, the
rows of a run, and each test for itself, when it is opened. `View.build` may be called again and again: a test whose
files have not changed is not read, and a file whose content has not changed is not written."""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from mngr.e2e import evidence
from mngr.e2e.artifacts import replace
from mngr.e2e.evidence import VERDICTS, Json, Problem, inputs_of, read_run, read_test

STATIC = Path(__file__).parent / "static"
PLAYER = STATIC / "player" / "asciinema-player.min.js"
_STATE = ".mngr-e2e-view"  # what is known of each run from the last time; also the sign that the folder is ours
_SEARCHED = 20_000  # characters of a test's commands and blocks that a search looks at
_TOLD = 50  # problems that the page lists; it counts all of them


class Part(NamedTuple):
    """A paragraph of a tutorial: a block, which has an id, or mere words."""

    section: str
    line: int
    text: str
    id: str = ""


class Built(NamedTuple):
    page: Path
    runs: int
    tests: int
    written: int  # tests that were new or had changed
    problems: list[Problem]
    player: bool  # whether recordings can be played
    version: str  # changes with everything that the pages show


class NotOurs(Exception):
    """There are files in the folder, and they are not of a view."""


class View:
    def __init__(
        self,
        source: Path,
        output: Path,
        tutorials: Iterable[str] = (),
        read_tutorial: Callable[[str], list[Part]] = lambda _: [],
    ) -> None:
        """`source` has runs in it, or is one. Without tutorials, those count that the newest run names. What
        `read_tutorial` raises for a bad file is an OSError or a ValueError."""
        self.source = source
        self.output = output
        self._tutorials = list(tutorials)
        self._read_tutorial = read_tutorial
        self._runs: dict[str, Json] = {}  # by directory
        self._written = 0
        self._built: tuple[object, Built] | None = None  # from which runs and tutorials

    def build(self) -> Built:
        """Raises NotOurs, and OSError when the folder cannot be written or the source not be listed."""
        if self.output.is_dir() and any(self.output.iterdir()) and not (self.output / _STATE).is_dir():
            raise NotOurs(f"{self.output} has files that are not of a view")
        (self.output / _STATE).mkdir(parents=True, exist_ok=True)
        self._written = 0
        self._copy_static()
        found = [self._update_run(path) for path in self._directories()]
        runs = sorted((run for run in found if run), key=lambda run: run["about"]["started"], reverse=True)
        paths = self._tutorials or _named_by(runs)
        made_from = [id(run) for run in runs], [_signature(path) for path in paths]
        if self._built and self._built[0] == made_from:
            return self._built[1]._replace(written=0)
        self._runs = {run["directory"]: run for run in runs}
        self._forget({run["key"] for run in runs})
        problems = [Problem(*told) for run in runs for told in self._problems(run)]
        version = self._write_index(runs, problems, self._tutorial(paths, runs, problems))
        count = sum(len(run["tests"]) for run in runs)
        page, player = self.output / "index.html", PLAYER.exists()
        self._built = made_from, Built(page, len(runs), count, self._written, problems, player, version)
        return self._built[1]

    def _copy_static(self) -> None:
        for path in STATIC.rglob("*"):
            target = self.output / path.relative_to(STATIC)
            if path.is_file() and not (target.exists() and target.read_bytes() == path.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def _directories(self) -> list[str]:
        if (self.source / "run.json").exists():
            return [str(self.source)]
        mine = os.path.realpath(self.output)
        with os.scandir(self.source) as entries:
            return sorted(
                entry.path
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                if os.path.realpath(entry.path) != mine
            )

    def _update_run(self, directory: str) -> Json | None:
        known = self._runs.get(directory)
        seen = _signature(os.path.join(directory, "run.json")) + _signature(directory)
        if known and known["seen"] == seen and known["about"]["finished"] is not None:
            return known  # over, and nothing was added since we looked
        key = _key(os.path.basename(os.path.abspath(directory)))
        old = known or self._recall(key)
        problems: list[Problem] = []
        about = read_run(directory, problems)
        tests = self._update_tests(key, directory, old["tests"])
        if not tests and not os.path.exists(os.path.join(directory, "run.json")):
            return None
        run = {"key": key, "directory": directory, "seen": seen, "about": about, "problems": problems, "tests": tests}
        if run == known:
            return known
        if tests != old["tests"]:
            replace(self.output / _STATE / f"{key}.json", json.dumps({"code": _CODE, "tests": tests}))
            _drop(self.output / "data" / "tests" / key, {test["row"]["key"] for test in tests.values()})
        return run

    def _update_tests(self, run: str, directory: str, old: Json) -> Json:
        """By the names of their directories."""
        tests = {}
        with os.scandir(directory) as entries:
            found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        for entry in found:
            if inputs := inputs_of(entry.path):
                held = old.get(entry.name)
                is_fresh = held and held["signature"] == inputs.signature and self._page(run, held).exists()
                try:
                    tests[entry.name] = held if is_fresh else self._write_test(run, entry.path, inputs)
                except FileNotFoundError:
                    continue  # pytest has just removed it: it passed, and only failures are kept
        return tests

    def _recall(self, key: str) -> Json:
        """Of another process; only what this very code has written counts."""
        try:
            held = json.loads((self.output / _STATE / f"{key}.json").read_bytes())
            return held if held["code"] == _CODE else {"tests": {}}
        except (OSError, ValueError, KeyError, TypeError):
            return {"tests": {}}

    def _page(self, run: str, test: Json) -> Path:
        return self.output / "data" / "tests" / run / f"{test['row']['key']}.js"

    def _write_test(self, run: str, directory: str, inputs: evidence.Inputs) -> Json:
        self._written += 1
        key = _key(os.path.basename(directory))
        problems: list[Problem] = []
        test = read_test(directory, inputs, problems)
        stamp = _checksum(inputs.signature)
        place = f"tests/{run}/{key}"
        test["casts"] = [self._write_cast(f"{place}/", directory, cast) for cast in test["casts"]]
        row = {name: test[name] for name in ("name", "file", "line", "status", "started", "duration")}
        row |= {"key": key, "stamp": stamp, "casts": len(test["casts"])}
        if test["status"] == "running":
            row["touched"] = inputs.touched
        self._deliver(place, test)
        words = [test["docstring"], *(block["text"] for block in test["blocks"])]
        words += [step[what] for step in test["steps"] for what in ("comment", "command")]
        return {
            "signature": inputs.signature,
            "test": test["test"],
            "row": row,
            "search": "\n".join(filter(None, words))[:_SEARCHED],
            "blocks": test["blocks"],
            "problems": problems,
        }

    def _write_cast(self, place: str, directory: str, cast: Json) -> Json:
        """The file itself, to be downloaded, and its events for the player. What the test's page has to know."""
        path = place + _key(cast["file"].removesuffix(".cast"))
        events = cast.pop("events")
        stamp = self._deliver(path, events)
        shutil.copyfile(os.path.join(directory, cast["file"]), self.output / "data" / f"{path}.cast")
        return {**cast, "path": path, "stamp": stamp, "duration": events[-1][0] if events else 0, "events": len(events)}

    def _problems(self, run: Json) -> list[Problem]:
        told = [*run["problems"], *(problem for test in run["tests"].values() for problem in test["problems"])]
        return [Problem(os.path.relpath(path, self.source), what) for path, what in told]

    def _tutorial(self, paths: list[str], runs: list[Json], problems: list[Problem]) -> list[Json]:
        """Each file with its paragraphs, and for each block what the tests that cite it have said last."""
        proofs = _proofs(runs)
        files: list[Json] = []
        for path in paths:
            try:
                parts = self._read_tutorial(path)
            except (OSError, ValueError) as error:
                problems.append(Problem(path, getattr(error, "strerror", None) or str(error)))
                continue
            shown = [{**part._asdict(), "proofs": [proof for _, proof in proofs.get(part.id, [])]} for part in parts]
            files.append({"path": _shown(path), "parts": shown})
        there = {part["id"] for file in files for part in file["parts"]}
        gone = [
            {"section": "", "line": None, "id": id, "text": cited[0][0], "proofs": [proof for _, proof in cited]}
            for id, cited in sorted(proofs.items())
            if id not in there
        ]
        return [*files, {"path": None, "parts": gone}] if gone else files

    def _write_index(self, runs: list[Json], problems: list[Problem], tutorial: list[Json]) -> str:
        listed = []
        for run in runs:
            tests = sorted(run["tests"].values(), key=_place)
            rows = [test["row"] for test in tests]
            texts = {test["row"]["key"]: test["search"] for test in tests}
            stamp = self._deliver(f"runs/{run['key']}", rows) + self._deliver(f"search/{run['key']}", texts)
            counts = dict.fromkeys((*VERDICTS, "running", "unreadable"), 0)
            for row in rows:
                counts[row["status"]] += 1
            shown = {name: run["about"][name] for name in ("name", "started", "finished", "argv")}
            listed.append({"key": run["key"], "stamp": stamp, "counts": counts, **shown})
        blocks = sum(bool(part["id"]) for file in tutorial for part in file["parts"])
        index = {
            "runs": listed,
            "problems": {"count": len(problems), "examples": problems[:_TOLD]},
            "player": PLAYER.exists(),
            "tutorial": {"stamp": self._deliver("tutorial", tutorial), "blocks": blocks},
        }
        version = _checksum(json.dumps(index))
        self._write("data/live.js", "deliver('live', false);\n")  # --serve answers otherwise
        self._deliver("index", {"version": version, **index})
        return version

    def _deliver(self, path: str, value: object) -> str:
        """ASCII only, so that no line separator ends a string, and without <, should anybody put it into a page."""
        text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        self._write(f"data/{path}.js", f'deliver("{path}", {text});\n')
        return _checksum(text)

    def _write(self, name: str, text: str) -> None:
        path = self.output / name
        try:
            if path.stat().st_size == len(text) and path.read_text(encoding="ascii") == text:
                return
        except (OSError, ValueError):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, text)

    def _forget(self, keys: set[str]) -> None:
        for name in ("data/tests", "data/runs", "data/search", _STATE):
            _drop(self.output / name, keys)


def _drop(directory: Path, keep: set[str]) -> None:
    """Runs and tests that are gone."""
    for path in list(directory.iterdir()) if directory.is_dir() else []:
        if path.is_dir() and path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_file() and path.stem not in keep:
            path.unlink(missing_ok=True)


def _proofs(runs: list[Json]) -> dict[str, list[tuple[str, Json]]]:
    """For each block that is cited: its text, and the last verdict of each test that cites it. A test that has had
    none yet is shown as it is."""
    last: dict[str, tuple[bool, float, Json, Json]] = {}
    for run in runs:
        for test in run["tests"].values():
            row = test["row"]
            rank = (row["status"] in VERDICTS, row["started"], run, test)
            if test["test"] not in last or rank[:2] > last[test["test"]][:2]:
                last[test["test"]] = rank
    cited: dict[str, list[tuple[str, Json]]] = {}
    for _, _, run, test in last.values():
        shown = {name: test["row"][name] for name in ("key", "name", "file", "status", "started", "casts")}
        for block in test["blocks"]:
            cited.setdefault(block["id"], []).append((block["text"], {"run": run["key"], **shown}))
    for proofs in cited.values():
        proofs.sort(key=lambda proof: (proof[1]["file"], proof[1]["name"]))
    return cited


def _named_by(runs: list[Json]) -> list[str]:
    for run in runs:
        if named := run["about"]["tutorial"]:
            root = run["about"]["rootdir"]
            return [os.path.join(root, path) if os.path.isdir(root) else path for path in named]
    return []


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _place(test: Json) -> tuple[str, int, list[str]]:
    """In its file; those with parameters of one test by their numbers."""
    row = test["row"]
    words = re.split(r"(\d+)", row["name"])
    return row["file"], row["line"] or 0, [word.zfill(12) if word.isdigit() else word for word in words]


def _key(name: str) -> str:
    """A directory's name as a part of addresses: itself, if it needs no quoting there."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}", name) and name != "tutorial":
        return name
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:60]}_{_checksum(name)}"


def _signature(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "none "
    return f"{status.st_mtime_ns} {status.st_size} "


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _code() -> str:
    """Another version of this code may write other pages: nothing of an older one is taken for fresh."""
    files: list[Any] = [Path(__file__), Path(evidence.__file__)]
    return _checksum("".join(path.read_text(encoding="utf-8") for path in files))


_CODE = _code()
