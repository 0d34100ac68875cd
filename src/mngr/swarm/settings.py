"""What a run can be tuned by, when it begins (`swarm run --max-agents 20`) and while it goes on (`swarm set RUN
max-agents=30`): one table of names, how their values are read, and what they mean."""

from __future__ import annotations

from mngr.errors import UsageError
from mngr.grammar import duration
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

AUTO = "auto"
_NO_END = float("inf")
KEEP = ("none", "failed", "all")


class Setting(Record):
    name: str  # as it is typed
    word: str  # for its value, in help texts
    help: str
    read: Callable[[str], Any]
    default: Any = None


def _number(low: float, high: float = _NO_END) -> Callable[[str], float]:
    def read(text: str) -> float:
        value: float = _parsed(float, text)
        if not low <= value <= high:
            raise ValueError(f"a number between {low:g} and {high:g}" if high < _NO_END else f"at least {low:g}")
        return value

    return read


def _parsed(kind: Callable[[str], Any], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError("a whole number" if kind is int else "a number") from None


def _count(low: int) -> Callable[[str], int]:
    return lambda text: int(_number(low)(str(_parsed(int, text))))


def _agents(text: str) -> int | str:
    return AUTO if text == AUTO else _count(1)(text)


def _money(text: str) -> float | None:
    bare = text.strip().lower().removesuffix("usd").removeprefix("$").strip()
    return None if bare == "none" else _number(0)(bare)


def _tokens(text: str) -> int | None:
    bare = text.strip().lower()
    if bare == "none":
        return None
    factor = {"k": 1_000, "m": 1_000_000}.get(bare[-1:], 1)
    return int(_number(0)(bare.rstrip("km")) * factor)


def _time(text: str) -> float:
    return _number(0.1)(str(duration(text)))


def _keep(text: str) -> str:
    if text not in KEEP:
        raise ValueError(f"one of {', '.join(KEEP)}")
    return text


SETTINGS = (
    Setting(
        name="max-agents",
        word="N",
        help="agents at work at the same time; auto finds out what the account can take",
        read=_agents,
        default=AUTO,
    ),
    Setting(name="budget", word="USD", help="what all agents together may cost: 20usd", read=_money),
    Setting(
        name="max-tokens",
        word="N",
        help="tokens that all agents together may use, those read from a cache not counted: 5m",
        read=_tokens,
    ),
    Setting(name="timeout", word="TIME", help="an agent's time for its task", read=_time, default=3600.0),
    Setting(
        name="stuck-after",
        word="TIME",
        help="so long without a word, a change on the screen or work of the processor, and an agent is stuck",
        read=_time,
        default=300.0,
    ),
    Setting(
        name="wind-down",
        word="TIME",
        help="when the budget is used up, running agents have so long to finish",
        read=_time,
        default=300.0,
    ),
    Setting(name="retries", word="N", help="new tries after a failure of the machine", read=_count(0), default=2),
    Setting(
        name="alert-after",
        word="N",
        help="so many endings at the same stage are a pattern, for the breaker and --alert-command",
        read=_count(2),
        default=3,
    ),
    Setting(name="alert-command", word="CMD", help="run once for each such pattern, told in $MNGR_ALERT", read=str),
    Setting(
        name="keep",
        word="WHICH",
        help="agents that are not destroyed: none, failed or all",
        read=_keep,
        default="failed",
    ),
    Setting(
        name="per-host",
        word="N",
        help="agents that share a host that is made for them, as with --at .docker",
        read=_count(1),
        default=1,
    ),
    Setting(
        name="min-memory",
        word="PERCENT",
        help="no agent is started on a host that has less memory free",
        read=_number(0, 100),
        default=10.0,
    ),
    Setting(
        name="max-load",
        word="N",
        help="no agent is started on a host with a higher load for each of its cores",
        read=_number(0.1),
        default=4.0,
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


def defaults() -> dict[str, Any]:
    return {setting.name: setting.default for setting in SETTINGS}


def read(name: str, text: str) -> Any:
    """The value. UsageError when there is no such setting, or the text is no value for it."""
    name = name.replace("_", "-")
    if name not in BY_NAME:
        from mngr.address import nearest

        close = nearest(name, list(BY_NAME))
        raise UsageError(
            f"there is no setting {name!r}", f"did you mean {close}?" if close else f"one of {', '.join(BY_NAME)}"
        )
    try:
        return BY_NAME[name].read(text)
    except ValueError as error:
        raise UsageError(f"{name} takes {error}, not {text!r}") from None
