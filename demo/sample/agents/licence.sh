#!/bin/sh
# Needs an answer before it can go on.
printf 'Which licence, MIT or BSD? '
read -r answer
echo "This program may be used under the $answer licence." >LICENCE
git add LICENCE && git commit -q -m "Add a licence: $answer" && echo 'LICENCE: committed'
