"""A swarm wherever its agents are: `--at` is all that changes, and what is accounted for is the same. The project is
that of the demo, with as few of its tests as show every way in which an agent's work ends there."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents import commit
from tests.home import Home, Mngr, Result, wait_until
from tests.places.containers import LIBRARY, Podman, is_program, on_the_way, place_of_storage
from tests.places.network import Machine, Network, run
from tests.places.sandboxes import Sandboxes

DEMO = Path(__file__).parents[2] / "demo"
FIXED = "tests/test_finding.py::test_search_finds_authors"
IMPROVED = "tests/test_reading.py::test_done_remembers_the_day"  # a rate limit stands in its way
UNCHANGED = "tests/test_books.py::test_add_needs_a_title"
BLOCKED = "tests/test_finding.py::test_lookup_asks_the_library"
STUCK = "tests/test_books.py::test_list_marks_what_is_read"
ACCOUNTING: dict[str, dict[str, Any]] = {
    FIXED: {
        "ending": ("fixed", "", "verify"),
        "told": ([], False),
        "spent": (5, 12000, 0.025, 0),
        "before": (False, "failed"),
        "after": (True, "passed"),
        "changes": [("implementation", "medium")],
        "commits": ["Test User: Search authors too", "shelf/search.py"],
        "notes": ([], 0, [], []),
    },
    IMPROVED: {
        "ending": ("improved", "", "verify"),
        "told": ([], True),
        "spent": (5, 11400, 0.0251, 0),
        "before": (True, "passed"),
        "after": (True, "passed"),
        "changes": [("test", "medium")],
        "commits": ["Test User: Look at the day that done remembers", "tests/test_reading.py"],
        "notes": ([], 0, [], []),
    },
    UNCHANGED: {
        "ending": ("unchanged", "", "verify"),
        "told": ([], False),
        "spent": (4, 7000, 0.0166, 0),
        "before": (True, "passed"),
        "after": (True, "passed"),
        "changes": [],
        "commits": [],
        "notes": ([], 0, [], []),
    },
    BLOCKED: {
        "ending": ("blocked", "SHELF_LIBRARY_KEY, a", "verify"),
        "told": ([], False),
        "spent": (4, 10000, 0.0204, 0),
        "before": (False, "failed"),
        "after": (False, "failed"),
        "changes": [],
        "commits": [],
        "notes": ([], 1, [], []),
    },
    STUCK: {
        "ending": ("stuck", "nothing moved for 2 ", "work"),
        "told": (["standstill"], False),
        "spent": (3, 5550, 0.01275, 0),
        "before": (None, None),
        "after": (None, None),
        "changes": [],
        "commits": [],
        "notes": ([], 0, None, None),
    },
}
OPTIONS = "--max-agents 8 --budget 5usd --stuck-after 1h --max-load 1000 --keep none --no-integrate --json".split()


# Where agents can be: each has Python, as every place must in which a project's tests are to run, and what the project
# needs of its packages.

PACKAGES = "pytest _pytest py.py pluggy iniconfig packaging pygments pytest-*-info pluggy-*-info mngr-*-info".split()
SITE = Path(pytest.__file__).parents[1]
TOP = Path(__file__).parents[2]


def packages() -> bytes:
    """As an archive of a root: where the system's Python looks for what others have installed."""
    there = f"usr/local/lib/{system_python()}/dist-packages"
    made = io.BytesIO()

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """The same for every checkout."""
        entry.mtime = entry.uid = entry.gid = 0
        return None if entry.name.endswith("__pycache__") else entry

    with tarfile.open(fileobj=made, mode="w") as archive:
        for pattern in PACKAGES:
            (found,) = SITE.glob(pattern)
            archive.add(found, f"{there}/{found.name}", filter=plain)
        archive.addfile(tarfile.TarInfo(f"{there}/mngr/__init__.py"))  # of mngr, e2e needs nothing else
        archive.add(TOP / "src" / "mngr" / "e2e", f"{there}/mngr/e2e", filter=plain)
    return made.getvalue()


def system_python() -> str:
    return os.path.basename(os.path.realpath("/usr/bin/python3"))


