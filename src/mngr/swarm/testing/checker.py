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

Started as `checker.py run JOB ANSWER` it only runs tests in what is checked out. Both are files; in the job, `tests`
stands for `test`, `base` and `head`: however many, and each has `timeout` for itself. One that hangs, or takes pytest
down with it, costs the others nothing. What they have started ends with us, and we end with whoever has started us.
With `paths`, which may be empty, everything is run that pytest finds there, in its own order and in one process, and
all of it is told, not only `tests`.
"""

from __future__ import annotations

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
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PASSED, SKIPPED, ERROR, FAILED, MISSING, TIMED_OUT = "passed", "skipped", "error", "failed", "missing", "timed out"
# Of several findings about one test, the last one in this order counts.
_BY_WEIGHT = (MISSING, PASSED, SKIPPED, ERROR, FAILED, TIMED_OUT)
_MOST_OTHERS = 500  # tests of a branch that are looked at besides its own
_MOST_STARTS = 20  # of pytest, for the tests of one job: each but the first because a test has ended the one before
_adopts = False  # are orphans of our children given to us?
_ORDERS = "MNGR_CHECKER_ORDERS"  # names the file that says to the plugin what to run, and where to write


class Broken(Exception):
    """Nothing can be said about the branch."""


# The program


def main() -> None:
    if sys.argv[1:2] == ["resolve"]:
        print(json.dumps({name: _place_of(name) for name in sys.argv[2:]}))
    elif sys.argv[1:2] == ["run"]:
        with open(sys.argv[2], encoding="ascii") as file:
            job = json.load(file)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what we have started is ended
        _adopt_orphans()
        _answer(run_tests, job, sys.argv[3])
    else:
        _answer(check, json.loads(os.environ["MNGR_INPUT"].partition("\n")[0]), os.environ["MNGR_RESULT"])


def _answer(find: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any], path: str) -> None:
    try:
        answer = find(job)
    except (Broken, OSError, ValueError, KeyError) as error:
        answer = {"error": f"{'' if isinstance(error, Broken) else type(error).__name__ + ': '}{error}"}
    with open(path + ".draft", "w", encoding="ascii") as file:
        json.dump(answer, file)
    os.replace(path + ".draft", path)


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


def run_tests(job: dict[str, Any]) -> dict[str, Any]:
    """Outcomes, with what was said. A file in place of a test is about whether it can be collected."""
    left, outcomes = list(job["tests"]), {}
    resolves: dict[str, str] = {}
    is_whole = "paths" in job
    with tempfile.TemporaryDirectory(prefix="mngr-check-") as private:
        runner = Runner(job, private)
        for start in range(_MOST_STARTS):
            run = runner.run(f"tests {start}", left, [] if start else _packages(job), is_whole and not start)
            resolves = resolves or run.resolves
            if is_whole and not start:
                left = list(dict.fromkeys([*left, *(run.collected or ()), *run.files]))
            known = {test: run.finding(test) for test in left if run.is_settled(test) or start == _MOST_STARTS - 1}
            # What was not reached gets another start, unless this one has brought nothing.
            outcomes.update(known or {test: run.finding(test) for test in left})
            left = [test for test in left if test not in outcomes]
            if not left:
                break
    return {"resolves": resolves, "outcomes": outcomes, "error": ""}


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
    return functions_in(_git_bytes("cat-file", "blob", f"{commit}:{path}"))


def functions_in(source: bytes) -> dict[str, str]:
    """What they say, without layout and comments. A file that cannot be parsed has none; pytest will tell why."""
    import ast  # with the next, half of the time that a start of ours takes, and most starts only run tests
    import warnings

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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an escape in somebody's string
            visit(ast.parse(source), "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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

    def run(self, label: str, tests: list[str], packages: Sequence[str] = (), everything: bool = False) -> Run:
        """These tests, the first one first; a function stands for all tests that come of it. Whole files are given to
        pytest, and the plugin chooses: pytest runs nothing at all when one id does not exist. What it prints is kept
        among the artifacts. `everything`: not only these, but all that pytest finds."""
        is_whole = "paths" in self.job
        files = [file for file in dict.fromkeys(test.partition("::")[0] for test in tests) if os.path.exists(file)]
        files = [path for path in self.job["paths"] if os.path.exists(path.partition("::")[0])] if is_whole else files
        run = Run()
        if files or is_whole:
            name = label.replace(" ", "-")
            events, orders = (os.path.join(self.private, f"{name}.{kind}") for kind in ("jsonl", "json"))
            with open(orders, "w", encoding="ascii") as file:
                told = {"tests": tests, "packages": list(packages), "events": events, "brief": "tests" in self.job}
                json.dump({**told, "whole": is_whole, "everything": everything}, file)
            self._pytest(run, os.path.join(self.artifacts, f"{name}.txt"), orders, files, self._patience(tests, events))
            run.read(events)
        print(f"{label}: {run.broken or (run.outcome(tests[0]) if tests else run.code)}", flush=True)
        return run

    def time_for(self, tests: int) -> float:
        """Many tests may take longer than one, but no branch can keep us for hours by having hundreds."""
        limit: float = min(tests * self.job["timeout"], self.job["longest"])
        return limit

    def _patience(self, tests: list[str], events: str) -> Patience:
        if "tests" in self.job:
            return Patience(self.job["longest"], self.job["timeout"], events)
        return Patience(self.time_for(len(tests)))

    def _pytest(self, run: Run, output: str, orders: str, files: list[str], patience: Patience) -> None:
        here, name = self._importable()
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
                run.code = patience.wait(child)
            except subprocess.TimeoutExpired:
                run.timed_out = True
            finally:
                _end_group(child)
        with open(output, "rb") as said:
            run.last_words = said.read()[-2000:].decode("utf-8", "replace").strip()

    def _importable(self) -> tuple[str, str]:
        """Where pytest finds us as its plugin. A path with a colon in it cannot be a part of PYTHONPATH."""
        here, name = os.path.split(os.path.abspath(__file__))
        if os.pathsep in here:
            here, own = os.path.join(self.private, "plugin"), here
            if os.pathsep in here:
                raise Broken(f"Python imports nothing from {here}: there is a {os.pathsep!r} in it")
            os.makedirs(here, exist_ok=True)
            shutil.copyfile(os.path.join(own, name), os.path.join(here, name))
        return here, name


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """With everything that the tests have left running."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS refuses a group of zombies
        pass
    child.wait()
    if _adopts:
        _end_children()


