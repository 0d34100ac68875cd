"""The stand-in for Modal, by the SDK alone: what it does that others rely on, and what it does when told to fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import modal as sdk
import pytest
from modal.client import _Client
from modal.exception import AlreadyExistsError, AuthError, NotFoundError, SandboxTimeoutError, ServiceError

from tests.places.containers import Podman
from tests.places.modal_machines import OWNER
from tests.places.sandboxes import Sandboxes

WAIT = ("sh", "-c", "while sleep 3600; do :; done")


@pytest.fixture
def app(modal: Sandboxes) -> Any:
    return sdk.App.lookup("tests", create_if_missing=True)


@contextlib.contextmanager
def made(app: Any, *command: str, **how: Any) -> Iterator[Any]:
    sandbox = sdk.Sandbox.create(*(command or WAIT), app=app, image=sdk.Image.debian_slim(), **how)
    yield sandbox
    sandbox.terminate()


def test_a_command_has_three_streams_and_an_exit_code(app: Any) -> None:
    with made(app, env={"GIVEN": "a b"}) as sandbox:
        process = sandbox.exec("sh", "-c", 'cat; echo "$GIVEN" >&2; exit 255', text=False)
        process.stdin.write(b"\0\xff")
        process.stdin.write_eof()
        process.stdin.drain()
        assert (process.stdout.read(), process.stderr.read(), process.wait()) == (b"\0\xff", b"a b\n", 255)


def test_a_command_can_have_a_terminal(app: Any) -> None:
    with made(app) as sandbox:
        process = sandbox.exec("sh", "-c", "test -t 0 && test -t 1 && read line && echo got $line", pty=True)
        process.stdin.write(b"x\n")
        process.stdin.drain()
        assert (process.stdout.read(), process.wait()) == ("x\r\ngot x\r\n", 0)


def test_who_has_the_wrong_secret_is_not_let_in(modal: Sandboxes) -> None:
    client = sdk.Client.from_credentials("ak-stand-in", "as-wrong")
    with pytest.raises(AuthError):
        sdk.App.lookup("tests", client=client)


def test_a_create_whose_answer_is_lost_is_done_once(app: Any, modal: Sandboxes) -> None:
    before = len(modal.ask(sandboxes=True))
    modal.ask(lose="SandboxCreateV2", times=1)
    with made(app) as sandbox:
        after = modal.ask(sandboxes=True)
        assert len(after) == before + 1
        assert after[-1]["id"] == sandbox.object_id


def test_a_service_that_is_out_of_order_for_a_moment_is_asked_again(app: Any, modal: Sandboxes) -> None:
    with made(app) as sandbox:
        modal.ask(refuse="*", times=2)
        assert sandbox.exec("echo", "there").stdout.read() == "there\n"


def test_a_service_that_stays_out_of_order_is_an_error(app: Any, modal: Sandboxes) -> None:
    modal.ask(refuse="SandboxListV2", times=100)
    try:
        with pytest.raises(ServiceError):
            list(sdk.Sandbox.list(app_id=app.app_id))
    finally:
        modal.ask(refuse="SandboxListV2", times=0)


def test_a_connection_that_is_dropped_loses_nothing_and_repeats_nothing(app: Any, modal: Sandboxes) -> None:
    with made(app) as sandbox:
        process = sandbox.exec("cat", bufsize=1)
        lines = iter(process.stdout)
        for number in range(5):
            process.stdin.write(f"{number}\n".encode())
            process.stdin.drain()
            assert next(lines) == f"{number}\n"
            modal.ask(cut=True)
        process.stdin.write_eof()
        process.stdin.drain()
        assert list(lines) == []
        assert process.wait() == 0


def test_sandboxes_are_found_by_tags_page_by_page_and_by_name(app: Any) -> None:
    with contextlib.ExitStack() as stack:
        tagged = [stack.enter_context(made(app, tags={"of": "this test", "n": str(n)})) for n in range(4)]
        named = stack.enter_context(made(app, name="named"))
        found = {each.object_id for each in sdk.Sandbox.list(app_id=app.app_id, tags={"of": "this test"})}
        assert found == {each.object_id for each in tagged}
        assert tagged[2].get_tags() == {"of": "this test", "n": "2"}
        assert sdk.Sandbox.from_name("tests", "named").object_id == named.object_id
        with pytest.raises(AlreadyExistsError), made(app, name="named"):
            pass
    with pytest.raises(NotFoundError):
        sdk.Sandbox.from_name("tests", "named")


def test_a_sandbox_ends_when_its_time_is_over(app: Any) -> None:
    with made(app, timeout=1) as sandbox:
        with pytest.raises(SandboxTimeoutError):
            sandbox.wait()
        with pytest.raises(NotFoundError):
            sandbox.exec("true")


def test_the_end_of_its_first_process_is_its_own(app: Any) -> None:
    with made(app, "sh", "-c", "exit 5") as sandbox:
        sandbox.wait()
        assert sandbox.returncode == 5


def test_a_snapshot_has_the_files_and_nothing_else(app: Any) -> None:
    with made(app) as sandbox:
        sandbox.exec("sh", "-c", "echo kept >/root/file").wait()
        image = sandbox.snapshot_filesystem()
    again = sdk.Sandbox.create(*WAIT, app=app, image=sdk.Image.from_id(image.object_id))
    assert again.exec("cat", "/root/file").stdout.read() == "kept\n"
    again.terminate()


def test_secrets_are_variables(app: Any) -> None:
    sdk.Secret.objects.create("tests", {"WORD": "hush"})
    with made(app, secrets=[sdk.Secret.from_name("tests")]) as sandbox:
        assert sandbox.exec("sh", "-c", "echo $WORD").stdout.read() == "hush\n"


def test_images_are_built(app: Any) -> None:
    image = sdk.Image.debian_slim().apt_install("tmux").run_commands("echo made >/made")
    sandbox = sdk.Sandbox.create(*WAIT, app=app, image=image)
    assert sandbox.exec("cat", "/made").stdout.read() == "made\n"
    sandbox.terminate()


def test_the_network_is_open_closed_or_open_to_a_few(app: Any) -> None:
    def routes(**how: Any) -> str:
        with made(app, **how) as sandbox:
            text: str = sandbox.exec("sh", "-c", "ls /sys/class/net; cut -f 2,8 /proc/net/route").stdout.read()
            return text

    assert "00000000\t00000000" in routes()  # a way to everywhere
    assert routes(block_network=True).split() == ["lo", "Destination", "Mask"]
    few = routes(outbound_cidr_allowlist=["198.51.100.0/24"])
    assert "006433C6\t00FFFFFF" in few
    assert "00000000\t00000000" not in few


def test_nothing_stays_behind(podman: Podman, modal: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandboxes(podman) as sandboxes:
        for name, value in sandboxes.env.items():
            monkeypatch.setenv(name, value)
        _Client.set_env_client(None)  # the SDK remembers whom it talks to
        app = sdk.App.lookup("tests", create_if_missing=True)
        sandbox = sdk.Sandbox.create(*WAIT, app=app, image=sdk.Image.debian_slim())
        sandbox.snapshot_filesystem()
        _Client.set_env_client(None)
        # Others use the same storage at the same time.
        container = ("ps", "--all", "--quiet", "--filter", f"name={sandbox.object_id}")
        images = ("images", "--quiet", "--filter", f"label={OWNER}={sandboxes.pid}")
        assert podman.run(*container)
        assert podman.run(*images)
    assert podman.run(*container) == ""
    assert podman.run(*images) == ""
