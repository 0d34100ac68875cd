"""TUTORIALS AND TESTS of tutorial.sh, in a project that has a small tutorial of its own: of its two blocks one is proven,
and of one paragraph the command is still to be written. Where a block does not say that `writer` is Claude Code, it is
a plain program here, which does in no time what a model might have thought of."""

from __future__ import annotations

import json
import random
import shlex
import socket
from typing import Any
from urllib.request import urlopen

import pytest

from mngr.dev.model_server import ModelServer
from mngr.dev.script import Script
from mngr.e2e import E2eSession, expect

TUTORIAL = """\
#!/bin/sh

############################################################
# THE SHOP
############################################################

# It says hello.
python3 src/app.py

# What is in it?
git ls-files

# What was done last?
"""
TEST_HELLO = '''\
from pathlib import Path

def test_hello(e2e):
    e2e.write_tutorial_block("""
        # It says hello.
        python3 src/app.py
    """)
    e2e.spawn("python3 src/app.py", name="hello", cwd=Path(__file__).parents[1]).wait_for_text("hello")
'''
TEST_FILES = '''\
from pathlib import Path

from mngr.e2e import expect

def test_files(e2e):
    e2e.write_tutorial_block("""
        # What is in it?
        git ls-files
    """)
    expect(e2e.run("git ls-files", cwd=Path(__file__).parents[1])).to_contain("src/app.py")
'''
MORE = {
    "status": "# What has changed?\ngit status",
    "branch": "# Who works on it?\ngit branch",
    "tag": "# What was released?\ngit tag",
}
PROPOSALS = {
    "proposals": [
        {"line": 13, "text": "# What was done last?", "blocks": ["git log --last", "git log -1 --format=%s"]},
    ]
}
FILLED = TUTORIAL + "git log -1 --format=%s\n"
WRITER = """\
case $MNGR_INPUT in
    *proposals.json*) cp ~/proposals.json . ;;
    *) cp ~/test_*.py tests/ && git add tests && git commit -qm 'Prove it' ;;
esac
"""
PYTEST = "python3 -m pytest -q"


@pytest.fixture
def e2e(e2e: E2eSession) -> E2eSession:
    for name, text in {
        "tutorial.sh": TUTORIAL,
        "tests/test_hello.py": TEST_HELLO,
        "docs/man/shop.1": ".TH SHOP 1\n",
        "pytest.ini": "[pytest]\ne2e_tutorials = tutorial.sh\n",
    }.items():
        (e2e.dir / name).parent.mkdir(parents=True, exist_ok=True)
        (e2e.dir / name).write_text(text)
    (e2e.home / "test_files.py").write_text(TEST_FILES)
    (e2e.home / "proposals.json").write_text(json.dumps(PROPOSALS))
    e2e.run("git add -A && git commit -qm 'A tutorial'", comment="a project with a tutorial")
    return e2e


def writer(e2e: E2eSession, line: str = WRITER) -> None:
    """A type that does as this line says. Like every program of mngr tutorial, it has its task in $MNGR_INPUT."""
    words = shlex.quote(json.dumps(["sh", "-c", line]))
    e2e.run(
        f"mngr config set agent_types.writer.parent command && mngr config set agent_types.writer.args {words}",
        comment="a writer that needs no model",
    )


def more(e2e: E2eSession, *names: str) -> None:
    """Blocks that are not proven, and in the home what would prove each."""
    (e2e.dir / "tutorial.sh").write_text("\n".join([TUTORIAL, *(f"{MORE[name]}\n" for name in names)]))
    for name in names:
        test = f"def test_{name}(e2e):\n    e2e.write_tutorial_block({MORE[name]!r})\n    e2e.run('git init; git {name}')\n"
        (e2e.home / f"test_{name}.py").write_text(test)
    e2e.run("git commit -qam 'More to prove'", comment="more blocks that nobody has proven")


def sent(e2e: E2eSession) -> list[dict[str, Any]]:
    """The agents that there are, as `mngr list --json` has them."""
    found: list[dict[str, Any]] = e2e.run("mngr list --json").json()
    return found


def proofs(tutorial: str) -> dict[str, list[tuple[str, str]]]:
    """On the page of the tutorial: by which tests each paragraph is proven, and whether they passed. Its data comes
    as the call of a function."""
    (file,) = json.loads(tutorial.partition(", ")[2].rpartition(");")[0])
    shown = [(part["text"], part["proofs"]) for part in file["parts"]]
    return {text.splitlines()[0]: [(each["name"], each["status"]) for each in proven] for text, proven in shown}


