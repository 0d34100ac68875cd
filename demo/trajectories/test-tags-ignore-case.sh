#!/bin/sh
# It fails: tags are kept as they were typed. The agent of test_a_tag_is_kept_once makes the same fix.
it=tests/test_finding.py::test_tags_ignore_case
test "$it"
cost 2400 300 15000
say "I run $it as it stands."
run python3 -m pytest -q "$it" || before fail
think 0.4
say 'SciFi is kept as SciFi, so nobody finds it as scifi.'
run cat shelf/tags.py
say 'clean is called when a tag is put and when it is looked for: the right place for lower case.'
edit shelf/tags.py 'return word.lstrip("#")' 'return word.lstrip("#").lower()'
run python3 -m pytest -q "$it" && after pass
commit implementation 'Keep tags in lower case' medium
escalate 'shared pattern' 'Tags are kept as they were typed, and compared as if they were not.'
finish 'Tags were compared as they were typed. They are kept and looked for in lower case now.'