def _adopt_orphans() -> None:
    """A program that a test has put into a session of its own is in no group that we could end. Where the kernel can
    do that (Linux), it becomes our child when its parent is gone."""
    global _adopts
    try:
        import ctypes

        _adopts = ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError, TypeError):
        _adopts = False


def _end_children() -> None:
    """And those that they leave to us, until there are none."""
    for _ in range(100):
        children = _children()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError, PermissionError):
                continue
        if not children:
            return


def _children() -> list[int]:
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
        if parent == os.getpid():
            found.append(int(path.split("/")[2]))
    return found


class Patience:
    """How long a run of pytest may take: so long; with `each`, so long until the first test and then for each, as the
    events tell. There is none once whoever has started us is gone."""

    def __init__(self, whole: float, each: float | None = None, events: str = "") -> None:
        self._limit, self._each, self._events = whole, each, events
        self._seen = 0
        self._parent = os.getppid()

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        if self._each is None:
            return child.wait(self._limit)
        since = time.monotonic()
        while True:
            try:
                return child.wait(max(0.01, min(1.0, since + self._limit - time.monotonic())))
            except subprocess.TimeoutExpired:
                told = self._told()
                if told != self._seen:
                    since, self._seen, self._limit = time.monotonic(), told, self._each
                elif time.monotonic() > since + self._limit:
                    raise
                if os.getppid() != self._parent:
                    sys.exit(143)

    def _told(self) -> int:
        """The plugin's first word comes when it knows its tests, or a file that it cannot collect."""
        return os.path.getsize(self._events) if os.path.exists(self._events) else 0


