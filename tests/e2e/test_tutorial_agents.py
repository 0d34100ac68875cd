"""`mngr tutorial sync` and `fill` with agents that are small programs: they read their prompt in $MNGR_INPUT, and do
what a coding agent would, or fail to. tests/real/test_tutorial_agents.py has a real one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import sys
import termios
from pathlib import Path
from typing import Any, Self

import pytest

from tests.agents import agent, branches, commit, files, head
from tests.home import Home, Mngr, Result, wait_until

TUTORIAL = """\
#!/usr/bin/env bash

# Greeting
# ========

# say hello
echo hello

# say it to somebody
echo hello Ada

# Leaving
# ========

echo goodbye
"""
TEST = '''\
def test_{name}(e2e):
    e2e.write_tutorial_block("""
        {text}
    """)
'''
# As a good agent would: one file of tests for each block in the prompt, in place of those that are out of date.
WORKER = r"""
import os, re, subprocess
asked = os.environ["MNGR_INPUT"].partition("\nHow to go about it:")[0]
for number, part in enumerate(asked.split("\n## ")[1:]):
    for path in re.findall(r"^- `(.+?):\d+ ", part, re.M):
        if os.path.exists(path):
            os.unlink(path)
    text = re.search(r"```sh\n(.*?)\n```", part, re.S)[1]
    if not part.startswith("gone"):
        name = os.environ["MNGR_AGENT_NAME"].replace("-", "_") + f"_{number}"
        with open(f"tests/e2e/test_{name}.py", "w") as file:
            file.write(f"def test_it(e2e):\n    e2e.write_tutorial_block({text!r})\n")
