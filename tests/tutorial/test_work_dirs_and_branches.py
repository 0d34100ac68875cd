"""WORK DIRS AND BRANCHES of tutorial.sh: where an agent works, and from which commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mngr.e2e import E2eSession, expect


def listed(e2e: E2eSession, name: str) -> dict[str, Any]:
    """What mngr knows of the agent."""
    agents: list[dict[str, Any]] = e2e.run(f"mngr list {name} --json").json()
    return agents[0]


def branches(e2e: E2eSession) -> list[str]:
    return e2e.run("git for-each-ref --format='%(refname:short)' refs/heads").stdout.split()


def test_a_worktree_on_a_branch_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The default is a git worktree on a new branch mngr/NAME: cheap, and the branch is at once in your repository.
        mngr create fix --mode worktree -- sleep 1000
        git worktree list
    """)
    expect(e2e.run("mngr create fix --mode worktree -- sleep 1000", comment="an agent")).to_succeed()
    worktrees = e2e.run("git worktree list", comment="git knows its work dir and its branch")
    expect(worktrees).to_contain(listed(e2e, "fix")["work_dir"], "[mngr/fix]", "[main]")
    e2e.run("mngr exec fix -- git commit -q --allow-empty -m 'Mend the login'", comment="the agent commits")
    expect(e2e.run("git log -1 --format=%s mngr/fix", comment="it is here at once")).to_contain("Mend the login")
    expect(e2e.run("git log -1 --format=%s", comment="but not in your way")).to_contain("First commit")


def test_that_is_the_default(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The default is a git worktree on a new branch mngr/NAME: cheap, and the branch is at once in your repository.
        mngr create fix --mode worktree -- sleep 1000
        git worktree list
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="nothing said")
    expect(e2e.run("git worktree list", comment="is a worktree")).to_contain("[mngr/fix]")


def test_a_clone_is_a_repository_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A clone is a repository of its own, for an agent that should not touch yours. Pull brings its commits.
        mngr create fix --mode clone -- git commit --allow-empty -qm 'In my clone'
        mngr wait fix --for done
        mngr pull fix
    """)
    create = "mngr create fix --mode clone -- git commit --allow-empty -qm 'In my clone'"
    expect(e2e.run(create, comment="an agent that commits")).to_succeed()
    expect(e2e.run("mngr wait fix --for done")).to_succeed()
    expect(branches(e2e)).to_equal(["main"])
    assert (Path(listed(e2e, "fix")["work_dir"]) / ".git").is_dir(), "no repository of its own"
    expect(e2e.run("mngr pull fix", comment="have it here")).to_succeed()
    expect(branches(e2e)).to_equal(["main", "mngr/fix"])
    expect(e2e.run("git log -1 --format=%s mngr/fix")).to_contain("In my clone")


def test_right_here(e2e: E2eSession) -> None:
    """And when it is destroyed, your files stay."""
    e2e.write_tutorial_block("""
        # Sometimes the agent is to work right here, on your own files: no work dir and no branch are made.
        mngr create docs --mode none -- sleep 1000
    """)
    expect(e2e.run("mngr create docs --mode none -- sleep 1000", comment="an agent right here")).to_succeed()
    expect(listed(e2e, "docs")["work_dir"]).to_equal(str(e2e.dir))
    expect(branches(e2e)).to_equal(["main"])
    e2e.run("mngr exec docs -- 'echo written >docs.txt'", comment="what it writes")
    expect(e2e.run("cat docs.txt", comment="is yours").stdout).to_equal("written\n")
    expect(e2e.run("mngr destroy --force docs", comment="it can go")).to_succeed()
    expect(e2e.run("ls", comment="and your files stay")).to_contain("README.md", "docs.txt", "src")


def test_a_directory_is_copied(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Outside of git, a directory is copied.
        mkdir -p ../notes && echo milk >../notes/list.txt
        mngr create notes --from ../notes --mode copy -- 'cat list.txt; sleep 1000'
    """)
    e2e.run("mkdir -p ../notes && echo milk >../notes/list.txt", comment="a directory that git does not know")
    create = "mngr create notes --from ../notes --mode copy -- 'cat list.txt; sleep 1000'"
    expect(e2e.run(create, comment="an agent with a copy of it")).to_succeed()
    expect(e2e.run("mngr capture notes", comment="it reads the list")).to_eventually_contain("milk")
    e2e.run("mngr exec notes -- 'echo bread >>list.txt'", comment="it writes into the list")
    expect(e2e.work / "notes" / "list.txt").to_equal("milk\n")


