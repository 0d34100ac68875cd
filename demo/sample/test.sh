#!/bin/sh
# The tests of greet.sh. The second one has found something.
check() { # check EXPECTED [ARGUMENT]
  expected=$1
  shift
  said=$(sh greet.sh "$@")
  if [ "$said" = "$expected" ]; then echo "ok      $said"; else echo "not ok  expected '$expected', got '$said'" && exit 1; fi
}
check 'Hello, Ada!' Ada
check 'Hello, world!'
