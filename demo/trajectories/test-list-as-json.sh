#!/bin/sh
# It passes, and proves too much: a length, the order of keys and the time are nobody's contract.
it=tests/test_books.py::test_list_as_json
test "$it"
cost 2000 450 15000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
think 0.4
say 'Scripts read JSON: the block promises no length, no order of keys and no speed. Those go, and the values come in.'
edit tests/test_books.py 'import time

' ''
edit tests/test_books.py '    began = time.monotonic()
    result = e2e.run("shelf list --json", comment="for a script")
    expect(time.monotonic() - began < 10).to_equal(True)
    expect(len(result.stdout)).to_equal(257)
    expect(list(result.json()[0])).to_equal(["number", "title", "author", "tags", "read"])
    expect([book["title"] for book in result.json()]).to_equal(["Dune", "Emma", "Momo"])
' '    books = e2e.run("shelf list --json", comment="for a script").json()
    expect([(book["number"], book["title"]) for book in books]).to_equal([(1, "Dune"), (2, "Emma"), (3, "Momo")])
    expect([bool(book["read"]) for book in books]).to_equal([False, True, False])
'
run python3 -m pytest -q "$it" && after pass
commit test 'Prove the JSON, not how it is printed' low
finish 'Removed what is beyond the contract: length, order of keys, time. Added numbers, and what is read.'
