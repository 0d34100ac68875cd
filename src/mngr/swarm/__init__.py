"""The swarm: many agents, one task each. A plugin of mngr's own that is found and used like a stranger's; and, for
pipelines of your own, what docs/swarm.md makes one of. Everything else in here may change.

Names are resolved when they are used, since this module is read to find its verbs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.swarm.api import resume as resume
    from mngr.swarm.api import run as run
    from mngr.swarm.recipe import Check as Check
    from mngr.swarm.recipe import Home as Home
    from mngr.swarm.recipe import Judgement as Judgement
    from mngr.swarm.recipe import Piece as Piece
    from mngr.swarm.recipe import Recipe as Recipe

_HOME = {
    "run": "api",
    "resume": "api",
    "Recipe": "recipe",
    "Piece": "recipe",
    "Home": "recipe",
    "Check": "recipe",
    "Judgement": "recipe",
}
__all__ = list(_HOME)


def mngr_commands() -> dict[str, str]:
    return {
        "swarm run": "mngr.cli.swarm_run:run",
        "swarm estimate": "mngr.cli.swarm_run:estimate",
        "swarm status": "mngr.cli.swarm_status:status",
        "swarm list": "mngr.cli.swarm_status:list_",
        "swarm show": "mngr.cli.swarm_show:show",
        "swarm resume": "mngr.cli.swarm_run:resume",
        "swarm integrate": "mngr.cli.swarm_integrate:integrate",
        "swarm set": "mngr.cli.swarm_set:set_",
        "swarm cancel": "mngr.cli.swarm_set:cancel",
    }


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"mngr.swarm has no {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mngr.swarm.{_HOME[name]}"), name)
