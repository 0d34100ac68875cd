#!/bin/sh
# It fails: an error is printed like an answer. The agent of test_a_wrong_number_is_an_error mends the same line,
# in another way.
it=tests/test_files.py::test_a_damaged_file_is_an_error
test "$it"
cost 2800 400 17000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.5
say 'The file is left as it is, which is half of the contract. But the exit code is 0.'
run sed -n '/^def main/,/^def add/p' shelf/cli.py
edit shelf/cli.py '        print(f"shelf: {error}")' '        print(f"shelf: {error}", file=sys.stderr)
        return 1'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Print errors to standard error, and return 1' high
escalate 'shared pattern' 'All errors of shelf are printed to standard output, and end with 0.'
finish 'An error ended with 0 on standard output. It ends with 1 on standard error now.'
