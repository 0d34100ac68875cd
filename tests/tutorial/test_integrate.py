"""INTEGRATING of tutorial.sh, over a project with a test and four branches, of which two do not go together. Runs are
written, not run, but for the one that a block runs."""

from __future__ import annotations

import re

import pytest

from mngr.e2e import E2eSession, expect
from tests.runs import Log

TEST = '''\
import subprocess
import sys

def test_it_greets():
    """Whoever starts the program is greeted."""
    assert subprocess.run([sys.executable, "src/app.py"], capture_output=True, text=True).stdout == "hello\\n"
'''
BRANCHES = """\
git switch -qc work/at-once main && echo 'print("hello", flush=True)' >src/app.py && git commit -qam 'Say it at once'
git switch -qc work/port main && echo 'PORT = 8080' >src/port.py && git add src
git commit -qm 'Listen on a port' -m 'Importance: high'
git switch -qc work/guide main && echo 'It says hello.' >>README.md && git commit -qam 'Say what it does'
git switch -qc work/loud main && echo 'print("HELLO")' >src/app.py && git commit -qam 'Say it loudly'
git switch -q main
"""
AT_ONCE, PORT = "03ba3df080f1", "ef21626ac053"
AT_ONCE_SAID, PORT_SAID, GUIDE_SAID, LOUD_SAID = (
    "Say it at once",
    "Listen on a port",
    "Say what it does",
    "Say it loudly",
)
SOLVE = """\
say 'Loudly, and at once.'
write src/app.py <<END
print("HELLO", flush=True)
END
run git commit -qam 'Loudly, and at once'
result <<END
{"resolved": true, "why": "both are wanted"}
END
"""
ORDER = """\
say 'What is said at once prevents more harm.'
result <<END
{"order": ["03ba3df080f1", "ef21626ac053"], "why": {"03ba3df080f1": "users see nothing without it"}}
END
"""
GH = """\
#!/bin/sh
printf '%s|' "${GH_TOKEN-none}" "$@" >>"$HOME/gh.log"
echo >>"$HOME/gh.log"
case $2 in list) echo '[]' ;; create) echo https://forge.example/pull/7 ;; esac
"""
BOTH = "work/port work/at-once"


@pytest.fixture
def e2e(e2e: E2eSession) -> E2eSession:
    (e2e.dir / "tests").mkdir()
    (e2e.dir / "tests" / "test_app.py").write_text(TEST)
    e2e.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    e2e.run("git add -A && git commit -qm 'A test'", comment="a project with a test")
    return e2e


@pytest.fixture
def work(e2e: E2eSession) -> None:
    expect(e2e.run(BRANCHES, comment="four branches")).to_succeed()


@pytest.fixture
def fork(e2e: E2eSession) -> None:
    """A remote, a forge, and a token for it."""
    e2e.run("git init -q --bare ../fork.git && git remote add fork ../fork.git", comment="a remote")
    place = e2e.root / "forge"
    place.mkdir()
    (place / "gh").write_text(GH)
    (place / "gh").chmod(0o755)
    e2e.env |= {"PATH": f"{place}:{e2e.env['PATH']}", "GH_TOKEN": "secret"}


def runs(e2e: E2eSession, **commits: list[str]) -> None:
    """By run: the branches whose work its agents have made, all fixed."""
    base = e2e.run("git rev-parse main").stdout.strip()
    for run, branches in commits.items():
        tasks = {branch.partition("/")[2]: f"tests/test_app.py::test_{branch[5:]}" for branch in branches}
        with Log(e2e.root / "m", run, tasks, plan={"project": str(e2e.dir), "base": base}) as log:
            for task in tasks:
                head = e2e.run(f"git branch mngr/{run}-{task} work/{task} && git rev-parse work/{task}").stdout.strip()
                log.launch(task)
                log.bring_home(task, head, [head])
                log.settle(task, "fixed")


def editor(e2e: E2eSession, script: str) -> None:
    """What somebody does with a file, whose name is $1."""
    path = e2e.root / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    e2e.env["EDITOR"] = str(path)


