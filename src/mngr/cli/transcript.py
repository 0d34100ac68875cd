"""transcript: the conversation of an agent, as text for people or as entries for programs."""

from __future__ import annotations

import sys
import time
from itertools import islice

from mngr.cli.output import JSON_OPTIONS, as_json, clean, colour, notice
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.select import one_ref
from mngr.fleet.transcript import ROLES, Transcript
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.agents.log import Entry
    from mngr.grammar import Args

_LINES, _WIDTH = 5, 100  # how much people are shown of what was not said to anybody
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt", "description")
_SHADES = {"user": "1;36", "assistant": "1;32", "tool": "2", "system": "33"}


@command(
    "transcript",
    summary="print the conversation of an agent",
    usage=["transcript AGENT [--follow] [--head N | --tail N] [--role ROLES] [--full] [--json | --jsonl]"],
    about="""Prints what the user, the model and its tools have said and done, all conversations of the agent in their
order; with --follow it goes on with what is said, until Ctrl-C. Thoughts, notices and the outputs of tools are
shortened to a few lines, unless --full is given. It is read from the log that the agent's program keeps, so the agent
need not run.

--json and --jsonl print every entry whole, in one form for all programs; --schema describes it. Records of kinds that
mngr does not know are skipped, and counted in a line on standard error.""",
    arguments=[Argument(name="AGENT", help="the agent's name", optional=True, completes="agents")],
    options=[
        option("-f, --follow", "go on with what is said"),
        option("--head N", "only the first N entries"),
        option("--tail N", "only the last N entries"),
        option("--role ROLES", f"only entries of these, of {','.join(ROLES)}"),
        option("--full", "shorten nothing"),
        *JSON_OPTIONS,
        option("--schema", "print the JSON Schema of an entry"),
    ],
    examples=[
        ("mngr transcript fix-login --tail 20", "what it did last"),
        ("mngr transcript fix-login --role user,assistant", "what was said, without what tools gave back"),
        ("mngr transcript fix-login --follow --jsonl", "a stream for a script"),
    ],
)
def transcript(args: Args) -> int:
    if args.flag("schema"):
        from mngr.agents import log
        from mngr.hosts import read_script

        print(read_script(log.__file__, "transcript.schema.json"), end="")
        return 0
    if not args.words:
        raise UsageError("transcript needs AGENT", f"usage: mngr {args.command.usage[0]}")
    follow, head, tail = args.flag("follow"), args.count("head", 0), args.count("tail", 0)
    if head and tail:
        raise UsageError("--head and --tail exclude each other")
    if follow and args.flag("json"):
        raise UsageError("--json prints one list, and --follow has no end", "use --jsonl")
    fleet = Fleet()
    record = Transcript(fleet, one_ref(fleet, args.words[0]), _roles(args.text("role")))
    entries = islice(record.entries(last=tail or None, follow=follow), head or None)
    try:
        for text in _texts(entries, args):
            sys.stdout.write(text)
            if follow:
                sys.stdout.flush()
    except KeyboardInterrupt:
        _remark(record)  # the usual end of --follow
        raise
    sys.stdout.flush()
    _remark(record)
    return 0


def _remark(record: Transcript) -> None:
    for text in record.remarks():
        notice(clean(text))


def _roles(given: str | None) -> tuple[str, ...]:
    roles = tuple(given.split(",")) if given else ROLES
    for role in roles:
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", f"one of {', '.join(ROLES)}")
    return roles


def _texts(entries: Iterator[Entry], args: Args) -> Iterator[str]:
    if args.flag("jsonl"):
        yield from (f"{_json(entry)}\n" for entry in entries)
    elif args.flag("json"):
        before = "[\n"
        for entry in entries:
            yield before + _json(entry)
            before = ",\n"
        yield "\n]\n" if before[0] == "," else "[]\n"
    else:
        yield from (_text(entry, full=args.flag("full")) for entry in entries)


def _json(entry: Entry) -> str:
    """As it is, on one line."""
    return as_json({**entry.to_dict(), "usage": entry.usage.to_dict() if entry.usage else None})


def _text(entry: Entry, *, full: bool) -> str:
    """A line that says who and when, and below it, indented, what was said: no text can pass for such a line."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time)) if entry.time is not None else "?"
    words = [stamp, colour(f"subagent's {entry.role}" if entry.side else entry.role, _SHADES[entry.role])]
    if entry.tool:
        words.append(clean(entry.tool))
    if entry.kind in ("thinking", "error"):
        words.append(entry.kind)
    if entry.failed:
        words.append("failed")
    body = entry.text
    if entry.kind == "tool_call":
        body = _inputs(entry.input) if full else ""
        words += [] if full else [_preview(entry.input)]
    short = not full and entry.kind not in ("message", "error")
    return "".join(f"{line}\n" for line in ("  ".join(words).rstrip(), *_lines(body, short=short)))


def _lines(text: str, *, short: bool) -> list[str]:
    if "\x1b" in text:
        text = _without_colours(text)
    lines = text.replace("\r\n", "\n").expandtabs().strip("\n").split("\n") if text else []
    if short:
        more = len(lines) - _LINES
        lines = [_cut(line) for line in lines[:_LINES]] + ([f"... {more} more lines"] if more > 0 else [])
    return [f"  {clean(line)}".rstrip() for line in lines]


def _preview(given: object) -> str:
    """The one input that tells most, on one line."""
    telling = [given[key] for key in _TELLING if isinstance(given.get(key), str)] if isinstance(given, dict) else []
    return clean(_cut(" ".join((telling[0] if telling else _value(given)).split())))


def _inputs(given: object) -> str:
    if not isinstance(given, dict):
        return _value(given)
    return "\n".join(f"{key}: {_value(value)}" for key, value in given.items())


def _value(given: object) -> str:
    import json

    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "..."


def _without_colours(text: str) -> str:
    import re

    return re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))", "", text)
