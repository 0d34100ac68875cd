"""YOUR OWN TYPES of tutorial.sh."""

from __future__ import annotations

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession, expect


def test_a_program_with_words_of_its_own_is_a_type(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A program that you start again and again with the same words becomes a type: here, whatever runs, runs gently.
        mngr config set agent_types.gentle.parent command
        mngr config set agent_types.gentle.args nice,-n,19
        mngr create build gentle -- python3 -m compileall src
        mngr list --type gentle
    """)
    e2e.run("mngr config set agent_types.gentle.parent command", comment="a type that is a command")
    e2e.run("mngr config set agent_types.gentle.args nice,-n,19", comment="with these words in front")
    expect(e2e.run("mngr create build gentle -- python3 -m compileall src", comment="use it")).to_succeed()
    expect(e2e.run("mngr wait build --for done")).to_succeed()
    expect(e2e.run("mngr exec build -- ls src/__pycache__", comment="it has done its work")).to_contain("app.")
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="somebody of another type")
    listed = e2e.run("mngr list --type gentle", comment="who is gentle?")
    expect(listed).to_contain("build", "gentle").not_.to_contain("other")
    e2e.run("mngr create ask gentle --no-connect -- nice && mngr wait ask", comment="how gentle is it, really?")
    expect(e2e.run("mngr capture ask")).to_contain("19")


def test_a_type_without_a_parent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A program that you start again and again with the same words becomes a type: here, whatever runs, runs gently.
        mngr config set agent_types.gentle.parent command
        mngr config set agent_types.gentle.args nice,-n,19
        mngr create build gentle -- python3 -m compileall src
        mngr list --type gentle
    """)
    e2e.run("mngr config set agent_types.gentle.parent comand", comment="a slip of the pen")
    result = e2e.run("mngr create build gentle -- python3 -m compileall src", comment="is noticed")
    expect(result).to_have_exit_code(2).to_contain("comand")
    expect(e2e.run("mngr list --json", comment="and nothing was made")).to_be_json([])


def test_a_variant_of_claude(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A variant of Claude Code: another model, and a variable for all of its agents.
        mngr config set agent_types.thrifty.parent claude
        mngr config set agent_types.thrifty.model claude-haiku-4-5
        mngr config set agent_types.thrifty.env.TEAM shop
        mngr create fix thrifty -m 'The login fails on Safari'
    """)
    e2e.run("mngr config set agent_types.thrifty.parent claude", comment="like Claude Code")
    e2e.run("mngr config set agent_types.thrifty.model claude-haiku-4-5", comment="with a cheaper model")
    e2e.run("mngr config set agent_types.thrifty.env.TEAM shop", comment="and a variable")
    expect(e2e.run("mngr create fix thrifty -m 'The login fails on Safari'", comment="use it")).to_succeed()
    e2e.run("mngr wait fix")
    expect(agents.texts()).to_equal(["The login fails on Safari"])
    expect({entry["model"] for entry in agents.requests() if entry["tools"]}).to_equal({"claude-haiku-4-5"})
    expect(e2e.run("mngr exec fix -- 'echo $TEAM'").stdout).to_equal("shop\n")
    expect(e2e.run("mngr list --json")).to_be_json([{"name": "fix", "type": "thrifty", "state": "waiting", ...: ...}])


REVIEWER = """\
cat >>.mngr.toml <<'EOF'
[agent_types.reviewer]
parent = "claude"
args = ["--append-system-prompt", "You review. You never change a file."]
[templates.review]
type = "reviewer"
message = "Review the last commit."
EOF"""


def test_a_type_and_a_template_of_the_project(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # Types and templates may live in the project, so that the whole team has them.
        cat >>.mngr.toml <<'EOF'
        [agent_types.reviewer]
        parent = "claude"
        args = ["--append-system-prompt", "You review. You never change a file."]
        [templates.review]
        type = "reviewer"
        message = "Review the last commit."
        EOF
        mngr create look --template review
    """)
    e2e.run(REVIEWER, comment="write it down")
    e2e.run("git add .mngr.toml && git commit -qm 'A reviewer' && git clone -q . ../colleague", comment="and share it")
    created = e2e.run("mngr create look --template review", comment="a colleague uses it", cwd="../colleague")
    expect(created).to_succeed()
    e2e.run("mngr wait look")
    expect(agents.texts()).to_equal(["Review the last commit."])
    (look,) = e2e.run("mngr list look --json").json()
    expect(look["type"]).to_equal("reviewer")
    expect(look["command"]).to_contain("--append-system-prompt", "You review. You never change a file.")
