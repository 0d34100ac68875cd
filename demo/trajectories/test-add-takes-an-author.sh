#!/bin/sh
# It passes, and proves nothing: whether the author is kept was never looked at.
it=tests/test_books.py::test_add_takes_an_author
test "$it"
cost 1900 350 14000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
think 0.4
say 'It would pass if add dropped the author. The book should be on the shelf, with its author.'
edit tests/test_books.py 'comment="with its author")).to_succeed()' 'comment="with its author")).to_succeed()
    expect(e2e.run("shelf list", comment="it is kept").stdout).to_equal("1: [ ] Dune, by Frank Herbert\n")'
run python3 -m pytest -q "$it" && after pass
commit test 'Look whether the author is kept' medium
finish 'The test asserted success alone. Now it reads the author back.'
