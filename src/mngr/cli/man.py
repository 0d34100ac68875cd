"""Man pages out of the declarations of the verbs: `python -m mngr.cli.man DIR` writes them, `--check DIR` compares.

The same verbs give the same bytes (no date, only the version), because the pages are committed and checked. Every
hyphen is set as `\\-`: all of it may be copied into a shell, where a typographic hyphen means nothing."""

from __future__ import annotations

import os
import re
import sys

from mngr.cli import help as content
from mngr.errors import MngrError, UsageError
from mngr.grammar import COMMON, Command, Option
from mngr.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD = '.\\" Made by python -m mngr.cli.man from the declarations of the verbs: change those, not this.\n'
_ENVIRONMENT = (
    ("MNGR_HOME", "where mngr keeps what it knows; ~/.mngr when unset"),
    ("NO_COLOR", "when set, no bold and no colours on the terminal"),
    ("PAGER", "shows help pages that are longer than the screen; less when unset"),
)


def pages(commands: dict[str, Command]) -> dict[str, str]:
    """File name to text, for all verbs but the hidden ones."""
    known = content.visible(commands)
    made = {f"{_page_name(name)}.1": page(command, known) for name, command in known.items()}
    return {"mngr.1": overview(known), **made}


def page(command: Command, known: dict[str, Command] | None = None) -> str:
    """The page of one verb; `known` are the verbs among which it may refer to others."""
    out = _start(_page_name(command.name), command.summary)
    out += [".SH SYNOPSIS", *_lines(_usage(usage) for usage in command.usage)]
    out += [".SH DESCRIPTION", *_prose(command.about or _sentence(command.summary))]
    if command.aliases:
        spelled = " and ".join(_bold(f"mngr {name}") for name in content.names(command)[1:])
        out += [".PP", f"{spelled} {'is' if len(command.aliases) == 1 else 'are'} the same verb."]
    if content.argument_rows(command):
        out.append(".SH ARGUMENTS")
        out += _definitions((_placeholders(label), text) for label, text in content.argument_rows(command))
    out.append(".SH OPTIONS")
    out += _definitions((_option(o), content.option_text(o)) for o in content.all_options(command))
    if command.examples:
        out += [".SH EXAMPLES", *_examples(command.examples)]
    out += _ending(content.exit_codes(command), _neighbours(command, known or {}))
    return "\n".join(out) + "\n"


def overview(commands: dict[str, Command] | None = None) -> str:
    known = own() if commands is None else content.visible(commands)
    by_word = content.families(known)
    out = _start("mngr", content.WHAT_IT_IS)
    out += [".SH SYNOPSIS", *_lines([_usage("VERB [WORDS...]"), _usage("help [VERB...]"), _usage("--version")])]
    out += [".SH DESCRIPTION"]
    out += _prose(
        "An agent is a program in a terminal of its own, with a work directory and a branch of its own, on this "
        "machine or on another one. Each verb does one thing to one agent or to many, and has a page of its own."
    )
    for title, words in content.groups(by_word):
        out.append(f".SS {_text(title)}")
        members = [command for word in words for command in by_word[word]]
        out += _definitions((_reference(_page_name(command.name)), _sentence(command.summary)) for command in members)
    out.append(".SH OPTIONS")
    out += _prose("Every verb takes these, besides its own:")
    out += _definitions((_option(o), content.option_text(o)) for o in COMMON)
    out += [".SH ENVIRONMENT", *_definitions((_bold(name), meaning) for name, meaning in _ENVIRONMENT)]
    out += [".SH EXAMPLES", *_examples(content.EXAMPLES)]
    out += _ending(content.exit_codes(), ["git", "git-worktree", "tmux"])
    return "\n".join(out) + "\n"


def own() -> dict[str, Command]:
    """The verbs of mngr itself: what somebody else's plugin adds has no place among the committed pages."""
    from mngr.registry import own_commands

    return content.visible(own_commands())


def write(directory: str, commands: dict[str, Command]) -> None:
    os.makedirs(directory, exist_ok=True)
    wanted = pages(commands)
    for stale in _present(directory) - set(wanted):
        os.remove(os.path.join(directory, stale))
    for name, text in wanted.items():
        with open(os.path.join(directory, name), "w", encoding="ascii", newline="\n") as file:
            file.write(text)


def check(directory: str, commands: dict[str, Command]) -> list[str]:
    """One line for each page that is missing, out of date, or of a verb that is gone."""
    wanted = pages(commands)
    present = _present(directory)
    told = [f"{name}: of a verb that does not exist" for name in present - set(wanted)]
    for name, text in wanted.items():
        if name not in present:
            told.append(f"{name}: missing")
        elif _bytes(os.path.join(directory, name)) != text.encode("ascii"):
            told.append(f"{name}: out of date")
    return sorted(told)


