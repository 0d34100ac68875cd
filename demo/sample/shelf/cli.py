"""The verbs: each is a function of the books on the shelf and of what the user wants."""

from __future__ import annotations

import argparse
import datetime
import json
import sys

from shelf import books, export, library, listing, search, tags


def main(words):
    wanted = parser().parse_args(words)
    try:
        wanted.verb(books.load(), wanted)
    except books.ShelfError as error:
        print(f"shelf: {error}")
    return 0


def add(shelf, wanted):
    shelf.append(books.new(wanted.title, wanted.by))
    books.save(shelf)
    print(listing.line(len(shelf), shelf[-1]))


def show(shelf, wanted):
    def keep(book):
        return not (wanted.unread and book["read"]) and (not wanted.tag or tags.has(book, wanted.tag))

    if wanted.json:
        print(json.dumps([{"number": number, **book} for number, book in listing.numbered(shelf, keep)]))
    else:
        print_lines(listing.numbered(shelf, keep))


def done(shelf, wanted):
    change(shelf, wanted.number, read=datetime.date.today().isoformat())


def again(shelf, wanted):
    change(shelf, wanted.number, read="")


def tag(shelf, wanted):
    tags.put(books.pick(shelf, wanted.number), wanted.words)
    change(shelf, wanted.number)


def find(shelf, wanted):
    print_lines(listing.numbered(shelf, lambda book: search.matches(book, wanted.word)))


def write(shelf, wanted):
    with open(wanted.to, "w", encoding="utf-8") if wanted.to else sys.stdout as file:
        file.write(export.FORMATS[wanted.format](shelf))


def look_up(shelf, wanted):
    book = library.look_up(wanted.isbn)
    print(f"{book['title']}, by {book['author']}")


def remove(shelf, wanted):
    book = books.pick(shelf, wanted.number)
    books.save([each for each in shelf if each is not book])
    print(f"removed {book['title']}")


def change(shelf, number, **what):
    """Of one book, and shows it."""
    book = books.pick(shelf, number)
    book.update(what)
    books.save(shelf)
    print(listing.line(number, book))


def print_lines(numbered):
    for number, book in numbered:
        print(listing.line(number, book))


def parser():
    top = argparse.ArgumentParser(prog="shelf", description="A reading list.")
    verbs = top.add_subparsers(required=True, metavar="VERB")

    def verb(name, function, help):
        words = verbs.add_parser(name, help=help)
        words.set_defaults(verb=function)
        return words.add_argument

    word = verb("add", add, "put a book on the shelf")
    word("title")
    word("--by", metavar="AUTHOR", default="")
    word = verb("list", show, "the books")
    word("--unread", action="store_true")
    word("--tag")
    word("--json", action="store_true")
    verb("done", done, "it is read")("number", type=int)
    verb("again", again, "it is to be read once more")("number", type=int)
    word = verb("tag", tag, "your own words for it")
    word("number", type=int)
    word("words", nargs="+", metavar="tag")
    verb("search", find, "books with a word in their title or author")("word")
    word = verb("export", write, "for a spreadsheet, or for people")
    word("format", choices=export.FORMATS)
    word("--to", metavar="FILE")
    verb("lookup", look_up, "who wrote what")("isbn")
    verb("remove", remove, "take it off the shelf")("number", type=int)
    return top
