"""mngr as a library: the functions that the command line itself calls. Everything else in the package may change.

    import mngr
    fleet = mngr.Fleet()
    agents = mngr.create(fleet, mngr.Request(address="try", count=5, args=["make", "test"]))
    mngr.wait(fleet, agents)

Names are resolved when they are used, so that importing the package costs nothing. None of them may be the name of a
module in this directory: its import would take the name's place. docs/api.md has a whole map-reduce."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.errors import MngrError as MngrError
    from mngr.fleet.activity import activity as activity
    from mngr.fleet.create import create as create
    from mngr.fleet.destroy import destroy as destroy
    from mngr.fleet.exec import execute_many as execute_many
    from mngr.fleet.files import pull_files as pull_files
    from mngr.fleet.files import push_files as push_files
    from mngr.fleet.fleet import Fleet as Fleet
    from mngr.fleet.follow import Feed as Feed
    from mngr.fleet.gather import gather as gather
    from mngr.fleet.handover import pull as pull
    from mngr.fleet.handover import pull_many as pull_many
    from mngr.fleet.handover import push as push
    from mngr.fleet.hosting import release_hosts as release_hosts
    from mngr.fleet.machine import machine as machine
    from mngr.fleet.message import message as message
    from mngr.fleet.plan import Request as Request
    from mngr.fleet.prepare import prepare as prepare
    from mngr.fleet.screen import capture as capture
    from mngr.fleet.select import Selection as Selection
    from mngr.fleet.select import select as select
    from mngr.fleet.select import statuses as statuses
    from mngr.fleet.start import start as start
    from mngr.fleet.stop import stop as stop
    from mngr.fleet.wait import wait as wait
    from mngr.insight.usage import spent as spent

_HOME = {
    "MngrError": "errors",
    "Fleet": "fleet.fleet",
    "Request": "fleet.plan",
    "create": "fleet.create",
    "prepare": "fleet.prepare",
    "release_hosts": "fleet.hosting",
    "statuses": "fleet.select",
    "Selection": "fleet.select",
    "select": "fleet.select",
    "message": "fleet.message",
    "execute_many": "fleet.exec",
    "wait": "fleet.wait",
    "Feed": "fleet.follow",
    "activity": "fleet.activity",
    "machine": "fleet.machine",
    "spent": "insight.usage",
    "start": "fleet.start",
    "stop": "fleet.stop",
    "destroy": "fleet.destroy",
    "capture": "fleet.screen",
    "pull": "fleet.handover",
    "pull_many": "fleet.handover",
    "push": "fleet.handover",
    "pull_files": "fleet.files",
    "push_files": "fleet.files",
    "gather": "fleet.gather",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"mngr has no {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mngr.{_HOME[name]}"), name)
