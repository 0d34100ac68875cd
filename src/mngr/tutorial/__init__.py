"""The tutorial that cannot rot: a shell file in blocks, the tests that cite them, and the tools that keep the two in
step. blocks.py reads the one side, citations.py the other, check.py compares them."""
