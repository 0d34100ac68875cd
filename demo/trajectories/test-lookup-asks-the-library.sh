#!/bin/sh
# It fails for want of something that no agent can make: a key.
it=tests/test_finding.py::test_lookup_asks_the_library
test "$it"
cost 2200 300 14000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'The program is right: without a key the library tells nothing. Is there one?'
run 'env | grep -c "^SHELF_LIBRARY_KEY=" || true'
after fail
escalate blocker 'No agent has a key for the library.'
blocked 'SHELF_LIBRARY_KEY, a key for the library: mngr swarm run --pass-env SHELF_LIBRARY_KEY hands yours on'
