#!/bin/sh
# Says hello to whom it is told.
echo "Hello, $1!"
