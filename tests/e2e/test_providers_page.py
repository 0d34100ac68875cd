"""A stranger's provider: the files of docs/providers.md, the suite that it is to pass, its hosts by the CLI."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.testing.trouble import NO_CRASH, NO_CUT
from tests.home import Home, Mngr

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text()


@pytest.fixture
def package(home: Home) -> Path:
    """Installed, as far as Python can see."""
    top = home.path / "rooms"
    for name, content in re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    info = top / "mngr_rooms-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mngr-rooms\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mngr]\nrooms = mngr_rooms\n")
    home.env["PYTHONPATH"] = str(top)
    home.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    return top


def test_it_passes_the_suite_and_what_it_cannot_show_is_told(package: Path, home: Home) -> None:
    words = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        [sys.executable, *words], cwd=package, env=home.env, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall(r"SKIPPED \[\d+\] \S+: (.*)", done.stdout)) == {NO_CUT, NO_CRASH}
    passed = re.search(r"(\d+) passed, 4 skipped", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) > 50


def test_a_host_that_does_not_keep_the_contract_is_found_out(package: Path, home: Home) -> None:
    provider = package / "mngr_rooms" / "provider.py"
    provider.write_text(provider.read_text().replace('"env", "-i"', '"env"'))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", "environment"]
    done = subprocess.run(
        [sys.executable, *words], cwd=package, env=home.env, text=True, capture_output=True, timeout=300
    )
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout


def test_its_hosts_are_made_used_and_taken_away(package: Path, mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo@.rooms", "command", "--", "cat")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")
    assert mngr.ok("list", "--format", "{name} {state} {host}") == "foo running foo.rooms\n"
    assert mngr.ok("exec", "foo", "--", "sh", "-c", "echo $MNGR_HOME") == f"{home.mngr_home}/rooms/foo/.mngr\n"
    mngr.ok("destroy", "-f", "foo")
    assert list((home.mngr_home / "rooms").iterdir()) == []
