"""TRYING WITHOUT A MODEL of tutorial.sh."""

from __future__ import annotations

import re

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession, expect
from mngr.e2e.terminal import Terminal

RULES = r"""
cat >rules.json <<'EOF'
[{"when": "fix the (\\w+)", "say": "The \\1 is fixed."}]
EOF
""".strip()
ADDRESS = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


def address(terminal: Terminal) -> str:
    """Of the server that runs there."""
    found = ADDRESS.search(terminal.wait_for_text(ADDRESS).screen)
    assert found
    return found[1]


def test_a_server_that_answers_by_a_script(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Real agent programs, without a network, a key or a bill: this server answers by a script. Ctrl-C ends it. It listens
        # on a free port, unless you say which.
        mngr dev model-server --port "${PORT:-0}"
    """)
    terminal = e2e.spawn('mngr dev model-server --port "${PORT:-0}"', comment="on a free port", name="server")
    url = address(terminal)
    answer = e2e.run("claude -p 'SAY: here I am'", comment="an agent program asks it", env={"ANTHROPIC_BASE_URL": url})
    expect(answer.stdout).to_equal("here I am\n")
    expect(agents.requests()).to_be_empty()
    second = e2e.run(
        'mngr dev model-server --port "${PORT:-0}"',
        comment="a port that is taken cannot be had",
        env={"PORT": url.rpartition(":")[2]},
    )
    expect(second).to_have_exit_code(1).to_contain("without --port, a free one is taken")
    terminal.press("C-c")
    expect(terminal.wait_for_exit()).to_equal(130)


def test_the_server_as_an_agent(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # It is a program, so it can be an agent; where it listens, its screen tells. Claude Code takes it for its model, and
        # does what the message says.
        mngr create model command --mode none -- mngr dev model-server --log requests.jsonl
        until url=$(mngr capture model | grep -o 'http://[0-9.:]*'); do sleep 0.1; done
        export ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=dummy
        mngr create fix claude -m 'SAY: hello'
        mngr wait fix
        mngr transcript fix --tail 1
    """)
    e2e.run(
        "mngr create model command --mode none -- mngr dev model-server --log requests.jsonl",
        comment="an agent that is a model",
    )
    told = e2e.run(
        "until url=$(mngr capture model | grep -o 'http://[0-9.:]*'); do sleep 0.1; done\n"
        "export ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=dummy\n"
        "mngr create fix claude -m 'SAY: hello'\n"
        "mngr wait fix\n"
        "mngr transcript fix --tail 1",
        comment="and one that takes it for its model",
    )
    expect(told).to_succeed().to_match("assistant\n +hello$")
    expect(e2e.dir / "requests.jsonl").to_contain('"new_user_texts": ["SAY: hello"]')
    expect(agents.requests()).to_be_empty()


def test_rules_of_your_own(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block(r"""
        # With rules of your own the answers are always the same, which is what a test of your own tools needs.
        cat >rules.json <<'EOF'
        [{"when": "fix the (\\w+)", "say": "The \\1 is fixed."}]
        EOF
        mngr dev model-server --script rules.json
    """)
    e2e.run(RULES, comment="what it is to say, and when")
    terminal = e2e.spawn("mngr dev model-server --script rules.json", comment="a server with rules", name="server")
    answer = e2e.run(
        "claude -p 'Please fix the login'", comment="a tool asks it", env={"ANTHROPIC_BASE_URL": address(terminal)}
    )
    expect(answer.stdout).to_equal("The login is fixed.\n")
    expect(agents.requests()).to_be_empty()


def test_a_rule_that_is_wrong(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
        # With rules of your own the answers are always the same, which is what a test of your own tools needs.
        cat >rules.json <<'EOF'
        [{"when": "fix the (\\w+)", "say": "The \\1 is fixed."}]
        EOF
        mngr dev model-server --script rules.json
    """)
    e2e.run(RULES.replace("say", "sya"), comment="a slip of the pen")
    result = e2e.run("mngr dev model-server --script rules.json", comment="is found before anybody asks")
    expect(result).to_have_exit_code(2).to_contain("rules.json", "sya")
