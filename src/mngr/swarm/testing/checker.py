"""Runs the tests of a branch again, where no agent has been: in a clean checkout, before and after its commits, and
with the tests of the branch but without its changes of the program. It writes what it found as JSON to $MNGR_RESULT;
what that is worth is for judge.py to say.

It is one file with two lives, and is sent alone to where the checkout is: a program, and the plugin of the pytest that
this program starts (what pytest prints is never parsed). So it imports nothing of mngr, and is plain enough for Python
3.8 and pytest 6. The job is JSON, in the first line of $MNGR_INPUT:

    pytest    a line of shell that runs pytest; `flags` go with it
    test      the id of the test, as that pytest takes it in the directory we are in
    base, head    the branch begins behind the one and ends with the other
    timeout   seconds that a test may take: a run of pytest has as many for each of its tests, but at most `longest`
    packages  that must come from the checkout; null: those that lie at its top or in src/
    kinds     pairs of a kind and a regular expression over paths; what none of them finds is the program
"""

from __future__ import annotations

import ast
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

PASSED, SKIPPED, ERROR, FAILED, MISSING, TIMED_OUT = "passed", "skipped", "error", "failed", "missing", "timed out"
# Of several findings about one test, the last one in this order counts.
_BY_WEIGHT = (MISSING, PASSED, SKIPPED, ERROR, FAILED, TIMED_OUT)
_MOST_OTHERS = 500  # tests of a branch that are looked at besides its own
_ORDERS = "MNGR_CHECKER_ORDERS"  # names the file that says to the plugin what to run, and where to write


class Broken(Exception):
    """Nothing can be said about the branch."""


# The program


def main() -> None:
    if sys.argv[1:2] == ["resolve"]:
        print(json.dumps({name: _place_of(name) for name in sys.argv[2:]}))
        return
    try:
        answer = check(json.loads(os.environ["MNGR_INPUT"].partition("\n")[0]))
    except (Broken, OSError, ValueError, KeyError) as error:
        answer = {"error": f"{'' if isinstance(error, Broken) else type(error).__name__ + ': '}{error}"}
    draft = os.environ["MNGR_RESULT"] + ".draft"
    with open(draft, "w", encoding="ascii") as file:
        json.dump(answer, file)
    os.replace(draft, os.environ["MNGR_RESULT"])


def check(job: dict[str, Any]) -> dict[str, Any]:
    test, base, head = job["test"], job["base"], job["head"]
    paths = _changed_paths(base, head)
    of_tests = {path: status for path, status in paths.items() if _kind(job, path) == "test"}
    is_fix = any(not _kind(job, path) for path in paths)
    touched = _touched(base, head, of_tests)
    candidates = [each for each in touched if each != test]
    others = candidates[:_MOST_OTHERS]
    own = [test] if test in touched else []
    tree = Checkout(list(paths))
    with tempfile.TemporaryDirectory(prefix="mngr-check-") as private:
        runner = Runner(job, private)
        tree.switch(head)
        after = runner.run("head", [test, *others], _packages(job))
        tree.clear()
        if base == head:
            before = after
        else:
            tree.switch(base)
            before = runner.run("base", [test, *(each for each in others if touched[each] == "changed")])
            tree.clear()
        without = Run()
        if is_fix and after.functions.intersection([*own, *others]):
            tree.switch(base)
            tree.lay_over(head, of_tests)
            without = runner.run("without fix", [*own, *others])
            tree.clear()
        tree.switch(head)
    return {
        "resolves": after.resolves,
        "before": before.outcome(test),
        "after": after.outcome(test),
        "without fix": without.outcome(test) if own else MISSING,
        "said": after.said.get(test, ""),
        "others": [
            {
                "test": each,
                "is": touched[each],
                "head": after.outcome(each),
                "base": before.outcome(each) if touched[each] == "changed" else MISSING,
                "without fix": without.outcome(each),
            }
            for each in others
            if each in after.functions or each.rpartition("::")[2].startswith("test")
        ],
        "dropped": len(candidates) - len(others),
        "error": after.broken if after.broken and before.broken else "",
    }


