"""GETTING THE WORK of tutorial.sh: commits and files between the agents and you."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect


def mended(e2e: E2eSession, name: str = "fix", *options: str) -> None:
    """An agent that has committed something and is done: NAME.txt, on its branch."""
    work = f'echo mended >{name}.txt && git add . && git commit -qm "Mend {name}"'
    create = " ".join(["mngr create", name, *options, f"--no-connect -- '{work}'"])
    expect(e2e.run(f"{create} && mngr wait {name} --for done", comment=f"{name} mends something")).to_succeed()


def branches(e2e: E2eSession) -> list[str]:
    return e2e.run("git for-each-ref --format='%(refname:short)' refs/heads").stdout.split()


def test_the_branch_comes_here(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Bring the branch of an agent here, then look at it as at any other branch.
        mngr pull fix
        git log --oneline -3 mngr/fix
    """)
    mended(e2e, "fix", "--mode clone")
    expect(branches(e2e)).to_equal(["main"])
    expect(e2e.run("mngr pull fix", comment="bring it here")).to_succeed()
    log = e2e.run("git log --oneline -3 mngr/fix", comment="and look at it")
    expect(log).to_succeed().to_contain("Mend fix", "First commit")
    assert not (e2e.dir / "fix.txt").exists(), "what is checked out was touched"


def test_the_branch_of_a_worktree_is_here_already(e2e: E2eSession) -> None:
    """And what is not committed stays with the agent, and is counted."""
    e2e.write_tutorial_block("""
        # Bring the branch of an agent here, then look at it as at any other branch.
        mngr pull fix
        git log --oneline -3 mngr/fix
    """)
    mended(e2e)
    e2e.run("mngr exec fix -- 'echo later >todo.txt'", comment="something is left lying about")
    pull = e2e.run("mngr pull fix", comment="nothing is to be brought")
    expect(pull).to_succeed().to_contain("already", "1 uncommitted file")
    expect(e2e.run("git log --oneline -3 mngr/fix", comment="it is here")).to_contain("Mend fix")
    expect(e2e.run("mngr exec fix -- cat todo.txt", comment="and that is still there")).to_contain("later")


def test_it_is_merged_at_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # You trust it: merge at once into what you have checked out. A merge that conflicts is undone.
        mngr pull fix --merge
    """)
    mended(e2e)
    e2e.run("git commit -q --allow-empty -m 'Meanwhile'", comment="you have gone on as well")
    expect(e2e.run("mngr pull fix --merge", comment="merge it")).to_succeed()
    expect(e2e.dir / "fix.txt").to_equal("mended\n")
    expect(e2e.run("git log --format=%s", comment="both are in it")).to_contain("Meanwhile", "Mend fix")
    expect(e2e.run("git status --porcelain").stdout).to_be_empty()


def test_a_merge_that_conflicts_is_undone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # You trust it: merge at once into what you have checked out. A merge that conflicts is undone.
        mngr pull fix --merge
    """)
    mended(e2e)
    e2e.run("echo mine >fix.txt && git add . && git commit -qm Mine", comment="you have mended it yourself")
    before = e2e.run("git rev-parse HEAD").stdout
    pull = e2e.run("mngr pull fix --merge", comment="both do not go together")
    expect(pull).to_have_exit_code(1).to_contain("conflict", "merge by hand")
    expect(e2e.run("git rev-parse HEAD", comment="all is as it was").stdout).to_equal(before)
    expect(e2e.run("git status --porcelain").stdout).to_be_empty()
    expect(e2e.dir / "fix.txt").to_equal("mine\n")


