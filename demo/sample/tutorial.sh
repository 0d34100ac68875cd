#!/bin/sh
# shelf, a paragraph at a time. Each stands alone: think of a shelf with Dune, Emma and Momo on it.
# shellcheck disable=SC1010 # done is a verb of shelf

############################################################
# BOOKS
############################################################

# What you want to read goes on the shelf, and gets a number by which you can speak of it.
shelf add Dune --by "Frank Herbert"
shelf add Emma

# What is there? A cross marks what you have read.
shelf list

# Scripts read JSON.
shelf list --json

# Not for you after all? Off the shelf it goes.
shelf remove 2

############################################################
# READING
############################################################

# When you are through, shelf remembers the day. A wrong number is an error, and changes nothing.
shelf done 1

# What is left to read? Each book keeps the number that it has on the whole shelf.
shelf list --unread

# Some books are worth a second time.
shelf again 1

############################################################
# FINDING
############################################################

# Tags are your own words for books. Upper or lower case does not matter, and twice is once.
shelf tag 1 scifi classic
shelf list --tag classic

# A word of the title or of the author will do, in whatever case.
shelf search herbert

# The library knows who wrote what. It wants to know who asks: SHELF_LIBRARY_KEY is your key.
shelf lookup 9780441013593

############################################################
# FILES
############################################################

# Take the list to a spreadsheet, or show it to people. --to writes a file instead of printing.
shelf export csv
shelf export markdown --to books.md

# One shelf for work, one for home: SHELF_FILE names the file. A file that is no shelf is left as it is.
SHELF_FILE=work.json shelf list
