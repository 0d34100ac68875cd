"""tutorial.sh and the tests here: every block is cited, and every citation is of a block that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


def test_every_block_is_proven_and_every_proof_has_its_block() -> None:
    mngr = str(Path(sys.executable).parent / "mngr")
    done = subprocess.run(
        [mngr, "tutorial", "check", "tutorial.sh", "tests/tutorial"], cwd=TOP, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
