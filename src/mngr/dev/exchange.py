"""One request and its answer, in words that all protocols share. A protocol (anthropic.py, responses.py, chat.py)
translates between its JSON and these; the script (script.py) decides without knowing which protocol is spoken."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Json = dict[str, Any]
Usage = dict[str, int]
NO_USAGE: Usage = dict.fromkeys(("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"), 0)

# What programs put into user messages on their own account. It is not what the user said.
_BY_THE_PROGRAM = re.compile(
    r"<(system-reminder|environment_context|user_instructions|user_shell_command|turn_aborted)>.*?</\1>|"
    r"^# AGENTS\.md instructions.*|"
    r"^\[Request interrupted by user[^\]]*\]$",
    re.DOTALL,
)


class Item(NamedTuple):
    """A piece of the conversation: `user` said it, a tool gave it as `result`, or the `model` answered it."""

    kind: str
    text: str = ""


@dataclass(frozen=True)
class Turn:
    """What a request asks for."""

    model: str
    tools: list[str]
    items: list[Item]
    conversation: str
    stream: bool
    has_system: bool
    with_usage: bool = True  # in a stream; Chat Completions gives it only on request
    form: tuple[str, ...] = ()  # the members of the JSON that is wanted in place of a text

    @property
    def is_aside(self) -> bool:
        """Programs ask for titles and topics besides the user's turn: with instructions but without tools, or for JSON
        of a certain form."""
        return (self.has_system and not self.tools) or bool(self.form)

    @property
    def said(self) -> list[str]:
        return [item.text for item in self.items if item.kind == "user"]

    @property
    def text(self) -> str:
        """The last thing that the user said since the model's last answer. Not all of it: after an interrupted or
        failed turn, programs send its message once more, together with the new one."""
        return next((item.text for item in reversed(self._news) if item.kind == "user"), "")

    @property
    def result(self) -> str | None:
        return next((item.text for item in reversed(self._news) if item.kind == "result"), None)

    @property
    def _news(self) -> list[Item]:
        answered = [place for place, item in enumerate(self.items) if item.kind == "model"]
        return self.items[answered[-1] + 1 :] if answered else self.items


class Call(NamedTuple):
    name: str
    input: Json | str  # a text for what OpenAI calls custom tools


class Answer(NamedTuple):
    """What a model would have decided: a text, a tool call, or the text and then the call."""

    id: str
    model: str
    say: str
    call: Call | None
    usage: Usage


class Event(NamedTuple):
    """One server-sent event."""

    name: str | None
    data: Json | str
    is_text: bool = False  # a piece of the answer's text: what `pace` and `cut` count


class Wire(Protocol):
    """What each protocol module offers."""

    ID_PREFIX: str

    def read(self, body: Json) -> Turn: ...

    def counted(self, usage: Usage) -> Usage:
        """Without the numbers that this protocol cannot express."""

    def whole(self, answer: Answer) -> Json: ...

    def events(self, answer: Answer, turn: Turn) -> Iterator[Event]: ...

    def error(self, status: int, message: str) -> Json: ...


def new_id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


def key_of(items: list[Item]) -> str:
    """What a conversation is known by when the program gives it no id: how it began."""
    first = next((item.text for item in items if item.kind == "user"), "")
    return hashlib.sha256(first.encode()).hexdigest()[:16]


def pieces(text: str) -> list[str]:
    """As a model streams it: word by word, with nothing lost in between."""
    return re.findall(r"\S+\s*|\s+", text)


def user_items(content: object) -> list[Item]:
    """An item for each text of a user message that is the user's own."""
    own = (_BY_THE_PROGRAM.sub("", text).strip("\n") for text in texts(content))
    return [Item("user", text) for text in own if text.strip()]


def texts(content: object) -> list[str]:
    """Content is a text or a list of blocks in every protocol; blocks that are no text are passed over."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [
        block if isinstance(block, str) else block.get("text") for block in blocks if isinstance(block, dict | str)
    ]
    return [text for text in found if isinstance(text, str)]
