#!/bin/sh
# It fails: search looks at titles alone.
it=tests/test_finding.py::test_search_finds_authors
test "$it"
cost 2100 300 14000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'The block promises "a word of the title or of the author".'
run cat shelf/search.py
edit shelf/search.py '    return word.lower() in book["title"].lower()' \
  '    return any(word.lower() in book[part].lower() for part in ("title", "author"))'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Search authors too' medium
finish 'search looked at titles only. It looks at authors as well now.'