def subjects(e2e: E2eSession, branch: str) -> list[str]:
    """Oldest first."""
    return e2e.run(f"git log --reverse --format=%s main..{branch}").stdout.splitlines()


def test_looking_first(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Many branches, one review. Look first: which commits would come of them, in which order and why, and what conflicts?
        mngr integrate 'work/*' --into review --dry-run
        mngr integrate work/port work/at-once --base main --into review --dry-run --json
    """)
    before = e2e.run("git for-each-ref && git status --porcelain").stdout
    plan = e2e.run("mngr integrate 'work/*' --into review --dry-run", comment="what would come of them?")
    expect(plan).to_have_exit_code(6).to_contain(
        f"docs: {GUIDE_SAID} (work/guide)", f"{LOUD_SAID} (work/loud): conflicts with {AT_ONCE}, in src/app.py"
    )
    rows = re.findall(r"^(\d) +(\w{12}) +implementation +(.*?)  +(.*)$", plan.stdout, re.MULTILINE)
    expect(rows).to_equal(
        [
            ("1", PORT, PORT_SAID, "declared high; 1 line in 1 file"),
            ("2", AT_ONCE, AT_ONCE_SAID, "2 lines in 1 file"),
        ]
    )
    two = e2e.run(f"mngr integrate {BOTH} --base main --into review --dry-run --json", comment="two of them")
    expect([step["name"] for step in two.json()["steps"]]).to_equal([PORT, AT_ONCE])
    expect(e2e.run("git for-each-ref && git status --porcelain", comment="nothing was made").stdout).to_equal(before)


def test_looking_for_what_is_not_there(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Many branches, one review. Look first: which commits would come of them, in which order and why, and what conflicts?
        mngr integrate 'work/*' --into review --dry-run
        mngr integrate work/port work/at-once --base main --into review --dry-run --json
    """)
    wrong = e2e.run("mngr integrate work/prot --into review --dry-run", comment="a slip of the pen")
    expect(wrong).to_have_exit_code(2).to_contain("there is no branch work/prot", "did you mean work/port?")


def test_making_it(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Make it: tests and documents as one commit, then each fix as a commit of its own, and all of it tested in clean
        # checkouts. Your files stay as they are. 6 is for something that was left out: it says what, why, and how to go on.
        mngr integrate 'work/*' --into review || echo "exit code $?"
        git log --oneline main..review
    """)
    e2e.run("echo mine >>README.md", comment="you are in the middle of something")
    made = e2e.run("mngr integrate 'work/*' --into review || echo \"exit code $?\"", comment="make it")
    expect(made).to_contain("review: 3 commits on ", "; verified", f"{LOUD_SAID} (work/loud): conflicts", "exit code 6")
    log = e2e.run("git log --oneline main..review", comment="what is in it?").stdout
    expect([line.partition(" ")[2] for line in log.splitlines()]).to_equal([AT_ONCE_SAID, PORT_SAID, GUIDE_SAID])
    expect(e2e.run("git status --short --branch", comment="your files are as they were").stdout).to_equal(
        "## main\n M README.md\n"
    )
    again = e2e.run("mngr integrate 'work/*' --into review", comment="it is there already")
    expect(again).to_have_exit_code(1).to_contain("there is a branch review already", "--reintegrate makes it anew")


def test_kinds_and_severities(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Paths decide what is a fix. Say which are which, if it is not plain. A message can say how severe the matter is.
        mngr config set --project integrate.docs 'guide/,*.md'
        git switch -qc work/safe && echo 'SAFE = True' >src/safe.py && git add src
        git commit -qm 'Be safe' -m 'Importance: critical' && git switch -q main
        mngr integrate 'work/*' --into review --dry-run
    """)
    e2e.run("git switch -qc work/manual && mkdir guide && echo Hello. >guide/one && git add guide", comment="a guide")
    e2e.run("git commit -qm 'Write a guide' && git switch -q main")
    plan = "mngr integrate 'work/*' --into review --dry-run"
    expect(e2e.run(plan, comment="it is taken for the program")).to_match(r"implementation +Write a guide")
    expect(e2e.run("mngr config set --project integrate.docs 'guide/,*.md'", comment="it is not")).to_succeed()
    e2e.run("git switch -qc work/safe && echo 'SAFE = True' >src/safe.py && git add src", comment="one more fix")
    e2e.run("git commit -qm 'Be safe' -m 'Importance: critical' && git switch -q main", comment="that matters")
    told = e2e.run(plan, comment="what would come of it now?")
    expect(told).to_contain("docs: Write a guide (work/manual)").to_match(r"1 +\w+ +implementation +Be safe +declared")


