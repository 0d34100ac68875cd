"""Agents as tests make them and look at them, and the repositories that they work in.

All of it asks from outside, as a user would: `mngr list`, git, the file system. Nothing here imports mngr itself, so a
test that uses it cannot agree with a mistake in the code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.home import Home, Mngr, wait_until

SLEEP = ("--", "sleep", "100")  # for an agent that stays
WEIRD_NAMES = ["two words", "höhe", "it's", 'quo"te', "-dash", "new\nline", "tab\there", "back\\slash", "*", "#{x}"]


# Agents.


def make(mngr: Mngr, name: str, *options: str) -> Path:
    """An agent that stays; gives its work dir."""
    return create(mngr, name, "command", *options, *SLEEP)


def run_to_end(mngr: Mngr, name: str, *words: str, **how: Any) -> Path:
    """An agent whose program ends by itself; gives its work dir."""
    work = create(mngr, name, *words, **how)
    mngr.ok("wait", name, "--for", "done", "--timeout", "20")
    return work


def create(mngr: Mngr, name: str, *words: str, **how: Any) -> Path:
    """Gives its work dir, as `create` itself tells it: `list` would be another process."""
    (made,) = mngr.json("create", name, *words, **how)
    return Path(made["work_dir"])


def launched(home: Home, count: int) -> None:
    """Waits until the launchers of so many agents are through. `create` is, when tmux has their sessions; and from then
    on `list` calls them running. What launchers write comes a little later, this last."""

    def written() -> int:
        return sum(path.stat().st_size > 0 for path in home.mngr_home.glob("agents/*/pid"))

    wait_until(lambda: written() >= count, 30, "launchers to be through")


def begun(count: int) -> str:
    """The same for a shell."""
    return f'until [ "$(cat "$MNGR_HOME"/agents/*/pid 2>/dev/null | wc -l)" = {count} ]; do sleep 0.05; done'


def agent(mngr: Mngr, name: str) -> dict[str, Any]:
    """That agent, as `list --json` shows it."""
    found: dict[str, Any]
    (found,) = mngr.json("list", name)
    return found


def work_dir(mngr: Mngr, name: str) -> Path:
    return Path(agent(mngr, name)["work_dir"])


def directory(mngr: Mngr, name: str) -> Path:
    """Where mngr keeps what it knows of that agent."""
    return mngr.home.mngr_home / "agents" / str(agent(mngr, name)["id"])


# Directories and repositories.


def entries(place: Path) -> list[str]:
    """What is in that directory, but for its lock; nothing where there is no directory."""
    return sorted(set(os.listdir(place)) - {".lock"}) if place.is_dir() else []


def files(top: Path) -> dict[str, str]:
    """Every file and link below, but for git's own: path to content, mode or target."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name == ".git" or name.startswith(".git/"):
            continue
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = f"{path.read_text()} {'x' if path.stat().st_mode & 0o100 else ''}"
    return found


def commit(home: Home, where: Path, message: str) -> str:
    """The id of a new commit there, of all that has changed, if anything has."""
    home.run("git", "add", "-A", cwd=where)
    home.run("git", "commit", "-q", "--allow-empty", "-m", message, cwd=where)
    return head(home, where)


def commit_noise(home: Home, repo: Path, megabytes: int) -> None:
    """A file that cannot be made smaller."""
    with open("/dev/urandom", "rb") as noise, open(repo / "large", "wb") as file:
        file.writelines(noise.read(1 << 20) for _ in range(megabytes))
    home.run("git", "add", "-A", cwd=repo)
    home.run("git", "commit", "-q", "-m", "Large", cwd=repo)


def head(home: Home, where: Path) -> str:
    return home.run("git", "rev-parse", "HEAD", cwd=where).strip()


def branches(home: Home, *patterns: str) -> list[str]:
    """The branches of the repository that `mngr` runs in."""
    return home.run("git", "branch", "--format=%(refname:short)", "--list", *patterns).split()


def worktrees(home: Home) -> list[str]:
    """A line for each worktree of the repository that `mngr` runs in, itself the first."""
    return home.run("git", "worktree", "list").splitlines()
