"""Just enough of the shell's grammar to know which lines of a script are text and not commands: quotes, comments,
substitutions, heredocs. Nothing is expanded or run. What is left open at a blank line is forgotten there, so that one
stray quote spoils no more than its own paragraph; heredocs alone go on, since the word that ends them is exact."""

from __future__ import annotations

import re
from bisect import bisect_right

from mngr.record import Record

_SPECIAL = re.compile(r"""[\\'"`$()#<}\n]""")
_BEFORE_COMMENT = " \t\n;&|()"
_END_OF_WORD = " \t\n;&|<>()"
_QUOTES = {"'": "'", "$'": "'", '"': '"', "`": "`"}  # how each closes
_ARITHMETIC = ("((", "((..(")


class Heredoc(Record):
    """Lines are indices. Without an end, it has no body either."""

    line: int  # of its operator
    word: str
    begin: int = 0
    end: int | None = None  # of the line that ends it


class Script(Record):
    heredocs: list[Heredoc]
    open_quotes: list[int]  # lines on which a quote begins that its paragraph does not close


def scan(lines: list[str]) -> Script:
    scanner = _Scanner(lines)
    scanner.run()
    return Script(heredocs=scanner.heredocs, open_quotes=scanner.open_quotes)


class _Scanner:
    """Goes from one special character to the next. The stack holds what is open, by its opening characters, and where:
    quotes, `$(`, `(`, `${`, and `((` for arithmetic, with `((..(` for a bracket in it."""

    def __init__(self, lines: list[str]) -> None:
        self.heredocs: list[Heredoc] = []
        self.open_quotes: list[int] = []
        self._lines = lines
        self._text = "\n".join(lines) + "\n\n"  # a word that is looked at never reaches the end
        self._begins = [0]
        for line in lines:
            self._begins.append(self._begins[-1] + len(line) + 1)
        self._at = 0
        self._stack: list[tuple[str, int]] = []
        self._pending: list[tuple[Heredoc, bool, bool]] = []  # with: tabs before the word, a quoted word

    def run(self) -> None:
        while found := _SPECIAL.search(self._text, self._at):
            self._at = found.start()
            char, inside = found.group(), self._stack[-1][0] if self._stack else ""
            if char == "\n":
                self._newline(inside)
            elif inside in _QUOTES:
                self._quoted(char, inside)
            elif char == "\\":
                self._escape()
            elif char == "$":
                self._dollar(inside)
            elif char in ("'", '"', "`"):
                self._open(char, 1)
            elif inside == "${":
                self._close_or_pass(char == "}")
            elif inside in _ARITHMETIC:
                self._arithmetic(char, inside)
            else:
                self._command(char, inside)

    def _newline(self, inside: str) -> None:
        line = self._line()
        self._at += 1
        if self._pending and inside not in ("'", "$'", '"'):
            line = self._bodies(line + 1) - 1
            self._at = self._begins[min(line + 1, len(self._lines))]
        if line + 1 >= len(self._lines) or not self._lines[line + 1].strip():
            self.open_quotes += [line for opened, line in self._stack if opened in _QUOTES][:1]
            self._stack, self._pending = [], []

    def _bodies(self, begin: int) -> int:
        """They follow one after the other. Gives the line behind them."""
        for heredoc, tabs, literal in self._pending:
            end = _end(self._lines, begin, heredoc.word, tabs, literal)
            self.heredocs.append(heredoc.replace(begin=begin, end=end))
            begin = begin if end is None else end + 1
        self._pending = []
        return begin

    def _quoted(self, char: str, inside: str) -> None:
        if char == "\\" and inside != "'":
            self._escape()
        elif char == _QUOTES[inside]:
            self._close_or_pass(True)
        elif char == "$" and inside in ('"', "`"):
            self._dollar(inside)
        elif (char == "`" and inside == '"') or (char in "'\"" and inside == "`"):
            self._open(char, 1)
        elif inside == "`":
            self._command(char, inside)
        else:
            self._at += 1

    def _escape(self) -> None:
        """A newline behind a backslash does not end the command; a blank line does."""
        self._at += 1
        following = self._lines[self._line() + 1 : self._line() + 2]
        if self._text[self._at] != "\n" or "".join(following).strip():
            self._at += 1

    def _dollar(self, inside: str) -> None:
        for opening in ("$((", "$(", "${", "$'"):
            if self._text.startswith(opening, self._at) and (opening != "$'" or inside != '"'):
                self._open("((" if opening == "$((" else opening, len(opening))
                return
        self._at += 2 if self._text.startswith("$#", self._at) else 1

    def _arithmetic(self, char: str, inside: str) -> None:
        if char == "(":
            self._open("((..(", 1)
        elif inside == "((" and self._text.startswith("))", self._at):
            self._stack.pop()
            self._at += 2
        else:
            self._close_or_pass(char == ")" and inside == "((..(")

    def _command(self, char: str, inside: str) -> None:
        if char == "#" and (self._at == 0 or self._text[self._at - 1] in _BEFORE_COMMENT):
            self._at = self._text.index("\n", self._at)
        elif self._text.startswith("((", self._at):
            self._open("((", 2)
        elif char == "(":
            self._open("(", 1)
        elif char == ")":
            self._close_or_pass(inside in ("(", "$("))  # the others belong to `case`
        elif self._text.startswith("<<", self._at):
            self._heredoc()
        else:
            self._at += 1

    def _heredoc(self) -> None:
        line, at, tabs = self._line(), self._at + 2, self._text[self._at + 2] == "-"
        at += tabs
        while self._text[at] in " \t":
            at += 1
        begin, quote, word = at, "", ""
        while (char := self._text[at]) != "\n" and (quote or char not in _END_OF_WORD):
            if char == quote:
                quote = ""
            elif not quote and char in "'\"":
                quote = char
            elif char != "\\" or quote:
                word += char
            at += 1
        raw = self._text[begin:at]
        if raw:  # `<<<` has none
            self._pending.append((Heredoc(line=line, word=word), tabs, any(mark in raw for mark in "'\"\\")))
        self._at = at

    def _open(self, what: str, length: int) -> None:
        self._stack.append((what, self._line()))
        self._at += length

    def _close_or_pass(self, closes: bool) -> None:
        if closes:
            self._stack.pop()
        self._at += 1

    def _line(self) -> int:
        return bisect_right(self._begins, self._at) - 1


def _end(lines: list[str], begin: int, word: str, tabs: bool, literal: bool) -> int | None:
    """Where the word is not quoted, a backslash at the end of a line joins it with the next."""
    joined = False
    for index in range(begin, len(lines)):
        line = lines[index]
        if not joined and (line.lstrip("\t") if tabs else line) == word:
            return index
        joined = not literal and (len(line) - len(line.rstrip("\\"))) % 2 == 1
    return None
