from __future__ import annotations

import os
import stat

import pytest

from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_sidecars import Sidecars, read_sidecar, update_sidecar
from nearlabel.datasets import DataError


def test_which_sidecars_belong_to_a_picture(tmp_path):
    for name in (
        "a.jpg",
        "b.jpg",
        "b.CR2",
        "b.xmp",
        "c.jpg",
        "c.xmp",
        "d.jpg",
        "d.jpg.XMP",
        "e.jpg",
    ):
        (tmp_path / name).touch()

    def of(name):
        return [path.name for path in Sidecars().of(tmp_path / name)]

    def to_write(name):
        return [path.name for path in Sidecars().to_write(tmp_path / name)]

    assert of("a.jpg") == []
    assert to_write("a.jpg") == ["a.jpg.xmp"]
    # Two pictures are called b: b.xmp is that of the RAW photo, and read for both.
    assert of("b.jpg") == ["b.xmp"]
    assert to_write("b.jpg") == ["b.jpg.xmp"]
    assert to_write("b.CR2") == ["b.xmp"]
    (tmp_path / "b.dng").touch()
    assert to_write("b.CR2") == ["b.CR2.xmp"]
    assert to_write("c.jpg") == ["c.xmp"]
    assert to_write("d.jpg") == ["d.jpg.XMP"]
    (tmp_path / "c.jpg.xmp").touch()
    assert to_write("c.jpg") == ["c.jpg.xmp", "c.xmp"]
    assert of("none/a.jpg") == []


def test_a_sidecar_is_written_only_if_it_changes(tmp_path):
    path = tmp_path / "a.jpg.xmp"
    assert not update_sidecar(path, [])
    assert not path.exists()
    assert update_sidecar(path, ["sea", "2024"])
    path.chmod(0o640)
    os.utime(path, (1, 1))
    before = path.read_bytes()
    assert not update_sidecar(path, ["2024"], ["sky"], also=["land"])
    assert path.read_bytes() == before
    assert path.stat().st_mtime == 1
    assert update_sidecar(path, ["2024", "sky"], also=["land"])
    assert read_sidecar(path).keywords().tags() == ["sea", "2024", "land", "sky"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["a.jpg.xmp"]


def test_a_sidecar_that_cannot_be_read_stays_as_it_is(tmp_path):
    path = tmp_path / "a.xmp"
    path.write_bytes(b"<!DOCTYPE a><a/>")
    with pytest.raises(DataError, match="a.xmp: this has a document type"):
        update_sidecar(path, ["sea"])
    assert path.read_bytes() == b"<!DOCTYPE a><a/>"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(os.name == "nt", reason="no pipes and links for everybody")
def test_links_and_pipes(tmp_path):
    outside, link, pipe = tmp_path / "outside.xmp", tmp_path / "a.xmp", tmp_path / "b.xmp"
    update_sidecar(outside, ["sea"])
    before = outside.read_bytes()
    link.symlink_to(outside)
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a link"):
        update_sidecar(link, ["sky"])
    with pytest.raises(DataError, match="is not a file"):
        update_sidecar(pipe, ["sky"])
    link.unlink()
    link.symlink_to(tmp_path / "made_by_us.xmp")
    with pytest.raises(DataError, match="is a link"):
        update_sidecar(link, ["sky"])
    assert outside.read_bytes() == before
    assert not (tmp_path / "made_by_us.xmp").exists()
    assert Sidecars().read(outside).tags() == ["sea"]
    for path, kind in ((pipe, DataError), (link, OSError), (tmp_path / "none.xmp", OSError)):
        with pytest.raises(kind):
            Sidecars().read(path)


def test_a_sidecar_that_another_program_writes_meanwhile(tmp_path, monkeypatch):
    path = tmp_path / "a.xmp"
    update_sidecar(path, ["sea"])

    def meanwhile(self, *arguments):
        path.write_bytes(b"theirs")
        return b"ours"

    monkeypatch.setattr(XmpDocument, "with_tags", meanwhile)
    for _ in range(2):  # an existing one, then a new one
        with pytest.raises(DataError, match="another program has just changed"):
            update_sidecar(path, ["sky"])
        assert path.read_bytes() == b"theirs"
        path.unlink()
    assert list(tmp_path.iterdir()) == []
