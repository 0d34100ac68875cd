"""THE SWARM of tutorial.sh, over a project with two tests. Agents play the script of the first block; runs of which only
the log matters are written, not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mngr.e2e import E2eSession, expect
from tests.home import wait_until
from tests.runs import Log

GREETS, ONE_LINE = "tests/test_app.py::test_it_greets", "tests/test_app.py::test_one_line"
TASKS = {"test-it-greets": GREETS, "test-one-line": ONE_LINE}
TESTS = '''\
import subprocess
import sys

def greeting():
    return subprocess.run([sys.executable, "src/app.py"], capture_output=True, text=True).stdout

def test_it_greets():
    """Whoever starts the program is greeted."""
    assert greeting() == "hello\\n"

def test_one_line():
    assert greeting().count("\\n") == 1
'''
AGENT = """\
cat >agent.sh <<'EOF'
say 'I run my test as it stands.'
run python3 -m pytest -q tests && before pass && after pass
finish 'It proves what it promises.'
EOF
"""
TYPE = """\
mngr config set agent_types.tester.parent replay
mngr config set agent_types.tester.args "$PWD/agent.sh"
"""


@pytest.fixture
def e2e(e2e: E2eSession) -> E2eSession:
    (e2e.dir / "tests").mkdir()
    (e2e.dir / "tests" / "test_app.py").write_text(TESTS)
    (e2e.dir / "tutorial.sh").write_text("#!/bin/sh\n\n# It says hello.\npython3 src/app.py\n")
    e2e.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    e2e.run("git add -A && git commit -qm 'Two tests'", comment="a project with two tests")
    return e2e


@pytest.fixture
def tester(e2e: E2eSession) -> None:
    """The type of the first block is there."""
    e2e.run(AGENT + TYPE, comment="agents that need no model")


def log(e2e: E2eSession, run: str) -> Log:
    return Log(e2e.root / "m", run, TASKS, budget=20.0)


def settings(e2e: E2eSession, run: str) -> dict[str, Any]:
    """With which the run began."""
    first = (e2e.root / "m" / "runs" / run / "events.jsonl").read_text().partition("\n")[0]
    found: dict[str, Any] = json.loads(first)["settings"]
    return found


def test_one_agent_for_each_test(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One agent for each test: it runs the test, mends what is broken, makes it prove just what it promises, and hands in a
        # result, which is checked. These play a script, and need no model; with claude the lines below stay the same.
        cat >agent.sh <<'EOF'
        say 'I run my test as it stands.'
        run python3 -m pytest -q tests && before pass && after pass
        finish 'It proves what it promises.'
        EOF
        mngr config set agent_types.tester.parent replay
        mngr config set agent_types.tester.args "$PWD/agent.sh"
        mngr swarm run tests --type tester
    """)
    e2e.write_tutorial_block("""
        # What became of them, and of one of them: what it claims, what the check found, and its last screen.
        mngr swarm show r1
        mngr swarm show r1 test_it_greets
        git branch --list 'mngr/r1-*'
    """)
    e2e.write_tutorial_block("""
        # Skip what cannot have changed: a test counts as the same with the same text, fixtures, tutorial block, program, lock
        # file, prompt and model. Some of the skipped are run all the same, to see whether skipping is right.
        mngr swarm estimate tests --type tester --changed-since last
        mngr swarm estimate tests --type tester --changed-since HEAD --program src --audit 50%
        mngr swarm run tests --type tester --changed-since HEAD --program src --audit 0%
    """)
    e2e.run(AGENT, comment="what an agent does")
    e2e.run(TYPE, comment="as a type of its own")
    run = e2e.run("mngr swarm run tests --type tester", comment="one for each test")
    expect(run).to_succeed().to_contain(
        "r1: 2 tasks, 2 to do, permissions: allowlist (", f"unchanged: {GREETS}\n", f"unchanged: {ONE_LINE}\n"
    )
    expect(e2e.run("mngr list --json", comment="nobody is left")).to_be_json([])

    shown = e2e.run("mngr swarm show r1", comment="what became of them?").stdout
    expect(shown).to_contain(GREETS, ONE_LINE, "r1: done, 2 unchanged", "\npermissions: allowlist\n")
    one = e2e.run("mngr swarm show r1 test_it_greets", comment="and of one of them?").stdout
    expect(one).to_contain("summary: It proves what it promises.").to_match(r"after:\n +claim: yes\n +check: passed")
    expect(one).to_contain("last on its screen", "2 passed")
    expect(e2e.run("git branch --list 'mngr/r1-*'", comment="nobody has changed anything").stdout).to_be_empty()

    estimate = e2e.run("mngr swarm estimate tests --type tester --changed-since last", comment="and once more?")
    expect(estimate).to_contain(
        "tasks      2, of which 1 are skipped", "agents     1 of type tester", "as they were at run r1"
    )
    half = "mngr swarm estimate tests --type tester --changed-since HEAD --program src --audit 50%"
    expect(e2e.run(half, comment="every other one all the same")).to_contain("of which 1 are skipped")
    none = "mngr swarm run tests --type tester --changed-since HEAD --program src --audit 0%"
    expect(e2e.run(none, comment="nothing can have changed")).to_succeed().to_contain("r2: done, 2 skipped")


