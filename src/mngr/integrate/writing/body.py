"""The pull request: its title, and its body as Markdown, from the report alone. Numbers come from there; nothing is
asked of a model.

Forges refuse a body that is too long. So it is made of sections, and a section of items that are shown whole or not at
all: what is too long for its share says how many more there are, and where."""

from __future__ import annotations

from mngr.integrate import plain
from mngr.integrate.writing.markdown import code, details
from mngr.integrate.writing.sections import makers, sections, where_all_is

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.integrate.writing.sections import Section

LONGEST = 60_000  # characters; forges take 65,536


def title(report: dict[str, Any]) -> str:
    counts = report["counts"]
    fixes = plain.counted(counts["fixes"], "fix", "fixes") if counts["fixes"] else ""
    tests = plain.counted(counts["folded"] + counts["carried"], "test or doc change", "test and doc changes")
    what = " and ".join(each for each in (fixes, tests if counts["folded"] + counts["carried"] else "") if each)
    runs = f" ({plain.listed(report['runs'])})" if report["runs"] else ""
    return plain.words(f"{what or 'Nothing new'} from {makers(counts)}{runs}")


def body(report: dict[str, Any], longest: int = LONGEST) -> str:
    found = sections(report)
    whole = [_rendered(section, report, None) for section in found]
    shares = _shares([len(text) + 2 for text in whole], longest)
    texts = [
        text if len(text) + 2 <= share else _rendered(section, report, share - 2)
        for section, text, share in zip(found, whole, shares, strict=True)
    ]
    return "\n\n".join(texts) + "\n"


def _shares(wanted: list[int], most: int) -> list[int]:
    """Who wants little gets it, and the others share what is left."""
    shares, left = [0] * len(wanted), most
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(order):
        shares[place] = min(wanted[place], left // (len(order) - done))
        left -= shares[place]
    return shares


def _rendered(section: Section, report: dict[str, Any], most: int | None) -> str:
    shown = section.items
    if most is not None:
        room = most - len(_composed(section, [], _more(section, report, len(section.items))))
        shown = []
        for item in section.items:
            room -= len(item) + len(section.gap)
            if room < 0:
                break
            shown.append(item)
    return _composed(section, shown, _more(section, report, len(section.items) - len(shown)))


def _composed(section: Section, items: list[str], more: list[str]) -> str:
    content = section.gap.join([*items]) + "".join(f"\n\n{line}" for line in more)
    content = details(section.folded, content.strip("\n")) if section.folded and section.items else content.strip("\n")
    head = [f"## {section.title}"] if section.title else []
    return "\n\n".join(part for part in [*head, "\n".join(section.intro), content] if part)


def _more(section: Section, report: dict[str, Any], count: int) -> list[str]:
    return [f"... and {count:,} more; all of them are in {code(where_all_is(report))}."] if count > 0 else []
