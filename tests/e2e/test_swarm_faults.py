"""x"""
from __future__ import annotations
import time
from pathlib import Path
import pytest
from tests.home import Home, Mngr, wait_until
from tests.swarm import GOOD, Swarm, outcomes

NOTHING = 'say "Nothing to do."\nbefore pass\nafter pass\nfinish "It was fine."\n'


@pytest.fixture
def swarm(home: Home, repo: Path) -> Swarm:
    return Swarm(home, repo)


def test_x(home: Home, mngr: Mngr, repo: Path, swarm: Swarm) -> None:
    swarm.play(
        launcher="kill -9 $PPID\nkill -9 $$\n# turn\n" + NOTHING,
        big='head -c 200000000 /dev/zero >"$MNGR_ARTIFACTS/big"\necho x >"$MNGR_ARTIFACTS/small"\n' + NOTHING,
        many='cd "$MNGR_ARTIFACTS"\nseq 10000 | xargs touch\ncd - >/dev/null\n' + NOTHING,
        full='ulimit -f 1\nhead -c 100000 /dev/zero >x\n# turn\n' + NOTHING,
        forks="run 'setsid sleep 600 & setsid -f sleep 600'\n" + NOTHING,
        other='git checkout -q -b other\nwrite done/x <<END\nx\nEND\ncommit docs x\n' + NOTHING,
        nogit="rm -rf .git\n" + NOTHING,
        unreadable='chmod 000 .\n' + NOTHING,
        nowork='rm -rf "$PWD"\n' + NOTHING,
        norepo='rm -rf "$PWD"\ncd /\n' + NOTHING,
        noself='rm -rf "$MNGR_AGENT_DIR"\nsleep 600\n',
        renames='mv "$MNGR_AGENT_DIR" "$MNGR_AGENT_DIR.x"\nsleep 600\n',
        escapes='say x\nfinish "$(printf \'\\033[31mred\\007\')"\n',
        link='ln -s /etc/passwd "$MNGR_RESULT"\n# turn\nln -sf /etc/passwd "$MNGR_RESULT"\n',
        fifo='mkfifo "$MNGR_RESULT"\n# turn\n:\n',
        dir='mkdir "$MNGR_RESULT"\n# turn\n:\n',
    )
    t = time.time()
    try:
        run = swarm("begin", "a", "keep=none", "max-agents=20", "stuck-after=5")
    finally:
        run = swarm.load("a")
        for e in swarm.events("a"):
            if e["event"] in ("sampled",): continue
            print(round(e["time"] - t, 2), {k: v for k, v in e.items() if k not in ("time", "tasks", "settings")})
        for task in run.tasks.values():
            print(task.id, task.outcome, "|", task.why, "|", task.cleared, task.home)
        print(home.processes())
        print(mngr("list").out)
    print(home.run("git", "branch", cwd=repo))
    assert 0
