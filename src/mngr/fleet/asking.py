"""The question about all agents of a host, as it goes there. Other machines are asked first and all at once: what reads
their answers, and what this machine says itself, is there by the time that they come. Hence this imports little."""

from __future__ import annotations

import os
import sys

from mngr import hosts, tmux
from mngr.errors import MngrError
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mngr.fleet.fleet import Fleet
    from mngr.hosts.lines import Question
    from mngr.process import Child

TMUX = "tmux"
FAR = 10.0  # seconds that a host elsewhere has to answer: what one that is down costs a list
_ahead: list[tuple[str, Child]] = []  # on this machine: the script, and who does it


def question(*, of: str = "") -> str:
    """Without what every script begins with. `of` tmux itself: where it must say more than who lives."""
    return f"{hosts.read_script(__file__, 'survey.sh')}\nASK={of} FIELDS={quote(tmux.PANE_FIELDS)}\nsurvey"


def ask_ahead() -> None:
    """This machine, and those that a connection is kept open to, before anything is known of who is there: when it
    turns out that somebody is, they have been asked. Whom nobody wants to hear is let go with our end."""
    from mngr.home import home_path
    from mngr.hosts.sockets import latest_connections

    shells: dict[str, Child | None] = {}
    if connections := latest_connections():
        from mngr.hosts.lifeline import FAR_SHELL
        from mngr.hosts.mux import ask_ahead as open_ahead

        shells = {name: open_ahead(path, FAR_SHELL) for name, path in connections.items()}
    home = home_path()
    if shells:
        _tell(shells, home)
    from mngr.hosts.local import LocalHost

    here = LocalHost(home)
    script = hosts.script_for(here, question())
    _ahead.append((script, here.start(script, [])))


def _tell(shells: dict[str, Child | None], home: str) -> None:
    from mngr.hosts.lines import tell_ahead
    from mngr.hosts.place import Places

    places = Places(home)
    for name, shell in shells.items():
        try:
            place = places.find(name)
            if shell is not None and place is not None and place.home:
                tell_ahead(shell, hosts.script_for(place, question()))
        except MngrError:
            continue  # who needs it tells that


def asked_here(script: str) -> Child | None:
    """The process on this machine that does it already."""
    return _ahead.pop()[1] if _ahead and _ahead[-1][0] == script else None


def forget_ahead() -> None:
    """What was asked ahead is not wanted: nobody may take an answer of then for one of now."""
    while _ahead:
        child = _ahead.pop()[1]
        for fd in (child.stdout, child.stderr):
            if fd is not None:
                os.close(fd)
        child.end()
    forget_far()


def forget_far() -> None:
    if mux := sys.modules.get("mngr.hosts.mux"):
        mux.forget_ahead()


def begin(fleet: Fleet, far: Iterable[str]) -> tuple[dict[str, Question], dict[str, MngrError]]:
    """What is under way on each of these hosts, and why others cannot be asked. One is in neither that cannot be asked
    without waiting."""
    asked: dict[str, Question] = {}
    silent: dict[str, MngrError] = {}
    try:
        for name in far:
            try:
                host = fleet.host(name)
                script = hosts.script_for(host, question())
                if host.lines is not None and (begun := host.lines.begin_at_once(script, deadline=FAR)):
                    asked[name] = begun
            except MngrError as error:
                silent[name] = error
        forget_far()  # those that nobody is at
    except BaseException:
        drop(asked)
        raise
    return asked, silent


def as_answered(asked: Mapping[str, Question]) -> Iterator[str]:
    """Each when its answer can be had."""
    from mngr.hosts.lines import first

    left = dict(asked)
    while left:
        over = first(left.values())
        name = next(name for name, question in left.items() if question is over)
        del left[name]
        yield name


def drop(asked: Mapping[str, Question]) -> None:
    """Of those that were not answered, nobody wants to hear any more."""
    for each in asked.values():
        each.drop()
