#!/bin/sh
# It passes, and would pass for nearly anything that names the books.
it=tests/test_files.py::test_csv_has_a_line_for_each_book
test "$it"
cost 1700 300 13000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
think 0.5
say 'Three titles anywhere in the output are no CSV. The whole text is short enough to be written down.'
edit tests/test_files.py 'comment="for a spreadsheet")).to_contain("Dune", "Emma", "Momo")' \
  'comment="for a spreadsheet").stdout).to_equal(
        "title,author,read,tags\nDune,Frank Herbert,,\nEmma,Jane Austen,2026-01-31,\nMomo,Michael Ende,,\n"
    )'
run python3 -m pytest -q "$it" && after pass
commit test 'Compare the whole CSV' medium
finish 'The test looked for titles anywhere. Now it compares the header and every row.'