def _present(directory: str) -> set[str]:
    if not os.path.isdir(directory):
        return set()
    return {name for name in os.listdir(directory) if name.startswith("mngr") and name.endswith(".1")}


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _page_name(verb: str) -> str:
    return "mngr-" + verb.replace(" ", "-")


# Sections.


def _start(name: str, summary: str) -> list[str]:
    # No hyphenation and a ragged right margin: names of options and paths stay in one piece.
    title = f'.TH {_text(name.upper())} 1 "" "mngr {_text(VERSION)}" "mngr manual"'
    return [_HEAD + title, ".nh", ".ad l", ".SH NAME", f"{_text(name)} \\- {_text(summary)}"]


def _ending(codes: list[tuple[str, str]], related: list[str]) -> list[str]:
    out = [".SH EXIT STATUS", ".PD 0", *_definitions((_bold(code), meaning) for code, meaning in codes), ".PD"]
    return [*out, ".SH SEE ALSO", ",\n".join(_reference(name) for name in related)]


def _neighbours(command: Command, known: dict[str, Command]) -> list[str]:
    """Pages: mngr itself, and the verbs of the same family or, for a verb that has none, of the same group."""
    by_word = content.families(known)
    word = command.name.split()[0]
    if len(by_word.get(word, ())) > 1:
        near = [member.name for member in by_word[word]]
    else:
        group = next((words for _, words in content.groups(by_word) if word in words), [])
        near = [member.name for near_word in group for member in by_word[near_word]]
    return ["mngr", *(_page_name(name) for name in near if name != command.name)]


def _prose(text: str) -> list[str]:
    out: list[str] = []
    for paragraph in content.paragraphs(text):
        if out:
            out.append(".PP")
        if paragraph.startswith(" "):
            out += _verbatim(paragraph)
        else:
            out.append(_marked(paragraph))
    return out


def _definitions(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for label, text in rows for line in (".TP", label, _marked(text))]


def _examples(examples: Iterable[tuple[str, str]]) -> list[str]:
    out: list[str] = []
    for line, meaning in examples:
        out += [".PP" if out else "", _marked(_sentence(meaning)), ".PP", *_verbatim(line)]
    return [line for line in out if line]


def _verbatim(text: str) -> list[str]:
    margin = len(text) - len(text.lstrip())
    return [".RS 4", ".nf", *(_text(line[margin:]) or "\\&" for line in text.split("\n")), ".fi", ".RE"]


def _lines(rows: Iterable[str]) -> list[str]:
    out: list[str] = []
    for row in rows:
        out += [".br", row] if out else [row]
    return out


# Words.


def _usage(usage: str) -> str:
    return f"{_bold('mngr')} {_placeholders(usage)}"


def _placeholders(text: str) -> str:
    """What is typed as it stands is bold, what stands for something else (upper case) is italic."""
    out = []
    for part in re.split(r"([A-Z][A-Z0-9_]*|-{0,2}[a-z][a-z0-9-]*|--)", text):
        if part[:1].isupper():
            out.append(_italic(part))
        elif part == "--" or part.strip("-")[:1].isalpha():
            out.append(_bold(part))
        else:
            out.append(_text(part))
    return "".join(out)


def _option(option: Option) -> str:
    flags = ", ".join(_bold(flag) for flag in content.flag_words(option))
    return f"{flags} {_placeholders(option.metavar)}" if option.metavar else flags


def _reference(page_name: str) -> str:
    return f"{_bold(page_name)}(1)"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _bold(text: str) -> str:
    return f"\\fB{_text(text)}\\fR"


def _italic(text: str) -> str:
    return f"\\fI{_text(text)}\\fR"


def _marked(text: str) -> str:
    """Prose in which `code` stands in backquotes."""
    parts = re.split(r"`([^`]+)`", text)
    set_parts = [
        _bold(part) if number % 2 else _text(part, part_of_line=number > 0) for number, part in enumerate(parts)
    ]
    return "".join(set_parts)


_SPECIAL = {"\\": "\\(rs", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def _text(text: str, part_of_line: bool = False) -> str:
    """Text that roff prints as it is."""
    out = "".join(_SPECIAL.get(char) or (char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text)
    return "\\&" + out if out.startswith(".") and not part_of_line else out


def main(words: list[str]) -> int:
    checking = words[:1] == ["--check"]
    directories = words[1:] if checking else words
    if len(directories) != 1 or directories[0].startswith("-"):
        raise UsageError("usage: python -m mngr.cli.man [--check] DIR")
    if not checking:
        write(directories[0], own())
        return 0
    told = check(directories[0], own())
    for line in told:
        print(line, file=sys.stderr)
    if told:
        print(f"hint: python -m mngr.cli.man {directories[0]} writes them anew", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MngrError as error:
        sys.exit(f"mngr: {error.message}")
