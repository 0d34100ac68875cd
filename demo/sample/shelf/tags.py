"""Your own words for books."""

from __future__ import annotations


def clean(word):
    """As it is kept and looked for."""
    return word.lstrip("#")


def put(book, words):
    for tag in map(clean, words):
        if tag not in book["tags"]:
            book["tags"].append(tag)


def has(book, word):
    return clean(word) in book["tags"]
