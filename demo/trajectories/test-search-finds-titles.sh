#!/bin/sh
# It passes. What happens when nothing is found had no test.
it=tests/test_finding.py::test_search_finds_titles
test "$it"
cost 1800 400 14000
say "I run $it as it stands."
run python3 -m pytest -q "$it" && before pass
think 0.4
say 'The test is right. Its neighbours never search for what is not there.'
edit tests/test_finding.py 'def test_search_finds_authors(e2e, shelf):
' 'def test_search_may_find_nothing(e2e, shelf):
    e2e.write_tutorial_block("""
        # A word of the title or of the author will do, in whatever case.
        shelf search herbert
    """)
    result = e2e.run("shelf search Ulysses", comment="not on this shelf")
    expect(result).to_succeed()
    expect(result.output).to_be_empty()


def test_search_finds_authors(e2e, shelf):
'
run python3 -m pytest -q tests/test_finding.py -k 'titles or nothing' && after pass
commit test 'Search for what is not there' low
finish 'The test is unchanged. A second one covers a search that finds nothing.'