def test_what_it_would_take(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # What would it take, and what would leave this machine? Nothing is launched. What comes after -- is for pytest.
        mngr swarm estimate tests --type tester
        mngr swarm estimate tests/test_app.py --type tester --at local --json -- -k one_line
        mngr swarm estimate --type tester --jsonl
    """)
    told = e2e.run("mngr swarm estimate tests --type tester", comment="before the real thing").stdout
    expect(told).to_contain(
        "tasks      2, of",
        "agents     2 of type tester",
        "40,000 to 100,000",
        "what leaves this machine:",
        "of the repository",
    )
    one = "mngr swarm estimate tests/test_app.py --type tester --at local --json -- -k one_line"
    found = e2e.run(one, comment="one of them, on this machine").json()
    expect((found["agents"], found["leaves"]["hosts"])).to_equal((1, ["local"]))
    everything = e2e.run("mngr swarm estimate --type tester --jsonl", comment="all tests, for a script")
    expect(len(everything.stdout.splitlines())).to_equal(1)
    expect(everything.json()["tests"]).to_equal(2)
    expect(e2e.run("mngr list --json && mngr swarm list", comment="nobody was sent").stdout).to_contain("[]", "no runs")


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("tests", 2, "which agent type?"),
        ("nowhere --type tester", 1, "nowhere"),
        ("tests --type tester -- -k nothing", 1, "no tests collected in tests: 2 deselected by -k nothing"),
        ("tests --type tester --changed-since never", 2, "never is not a commit"),
        ("tests --type tester --at box1.nowhere", 2, "there is no provider 'nowhere'"),
        ("tests --type tester --budget much", 2, "budget takes a number, not 'much'"),
    ],
)
def test_what_it_cannot_know(e2e: E2eSession, tester: None, line: str, code: int, told: str) -> None:
    e2e.write_tutorial_block("""
        # What would it take, and what would leave this machine? Nothing is launched. What comes after -- is for pytest.
        mngr swarm estimate tests --type tester
        mngr swarm estimate tests/test_app.py --type tester --at local --json -- -k one_line
        mngr swarm estimate --type tester --jsonl
    """)
    expect(e2e.run(f"mngr swarm estimate {line}")).to_have_exit_code(code).to_contain(told)


def test_limits(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # Agents cost money, so set limits. What one will probably use is put aside before it starts. When too little is left,
        # no more are started, and those at work have a while to finish.
        mngr swarm estimate tests --type tester \\
          --max-agents 20 --per-host 4 --budget 20usd --max-tokens 5m --timeout 30m --wind-down 2m
        mngr swarm run tests/test_app.py::test_it_greets --type tester --name nightly --at local --json \\
          --max-agents 2 --per-host 4 --budget 20usd --max-tokens 5m --timeout 30m --wind-down 2m
    """)
    limits = "--per-host 4 --budget 20usd --max-tokens 5m --timeout 30m --wind-down 2m"
    estimate = f"mngr swarm estimate tests --type tester --max-agents 20 {limits}"
    expect(e2e.run(estimate)).to_contain("budget 20 USD", "at a time 20")
    run = f"mngr swarm run {GREETS} --type tester --name nightly --at local --json --max-agents 2 {limits}"
    found = e2e.run(run, comment="one agent, well within its limits").json()
    expect((found["run"], found["endings"], found["budget"])).to_equal(
        ("nightly", {"unchanged": 1}, {"usd": 20.0, "tokens": 5_000_000})
    )
    kept = settings(e2e, "nightly")
    expect([kept[key] for key in ("max-agents", "timeout", "wind-down")]).to_equal([2, 1800.0, 120.0])
    poor = e2e.run("mngr swarm run tests --type tester --max-tokens 1k", comment="too little for a single agent")
    expect(poor).to_have_exit_code(6).to_contain("2 over budget", "the budget does not pay for a single agent")


