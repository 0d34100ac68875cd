#!/bin/sh
# It passes, but never looks at the day. A rate limit interrupts the work; when it is over, the agent goes on.
it=tests/test_reading.py::test_done_remembers_the_day
test "$it"
cost 1900 300 15000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
think 0.4
say 'A cross is not a day: I will look at what is kept.'
limit 8
# turn
it=tests/test_reading.py::test_done_remembers_the_day
cost 2100 300 16000
say 'The limit is over. I go on where I was.'
edit tests/test_reading.py ').to_contain("[x] Dune")' ').to_contain("[x] Dune")
    books = e2e.run("shelf list --json", comment="and on which day?").json()
    expect(books[0]["read"]).to_match("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")'
run python3 -m pytest -q "$it" && after pass
commit test 'Look at the day that done remembers' medium
finish 'The test looked at the cross alone. Now it looks at the day.'
