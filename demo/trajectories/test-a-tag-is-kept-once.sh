#!/bin/sh
# It fails: tags are kept as they were typed. The agent of test_tags_ignore_case makes the same fix.
it=tests/test_finding.py::test_a_tag_is_kept_once
test "$it"
cost 2600 450 15000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.5
say 'classic, Classic and CLASSIC are three tags here, and should be one.'
run cat shelf/tags.py
edit shelf/tags.py 'return word.lstrip("#")' 'return word.lstrip("#").lower()'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Take tags that differ in case for one' medium
escalate 'shared pattern' 'Tags are kept as they were typed, and compared as if they were not.'
finish 'A tag was kept once for each way of writing it. Tags are in lower case now, as the README says.'