def test_trouble(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # What stands still is nudged, then ended. What the machine broke is tried again, and put off while the machine is busy.
        # What ends badly again and again is a pattern: you are told. Agents that are kept can be asked afterwards.
        mngr swarm estimate tests --type tester --stuck-after 5m --retries 1 --min-memory 20 --max-load 2 \\
          --alert-after 5 --alert-command 'echo "$MNGR_ALERT" >>alerts' --keep failed
        mngr swarm run tests --type tester --jsonl --stuck-after 5m --retries 1 --min-memory 1 --max-load 90 \\
          --alert-after 2 --alert-command 'echo "$MNGR_ALERT" >>alerts' --keep all -- -k one_line
    """)
    alert = "--alert-command 'echo \"$MNGR_ALERT\" >>alerts'"
    estimate = f"--stuck-after 5m --retries 1 --min-memory 20 --max-load 2 --alert-after 5 {alert} --keep failed"
    expect(e2e.run(f"mngr swarm estimate tests --type tester {estimate}", comment="it knows them all")).to_succeed()
    how = f"--stuck-after 5m --retries 1 --min-memory 1 --max-load 90 --alert-after 2 {alert} --keep all"
    run = e2e.run(f"mngr swarm run tests --type tester --jsonl {how} -- -k one_line", comment="all goes well")
    expect(run.json()["outcome"]).to_equal("unchanged")
    kept = settings(e2e, "r1")
    expect([kept[key] for key in ("stuck-after", "retries", "min-memory", "max-load")]).to_equal([300.0, 1, 1.0, 90.0])
    (agent,) = e2e.run("mngr list --json", comment="and it is there to be asked").json()
    expect((agent["name"], agent["state"])).to_equal(("r1-test-one-line", "stopped"))

    e2e.run("echo 'fail 3' >agent.sh", comment="agents that end at once")
    broken = e2e.run(f"mngr swarm run tests --type tester {how}", comment="two times the same is a pattern")
    expect(broken).to_fail().to_contain("2 failed")
    alerts = [json.loads(line) for line in (e2e.dir / "alerts").read_text().splitlines()]
    expect([(each["run"], each["count"]) for each in alerts]).to_equal([("r2", 2)])


def test_what_agents_need(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # Agents, and the checks of their work, need what you need to run the tests.
        export REGION=eu
        echo TOKEN=secret >.env && echo LEVEL=debug >agent.env
        mngr swarm estimate tests --type tester --base main --headless --setup 'touch .deps' --copy .env -e CI=1 \\
          --env-file agent.env --pass-env REGION --pytest 'python3 -B -m pytest' --test-timeout 60s --tutorial tutorial.sh
        mngr swarm run tests/test_app.py::test_it_greets --type tester --base main --headless --setup 'touch .deps' \\
          --copy .env -e CI=1 --env-file agent.env --pass-env REGION \\
          --pytest 'python3 -B -m pytest' --test-timeout 60s --tutorial tutorial.sh
    """)
    options = (
        "--type tester --base main --headless --setup 'touch .deps' --copy .env -e CI=1 --env-file agent.env "
        "--pass-env REGION --pytest 'python3 -B -m pytest' --test-timeout 60s --tutorial tutorial.sh"
    )
    e2e.env["REGION"] = "eu"
    e2e.run("echo TOKEN=secret >.env && echo LEVEL=debug >agent.env", comment="what the tests need")
    e2e.run("echo 'run sh -c \"cat .env; ls .deps; echo $CI $LEVEL $REGION\"' | cat - agent.sh >it && mv it agent.sh")
    told = e2e.run(f"mngr swarm estimate tests {options}", comment="the names of what they get").stdout
    expect(told).to_contain("variables: CI, LEVEL, REGION").not_.to_contain("debug")
    run = e2e.run(f"mngr swarm run {GREETS} {options}", comment="and what they find")
    expect(run).to_succeed()
    task = e2e.root / "m" / "runs" / "r1" / "tasks" / "r1-test-it-greets"
    expect((task / "screen.txt").read_text()).to_contain("TOKEN=secret", ".deps", "1 debug eu")
    prompt = e2e.root / "m" / "runs" / "r1" / "prompts" / "test-it-greets.md"
    expect(prompt.read_text()).to_contain(f"python3 -B -m pytest {GREETS}")
    expect(prompt.read_text()).to_match(r"longer than 60\s+seconds")