def _packages(job: dict[str, Any]) -> list[str]:
    if job["packages"] is not None:
        return list(job["packages"])
    found = [os.path.dirname(path) for place in ("*", "src/*") for path in sorted(glob.glob(f"{place}/__init__.py"))]
    names = [os.path.basename(path) for path in found if not _kind(job, f"{path}/")]
    return [name for name in names if name.isidentifier()]


def _kind(job: dict[str, Any], path: str) -> str:
    return next((kind for kind, rule in job["kinds"] if re.search(rule, path)), "")


# What the branch changes


def _changed_paths(base: str, head: str) -> dict[str, str]:
    """With A, M, D or T: how."""
    words = _git("diff-tree", "-r", "-z", "--no-renames", "--name-status", base, head).split("\0")
    return dict(zip(words[1::2], words[0::2]))  # noqa: B905 - 3.8 has no `strict`; a last NUL leaves one word over


def _touched(base: str, head: str, paths: dict[str, str]) -> dict[str, str]:
    """The functions in files of tests that are "new" or "changed", as pytest would call them. Which of them are tests
    is for pytest to say."""
    found = {}
    for path, status in paths.items():
        if path.endswith(".py") and status != "D":
            then = {} if status == "A" else _functions(base, path)
            for name, code in _functions(head, path).items():
                if then.get(name) != code:
                    found[f"{path}::{name}"] = "changed" if name in then else "new"
    return found


def _functions(commit: str, path: str) -> dict[str, str]:
    """What they say, without layout and comments. A file that cannot be parsed has none; pytest will tell why."""
    found = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[prefix + child.name] = ast.dump(child)
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}::")
            elif not isinstance(child, ast.expr):
                visit(child, prefix)

    try:
        visit(ast.parse(_git_bytes("cat-file", "blob", f"{commit}:{path}")), "")
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return found


class Checkout:
    """The directory we are in. What it had besides its commit in the beginning, as an environment that was set up,
    stays."""

    def __init__(self, changed: list[str]) -> None:
        self._changed = changed
        self._given = self._untracked()

    def switch(self, commit: str) -> None:
        _git("checkout", "-q", "-f", "--detach", commit)
        self._forget_bytecode()

    def lay_over(self, commit: str, paths: dict[str, str]) -> None:
        """These paths as they are in another commit."""
        there = [path for path, status in paths.items() if status != "D"]
        if there:
            _git("--literal-pathspecs", "checkout", "-q", commit, "--", *there)
        for path, status in paths.items():
            if status == "D":
                _remove(path)
        self._forget_bytecode()

    def clear(self) -> None:
        """What a run has left, except for what the project ignores."""
        for path in self._untracked() - self._given:
            _remove(path)

    def _untracked(self) -> set[str]:
        return set(_git("ls-files", "-z", "--others", "--exclude-standard").split("\0")) - {""}

    def _forget_bytecode(self) -> None:
        """Python trusts it by the second and the size of its source, and we change sources faster than that."""
        for path in self._changed:
            directory, name = os.path.split(path)
            stem = os.path.join(glob.escape(directory), "__pycache__", glob.escape(os.path.splitext(name)[0]))
            for each in glob.glob(f"{stem}.*.pyc"):
                _remove(each)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.remove(path)


def _git(*words: str) -> str:
    return _git_bytes(*words).decode("utf-8", "surrogateescape")


def _git_bytes(*words: str) -> bytes:
    """Hooks are the user's, and not for our commits."""
    line = ["git", "-c", "core.hooksPath=/dev/null", *words]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Broken(f"git {words[0]} failed: {said[-1] if said else done.returncode}")
    return done.stdout


# Running pytest


