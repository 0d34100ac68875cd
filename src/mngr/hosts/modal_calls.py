"""What we ask of Modal beside running scripts: functions over its SDK, in the process that has it (modal_server.py).
They take and give what JSON has, and raise what modal_errors.py explains."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.hosts import modal_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAIN = ("sh", "-c", "while sleep 3600; do :; done")  # does nothing but wait, and collects what others leave
_NEEDED = ("tmux", "git", "procps", "ca-certificates")  # beyond what the smallest Debian has


def answer(name: str, words: list[Any], sandbox: str) -> dict[str, Any]:
    try:
        return {"given": CALLS[name](modal_errors.sdk(), *words)}
    except Exception as error:  # noqa: BLE001 - raised again by who asked
        told = modal_errors.explain(error, sandbox)
        return {"error": type(told).__name__, "message": told.message, "hint": told.hint}


def find(modal: Any, app: str, tags: dict[str, str], key: str) -> dict[str, str]:
    """Those with these tags that run: what each has under `key`, and its id."""
    try:
        found = modal.App.lookup(app)
    except modal.exception.NotFoundError:
        return {}
    listed = modal.Sandbox.list(app_id=found.app_id, tags=tags)
    return {sandbox.get_tags().get(key, ""): sandbox.object_id for sandbox in listed}


def create(
    modal: Any,
    host: str,
    app: str,
    name: str,
    tags: dict[str, str],
    image: list[str],
    secrets: list[str],
    rest: dict[str, Any],
) -> str:
    try:
        sandbox = modal.Sandbox.create(
            *_MAIN,
            app=modal.App.lookup(app, create_if_missing=True),
            name=name,
            tags=tags,
            image=_image(modal, *image),
            secrets=[modal.Secret.from_name(secret) for secret in secrets],
            **rest,
        )
    except modal.exception.AlreadyExistsError:
        raise MngrError(f"there is a sandbox for {host}.modal already", "see mngr host list --discover") from None
    return str(sandbox.object_id)


def undo(name: str, answer: dict[str, Any]) -> None:
    if name == "create" and "given" in answer:
        modal_errors.sdk().Sandbox.from_id(answer["given"]).terminate()


def _image(modal: Any, kind: str, what: str) -> Any:
    if kind == "dockerfile":
        return modal.Image.from_dockerfile(what, context_dir=what.rpartition("/")[0])
    if what == "debian":
        return modal.Image.debian_slim().apt_install(*_NEEDED)
    return modal.Image.from_id(what) if what.startswith("im-") else modal.Image.from_registry(what)


def named(modal: Any, app: str, name: str) -> str:
    return str(modal.Sandbox.from_name(app, name).object_id)


def is_running(modal: Any, id: str) -> bool:
    return modal.Sandbox.from_id(id).poll() is None


def snapshot(modal: Any, id: str, timeout: int) -> str:
    return str(modal.Sandbox.from_id(id).snapshot_filesystem(timeout=timeout, ttl=None).object_id)


def terminate(modal: Any, id: str, app: str, name: str) -> None:
    """The one with that id; or, without an id, with that name."""
    found = modal.Sandbox.from_id(id) if id else modal.Sandbox.from_name(app, name)
    found.terminate(wait=True)


def take_back(modal: Any, app: str, name: str, key: str, value: str) -> None:
    """Terminates the one with that name, if it has that tag."""
    found = modal.Sandbox.from_name(app, name)
    if found.get_tags().get(key) == value:
        found.terminate(wait=True)


CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call for call in (find, create, named, is_running, snapshot, terminate, take_back)
}
