"""What every test finds: the `shelf` of this checkout on the PATH, and a shelf of its own."""

import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]


@pytest.fixture
def e2e(e2e):
    e2e.env["PATH"] = f"{TOP / 'bin'}:{Path(sys.executable).parent}:{e2e.env['PATH']}"
    return e2e


@pytest.fixture
def shelf(e2e):
    """Three books, the second of them read."""
    file = e2e.home / ".shelf.json"
    books = [("Dune", "Frank Herbert", ""), ("Emma", "Jane Austen", "2026-01-31"), ("Momo", "Michael Ende", "")]
    file.write_text(json.dumps([{"title": t, "author": a, "tags": [], "read": r} for t, a, r in books]))
    return file
