#!/bin/sh
# It fails: a filtered list counts anew. The agent of test_unread_keeps_the_numbers makes the same fix.
it=tests/test_finding.py::test_a_tag_filter_keeps_the_numbers
test "$it"
cost 2200 350 15000
say "First of all I run $it."
run python3 -m pytest -q "$it" || before fail
think 0.6
say 'The only book with the tag is the third, and it is shown as the first.'
run grep -n numbered shelf/cli.py shelf/listing.py
edit shelf/listing.py '    return list(enumerate(filter(keep, books), 1))' \
  '    return [(number, book) for number, book in enumerate(books, 1) if keep(book)]'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Keep the numbers of books in filtered lists' high
escalate 'shared pattern' 'Whatever filters books numbers them anew: list --unread, list --tag, search.'
finish 'The numbers were given after filtering. They are given before it now.'