def test_outside_of_git_that_is_the_default(e2e: E2eSession) -> None:
    """A worktree is not to be had there: that is an error, and nothing is made."""
    e2e.write_tutorial_block("""
        # Outside of git, a directory is copied.
        mkdir -p ../notes && echo milk >../notes/list.txt
        mngr create notes --from ../notes --mode copy -- 'cat list.txt; sleep 1000'
    """)
    e2e.run("mkdir -p ../notes && echo milk >../notes/list.txt", comment="a directory that git does not know")
    worktree = e2e.run("mngr create notes --from ../notes --mode worktree --no-connect -- sleep 1000")
    expect(worktree).to_fail().to_contain("git")
    expect(e2e.run("mngr list --names", comment="nothing was made").stdout).to_be_empty()
    e2e.run("mngr create notes --from ../notes --no-connect -- sleep 1000", comment="nothing said")
    expect(listed(e2e, "notes")["mode"]).to_equal("copy")
    expect(e2e.run("mngr exec notes -- cat list.txt").stdout).to_equal("milk\n")


def test_another_commit_and_a_branch_with_a_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Start from another commit than yours, and call the branch as your team does.
        git tag v1 && git commit -q --allow-empty -m 'After the release'
        mngr create hotfix --base v1 --branch hotfix/login -- sleep 1000
        git log --oneline -1 hotfix/login
    """)
    e2e.run("git tag v1 && git commit -q --allow-empty -m 'After the release'", comment="a release, and more")
    create = "mngr create hotfix --base v1 --branch hotfix/login -- sleep 1000"
    expect(e2e.run(create, comment="an agent for the release")).to_succeed()
    log = e2e.run("git log --oneline -1 hotfix/login", comment="it starts there")
    expect(log).to_contain("First commit").not_.to_contain("After the release")
    expect(branches(e2e)).to_equal(["hotfix/login", "main"])


def test_a_commit_that_there_is_not(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Start from another commit than yours, and call the branch as your team does.
        git tag v1 && git commit -q --allow-empty -m 'After the release'
        mngr create hotfix --base v1 --branch hotfix/login -- sleep 1000
        git log --oneline -1 hotfix/login
    """)
    create = e2e.run("mngr create hotfix --base v1 --branch hotfix/login -- sleep 1000", comment="without the tag")
    expect(create).to_fail().to_contain("v1")
    expect(branches(e2e)).to_equal(["main"])
    expect(e2e.run("mngr list --names").stdout).to_be_empty()


def test_a_branch_is_gone_on_with(e2e: E2eSession) -> None:
    """From where it is. It was yours before, and stays when the agent goes."""
    e2e.write_tutorial_block("""
        # A branch that exists already is gone on with, from where it is.
        git branch wip
        mngr create go-on --branch wip -- sleep 1000
    """)
    e2e.run("git branch wip", comment="something begun")
    e2e.run("git commit -q --allow-empty -m 'On main'", comment="main goes on")
    expect(e2e.run("mngr create go-on --branch wip -- sleep 1000", comment="and so does this")).to_succeed()
    e2e.run("mngr exec go-on -- git commit -q --allow-empty -m 'Go on'", comment="the agent commits")
    log = e2e.run("git log --format=%s wip", comment="to your branch")
    expect(log.stdout).to_equal("Go on\nFirst commit\n")
    expect(e2e.run("mngr destroy --force go-on", comment="the agent goes")).to_succeed()
    expect(e2e.run("git log -1 --format=%s wip", comment="the branch stays").stdout).to_equal("Go on\n")


