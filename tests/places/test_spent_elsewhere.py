"""What agents on other hosts have spent is counted also when the host is away by the time somebody asks."""

from __future__ import annotations

from pathlib import Path

from tests.home import Mngr
from tests.places.containers import Podman
from tests.places.network import Machine

TRAJECTORY = "cost 1000 50 20000 300\nsay 'It is well.'\n"
UNKNOWN = "have spent since the last time is not known"


def play(mngr: Mngr, *addresses: str) -> None:
    trajectories = mngr.home.root / "trajectories"
    trajectories.mkdir()
    for address in addresses:
        (trajectories / f"{address.partition('@')[0]}.sh").write_text(TRAJECTORY)
        mngr.ok("create", address, "replay", "--message", "go", "--", str(trajectories))
    mngr.ok("wait", "--all", "--for", "waiting", "--timeout", "30")


def spent(mngr: Mngr) -> dict[str, int]:
    return {row["key"]: row["output"] for row in mngr.json("usage")["rows"]}


def test_a_host_counts_before_it_stops(pods: Podman, mngr: Mngr, repo: Path) -> None:
    play(mngr, "one@box.podman", "two@other.podman")
    mngr.ok("stop", "one")
    stops = [mngr.popen("host", "stop", "other.podman") for _ in range(2)]
    assert [stop.wait(60) for stop in stops] == [0, 0]
    assert [each["reason"] for each in mngr.json("list")] == ["its host is stopped"] * 2
    assert spent(mngr) == {"one": 50, "two": 50}
    assert UNKNOWN not in mngr("usage").err
    (mngr.home.mngr_home / "usage.db").unlink()
    for _ in range(2):  # a new ledger knows nothing of them, however often it is asked
        assert mngr("usage").err.count(UNKNOWN) == 2
    mngr.ok("host", "start", "box.podman")
    assert spent(mngr) == {"one": 50}


def test_a_host_that_is_cut_off_is_told_and_known_as_of_the_last_time(mngr: Mngr, repo: Path, box: Machine) -> None:
    play(mngr, "near", "far@box.ssh")
    assert spent(mngr) == {"far": 50, "near": 50}
    box.cut()
    told = [line for line in mngr("usage").err.splitlines() if UNKNOWN in line]
    assert [line.startswith("mngr: what agents on box.ssh have spent ") for line in told] == [True]
    assert spent(mngr) == {"far": 50, "near": 50}