def put_packages(network: Network, machine: Machine) -> None:
    argv = ["ssh", "-F", str(network.ssh_config), machine.name, "tar -x -C /"]
    subprocess.run(argv, input=packages(), check=True)


def image_with_python(podman: Podman) -> str:
    """Kept among the images of the tests, by what is in it."""
    archive, python = packages(), system_python()
    system = ["python3", "python3-minimal", python, f"{python}-minimal", f"lib{python}-minimal", f"lib{python}-stdlib"]
    versions = run(["dpkg-query", "--show", *system])
    key = hashlib.sha256(f"{podman.image}\n{versions}\n".encode() + archive).hexdigest()[:12]
    name, place = f"localhost/mngr-test-python:{key}", place_of_storage()
    with open(place / "python.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not podman.run("images", "--quiet", name).strip():
            build(podman, name, system, archive, place / "processes" / f"{os.getpid()}-python")
    return name


def build(podman: Podman, name: str, system: list[str], archive: bytes, context: Path) -> None:
    context.mkdir()
    try:
        (context / "packages.tar").write_bytes(archive)
        paths = on_the_way(path for path in run(["dpkg-query", "--listfiles", *system]).splitlines() if path != "/.")
        paths |= on_the_way(LIBRARY.findall(run(["ldd", *filter(is_program, sorted(paths))], check=False)))
        with tarfile.open(context / "python.tar", "w") as root:
            for path in sorted(paths):
                root.add(path, recursive=False)
        (context / "Dockerfile").write_text(f"FROM {podman.image}\nADD python.tar packages.tar /\n")
        podman.run("build", "--quiet", "--network=none", "--tag", name, str(context))
    finally:
        shutil.rmtree(context)


class Place:
    """Where the agents of a run go: what `--at` says, and on which hosts they are then; what is left there."""

    def __init__(self, at: str, hosts: set[str], left: Callable[[], list[Any]] = list) -> None:
        self.at, self.hosts, self.left = at, hosts, left


def one_each(provider: str) -> set[str]:
    """The hosts that are made for the agents."""
    return {f"r1-{title.partition('::')[2].replace('_', '-')}.{provider}" for title in ACCOUNTING}


@pytest.fixture
def places(home: Home, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Place]]:
    with ExitStack() as stack:

        def two_machines() -> Place:
            network: Network = request.getfixturevalue("over_ssh")
            for name in ("one", "two"):
                machine = network.boot(name)
                stack.callback(machine.remove)
                put_packages(network, machine)
            return Place("one.ssh,two.ssh", {"one.ssh", "two.ssh"})

        def containers() -> Place:
            podman: Podman = request.getfixturevalue("pods")
            home.env["MNGR_CONFIG_PROVIDERS__PODMAN__IMAGE"] = image_with_python(podman)
            return Place(".podman", one_each("podman"), podman.containers)

        def modal() -> Place:
            podman = stack.enter_context(Podman())
            podman.image = image_with_python(podman)
            sandboxes = stack.enter_context(Sandboxes(podman))
            home.env.update(sandboxes.env)
            return Place(".modal", one_each("modal"), sandboxes.running)

        def here() -> Place:
            return Place("local", {"local"})

        known = {"local": here, "ssh": two_machines, "podman": containers, "modal": modal}
        yield lambda name: known[name]()


@pytest.fixture
def shelf(home: Home) -> Path:
    """The project of the demo, and its agents; `mngr` runs in it."""
    home.cwd = home.root / "shelf"
    shutil.copytree(DEMO / "sample", home.cwd)
    shutil.copy(DEMO / "prices.toml", home.mngr_home)
    home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    home.run("git", "init", "-q")
    commit(home, home.cwd, "First commit")
    return home.cwd


def words(at: str, *tests: str) -> list[str]:
    agents = ["--type", "replay", "--agent-arg", str(DEMO / "trajectories"), "-e", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"]
    return ["swarm", "run", *(tests or ACCOUNTING), "--at", at, *agents, *OPTIONS]


def events(mngr: Mngr, kind: str) -> list[dict[str, Any]]:
    try:
        lines = (mngr.home.mngr_home / "runs" / "r1" / "events.jsonl").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in found if event["event"] == kind]


