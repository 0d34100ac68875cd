"""What the agent of a test is told: prompts/test.md beside this file, with what is special about the test put in."""

from __future__ import annotations

import os

from mngr import jsonline, prompts
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.swarm.testing.collect import Found

EXAMPLE = {
    "test": "",
    "passed_before": False,
    "passed_after": True,
    "changes": [
        {
            "kind": "implementation",
            "commit": "4f1c2d9",
            "summary": "list of an empty shelf prints nothing instead of a traceback",
            "importance": "high",
        }
    ],
    "escalations": [
        {
            "kind": "shared pattern",
            "summary": "search of an empty shelf fails in the same way",
            "tests": ["tests/test_search.py::test_empty"],
        }
    ],
    "blocked": None,
    "summary": "list took the first line of a file that can be empty. It now looks before; the test was right.",
}


def prompt(home: str, test: Found, *, pytest: str, limit: float, flags: Sequence[str], tutorial: str = "") -> str:
    """`pytest` is a line of shell, `limit` the seconds that a run may take. A user's own prompt may use as many of the
    values as it likes."""
    schema = prompts.read(os.path.join(os.path.dirname(__file__), "result.schema.json"))
    values = {
        "test": test.id,
        "command": " ".join([pytest, *map(quote, [*flags, test.id])]),
        "timeout": f"{limit:g}",
        "contract": contract(test.doc, test.blocks),
        "tutorial": f"`{tutorial}`" if tutorial else "if there is one",
        "example": jsonline.dumps({**EXAMPLE, "test": test.id}),
        "schema": jsonline.dumps(jsonline.loads(schema)),
    }
    return prompts.filled(prompts.find(home, __file__, "test"), values)


def template(home: str) -> str:
    """The prompt before anything is put in: when it changes, so does what agents do."""
    return prompts.read(prompts.find(home, __file__, "test"))


def contract(doc: str, blocks: Sequence[str]) -> str:
    """What a test promises: its docstring, and the blocks of the tutorial that it cites."""
    parts = [f"It cites this block of the tutorial:\n\n{_fenced(block, 'sh')}" for block in blocks]
    if doc.strip():
        parts.insert(0, f"Its docstring:\n\n{_fenced(doc, 'text')}")
    return "\n\n".join(parts) or (
        "It has no docstring and cites no block of a tutorial: go by its name, and by what the documentation says."
    )


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    bare = text.strip("\n")
    return f"{fence}{language}\n{bare}\n{fence}"
