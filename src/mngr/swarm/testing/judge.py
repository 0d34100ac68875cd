"""What an agent's work on a test is worth. The result is what the agent claims; the repository, and a run of the tests
in a clean checkout (checker.py), say what is so, and they decide. Both are kept side by side, for whoever reads the
report."""

from __future__ import annotations

import os

from mngr import jsonline, process
from mngr.errors import MngrError
from mngr.swarm import words
from mngr.swarm.recipe import Check, Judgement
from mngr.swarm.testing.kinds import misfits, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.swarm.recipe import Home

_PASSED, _SKIPPED, _MISSING = "passed", "skipped", "missing"
_IS_NOW = {"failed": "fails", "error": "ends in an error", _SKIPPED: "is skipped", _MISSING: "is no longer there"}
_MOST_RUNS = 3  # of pytest, by one check
_MOST_TIMES = 10  # the limit of a test, for a run of pytest with many
_TIME_FOR_THE_REST = 120.0  # seconds
WAY_TO_OWN_PACKAGES = (
    "an editable install of another directory, perhaps: let --setup install the project in each work dir, or let "
    "--pytest begin with PYTHONPATH=$PWD or PYTHONPATH=$PWD/src"
)
# The program comes behind the job, so that the command which `list` and `ps` show stays short. It goes into a directory
# of its own, since everything in there can be imported by the tests.
_START = (
    'd=${MNGR_RESULT%/*}/checker; mkdir -p "$d" && printf "%s\\n" "$MNGR_INPUT" | sed 1d >"$d/$1.py" && '
    'exec python3 "$d/$1.py"'
)
_NAME = "mngr_swarm_checker"  # as a module in the user's interpreter, where nothing else has it


def check_of(home: Home, test: str, *, pytest: str, flags: list[str], limit: float, tutorial: str = "") -> Check:
    """How a branch is checked: checker.py says what its job is made of."""
    with open(os.path.join(os.path.dirname(__file__), "checker.py"), encoding="utf-8") as file:
        program = file.read()
    longest = _MOST_TIMES * limit
    job = {
        "pytest": pytest,
        "flags": flags,
        "test": test,
        "base": home.base,
        "head": home.head,
        "timeout": limit,
        "longest": longest,
        "packages": None,
        "kinds": rules(tutorial),
    }
    return Check(
        command=["sh", "-c", _START, "sh", _NAME],
        input=f"{jsonline.dumps(job)}\n{program}",
        timeout=(limit if home.base == home.head else _MOST_RUNS * longest) + _TIME_FOR_THE_REST,
    )


def judge(claim: dict[str, Any], home: Home, checked: dict[str, Any], test: str, tutorial: str = "") -> Judgement:
    """`claim` is a valid result; `checked` is what the check wrote, empty if there was none."""
    try:
        problems = _problems(claim, home, tutorial)
    except MngrError as error:
        return Judgement(outcome=words.INFRASTRUCTURE, why=error.message)
    outcome, why = _verdict(claim, home, checked, test, problems)
    return Judgement(
        outcome=outcome,
        why=why,
        check={
            "before": {"claim": claim["passed_before"], "check": checked.get("before")},
            "after": {"claim": claim["passed_after"], "check": checked.get("after")},
            "others": checked.get("others", []),
            "resolves": checked.get("resolves", {}),
            "problems": problems,
        },
        notes=_notes(claim, home, checked, test),
    )


def _verdict(
    claim: dict[str, Any], home: Home, checked: dict[str, Any], test: str, problems: list[str]
) -> tuple[str, str]:
    """The ending, and why."""
    if claim["blocked"]:
        return words.BLOCKED, claim["blocked"]
    if "after" not in checked or checked.get("error"):
        return words.INFRASTRUCTURE, checked.get("error") or "the work was not checked"
    if outside := [f"{name} comes from {at}" for name, at in checked["resolves"].items() if os.path.isabs(at)]:
        return words.INFRASTRUCTURE, f"{outside[0]}, not from the checkout: {WAY_TO_OWN_PACKAGES}"
    problems = problems + _broken_tests(home, checked, test)
    if problems:
        more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
        return words.FAILED, f"{problems[0]}{more}"
    if checked["before"] not in (_PASSED, _SKIPPED):
        return words.FIXED, ""
    return (words.IMPROVED if home.commits else words.UNCHANGED), ""