def to_its_end(mngr: Mngr, running: subprocess.Popen[str]) -> Result:
    """What stands still is told from what is slow when nobody else is at work any more: machines are busy, too."""
    wait_until(lambda: len(events(mngr, "settled")) == len(ACCOUNTING) - 1, 500, "all but the one that is stuck")
    mngr.ok("swarm", "set", "r1", "stuck-after=2")
    out, err = running.communicate(timeout=120)
    return Result(running.returncode, out, err)


def accounting(mngr: Mngr) -> dict[str, dict[str, Any]]:
    """What a run has to say of each test, but for ids, places and times."""
    return {task["title"]: account(mngr, task) for task in mngr.json("swarm", "show", "r1")["tasks"]}


def account(mngr: Mngr, task: dict[str, Any]) -> dict[str, Any]:
    shown = mngr.json("swarm", "show", "r1", task["title"])
    log = ("git", "log", "--format=%an: %s", "--name-only", f"main..{shown['branch']}", "--")
    claim, check, spend = shown["claim"], shown["check"], shown["spend"]
    changes = claim.get("changes", [])
    return {
        "ending": (shown["outcome"], shown["why"][:20], shown["stage"]),
        "told": (shown["nudges"], task["throttled"] > 0),
        "spent": (spend["messages"], spend["tokens"], spend["usd"], spend["unpriced"]),
        "before": (claim.get("passed_before"), check.get("before", {}).get("check")),
        "after": (claim.get("passed_after"), check.get("after", {}).get("check")),
        "changes": [(change["kind"], change["importance"]) for change in changes],
        "commits": [line for line in mngr.home.run(*log, check=bool(changes)).splitlines() if line],
        "notes": (shown["notes"], len(claim.get("escalations", [])), check.get("others"), check.get("problems")),
    }


@pytest.mark.parametrize(
    "name", [*(pytest.param(place, marks=pytest.mark.proof) for place in ("local", "podman", "modal")), "ssh"]
)
def test_the_accounting_is_the_same_everywhere(
    shelf: Path, mngr: Mngr, places: Callable[[str], Place], name: str
) -> None:
    place = places(name)
    mngr.home.cwd = shelf
    result = to_its_end(mngr, mngr.popen(*words(place.at)))
    assert (result.code, result.err) == (6, "")
    assert accounting(mngr) == ACCOUNTING
    assert {task["host"] for task in mngr.json("swarm", "show", "r1")["tasks"]} == place.hosts
    assert (mngr.json("list"), place.left()) == ([], [])


@pytest.mark.proof
@pytest.mark.parametrize("moment", ["created", "checked"])
def test_a_host_that_is_cut_off_and_comes_back_changes_nothing(
    shelf: Path, mngr: Mngr, places: Callable[[str], Place], over_ssh: Network, moment: str
) -> None:
    """Its agents are just being created; or one is at work, or waits for its account, and another is checked."""
    place, near, far = places("ssh"), [FIXED, UNCHANGED], [IMPROVED, BLOCKED]
    one, two = (over_ssh.machines[name] for name in ("one", "two"))
    one.run("touch /tmp/go")
    if moment == "checked":
        two.run("touch /tmp/go")
    setup = "touch /tmp/is-set-up; until [ -e /tmp/go ]; do sleep 0.1; done"
    running = mngr.popen(*words(place.at, *near, *far), "--setup", setup)
    if moment == "created":
        wait_until(lambda: two.run("ls /tmp/is-set-up", check=False), 120, "a create on two.ssh")
    else:
        wait_until(lambda: BLOCKED in titles(mngr, "checking"), 120, "a check on two.ssh")
    two.cut()
    wait_until(lambda: titles(mngr, "settled") >= set(near), 400, "the end of those on one.ssh")
    two.run("touch /tmp/go")
    two.heal()
    out, err = running.communicate(timeout=400)
    assert (running.returncode, err) == (6, ""), out
    assert accounting(mngr) == {title: ACCOUNTING[title] for title in (*near, *far)}
    assert len(events(mngr, "launched")) == 4
    assert mngr.json("list") == []
    assert two.run("ls .mngr/agents .mngr/work") == ".mngr/agents:\n\n.mngr/work:\n"


