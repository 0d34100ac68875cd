"""Values of configuration keys: whether one fits its key, what a typed text means for it, how it is shown.
The kinds of values are a closed set, so that each layer (files, variables, -S) obeys the same rules."""

from __future__ import annotations

from mngr.address import is_name
from mngr.config_keys import Key, Misfit, check_not_ours, is_variable, pick, template_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = {
    "text": "a text",
    "list": "a list of texts",
    "number": "a number from 0 to 1e9",
    "flag": "true or false",
    "word": "a text or a number",  # an option that takes a value: `timeout = 30` and `timeout = "30s"` are both natural
    "env": "a table of texts, each under the name of an environment variable",
    "texts": "a table of texts",
    "options": "a table of options of create",
    "option": "what that option takes",
}


def check(key: str, value: object, declared: Key) -> None:
    """Raises Misfit when the value is not of the key's type."""
    if not _FITS[declared.kind](value):
        raise Misfit(key, f"must be {KINDS[declared.kind]}")
    if declared.choices and not set(value if isinstance(value, list) else [value]) <= set(declared.choices):
        raise Misfit(key, f"must be one of {', '.join(declared.choices)}")
    if declared.kind == "env":
        assert isinstance(value, dict)
        for name in value:
            check_not_ours(f"{key}.{name}")
    if declared.kind == "options":
        assert isinstance(value, dict)
        known = template_keys() if value else {}
        for name, inner in value.items():
            check(f"{key}.{name}", inner, pick(f"{key}.{name}", name, known, "an option of create"))


def from_text(key: str, text: str, declared: Key, *, quoted: bool = False) -> object:
    """What a value typed on a command line or in a variable means for this key. With `quoted`, a text may be a TOML
    string: shells strip quotes from words, but env files often keep them. Raises Misfit."""
    value = _READ[declared.kind](text)
    if quoted and declared.kind in ("text", "word") and text[:1] in ("'", '"') and isinstance(_toml(text), str):
        value = _toml(text)
    check(key, value, declared)
    return value


def _toml(text: str) -> object:
    """The value, or None when the text is not exactly one TOML value."""
    import tomllib

    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return read["value"] if list(read) == ["value"] else None


def _read_list(text: str) -> object:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return _toml(text)
    return [item.strip() for item in text.split(",") if item.strip()]


def _read_number(text: str) -> object:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return None


_READ: dict[str, Callable[[str], object]] = {
    "text": str,
    "word": str,
    "list": _read_list,
    "number": _read_number,
    "flag": {"true": True, "false": False}.get,
    "env": _toml,
    "texts": _toml,
    "options": _toml,
}


def _is_text(value: object) -> bool:
    """NUL and undecodable bytes can be neither stored nor handed to a program."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9


def _is_env(value: object) -> bool:
    return isinstance(value, dict) and all(is_variable(name) and _is_text(text) for name, text in value.items())


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(is_name(name) and _is_text(text) for name, text in value.items())


_FITS: dict[str, Callable[[object], bool]] = {
    "text": _is_text,
    "word": lambda value: _is_text(value) or _is_number(value),
    "list": lambda value: isinstance(value, list) and all(_is_text(item) for item in value),
    "number": _is_number,
    "flag": lambda value: isinstance(value, bool),
    "env": _is_env,
    "texts": _are_texts,
    "options": lambda value: isinstance(value, dict),
}


def as_toml(value: object) -> str:
    """The value as TOML on one line, for people to read: no control character survives."""
    if isinstance(value, str):
        return f'"{"".join(_escaped(char) for char in value)}"'
    if isinstance(value, list):
        return f"[{', '.join(as_toml(item) for item in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_as_name(name)} = {as_toml(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_name(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "a").isalnum()
    return name if bare else as_toml(name)


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    named = {"\n": "\\n", "\t": "\\t"}.get(char)
    return named or (f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}")
