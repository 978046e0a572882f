"""Uploads belong to a collection: whoever forgets or undoes them, their files are removed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_pictures import file_of

from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.records import content_of


def put(collection: Collection, folder: Path, content: bytes) -> tuple[int, Path]:
    """Add an upload; returns its item and its file."""
    digest = hashlib.sha256(content)
    path = folder / f"{digest.hexdigest()}.png"
    folder.mkdir(exist_ok=True)
    path.write_bytes(content)
    state = FileState(str(folder), path.name, len(content), path.stat().st_mtime_ns)
    (item,) = collection.add([NewItem(digest.digest(), [len(content), 1], (state,))])
    return item, path


@pytest.fixture
def uploads(tmp_path):
    return tmp_path / "uploads"


@pytest.fixture
def photos(tmp_path, uploads):
    with Collection.create(tmp_path / "c", features="moments") as collection:
        collection.keep_uploads_in(uploads)
        yield collection


@pytest.mark.parametrize("step", ["undo", "forget"])
def test_files_go_with_their_items(photos, uploads, step):
    put(photos, uploads, b"first")
    item, path = put(photos, uploads, b"second")
    if step == "undo":
        photos.undo()
    else:
        photos.forget(item)
    assert not path.exists()
    assert len([*uploads.iterdir()]) == 1
    assert photos.notes == []


def test_thumbnails_go_with_what_is_taken_back(tmp_path):
    pytest.importorskip("PIL.Image")
    path = tmp_path / "a.png"
    path.write_bytes(file_of(np.zeros((9, 9, 3), np.uint8), "PNG"))
    state = FileState(str(tmp_path), "a.png", 1, 1)
    with Collection.create(tmp_path / "c", features="moments") as photos:
        content = content_of(path.read_bytes())
        for step in (photos.undo, lambda: photos.forget(photos.ids())):
            (item,) = photos.add([NewItem(content, [1, 2], (state,))])
            photos.thumbnail(item)
            assert [*tmp_path.glob("c/thumbnails/*/*")]
            step()
            assert not [*tmp_path.glob("c/thumbnails/*/*")]
    assert path.exists()


def test_files_stay_as_long_as_an_item_has_their_content(photos, uploads, tmp_path):
    item, path = put(photos, uploads, b"first")
    same = FileState(str(tmp_path / "elsewhere"), "a.png", 5, 1)
    photos.add([NewItem(hashlib.sha256(b"first").digest(), None, (same,))])
    photos.undo()
    assert path.exists()
    photos.set_files(uploads, missing=[path.name])
    assert path.exists()
    photos.forget(item)
    assert not path.exists()


def test_files_that_are_not_uploads_stay(photos, uploads, tmp_path):
    altered, path = put(photos, uploads, b"first")
    path.write_bytes(b"altered")
    other, elsewhere = put(photos, tmp_path / "elsewhere", b"second")
    linked, link = put(photos, uploads, b"third")
    link.unlink()
    link.symlink_to(elsewhere)
    (uploads / "notes.png").write_bytes(b"not ours")
    named = FileState(str(uploads), "notes.png", 8, 1)
    (own,) = photos.add([NewItem(hashlib.sha256(b"not ours").digest(), [1, 2], (named,))])
    photos.forget([altered, other, linked, own])
    assert all(file.exists() for file in (path, elsewhere, link, uploads / "notes.png"))


def test_what_cannot_be_removed_is_tried_again(tmp_path, uploads, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied", str(path))

    with Collection.create(tmp_path / "c", features="moments") as photos:
        photos.keep_uploads_in(uploads)
        item, path = put(photos, uploads, b"first")
        monkeypatch.setattr("nearlabel.collection.removals._is_as_named", refused)
        photos.forget(item)
        assert path.exists()
        (note,) = photos.notes
        assert str(path) in note
        assert "Permission denied" in note
    monkeypatch.undo()
    with Collection(tmp_path / "c") as photos:
        assert not path.exists()
        assert photos.notes == []


def test_a_kill_between_the_change_and_the_removal(tmp_path, uploads):
    with Collection.create(tmp_path / "c", features="moments") as photos:
        photos.keep_uploads_in(uploads)
        _, path = put(photos, uploads, b"first")
    code = f"""
import os
from nearlabel.collection import Collection, opened_folder
photos = Collection({str(tmp_path / "c")!r})
opened_folder.remove_listed = lambda *_: os._exit(9)
photos.undo()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert path.exists()
    with Collection(tmp_path / "c") as photos:
        assert photos.items() == []
        assert not path.exists()


def test_an_upload_that_comes_again_stays(tmp_path, uploads, monkeypatch):
    with Collection.create(tmp_path / "c", features="moments") as photos:
        photos.keep_uploads_in(uploads)
        put(photos, uploads, b"first")
        monkeypatch.setattr("nearlabel.collection.opened_folder.remove_listed", lambda *_: [])
        photos.undo()
        monkeypatch.undo()
        _, path = put(photos, uploads, b"first")
    with Collection(tmp_path / "c"):
        assert path.exists()


def test_copies_do_not_remove_the_files_of_the_original(tmp_path, uploads):
    with Collection.create(tmp_path / "c", features="moments") as photos:
        photos.keep_uploads_in(uploads)
        item, path = put(photos, uploads, b"first")
        photos.backup(tmp_path / "backup")
    shutil.copytree(tmp_path / "c", tmp_path / "copied")
    for name in ("backup", "copied"):
        with Collection(tmp_path / name) as copy:
            copy.forget(item)
        assert path.exists()
    (tmp_path / "c").rename(tmp_path / "moved")
    with Collection(tmp_path / "moved") as photos:
        photos.undo()
        assert not path.exists()
