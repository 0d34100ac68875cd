"""MANY AT ONCE of tutorial.sh."""

from __future__ import annotations

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession, expect

# Three that wait for an answer, as the first block of the section makes them.
THREE = """mngr create try --count 3 --label batch=1 --label task=speed -- 'read answer; echo "$answer" >answer.txt'"""


def test_three_attempts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Three attempts at the same thing, each on a branch of its own, made side by side. Labels keep the group together.
        mngr create try --count 3 --label batch=1 --label task=speed -- 'read answer; echo "$answer" >answer.txt'
        mngr list --label batch=1
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="somebody else")
    expect(e2e.run(THREE, comment="three at once").stdout).to_equal("try-1\ntry-2\ntry-3\n")
    listed = e2e.run("mngr list --label batch=1", comment="the group")
    expect(listed).to_contain("mngr/try-1", "mngr/try-2", "mngr/try-3").not_.to_contain("other")
    made = e2e.run("mngr list 'try-*' --json", comment="each in a place of its own").json()
    expect({each["work_dir"] for each in made}).not_.to_contain(str(e2e.dir))
    expect(len({each["work_dir"] for each in made})).to_equal(3)
    expect([each["labels"] for each in made]).to_equal([{"batch": "1", "task": "speed"}] * 3)


def test_all_three_or_none(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Three attempts at the same thing, each on a branch of its own, made side by side. Labels keep the group together.
        mngr create try --count 3 --label batch=1 --label task=speed -- 'read answer; echo "$answer" >answer.txt'
        mngr list --label batch=1
    """)
    e2e.run("mngr create try-2 --no-connect -- sleep 1000", comment="one of the names is taken")
    expect(e2e.run(THREE, comment="three at once")).to_fail().to_contain("try-2")
    expect(e2e.run("mngr list --names", comment="nothing was made").stdout).to_equal("try-2\n")
    expect(e2e.run("git branch --list 'mngr/*' --format='%(refname:short)'").stdout).to_equal("mngr/try-2\n")


def test_the_same_command_in_all_of_them(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The same command in all of them, side by side; each line is prefixed with the agent's name.
        mngr exec 'try-*' --timeout 5m -- git status --short
        mngr exec --label batch=1 --state running -- git log --oneline -1
        mngr exec --all --type command --host local --json -- pwd
    """)
    e2e.run(THREE, comment="a group")
    e2e.run("mngr message try-2 -m 42 && mngr wait try-2", comment="one of which is done")
    changed = e2e.run("mngr exec 'try-*' --timeout 5m -- git status --short", comment="who has changed something?")
    expect(changed).to_succeed()
    expect(changed.stdout).to_equal("try-2 | ?? answer.txt\n")
    commits = e2e.run("mngr exec --label batch=1 --state running -- git log --oneline -1", comment="their last commits")
    expect(sorted(commits.stdout.splitlines())).to_equal([f"try-{n} | {head(e2e)} First commit" for n in (1, 3)])
    ran = e2e.run("mngr exec --all --type command --host local --json -- pwd", comment="for a script").json()
    listed = e2e.run("mngr list --json").json()
    expect({each["name"]: each["stdout"].strip() for each in ran}).to_equal(
        {each["name"]: each["work_dir"] for each in listed}
    )


