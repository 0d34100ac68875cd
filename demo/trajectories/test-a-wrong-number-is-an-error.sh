#!/bin/sh
# It fails: an error is printed like an answer. The agent of test_a_damaged_file_is_an_error mends the same line,
# in another way.
it=tests/test_reading.py::test_a_wrong_number_is_an_error
test "$it"
cost 2300 350 15000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'The message is there, but on standard output, and the exit code is 0.'
run sed -n '/^def main/,/^def add/p' shelf/cli.py
say 'sys.exit with a text does both: it prints to standard error and ends with 1.'
edit shelf/cli.py '        print(f"shelf: {error}")' '        sys.exit(f"shelf: {error}")'
run python3 -m pytest -q "$it" && after pass
commit implementation 'End with 1 when something is wrong' high
escalate 'shared pattern' 'All errors of shelf are printed to standard output, and end with 0.'
finish 'An error looked like success. It goes to standard error now, with exit code 1.'
