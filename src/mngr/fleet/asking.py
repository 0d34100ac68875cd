"""The question about all agents of a host, as it goes there. Other machines are asked first and all at once: what reads
their answers, and what this machine says itself, is there by the time that they come. Hence this imports little."""

from __future__ import annotations

from mngr import hosts, tmux
from mngr.errors import MngrError
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mngr.fleet.fleet import Fleet
    from mngr.hosts.lines import Question

_ahead: dict[str, object] = {}  # the shells of hosts that were asked ahead
FAR = 10.0  # seconds that a host elsewhere has to answer: what one that is down costs a list


def question() -> str:
    """Without what every script begins with."""
    return f"{hosts.read_script(__file__, 'survey.sh')}\nFIELDS={quote(tmux.PANE_FIELDS)}\nsurvey"


def ask_ahead() -> None:
    """The machines that a connection is kept open to, before anything is known of who is there: when it turns out that
    somebody is, they have been asked. Whom nobody wants to hear is let go with our end."""
    from mngr.hosts.sockets import latest_connections

    connections = latest_connections()
    if not connections:
        return
    from mngr.hosts.lifeline import FAR_SHELL
    from mngr.hosts.mux import ask_ahead as open_ahead

    shells = {name: open_ahead(path, FAR_SHELL) for name, path in connections.items()}
    _ahead.update(shells)
    from mngr.home import home_path
    from mngr.hosts.lines import tell_ahead
    from mngr.hosts.place import Places

    places = Places(home_path())
    for name, shell in shells.items():
        try:
            place = places.find(name)
            if shell is not None and place is not None and place.home:
                tell_ahead(shell, hosts.script_for(place, question()))
        except MngrError:
            continue  # who needs it tells that


def forget_ahead() -> None:
    """What was asked ahead is not wanted: nobody may take an answer of then for one of now."""
    if _ahead:
        from mngr.hosts.mux import forget_ahead

        _ahead.clear()
        forget_ahead()


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
        forget_ahead()
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
