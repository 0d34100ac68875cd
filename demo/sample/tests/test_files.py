"""FILES of tutorial.sh."""

import csv

import pytest

from mngr.e2e import expect


def test_csv_has_a_line_for_each_book(e2e, shelf):
    e2e.write_tutorial_block("""
        # Take the list to a spreadsheet, or show it to people. --to writes a file instead of printing.
        shelf export csv
        shelf export markdown --to books.md
    """)
    expect(e2e.run("shelf export csv", comment="for a spreadsheet")).to_contain("Dune", "Emma", "Momo")


def test_csv_quotes_commas(e2e):
    e2e.write_tutorial_block("""
        # Take the list to a spreadsheet, or show it to people. --to writes a file instead of printing.
        shelf export csv
        shelf export markdown --to books.md
    """)
    e2e.run('shelf add "Eats, Shoots & Leaves" --by "Lynne Truss"', comment="a title with a comma")
    exported = e2e.run("shelf export csv", comment="for a spreadsheet").stdout.splitlines()
    expect(list(csv.reader(exported))[1]).to_equal(["Eats, Shoots & Leaves", "Lynne Truss", "", ""])


@pytest.mark.parametrize("format", ["csv", "markdown"])
def test_an_export_goes_to_a_file(e2e, shelf, format):
    e2e.write_tutorial_block("""
        # Take the list to a spreadsheet, or show it to people. --to writes a file instead of printing.
        shelf export csv
        shelf export markdown --to books.md
    """)
    printed = e2e.run(f"shelf export {format}", comment="printed").stdout
    expect(e2e.run(f"shelf export {format} --to books", comment="written").output).to_be_empty()
    expect(printed).to_contain("Dune", "Emma", "Momo")
    expect(e2e.dir / "books").to_equal(printed)


def test_a_damaged_file_is_an_error(e2e):
    e2e.write_tutorial_block("""
        # One shelf for work, one for home: SHELF_FILE names the file. A file that is no shelf is left as it is.
        SHELF_FILE=work.json shelf list
    """)
    e2e.run("echo 'Buy milk' >work.json", comment="something else is in the file")
    result = e2e.run("SHELF_FILE=work.json shelf add Dune", comment="no shelf to add to")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("shelf: work.json is no shelf\n")
    expect(e2e.dir / "work.json").to_equal("Buy milk\n")