def test_what_is_ready_is_collected(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Collect everything that is ready, and only that.
        mngr list --names --state done | mngr pull - --merge
        mngr pull --state done --label batch=1 --type command --host local
        mngr pull --all --json
    """)
    mended(e2e, "one", "--mode clone --label batch=1")
    mended(e2e, "two", "--mode clone")
    e2e.run("mngr create busy --mode clone --label batch=1 --no-connect -- sleep 1000", comment="one is not ready")

    collect = e2e.run("mngr list --names --state done | mngr pull - --merge", comment="merge what is ready")
    expect(collect).to_succeed()
    expect(branches(e2e)).to_equal(["main", "mngr/one", "mngr/two"])
    expect(e2e.run("git log --format=%s")).to_contain("Mend one", "Mend two")

    e2e.run("mngr exec --all -- git commit -q --allow-empty -m Polish", comment="all of them go on a little")
    pull = e2e.run("mngr pull --state done --label batch=1 --type command --host local", comment="a part of them")
    expect(pull).to_succeed()
    expect(e2e.run("git log -1 --format=%s mngr/one").stdout).to_equal("Polish\n")
    expect(e2e.run("git log -1 --format=%s mngr/two").stdout).to_equal("Mend two\n")

    pulled = e2e.run("mngr pull --all --json", comment="and now everything, ready or not")
    expect({each["name"]: each["ok"] for each in pulled.json()}).to_equal({"one": True, "two": True, "busy": True})
    expect(branches(e2e)).to_equal(["main", "mngr/busy", "mngr/one", "mngr/two"])


def test_nothing_is_ready(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Collect everything that is ready, and only that.
        mngr list --names --state done | mngr pull - --merge
        mngr pull --state done --label batch=1 --type command --host local
        mngr pull --all --json
    """)
    e2e.run("mngr create busy --mode clone --no-connect -- sleep 1000", comment="the only one is at work")
    collect = e2e.run("mngr list --names --state done | mngr pull - --merge", comment="that is no error")
    expect(collect).to_succeed()
    expect(branches(e2e)).to_equal(["main"])


def test_one_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One file is enough, committed or not.
        mngr exec fix -- 'mkdir -p build && echo ok >build/report.txt'
        mngr pull fix:build/report.txt .
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    e2e.run("mngr exec fix -- 'mkdir -p build && echo ok >build/report.txt'", comment="with a file")
    expect(e2e.run("mngr pull fix:build/report.txt .", comment="have it here")).to_succeed()
    expect(e2e.dir / "report.txt").to_equal("ok\n")


