"""Prompts are files: ours lie in `prompts/` beside the code that uses them; a user's own, `prompts/NAME.md` in
MNGR_HOME, take their place."""

from __future__ import annotations

import os

from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find(home: str, beside: str, name: str) -> str:
    """The path of the prompt that counts; `beside` is the file of the code that uses it."""
    theirs = os.path.join(home, "prompts", f"{name}.md")
    return theirs if os.path.exists(theirs) else os.path.join(os.path.dirname(beside), "prompts", f"{name}.md")


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise MngrError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def filled(path: str, values: Mapping[str, str]) -> str:
    """A prompt with its values put in, `$name` by `$name`."""
    from string import Template

    try:
        return Template(read(path)).substitute(values).strip() + "\n"
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${key}" for key in values)
        raise MngrError(f"{path}: {error}", f"it may use {known}; a dollar sign itself is $$") from None