def test_what_tests_need(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Tests need what they need. A project without pytest has a command that says whether all is well; and for a first look
        # no test is needed at all. What was run once is not run again, unless something beyond the repository was mended.
        echo TOKEN=secret >.env
        mngr integrate work/port work/at-once --into review --setup 'touch .deps' --copy .env \\
          --pytest 'python3 -B -m pytest' --test-timeout 60s -- -k greets
        mngr integrate work/port work/at-once --into checked --check 'python3 src/app.py' --workers 1
        mngr integrate work/port work/at-once --into checked --check 'python3 src/app.py' --reintegrate --forget
        mngr integrate work/port work/at-once --into quick --no-verify
    """)
    test = "import os\ndef test_greets_with_all():\n    assert os.path.exists('.deps') and os.path.exists('.env')\n"
    (e2e.dir / "tests" / "test_needs.py").write_text(test)
    e2e.run("git add tests && git commit -qm 'A test that needs something'")
    e2e.run("echo TOKEN=secret >.env", comment="nothing that is committed")
    how = "--setup 'touch .deps' --copy .env --pytest 'python3 -B -m pytest' --test-timeout 60s --json -- -k greets"
    found = e2e.run(f"mngr integrate {BOTH} --into review {how}", comment="with all that they need").json()
    expect((found["verified"], found["tests"], found["red_at_base"])).to_equal((True, {"passed": 2}, []))
    check = "mngr integrate work/port work/at-once --into checked --check 'python3 src/app.py'"
    expect(e2e.run(f"{check} --workers 1", comment="without pytest")).to_succeed().to_contain("; verified")
    known = e2e.run(f"{check} --reintegrate", comment="is it known?")
    expect(known).to_succeed().not_.to_contain("all other tests")
    anew = e2e.run(f"{check} --reintegrate --forget", comment="everything once more")
    expect(anew).to_succeed().to_contain("all other tests: 1 test", "; verified")
    bad = e2e.run(f"mngr integrate {BOTH} --into bad --check '! grep -q flush src/app.py'", comment="one is no good")
    expect(bad).to_have_exit_code(6).to_contain("set aside (1)", AT_ONCE_SAID, "green with everything before it")
    quick = e2e.run("mngr integrate work/port work/at-once --into quick --no-verify", comment="only a look")
    expect(quick).to_succeed().to_contain("; not verified")


def test_the_order_is_yours(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Another order, or one fix less? Edit the rank file and make the branch anew, with the branches that came since.
        mngr integrate work/port work/at-once --into review --no-verify
        "${EDITOR:-vi}" "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/rank
        mngr integrate work/port work/at-once work/guide --into review --no-verify --reintegrate
    """)
    e2e.run("mngr integrate work/port work/at-once --into review --no-verify", comment="by the rule")
    expect(subjects(e2e, "review")).to_equal([PORT_SAID, AT_ONCE_SAID])
    editor(e2e, f'grep {AT_ONCE} "$1" >new; grep {PORT} "$1" >>new; mv new "$1"')
    edit = '"${EDITOR:-vi}" "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/rank'
    expect(e2e.run(edit, comment="the other way round")).to_succeed()
    anew = "mngr integrate work/port work/at-once work/guide --into review --no-verify --reintegrate"
    expect(e2e.run(anew, comment="and one more branch")).to_succeed()
    expect(subjects(e2e, "review")).to_equal([GUIDE_SAID, AT_ONCE_SAID, PORT_SAID])
    editor(e2e, f'sed "s/^pick {PORT}/drop {PORT}/" "$1" >new; mv new "$1"')
    e2e.run(edit, comment="one fix less")
    expect(e2e.run(anew, comment="made anew")).to_succeed().to_contain("dropped (1)", PORT_SAID)
    expect(subjects(e2e, "review")).to_equal([GUIDE_SAID, AT_ONCE_SAID])


