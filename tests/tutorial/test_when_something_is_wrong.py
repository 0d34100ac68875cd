"""WHEN SOMETHING IS WRONG of tutorial.sh."""

from __future__ import annotations

from mngr.dev.model_server import ModelServer
from mngr.dev.script import Script
from mngr.e2e import E2eSession, expect


def test_doctor_finds_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The first thing to do when something is strange. It changes nothing, and says what to do.
        mngr doctor
        mngr doctor --json
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent in good health")
    before = e2e.run("mngr list --json").json()
    expect(e2e.run("mngr doctor", comment="is all well?")).to_succeed().to_contain("1 agent")
    findings = e2e.run("mngr doctor --json", comment="and for a script").json()
    expect({finding["level"] for finding in findings}).to_equal({"ok"})
    expect(e2e.run("mngr list --json", comment="nothing has changed").json()[0]["id"]).to_equal(before[0]["id"])


def test_doctor_says_what_to_do(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The first thing to do when something is strange. It changes nothing, and says what to do.
        mngr doctor
        mngr doctor --json
    """)
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="an agent")
    work_dir = e2e.run("mngr list --json").json()[0]["work_dir"]
    e2e.run(f"mv {work_dir} elsewhere", comment="somebody tidies up too well")
    told = e2e.run("mngr doctor", comment="what is the matter?")
    expect(told).to_contain("the work dir of build is gone", "mngr destroy build")
    findings = e2e.run("mngr doctor --json", comment="and for a script").json()
    expect([finding["do"] for finding in findings if finding["level"] != "ok"]).to_equal(["mngr destroy build"])
    expect((e2e.dir / "elsewhere" / "README.md").exists()).to_equal(True)


def test_why_it_failed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # An agent has failed: why, with which last words, and since when?
        mngr create broken -- 'echo "no such table: users"; exit 1'
        mngr wait broken --for failed
        mngr explain broken
        mngr capture broken --full
        mngr events broken
    """)
    e2e.run("""mngr create broken -- 'echo "no such table: users"; exit 1'""", comment="a program that fails")
    expect(e2e.run("mngr wait broken --for failed", comment="wait for that")).to_succeed()
    expect(e2e.run("mngr explain broken", comment="why?")).to_contain("broken is failed", "1")
    expect(e2e.run("mngr capture broken --full", comment="with which last words?")).to_contain("no such table: users")
    expect(e2e.run("mngr events broken", comment="since when?")).to_match(r"\d\d:\d\d  broken  exited  status=1")


def test_what_it_waits_for(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A coding agent waits, and it is not for you to guess for what: the reason is in the list, the question on its screen.
        mngr list --state waiting
        mngr capture --state waiting
        mngr explain fix
    """)
    agents.script = Script([{"when": "Safari", "run": "rm -r src"}])
    e2e.run(
        "mngr create fix claude --no-connect -m 'Mend it for Safari' && mngr wait fix", comment="an agent that asks"
    )
    e2e.run("mngr create build --no-connect -- sleep 1000", comment="and one that does not")
    listed = e2e.run("mngr list --state waiting", comment="who wants me?")
    expect(listed).to_contain("fix", "permission: Bash").not_.to_contain("build")
    expect(e2e.run("mngr capture --state waiting", comment="what is the question?")).to_eventually_contain(
        "rm -r src", "Do you want to proceed?"
    )
    expect(e2e.run("mngr explain fix", comment="how is that known?")).to_contain("fix is waiting (permission: Bash)")
    expect(e2e.run("mngr exec fix -- ls src", comment="and nothing was done meanwhile").stdout).to_equal("app.py\n")


def test_mended_and_started_again(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # You have mended the cause: start it again, in the same place, with the same program.
        mngr exec broken -- 'echo mended >state.txt'
        mngr start broken
    """)
    e2e.run("mngr create broken --no-connect -- 'cat state.txt || exit 1; sleep 1000'", comment="something is missing")
    e2e.run("mngr wait broken --for failed")
    before = e2e.run("mngr list --json").json()[0]
    e2e.run("mngr exec broken -- 'echo mended >state.txt'", comment="here it is")
    expect(e2e.run("mngr start broken", comment="once more")).to_succeed()
    expect(e2e.run("mngr capture broken")).to_eventually_contain("mended")
    (after,) = e2e.run("mngr list --json").json()
    expect(after["state"]).to_equal("running")
    expect({key: after[key] for key in ("id", "work_dir", "command")}).to_equal(
        {key: before[key] for key in ("id", "work_dir", "command")}
    )


def test_not_mended_and_started_again(e2e: E2eSession) -> None:
    """It fails again, and says so."""
    e2e.write_tutorial_block("""
        # You have mended the cause: start it again, in the same place, with the same program.
        mngr exec broken -- 'echo mended >state.txt'
        mngr start broken
    """)
    e2e.run("mngr create broken --no-connect -- 'cat state.txt || exit 1; sleep 1000'", comment="something is missing")
    e2e.run("mngr wait broken --for failed")
    e2e.run("mngr start broken", comment="start it without a thought")
    expect(e2e.run("mngr wait broken --for failed", comment="it fails as before")).to_succeed()
    expect(e2e.run("mngr events broken").stdout.count("exited  status=1")).to_equal(2)
