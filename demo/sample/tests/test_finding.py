"""FINDING of tutorial.sh."""

import os

from mngr.e2e import expect


def test_tags_are_shown(e2e, shelf):
    e2e.write_tutorial_block("""
        # Tags are your own words for books. Upper or lower case does not matter, and twice is once.
        shelf tag 1 scifi classic
        shelf list --tag classic
    """)
    line = "1: [ ] Dune, by Frank Herbert #scifi #classic\n"
    expect(e2e.run("shelf tag 1 scifi classic", comment="two words for a book").stdout).to_equal(line)
    expect(e2e.run("shelf list --tag classic", comment="either finds it").stdout).to_equal(line)


def test_tags_ignore_case(e2e, shelf):
    e2e.write_tutorial_block("""
        # Tags are your own words for books. Upper or lower case does not matter, and twice is once.
        shelf tag 1 scifi classic
        shelf list --tag classic
    """)
    e2e.run("shelf tag 1 SciFi", comment="as one likes to write it")
    expect(e2e.run("shelf list --tag scifi", comment="and as one types it")).to_contain("1: [ ] Dune")


def test_a_tag_is_kept_once(e2e, shelf):
    e2e.write_tutorial_block("""
        # Tags are your own words for books. Upper or lower case does not matter, and twice is once.
        shelf tag 1 scifi classic
        shelf list --tag classic
    """)
    e2e.run("shelf tag 3 classic Classic", comment="twice at once")
    expect(e2e.run("shelf tag 3 CLASSIC", comment="and again").stdout).to_equal(
        "3: [ ] Momo, by Michael Ende #classic\n"
    )


def test_a_tag_filter_keeps_the_numbers(e2e, shelf):
    e2e.write_tutorial_block("""
        # Tags are your own words for books. Upper or lower case does not matter, and twice is once.
        shelf tag 1 scifi classic
        shelf list --tag classic
    """)
    e2e.run("shelf tag 3 classic", comment="the third book")
    expect(e2e.run("shelf list --tag classic", comment="is still the third").stdout).to_equal(
        "3: [ ] Momo, by Michael Ende #classic\n"
    )


def test_search_finds_titles(e2e, shelf):
    e2e.write_tutorial_block("""
        # A word of the title or of the author will do, in whatever case.
        shelf search herbert
    """)
    expect(e2e.run("shelf search Dune", comment="a title").stdout).to_equal("1: [ ] Dune, by Frank Herbert\n")


def test_search_finds_authors(e2e, shelf):
    e2e.write_tutorial_block("""
        # A word of the title or of the author will do, in whatever case.
        shelf search herbert
    """)
    expect(e2e.run("shelf search herbert", comment="an author").stdout).to_equal("1: [ ] Dune, by Frank Herbert\n")


def test_search_ignores_case(e2e, shelf):
    e2e.write_tutorial_block("""
        # A word of the title or of the author will do, in whatever case.
        shelf search herbert
    """)
    expect(e2e.run("shelf search dUNE", comment="with a slip of the shift key")).to_contain("Dune, by Frank Herbert")


def test_lookup_asks_the_library(e2e):
    e2e.write_tutorial_block("""
        # The library knows who wrote what. It wants to know who asks: SHELF_LIBRARY_KEY is your key.
        shelf lookup 9780441013593
    """)
    e2e.env["SHELF_LIBRARY_KEY"] = os.environ.get("SHELF_LIBRARY_KEY", "")
    result = e2e.run("shelf lookup 9780441013593", comment="by its number on the back")
    expect(result.stdout).to_equal("Dune, by Frank Herbert\n")