def test_the_blocks_of_a_tutorial(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # This file is a list of blocks: paragraphs with a command in them, each with an id of its own.
        mngr tutorial blocks tutorial.sh
        mngr tutorial blocks tutorial.sh --jsonl
        mngr tutorial blocks tutorial.sh --json
    """)
    whole = e2e.run("mngr tutorial blocks tutorial.sh --json", comment="all about it")
    hello, files = (
        {"id": ..., "section": "THE SHOP", "line": 7, "end": 8, "text": "# It says hello.\npython3 src/app.py"},
        {"id": ..., "section": "THE SHOP", "line": 10, "end": 11, "text": "# What is in it?\ngit ls-files"},
    )
    last = {"section": "THE SHOP", "line": 13, "end": 13, "text": "# What was done last?"}
    expect(whole).to_be_json({"file": "tutorial.sh", "blocks": [hello, files], "blanks": [last], "problems": []})
    ids = [block["id"] for block in whole.json()["blocks"]]
    lines = e2e.run("mngr tutorial blocks tutorial.sh --jsonl", comment="a line for each").stdout.splitlines()
    told = [json.loads(line) for line in lines]
    expect([(each["kind"], each.get("id")) for each in told]).to_equal(
        [("block", ids[0]), ("block", ids[1]), ("blank", None)]
    )
    table = e2e.run("mngr tutorial blocks tutorial.sh", comment="to be read").stdout
    expect(table).to_match(f"^7 +{ids[0]} +THE SHOP +python3 src/app.py$")
    expect(table).to_match("^13 +- +THE SHOP +# What was done last")


def test_the_id_of_a_block_comes_from_its_words(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # This file is a list of blocks: paragraphs with a command in them, each with an id of its own.
        mngr tutorial blocks tutorial.sh
        mngr tutorial blocks tutorial.sh --jsonl
        mngr tutorial blocks tutorial.sh --json
    """)
    hello, files = e2e.run("mngr tutorial blocks tutorial.sh --json", comment="as it is").json()["blocks"]
    e2e.run("sed -i '/^# It/i git status\\n' tutorial.sh", comment="a block goes in between")
    added, moved, _ = e2e.run("mngr tutorial blocks tutorial.sh --json").json()["blocks"]
    expect(moved).to_equal({**hello, "line": 9, "end": 10})
    expect({hello["id"], files["id"]}).not_.to_contain(added["id"])
    e2e.run("sed -i 's/hello/good day/' tutorial.sh", comment="words change")
    expect(e2e.run("mngr tutorial blocks tutorial.sh")).to_contain(files["id"]).not_.to_contain(hello["id"])


def test_a_block_that_nobody_proves_is_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Is every block proven by a test, and does every test cite a block that is still there? The tests are read, not run.
        mngr tutorial check tutorial.sh tests
        mngr tutorial check tutorial.sh tests --json
    """)
    told = e2e.run("mngr tutorial check tutorial.sh tests", comment="is every block proven?")
    expect(told).to_have_exit_code(1).to_contain("tutorial.sh:10: not cited by any test: git ls-files")
    e2e.run('cp ~/test_files.py tests/ && echo \'open("it ran", "w")\' >>tests/test_files.py', comment="a test for it")
    expect(e2e.run("mngr tutorial check tutorial.sh tests", comment="now it is")).to_succeed().to_contain("in sync")
    ledger = e2e.run("mngr tutorial check tutorial.sh tests --json", comment="and by which tests?").json()
    expect(ledger).to_be_json({"in_sync": True, "blocks": 2, "citations": 2, "blanks": 1, ...: ...})
    expect({test["test"] for tests in ledger["covered"].values() for test in tests}).to_equal(
        {"tests/test_hello.py::test_hello", "tests/test_files.py::test_files"}
    )
    expect((e2e.dir / "it ran").exists()).to_equal(False)


def test_an_edited_block_and_one_that_is_gone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Is every block proven by a test, and does every test cite a block that is still there? The tests are read, not run.
        mngr tutorial check tutorial.sh tests
        mngr tutorial check tutorial.sh tests --json
    """)
    e2e.run("cp ~/test_files.py tests/ && mngr tutorial check tutorial.sh tests", comment="all is well")
    e2e.run("sed -i 's/says hello/greets you/; /What is in it/,+1d' tutorial.sh", comment="the tutorial changes")
    told = e2e.run("mngr tutorial check tutorial.sh tests", comment="and the tests have not noticed")
    expect(told).to_have_exit_code(1).to_contain("-# It says hello.", "+# It greets you.")
    expect(told).to_match("^tests/test_files.py:6: test_files cites a block that is gone: git ls-files$")
    expect(e2e.run("mngr tutorial check tutorial.sh tests --json")).to_be_json(
        {"in_sync": False, "edited": [{"diff": ..., ...: ...}], "gone": [{"line": 6, ...: ...}], ...: ...}
    )


