"""Which calls of a program a line of shell makes: behind `&&`, `;` and `|`, with variables set in front, through `env`,
`timeout` or `bash -c`. Agents write such lines, and they need not be valid: what cannot be split properly is split
anyhow, since a call that is overlooked is worse than one that is guessed."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

from mngr.record import Record
from mngr.tutorial.shell import scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BETWEEN = ";&|()\n"
_SHELLS = ("sh", "bash", "zsh", "dash")
# Words that stand in front of a command; their own options and numbers are passed over with them.
_IN_FRONT = frozenset(
    """! { if then else elif do while until time env exec command nohup nice sudo timeout stdbuf xargs
    uv uvx poetry pdm run pipx python python3 npx""".split()
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPTION_OR_NUMBER = re.compile(r"-|\d+(\.\d+)?[smhd]?$")
_LONGEST = 20_000  # letters of a line that is looked at


class Call(Record):
    words: list[str]  # behind the name of the program
    last: bool  # nothing comes behind it, so that the exit code of the line is its own


def calls(line: str, program: str) -> list[Call]:
    if program not in line:
        return []
    commands = [command for command in _commands(_without_heredocs(line[:_LONGEST])) if command]
    found: list[Call] = []
    for number, command in enumerate(commands, 1):
        last = number == len(commands)
        words = _behind_front(command)
        if words and words[0].rpartition("/")[2] in _SHELLS:
            inner = next((text for flag, text in pairwise(words) if _is_c(flag)), "")
            found += [call.replace(last=call.last and last) for call in calls(inner, program)]
        elif words and words[0].rpartition("/")[2] == program:
            found.append(Call(words=words[1:], last=last))
    return found


def _without_heredocs(line: str) -> str:
    if "<<" not in line:
        return line
    lines = line.split("\n")
    for heredoc in reversed(scan(lines).heredocs):
        if heredoc.end is not None:
            del lines[heredoc.begin : heredoc.end + 1]
    return "\n".join(lines)


def _commands(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    passing = ""  # what is not read: the word behind < or >, or a comment
    for token in _tokens(line.replace("\\\n", " ")):
        if passing == "#" and "\n" not in token:
            continue
        if token and set(token) <= set("<>&") and set(token) & set("<>"):
            if words and words[-1].isdecimal():
                words.pop()  # 2>
            passing = ">"
        elif token and set(token) <= set(_BETWEEN + "<>"):
            yield words
            words, passing = [], ""
        elif token.startswith("#"):
            passing = "#"
        elif passing:
            passing = ""
        else:
            words.append(token)
    yield words


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_BETWEEN + "<>")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote is not closed
        return re.findall(rf"[{_BETWEEN}<>]+|[^\s{_BETWEEN}<>]+", line)


def _behind_front(words: list[str]) -> list[str]:
    in_front = False
    for number, word in enumerate(words):
        if word.rpartition("/")[2] in _IN_FRONT:
            in_front = True
        elif not _ASSIGNMENT.match(word) and not (in_front and _OPTION_OR_NUMBER.match(word)):
            return words[number:]
    return []


def _is_c(flag: str) -> bool:
    return flag.startswith("-") and flag.endswith("c") and not flag.startswith("--")