def test_a_file_that_is_not_there(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One file is enough, committed or not.
        mngr exec fix -- 'mkdir -p build && echo ok >build/report.txt'
        mngr pull fix:build/report.txt .
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent without a report")
    pull = e2e.run("mngr pull fix:build/report.txt .", comment="which is wanted")
    expect(pull).to_have_exit_code(1).to_contain("build/report.txt")
    expect(e2e.run("git status --porcelain", comment="nothing was written").stdout).to_be_empty()


def test_into_another_repository(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Into another repository than the one that the agent came from, for example one that you publish from.
        git clone -q . ../release
        mngr pull fix --repo ../release
    """)
    mended(e2e, "fix", "--mode clone")
    e2e.run("git clone -q . ../release", comment="you publish from here")
    expect(e2e.run("mngr pull fix --repo ../release", comment="the work comes here")).to_succeed()
    expect(e2e.run("git -C ../release log --format=%s mngr/fix")).to_succeed().to_contain("Mend fix")
    expect(branches(e2e)).to_equal(["main"])


def test_into_what_is_no_repository(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Into another repository than the one that the agent came from, for example one that you publish from.
        git clone -q . ../release
        mngr pull fix --repo ../release
    """)
    mended(e2e)
    e2e.run("mkdir ../release", comment="a directory, but no repository")
    pull = e2e.run("mngr pull fix --repo ../release")
    expect(pull).to_fail().to_contain("not a git repository")


def test_the_agent_is_brought_up_to_date(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Meanwhile you have committed yourself. Bring the agent up to date: its branch and work dir move forward to your HEAD.
        git commit -q --allow-empty -m 'Meanwhile'
        mngr push fix
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    e2e.run("echo new >new.txt && git add . && git commit -qm New", comment="you go on")
    e2e.run("git commit -q --allow-empty -m 'Meanwhile'", comment="and on")
    expect(e2e.run("mngr push fix", comment="so does the agent")).to_succeed()
    expect(e2e.run("mngr exec fix -- cat new.txt", comment="its files").stdout).to_equal("new\n")
    heads = e2e.run("git rev-parse HEAD mngr/fix", comment="and its branch").stdout.split()
    expect(heads[0]).to_equal(heads[1])


def test_commits_of_its_own_are_merged_there(e2e: E2eSession) -> None:
    """Without --merge that is refused, and nothing happens."""
    e2e.write_tutorial_block("""
        # It has commits of its own? Then a push has to merge, there, and is undone if that conflicts.
        git commit -q --allow-empty -m 'Meanwhile'
        mngr push fix --rev main --merge
    """)
    mended(e2e)
    e2e.run("git commit -q --allow-empty -m 'Meanwhile'", comment="you go on as well")
    expect(e2e.run("mngr push fix", comment="it cannot just move forward")).to_have_exit_code(1).to_contain("--merge")
    expect(e2e.run("git log -1 --format=%s mngr/fix", comment="and has not").stdout).to_equal("Mend fix\n")
    expect(e2e.run("mngr push fix --rev main --merge", comment="it has to merge")).to_succeed()
    log = e2e.run("mngr exec fix -- git log --format=%s", comment="which it has")
    expect(log).to_contain("Mend fix", "Meanwhile")
    expect(e2e.run("git log -1 --format=%s", comment="there, not here").stdout).to_equal("Meanwhile\n")


def test_a_push_that_conflicts_is_undone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It has commits of its own? Then a push has to merge, there, and is undone if that conflicts.
        git commit -q --allow-empty -m 'Meanwhile'
        mngr push fix --rev main --merge
    """)
    mended(e2e)
    e2e.run("echo mine >fix.txt && git add . && git commit -qm Mine", comment="you have mended it yourself")
    push = e2e.run("mngr push fix --rev main --merge", comment="both do not go together")
    expect(push).to_have_exit_code(1).to_contain("CONFLICT")
    expect(e2e.run("mngr exec fix -- cat fix.txt", comment="it still has its own").stdout).to_equal("mended\n")
    expect(e2e.run("mngr exec fix -- git status --porcelain").stdout).to_be_empty()
    expect(e2e.run("git log -1 --format=%s mngr/fix").stdout).to_equal("Mend fix\n")


def test_a_group_and_everybody(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A whole group, from a tag; or everybody.
        git tag v1
        mngr push --label batch=1 --state running --type command --host local --rev v1
        mngr push --all --rev v1 --json
    """)
    e2e.run("mngr create a --label batch=1 --no-connect -- sleep 1000", comment="one of the group")
    e2e.run("mngr create b --no-connect -- sleep 1000", comment="and one that is not")
    e2e.run("git commit -q --allow-empty -m 'First release'", comment="a release")
    e2e.run("git tag v1")
    e2e.run("git commit -q --allow-empty -m 'Not for them'", comment="and what comes after it")

    def tips() -> list[str]:
        return e2e.run("git for-each-ref --format='%(subject)' refs/heads/mngr").stdout.splitlines()

    push = "mngr push --label batch=1 --state running --type command --host local --rev v1"
    expect(e2e.run(push, comment="the group gets the release")).to_succeed()
    expect(tips()).to_equal(["First release", "First commit"])
    everybody = e2e.run("mngr push --all --rev v1 --json", comment="now everybody has it")
    expect({each["name"]: each["ok"] for each in everybody.json()}).to_equal({"a": True, "b": True})
    expect(tips()).to_equal(["First release", "First release"])


def test_a_tag_that_there_is_not(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A whole group, from a tag; or everybody.
        git tag v1
        mngr push --label batch=1 --state running --type command --host local --rev v1
        mngr push --all --rev v1 --json
    """)
    e2e.run("mngr create a --no-connect -- sleep 1000", comment="an agent, and no tag")
    push = e2e.run("mngr push --all --rev v1 --json", comment="what is not there cannot be pushed")
    expect(push).to_have_exit_code(1)
    expect(push).to_be_json([{"name": "a", "ok": False, "why": ..., ...: ...}])


def test_a_secret_goes_to_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A file that git does not know, such as a secret, goes to the agent directly; so do commits from another repository.
        echo TOKEN=secret >.env
        mngr push .env fix:.env
        git clone -q . ../release && git -C ../release commit -q --allow-empty -m 'Publish'
        mngr push fix --repo ../release
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    e2e.run("echo TOKEN=secret >.env", comment="a secret")
    expect(e2e.run("mngr push .env fix:.env", comment="for the agent")).to_succeed()
    expect(e2e.run("mngr exec fix -- cat .env", comment="it has it").stdout).to_equal("TOKEN=secret\n")
    expect(e2e.run("mngr exec fix -- git status --porcelain", comment="and git knows nothing").stdout).to_be_empty()


def test_commits_from_another_repository(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A file that git does not know, such as a secret, goes to the agent directly; so do commits from another repository.
        echo TOKEN=secret >.env
        mngr push .env fix:.env
        git clone -q . ../release && git -C ../release commit -q --allow-empty -m 'Publish'
        mngr push fix --repo ../release
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent")
    publish = "git clone -q . ../release && git -C ../release commit -q --allow-empty -m 'Publish'"
    e2e.run(publish, comment="you publish from another repository, and commit there too")
    expect(e2e.run("mngr push fix --repo ../release", comment="the agent goes on from there")).to_succeed()
    expect(e2e.run("mngr exec fix -- git log -1 --format=%s").stdout).to_equal("Publish\n")
    expect(e2e.run("git log -1 --format=%s", comment="your own stays where it is").stdout).to_equal("First commit\n")
