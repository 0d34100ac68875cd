#!/bin/sh
# An agent whose test is as it should be: it runs it, reads it and leaves it alone. The prompt names it first.
it=$(printf '%s\n' "$MNGR_INPUT" | sed -n '/tests\/.*\.py::/{s/.*\(tests\/[a-z_]*\.py::[][a-z_]*\).*/\1/p;q;}')
test "$it"
cost 1500 250 14000
say "I run $it as it stands."
if run python3 -m pytest -q "$it"; then
  before pass
  think 0.4
  say 'It passes. Does it prove what its block says, no less and no more?'
  run cat "${it%%::*}"
  after pass
  finish 'It proves its contract, and nothing beyond it. Nothing to change.'
else
  before fail
  after fail
  finish 'It fails, and I have not found out why.'
fi