subprocess.run("git add -A && git commit -q -m 'Prove it'", shell=True, check=True)
"""


@pytest.fixture
def project(home: Home, repo: Path) -> Path:
    """One block is cited, one was edited since, one is cited by nobody; and one test cites what is gone."""
    (repo / "tutorial.sh").write_text(TUTORIAL)
    cite(repo, "hello", "# say hello\n        echo hello")
    cite(repo, "ada", "# say it to somebody\n        echo hello Adam")
    cite(repo, "gone", "frobnicate --with --many --flags")
    commit(home, repo, "A tutorial")
    (home.path / "worker.py").write_text(WORKER)
    return repo


def cite(repo: Path, name: str, text: str) -> None:
    place = repo / "tests" / "e2e"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"test_{name}.py").write_text(TEST.format(name=name, text=text))


def sync(mngr: Mngr, *options: str, program: str | None = None) -> Result:
    """With the worker, or with a shell line in its place."""
    line = f"{sys.executable} {mngr.home.path}/worker.py" if program is None else program
    words = ("tutorial", "sync", "tutorial.sh", "tests/e2e", "--type", "command", "--timeout", "50", *options)
    return mngr(*words, "--", "sh", "-c", line)


def test_agents_bring_the_tests_back_in_step_on_their_branches(home: Home, mngr: Mngr, project: Path) -> None:
    before = (files(project), head(home, project), home.run("git", "status", "--porcelain"))
    result = sync(mngr)
    assert result.code == 0, result
    assert result.out.count("in sync") == 3
    assert (files(project), head(home, project), home.run("git", "status", "--porcelain")) == before
    names = [line.split()[0] for line in result.out.splitlines()[1:4]]
    assert branches(home, "mngr/*") == sorted(f"mngr/{name}" for name in names)
    assert {agent(mngr, name)["labels"]["tutorial"] for name in names} == {"sync"}

    (take,) = [line for line in result.out.splitlines() if line.startswith("to take them: ")]
    mngr.ok(*take.removeprefix("to take them: mngr ").split())
    again = sync(mngr)
    assert (again.code, again.out) == (0, "in sync: nothing to do\n")


def test_an_agent_that_repairs_nothing_is_told(mngr: Mngr, project: Path) -> None:
    result = sync(mngr, program="true")
    assert result.code == 1
    assert result.out.count("1 of 1 block not in sync, nothing committed") == 3
    assert "mngr destroy sync-" in result.out
    assert "to take" not in result.out


def test_an_agent_that_fails_is_told_with_its_state(mngr: Mngr, project: Path) -> None:
    result = sync(mngr, "--json", program="exit 3")
    assert result.code == 1
    assert {found["state"] for found in json.loads(result.out)["agents"]} == {"failed"}


def test_a_citation_pasted_beside_the_old_one_is_no_repair(mngr: Mngr, project: Path) -> None:
    """The test of an edited block has to change: a further one leaves it as it was."""
    program = WORKER.replace("os.unlink(path)", "pass")
    (mngr.home.path / "worker.py").write_text(program)
    result = sync(mngr, "--json")
    assert result.code == 1
    assert sorted(len(found["left"]) for found in json.loads(result.out)["agents"]) == [0, 1, 1]


def test_who_edits_the_tutorial_has_not_mended_the_tests(mngr: Mngr, project: Path) -> None:
    edit = "sed -i 's/^echo goodbye$//; s/Ada/Adam/' tutorial.sh"
    cheat = f"{edit} && git mv tutorial.sh tests/e2e && git commit -q -a -m cheat"
    result = sync(mngr, program=cheat)
    assert result.code == 1
    assert "in sync, " not in result.out
    assert "it changed tutorial.sh, which is no test" in result.err


def test_who_breaks_the_tests_of_others_is_told(mngr: Mngr, project: Path) -> None:
    program = WORKER.replace("subprocess.run(", 'os.unlink("tests/e2e/test_hello.py")\nsubprocess.run(', 1)
    (mngr.home.path / "worker.py").write_text(program)
    result = sync(mngr)
    assert result.code == 1
    assert result.out.count("in sync, but 1 other block lost its tests") == 3


def test_with_test_the_tests_are_run_where_they_were_written(mngr: Mngr, project: Path) -> None:
    passing = sync(mngr, "--test", "grep -q write_tutorial_block", "--json")
    assert passing.code == 0, passing
    assert {found["tests"] for found in json.loads(passing.out)["agents"]} == {
        0,
        None,
    }  # of what is gone, there is none
    mngr.ok("destroy", "--purge", "--all")
    failing = sync(mngr, "--test", "echo two failed; false")
    assert failing.code == 1
    assert "its tests fail (1): two failed" in failing.out


def test_a_second_call_sends_nobody_after_the_same_blocks(mngr: Mngr, project: Path) -> None:
    first = sync(mngr, "--no-wait", program="until [ -e go ]; do sleep 0.1; done; true")
    assert first.code == 0
    names = first.out.split()
    assert len(names) == 3
    second = sync(mngr, "--no-wait", "--per", "section", program="true")
    assert second.out.split() == names
    assert second.err.count("is not sent twice") == 3
    assert [found["name"] for found in mngr.json("list")] == sorted(names)
    for name in names:
        (Path(agent(mngr, name)["work_dir"]) / "go").touch()
    third = sync(mngr)
    assert (third.code, third.out.count("not in sync")) == (1, 3)


def test_sections_have_one_agent_each_and_max_limits_them(mngr: Mngr, project: Path) -> None:
    (project / "tests" / "e2e" / "test_hello.py").unlink()
    commit(mngr.home, project, "Now Greeting has two")
    few = sync(mngr, "--per", "section", "--max", "1", "--json")
    assert few.code == 0, few
    told = json.loads(few.out)
    assert [len(found["blocks"]) for found in told["agents"]] == [2]
    assert [found["why"] for found in told["not_started"]] == ["left for the next call"] * 2
    rest = json.loads(sync(mngr, "--per", "section", "--json").out)
    assert [len(found["blocks"]) for found in rest["agents"]] == [2, 1, 1]
    assert rest["not_started"] == []


def test_what_is_not_committed_is_refused_unless_it_is_carried(mngr: Mngr, project: Path) -> None:
    with (project / "tutorial.sh").open("a") as file:
        file.write("\necho a new one\n")
    result = sync(mngr)
    assert result.code == 1
    assert "tutorial.sh is not committed: agents would not see it" in result.err
    assert mngr.json("list") == []
    see = "grep -q 'a new one' tutorial.sh && git checkout -q tutorial.sh && "
    carried = sync(mngr, "--dirty", program=f"{see} {sys.executable} {mngr.home.path}/worker.py")
    assert carried.code == 0, carried


def test_a_branch_that_is_there_already_is_not_written_over(mngr: Mngr, home: Home, project: Path) -> None:
    names = sync(mngr, "--no-wait", program="git commit -q --allow-empty -m work").out.split()
    mngr.ok("wait", *names, "--for", "done", "--timeout", "20")
    mngr.ok("destroy", "--all", "--force")
    home.run("git", "branch", f"mngr/{names[0]}")
    result = sync(mngr, "--json")
    assert result.code == 1
    assert f"branch mngr/{names[0]} exists already" in result.err
    assert [found["name"] for found in json.loads(result.out)["agents"]] == names[1:]
    assert len(json.loads(result.out)["not_started"]) == 1


def test_a_wait_that_is_too_long_ends_with_4_and_tells_what_is_known(mngr: Mngr, project: Path) -> None:
    result = sync(mngr, "--timeout", "0.5", "--max", "1", program="sleep 100")
    assert result.code == 4
    assert "1 of 1 block not in sync" in result.out
    assert "the same command waits for them again" in result.err


def test_links_on_a_branch_lead_nowhere(mngr: Mngr, home: Home, project: Path) -> None:
    """What they point to is not what the agent has committed, and may have no end."""
    outside = home.path / "test_outside.py"
    outside.write_text(TEST.format(name="outside", text="echo goodbye"))
    link = f"ln -s {outside} tests/e2e/test_link.py && ln -s /dev/zero tests/e2e/test_zero.py"
    result = sync(mngr, "--json", program=f"{link} && git add -A && git commit -q -m links")
    assert result.code == 1
    assert [found["left"] for found in json.loads(result.out)["agents"]] == [
        found["blocks"] for found in json.loads(result.out)["agents"]
    ]


def test_an_odd_branch_hides_no_report(mngr: Mngr, home: Home, project: Path) -> None:
    """One has no common ancestor, and a path that git would quote; another is no commit at all."""
    odd = f"{sys.executable} {home.path}/worker.py; touch 'a\x01b'; git add -A; git commit -q -m odd"
    first, second, third = sync(mngr, "--no-wait", program=odd).out.split()
    mngr.ok("wait", first, second, third, "--for", "done", "--timeout", "20")
    tree = home.run("git", "rev-parse", f"mngr/{first}^{{tree}}").strip()
    orphan = home.run("git", "commit-tree", "-m", "orphan", tree).strip()
    home.run("git", "update-ref", f"refs/heads/mngr/{first}", orphan)
    blob = home.run("git", "rev-parse", "HEAD:tutorial.sh").strip()
    (project / ".git" / "refs" / "heads" / "mngr" / second).write_text(f"{blob}\n")
    result = sync(mngr, "--json")
    assert result.code == 1
    found = {each["name"]: each for each in json.loads(result.out)["agents"]}
    assert [found[name]["in_sync"] for name in (first, second, third)] == [True, False, True]
    assert (found[first]["outside"], found[first]["commits"]) == (["a\x01b"], 1)
    assert found[second]["reason"]
    assert "\x01" not in sync(mngr).err


def test_tests_that_cannot_be_read_are_not_for_agents_to_mend(mngr: Mngr, home: Home, project: Path) -> None:
    (project / "tests" / "e2e" / "test_a.py").write_text("# write_tutorial_block\ndef broken(:\n")
    commit(home, project, "Broken")
    result = sync(mngr)
    assert result.code == 1
    assert "tests/e2e/test_a.py:2: this is no Python: invalid syntax; mend it first" in result.err
    assert mngr.json("list") == []


def test_two_calls_at_once_wait_for_the_same_agents(mngr: Mngr, home: Home, project: Path) -> None:
    """The second comes when the first has reserved a name, and has no branch yet: git holds it back."""
    held, go = home.path / "held", home.path / "go"
    words = ("tutorial", "sync", "tutorial.sh", "tests/e2e", "--type", "command", "--timeout", "50", "--max", "1")
    program = ("--", sys.executable, f"{home.path}/worker.py")
    hook = project / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\ngrep -q refs/heads/mngr/sync- && touch {held} && until [ -e {go} ]; do sleep 0.05; done; exit 0\n"
    )
    hook.chmod(0o755)
    first = mngr.popen(*words, *program)
    wait_until(held.exists, what="the first to make its agent")
    second = mngr.popen(*words, *program)
    assert second.stderr
    assert re.fullmatch(r"mngr: (sync-\w+) is there already\n", second.stderr.readline())
    go.touch()
    told = [call.communicate(timeout=60) for call in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), told
    assert told[0][0] == told[1][0]
    assert len(mngr.json("list")) == 1


def test_an_agent_whose_branch_is_gone_is_in_the_way(mngr: Mngr, home: Home, project: Path) -> None:
    (name,) = sync(mngr, "--no-wait", "--max", "1", program="git checkout -q --detach").out.split()
    mngr.ok("wait", name, "--for", "done", "--timeout", "20")
    home.run("git", "branch", "-D", f"mngr/{name}")
    result = sync(mngr, "--max", "1")
    assert result.code == 1
    assert f"there is an agent {name}, but its branch is not here (mngr destroy {name})" in result.err
    mngr.ok("label", name, "tutorial=")
    assert f"there is an agent {name} that has nothing to do with a tutorial" in sync(mngr, "--max", "1").err


def test_a_tutorial_that_was_edited_meanwhile_is_told(mngr: Mngr, project: Path) -> None:
    edit = f"sed -i s/goodbye/bye/ {project}/tutorial.sh"
    result = sync(mngr, program=f"{edit}; {sys.executable} {mngr.home.path}/worker.py")
    assert "tutorial.sh has changed since: the branches are judged by what it was" in result.err
    assert result.out.count("in sync") == 3


def test_the_prompt_can_be_printed_and_nothing_is_made(mngr: Mngr, project: Path) -> None:
    result = sync(mngr, "--print-prompt", "--test", "make check")
    assert result.code == 0
    assert result.out.count("\n---\n") == 2
    assert "`tutorial.sh`, line 15, section Leaving" in result.out
    assert "- `tests/e2e/test_ada.py:2 test_ada`" in result.out
    assert "-echo hello Adam\n+echo hello Ada" in result.out
    assert "`make check`" in result.out
    assert "$" not in result.out.replace("$MNGR", "")
    assert mngr.json("list") == []


def test_the_skill_can_be_printed_and_installed(mngr: Mngr, home: Home) -> None:
    skill = mngr.ok("tutorial", "sync", "--print-skill")
    assert skill.startswith("---\nname: sync-tutorial-to-e2e-tests\ndescription: ")
    mngr.ok("tutorial", "sync", "--install-skill", "~/.claude/skills")
    assert (home.path / ".claude/skills/sync-tutorial-to-e2e-tests/SKILL.md").read_text() == skill


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("tutorial.sh",), 2, "needs FILE and TESTS"),
        (("nowhere.sh", "tests"), 2, "nowhere.sh"),
        (("tutorial.sh", "nowhere"), 2, "nowhere"),
        (("tutorial.sh", "tests", "--type", "comand"), 2, "did you mean command?"),
        (("tutorial.sh", "tests", "--per", "line"), 2, "--per is one of"),
        (("tutorial.sh", "tests", "--max", "0"), 2, "--max takes a whole number"),
    ],
)
def test_wrong_words_make_nothing(mngr: Mngr, project: Path, words: tuple[str, ...], code: int, told: str) -> None:
    result = mngr("tutorial", "sync", *words)
    assert (result.code, told in result.err) == (code, True), result
    assert mngr.json("list") == []


def test_outside_of_a_repository_there_are_no_branches_to_hand_back(mngr: Mngr, home: Home) -> None:
    (home.path / "tutorial.sh").write_text(TUTORIAL)
    (home.path / "tests").mkdir()
    result = mngr("tutorial", "sync", "tutorial.sh", "tests")
    assert result.code == 1
    assert "not a git repository" in result.err


# Filling blanks.

BLANKS = """\
#!/usr/bin/env bash

