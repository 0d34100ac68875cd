"""The conflicts of an integration that nobody has solved yet, each in a work dir of its own (conflict.py): taking what
was solved meanwhile, and clearing away what is no conflict any more.

A tree that was committed there and found no good is remembered: only something else counts as solved."""

from __future__ import annotations

import os
import shutil

from mngr.errors import MngrError
from mngr.integrate.solving.conflict import PLACE, close, is_worked_on, load, make_room, said_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.integrate.solving.conflict import Closed, Opened
    from mngr.integrate.solving.resolutions import Resolutions

_REFUSED = os.path.join(".git", "mngr-refused")  # the tree of a resolution that was no good
_AGENT = os.path.join(".git", "mngr-agent")  # who works on it; as long as it is there, what is committed is not final


def take_solved(directory: str, resolutions: Resolutions, say: Callable[[str], None] = lambda _: None) -> int:
    """Records what people have solved since the last integration, and removes the work dirs of it: how many. Where an
    agent is at work nothing is taken: it may not be done."""
    taken = 0
    for opened in opened_in(directory):
        if worker(opened):
            continue
        closed = close(opened)
        if closed.tree and closed.tree == refused(opened):
            say(f"{opened.name} is not solved: what is committed in {opened.directory} was found no good before")
            continue
        if closed.problem:
            if is_worked_on(opened):
                say(f"{opened.name} is not solved in {opened.directory}: {closed.problem}")
            continue
        record(opened, closed, resolutions, by="hand", why=said_by(opened))
        say(f"{opened.name} ({opened.subject}) was solved by hand")
        taken += 1
    return taken


def record(opened: Opened, closed: Closed, resolutions: Resolutions, *, by: str, why: str) -> None:
    """From here on it is known, and the work dir is not needed any more."""
    resolutions.put(opened.key, closed.files, by, why, closed.before, closed.sides)
    shutil.rmtree(opened.directory, ignore_errors=True)


def opened_in(directory: str) -> list[Opened]:
    place = os.path.join(directory, PLACE)
    names = sorted(os.listdir(place)) if os.path.isdir(place) else []
    return [found for name in names if (found := load(os.path.join(place, name)))]


def keep_only(directory: str, open_still: Iterable[str], say: Callable[[str], None] = lambda _: None) -> None:
    """Removes the work dirs of conflicts that are none any more; `open_still` are the names of groups. Those in which
    somebody has worked stay."""
    wanted = set(open_still)
    for opened in opened_in(directory):
        if opened.name not in wanted:
            make_room(opened.directory, opened, say)
    try:
        os.rmdir(os.path.join(directory, PLACE))
    except OSError:
        pass  # there are some, or there never was one


# Marks


def worker(opened: Opened) -> str:
    """The agent that works on it, or had it when whoever watched it was killed."""
    return _mark(opened, _AGENT)


def refused(opened: Opened) -> str:
    return _mark(opened, _REFUSED)


def mark_worker(opened: Opened, agent: str) -> None:
    _set_mark(opened, _AGENT, agent)


def refuse(opened: Opened, tree: str) -> None:
    """What is committed there now is no good, or nobody knows: only something else counts."""
    _set_mark(opened, _REFUSED, tree)


def _mark(opened: Opened, name: str) -> str:
    try:
        with open(os.path.join(opened.directory, name), encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def _set_mark(opened: Opened, name: str, value: str) -> None:
    path = os.path.join(opened.directory, name)
    try:
        if value:
            with open(path, "w", encoding="ascii") as file:
                file.write(value + "\n")
        elif os.path.exists(path):
            os.remove(path)
    except OSError as error:
        raise MngrError(f"{path} cannot be written: {error.strerror}") from None