def test_all_on_one_page(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # See it together: the tutorial, the tests of each block, their transcripts and recordings, as one folder to open or to
        # publish.
        mngr e2e view
        mngr e2e view .test_output/e2e --output ../proof --tutorial tutorial.sh --json
    """)
    expect(e2e.run(PYTEST, comment="the tests are run")).to_succeed()
    page = e2e.run("mngr e2e view", comment="what did they do?")
    expect(page.stdout).to_equal(".test_output/e2e/view/index.html\n")
    expect(page.stderr).to_contain("1 test in 1 run")
    expect((e2e.dir / ".test_output/e2e/view/index.html").exists()).to_equal(True)

    command = "mngr e2e view .test_output/e2e --output ../proof --tutorial tutorial.sh --json"
    expect(e2e.run(command, comment="to be published")).to_be_json(
        {"index": "../proof/index.html", "runs": 1, "tests": 1, "written": 1, "problems": [], "player": True}
    )
    proof = e2e.work / "proof"
    expect((proof / "index.html").read_text()).to_contain("<html")
    expect(proofs((proof / "data/tutorial.js").read_text())).to_equal(
        {"# It says hello.": [("test_hello", "passed")], "# What is in it?": [], "# What was done last?": []}
    )
    (recording,) = proof.glob("data/tests/*/*/hello.cast")
    expect(recording).to_contain("hello")
    (transcript,) = proof.glob("data/tests/*/*.js")
    expect(transcript).to_contain("python3 src/app.py")


def test_without_any_run_there_is_no_page(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # See it together: the tutorial, the tests of each block, their transcripts and recordings, as one folder to open or to
        # publish.
        mngr e2e view
        mngr e2e view .test_output/e2e --output ../proof --tutorial tutorial.sh --json
    """)
    result = e2e.run("mngr e2e view", comment="no test was ever run here")
    expect(result).to_have_exit_code(2).to_contain("pytest")
    e2e.run(PYTEST, comment="now one was")
    e2e.run("mkdir ../proof && echo mine >../proof/notes", comment="a folder that is in use")
    command = "mngr e2e view .test_output/e2e --output ../proof --tutorial tutorial.sh --json"
    expect(e2e.run(command, comment="is not written over")).to_fail().to_contain("not of a view")
    expect(e2e.run("ls ../proof").stdout).to_equal("notes\n")


def test_a_page_that_follows_the_tests(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # While you work on tests, have the page served: it is up to date whenever one of them ends. Ctrl-C ends it. Without
        # --port, any free one is taken.
        mngr e2e view --serve --port "${PORT:-8398}" --open
    """)
    browser, port = e2e.home / "browser", free_port()
    browser.write_text('#!/bin/sh\necho "$1" >~/opened\n')
    browser.chmod(0o755)
    address = f"http://127.0.0.1:{port}/"
    e2e.run(PYTEST, comment="the tests are run")
    terminal = e2e.spawn(
        'mngr e2e view --serve --port "${PORT:-8398}" --open',
        comment="have the page served",
        env={"PORT": str(port), "BROWSER": str(browser)},
    )
    terminal.wait_for_text(address)
    expect(e2e.home / "opened").to_eventually_equal(f"{address}\n")
    expect(get(address)).to_contain("<html")
    expect(proofs(get(f"{address}data/tutorial.js"))["# What is in it?"]).to_be_empty()
    with urlopen(f"{address}events", timeout=30) as events:  # as the open page does
        had = next(events)
        e2e.run(f"cp ~/test_files.py tests/ && {PYTEST} tests/test_files.py", comment="meanwhile, a new test ends")
        expect(lambda: proofs(get(f"{address}data/tutorial.js"))["# What is in it?"]).to_eventually_equal(
            [("test_files", "passed")]
        )
        expect(next(line for line in events if line.startswith(b"data: "))).not_.to_equal(had)
    terminal.press("C-c")
    expect(terminal.wait_for_exit()).to_equal(130)
    with pytest.raises(OSError, match="refused"):
        get(address)


def test_a_port_that_is_taken(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # While you work on tests, have the page served: it is up to date whenever one of them ends. Ctrl-C ends it. Without
        # --port, any free one is taken.
        mngr e2e view --serve --port "${PORT:-8398}" --open
    """)
    e2e.run(PYTEST, comment="the tests are run")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = 'mngr e2e view --serve --port "${PORT:-8398}" --open'
        result = e2e.run(command, comment="somebody else is there", env={"PORT": port})
    expect(result).to_have_exit_code(1).to_contain(f"port {port}", "without --port, a free one is taken")
    terminal = e2e.spawn("mngr e2e view --serve", comment="then without")
    terminal.wait_for_text("http://127.0.0.1:").press("C-c")
    terminal.wait_for_exit()


