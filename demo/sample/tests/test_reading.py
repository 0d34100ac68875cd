"""READING of tutorial.sh."""

from mngr.e2e import expect


def test_done_remembers_the_day(e2e, shelf):
    e2e.write_tutorial_block("""
        # When you are through, shelf remembers the day. A wrong number is an error, and changes nothing.
        shelf done 1
    """)
    expect(e2e.run("shelf done 1", comment="through with it")).to_contain("[x] Dune")


def test_a_wrong_number_is_an_error(e2e, shelf):
    e2e.write_tutorial_block("""
        # When you are through, shelf remembers the day. A wrong number is an error, and changes nothing.
        shelf done 1
    """)
    before = shelf.read_text()
    result = e2e.run("shelf done 4", comment="there are three")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("shelf: there is no book 4\n")
    expect(shelf.read_text()).to_equal(before)


def test_unread_keeps_the_numbers(e2e, shelf):
    e2e.write_tutorial_block("""
        # What is left to read? Each book keeps the number that it has on the whole shelf.
        shelf list --unread
    """)
    expect(e2e.run("shelf list --unread", comment="the second is read").stdout).to_equal(
        "1: [ ] Dune, by Frank Herbert\n3: [ ] Momo, by Michael Ende\n"
    )


def test_again_takes_done_back(e2e, shelf):
    e2e.write_tutorial_block("""
        # Some books are worth a second time.
        shelf again 1
    """)
    expect(e2e.run("shelf again 2", comment="it was read").stdout).to_equal("2: [ ] Emma, by Jane Austen\n")
    expect(e2e.run("shelf again 1", comment="it was not, and still is not")).to_succeed().to_contain("1: [ ] Dune")