class Runner:
    def __init__(self, job: dict[str, Any], private: str) -> None:
        self.job, self.private = job, private
        self.artifacts = os.environ.get("MNGR_ARTIFACTS") or private

    def run(self, label: str, tests: list[str], packages: Sequence[str] = ()) -> Run:
        """These tests, the first one first; a function stands for all tests that come of it. Whole files are given to
        pytest, and the plugin chooses: pytest runs nothing at all when one id does not exist. What it prints is kept
        among the artifacts."""
        files = [file for file in dict.fromkeys(test.partition("::")[0] for test in tests) if os.path.exists(file)]
        run = Run()
        if files:
            name = label.replace(" ", "-")
            events, orders = (os.path.join(self.private, f"{name}.{kind}") for kind in ("jsonl", "json"))
            with open(orders, "w", encoding="ascii") as file:
                json.dump({"tests": tests, "packages": list(packages), "events": events}, file)
            limit = self.time_for(len(tests))
            self._pytest(run, os.path.join(self.artifacts, f"{name}.txt"), orders, files, limit)
            run.read(events)
        print(f"{label}: {run.broken or run.outcome(tests[0])}", flush=True)
        return run

    def time_for(self, tests: int) -> float:
        """Many tests may take longer than one, but no branch can keep us for hours by having hundreds."""
        limit: float = min(tests * self.job["timeout"], self.job["longest"])
        return limit

    def _pytest(self, run: Run, output: str, orders: str, files: list[str], limit: float) -> None:
        here, name = os.path.split(os.path.abspath(__file__))
        env = {key: value for key, value in os.environ.items() if key not in ("MNGR_INPUT", "MNGR_RESULT")}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [here, env.get("PYTHONPATH")]))
        env[_ORDERS] = orders
        # A line that sets PYTHONPATH itself would put ours out of force: there it is put in front.
        line = re.sub(r"(?<!\w)PYTHONPATH=", lambda _: f'PYTHONPATH="${{{_ORDERS}_PATH}}":', self.job["pytest"])
        env[f"{_ORDERS}_PATH"] = here
        words = ["-p", os.path.splitext(name)[0], *self.job["flags"], *files]
        with open(output, "wb") as said:
            child = subprocess.Popen(
                ["sh", "-c", f'{line} "$@"', "sh", *words],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                run.code = child.wait(limit)
            except subprocess.TimeoutExpired:
                run.timed_out = True
            finally:
                _end_group(child)
        with open(output, "rb") as said:
            run.last_words = said.read()[-2000:].decode("utf-8", "replace").strip()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """With everything that the tests have left running."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS refuses a group of zombies
        pass
    child.wait()


class Run:
    """What one run of pytest has told."""

    def __init__(self) -> None:
        self.code: int | None = None  # None: it was not run, or not to its end
        self.timed_out = False
        self.last_words = ""
        self.collected: dict[str, str] | None = None  # ids of tests, with their functions
        self.files: dict[str, str] = {}  # those that could not be collected
        self.outcomes: dict[str, str] = {}
        self.said: dict[str, str] = {}
        self.resolves: dict[str, str] = {}

    def read(self, events: str) -> None:
        """It may have been killed at any moment."""
        if os.path.exists(events):
            with open(events, encoding="ascii") as file:
                lines = file.read().split("\n")[:-1]
            for line in lines:
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        if "collected" in event:
            self.collected = event["collected"]
        elif "file" in event:
            self.files[event["file"]] = event["outcome"]
        elif "test" in event:
            known = self.outcomes.get(event["test"], MISSING)
            self.outcomes[event["test"]] = max(known, event["outcome"], key=_BY_WEIGHT.index)
            self.said[event["test"]] = self.said.get(event["test"]) or event["said"]
        else:
            self.resolves = event["resolves"]

    @property
    def functions(self) -> set[str]:
        return set((self.collected or {}).values())

    @property
    def broken(self) -> str:
        """Why it did not come so far as to know its tests."""
        if self.code is None or self.collected is not None:
            return ""
        last = self.last_words.splitlines()[-1:]
        return f"pytest ended with {self.code} before it had any tests: {''.join(last)}"

    def outcome(self, test: str) -> str:
        """Of a function, the worst that happened to a test that comes of it."""
        tests = [each for each, function in (self.collected or {}).items() if test in (each, function)]
        if tests:
            unfinished = TIMED_OUT if self.timed_out else ERROR
            return max((self.outcomes.get(each, unfinished) for each in tests), key=_BY_WEIGHT.index)
        if self.collected is None and self.timed_out:
            return TIMED_OUT
        return ERROR if self.broken else self.files.get(test.partition("::")[0], MISSING)


# The plugin


def pytest_configure(config: Any) -> None:
    """Settings of the project that would run less than everything that is asked for, or elsewhere, have no force."""
    settings: dict[str, Any] = {
        "markexpr": "",
        "keyword": "",
        "deselect": None,
        "maxfail": 0,
        "continue_on_collection_errors": True,
        "dist": "no",
    }
    for option, value in settings.items():
        if hasattr(config.option, option):
            setattr(config.option, option, value)
    config.pluginmanager.register(Witness(config))


class Witness:
    def __init__(self, config: Any) -> None:
        with open(os.environ[_ORDERS], encoding="ascii") as file:
            self.orders = json.load(file)
        self.here = os.getcwd()
        self.root = str(getattr(config, "rootpath", None) or config.rootdir)

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """What goes wrong in others does not keep the first one from its time."""
        first, wanted = self.orders["tests"][0], set(self.orders["tests"])
        chosen = [item for item in items if wanted.intersection(self._names(item))]
        config.hook.pytest_deselected(items=[item for item in items if not wanted.intersection(self._names(item))])
        items[:] = sorted(chosen, key=lambda item: first not in self._names(item))

    def pytest_collectreport(self, report: Any) -> None:
        if not report.passed:
            file = self._id(report.nodeid).partition("::")[0]
            self._tell({"file": file, "outcome": SKIPPED if report.skipped else ERROR})

    def pytest_collection_finish(self, session: Any) -> None:
        self._tell({"collected": dict(map(self._names, session.items))})

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = ERROR if report.failed and report.when != "call" else report.outcome
        is_step = report.passed and report.when != "call"
        if outcome in _BY_WEIGHT and not is_step:  # another plugin's word is none of ours: "rerun"
            crash = getattr(report.longrepr, "reprcrash", None)
            said = str(getattr(crash, "message", "")).strip().split("\n")[0][:500]
            self._tell({"test": self._id(report.nodeid), "outcome": outcome, "said": said})

    def pytest_sessionfinish(self) -> None:
        self._tell({"resolves": self._resolves(self.orders["packages"])})

    def _id(self, nodeid: str) -> str:
        """As it would be typed here. Pytest's own are relative to its root."""
        file, colons, inside = nodeid.partition("::")
        return os.path.relpath(os.path.join(self.root, file), self.here) + colons + inside

    def _names(self, item: Any) -> tuple[str, str]:
        """Its id, and that of its function: without parameters."""
        test = self._id(item.nodeid)
        name = getattr(item, "originalname", None) or item.name.partition("[")[0]
        return test, test[: -len(item.name)] + name if test.endswith(item.name) else test

    def _resolves(self, packages: list[str]) -> dict[str, str]:
        """Where packages come from, relative if it is the checkout: as the tests have imported them, and if they have
        not, as a program that they start would."""
        found = {name: _place_of(name) for name in packages if name in sys.modules}
        found.update(_asked_afresh([name for name in packages if name not in sys.modules]))
        return {name: self._below(place) for name, place in found.items() if place}

    def _below(self, place: str) -> str:
        relative = os.path.relpath(os.path.realpath(place), os.path.realpath(self.here))
        is_inside = not {os.pardir, "site-packages", "dist-packages"} & set(relative.split(os.sep))
        return relative if is_inside else place

    def _tell(self, event: dict[str, Any]) -> None:
        with open(self.orders["events"], "a", encoding="ascii") as file:
            file.write(json.dumps(event) + "\n")


def _asked_afresh(packages: list[str]) -> dict[str, str]:
    """By the same interpreter in another directory, since that we are in this one need not help the tests."""
    if not packages:
        return {}
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "resolve", *packages],
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        found: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        return {}
    return found


def _place_of(package: str) -> str:
    """The directory of a package, the file of a module; nothing if it cannot be imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    if spec is None:
        return ""
    return next(iter(spec.submodule_search_locations or []), spec.origin or "")


if __name__ == "__main__":
    main()