def free_port() -> int:
    """Below those that the system hands out by itself, so that nobody is given it meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def get(address: str) -> str:
    with urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def test_what_an_agent_would_be_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A block without a test is work for an agent. This is what it would be told, if you want to look first.
        mngr tutorial sync tutorial.sh tests --print-prompt
    """)
    prompt = e2e.run("mngr tutorial sync tutorial.sh tests --print-prompt", comment="look first")
    expect(prompt).to_succeed().to_contain("git ls-files", "`tutorial.sh`, line 10, section THE SHOP", "in `tests`")
    expect(prompt.stdout.partition("## Rules")[0]).not_.to_contain("python3 src/app.py")
    expect(sent(e2e)).to_be_empty()
    e2e.run("cp ~/test_files.py tests/", comment="once it has a test")
    nothing = e2e.run("mngr tutorial sync tutorial.sh tests --print-prompt")
    expect(nothing.stdout).to_equal("in sync: nothing to do\n")


def test_the_rules_as_a_skill(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Or teach the agent that you talk to anyway: the same rules as a skill.
        mngr tutorial sync --print-skill
        mngr tutorial sync --install-skill .claude/skills
    """)
    skill = e2e.run("mngr tutorial sync --print-skill", comment="the rules").stdout
    expect(skill).to_match("^name: sync-tutorial-to-e2e-tests$").to_contain("## Rules")
    prompt = e2e.run("mngr tutorial sync tutorial.sh tests --print-prompt", comment="they are the same").stdout
    expect(prompt).to_contain(skill.partition("## Rules")[2].rstrip())
    installed = e2e.run("mngr tutorial sync --install-skill .claude/skills", comment="for Claude Code in this project")
    path = installed.stdout.strip()
    expect(path).to_equal(".claude/skills/sync-tutorial-to-e2e-tests/SKILL.md")
    expect(e2e.dir / path).to_equal(skill)


def test_agents_write_the_tests(e2e: E2eSession, agents: ModelServer) -> None:
    """Of four blocks that nobody proves, three get an agent each: Claude Code, which writes, and commits, and is done."""
    e2e.write_tutorial_block("""
        # Send agents, three at most for now, each in a work dir of its own. Nobody sits beside them, so they have to be allowed
        # what they need; a type of your own saves saying so every time.
        mngr config set agent_types.writer.parent claude
        mngr config set agent_types.writer.args -- --dangerously-skip-permissions
        mngr tutorial sync tutorial.sh tests --type writer --headless --max 3 --timeout 1h
    """)
    more(e2e, "status", "branch", "tag")
    rules = []
    for command, name in (("ls-files", "files"), ("status", "status"), ("branch", "branch"), ("tag", "tag")):
        write = f"cp {e2e.home}/test_{name}.py tests/ && git add tests && git commit -qm 'Prove it'"
        rules.append({"when": f"^git {command}$", "run": write, "times": 1})
    agents.script = Script(rules)
    e2e.run("mngr config set agent_types.writer.parent claude", comment="a writer is a Claude Code")
    e2e.run("mngr config set agent_types.writer.args -- --dangerously-skip-permissions", comment="that may do it")
    before = e2e.run("git status --porcelain && git rev-parse HEAD").stdout
    result = e2e.run(
        "mngr tutorial sync tutorial.sh tests --type writer --headless --max 3 --timeout 1h", comment="send three"
    )
    expect(result).to_succeed().to_contain("left for the next call")
    expect([(each["type"], each["headless"]) for each in sent(e2e)]).to_equal([("writer", True)] * 3)
    expect(len({each["work_dir"] for each in sent(e2e)})).to_equal(3)
    expect(
        e2e.run("git status --porcelain && git rev-parse HEAD", comment="here, nothing has changed").stdout
    ).to_equal(before)
    names = " ".join(each["name"] for each in sent(e2e))
    expect(e2e.run(f"mngr pull --merge {names}", comment="take what they wrote")).to_succeed()
    ledger = e2e.run(
        "mngr tutorial check tutorial.sh tests --json", comment="one block is left for the next call"
    ).json()
    expect([block["text"] for block in ledger["uncited"]]).to_equal([MORE["tag"]])


def test_what_comes_back_counts_when_its_tests_pass(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What comes back counts only when its tests pass, in the work dir of the agent, which needs what your own has.
        mngr tutorial sync tutorial.sh tests --type writer --setup 'touch .deps' --test 'python3 -m pytest -q'
    """)
    writer(e2e)
    needs = '    assert (Path(__file__).parents[1] / ".deps").exists()\n'
    (e2e.home / "test_files.py").write_text(TEST_FILES + needs)
    result = e2e.run(
        "mngr tutorial sync tutorial.sh tests --type writer --setup 'touch .deps' --test 'python3 -m pytest -q'",
        comment="have it written, and run",
    )
    expect(result).to_succeed().to_contain("in sync, its tests pass")
    (agent,) = sent(e2e)
    expect(e2e.run(f"mngr pull --merge {agent['name']}", comment="so it can be taken")).to_succeed()
    expect(e2e.dir / "tests/test_files.py").to_equal(TEST_FILES + needs)


