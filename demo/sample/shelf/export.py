"""The shelf for other programs, and for other people."""

from __future__ import annotations

COLUMNS = ("title", "author", "read", "tags")


def as_csv(books):
    rows = [COLUMNS, *((book["title"], book["author"], book["read"], " ".join(book["tags"])) for book in books)]
    return "".join(",".join(row) + "\n" for row in rows)


def as_markdown(books):
    return "".join(f"- [{'x' if book['read'] else ' '}] {entry(book)}\n" for book in books)


def entry(book):
    return f"*{book['title']}*, {book['author']}" if book["author"] else f"*{book['title']}*"


FORMATS = {"csv": as_csv, "markdown": as_markdown}