def _problems(claim: dict[str, Any], home: Home, tutorial: str) -> list[str]:
    """What in the repository contradicts the result."""
    found, changes = [], []
    for change in claim["changes"]:
        commits = [commit for commit in home.commits if commit.startswith(change["commit"])]
        if len(commits) == 1:
            changes.append({**change, "commit": commits[0]})
        else:
            what = "more than one commit" if commits else "no commit"
            found.append(f"{change['commit']} is {what} of its branch")
    return found + misfits(changes, _paths_by_commit(home), tutorial)


def _broken_tests(home: Home, checked: dict[str, Any], test: str) -> list[str]:
    found = []
    if checked["after"] != _PASSED and not _is_left_skipped(home, checked):
        said = f": {checked['said']}" if checked.get("said") else ""
        found.append(f"{test} {_is_now(checked['after'])} on its branch{said}")
    for other in checked["others"]:
        if other["head"] not in (_PASSED, _SKIPPED) and other["head"] != other["base"]:
            found.append(f"{other['test']}, {other['is']} on the branch, {_is_now(other['head'])}")
        elif other["is"] == "new" and other["head"] == _MISSING:
            found.append(f"{other['test']}, new on the branch, is not run by pytest")
    return found


def _is_left_skipped(home: Home, checked: dict[str, Any]) -> bool:
    """One that somebody else has put aside, or expects to fail: to leave it so is no failure."""
    return checked.get("before") == checked.get("after") == _SKIPPED and not home.commits


def _is_now(outcome: str) -> str:
    return _IS_NOW.get(outcome, outcome)


def _notes(claim: dict[str, Any], home: Home, checked: dict[str, Any], test: str) -> list[str]:
    """What a person should know, whatever the verdict is."""
    notes = []
    if home.dirty > 0:
        files = "1 file" if home.dirty == 1 else f"{home.dirty} files"
        notes.append(f"{files} of its work dir not committed, and so not part of what was checked")
    if claim["test"] not in ("", test):
        notes.append(f"the result speaks of {claim['test']}, not of {test}")
    for when in ("before", "after"):
        said, is_so = claim[f"passed_{when}"], checked.get(when)
        if is_so and said is not None and said != (is_so == _PASSED):
            told = "passed" if said else "did not pass"
            notes.append(f"the result says that the test {told} {when}; the check says: {is_so}")
    if _is_left_skipped(home, checked):
        notes.append(f"{test} is skipped, or expected to fail, and was left so")
    if checked.get("without fix") == _PASSED and checked["before"] != _PASSED:
        notes.append(f"{test}, as it is now, also passes without the change of the program")
    for other in checked.get("others", []):
        if other["is"] == "new" and other["without fix"] == _PASSED:
            notes.append(f"{other['test']} also passes without the fix")
        elif other["is"] == "new" and other["head"] == _SKIPPED:
            notes.append(f"{other['test']} is new and was skipped")
        elif other["head"] not in (_PASSED, _SKIPPED) and other["head"] == other["base"]:
            notes.append(f"{other['test']} was changed, and {_is_now(other['head'])} as it did before")
    if dropped := checked.get("dropped"):
        notes.append(f"too many new or changed functions in its test files: {dropped} not looked at")
    return notes


def _paths_by_commit(home: Home) -> dict[str, list[str]]:
    """Of the branch's commits, in one question. Of a merge, what it brings to the branch."""
    if not home.commits:
        return {}
    line = ["git", "-C", home.repo, "diff-tree", "--stdin", "--always", "-r", "-z", "--root", "--name-status"]
    asked = "".join(f"{commit}\n" for commit in home.commits).encode()
    done = process.run([*line, "--no-renames", "--diff-merges=first-parent"], input=asked, deadline=120)
    found: dict[str, list[str]] = {}
    paths: list[str] = []
    said = iter(done.out.split("\0")[:-1])
    for word in said:
        if len(word) == 1:  # A, M, D or T, and then the path: a file that is called like a commit is not taken for one
            paths.append(next(said))
        else:
            paths = found[word] = []
    if list(found) != home.commits:
        raise MngrError(f"not all commits of {home.branch} are in {home.repo}: {done.err.strip() or 'fetch it again'}")
    return found
