import os

import pytest

from nearlabel.features import FrequentWords, text_files
from nearlabel.features.texts import checked_texts

FILES = {
    "b.txt": b"the sea",
    "a/Z.TXT": "Größe".encode(),
    "a/mark.md": b"\xef\xbb\xbfwith a mark",
    "a/empty.txt": b"",
    "a/picture.png": b"\x89PNG",
    ".hidden.txt": b"hidden",
    "latin.txt": "Größe".encode("latin-1"),
    "zeros.txt": b"a\0b",
}
TEXTS = {"b.txt": "the sea", "a/Z.TXT": "Größe", "a/mark.md": "with a mark", "a/empty.txt": ""}
REASONS = {"latin.txt": "UTF-8", "zeros.txt": "NUL byte"}


def folder(path):
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_text(tmp_path, n_jobs):
    calls = []
    found = text_files(folder(tmp_path), n_jobs=n_jobs, progress=lambda *at: calls.append(at))
    assert dict(zip(found.names, found.texts, strict=True)) == TEXTS
    assert {name for name, _ in found.skipped} == REASONS.keys()
    assert all(REASONS[name] in reason for name, reason in found.skipped)
    assert calls[-1] == (6, 6)
    assert repr(found) == "TextFiles(4 texts, 2 skipped)"
    assert found.names == sorted(found.names)


def test_a_single_text_and_other_suffixes(tmp_path):
    folder(tmp_path)
    assert text_files(tmp_path / "b.txt").texts == ["the sea"]
    assert text_files(tmp_path, suffixes=".md").names == ["a/mark.md"]
    assert text_files(tmp_path, suffixes=[]).names == []
    for suffixes in ("txt", [5]):
        with pytest.raises(ValueError, match="suffixes"):
            text_files(tmp_path, suffixes=suffixes)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        text_files(tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_endless_and_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("nearlabel.features.texts._MOST_BYTES", 1000)
    (tmp_path / "large.txt").write_bytes(b"a" * 1001)
    (tmp_path / "just.txt").write_bytes(b"a" * 1000)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "nothing.txt").symlink_to(tmp_path / "gone")
    found = text_files(tmp_path)
    assert found.names == ["just.txt"]
    reasons = dict(found.skipped)
    assert "more than 1,000 bytes" in reasons["large.txt"]
    assert "not a regular file" in reasons["pipe.txt"]
    assert reasons.keys() == {"large.txt", "pipe.txt", "nothing.txt"}


def test_texts_go_into_transformers(tmp_path):
    found = text_files(folder(tmp_path))
    assert FrequentWords(1.0).fit_transform(found.texts).shape == (4, 5)


def test_a_table_is_not_a_list_of_texts():
    table = pytest.importorskip("pandas").DataFrame({"text": ["a sea", "trees"]})
    with pytest.raises(TypeError, match=r"X .*\(2, 1\)"):
        checked_texts(table)
    assert checked_texts(table["text"]) == ["a sea", "trees"]
