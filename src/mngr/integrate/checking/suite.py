"""Running tests on trees: in a checkout for each worker, all workers at once, and never what is known already. Whoever
asks, asks for all trees and tests of a round together: the fewer runs of pytest, the better they are spread.

A tree's tests are spread over workers by their files. Whether they also go together is another question, which only a
run of everything in one process answers: `whole` asks it."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading

from mngr import jsonline
from mngr.errors import MngrError
from mngr.integrate.checking.checkout import Checkout, SetupFailed, Stopped, environment, remove
from mngr.integrate.checking.outcomes import ERROR, PASSED, Outcome, Outcomes
from mngr.record import Record
from mngr.swarm.testing.collect import collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mngr.integrate.picking.scratch import Scratch

COLLECTING = "the collection of tests"  # as if it were a test: does pytest come so far?
_MEMORY = "outcomes.jsonl"
_CHECKOUTS = "checkouts"
_MANY = 50  # tests: from here on a worker gets its share in parts, so that less is lost and none waits for the other
_PARTS = 4
_MOST_SAID = 300  # characters
_AFRESH = 0  # as if it were a turn
SURE = 3  # runs of a test on either side of the change that breaks it: nobody asks for more turns


class How(Record):
    """How tests are run in this project."""

    pytest: str = "python3 -m pytest"  # a line of shell
    flags: list[str] = []  # noqa: RUF012 - for it
    paths: list[str] = []  # noqa: RUF012 - where the tests are; none: as pytest finds them
    setup: str = ""  # a line of shell, run in a new checkout
    copy: list[str] = []  # noqa: RUF012 - patterns of what a checkout gets from the user's work tree
    limit: float = 120.0  # seconds for a test
    workers: int = 0  # 0: as many as there are cores
    check: str = ""  # a line of shell in place of pytest: it is the only test then


class Job(Record):
    """Some tests of one tree, for one worker."""

    tree: str
    tests: list[str]
    whole: bool = False  # everything there is, in one process, as pytest would
    afresh: bool = False  # in a checkout in which nothing was run before


class Suite:
    """Of an integration, in whose directory it remembers. `close` takes the checkouts away."""

    def __init__(self, scratch: Scratch, directory: str, how: How, forget: bool = False) -> None:
        self.scratch, self.how = scratch, how
        if forget:
            remove(os.path.join(directory, _MEMORY))
        self._directory = os.path.join(directory, _CHECKOUTS)
        self._known = Outcomes(os.path.join(directory, _MEMORY), _hash(how))
        self._workers = how.workers or os.cpu_count() or 1
        self._checkouts: dict[int, Checkout] = {}
        self._made: set[str] = set()  # by the setup, in any of them
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def collect(self, tree: str) -> list[str]:
        """The tests there are. A file that cannot be collected stands for itself, and is an error when it is run.
        MngrError if pytest does not even come so far."""
        known = self._known.collected(tree)
        if known is None:
            known = [self.how.check] if self.how.check else self.collect_now(tree)
            self._known.add_collected(tree, known)
        return known

    def run(self, tree: str, tests: Sequence[str], again: bool = False) -> dict[str, Outcome]:
        """How they end on that tree. `again`: how they end when they are run once more."""
        return self.run_all({tree: tests}, turn=2 if again else 1)[tree]

    def run_all(
        self, wanted: Mapping[str, Sequence[str]], turn: int = 1, whole: bool = False
    ) -> dict[str, dict[str, Outcome]]:
        """The same for many trees. `turn` says the how manyth run of a test on its tree is asked for; `whole`, how the
        tests end in a run of everything."""
        new = self.unknown(wanted, turn, whole)
        for tree in [tree for tree, tests in new.items() if COLLECTING in tests]:
            self._known.add(tree, turn, {COLLECTING: self._collecting(tree)})
        new = self.unknown(wanted, turn, whole)
        if new:
            jobs = (
                [Job(tree=tree, tests=tests, whole=True) for tree, tests in new.items()] if whole else self._jobs(new)
            )
            self.execute(jobs, lambda job, found: self._keep(job, turn, found))
        return {tree: self._known.of(tree, tests, turn, whole) for tree, tests in wanted.items()}

    def run_afresh(self, tree: str, tests: Sequence[str], whole: bool = False) -> dict[str, Outcome]:
        """In a checkout that is made for it. What is green there is green, whatever was seen elsewhere."""
        known = self._known.of(tree, tests, _AFRESH, whole)
        new = [test for test in dict.fromkeys(tests) if test not in known]
        if new:
            jobs = [Job(tree=tree, tests=new, whole=whole, afresh=True)]
            self.execute(jobs, lambda job, found: self._keep(job, _AFRESH, found))
            found = self._known.of(tree, new, _AFRESH, whole)
            mended = {test: outcome for test, outcome in found.items() if not outcome.is_red}
            for turn in range(1, SURE + 1) if mended else ():
                self._known.add(tree, turn, mended, whole)
        return self._known.of(tree, tests, _AFRESH, whole)

    def unknown(self, wanted: Mapping[str, Sequence[str]], turn: int = 1, whole: bool = False) -> dict[str, list[str]]:
        """What would have to be run for that."""
        found = {}
        for tree, tests in wanted.items():
            known = self._known.of(tree, tests, turn, whole)
            if new := [test for test in dict.fromkeys(tests) if test not in known]:
                found[tree] = new
        return found

    def try_check(self) -> None:
        """MngrError if the check fails on the base: then it would say nothing about any change."""
        base, check = self.scratch.tree_of(self.scratch.base), self.how.check
        if check and all(self.run(base, [check], again)[check].is_red for again in (False, True)):
            said = self.run(base, [check])[check].said
            raise MngrError(
                f"{check} fails on the base: {said or 'it takes too long'}",
                "a check must pass there, to tell something about the branches; --forget runs it anew",
            )

    def close(self) -> None:
        remove(self._directory)
        self._checkouts = {}

    def _collecting(self, tree: str) -> Outcome:
        try:
            self.collect(tree)
        except MngrError as error:
            return Outcome(word=ERROR, said=error.message[:_MOST_SAID])
        return Outcome(word=PASSED)

    def _keep(self, job: Job, turn: int, found: Mapping[str, Outcome]) -> None:
        with self._lock:
            self._known.add(job.tree, turn, found, job.whole)

    def _jobs(self, wanted: Mapping[str, list[str]]) -> list[Job]:
        """The largest first. A tree is shared by workers only if they would have nothing else to do, and a file never
        is: its tests may depend on each other."""
        shares = -(-self._workers // len(wanted))
        jobs = []
        for tree, tests in wanted.items():
            parts = shares * _PARTS if len(tests) >= shares * _MANY else shares
            jobs += [Job(tree=tree, tests=part) for part in shards(tests, parts)]
        return sorted(jobs, key=lambda job: -len(job.tests))

    # What costs something

    def collect_now(self, tree: str) -> list[str]:
        checkout = self._checkout(0)
        checkout.switch(tree)
        paths = [path for path in self.how.paths if os.path.exists(os.path.join(checkout.top, path.partition("::")[0]))]
        errors: dict[str, str] = {}
        found = collect(checkout.top, paths, self.how.flags, self.how.pytest, environment(), errors)
        return [*(test.id for test in found), *errors]

    def execute(self, jobs: list[Job], keep: Callable[[Job, Mapping[str, Outcome]], None]) -> None:
        """Each job's outcomes are kept as soon as it is done. What goes wrong in one worker ends all of them."""
        queue = iter(jobs)
        wrong: list[BaseException] = []

        def work(number: int, done: threading.Event) -> None:
            try:
                while (job := next(queue, None)) and not self._stop.is_set():
                    keep(job, self._run(self._checkout(number), job))
            except Stopped:
                pass
            except BaseException as error:  # noqa: BLE001 - raised below, where somebody hears it
                wrong.append(error)
                self._stop.set()
            finally:
                done.set()

        self._stop.clear()
        dones = [threading.Event() for _ in range(min(self._workers, len(jobs)))]
        for number, done in enumerate(dones):
            threading.Thread(target=work, args=[number, done]).start()
        try:
            _wait(dones)
        except BaseException:
            self._stop.set()
            _wait(dones)
            raise
        if wrong:
            raise wrong[0]

    def _checkout(self, number: int) -> Checkout:
        if number not in self._checkouts:
            place = os.path.join(self._directory, str(number))
            self._checkouts[number] = Checkout(self.scratch, place, self.how, self._stop, self._made)
        return self._checkouts[number]

    def _run(self, checkout: Checkout, job: Job) -> dict[str, Outcome]:
        try:
            checkout.switch(job.tree, job.afresh)
        except SetupFailed as error:
            if job.tree == self.scratch.tree_of(self.scratch.base):
                raise  # then it says nothing about any change
            return dict.fromkeys(job.tests, Outcome(word=ERROR, said=error.message[:_MOST_SAID]))
        found = checkout.run(job.tests, job.whole)
        return {test: Outcome(word=word, said=said[:_MOST_SAID]) for test, (word, said) in found.items()}


def _wait(dones: list[threading.Event]) -> None:
    """Not with `join`: after an interruption it takes a thread for ended that is not."""
    for done in dones:
        done.wait()


def shards(tests: Sequence[str], many: int) -> list[list[str]]:
    """At most so many parts of about the same size. The tests of a file stay together, in their order."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    parts: list[list[str]] = [[] for _ in range(min(many, len(files)))]
    for group in sorted(files.values(), key=len, reverse=True):
        min(parts, key=len).extend(group)
    return parts


def _hash(how: How) -> str:
    """Of all that can change an outcome. How many workers there are must not."""
    said = [how.pytest, how.flags, how.setup, how.copy, how.limit, how.check, _program(how.check or how.pytest)]
    return hashlib.sha256(jsonline.dumps(said).encode()).hexdigest()[:16]


def _program(line: str) -> list[str | int]:
    """What a line of shell begins with, as it is found now: with another interpreter, tests may end otherwise."""
    word = next((word for word in line.split() if "=" not in word), "")
    is_the_same_everywhere = "/" not in word or os.path.isabs(word)
    found = shutil.which(word) if is_the_same_everywhere else None
    return [found, os.path.realpath(found), os.stat(found).st_mtime_ns] if found else []