def test_what_comes_back_with_a_test_that_fails(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What comes back counts only when its tests pass, in the work dir of the agent, which needs what your own has.
        mngr tutorial sync tutorial.sh tests --type writer --setup 'touch .deps' --test 'python3 -m pytest -q'
    """)
    writer(e2e)
    (e2e.home / "test_files.py").write_text(TEST_FILES.replace("src/app.py", "src/shop.py"))
    result = e2e.run(
        "mngr tutorial sync tutorial.sh tests --type writer --setup 'touch .deps' --test 'python3 -m pytest -q'",
        comment="the writer was careless",
    )
    (agent,) = sent(e2e)
    expect(result).to_have_exit_code(1).to_contain("its tests fail (1): 1 failed", f"mngr connect {agent['name']}")
    expect(e2e.run(f"git show {agent['branch']}:tests/test_files.py", comment="it is there")).to_contain("src/shop.py")
    expect(e2e.run("ls tests", comment="and not here")).not_.to_contain("test_files.py")


def test_a_section_in_the_background(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One agent for a whole section, with your uncommitted tests, and do not wait for it: the same without --no-wait tells
        # later how it went, and sends nobody twice.
        mngr tutorial sync tutorial.sh tests --type writer --per section --dirty --no-wait --label run=nightly --json
        mngr tutorial sync tutorial.sh tests --type writer --per section --dirty
    """)
    more(e2e, "status")
    writer(e2e, f"until [ -e go ]; do sleep 0.1; done; {WRITER}")
    e2e.run("echo '# to be continued' >>tests/test_hello.py", comment="a test that is not committed yet")
    refused = e2e.run("mngr tutorial sync tutorial.sh tests --type writer", comment="which agents would not see")
    expect(refused).to_have_exit_code(1).to_contain("tests/test_hello.py is not committed", "--dirty")
    begun = e2e.run(
        "mngr tutorial sync tutorial.sh tests --type writer --per section --dirty --no-wait --label run=nightly --json",
        comment="so they get it too",
    )
    (agent,) = sent(e2e)
    ids = [block["id"] for block in e2e.run("mngr tutorial check tutorial.sh tests --json").json()["uncited"]]
    expect(len(ids)).to_equal(2)
    expect(begun).to_succeed().to_be_json(
        {
            "agents": [{"name": agent["name"], "branch": agent["branch"], "started": True, "blocks": ids}],
            "not_started": [],
        }
    )
    expect(agent["labels"]).to_be_json({"run": "nightly", ...: ...})
    name = agent["name"]
    expect(e2e.run(f"mngr exec {name} -- cat tests/test_hello.py")).to_contain("to be continued")
    e2e.run(f"mngr exec {name} -- touch go", comment="much later")
    later = e2e.run(
        "mngr tutorial sync tutorial.sh tests --type writer --per section --dirty", comment="how did it go?"
    )
    expect(later).to_succeed().to_match(f"^{name} +done +in sync +mngr/{name}$").to_contain("is not sent twice")
    expect(len(sent(e2e))).to_equal(1)


