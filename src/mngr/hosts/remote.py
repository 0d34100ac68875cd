"""A host that is reached through another program: ssh, podman exec, kubectl exec, our own bridge. A provider says which
words stand before the script; all else is here."""

from __future__ import annotations

import binascii

from mngr import process
from mngr.hosts.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts.place import Place


class Remote:
    starts_slowly = False  # before anything goes to the host

    def __init__(self, place: Place, words: Callable[[str, bool], list[str]]) -> None:
        """`words(script, tty)`: the command line that runs it there."""
        self.name, self.home, self.socket = place.name, place.home, place.socket
        self._words = words
        self.lines: Lines | None = Lines(place.name, self.three_pipes, is_slow=self.starts_slowly)

    def argv(self, script: str, args: list[str], *, tty: bool = False) -> list[str]:
        return self._words(self.with_args(script, args), tty)

    def with_args(self, script: str, args: list[str]) -> str:
        """As one text: not every program passes words on as they are. Nor bytes that are no text, as names of files can
        have them: these go in another form."""
        text = (f"set -- {' '.join(map(process.quote, args))}\n" if args else "") + script
        return text if _is_text(text) else f'eval "$(echo {encoded(text)} | base64 -d)"'

    def start(
        self,
        script: str,
        args: list[str],
        *,
        stdin: int = process.NULL,
        stdout: int = process.PIPE,
        stderr: int = process.PIPE,
    ) -> process.Child:
        return process.start(self.argv(script, args), stdin=stdin, stdout=stdout, stderr=stderr)

    def three_pipes(self, script: str, surely: bool) -> process.Child:
        """What starts as a process begins in any case."""
        return self.start(script, [], stdin=process.PIPE)


def encoded(text: str) -> str:
    """In base64, as one word for any shell."""
    return binascii.b2a_base64(text.encode("utf-8", "surrogateescape"), newline=False).decode()


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
