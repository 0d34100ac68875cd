"""Small runs for tests: a recipe without pytest, whose tasks are trajectories of the agent type `replay`, and whose
check is a line of shell. As a program it begins a run or goes on with one, so that tests can kill it:

    python -m tests.swarm begin NAME [SETTING=VALUE...]
    python -m tests.swarm resume NAME"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import mngr
from mngr.registry import resolve
from mngr.swarm import settings as tuning
from mngr.swarm import watch
from mngr.swarm.api import resume, run
from mngr.swarm.recipe import Check, Home, Judgement, Piece, Recipe
from mngr.swarm.runs import find_run
from mngr.swarm.state import Run, load
from tests.home import Home as World

ROOT = Path(__file__).parents[1]
TRAJECTORIES = "trajectories"  # in the repository
GOOD = """\
cost 1000 100
say "I begin with $MNGR_AGENT_NAME."
run cat README.md
write "done/$MNGR_AGENT_NAME" <<END
done
END
commit docs "Done"
before pass
after pass
finish "It is done."
# turn
say "On with it."
write "done/$MNGR_AGENT_NAME" <<END
done
END
commit docs "Done, in the end"
before pass
after pass
finish "It is done, in the end."
"""


class Trajectories(Recipe):
    """A task for each trajectory of the repository. What an agent has committed is checked by somebody else."""

    name = "trajectories"
    schema = {  # noqa: RUF012 - as recipes have it
        "type": "object",
        "required": ["summary"],
        "properties": {"summary": {"type": "string"}, "blocked": {"type": ["string", "null"]}},
    }

    def __init__(self, repo: str, checks: bool = True) -> None:
        self.repo, self.checks = repo, checks

    def arguments(self) -> dict[str, Any]:
        return {"repo": self.repo, "checks": self.checks}

    def pieces(self) -> list[Piece]:
        names = sorted(path.stem for path in Path(self.repo, TRAJECTORIES).glob("*.sh") if path.stem != "default")
        return [Piece(title=name, prompt=f"play {name}", data={"name": name}) for name in names]

    def check(self, data: dict[str, Any], home: Home) -> Check | None:
        line = 'ls done >"$MNGR_ARTIFACTS/ls" && printf \'{"done": %s}\' "$(ls done | wc -l)" >"$MNGR_RESULT"'
        return Check(command=["sh", "-c", line], timeout=60) if self.checks and home.commits else None

    def judge(self, data: dict[str, Any], home: Home, checked: dict[str, Any] | None) -> Judgement:
        assert home.result is not None
        if home.result.get("blocked"):
            return Judgement(outcome="blocked", why=home.result["blocked"])
        if self.checks and home.commits:
            assert checked is not None
            return Judgement(outcome="improved" if checked == {"done": 1} else "failed", check=checked)
        return Judgement(outcome="unchanged")


class Flawed(Trajectories):
    """Whoever wrote it has made mistakes."""

    def check(self, data: dict[str, Any], home: Home) -> Check | None:
        return Check(command=data["command"]) if data["name"] == "unchecked" else None

    def judge(self, data: dict[str, Any], home: Home, checked: dict[str, Any] | None) -> Judgement:
        if data["name"] == "unjudged":
            return Judgement(outcome=data["verdict"])
        return Judgement(outcome="splendid" if data["name"] == "odd" else "done", check=checked or {})


class Swarm:
    """Runs in a world of their own."""

    def __init__(self, world: World, repo: Path) -> None:
        self.world, self.repo = world, repo
        self._started: list[subprocess.Popen[str]] = []
        (repo / TRAJECTORIES).mkdir()

    def play(self, **trajectories: str) -> None:
        """Each is a task; they are committed with what else has changed."""
        for name, text in trajectories.items():
            (self.repo / TRAJECTORIES / f"{name}.sh").write_text(text)
        self.world.run("git", "add", "-A", cwd=self.repo)
        self.world.run("git", "commit", "-q", "-m", "Trajectories", cwd=self.repo)

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.swarm", *words],
            cwd=self.repo,
            env={**self.world.env, "PYTHONPATH": str(ROOT), **env},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """What a test has left, since it failed."""
        for process in self._started:
            with process:  # closes its pipes
                if process.poll() is None:
                    process.kill()

    def __call__(self, *words: str, **env: str) -> Run:
        """To its end."""
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, f"{process.returncode}\n{out}{err}"
        return self.load(words[1])

    def load(self, name: str) -> Run:
        return load(str(self.world.mngr_home / "runs" / name))

    def events(self, name: str) -> list[dict[str, Any]]:
        text = (self.world.mngr_home / "runs" / name / "events.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def outcomes(run: Run) -> dict[str, str]:
    return {task.id: task.outcome for task in run.tasks.values()}


def _die_after(events: int, delay: float) -> Any:
    """A listener that kills us, some time after the log has so many lines more."""
    left = events

    def heard(run: Run, event: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

    return heard


def _set_the_clock_by(file: Path) -> None:
    """Our clock differs from that of the agents by what the file says, from one moment to the next."""
    right = time.time
    time.time = lambda: right() + float(file.read_text())


def main(words: list[str]) -> None:
    verb, name, *settings = words
    if clock := os.environ.get("CLOCK"):
        _set_the_clock_by(Path(clock))
    chaos = os.environ.get("KILL_SEED")
    dice = random.Random(chaos)
    heard = _die_after(dice.randrange(1, 8), dice.random() * 0.3) if chaos else (lambda *_: None)
    watch.QUIET = 0.7  # seconds; a replay answers sooner than a model
    fleet = mngr.Fleet()
    if verb == "begin":
        given = dict(setting.split("=", 1) for setting in settings)
        request = mngr.Request(
            type="replay", args=[TRAJECTORIES], env={"SWARM_TOKEN": "sesame-sesame"}, setup=os.environ.get("SETUP")
        )
        tuned = {"max-load": 1000.0, **{key: tuning.read(key, value) for key, value in given.items()}}
        recipe = resolve(os.environ.get("RECIPE", "tests.swarm:Trajectories"))(os.getcwd())
        run(fleet, recipe, request, heard, name=name, settings=tuned)
    else:
        resume(fleet, find_run(fleet.home, name), heard=heard)


if __name__ == "__main__":
    from tests.swarm import main as begin_or_resume  # by its name, or the log would say that the recipe is of __main__

    begin_or_resume(sys.argv[1:])
