#!/bin/sh
# It fails: a filtered list counts anew. The agent of test_a_tag_filter_keeps_the_numbers makes the same fix.
it=tests/test_reading.py::test_unread_keeps_the_numbers
test "$it"
cost 2500 400 16000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'Momo is the third book, and list calls it the second. Where do the numbers come from?'
run cat shelf/listing.py
say 'They are counted after the filter has taken books away. They have to be counted on the whole shelf.'
edit shelf/listing.py '    return list(enumerate(filter(keep, books), 1))' \
  '    return [(number, book) for number, book in enumerate(books, 1) if keep(book)]'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Number books by their place on the whole shelf' high
escalate 'shared pattern' 'Whatever filters books numbers them anew: list --unread, list --tag, search.'
finish 'A filtered list counted the books anew. Now each keeps the number that it has on the whole shelf.'