def test_two_agents_cannot_have_one_branch(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A branch that exists already is gone on with, from where it is.
        git branch wip
        mngr create go-on --branch wip -- sleep 1000
    """)
    e2e.run("git branch wip && mngr create first --branch wip --no-connect -- sleep 1000", comment="somebody has it")
    second = e2e.run("mngr create go-on --branch wip -- sleep 1000", comment="a second one is refused")
    expect(second).to_fail().to_contain("wip")
    expect(e2e.run("mngr list --names").stdout).to_equal("first\n")
    expect(branches(e2e)).to_equal(["main", "wip"])


def test_uncommitted_changes_are_carried(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Uncommitted changes stay behind, with a warning, unless you want them carried.
        echo '# half done' >>README.md
        mngr create half --dirty -- sleep 1000
        mngr exec half -- git status --short
    """)
    e2e.run("echo '# half done' >>README.md", comment="you are in the middle of something")
    expect(e2e.run("mngr create half --dirty -- sleep 1000", comment="the agent goes on from there")).to_succeed()
    status = e2e.run("mngr exec half -- git status --short", comment="it has it, uncommitted")
    expect(status.stdout).to_equal(" M README.md\n")
    expect(e2e.run("mngr exec half -- cat README.md")).to_contain("# half done")
    expect(e2e.run("git status --short", comment="and so have you").stdout).to_equal(" M README.md\n")


def test_or_they_stay_behind(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Uncommitted changes stay behind, with a warning, unless you want them carried.
        echo '# half done' >>README.md
        mngr create half --dirty -- sleep 1000
        mngr exec half -- git status --short
    """)
    e2e.run("echo '# half done' >>README.md", comment="you are in the middle of something")
    create = e2e.run("mngr create half --no-connect -- sleep 1000", comment="which is nobody's concern")
    expect(create).to_succeed()
    expect(create.stderr).to_contain("1 uncommitted change", "--dirty")
    expect(e2e.run("mngr exec half -- git status --short", comment="it has not got it").stdout).to_be_empty()
    expect(e2e.dir / "README.md").to_contain("# half done")


def test_an_ignored_file_comes_along(e2e: E2eSession) -> None:
    """Unless it is named it does not."""
    e2e.write_tutorial_block("""
        # Ignored files do not come along either. Name those that the program cannot do without.
        echo .env >.gitignore && echo TOKEN=secret >.env
        mngr create job --copy .env -- sleep 1000
        mngr exec job -- cat .env
    """)
    e2e.run("echo .env >.gitignore && echo TOKEN=secret >.env", comment="a file that git ignores")
    e2e.run("mngr create plain --dirty --no-connect -- sleep 1000", comment="not even --dirty carries it")
    expect(e2e.run("mngr exec plain -- cat .env")).to_fail()
    expect(e2e.run("mngr create job --copy .env -- sleep 1000", comment="named, it comes along")).to_succeed()
    expect(e2e.run("mngr exec job -- cat .env").stdout).to_equal("TOKEN=secret\n")


def test_from_the_work_of_another(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Let one agent go on from the work of another, uncommitted files included, with a program of its own.
        mngr create review command --from fix -- 'git log --oneline; sleep 1000'
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    e2e.run("mngr exec fix -- git commit -q --allow-empty -m 'Mend the login'", comment="which has committed something")
    e2e.run("mngr exec fix -- 'echo later >todo.txt'", comment="and something else not")
    create = "mngr create review command --from fix -- 'git log --oneline; sleep 1000'"
    expect(e2e.run(create, comment="another goes on from there")).to_succeed()
    expect(e2e.run("mngr capture review", comment="it sees the commit")).to_eventually_contain("Mend the login")
    expect(e2e.run("mngr exec review -- cat todo.txt", comment="and the file").stdout).to_equal("later\n")
    e2e.run("mngr exec review -- git commit -q --allow-empty -m 'Looks good'", comment="what it does")
    expect(e2e.run("git log -1 --format=%s mngr/fix", comment="is its own").stdout).to_equal("Mend the login\n")
