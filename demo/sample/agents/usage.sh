#!/bin/sh
# Writes down how the program is used, from a real run of it, and commits.
echo 'trying greet.sh'
sleep 1.6
{ echo '    $ sh greet.sh Ada' && sh greet.sh Ada | sed 's/^/    /'; } >USAGE.md
git add USAGE.md && git commit -q -m 'Show how it is used' && echo 'USAGE.md: committed'