def test_a_branch_that_was_changed_is_left_alone(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Another order, or one fix less? Edit the rank file and make the branch anew, with the branches that came since.
        mngr integrate work/port work/at-once --into review --no-verify
        "${EDITOR:-vi}" "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/rank
        mngr integrate work/port work/at-once work/guide --into review --no-verify --reintegrate
    """)
    e2e.run("mngr integrate work/port work/at-once --into review --no-verify", comment="by the rule")
    e2e.run("git switch -q review && git commit -q --allow-empty -m Mine && git switch -q main", comment="you go on")
    anew = "mngr integrate work/port work/at-once work/guide --into review --no-verify --reintegrate"
    expect(e2e.run(anew)).to_have_exit_code(1).to_contain("somebody has changed it since")
    expect(subjects(e2e, "review")[-1]).to_equal("Mine")


def test_the_order_on_the_command_line(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Or say so right here. Names are those of --dry-run, and stay the same as long as the change does.
        echo 'pick 03ba3df080f1' >order
        mngr integrate work/port work/at-once --into review --no-verify --rank-file order
        mngr integrate work/port work/at-once --into review --no-verify --reintegrate --drop ef21626ac053
    """)
    e2e.run("echo 'pick 03ba3df080f1' >order", comment="this one first")
    first = "mngr integrate work/port work/at-once --into review --no-verify --rank-file order"
    expect(e2e.run(first)).to_succeed()
    expect(subjects(e2e, "review")).to_equal([AT_ONCE_SAID, PORT_SAID])
    less = "mngr integrate work/port work/at-once --into review --no-verify --reintegrate --drop ef21626ac053"
    expect(e2e.run(less, comment="without the other")).to_succeed().to_contain("dropped (1)")
    expect(subjects(e2e, "review")).to_equal([AT_ONCE_SAID])
    wrong = e2e.run("mngr integrate work/port --into other --no-verify --rank-file order", comment="which is not there")
    expect(wrong).to_have_exit_code(2).to_contain("names what is no fix", AT_ONCE)


def test_solving_a_conflict(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # What conflicts waits in a work dir that holds just that. Solve it as you would anywhere, commit, and go on.
        mngr integrate 'work/*' --into review --no-verify || echo "exit code $?"
        (cd "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/conflicts/*/ &&
          "${EDITOR:-vi}" src/app.py && git commit -qam 'Both')
        mngr integrate 'work/*' --into review --no-verify --resume
    """)
    made = e2e.run(
        "mngr integrate 'work/*' --into review --no-verify || echo \"exit code $?\"", comment="one conflicts"
    )
    expect(made).to_contain("exit code 6", "to solve a conflict by hand: git commit there")
    editor(e2e, 'grep -q "<<<<" "$1" && echo \'print("HELLO", flush=True)\' >"$1"')
    solve = """\
(cd "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/conflicts/*/ &&
  "${EDITOR:-vi}" src/app.py && git commit -qam 'Both')"""
    expect(e2e.run(solve, comment="loudly, and at once")).to_succeed()
    resume = e2e.run("mngr integrate 'work/*' --into review --no-verify --resume", comment="go on")
    expect(resume).to_succeed().to_contain("(Say it loudly) was solved by hand")
    expect(subjects(e2e, "review")[-1]).to_equal(LOUD_SAID)
    expect(e2e.run("git show review:src/app.py").stdout).to_equal('print("HELLO", flush=True)\n')


def test_nothing_to_go_on_with(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # What conflicts waits in a work dir that holds just that. Solve it as you would anywhere, commit, and go on.
        mngr integrate 'work/*' --into review --no-verify || echo "exit code $?"
        (cd "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/conflicts/*/ &&
          "${EDITOR:-vi}" src/app.py && git commit -qam 'Both')
        mngr integrate 'work/*' --into review --no-verify --resume
    """)
    resume = e2e.run("mngr integrate 'work/*' --into review --no-verify --resume", comment="nothing has begun")
    expect(resume).to_have_exit_code(1).to_contain("there is no integration into review to go on with")


