#!/bin/sh
# Works until it is told to stop.
round=0
while :; do
  round=$((round + 1))
  echo "round $round: $(git log --oneline | wc -l) commit"
  sleep 1
done
