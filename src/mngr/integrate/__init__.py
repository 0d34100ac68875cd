"""The integration: the work of many branches as one linear branch that a person can review. Its steps are functions of
the branches alone (docs/architecture.md has them in order), and the user's repository sees nothing of them but the
branch, at the very end.

Names are resolved when they are used: the verbs are read for help and completion without any of this."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.integrate.api import integrate as integrate
    from mngr.integrate.wanted import Wanted as Wanted

_HOME = {"integrate": "api", "Wanted": "wanted"}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"mngr.integrate has no {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mngr.integrate.{_HOME[name]}"), name)
