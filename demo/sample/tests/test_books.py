"""BOOKS of tutorial.sh."""

import time

from mngr.e2e import expect


def test_add_shows_the_number(e2e):
    e2e.write_tutorial_block("""
        # What you want to read goes on the shelf, and gets a number by which you can speak of it.
        shelf add Dune --by "Frank Herbert"
        shelf add Emma
    """)
    e2e.run('shelf add Dune --by "Frank Herbert"', comment="the first book")
    expect(e2e.run("shelf add Emma", comment="and the second").stdout).to_equal("2: [ ] Emma\n")


def test_add_takes_an_author(e2e):
    e2e.write_tutorial_block("""
        # What you want to read goes on the shelf, and gets a number by which you can speak of it.
        shelf add Dune --by "Frank Herbert"
        shelf add Emma
    """)
    expect(e2e.run('shelf add Dune --by "Frank Herbert"', comment="with its author")).to_succeed()


def test_add_needs_a_title(e2e):
    """Without one, shelf says how it is used, and there is no shelf afterwards."""
    result = e2e.run("shelf add", comment="no title")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("usage: shelf add", "title")
    expect((e2e.home / ".shelf.json").exists()).to_equal(False)


def test_list_of_an_empty_shelf(e2e):
    e2e.write_tutorial_block("""
        # What is there? A cross marks what you have read.
        shelf list
    """)
    result = e2e.run("shelf list", comment="before the first book")
    expect(result).to_succeed()
    expect(result.output).to_be_empty()


def test_list_marks_what_is_read(e2e, shelf):
    e2e.write_tutorial_block("""
        # What is there? A cross marks what you have read.
        shelf list
    """)
    expect(e2e.run("shelf list", comment="three books").stdout).to_equal(
        "1: [ ] Dune, by Frank Herbert\n2: [x] Emma, by Jane Austen\n3: [ ] Momo, by Michael Ende\n"
    )


def test_list_as_json(e2e, shelf):
    e2e.write_tutorial_block("""
        # Scripts read JSON.
        shelf list --json
    """)
    began = time.monotonic()
    result = e2e.run("shelf list --json", comment="for a script")
    expect(time.monotonic() - began < 10).to_equal(True)
    expect(len(result.stdout)).to_equal(257)
    expect(list(result.json()[0])).to_equal(["number", "title", "author", "tags", "read"])
    expect([book["title"] for book in result.json()]).to_equal(["Dune", "Emma", "Momo"])


def test_remove_takes_a_book_away(e2e, shelf):
    e2e.write_tutorial_block("""
        # Not for you after all? Off the shelf it goes.
        shelf remove 2
    """)
    expect(e2e.run("shelf remove 2", comment="take one away").stdout).to_equal("removed Emma\n")
    expect(e2e.run("shelf list", comment="the others move up").stdout).to_equal(
        "1: [ ] Dune, by Frank Herbert\n2: [ ] Momo, by Michael Ende\n"
    )
