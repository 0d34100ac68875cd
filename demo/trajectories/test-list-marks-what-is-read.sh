#!/bin/sh
# It hangs in the middle of the work, and no message brings it back.
it=tests/test_books.py::test_list_marks_what_is_read
test "$it"
cost 1600 250 14000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
say 'Let me think about that.'
hang
