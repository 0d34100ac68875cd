#!/bin/sh
# Two agents have mended one line in two ways. This one is asked when their work is brought together; the end of its
# name is that of the change which did not fit.
cost 3100 450 12000
say 'Both want an error on standard error and exit code 1. I look at what is in the way.'
run git diff
say 'sys.exit ends the program from within; a return value leaves that to whoever calls main, which both tests allow.'
run git checkout --theirs shelf/cli.py
run git add shelf/cli.py
run python3 -m pytest -q tests/test_files.py::test_a_damaged_file_is_an_error tests/test_reading.py::test_a_wrong_number_is_an_error
run git commit -q --no-edit
result <<'END'
{"resolved": true, "why": "both print the error to standard error and end with 1; main returns it instead of leaving by sys.exit"}
END
