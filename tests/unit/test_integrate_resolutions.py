"""What was decided about a conflict is found again by the conflict alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.integrate.picking.pick import Picked
from mngr.integrate.solving.resolutions import PLACE, key_of
from tests.clashes import Clash

Files = dict[str, tuple[str, bytes] | None]
FILES: Files = {"app.py": ("100644", b"one\nboth\n")}


def clash_of_two(tmp_path: Path) -> Clash:
    return Clash(tmp_path, {"app.py": "one\n"}, left={"app.py": "left\n"}, right={"app.py": "right\n"})


def conflict(**stages: str) -> Picked:
    return Picked(tree="t", conflicts={"app.py": {stage[1:]: ("100644", object) for stage, object in stages.items()}})


def test_a_resolution_is_an_input_of_the_next_build(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    left = clash.left()
    clash.resolutions.put(key_of(left.picked), FILES, "somebody", "both are right")
    stack = clash.stack()
    assert stack.left == []
    assert clash.content(stack.tree, "app.py") == b"one\nboth\n"
    assert [pick.how for pick in stack.picks] == ["", "resolved"]


def test_the_next_integration_comes_to_the_same_tree(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    clash.resolutions.put(key_of(clash.left().picked), FILES, "somebody", "")
    before = clash.stack().tree
    clash.begin()
    assert clash.stack().tree == before


def test_the_key_tells_paths_versions_and_modes_apart() -> None:
    known = conflict(s1="a", s2="b", s3="c")
    assert key_of(known) == key_of(known.replace(tree="another", said=["whatever"]))
    others = [conflict(s1="a", s2="c", s3="b"), conflict(s2="b", s3="c"), conflict(s1="a", s2="b", s3="d")]
    others.append(Picked(tree="t", conflicts={"other.py": known.conflicts["app.py"]}))
    others.append(Picked(tree="t", conflicts={"app.py": {**known.conflicts["app.py"], "2": ("100755", "b")}}))
    assert len({key_of(each) for each in [known, *others]}) == 6


def test_another_version_of_a_side_is_another_conflict(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    clash.resolutions.put(key_of(clash.left().picked), FILES, "somebody", "")
    clash.add("third", {"app.py": "third\n"})
    (left,) = clash.stack().left
    assert left.group.first.branch == "third"


@pytest.mark.parametrize("content", [b"", b"\xff\0\r\n", "h\u00f6he\n".encode()])
def test_contents_and_names_are_bytes(tmp_path: Path, content: bytes) -> None:
    clash = clash_of_two(tmp_path)
    name = "caf\udce9\n.py"
    clash.resolutions.put("k", {name: ("100755", content), "gone": None}, "me", "h\u00f6he \udcff")
    found = clash.resolutions.get("k")
    assert found is not None
    assert found.files == {name: ("100755", content), "gone": None}
    assert (found.by, found.why) == ("me", "h\u00f6he \udcff")


def test_a_later_resolution_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    clash.resolutions.put("k", {"a": ("100644", b"1"), "b": ("100644", b"2")}, "me", "")
    clash.resolutions.put("k", {"a": None}, "you", "")
    found = clash.resolutions.get("k")
    assert found is not None
    assert (found.files, found.by) == ({"a": None}, "you")
    assert sorted(path.name for path in (clash.directory / PLACE).iterdir()) == ["k"]
    assert sorted(path.name for path in (clash.directory / PLACE / "k").iterdir()) == ["meta.json"]


def test_a_submodule_and_a_link_come_out_as_they_went_in(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    left = clash.left()
    files: Files = {"app.py": ("120000", b"src/app.py"), "module": ("160000", b"1" * 40)}
    tree = clash.resolutions.tree(left.picked, files)
    found = clash.scratch.entries(tree, ["app.py", "module"])
    assert found["module"] == ("160000", "1" * 40)
    assert found["app.py"] is not None
    assert found["app.py"][0] == "120000"


@pytest.mark.parametrize("damage", ["content", "meta", "no file", "no meta", "another shape"])
def test_a_damaged_resolution_is_passed_over_and_told_once(tmp_path: Path, damage: str) -> None:
    clash = clash_of_two(tmp_path)
    key = key_of(clash.left().picked)
    clash.resolutions.put(key, FILES, "somebody", "")
    place = clash.directory / PLACE / key
    if damage == "content":
        (place / "0").write_bytes(b"one\nbo")
    elif damage == "meta":
        (place / "meta.json").write_text("{")
    elif damage == "no file":
        (place / "0").unlink()
    elif damage == "no meta":
        (place / "meta.json").unlink()
    else:
        (place / "meta.json").write_text(json.dumps({"files": 3, "by": "", "why": "", "before": {}}))
    assert len(clash.stack().left) == 1
    assert len(clash.stack().left) == 1
    (told,) = clash.told
    assert "damaged" in told
    assert str(place) in told


def test_a_meta_file_cannot_lead_out_of_its_directory(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    clash.resolutions.put("k", FILES, "somebody", "")
    meta = clash.directory / PLACE / "k" / "meta.json"
    (clash.directory / PLACE / "secret").write_bytes(b"one\nboth\n")
    meta.write_text(meta.read_text().replace('"file": "0"', '"file": "../secret"'))
    assert clash.resolutions.get("k") is None


def test_a_file_beyond_the_conflict_counts_only_if_it_was_the_same_then(tmp_path: Path) -> None:
    """Somebody else may have changed it since, and would lose that."""
    clash = clash_of_two(tmp_path)
    left = clash.left()
    key = key_of(left.picked)
    more: Files = {**FILES, "more.py": ("100644", b"more\n")}
    clash.resolutions.put(key, more, "somebody", "", {"more.py": "100644 " + "1" * 40})
    assert clash.resolutions.solve(left.group.first, left.picked, left.onto) is None
    assert "more.py" in clash.told[0]
    clash.resolutions.put(key, more, "somebody", "", {"more.py": ""})
    tree = clash.resolutions.solve(left.group.first, left.picked, left.onto)
    assert tree is not None
    assert clash.content(tree, "more.py") == b"more\n"


def test_a_resolution_that_forgets_a_path_is_none(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    left = clash.left()
    clash.resolutions.put(key_of(left.picked), {}, "somebody", "")
    assert clash.resolutions.solve(left.group.first, left.picked, left.onto) is None
    assert "says nothing about app.py" in clash.told[0]


def test_a_place_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    (clash.directory / PLACE).write_text("in the way")
    with pytest.raises(MngrError, match="cannot be kept"):
        clash.resolutions.put("k", FILES, "somebody", "")
