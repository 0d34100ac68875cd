#!/bin/sh
# It fails: CSV is joined by hand. Two commits: the program, and a word in the README.
it=tests/test_files.py::test_csv_quotes_commas
test "$it"
cost 3000 500 18000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'A title with a comma falls into two columns: the rows are joined by hand.'
run cat shelf/export.py
say 'The csv module of Python knows what has to be quoted.'
edit shelf/export.py 'from __future__ import annotations
' 'from __future__ import annotations

import csv
import io
'
edit shelf/export.py '    return "".join(",".join(row) + "\n" for row in rows)' \
  '    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Quote what has to be quoted in CSV' high
edit README.md '| for a spreadsheet, or for people |' '| for a spreadsheet (commas are quoted), or for people |'
commit docs 'Say that CSV is quoted' low
finish 'A comma in a title broke the row. Rows are written by the csv module now, and the README says so.'