def test_an_agent_solves_a_conflict(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Let an agent do that. It is told what both sides want, and what it commits is checked. Here it plays a script, and
        # needs no model; with --type claude it would be a real one.
        cat >solve.sh <<'EOF'
        say 'Loudly, and at once.'
        write src/app.py <<END
        print("HELLO", flush=True)
        END
        run git commit -qam 'Loudly, and at once'
        result <<END
        {"resolved": true, "why": "both are wanted"}
        END
        EOF
        mngr integrate 'work/*' --into review --no-verify --type replay --agent-arg "$PWD/solve.sh" -e CI=1
        mngr integrate 'work/*' --into without --no-verify --no-agent || echo "exit code $?"
    """)
    e2e.run(f"cat >solve.sh <<'EOF'\n{SOLVE}EOF", comment="what it does")
    solve = "mngr integrate 'work/*' --into review --no-verify --type replay --agent-arg \"$PWD/solve.sh\" -e CI=1"
    expect(e2e.run(solve, comment="let it")).to_succeed().to_contain("both are wanted")
    expect(e2e.run("git show review:src/app.py").stdout).to_equal('print("HELLO", flush=True)\n')
    expect(e2e.run("mngr list --json", comment="it is gone")).to_be_json([])
    without = "mngr integrate 'work/*' --into without --no-verify --no-agent || echo \"exit code $?\""
    expect(e2e.run(without, comment="ask nobody")).to_contain("left out (1)", "exit code 6")


def test_an_agent_that_cannot_solve_it(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Let an agent do that. It is told what both sides want, and what it commits is checked. Here it plays a script, and
        # needs no model; with --type claude it would be a real one.
        cat >solve.sh <<'EOF'
        say 'Loudly, and at once.'
        write src/app.py <<END
        print("HELLO", flush=True)
        END
        run git commit -qam 'Loudly, and at once'
        result <<END
        {"resolved": true, "why": "both are wanted"}
        END
        EOF
        mngr integrate 'work/*' --into review --no-verify --type replay --agent-arg "$PWD/solve.sh" -e CI=1
        mngr integrate 'work/*' --into without --no-verify --no-agent || echo "exit code $?"
    """)
    (e2e.dir / "solve.sh").write_text(
        "result <<END\n" + '{"resolved": false, "why": "nobody can be loud and quiet"}\nEND\n'
    )
    solve = "mngr integrate 'work/*' --into review --no-verify --type replay --agent-arg \"$PWD/solve.sh\" -e CI=1"
    expect(e2e.run(solve)).to_have_exit_code(6).to_contain("nobody can be loud and quiet", "left out (1)")


