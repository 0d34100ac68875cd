"""message: type a text into agents and press Enter. Sent is not submitted: an outcome says how much is known.

A plain `command` can give no proof beyond its terminal, so its best outcome is `typed`. ESC and control characters but
newline and tab are removed: an embedded end of the bracketed paste would make the terminal act on what follows."""

from __future__ import annotations

import time

from mngr import hosts, jsonline, registry
from mngr.errors import UsageError
from mngr.fleet.outcome import Outcome, per_host, read_lines
from mngr.model import new_id
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

LONGEST_LINE = 4095  # what a terminal in canonical mode takes
_WHY = {
    "dead": ("refused", "its program has ended: mngr start it, or message --start"),
    "missing": ("refused", "it is stopped: mngr start it, or message --start"),
    "toolong": (
        "refused",
        f"a line of more than {LONGEST_LINE} bytes would be cut off by its terminal: send shorter lines",
    ),
    "gone": ("refused", "there is no such agent any more"),
    "silent": ("unknown", "the host did not say what became of it"),
}


def message(fleet: Fleet, refs: Iterable[Ref], text: str | Mapping[str, str], *, start: bool = False) -> list[Outcome]:
    """One round trip per host (two with `start`, which revives those that do not run). `text` is the same for all, or
    for each agent's id its own."""
    refs = list(refs)
    texts = _texts(refs, text)
    refused: list[Outcome] = []
    if start:
        from mngr.fleet.start import start as bring_back

        refused = [outcome for outcome in bring_back(fleet, refs) if not outcome.ok]
        failed = {outcome.id for outcome in refused}
        refs = [ref for ref in refs if ref.id not in failed]
    patience = fleet.config.number("ready_timeout")
    assert patience is not None  # it has a default
    return refused + (
        per_host(fleet, refs, lambda host, group: _send_there(host, group, texts, patience)) if refs else []
    )


def _texts(refs: list[Ref], text: str | Mapping[str, str]) -> dict[str, str]:
    """By id, as they can be typed."""
    if isinstance(text, str):
        texts = dict.fromkeys((ref.id for ref in refs), typeable(text))
    else:
        texts = {ref.id: typeable(text.get(ref.id, "")) for ref in refs}
    if not all(map(str.strip, texts.values())):
        raise UsageError("an empty message", "give the text with -m, --file or on standard input")
    return texts


def _send_there(host: Host, refs: list[Ref], texts: dict[str, str], patience: float) -> list[Outcome]:
    """By kind: a program that can prove a message gets it with evidence, any other has it typed."""
    typed: list[Ref] = []
    proving: dict[str, list[Ref]] = {}
    for ref in refs:
        if registry.type_of(ref).proves:
            proving.setdefault(ref.kind, []).append(ref)
        else:
            typed.append(ref)
    outcomes = _type_there(host, typed, texts) if typed else []
    for group in proving.values():
        from mngr.fleet.deliver import deliver

        outcomes += deliver(host, group, registry.type_of(group[0]), texts, patience)
    return outcomes


def typeable(text: str) -> str:
    """The text as it can be typed: lines end in newlines, the last one in none, since Enter follows."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in text if char in "\n\t" or not (char < " " or "\x7f" <= char < "\xa0")).rstrip("\n")


def _type_there(host: Host, refs: list[Ref], texts: dict[str, str]) -> list[Outcome]:
    ids: dict[str, list[str]] = {}
    for ref in refs:
        ids.setdefault(texts[ref.id], []).append(ref.id)
    lines = [hosts.read_script(__file__, "message.sh"), "umask 077"]
    for text, group in ids.items():
        id = "m" + new_id()
        longest = max(len(line) for line in text.encode("utf-8", "surrogateescape").split(b"\n"))
        entry = jsonline.dumps({"id": id, "time": time.time(), "text": text}).removesuffix("}")
        lines.append(f"text={quote(text)} entry={quote(entry)}")
        lines.append(f"send {id} {longest if longest > LONGEST_LINE else 0} {' '.join(group)}")
    told = read_lines(hosts.check(host, "\n".join(lines), deadline=60, private=True))
    outcomes = []
    for ref in refs:
        word, _ = told.get(ref.id, ("silent", ""))
        did, why = ("typed", "") if word == "typed" else _WHY[word]
        outcomes.append(Outcome(id=ref.id, name=ref.name, did=did, ok=word == "typed", why=why))
    return outcomes