def test_the_same_command_fails_in_some_of_them(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The same command in all of them, side by side; each line is prefixed with the agent's name.
        mngr exec 'try-*' --timeout 5m -- git status --short
        mngr exec --label batch=1 --state running -- git log --oneline -1
        mngr exec --all --type command --host local --json -- pwd
    """)
    e2e.run(THREE, comment="a group")
    e2e.run("mngr exec try-3 -- rm README.md", comment="one of which has lost something")
    result = e2e.run("mngr exec 'try-*' --timeout 5m -- test -f README.md", comment="is it still there?")
    expect(result).to_have_exit_code(6).to_contain("1 of 3 failed: try-3 exit 1")


def test_the_first_answer(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Ask all of them the same question, and go on when the first one has an answer.
        mngr message 'try-*' -m 42
        mngr wait 'try-*' --any --for done --timeout 1m
    """)
    e2e.run(THREE, comment="a group")
    expect(e2e.run("mngr message 'try-*' -m 42", comment="the question")).to_succeed()
    first = e2e.run("mngr wait 'try-*' --any --for done --timeout 1m", comment="until one of them is done")
    expect(first).to_succeed().to_match("^try-[123] done$")
    answers = e2e.run(
        "mngr wait 'try-*' --for done && mngr exec 'try-*' -- cat answer.txt", comment="all have heard it"
    )
    expect(answers).to_contain("try-1 | 42", "try-2 | 42", "try-3 | 42")


def test_the_first_answer_is_enough(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Ask all of them the same question, and go on when the first one has an answer.
        mngr message 'try-*' -m 42
        mngr wait 'try-*' --any --for done --timeout 1m
    """)
    e2e.run(THREE, comment="a group")
    e2e.run("mngr message try-2 -m 42", comment="only one of them hears the question")
    first = e2e.run("mngr wait 'try-*' --any --for done --timeout 1m", comment="until one of them is done")
    expect(first.stdout).to_equal("try-2 done\n")
    expect(e2e.run("mngr list --names --state running", comment="the others go on").stdout).to_equal("try-1\ntry-3\n")


def test_names_go_through_pipes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Names go through pipes: - reads them from standard input, so verbs compose.
        mngr list --names --label batch=1 | mngr exec - -- git rev-parse HEAD
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="somebody else")
    e2e.run(THREE, comment="and a group")
    commits = e2e.run("mngr list --names --label batch=1 | mngr exec - -- git rev-parse HEAD", comment="compose").stdout
    own = e2e.run("git rev-parse HEAD").stdout.strip()
    expect(sorted(commits.splitlines())).to_equal([f"try-{n} | {own}" for n in (1, 2, 3)])


def test_no_names_are_nobody(e2e: E2eSession) -> None:
    """An empty pipe never means all agents."""
    e2e.write_tutorial_block("""
        # Names go through pipes: - reads them from standard input, so verbs compose.
        mngr list --names --label batch=1 | mngr exec - -- git rev-parse HEAD
    """)
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="somebody without that label")
    result = e2e.run("mngr list --names --label batch=1 | mngr exec - -- git rev-parse HEAD", comment="compose")
    expect(result.stdout).to_be_empty()
    expect(result.stderr).to_contain("no names")


def test_a_batch_of_tasks(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A batch of tasks is a loop over files. The agents work side by side; the loop only starts them.
        mkdir -p tasks && echo 'Explain README.md' >tasks/readme.md && echo 'Explain src/app.py' >tasks/app.md
        for task in tasks/*.md; do
          mngr create "$(basename "$task" .md)" claude --headless --message-file "$task" -l batch=tasks
        done
        mngr wait --label batch=tasks
    """)
    e2e.run(
        "mkdir -p tasks && echo 'Explain README.md' >tasks/readme.md && echo 'Explain src/app.py' >tasks/app.md",
        comment="the tasks",
    )
    loop = e2e.run(
        """for task in tasks/*.md; do
  mngr create "$(basename "$task" .md)" claude --headless --message-file "$task" -l batch=tasks
done""",
        comment="an agent for each",
    )
    expect(loop).to_succeed().to_contain("app", "readme")
    waited = e2e.run("mngr wait --label batch=tasks", comment="until they are through")
    expect(waited).to_succeed().to_contain("app waiting", "readme waiting")
    asked = "\n".join(agents.texts())
    expect(asked).to_contain("Explain README.md", "Explain src/app.py")
    expect(e2e.run("mngr transcript app", comment="what has been said")).to_contain(
        "Explain src/app.py"
    ).not_.to_contain("Explain README.md")


def head(e2e: E2eSession) -> str:
    return e2e.run("git rev-parse --short HEAD").stdout.strip()
