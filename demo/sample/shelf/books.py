"""The shelf as a file of JSON, and the books on it. A book's number is its place on the shelf, from 1."""

from __future__ import annotations

import json
import os


class ShelfError(Exception):
    """A sentence for the user."""


def path():
    return os.environ.get("SHELF_FILE") or os.path.expanduser("~/.shelf.json")


def new(title, author=""):
    return {"title": title, "author": author, "tags": [], "read": ""}


def load():
    try:
        with open(path(), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return []
    except ValueError:
        raise ShelfError(f"{path()} is no shelf") from None


def save(books):
    """All or nothing: the new file takes the place of the old one in one step."""
    draft = f"{path()}.new"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(books, file, indent=2)
    os.replace(draft, path())


def pick(books, number):
    if not 1 <= number <= len(books):
        raise ShelfError(f"there is no book {number}")
    return books[number - 1]
