"""Providers that the configuration makes of other programs: podman's command line, and network namespaces."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import config, registry
from mngr.config_values import as_toml
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.hosts.owner import home_id
from mngr.hosts.place import Place
from mngr.hosts.sockets import end_of_server
from tests.home import Home, Mngr
from tests.places.containers import Podman

STAY = ("command", "--", "sleep", "1000")
WAIT = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"
PODS: dict[str, object] = {
    "exec": ["podman", "exec", "-i", "{id}", "sh", "-c", "{script}"],
    "tty": ["podman", "exec", "-it", "{id}", "sh", "-c", "{script}"],
    "create": [
        *["podman", "run", "-d", "--name={home}-{host}", "--label=mngr.home={home}", "--label=host={host}"],
        *["--memory={memory}", "{image}", "sh", "-c", WAIT],
    ],
    "list": [
        *["podman", "ps", "-a", "--filter=label=mngr.home={home}"],
        *["--format", '{{index .Labels "host"}} {{.ID}}'],
    ],
    "destroy": ["podman", "rm", "-f", "-t", "0", "{home}-{host}"],
    "stop": ["podman", "stop", "-t", "5", "{id}"],
    "start": ["podman", "start", "{id}"],
    "snapshot": ["podman", "commit", "-q", "{id}", "localhost/mngr-{home}:{name}"],
}


def configure(home: Home, **providers: dict[str, object]) -> None:
    text = "".join(
        f"[providers.{name}]\n" + "".join(f"{key} = {as_toml(value)}\n" for key, value in keys.items())
        for name, keys in providers.items()
    )
    (home.mngr_home / "config.toml").write_text(text)
    config.forget()


@pytest.fixture
def pods(home: Home, podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    home.env |= podman.env
    for key in (*podman.env, "HOME", "MNGR_HOME"):
        monkeypatch.setenv(key, home.env[key])
    configure(home, pods={**PODS, "options": {"image": podman.image, "memory": ""}})
    owner = home_id()
    yield home
    for container in podman.run("ps", "--all", "--quiet", "--filter", f"label=mngr.home={owner}").split():
        podman.run("rm", "--force", "--time", "0", container)
    for image in podman.run("images", "--quiet", f"localhost/mngr-{owner}").split():
        podman.run("rmi", "--force", image)
    config.forget()


def containers(podman: Podman) -> list[str]:
    return podman.run("ps", "--all", "--filter", f"label=mngr.home={home_id()}", "--format", "{{.Names}}").split()


def test_agents_in_containers_by_configuration_alone(pods: Home, mngr: Mngr, repo: Path, podman: Podman) -> None:
    mngr.ok("create", "foo@.pods", "--with", "memory=100m", *STAY)
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")
    assert mngr.ok("list", "--format", "{name} {state} {host}") == "foo running foo.pods\n"
    (container,) = containers(podman)
    assert podman.run("inspect", "--format", "{{.HostConfig.Memory}}", container) == "104857600\n"
    assert mngr.ok("exec", "foo", "--", "git", "log", "-1", "--format=%s") == "First commit\n"
    mngr.ok("exec", "foo", "--", "sh", "-c", "echo new >new; git add new; git commit -qm 'From inside'")
    assert mngr.ok("pull", "foo").startswith("pulled foo: mngr/foo has 1 new commit")
    mngr.ok("stop", "foo")
    mngr.ok("start", "foo")
    assert mngr("create", "bar@.pods", "--with", "colour=red", *STAY).err.startswith(
        "mngr: a pods host has no option 'colour'\n"
    )
    mngr.ok("destroy", "-f", "foo")
    assert containers(podman) == []


def test_the_life_of_such_a_host(pods: Home, podman: Podman) -> None:
    provider = registry.provider("pods")
    place = Place(name="box.pods", id=provider.make("box", {}, print))
    assert list(provider.find()) == ["box"]
    assert place.id.startswith(provider.find()["box"])
    with pytest.raises(MngrError, match=r"there is already a host box\.pods"):
        provider.make("box", {}, print)
    host = provider.reach(place)
    assert host.lines is not None
    assert host.lines.run("echo kept >/file; exit 255", deadline=30).code == 255
    host.lines.close()
    image = provider.snapshot(place, "first")
    provider.start(provider.stop(place))
    provider.remove(place)
    provider.remove(place)
    assert provider.find() == {}
    other = Place(name="other.pods", id=provider.make("other", {"image": image}, print))
    assert podman.run("exec", other.id, "cat", "/file") == "kept\n"


def test_a_create_that_fails_is_told_and_taken_back(pods: Home, podman: Podman) -> None:
    half = [
        "sh",
        "-c",
        'podman run -d --name=$1-box --label=mngr.home=$1 --label=host=box $2; echo "no room" >&2; exit 9',
    ]
    words = [*half, "sh", "{home}", podman.image]
    configure(pods, pods={**PODS, "create": words, "options": {"image": podman.image, "memory": ""}})
    with pytest.raises(MngrError, match=r"box\.pods: sh: no room"):
        registry.provider("pods").make("box", {}, print)
    assert containers(podman) == []


def test_a_list_that_fails_is_not_an_empty_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    run = ["sh", "-c", "{script}"]
    configure(home, odd={"exec": run, "list": ["sh", "-c", "echo box; echo 'no way' >&2; exit 1"]})
    with pytest.raises(HostUnreachable, match="odd: no way"):
        registry.provider("odd").find()
    configure(home, odd={"exec": run, "list": ["nowhere-to-be-found"]})
    with pytest.raises(HostUnreachable, match="cannot run nowhere-to-be-found"):
        registry.provider("odd").find()
    configure(home, odd={"exec": run, "create": ["true"], "destroy": ["true"]})
    with pytest.raises(UsageError, match=r"providers\.odd\.list is missing"):
        registry.provider("odd").find()


@pytest.fixture
def namespace(home: Home) -> Iterator[str]:
    name = home.root.name.lower().replace("_", "-")
    ip = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") or "ip"
    home.run(ip, "netns", "add", name)
    script = ["sh", "-c", "{script}"]
    configure(home, netns={"exec": [ip, "netns", "exec", "{host}", *script], "home": "~/far-{host}"})
    yield name
    home.run("sh", "-c", end_of_server(f"{home.path}/far-{name}"))
    home.run(ip, "netns", "delete", name)
    config.forget()


def test_agents_in_a_network_namespace(home: Home, mngr: Mngr, repo: Path, namespace: str) -> None:
    mngr.ok("create", f"far@{namespace}.netns", *STAY)
    mngr.ok("create", "near", *STAY)
    mngr.ok("wait", "far", "near", "--for", "running", "--timeout", "20")
    assert mngr.ok("list", "--format", "{name} {state} {host}") == (
        f"far running {namespace}.netns\nnear running local\n"
    )
    here, there = (mngr.ok("exec", name, "--", "readlink", "/proc/self/ns/net") for name in ("near", "far"))
    assert here != there
    assert mngr.ok("exec", "far", "--", "sh", "-c", "ls /sys/class/net; echo $MNGR_HOME") == (
        f"lo\n{home.path}/far-{namespace}\n"
    )
    mngr.ok("exec", "far", "--", "sh", "-c", "echo new >new; git add new; git commit -qm 'From inside'")
    assert mngr.ok("pull", "far").startswith("pulled far: mngr/far has 1 new commit")
    assert mngr.ok("message", "far", "-m", "hello") == "typed far\n"
    refused = mngr("create", "other@.netns", *STAY)
    assert refused.code == 2
    assert "which netns host?" in refused.err
    mngr.ok("destroy", "-f", "far", "near")
    assert list((home.path / f"far-{namespace}" / "agents").iterdir()) == []


def test_a_line_for_a_shell_there(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs that take one text, as ssh does, and give it to whatever shell there is."""
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    configure(home, odd={"exec": ["bash", "--norc", "-c", "cd /; {line}"]})
    host = registry.provider("odd").reach(Place(name="box.odd"))
    assert host.lines is not None
    text = """'"$`\\!{host} {line} *~#;&|"""
    assert host.lines.run(f"pwd; printf '%s' '{text.replace(chr(39), '')}'", deadline=30).out == f"/\n{text[1:]}"
    host.lines.close()
