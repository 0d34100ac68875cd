#!/bin/sh
# Any test: it is run as it stands, and left alone. The prompt has its name, and how to run it. One that fails is for a
# person to look at.
it=$(printf '%s\n' "$MNGR_INPUT" | sed -n '/^    tests\//{s/^ *//p;q;}')
line=$(printf '%s\n' "$MNGR_INPUT" | sed -n '/^ .*-m pytest /{s/^ *//p;q;}')
test "$it"
cost 1500 250 14000
say "I run $it as it stands."
if run "$line"; then
  before pass
  after pass
  finish 'It passes. Nothing to change.'
else
  before fail
  after fail
  blocked "somebody who finds out why it fails: $line"
fi