def test_what_they_may_do(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # Nobody sits beside them to say yes. They may edit files, use git and run the tests, and what you allow; or everything,
        # where that can do no harm. Runs that share a rate limit name the same account.
        mngr swarm estimate tests --type tester --permissions allowlist --allow make --allow 'npm test'
        mngr swarm estimate tests --type tester --permissions bypass || echo "exit code $?"
        mngr swarm estimate tests --type replay --agent-arg "$PWD/agent.sh" --permissions bypass --bypass-here --account team
        mngr swarm run tests/test_app.py::test_it_greets --type replay --agent-arg "$PWD/agent.sh" --account team \\
          --permissions bypass --bypass-here --allow make
    """)
    some = "mngr swarm estimate tests --type tester --permissions allowlist --allow make --allow 'npm test'"
    expect(e2e.run(some, comment="some things")).to_match(r"^may do +allowlist$")
    told = e2e.run("mngr swarm estimate tests --type tester --permissions bypass", comment="everything, here?")
    expect(told).to_have_exit_code(2).to_contain("on this very machine?", "--bypass-here says yes")
    replay = '--type replay --agent-arg "$PWD/agent.sh"'
    everything = f"mngr swarm estimate tests {replay} --permissions bypass --bypass-here --account team"
    expect(e2e.run(everything, comment="yes, everything")).to_match(r"^may do +bypass$")
    run = f"mngr swarm run {GREETS} {replay} --account team --permissions bypass --bypass-here --allow make"
    expect(e2e.run(run)).to_succeed().to_contain("r1: done, 1 unchanged")
    expect((e2e.root / "m" / "accounts" / "team.json").exists()).to_equal(True)


def test_how_it_is_going(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # How is it going? On a terminal a live picture, elsewhere a line for each test.
        mngr swarm list
        mngr swarm status
        mngr swarm status r1 --once
        mngr swarm status r1 --watch
    """)
    with log(e2e, "r1") as written:
        written.launch(*TASKS)
        written.settle("test-it-greets", "fixed")
        listed = e2e.run("mngr swarm list", comment="which runs are there?").stdout
        expect(listed).to_match(r"^r1 +shelf +going on +2 +1 +0 ")
        live = e2e.spawn("mngr swarm status", comment="on a terminal", name="status")
        live.wait_for_text("r1 going on  1/2")
        once = e2e.spawn("mngr swarm status r1 --once", comment="a single look", name="once")
        once.wait_for_text("r1 going on  1/2")
        expect(once.wait_for_exit()).to_equal(0)
        watch = e2e.spawn("mngr swarm status r1 --watch | cat", comment="line by line", name="watch")
        watch.wait_for_text("running")
        written.settle("test-one-line", "stuck", "nothing moved")
    live.wait_for_text("r1 done  2/2")
    expect(live.wait_for_exit()).to_equal(0)
    watch.wait_for_text("nothing moved").wait_for_text("r1: done, 1 fixed, 1 stuck")
    expect(watch.wait_for_exit()).to_equal(0)


