"""A repository to create agents from: one commit, in a pack as after a clone, a hundred files in a directory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

_COMMIT = """\
commit refs/heads/main
committer Bench <bench@example.com> 1700000000 +0000
data 5
First"""


def make_repository(top: Path, files: int, env: Mapping[str, str]) -> None:
    top.mkdir()
    _git(top, env, "init", "-q", "-b", "main")
    stream = [_COMMIT]
    for number in range(files):
        text = f"# file {number}\n" * 20
        stream += [f"M 644 inline d{number // 100:03}/f{number}.py", f"data {len(text)}", text]
    _git(top, env, "fast-import", "--quiet", input="\n".join(stream))
    _git(top, env, "reset", "-q", "--hard")


def _git(top: Path, env: Mapping[str, str], *words: str, input: str = "") -> None:
    subprocess.run(["git", *words], cwd=top, env=env, input=input, text=True, check=True)
