"""Secrets are taken out of what came home, wherever they stand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mngr
from mngr.agents import AgentType
from mngr.swarm import secrets

TOKEN = "sesame-sesame"
ENV = {"SHOP_TOKEN": TOKEN, "SHOP_URL": "https://shop.example"}


def put(directory: Path, path: str, content: bytes) -> Path:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    "path", ["result.json", "artifacts/x", "artifacts/deep/er/core.bin", "check/r1-one-check/result.json"]
)
def test_a_secret_is_found_in_every_file(tmp_path: Path, path: str) -> None:
    file = put(tmp_path, path, b"\x00\xff" + TOKEN.encode() + b"\xfe https://shop.example")
    secrets.redact(str(tmp_path), ENV)
    assert file.read_bytes() == b"\x00\xff[SHOP_TOKEN]\xfe https://shop.example"
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize("value", ['se"same\\open', "sésam\tö日本", "one line\nand \x1b another"])
def test_a_secret_is_found_as_json_has_it(tmp_path: Path, value: str) -> None:
    said = {"said": f"it is {value}!"}
    texts = [json.dumps(said), json.dumps(said, ensure_ascii=False), json.dumps({"read": json.dumps(said)})]
    files = [put(tmp_path, f"{number}.json", text.encode()) for number, text in enumerate(texts)]
    secrets.redact(str(tmp_path), {"KEY": value})
    for text, file in zip(texts, files, strict=True):
        told = json.dumps(json.loads(file.read_text()), ensure_ascii=False)
        assert "[KEY]" in told, text
        assert not any(line in told for line in ("same", "sésam", "one line", "another")), text


@given(before=st.integers(0, 40), between=st.integers(0, 40), block=st.integers(1, 20))
def test_a_secret_may_lie_across_blocks(
    tmp_path_factory: pytest.TempPathFactory, before: int, between: int, block: int
) -> None:
    directory = tmp_path_factory.mktemp("home")
    file = put(directory, "x", b"a" * before + TOKEN.encode() + b"b" * between + TOKEN.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_BLOCK", block)
        secrets.redact(str(directory), ENV)
    assert file.read_bytes() == b"a" * before + b"[SHOP_TOKEN]" + b"b" * between + b"[SHOP_TOKEN]"


def test_the_longer_of_two_is_taken_whole(tmp_path: Path) -> None:
    file = put(tmp_path, "x", b"sesame-sesame-open sesame-sesame")
    secrets.redact(str(tmp_path), {"A_TOKEN": TOKEN, "B_TOKEN": f"{TOKEN}-open"})
    assert file.read_bytes() == b"[B_TOKEN] [A_TOKEN]"


def test_only_files_that_hold_one_are_written_and_keep_their_mode(tmp_path: Path) -> None:
    clean, dirty = put(tmp_path, "clean", b"nothing"), put(tmp_path, "dirty", TOKEN.encode())
    dirty.chmod(0o750)
    before = clean.stat()
    secrets.redact(str(tmp_path), ENV)
    assert (clean.stat().st_ino, clean.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (dirty.read_bytes(), dirty.stat().st_mode & 0o777) == (b"[SHOP_TOKEN]", 0o750)


def test_what_is_outside_is_left_alone(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside", TOKEN.encode())
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(outside)
    (home / "gone").symlink_to("nowhere")
    secrets.redact(str(home), ENV)
    assert outside.read_text() == TOKEN


def test_ordinary_words_and_names_are_not_hidden(tmp_path: Path) -> None:
    file = put(tmp_path, "x", b"short and https://shop.example")
    secrets.redact(str(tmp_path), {"SHOP_URL": "https://shop.example", "A_KEY": "short", "B_KEY": ""})
    assert file.read_bytes() == b"short and https://shop.example"


def test_known_are_the_variables_given_and_those_that_the_type_hands_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stub(AgentType):
        passes = ("MODEL_KEY", "MODEL_URL", "ABSENT_KEY")

    monkeypatch.setattr("mngr.registry.agent_type", {"stub": Stub()}.__getitem__)
    monkeypatch.setenv("MODEL_KEY", "of the shell")
    monkeypatch.setenv("MODEL_URL", "https://model.example")
    monkeypatch.setenv("ANOTHER_KEY", "stays here")
    monkeypatch.delenv("ABSENT_KEY", raising=False)
    request = mngr.Request(env={"MODEL_KEY": "given", "SHOP_TOKEN": TOKEN})
    assert secrets.known(request, "stub") == {
        "MODEL_KEY": "given",
        "MODEL_URL": "https://model.example",
        "SHOP_TOKEN": TOKEN,
    }
