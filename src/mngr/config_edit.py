"""Changing one key of a configuration file, for `config set` and `config unset`.

Comments and order are the user's and stay (tomlkit); the new file is renamed into place under a lock, so that parallel
edits lose nothing; and it is read back first: an edit that would alter anything but its key is refused."""

from __future__ import annotations

import os

from mngr.config import forget, read_toml, user_file
from mngr.errors import MngrError
from mngr.home import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    Tree = MutableMapping[str, object]


def set_in_file(path: str, key: str, value: object) -> None:
    """Raises MngrError when the file cannot be read, edited or written."""

    def put(tree: Tree) -> None:
        part, *below = key.split(".")
        while below and part in tree:
            tree = _table(tree[part], path, part)
            part, *below = below
        fresh = value
        for name in reversed(below):
            fresh = {name: fresh}
        tree[part] = fresh  # all of it at once: tomlkit knows then whether the new tables must be inline

    _edit(path, put)


def unset_in_file(path: str, key: str) -> bool:
    """False, and the file untouched, when it does not hold the key."""
    *above, last = key.split(".")
    tree: object = read_toml(path)[1]
    for part in (*above, last):
        if not isinstance(tree, dict) or part not in tree:
            return False
        tree = tree[part]

    def take(tree: Tree) -> None:
        for part in above:
            if part not in tree:
                return
            tree = _table(tree[part], path, part)
        tree.pop(last, None)

    _edit(path, take)
    return True


def _table(value: object, path: str, name: str) -> Tree:
    if not hasattr(value, "setdefault"):
        raise MngrError(f"{name} in {path} is not a table", "edit the file by hand")
    return value  # type: ignore[return-value]


def _edit(path: str, change: Callable[[Tree], None]) -> None:
    """The change is made twice, to the file and to the plain values it holds; both must agree."""
    import tomllib

    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    real = os.path.realpath(path)  # a dotfiles manager's symlink stays one
    try:
        os.makedirs(home_path(), mode=0o700, exist_ok=True)
        lock = _lock(os.path.join(home_path(), "config.lock"))
    except OSError as error:
        raise MngrError(f"cannot lock {home_path()}: {error.strerror}") from error
    try:
        text, wanted = read_toml(real)
        change(wanted)
        try:
            document = tomlkit.parse(text if text.endswith("\n") or not text else text + "\n")
            change(document)
            edited = tomlkit.dumps(document)
            faithful = _filled(tomllib.loads(edited)) == _filled(wanted)
        except (TOMLKitError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            faithful = False
        if not faithful:
            raise MngrError(f"cannot edit {path} without disturbing the rest of it", "edit the file by hand")
        _replace(real, edited)
    except OSError as error:
        raise MngrError(f"cannot write {path}: {error.strerror}") from error
    finally:
        os.close(lock)
    forget()


def _filled(tree: object) -> object:
    """Without the tables that hold nothing: the one that an unset key leaves behind may stay or go."""
    if not isinstance(tree, dict):
        return tree
    held = {name: _filled(value) for name, value in tree.items()}
    return {name: value for name, value in held.items() if value != {}}


def _lock(path: str) -> int:
    import fcntl

    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed; a killed process lets go as well
    return lock


def _replace(path: str, text: str) -> None:
    """All or nothing, with the permissions that the file had; a user's own file may hold secrets for agents."""
    mode = 0o600 if path == os.path.realpath(user_file()) else 0o666
    draft = f"{path}.{os.urandom(4).hex()}.tmp"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        if os.path.exists(path):
            os.fchmod(file, os.stat(path).st_mode & 0o777)
        data = text.encode()
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
        os.rename(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    finally:
        os.close(file)