def test_a_blank_is_filled_when_you_like_the_proposal(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A comment without a command is a blank. An agent proposes what belongs there, and you decide. What you keep is run
        # once, and you see what came of it.
        mngr tutorial fill tutorial.sh --type writer
    """)
    writer(e2e)
    terminal = e2e.spawn("mngr tutorial fill tutorial.sh --type writer", comment="what does it propose?")
    terminal.wait_for_text("[k/t/e/r/s/q]?")
    expect(terminal).to_contain("tutorial.sh:13  THE SHOP", "git log --last").not_.to_contain("exit code")
    terminal.type("k\n").wait_for_text("exit code 128").wait_for_text("keep it anyway")
    expect(terminal).to_contain("unrecognized argument: --last")
    terminal.type("r\n").wait_for_text("why?").type("there is no such option\n")
    terminal.wait_for_text("git log -1 --format=%s").wait_for_text("(1 to go)").type("k\n")
    terminal.wait_for_text("exit code 0").wait_for_text("First commit")
    terminal.wait_for_text("1 block written, 1 rejected, 0 to decide")
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.dir / "tutorial.sh").to_equal(FILLED)


def test_what_is_not_decided_is_offered_again(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A comment without a command is a blank. An agent proposes what belongs there, and you decide. What you keep is run
        # once, and you see what came of it.
        mngr tutorial fill tutorial.sh --type writer
    """)
    writer(e2e)
    e2e.env["EDITOR"] = "sed -i s/--last/-1/"
    terminal = e2e.spawn("mngr tutorial fill tutorial.sh --type writer", comment="have a look")
    terminal.wait_for_text("[k/t/e/r/s/q]?").type("q\n").wait_for_text("2 to decide")
    expect(terminal.wait_for_exit()).to_equal(0)
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL)
    terminal = e2e.spawn("mngr tutorial fill tutorial.sh --type writer", comment="come back, and mend it")
    terminal.wait_for_text("[k/t/e/r/s/q]?").type("e\n").wait_for_text("exit code 0").wait_for_text("1 block written")
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL + "git log -1\n")
    expect(len(sent(e2e))).to_equal(1)


def test_decisions_in_an_editor(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Decide in your editor instead: the first call writes the file, the second carries it out. Nothing is run before that.
        mngr tutorial fill tutorial.sh --type writer --review-file todo
        "${EDITOR:-vi}" todo
        mngr tutorial fill tutorial.sh --review-file todo
    """)
    writer(e2e)
    editor = e2e.home / "editor"
    editor.write_text("#!/bin/sh\nsed -i '0,/ skip$/s// reject: no such option/; s/ skip$/ keep/' \"$1\"\n")
    editor.chmod(0o755)
    e2e.env["EDITOR"] = str(editor)
    asked = e2e.run("mngr tutorial fill tutorial.sh --type writer --review-file todo", comment="to be decided")
    expect(asked).to_succeed().to_contain("2 proposals to decide about")
    expect(e2e.dir / "todo").to_match("^[0-9a-f]+ skip\n    # What was done last").to_contain("not run yet")
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL)
    e2e.run('"${EDITOR:-vi}" todo', comment="in my editor: the first is no good, the second is")
    done = e2e.run("mngr tutorial fill tutorial.sh --review-file todo", comment="so be it")
    expect(done).to_succeed().to_contain("exit code 0", "First commit", "1 block written, 1 rejected, 0 to decide")
    expect(e2e.dir / "tutorial.sh").to_equal(FILLED)
    expect((e2e.dir / "todo").exists()).to_equal(False)


def test_what_fails_is_left_in_the_file_for_another_look(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Decide in your editor instead: the first call writes the file, the second carries it out. Nothing is run before that.
        mngr tutorial fill tutorial.sh --type writer --review-file todo
        "${EDITOR:-vi}" todo
        mngr tutorial fill tutorial.sh --review-file todo
    """)
    writer(e2e)
    e2e.run("mngr tutorial fill tutorial.sh --type writer --review-file todo", comment="to be decided")
    e2e.run("sed -i '0,/ skip$/s// keep/' todo", comment="the first looks well")
    tried = e2e.run("mngr tutorial fill tutorial.sh --review-file todo", comment="but fails")
    expect(tried).to_have_exit_code(1).to_contain("unrecognized argument: --last", "0 blocks written")
    expect(e2e.dir / "todo").to_contain("exit code 128", "unrecognized argument: --last")
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL)
    e2e.run("sed -i 's/--last/-1 --format=%s/; s/ skip$/ keep/' todo", comment="mended")
    expect(e2e.run("mngr tutorial fill tutorial.sh --review-file todo", comment="so be it")).to_succeed()
    expect(e2e.dir / "tutorial.sh").to_equal(FILLED)