def test_an_agent_judges_the_order(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # An agent can also judge the order. It has to say why.
        cat >order.sh <<'EOF'
        say 'What is said at once prevents more harm.'
        result <<END
        {"order": ["03ba3df080f1", "ef21626ac053"], "why": {"03ba3df080f1": "users see nothing without it"}}
        END
        EOF
        mngr integrate work/port work/at-once --into review --no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"
    """)
    e2e.run(f"cat >order.sh <<'EOF'\n{ORDER}EOF", comment="what it says")
    how = '--no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"'
    expect(e2e.run(f"mngr integrate {BOTH} --into review {how}", comment="ask it")).to_succeed()
    expect(subjects(e2e, "review")).to_equal([AT_ONCE_SAID, PORT_SAID])
    rank = e2e.run('cat "$MNGR_HOME"/integrations/review-*/rank', comment="and why?").stdout
    expect(rank).to_contain("users see nothing without it")


def test_publishing(e2e: E2eSession, work: None, fork: None) -> None:
    e2e.write_tutorial_block("""
        # You have looked at it: push it, or open the pull request that is written already. Only this step has your token.
        mngr integrate work/port work/at-once --into review --no-verify --push --remote fork
        mngr integrate work/port work/at-once --into review --no-verify --reintegrate --pr
    """)
    push = "mngr integrate work/port work/at-once --into review --no-verify --push --remote fork"
    expect(e2e.run(push, comment="push it")).to_succeed().to_contain("pushed to fork")
    expect(e2e.run("git ls-remote fork review").stdout[:40]).to_equal(e2e.run("git rev-parse review").stdout.strip())
    pr = "mngr integrate work/port work/at-once --into review --no-verify --reintegrate --pr"
    expect(e2e.run(pr, comment="open it")).to_succeed().to_contain("pull request: https://forge.example/pull/7")
    *_, created = (e2e.home / "gh.log").read_text().splitlines()
    expect(created.split("|")[:5]).to_equal(["secret", "pr", "create", "--head", "review"])
    expect(created).to_contain("2 fixes from 2 branches", "pull-request.md")


def test_nowhere_to_publish_to(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # You have looked at it: push it, or open the pull request that is written already. Only this step has your token.
        mngr integrate work/port work/at-once --into review --no-verify --push --remote fork
        mngr integrate work/port work/at-once --into review --no-verify --reintegrate --pr
    """)
    push = "mngr integrate work/port work/at-once --into review --no-verify --push --remote fork"
    expect(e2e.run(push, comment="there is no fork")).to_have_exit_code(2).to_contain("there is no remote fork")
    expect(e2e.run("git branch --list review").stdout).to_equal("")


def test_integrating_a_run(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A run of the swarm is integrated at its end, in mngr/RUN-integrated. Or later, when you have looked at the branches:
        # the latest run, or this one.
        mngr swarm run tests --type tester --no-integrate
        mngr swarm integrate --dry-run
        mngr swarm integrate r1
    """)
    agent = """\
run python3 -m pytest -q tests && before pass && after pass
write tests/test_twice.py <<END
from test_app import test_it_greets

def test_twice():
    test_it_greets()
    test_it_greets()
END
commit test 'Greet twice'
finish 'A second time is covered too.'
"""
    e2e.run(f"cat >agent.sh <<'EOF'\n{agent}EOF", comment="an agent that makes a test")
    e2e.run("mngr config set agent_types.tester.parent replay")
    e2e.run('mngr config set agent_types.tester.args "$PWD/agent.sh"')
    run = e2e.run("mngr swarm run tests --type tester --no-integrate", comment="branches only")
    expect(run).to_succeed().to_contain("r1: done, 1 improved").not_.to_contain("integrated")
    plan = e2e.run("mngr swarm integrate --dry-run", comment="what would come of it?")
    expect(plan).to_succeed().to_contain("test: Greet twice (mngr/r1-test-it-greets)")
    made = e2e.run("mngr swarm integrate r1", comment="make it")
    expect(made).to_succeed().to_contain("mngr/r1-integrated: 1 commit on ", "; verified")
    shown = e2e.run("git log -1 --format=%B mngr/r1-integrated", comment="who made it?").stdout
    expect(shown).to_contain("Greet twice\n", "Kind: test\n", "Agent: r1-test-it-greets\n", "Run: r1\n")
    expect(e2e.run("mngr swarm status r1 --once")).to_contain("integrated: mngr/r1-integrated (1 commit)")
    whole = e2e.run("mngr swarm run tests --type tester", comment="and all in one").stdout
    expect(whole).to_contain("mngr/r2-integrated: 1 commit on ")


def test_what_the_run_knows_can_be_said_again(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Everything else is as above. What the run knows (setup, pytest, the type of agent) need not be said again, but can be.
        echo TOKEN=secret >.env
        mngr swarm integrate r1 --into checked --check 'python3 src/app.py' --workers 1
        mngr swarm integrate r1 --into checked --check 'python3 src/app.py' --reintegrate --forget
        mngr swarm integrate r1 --into tested --setup 'touch .deps' --copy .env \\
          --pytest 'python3 -B -m pytest' --test-timeout 60s -- -k greets
        mngr swarm integrate r1 --no-verify --no-agent --json
        mngr swarm integrate r1 --no-verify --resume
    """)
    runs(e2e, r1=["work/port", "work/at-once"])
    e2e.run("echo TOKEN=secret >.env")
    command = "mngr swarm integrate r1 --into checked --check 'python3 src/app.py'"
    check = e2e.run(f"{command} --workers 1", comment="a command")
    expect(check).to_succeed().to_contain("checked: 2 commits on ", "; verified")
    anew = e2e.run(f"{command} --reintegrate --forget", comment="once more")
    expect(anew).to_succeed().to_contain("all other tests: 1 test", "checked: 2 commits on ")
    how = "--setup 'touch .deps' --copy .env --pytest 'python3 -B -m pytest' --test-timeout 60s -- -k greets"
    tested = e2e.run(f"mngr swarm integrate r1 --into tested {how}", comment="the tests")
    expect(tested).to_succeed().to_contain("tested: 2 commits on ", "; verified")
    quick = e2e.run("mngr swarm integrate r1 --no-verify --no-agent --json", comment="neither").json()
    expect((quick["into"], quick["verified"], quick["runs"])).to_equal(("mngr/r1-integrated", False, ["r1"]))
    again = e2e.run("mngr swarm integrate r1 --no-verify --resume", comment="nothing is left to do")
    expect(again).to_succeed()
    expect(e2e.run("git rev-parse mngr/r1-integrated").stdout.strip()).to_equal(quick["tip"])


