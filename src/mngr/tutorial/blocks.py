"""A tutorial as blocks. A block is consecutive lines that are not empty, with a command among them; nothing else
decides where one ends, so that a person sees it at a glance. What that rule would tear apart (a heredoc with a blank
line in it) is a problem to be told, not an exception to be made.

A block's id comes from its content (mngr.e2e.block): it survives moves and dies with an edit."""

from __future__ import annotations

import re

from mngr.e2e.block import block_id, normalise
from mngr.errors import UsageError
from mngr.record import Record
from mngr.tutorial.shell import Script, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_RULE = 8  # equal characters
_DIRECTIVE = re.compile(r"#\s*shellcheck\s+\w+=")


class Block(Record):
    """Lines are counted from 1, and `end` is the last of them."""

    id: str
    text: str
    section: str
    line: int
    end: int

    @property
    def command(self) -> str:
        """Its first line that is no comment: what a reader knows it by."""
        return first_command(self.text)


class Blank(Record):
    """A comment-only paragraph that is no banner: somebody has still to write the command."""

    text: str
    section: str
    line: int
    end: int


class Problem(Record):
    file: str
    line: int
    message: str


class Tutorial(Record):
    path: str
    blocks: list[Block]
    blanks: list[Blank]
    problems: list[Problem]


def read_tutorial(path: str) -> Tutorial:
    """Raises UsageError for what is no text file. In Markdown, its code blocks of a shell are meant."""
    text = read_text(path)
    if is_markdown(path):
        from mngr.tutorial.markdown import parse_markdown

        return parse_markdown(text, path)
    return parse(text, path)


def is_markdown(path: str) -> bool:
    return path.lower().endswith((".md", ".markdown"))


def read_text(path: str) -> str:
    return as_text(read_bytes(path), path)


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def as_text(data: bytes, path: str) -> str:
    if b"\0" in data:
        raise UsageError(f"{path}: this is no text but a binary file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not valid UTF-8") from None


def parse(text: str, path: str = "") -> Tutorial:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    script = scan(lines)
    told = {index for doc in script.heredocs if doc.end is not None for index in range(doc.begin, doc.end + 1)}
    blocks, blanks, section = [], [], ""
    for begin, end in _paragraphs(lines):
        comments = _leading_comments(lines, begin, end, told)
        section = _title(comments) or section
        text = normalise("\n".join(lines[begin:end]))
        if len(comments) < end - begin:
            blocks.append(Block(id=block_id(text), text=text, section=section, line=begin + 1, end=end))
        elif not _is_silent(comments, begin):
            blanks.append(Blank(text=text, section=section, line=begin + 1, end=end))
    return Tutorial(path=path, blocks=blocks, blanks=blanks, problems=_problems(path, lines, script))


def first_command(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    return found.removeprefix("$ ")


def _paragraphs(lines: list[str]) -> Iterator[tuple[int, int]]:
    begin = None
    for index, line in enumerate([*lines, ""]):
        if line.strip():
            begin = index if begin is None else begin
        elif begin is not None:
            yield begin, index
            begin = None


def _leading_comments(lines: list[str], begin: int, end: int, told: set[int]) -> list[str]:
    """In a heredoc, a line with # is text."""
    found = []
    for index in range(begin, end):
        line = lines[index].strip()
        if not line.startswith("#") or index in told:
            break
        found.append(line)
    return found


def _is_silent(comments: list[str], begin: int) -> bool:
    """Banners, rules, the shebang, and words for a linter ask for no command."""
    return (
        _title(comments) != ""
        or (begin == 0 and comments[0].startswith("#!"))
        or all(_is_rule(line) or _DIRECTIVE.match(line) or not line.strip("# ") for line in comments)
    )


def _title(comments: list[str]) -> str:
    """Of a banner: its first line, with a rule around or under it. Of anything else: nothing."""
    for index, line in enumerate(comments):
        if _is_rule(line) or line.startswith("#!") or not line.strip("# "):
            continue
        return _framed(line) or (line.strip("# \t") if any(map(_is_rule, comments[index + 1 :])) else "")
    return ""


def _is_rule(line: str) -> bool:
    """`########`, `# ========`, `# -------- #`."""
    return _run(line) >= _RULE or _run(line.strip("#").strip()) >= _RULE


def _framed(line: str) -> str:
    """The title in `# -------- Title --------`, of which one side may be shorter."""
    words = line.removeprefix("# ").removesuffix(" #").split()
    if len(words) < 3 or max(_run(words[0]), _run(words[-1])) < _RULE or min(_run(words[0]), _run(words[-1])) < 2:
        return ""
    return " ".join(words[1:-1])


def _run(word: str) -> int:
    """How often it repeats its one character, which is no letter; 0 where it has others."""
    return len(word) if word and not word[0].isalnum() and word == word[0] * len(word) else 0


def _problems(path: str, lines: list[str], script: Script) -> list[Problem]:
    found = dict.fromkeys(script.open_quotes, "this quote is not closed in its block")
    for doc in script.heredocs:
        if doc.end is None:
            found[doc.line] = f"the heredoc has no end: {doc.word}"
            continue
        for index in range(doc.begin, doc.end):
            if not lines[index].strip():
                found[index] = f"a blank line in the heredoc of line {doc.line + 1} splits its block"
    return [Problem(file=path, line=index + 1, message=message) for index, message in sorted(found.items())]
