import os
from dataclasses import replace

import numpy as np
import pytest

import nearlabel as nl


@pytest.fixture
def folder(tmp_path):
    """Make a set of pictures, which are never opened, from a table."""

    def make(table, files=("1.jpg", "2.png", "c.d.jpg")):
        (tmp_path / "set" / "pictures").mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / "labels.csv").write_text(table, encoding="utf-8")
        for name in files:
            (tmp_path / "set" / "pictures" / name).write_bytes(b"")
        return tmp_path / "set"

    return make


def test_names_with_and_without_suffix(folder):
    path = folder("image,sea,a b\n2,0,1\n1.jpg,1,1\nc.d,0,0\n")
    found = nl.datasets.load_pictures(path)
    assert found.names == ["2.png", "1.jpg", "c.d.jpg"]
    assert found.pictures == [path / "pictures" / name for name in found.names]
    assert found.Y.toarray().tolist() == [[0, 1], [1, 1], [0, 0]]
    assert found.label_names.tolist() == ["sea", "a b"]


def test_by_name_in_the_data_folders(folder, monkeypatch, tmp_path):
    path = folder("image,sea\n1,1\n")
    monkeypatch.setenv("NEARLABEL_DATA", os.pathsep.join([str(tmp_path / "none"), str(tmp_path)]))
    assert nl.datasets.load_pictures("set").pictures == [path / "pictures" / "1.jpg"]
    with pytest.raises(FileNotFoundError, match="'sets'.*did you mean 'set'"):
        nl.datasets.load_pictures("sets")


@pytest.mark.parametrize(
    ("table", "files", "words"),
    [
        ("image,sea\n9,1\n", ("1.jpg",), ["no such picture", "9"]),
        ("image,sea\n../labels.csv,1\n", ("1.jpg",), ["no such picture", "../labels.csv"]),
        ("image,sea\n1,1\n", ("1.jpg", "1.png"), ["image '1'", "1.jpg", "1.png"]),
        ("image,sea\n1,1\n1.jpg,0\n", ("1.jpg",), ["1.jpg", "twice"]),
        ("image,sea\n1,2\n", ("1.jpg",), ["line 2", "'sea'", "'2'"]),
        ("file,sea\n1,1\n", ("1.jpg",), ["image"]),
        ("image\n1\n", ("1.jpg",), ["label"]),
    ],
)
def test_invalid_tables(folder, table, files, words):
    with pytest.raises(nl.datasets.DataError) as error:
        nl.datasets.load_pictures(folder(table, files))
    assert "labels.csv" in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_invalid_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"labels\.csv and pictures/"):
        nl.datasets.load_pictures(tmp_path)
    with pytest.raises(TypeError, match="source"):
        nl.datasets.load_pictures(3)


def test_painted_scenes_on_disk(tmp_path):
    images = pytest.importorskip("PIL.Image")
    scenes = nl.datasets.paint_scenes(6, size=(48, 32))
    scenes.save(tmp_path / "a" / "scenes")
    found = nl.datasets.load_pictures(tmp_path / "a" / "scenes")
    assert found.names == scenes.names
    assert found.label_names.tolist() == scenes.label_names.tolist()
    np.testing.assert_array_equal(found.Y.toarray(), scenes.Y.toarray())
    for path, picture in zip(found.pictures, scenes.pictures, strict=True):
        assert np.abs(np.asarray(images.open(path)).astype(int) - picture).mean() < 6
    found.save(tmp_path / "copy")
    copy = nl.datasets.load_pictures(tmp_path / "copy")
    assert [one.read_bytes() for one in copy.pictures] == [
        one.read_bytes() for one in found.pictures
    ]


def test_nothing_is_overwritten_unless_asked(tmp_path):
    pytest.importorskip("PIL")
    scenes = nl.datasets.paint_scenes(3, size=(48, 32))
    (tmp_path / "pictures").mkdir()
    mine = tmp_path / "pictures" / "00001.jpg"
    mine.write_text("mine")
    with pytest.raises(FileExistsError, match=r"00001\.jpg.*overwrite=True"):
        scenes.save(tmp_path)
    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["00001.jpg"]
    scenes.save(tmp_path, overwrite=True)
    assert len(nl.datasets.load_pictures(tmp_path)) == 3


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["../../a.jpg", "b.jpg"], r"\.\./\.\./a\.jpg"),
        (["/a.jpg", "b.jpg"], "/a.jpg"),
        (["..", "b.jpg"], r"'\.\.'"),
        (["b.jpg", "b.jpg"], "b.jpg.* twice"),
        (["b.jpg"], "one entry per picture, 2; got 1"),
    ],
)
def test_save_writes_only_to_its_folder(names, said, tmp_path):
    scenes = replace(nl.datasets.paint_scenes(2, size=(16, 16)), names=names)
    with pytest.raises(ValueError, match=f"names .*{said}"):
        scenes.save(tmp_path / "folder")
    assert not any(tmp_path.iterdir())