class Run:
    """What one run of pytest has told."""

    def __init__(self) -> None:
        self.code: int | None = None  # None: it was not run, or not to its end
        self.timed_out = False
        self.last_words = ""
        self.collected: dict[str, str] | None = None  # ids of tests, with their functions
        self.files: dict[str, str] = {}  # those that could not be collected
        self.at = ""  # the test that has begun and not ended
        self._by_name: dict[str, list[str]] = {}  # of what was collected: a test's, or its function's
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
            self.said[event["file"]] = event.get("said", "")
        elif "test" in event:
            known = self.outcomes.get(event["test"], MISSING)
            self.outcomes[event["test"]] = max(known, event["outcome"], key=_BY_WEIGHT.index)
            self.said[event["test"]] = self.said.get(event["test"]) or event["said"]
        elif "at" in event:
            self.at = event["at"]
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
        if tests := self._tests_of(test):
            return max(map(self._outcome, tests), key=_BY_WEIGHT.index)
        if self.collected is None and self.timed_out:
            return TIMED_OUT
        return ERROR if self.broken else self.files.get(test.partition("::")[0], MISSING)

    def _outcome(self, test: str) -> str:
        unfinished = TIMED_OUT if self.timed_out else ERROR
        return unfinished if test == self.at else self.outcomes.get(test, unfinished)

    def _tests_of(self, test: str) -> list[str]:
        if self.collected and not self._by_name:
            for each, function in self.collected.items():
                for name in {each, function}:
                    self._by_name.setdefault(name, []).append(each)
        return self._by_name.get(test, [])

    def is_settled(self, test: str) -> bool:
        """It has been run to its end, or nothing that comes of it will be: another start would end the same way."""
        tests = self._tests_of(test)
        return self.collected is None or self.at in tests or all(each in self.outcomes for each in tests)

    def finding(self, test: str) -> list[str]:
        """The outcome, and what was said about it in a line."""
        if "::" not in test:
            is_fine = self.collected is not None and os.path.exists(test) and test not in self.files
            return [PASSED, ""] if is_fine else [self.outcome(test), self.said.get(test, "") or self.broken]
        outcome = self.outcome(test)
        worst = [each for each in self._tests_of(test) if self._outcome(each) == outcome]
        told = [self.said[each] for each in (*worst, test.partition("::")[0]) if self.said.get(each)]
        if self.at in worst and not self.timed_out:
            told.append(f"pytest ended with {self.code} in the middle of it")
        return [outcome, (told or [self.broken])[0] if outcome not in (PASSED, MISSING) else ""]


# The plugin


def pytest_configure(config: Any) -> None:
    """Settings of the project that would run less than everything that is asked for, or elsewhere, have no force. What
    it leaves out of a whole run stays out, but a red ends none."""
    witness = Witness(config)
    settings: dict[str, Any] = {"maxfail": 0, "continue_on_collection_errors": True, "dist": "no"}
    if not witness.orders["whole"]:
        settings.update({"markexpr": "", "keyword": "", "deselect": None})
    for option, value in settings.items():
        if hasattr(config.option, option):
            setattr(config.option, option, value)
    config.pluginmanager.register(witness)


class Witness:
    def __init__(self, config: Any) -> None:
        with open(os.environ[_ORDERS], encoding="ascii") as file:
            self.orders = json.load(file)
        if self.orders["brief"]:
            # Nobody reads them, and pytest's own ones take it the longer the more lines a file of tests has.
            config.option.tbstyle = "native"
        self.here = os.getcwd()
        self.root = str(getattr(config, "rootpath", None) or config.rootdir)

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """What goes wrong in others does not keep the first one from its time."""
        if self.orders["everything"]:
            return
        first, wanted = self.orders["tests"][0], set(self.orders["tests"])
        chosen = [item for item in items if wanted.intersection(self._names(item))]
        config.hook.pytest_deselected(items=[item for item in items if not wanted.intersection(self._names(item))])
        items[:] = chosen if self.orders["whole"] else sorted(chosen, key=lambda item: first not in self._names(item))

    def pytest_collectreport(self, report: Any) -> None:
        if not report.passed:
            file = self._id(report.nodeid).partition("::")[0]
            said = "" if report.skipped else _last_line(str(report.longrepr))
            self._tell({"file": file, "outcome": SKIPPED if report.skipped else ERROR, "said": said})

    def pytest_collection_finish(self, session: Any) -> None:
        self._tell({"collected": dict(map(self._names, session.items))})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell({"at": self._id(nodeid)})

    def pytest_runtest_logfinish(self) -> None:
        self._tell({"at": ""})

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = ERROR if report.failed and report.when != "call" else report.outcome
        is_step = report.passed and report.when != "call"
        if outcome in _BY_WEIGHT and not is_step:  # another plugin's word is none of ours: "rerun"
            crash = getattr(report.longrepr, "reprcrash", None)
            said = str(getattr(crash, "message", "")).strip().split("\n")[0][:500]
            self._tell({"test": self._id(report.nodeid), "outcome": outcome, "said": said})

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if int(exitstatus) in (0, 1):  # and no test has ended it: another plugin may not say when one is at its end
            self._tell({"at": ""})
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


def _last_line(text: str) -> str:
    """Pytest marks what was raised with an E."""
    lines = [line for line in text.splitlines() if line.strip()]
    raised = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (raised or [line.strip() for line in lines] or [""])[-1][:500]


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