def test_a_host_that_stays_away_costs_its_own_tasks_alone(
    shelf: Path, mngr: Mngr, home: Home, places: Callable[[str], Place], over_ssh: Network
) -> None:
    place = places("ssh")
    mngr.program = hasty(home)
    running = mngr.popen(*words(place.at, UNCHANGED, STUCK))
    wait_until(lambda: STUCK in titles(mngr, "briefed"), 120, "the agent on two.ssh")
    over_ssh.machines["two"].cut()
    out, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (6, ""), out
    found = accounting(mngr)
    assert found[UNCHANGED] == ACCOUNTING[UNCHANGED]
    assert found[STUCK]["ending"][:2] == ("lost", "nothing is known of ")
    over_ssh.machines["two"].heal()
    assert [agent["name"] for agent in mngr.json("list")] == ["r1-test-list-marks-what-is-read"]


def hasty(home: Home) -> str:
    """A mngr that soon loses its patience with hosts."""
    program = home.root / "hasty"
    program.write_text(
        f"#!{sys.executable}\n"
        "from mngr.cli.main import main\n"
        "from mngr.swarm import homecoming, supervise\n"
        "supervise.TIME_TO_COME_BACK, homecoming.TRIES = 3.0, 1\n"
        "raise SystemExit(main())\n"
    )
    program.chmod(0o755)
    return str(program)


def test_a_named_host_stays_for_the_whole_run_and_afterwards_if_it_was_there_before(
    shelf: Path, mngr: Mngr, places: Callable[[str], Place], pods: Podman
) -> None:
    places("podman")
    mngr.home.cwd = shelf
    mngr.ok("create", "mine@pod.podman", "--with", "memory=1g", "command", "--", "true")
    mngr.ok("destroy", "-f", "--keep-host", "mine")
    before = pods.containers()
    mngr.ok(*words("pod.podman,new.podman", UNCHANGED, "tests/test_books.py::test_list_of_an_empty_shelf"), timeout=500)
    assert {event["host"] for event in events(mngr, "launched")} == {"pod.podman", "new.podman"}
    assert pods.containers() == before
    assert [host["name"] for host in mngr.json("host", "list")] == ["local", "pod.podman"]


def test_hosts_that_are_made_can_be_shared(
    shelf: Path, mngr: Mngr, places: Callable[[str], Place], pods: Podman
) -> None:
    places("podman")
    mngr.home.cwd = shelf
    others = ("tests/test_books.py::test_list_of_an_empty_shelf", "tests/test_books.py::test_list_as_json")
    mngr.ok(*words(".podman", UNCHANGED, *others), "--per-host", "2", timeout=500)
    on = [event["host"] for event in events(mngr, "launched")]
    assert sorted(map(on.count, set(on))) == [1, 2]
    assert pods.containers() == []


@pytest.mark.proof
def test_what_was_being_prepared_when_a_run_was_killed_goes_and_a_host_like_it_stays(
    shelf: Path, mngr: Mngr, places: Callable[[str], Place], pods: Podman
) -> None:
    places("podman")
    mngr.home.cwd = shelf
    mngr.ok("create", "mine@r1-mine.podman", "command", "--", "true")
    mngr.ok("destroy", "-f", "--keep-host", "mine")
    (kept,) = pods.containers()
    running = mngr.popen(*words(".podman", UNCHANGED, "tests/test_books.py::test_list_of_an_empty_shelf"))
    wait_until(lambda: len(pods.containers()) == 2, 60, "the host that is prepared")
    running.kill()
    running.communicate(timeout=60)
    mngr.ok("swarm", "resume", "r1", timeout=500)
    assert [event["host"] for event in events(mngr, "launched")] != []
    assert pods.containers() == [kept]


def titles(mngr: Mngr, kind: str) -> set[str]:
    """The tests of which there is such an event."""
    if not (planned := events(mngr, "planned")):
        return set()
    named = {task["task"]: task["title"] for task in planned[0]["tasks"]}
    return {named[event["task"]] for event in events(mngr, kind)}