def test_several_runs(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # Several runs of one repository are one branch.
        mngr swarm integrate r1 r2 --into all --no-verify --type replay --agent-arg "$PWD/solve.sh" -e CI=1
    """)
    runs(e2e, r1=["work/port", "work/at-once"], r2=["work/loud"])
    (e2e.dir / "solve.sh").write_text(SOLVE)
    agent = '--type replay --agent-arg "$PWD/solve.sh" -e CI=1'
    both = e2e.run(f"mngr swarm integrate r1 r2 --into all --no-verify {agent}", comment="two runs, one conflict")
    expect(both).to_succeed().to_contain("all: 3 commits on ")
    expect(e2e.run("git show all:src/app.py").stdout).to_equal('print("HELLO", flush=True)\n')


def test_the_order_of_a_run(e2e: E2eSession, work: None) -> None:
    e2e.write_tutorial_block("""
        # The order is yours, or an agent's, here too.
        echo 'pick 03ba3df080f1' >order
        mngr swarm integrate r1 --into mine --no-verify --rank-file order --drop ef21626ac053
        mngr swarm integrate r1 --into its --no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"
    """)
    runs(e2e, r1=["work/port", "work/at-once"])
    (e2e.dir / "order.sh").write_text(ORDER)
    e2e.run("echo 'pick 03ba3df080f1' >order")
    mine = "mngr swarm integrate r1 --into mine --no-verify --rank-file order --drop ef21626ac053"
    expect(e2e.run(mine, comment="mine")).to_succeed()
    expect(subjects(e2e, "mine")).to_equal([AT_ONCE_SAID])
    its = 'mngr swarm integrate r1 --into its --no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"'
    expect(e2e.run(its, comment="an agent's")).to_succeed()
    expect(subjects(e2e, "its")).to_equal([AT_ONCE_SAID, PORT_SAID])


def test_publishing_a_run(e2e: E2eSession, work: None, fork: None) -> None:
    e2e.write_tutorial_block("""
        # And what was looked at is published.
        mngr swarm integrate r1 --no-verify --push --remote fork
        mngr swarm integrate r1 --no-verify --reintegrate --pr
    """)
    runs(e2e, r1=["work/port"])
    push = e2e.run("mngr swarm integrate r1 --no-verify --push --remote fork", comment="push it")
    expect(push).to_succeed().to_contain("pushed to fork")
    pr = e2e.run("mngr swarm integrate r1 --no-verify --reintegrate --pr", comment="open it")
    expect(pr).to_succeed().to_contain("pull request: https://forge.example/pull/7")
    expect((e2e.home / "gh.log").read_text()).to_contain("|--head|mngr/r1-integrated|", "1 fix from 1 agent (r1)")
