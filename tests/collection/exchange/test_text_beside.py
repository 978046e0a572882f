from __future__ import annotations

import pytest

from nearlabel.collection.exchange.text_beside import TextsBeside
from nearlabel.datasets import DataError

TEXTS = TextsBeside()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("sea, sky ,,Places|Rome", ["sea", "sky", "Places|Rome"]),
        ("sea;sky;2024\n", ["sea", "sky", "2024"]),
        ("sea\r\nRome, Italy\n\nsea\n", ["sea", "Rome, Italy"]),
        ("\ufeffsea\n", ["sea"]),
        ("", []),
    ],
)
def test_texts_as_taggers_write_them(tmp_path, text, tags):
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert TEXTS.read(path).tags() == tags


def test_which_texts_belong_to_a_picture(tmp_path):
    for name in ("a.jpg", "a.jpg.txt", "a.txt", "b.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in TEXTS.files_of(tmp_path / "a.jpg")] == ["a.jpg.txt", "a.txt"]
    assert [path.name for path in TEXTS.files_of(tmp_path / "b.txt")] == []


def test_other_content_is_kept_when_tags_are_written(tmp_path):
    picture, text = tmp_path / "a.jpg", tmp_path / "a.txt"
    assert TEXTS.write(picture, ["sea", "Rome, Italy"], [])
    assert text.read_bytes() == b"sea\nRome, Italy\n"
    assert not TEXTS.write(picture, ["Rome, Italy", "sea"], [])
    assert TEXTS.write(picture, ["sky"], ["sea", "Rome, Italy"])
    assert text.read_bytes() == b"sky\n"
    text.write_text("What a day that was.", encoding="utf-8")
    with pytest.raises(DataError, match="a.txt: this has 'What a day that was.'.*import"):
        TEXTS.write(picture, ["sky"], [])
    text.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(DataError, match="too large"):
        TEXTS.write(picture, ["sky"], [])
    text.unlink()
    text.symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match="is a link"):
        TEXTS.write(picture, ["sky"], [])
    text.unlink()
    with pytest.raises(DataError, match="'Rome, Italy', would be read as two"):
        TEXTS.write(picture, ["Rome, Italy"], [])
    assert list(tmp_path.iterdir()) == []