# Greeting
# ========

# say hello

# count the files
# of a repository

echo done
"""
# Two proposals for the first blank, one for the second.
PROPOSER = r"""
import json, os
assert "# say hello" in os.environ["MNGR_INPUT"] and "man -l FILE" in os.environ["MNGR_INPUT"], os.environ["MNGR_INPUT"]
assert open("tutorial.sh").read().startswith("#!") and "asked for help" in open("man/tool.1").read()
with open("../asked", "a") as file:
    file.write("x")
items = [(6, "# say hello", ["echo hello $((40 + 2))", "tool --greet"]),
         (8, "# count the files\n# of a repository", ["# count them\ngit ls-files | wc -l"])]
with open("proposals.json", "w") as file:
    json.dump({"proposals": [{"line": line, "text": text, "blocks": blocks} for line, text, blocks in items]}, file)
"""


@pytest.fixture
def blanks(home: Home, repo: Path) -> Path:
    """A tutorial that nobody has committed yet, and a manual that is."""
    (repo / "man").mkdir()
    (repo / "man" / "tool.1").write_text("asked for help\n")
    commit(home, repo, "A manual")
    (repo / "tutorial.sh").write_text(BLANKS)
    (home.path / "worker.py").write_text(PROPOSER)
    return repo / "tutorial.sh"


def fill_words(mngr: Mngr, *options: str) -> tuple[str, ...]:
    program = ("--", sys.executable, str(mngr.home.path / "worker.py"))
    return ("tutorial", "fill", "tutorial.sh", "--type", "command", "--timeout", "50", *options, *program)


def fill(mngr: Mngr, *options: str) -> Result:
    return mngr(*fill_words(mngr, *options))


def test_yes_keeps_what_succeeds_and_asks_the_agent_once(home: Home, mngr: Mngr, blanks: Path) -> None:
    result = fill(mngr, "--yes")
    assert result.code == 0, result
    assert result.out == "tutorial.sh: 2 blocks written, 0 rejected, 0 to decide\n"
    filled = BLANKS.replace("# say hello\n", "# say hello\necho hello $((40 + 2))\n")
    filled = filled.replace("# count the files\n# of a repository\n", "# count them\ngit ls-files | wc -l\n")
    assert blanks.read_text() == filled
    assert [found["labels"] for found in mngr.json("list")] == [{"tutorial": "fill"}]
    assert fill(mngr, "--yes").out == "tutorial.sh: 0 blocks written, 0 rejected, 0 to decide\n"
    assert (home.mngr_home / "work" / "asked").read_text() == "x"


def test_a_review_file_is_written_then_carried_out(mngr: Mngr, home: Home, blanks: Path) -> None:
    todo = blanks.with_name("todo")
    assert "3 proposals to decide about" in fill(mngr, "--review-file", "todo").out
    assert blanks.read_text() == BLANKS
    text = todo.read_text()
    assert text.count(": not run yet\n") == 3
    hello, greet, count = [line.split()[0] for line in text.splitlines() if line.endswith(" skip")]
    text = text.replace(f"{hello} skip", f"{hello} keep").replace("hello $((40 + 2))", "hello you")
    text = text.replace(f"{greet} skip", f"{greet} reject: there is no such thing")
    todo.write_text(text)
    result = fill(mngr, "--review-file", "todo")
    assert result.code == 0, result
    assert result.out == "tutorial.sh: 1 block written, 1 rejected, 1 to decide\n"
    assert re.search(r"todo:\d+: exit code 0 in .* s\n  hello you\n", result.err)
    assert "# say hello\necho hello you\n" in blanks.read_text()
    assert not todo.exists()
    (sign,) = signs(home)
    assert (sign["kind"], sign["words"], sign["detail"]) == ("rejected", "tool --greet", "there is no such thing")
    assert "1 proposal to decide about" in fill(mngr, "--review-file", "todo").out
    assert count in todo.read_text()


def test_nothing_is_run_before_somebody_has_said_so(mngr: Mngr, home: Home, blanks: Path) -> None:
    ran = home.path / "ran"
    propose_to_write(home, ran)
    fill(mngr, "--review-file", "todo")
    assert not ran.exists()
    todo = blanks.with_name("todo")
    todo.write_text(todo.read_text().replace(" skip\n", " reject: no\n", 1))
    assert fill(mngr, "--review-file", "todo").code == 0
    assert not ran.exists()
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("ran.sh count", "[k/t/e/r/s/q]? ")
        assert not ran.exists()
        typing.answer("t").see("exit code 0", "[k/e/r/s/q]? ")
        assert ran.read_text() == "count\n"
        typing.answer("k").see("1 block written, 0 rejected, 0 to decide")
        assert typing.end() == 0
    assert ran.read_text() == "count\n"


def propose_to_write(home: Home, path: Path) -> None:
    """One proposal for each blank, which leaves a line in this file whenever it is run."""
    own = home.path / "ran.sh"
    own.write_text(f"#!/bin/sh\necho $1 >>{path}\n")
    own.chmod(0o755)
    program = PROPOSER.replace('"echo hello $((40 + 2))", "tool --greet"', f'"{own} hello"')
    (home.path / "worker.py").write_text(program.replace("git ls-files | wc -l", f"{own} count"))


def test_what_is_kept_by_file_is_run_once_and_left_there_when_it_fails(mngr: Mngr, blanks: Path) -> None:
    """Of the first blank, one fails and one does not: written now, the other would have lost its place."""
    fill(mngr, "--review-file", "todo")
    todo = blanks.with_name("todo")
    todo.write_text(todo.read_text().replace(" skip\n", " keep\n"))
    result = fill(mngr, "--review-file", "todo")
    assert result.code == 1
    assert result.out == "tutorial.sh: 1 block written, 0 rejected, 2 to decide\n"
    assert "todo: 2 proposals left in it for another look" in result.err
    only_count = BLANKS.replace("# count the files\n# of a repository\n", "# count them\ngit ls-files | wc -l\n")
    assert blanks.read_text() == only_count
    left = todo.read_text()
    assert re.search(r": exit code 0 in .* s\n#   hello 42\n\w+ keep\n    # say hello\n    echo hello", left)
    assert re.search(r": exit code 127 in .* s\n#   .*not found\n\w+ skip\n    # say hello\n    tool --greet", left)
    todo.write_text(left.replace(" skip\n", " keep\n"))
    assert fill(mngr, "--review-file", "todo").code == 1
    assert (blanks.read_text(), todo.read_text()) == (only_count, left)
    todo.write_text(left.replace(" skip\n", " keep anyway\n"))
    assert fill(mngr, "--review-file", "todo").code == 0
    assert "# say hello\necho hello $((40 + 2))\n\ntool --greet\n\n" in blanks.read_text()
    assert not todo.exists()


def signs(home: Home) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home.mngr_home / "confusion.jsonl").read_text().splitlines()]


def test_a_usage_error_and_a_rejection_are_kept_as_confusion(mngr: Mngr, home: Home, blanks: Path) -> None:
    program = PROPOSER.replace("tool --greet", "mngr lst", 1).replace("git ls-files | wc -l", "mngr list --colour")
    (home.path / "worker.py").write_text(program)
    fill(mngr, "--review-file", "todo")
    todo = blanks.with_name("todo")
    assert not (home.mngr_home / "confusion.jsonl").exists()
    todo.write_text(todo.read_text().replace(" skip\n", " keep\n").replace(" keep\n", " skip\n", 1))
    assert fill(mngr, "--review-file", "todo").code == 1
    assert len(signs(home)) == 2
    todo.unlink()
    fill(mngr, "--review-file", "todo")
    todo.write_text(todo.read_text().replace(" skip\n", " reject: says nothing\n"))
    assert fill(mngr, "--review-file", "todo").code == 0
    found = [(sign["kind"], sign["subcommand"], sign["words"].splitlines()[-1]) for sign in signs(home)]
    assert found == [
        ("usage-error", "lst", "mngr lst"),
        ("unknown-flag", "list", "mngr list --colour"),
        ("rejected", "hello", "echo hello $((40 + 2))"),
        ("rejected", "lst", "mngr lst"),
        ("rejected", "list", "mngr list --colour"),
    ]
    again = fill(mngr, "--review-file", "todo")
    assert again.code == 0, again
    assert "is asked for proposals" in again.err  # by a prompt that says what was rejected, and why
    assert "there is nothing to decide" in again.err  # since it proposes the same


def test_rejections_are_counted_once(mngr: Mngr, blanks: Path) -> None:
    fill(mngr, "--review-file", "todo")
    todo = blanks.with_name("todo")
    todo.write_text(todo.read_text().replace(" skip\n", " reject: no\n", 1))
    decided = todo.read_text()
    assert fill(mngr, "--review-file", "todo").out == "tutorial.sh: 0 blocks written, 1 rejected, 2 to decide\n"
    todo.write_text(decided)
    assert fill(mngr, "--review-file", "todo").out == "tutorial.sh: 0 blocks written, 0 rejected, 2 to decide\n"
    assert len(signs(mngr.home)) == 1


def test_a_review_file_is_kept_when_some_of_it_has_no_place(mngr: Mngr, blanks: Path) -> None:
    """Nothing of it is done then. When the words are back, so are the proposals."""
    fill(mngr, "--review-file", "todo")
    todo = blanks.with_name("todo")
    text = todo.read_text()
    count = [line.split()[0] for line in text.splitlines() if line.endswith(" skip")][2]
    decided = text.replace(" skip\n", " reject: no\n", 1).replace(f"{count} skip", f"{count} keep")
    todo.write_text(decided)
    changed = BLANKS.replace("of a repository", "of this repository")
    blanks.write_text(changed)
    result = fill(mngr, "--review-file", "todo")
    line = decided.splitlines().index(f"{count} keep") + 1
    assert (result.code, result.out) == (1, ""), result
    assert f"todo:{line}: {count} is no proposal for tutorial.sh any more\nmngr: nothing of todo was" in result.err
    assert (blanks.read_text(), todo.read_text()) == (changed, decided)
    todo.write_text(text)
    assert "0 rejected" in fill(mngr, "--review-file", "todo").out  # what is skipped needs no place
    blanks.write_text(BLANKS)
    todo.write_text(decided)
    assert fill(mngr, "--review-file", "todo").out == "tutorial.sh: 1 block written, 1 rejected, 1 to decide\n"


def test_a_review_file_with_a_mistake_decides_nothing(mngr: Mngr, blanks: Path) -> None:
    fill(mngr, "--review-file", "todo")
    todo = blanks.with_name("todo")
    text = todo.read_text().replace(" skip", " keep", 1).replace(" skip", " perhaps", 1)
    todo.write_text(text)
    result = fill(mngr, "--review-file", "todo")
    assert result.code == 2
    assert "todo:" in result.err
    assert (blanks.read_text(), todo.read_text()) == (BLANKS, text)


def test_in_a_terminal_each_proposal_is_shown_and_decided(mngr: Mngr, home: Home, blanks: Path) -> None:
    """Reject the first with a reason, keep the second but edit it when it fails, skip the third."""
    (home.path / "editor").write_text('#!/bin/sh\necho "echo edited" >"$1"\n')
    (home.path / "editor").chmod(0o755)
    with Typing(mngr, *fill_words(mngr), env={"EDITOR": f"{home.path}/editor"}) as typing:
        typing.see("tutorial.sh:6  Greeting", "echo hello $((40 + 2))", "[k/t/e/r/s/q]? ")
        typing.answer("r").see("why? ").answer("too much arithmetic")
        typing.see("tool --greet", "[k/t/e/r/s/q]? ").answer("k")
        typing.see("exit code 127", "not found", "keep it anyway, edit, reject, skip or quit [k/e/r/s/q]? ").answer("e")
        typing.see("echo edited", "exit code 0")
        typing.see("git ls-files", "[k/t/e/r/s/q]? ").answer("s")
        typing.see("1 block written, 1 rejected, 1 to decide")
        assert typing.end() == 0
    assert blanks.read_text() == BLANKS.replace("# say hello\n", "# say hello\necho edited\n")


def test_in_a_terminal_what_fails_is_kept_if_you_insist(mngr: Mngr, blanks: Path) -> None:
    """And what came of it is still known the next time, so that it is not run again."""
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("echo hello", "[k/t/e/r/s/q]? ").answer("s").see("tool --greet", "[k/t/e/r/s/q]? ").answer("t")
        typing.see("exit code 127", "keep it anyway").answer("q").see("0 blocks written, 0 rejected, 3 to decide")
        assert typing.end() == 0
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("echo hello", "[k/t/e/r/s/q]? ").answer("s")
        typing.see("tool --greet", "exit code 127", "keep it anyway", "[k/e/r/s/q]? ").answer("k")
        typing.see("git ls-files", "[k/t/e/r/s/q]? ").answer("q").see("1 block written")
        assert typing.end() == 0
    assert "# say hello\ntool --greet\n" in blanks.read_text()


def test_an_editor_that_changes_nothing_decides_nothing(mngr: Mngr, blanks: Path) -> None:
    with Typing(mngr, *fill_words(mngr), env={"EDITOR": "true"}) as typing:
        typing.see("echo hello", "[k/t/e/r/s/q]? ").answer("e").see("[k/t/e/r/s/q]? ").answer("q")
        typing.see("0 blocks written, 0 rejected, 3 to decide")
        assert typing.end() == 0
    assert blanks.read_text() == BLANKS


def test_ctrl_c_writes_what_was_kept_and_the_rest_is_offered_again(mngr: Mngr, home: Home, blanks: Path) -> None:
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("[k/t/e/r/s/q]? ").answer("k").see("hello 42", "git ls-files", "[k/t/e/r/s/q]? ").interrupt()
        typing.see("1 block written")
        assert typing.end() == 130
    assert blanks.read_text().count("echo hello") == 1
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("git ls-files", "[k/t/e/r/s/q]? ").answer("k").see(
            "exit code 0", "1 block written, 0 rejected, 0 to decide"
        )
        assert typing.end() == 0
    assert (home.mngr_home / "work" / "asked").read_text() == "x"


def test_a_tutorial_that_changes_meanwhile_is_left_and_written_the_next_time(mngr: Mngr, blanks: Path) -> None:
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("[k/t/e/r/s/q]? ").answer("k").see("git ls-files", "[k/t/e/r/s/q]? ")
        changed = BLANKS.replace("# Greeting", "# Greetings")
        blanks.write_text(changed)
        typing.answer("q").see("tutorial.sh has changed meanwhile")
        assert typing.end() == 1
    assert blanks.read_text() == changed
    with Typing(mngr, *fill_words(mngr)) as typing:
        typing.see("git ls-files", "[k/t/e/r/s/q]? ").answer("q").see("1 block written")
        assert typing.end() == 0
    assert "# say hello\necho hello" in blanks.read_text()


def test_an_agent_that_was_not_waited_for_is_not_asked_again(mngr: Mngr, home: Home, blanks: Path) -> None:
    slow = "import os, time\nwhile not os.path.exists('../go'):\n    time.sleep(0.05)\n"
    (home.path / "worker.py").write_text(slow + PROPOSER)
    assert fill(mngr, "--yes", "--timeout", "0.5").code == 4
    (home.mngr_home / "work" / "go").touch()
    result = fill(mngr, "--yes")
    assert (result.code, "was asked already" in result.err) == (0, True), result
    assert (home.mngr_home / "work" / "asked").read_text() == "x"


def test_another_project_with_the_same_tutorial_has_an_agent_of_its_own(mngr: Mngr, home: Home, blanks: Path) -> None:
    assert fill(mngr, "--review-file", "todo").code == 0
    other = home.root / "other"
    shutil.copytree(blanks.parent, other)
    (other / "todo").unlink()
    home.cwd = other
    assert "was asked already" not in fill(mngr, "--review-file", "todo").err
    assert len(mngr.json("list")) == 2


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("", "is done: it has written no proposals.json"),
        ("open('proposals.json', 'w').write('{')", "is done: what it wrote is not JSON with a list of proposals"),
        ("open('proposals.json', 'w').write('{\"proposals\": []}')", "has proposed nothing that could be used"),
        ("raise SystemExit(3)", "is failed (exit 3): it has written no proposals.json"),
        ("import os; os.mkfifo('proposals.json')", "is done: proposals.json is no regular file"),
        ("import os; os.symlink('/dev/zero', 'proposals.json')", "is done: proposals.json cannot be read"),
        ("open('proposals.json', 'w').truncate(11_000_000)", "is done: proposals.json is larger than 10 MB"),
    ],
)
def test_an_agent_that_proposes_nothing_is_told(mngr: Mngr, blanks: Path, program: str, told: str) -> None:
    (mngr.home.path / "worker.py").write_text(program)
    result = fill(mngr, "--yes")
    assert (result.code, told in result.err) == (1, True), result
    assert "mngr destroy fill-" in result.err
    assert blanks.read_text() == BLANKS


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "there is no terminal to ask you in"),
        (("--yes", "--review-file", "x"), "exclude each other"),
        (("--yes", "--man", "nowhere"), "--man nowhere: not a directory"),
    ],
)
def test_wrong_words_ask_nobody(mngr: Mngr, blanks: Path, options: tuple[str, ...], told: str) -> None:
    result = fill(mngr, *options)
    assert (result.code, told in result.err) == (2, True), result
    assert mngr.json("list") == []


def test_markdown_has_no_blanks_to_fill(mngr: Mngr, blanks: Path) -> None:
    readme = blanks.with_name("README.md")
    readme.write_text("# Title\n\n## Use\n")
    assert mngr("tutorial", "fill", "README.md", "--yes") == (
        2,
        "",
        "mngr: README.md: blanks are filled in shell files, not in Markdown\n",
    )
    assert readme.read_text() == "# Title\n\n## Use\n"
    assert mngr.json("list") == []


class Typing:
    """Somebody at a terminal in which `mngr` runs."""

    def __init__(self, mngr: Mngr, *words: str, env: dict[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        self._process = mngr.popen(
            *words, env=env, stdin=slave, stdout=slave, stderr=slave, preexec_fn=lambda: _own_terminal(slave)
        )
        os.close(slave)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._master)

    def see(self, *texts: str) -> Self:
        """These, one after the other; what came before them is forgotten."""
        for text in texts:
            while text not in self._seen:
                ready, _, _ = select.select([self._master], [], [], 60)
                assert ready, f"waited in vain for {text!r}; there is:\n{self._seen}"
                self._seen += self._read() or pytest.fail(f"it ended without {text!r}; there is:\n{self._seen}")
            self._seen = self._seen.partition(text)[2]
        return self

    def answer(self, text: str) -> Self:
        os.write(self._master, f"{text}\n".encode())
        return self

    def interrupt(self) -> Self:
        """Ctrl-C, once it sleeps in its read: between the prompt and that, Python would not hear it."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(") ")[2].startswith("S"), what="it to wait for an answer")
        os.write(self._master, b"\x03")
        return self

    def end(self) -> int:
        while self._read():
            pass
        return self._process.wait(20)

    def _read(self) -> str:
        try:
            return os.read(self._master, 65536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # Linux says so at the end
            return ""


def _own_terminal(slave: int) -> None:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