def test_all_of_it_for_scripts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # All of it for scripts.
        mngr swarm list --json
        mngr swarm list --jsonl
        mngr swarm status r1 --json
        mngr swarm status r1 --jsonl
        mngr swarm show r1 --json
        mngr swarm show r1 test_it_greets --jsonl
    """)
    with log(e2e, "r1") as written:
        written.launch(*TASKS)
        written.settle("test-it-greets", "fixed", claim={"summary": "It was off by one."})
    (run,) = e2e.run("mngr swarm list --json", comment="all runs").json()
    expect((run["run"], run["state"], run["good"])).to_equal(("r1", "left", 1))
    expect(e2e.run("mngr swarm list --jsonl", comment="a line each").json()).to_equal(run)
    for verb in ("status", "show"):
        whole = e2e.run(f"mngr swarm {verb} r1 --json", comment="a run with its tasks").json()
        expect([task["state"] for task in whole["tasks"]]).to_equal(["fixed", "running"])
    lines = e2e.run("mngr swarm status r1 --jsonl", comment="a task a line").stdout.splitlines()
    expect([json.loads(line)["title"] for line in lines]).to_equal(list(TASKS.values()))
    one = e2e.run("mngr swarm show r1 test_it_greets --jsonl", comment="one task").json()
    expect(one["claim"]).to_equal({"summary": "It was off by one."})


def test_retuning(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It goes well: more of them at once, and more money, while it is going on. The log keeps who wanted it.
        mngr swarm set r1 max-agents=30 budget=50usd
        mngr swarm set r1 timeout=2h --json
        mngr swarm set r1 keep=all --jsonl
    """)
    with log(e2e, "r1") as written:
        told = e2e.run("mngr swarm set r1 max-agents=30 budget=50usd", comment="more").stdout
        expect(told).to_equal("r1: max-agents=30 counts now\nr1: budget=50.0 counts now\n")
        more = e2e.run("mngr swarm set r1 timeout=2h --json", comment="and more time")
        expect(more).to_be_json([{"run": "r1", "key": "timeout", "value": 7200.0, "heard": True}])
        kept = e2e.run("mngr swarm set r1 keep=all --jsonl", comment="and nobody is destroyed")
        expect(kept.json()["value"]).to_equal("all")
        wishes = (written.directory / "control.jsonl").read_text().splitlines()
        expect([json.loads(wish)["key"] for wish in wishes]).to_equal(["max-agents", "budget", "timeout", "keep"])
    wrong = e2e.run("mngr swarm set r1 max-agent=30", comment="a slip of the pen")
    expect(wrong).to_have_exit_code(2).to_contain("did you mean max-agents?")


def test_going_on(e2e: E2eSession, tester: None) -> None:
    e2e.write_tutorial_block("""
        # Ctrl-C leaves the agents at work, and after a crash or a reboot nothing is lost either. Go on, from another shell too.
        mngr swarm resume
        mngr swarm resume r1 --json
        mngr swarm resume r1 --jsonl
    """)
    go = e2e.home / "go"
    e2e.run(f"echo 'while [ ! -e {go} ]; do think 0.05; done' | cat - agent.sh >it && mv it agent.sh")
    run = e2e.spawn(f"mngr swarm run {GREETS} --type tester", comment="an agent that takes its time", name="run")
    events = e2e.root / "m" / "runs" / "r1" / "events.jsonl"
    wait_until(lambda: events.exists() and '"briefed"' in events.read_text(), 30)
    run.wait_for_text("running", timeout=30)
    run.press("C-c").wait_for_text("the agents of r1 go on")
    expect(run.wait_for_exit()).to_equal(130)
    (agent,) = e2e.run("mngr list --json", comment="it goes on").json()
    expect(agent["state"]).to_equal("running")
    go.touch()
    resumed = e2e.run("mngr swarm resume", comment="and so does the run")
    expect(resumed).to_succeed().to_contain("r1: done, 1 unchanged")
    again = e2e.run("mngr swarm resume r1 --json", comment="nothing is done twice").json()
    expect((again["endings"], [task["attempts"] for task in again["tasks"]])).to_equal(({"unchanged": 1}, [1]))
    expect(e2e.run("mngr swarm resume r1 --jsonl", comment="a task a line").json()["outcome"]).to_equal("unchanged")


def test_enough(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Enough: no more are started, those at work are ended, and what they have made is brought home.
        mngr swarm cancel r1
        mngr swarm cancel r2 --json
        mngr swarm cancel r3 --jsonl
    """)
    for run in ("r1", "r2", "r3"):
        with log(e2e, run) as written:
            written.settle("test-it-greets", "fixed")
    expect(e2e.run("mngr swarm cancel r1", comment="enough").stdout).to_equal("cancelled r1\n")
    states = [task["state"] for task in e2e.run("mngr swarm status r1 --json").json()["tasks"]]
    expect(states).to_equal(["fixed", "cancelled"])
    expect(e2e.run("mngr swarm cancel r2 --json")).to_be_json([{"run": "r2", "heard": False}])
    with log(e2e, "r4"):
        told = e2e.run("mngr swarm cancel r4", comment="whoever works on it is told").stdout
    expect(told).to_contain("r4 is being cancelled")
    expect(e2e.run("mngr swarm cancel r3 --jsonl")).to_be_json({"run": "r3", "heard": False})
    expect(e2e.run("mngr swarm cancel r1", comment="it is over")).to_have_exit_code(1).to_contain("r1 is done")
