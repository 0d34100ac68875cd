"""Books as lines for people."""

from __future__ import annotations


def numbered(books, keep):
    """Those to be kept, each with its number."""
    return list(enumerate(filter(keep, books), 1))


def line(number, book):
    author = f", by {book['author']}" if book["author"] else ""
    tags = "".join(f" #{tag}" for tag in book["tags"])
    return f"{number}: [{'x' if book['read'] else ' '}] {book['title']}{author}{tags}"
