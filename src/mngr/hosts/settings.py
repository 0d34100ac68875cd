"""What the configuration says about hosts (`[providers.NAME]`, `[hosts.NAME]`), below what `--with` gave for one of
them. Values are texts; of those that can be many, each has a line of its own."""

from __future__ import annotations

import os

from mngr import config
from mngr.config_keys import Misfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.hosts.place import Place

_FOR_ALL = ("home", "options")
_PATHS = ("dockerfile",)  # meant from where they are written


def defaults(provider: str, known: Iterable[str]) -> dict[str, str]:
    """For new hosts of this provider, whose options are `known`. Raises Misfit for what it has no use for."""
    settings, table = config.load(), f"providers.{provider}"
    found = {}
    for key, value in settings.table(table).items():
        if key in _FOR_ALL:
            continue
        origin = settings.origin(f"{table}.{key}")
        if key not in known:
            raise Misfit(f"{table}.{key}", f"is no option of {provider} hosts", "remove it", origin)
        found[key] = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        if key in _PATHS and os.path.isabs(origin):
            found[key] = os.path.join(os.path.dirname(origin), os.path.expanduser(found[key]))
    for key in options(provider):
        if key not in known:
            origin = settings.origin(f"{table}.options")
            raise Misfit(f"{table}.options", f"has {key} in it, which is no option of {provider} hosts", None, origin)
    return {**options(provider), **found}


def options(provider: str) -> dict[str, str]:
    """The table `options`, for providers whose options are not in the table of keys."""
    given = config.load().get(f"providers.{provider}.options")
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def of_machine(host: str) -> dict[str, str]:
    """`[hosts.HOST]`: how ssh reaches it."""
    return {key: str(value) for key, value in config.load().table(f"hosts.{host}").items()}


def home_there(place: Place) -> str:
    """Where mngr's files are to be on that host; "" when nobody said it. Hosts that share a file system (namespaces of
    one machine, say) need homes of their own, so that `{host}` stands for the host's name."""
    wish = place.options.get("home")
    if wish is None and place.provider == "ssh":
        wish = of_machine(place.host).get("home")
    if wish is None:
        wish = config.load().text(f"providers.{place.provider}.home") or ""
    return wish.replace("{host}", place.host)