def test_a_slip_in_the_editor_decides_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Decide in your editor instead: the first call writes the file, the second carries it out. Nothing is run before that.
        mngr tutorial fill tutorial.sh --type writer --review-file todo
        "${EDITOR:-vi}" todo
        mngr tutorial fill tutorial.sh --review-file todo
    """)
    writer(e2e)
    e2e.run("mngr tutorial fill tutorial.sh --type writer --review-file todo", comment="to be decided")
    e2e.run("sed -i '0,/ skip$/s// keep/; s/ skip$/ kep/' todo", comment="one is kept, and one mistyped")
    decided = (e2e.dir / "todo").read_text()
    result = e2e.run("mngr tutorial fill tutorial.sh --review-file todo", comment="it is told where")
    expect(result).to_have_exit_code(2).to_match(r"todo:\d+: .*kep")
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL)
    expect(e2e.dir / "todo").to_equal(decided)


def test_whatever_succeeds_is_kept(e2e: E2eSession, agents: ModelServer) -> None:
    """By Claude Code, which is told where the manual is."""
    e2e.write_tutorial_block("""
        # Without any question, for the brave: proposals are run as you, unread, and the first that succeeds is kept. The manual
        # that the agent goes by is in man/, unless you say otherwise.
        mngr tutorial fill tutorial.sh --type writer --yes --man docs/man --setup 'touch .deps' --timeout 10m --json
    """)
    propose = f"cp {e2e.home}/proposals.json . && ls .deps docs/man"
    agents.script = Script([{"when": "line 13, section THE SHOP", "run": propose, "times": 1}])
    e2e.run("mngr config set agent_types.writer.parent claude", comment="a writer is a Claude Code")
    e2e.run("mngr config set agent_types.writer.args -- --dangerously-skip-permissions")
    result = e2e.run(
        "mngr tutorial fill tutorial.sh --type writer --yes --man docs/man --setup 'touch .deps' --timeout 10m --json",
        comment="ask nothing",
    )
    trial = {"code": 0, "output": "First commit\n", ...: ...}
    kept = {"line": 13, "text": "# What was done last?\ngit log -1 --format=%s", "trial": trial}
    expect(result).to_succeed().to_be_json({"file": "tutorial.sh", "written": [kept], "rejected": 0, "left": 0})
    expect(e2e.dir / "tutorial.sh").to_equal(FILLED)
    (asked,) = [text for text in agents.texts() if "lack the commands" in text]
    expect(asked).to_contain("the pages in `docs/man`", "# What was done last?")
    (agent,) = sent(e2e)
    expect(e2e.run(f"mngr transcript {agent['name']}", comment="it found all it needs")).to_contain(".deps", "shop.1")


def test_an_agent_that_proposes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Without any question, for the brave: proposals are run as you, unread, and the first that succeeds is kept. The manual
        # that the agent goes by is in man/, unless you say otherwise.
        mngr tutorial fill tutorial.sh --type writer --yes --man docs/man --setup 'touch .deps' --timeout 10m --json
    """)
    writer(e2e, "true")
    result = e2e.run(
        "mngr tutorial fill tutorial.sh --type writer --yes --man docs/man --setup 'touch .deps' --timeout 10m --json",
        comment="it had no idea",
    )
    expect(result).to_have_exit_code(1).to_contain("no proposals.json", "mngr destroy fill-")
    expect(e2e.dir / "tutorial.sh").to_equal(TUTORIAL)


