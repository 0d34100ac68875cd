"""Finding books by a word."""

from __future__ import annotations


def matches(book, word):
    return word.lower() in book["title"].lower()
