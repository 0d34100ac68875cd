#!/bin/sh
# Mends a typo and commits.
echo 'reading README.md'
sleep 0.8
sed 's/programm/program/' README.md >README.new && mv README.new README.md
git commit -q -a -m 'Mend a typo' && echo 'programm -> program: committed'
