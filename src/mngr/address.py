"""Names and addresses: `[NAME][@[HOST][.PROVIDER]]`, and `ADDRESS:PATH` where a file is meant.

Everything a user types to mean an agent or a place comes through here, so that names are checked at the edge and the
rest of the code (shell text, tmux targets, branch names, paths) can rely on their alphabet."""

from __future__ import annotations

import os

from mngr.errors import UsageError
from mngr.record import Record

_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_REST = _FIRST | frozenset("-_")
LONGEST_NAME = 63


class Address(Record):
    name: str | None = None
    host: str | None = None
    provider: str | None = None

    def __str__(self) -> str:
        place = (self.host or "") + (f".{self.provider}" if self.provider else "")
        return (self.name or "") + (f"@{place}" if place else "")


def is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text[0] in _FIRST and _REST.issuperset(text)


def check_name(text: str, what: str = "name") -> str:
    if not is_name(text):
        raise UsageError(
            f"{text!r} is not a valid {what}",
            f"lower-case letters, digits, - and _, at most {LONGEST_NAME}, beginning with a letter or digit",
        )
    return text


def parse_address(text: str) -> Address:
    """`foo`, `foo@box`, `foo@box.ssh`, `foo@.modal`, `@box`. Raises UsageError."""
    name, at, place = text.partition("@")
    host, dot, provider = place.partition(".")
    if at and not place:
        raise UsageError(f"{text!r} names no host after the @", "for example foo@local, foo@box.ssh or foo@.docker")
    if dot and not provider:
        raise UsageError(f"{text!r} names no provider after the dot")
    if name or not at:
        check_name(name)
    if host:
        check_name(host, "host name")
    if provider:
        check_name(provider, "provider name")
    return Address(name=name or None, host=host or None, provider=provider or None)


def split_path(text: str) -> tuple[str, str] | None:
    """`AGENT:PATH` as its two halves, or None when the text is a plain local path.
    A path with a slash before the colon is local, as with scp."""
    head, colon, path = text.partition(":")
    return (head, path) if colon and head and "/" not in head else None


_ADJECTIVES = (
    "able agile amber ample apt azure bold brave brisk bright calm civil clean clear clever coral cosmic crisp cubic "
    "daring deft eager early easy elder even exact fair fast fine firm fleet fond frank fresh gentle glad golden grand "
    "happy hardy honest humble ideal jade jolly keen kind lively lucid lucky lunar main mellow merry mild modern neat "
    "nimble noble polar prime proud quick quiet rapid ready regal ripe robust royal sage sharp shiny silent sleek "
    "smart smooth snug solar solid spry stable steady stout sunny swift tidy true upbeat vast vivid warm wise witty"
).split()
_ANIMALS = (
    "adder badger beaver bison bobcat camel cheetah cobra condor coyote crane crow dingo dolphin eagle egret falcon "
    "ferret finch fox gazelle gecko gibbon hare hawk heron ibex ibis jackal jaguar jay kestrel kiwi koala lark lemur "
    "leopard lion llama lynx macaw magpie marmot marten mole moose newt ocelot octopus orca osprey otter owl panda "
    "panther parrot pelican penguin pika plover puffin puma quail rabbit raven robin salmon seal shark shrew sloth "
    "sparrow squid stoat stork swan tapir tern tiger toucan trout turtle viper vole walrus weasel whale wolf wombat yak"
).split()


def made_up_name() -> str:
    """Two short words: about 8,000 of them; the caller tries again when one is taken."""
    first, second = os.urandom(1)[0], os.urandom(1)[0]
    return f"{_ADJECTIVES[first % len(_ADJECTIVES)]}-{_ANIMALS[second % len(_ANIMALS)]}"


def nearest(word: str, known: list[str]) -> str | None:
    """The known word that the user most likely meant."""
    import difflib  # only on the way to an error message

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return close[0] if close else None
