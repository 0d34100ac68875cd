"""Record: small frozen structs for what is stored or sent, checked when they are read back.

Dataclasses cost 16 ms of import and msgspec 35, on a verb that takes 30: these lines are what we need of them.
Field types are read from the annotations as text; `_CHECKS` lists the few that exist."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    FIELDS: ClassVar[dict[str, str]] = {}
    _blank: ClassVar[dict[str, Any]] = {}  # every field in its order, with its default if it has one
    _needed: ClassVar[frozenset[str]] = frozenset()
    _copied: ClassVar[tuple[str, ...]] = ()  # those whose defaults can change

    def __init_subclass__(cls) -> None:
        own = {k: str(v) for k, v in cls.__dict__.get("__annotations__", {}).items() if "ClassVar" not in str(v)}
        cls.FIELDS = {**cls.FIELDS, **own}
        cls._blank = {field: getattr(cls, field, None) for field in cls.FIELDS}
        cls._needed = frozenset(field for field in cls.FIELDS if not hasattr(cls, field))
        cls._copied = tuple(field for field, value in cls._blank.items() if isinstance(value, dict | list))

    def __init__(self, **values: Any) -> None:
        mine = self.__dict__
        mine.update(self._blank)
        mine.update(values)
        if len(mine) != len(self.FIELDS):
            unknown = [name for name in values if name not in self.FIELDS]
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        if not self._needed <= values.keys():
            missing = next(field for field in self.FIELDS if field in self._needed and field not in values)
            raise TypeError(f"{type(self).__name__} needs {missing}")
        for field in self._copied:
            if field not in values:
                mine[field] = mine[field].copy()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: use replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**self.__dict__, **changes})

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Raises ValueError, naming the field, when `data` is not such a record. Unknown keys come from a newer
        version and are passed over."""
        if not isinstance(data, dict):
            raise ValueError(f"not an object but {type(data).__name__}")
        values = {}
        for field, kind in cls.FIELDS.items():
            if field in data:
                value = values[field] = data[field]
                if type(value) is not _USUAL.get(kind) and not _CHECKS[kind](value):
                    raise ValueError(f"{field} is not {kind}")
            elif field in cls._needed:
                raise ValueError(f"{field} is missing")
        return cls(**values)


def _is_number(value: object) -> bool:
    """Not NaN, infinity nor what has more digits than SQLite keeps: Python reads them, but they are no time."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 53


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _maps_strings(value: object) -> bool:
    return isinstance(value, dict) and (
        not value or all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())
    )


_USUAL = {"str": str, "str | None": str, "bool": bool, "int": int}  # needs no call
_CHECKS = {
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "int | None": lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool)),
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "list[str]": _are_strings,
    "dict[str, str]": _maps_strings,
}