def test_they_get_what_other_agents_get(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # These agents need what your other agents need, so both verbs have more of the options of create.
        export REGION=eu
        echo .env >.gitignore && echo TOKEN=secret >.env && echo LEVEL=debug >agent.env
        mngr tutorial sync tutorial.sh tests --type writer --copy .env -e CI=1 --env-file agent.env --pass-env REGION
        mngr tutorial fill tutorial.sh --type writer -y --copy .env -e CI=1 --env-file agent.env --pass-env REGION
    """)
    writer(e2e, f'echo "$CI $LEVEL $REGION $(cat .env)" >seen\n{WRITER}')
    result = e2e.run(
        """
        export REGION=eu
        echo .env >.gitignore && echo TOKEN=secret >.env && echo LEVEL=debug >agent.env
        mngr tutorial sync tutorial.sh tests --type writer --copy .env -e CI=1 --env-file agent.env --pass-env REGION
        mngr tutorial fill tutorial.sh --type writer -y --copy .env -e CI=1 --env-file agent.env --pass-env REGION
        """,
        comment="everything they need",
    )
    expect(result).to_succeed().to_contain("in sync", "1 block written")
    expect(e2e.dir / "tutorial.sh").to_equal(FILLED)
    expect(sorted(each["labels"]["tutorial"] for each in sent(e2e))).to_equal(["fill", "sync"])
    for agent in sent(e2e):
        seen = e2e.run(f"mngr exec {agent['name']} -- cat seen", comment="it had all of it")
        expect(seen.stdout).to_equal("1 debug eu TOKEN=secret\n")


def test_what_confuses_agents(e2e: E2eSession, agents: ModelServer) -> None:
    """Two of them: one tries an option that there is not and asks twice for help, the other makes a verb up."""
    e2e.write_tutorial_block("""
        # Which parts of an interface confuse agents most? Wrong options, repeated questions for help and rejected proposals are
        # counted, of mngr or of the program that you write, with examples.
        mngr tutorial confusing
        mngr tutorial confusing --program git --since 7d --json
    """)
    e2e.write_tutorial_block("""
        # What did these make of it? Filters choose whose conversations are read.
        mngr tutorial confusing 'fix*' --type claude --host local --state waiting --label batch=1
    """)
    agents.script = Script(
        [
            {"when": "^Who works", "run": "mngr list --busy", "times": 1},
            {"when": "has no option --busy", "run": "mngr list --help", "times": 1},
            {"when": "--watch", "run": "mngr list --help; mngr list", "times": 1},
            {"when": "^Undo it", "run": "mngr undo", "times": 1},
        ]
    )
    free = "--headless --no-connect"
    args = "-- --dangerously-skip-permissions"
    e2e.run(f"mngr create fix claude {free} -l batch=1 -m 'Who works?' {args}", comment="one who has to find out")
    e2e.run(
        f"mngr create other claude {free} -m 'Undo it.' {args} && mngr wait fix other", comment="and one who guesses"
    )
    told = e2e.run("mngr tutorial confusing", comment="what did they get wrong?")
    expect(told.stdout).to_match(r"^mngr list: 3 \(1 unknown-flag, 1 help\)$").to_contain("mngr list --busy")
    expect(told.stdout).to_match(r"^mngr undo: 2 \(1 usage-error\)$").to_contain("(other, ")
    chosen = e2e.run(
        "mngr tutorial confusing 'fix*' --type claude --host local --state waiting --label batch=1",
        comment="and that one?",
    )
    expect(chosen.stdout).to_match("^mngr list: 3 ").not_.to_contain("undo")


def test_rejected_proposals_of_any_program_count(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Which parts of an interface confuse agents most? Wrong options, repeated questions for help and rejected proposals are
        # counted, of mngr or of the program that you write, with examples.
        mngr tutorial confusing
        mngr tutorial confusing --program git --since 7d --json
    """)
    writer(e2e)
    e2e.run("mngr tutorial fill tutorial.sh --type writer --review-file todo", comment="proposals about git")
    e2e.run("sed -i '0,/ skip$/s// keep/; s/ skip$/ reject: no pager/' todo", comment="one of them may do")
    e2e.run("mngr tutorial fill tutorial.sh --review-file todo", comment="it does not")
    e2e.run("sed -i 's/ skip$/ reject: made up/' todo && mngr tutorial fill tutorial.sh --review-file todo")
    ranked = e2e.run("mngr tutorial confusing --program git --since 7d --json", comment="what is wrong with git?")
    expect(ranked).to_be_json(
        {
            "program": "git",
            "subcommands": [
                {"subcommand": "log", "weight": 8, "counts": {"rejected": 2, "unknown-flag": 1}, "examples": ...}
            ],
        }
    )
    examples = [(each["words"], each["detail"]) for each in ranked.json()["subcommands"][0]["examples"]]
    expect(examples).to_contain(("git log -1 --format=%s", "no pager"))
    expect(examples).to_contain(("git log --last", "fatal: unrecognized argument: --last"))
    expect(e2e.run("mngr tutorial confusing", comment="and with mngr?").stdout).to_equal(
        "nothing about mngr has confused anybody\n"
    )


def test_nobody_of_that_kind(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What did these make of it? Filters choose whose conversations are read.
        mngr tutorial confusing 'fix*' --type claude --host local --state waiting --label batch=1
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="somebody else")
    command = "mngr tutorial confusing 'fix*' --type claude --host local --state waiting --label batch=1"
    expect(e2e.run(command, comment="nobody is chosen")).to_have_exit_code(3)
