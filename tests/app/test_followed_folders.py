"""Files of folders that were indexed are followed while their collection is served."""

from __future__ import annotations

import logging
import os
import time

import pytest
from collection_lives import picture

from nearlabel.app.followed_folders import FollowedFolders
from nearlabel.app.served import Served
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection
from nearlabel.collection.folder_watch import FolderWatch


@pytest.fixture
def served(tmp_path):
    (tmp_path / "photos").mkdir()
    put(tmp_path, 0)
    with Collection.create(tmp_path / "c", features="moments") as collection:
        FolderWatch(tmp_path / "photos").look(collection)
        yield Served(collection, ServiceSettings(uploads=tmp_path / "uploads"))


def put(top, number, content=None):
    """Write a picture that was complete long ago."""
    path = top / "photos" / f"{number}.jpg"
    path.write_bytes(picture(number) if content is None else content)
    os.utime(path, ns=(10**18 + number, 10**18 + number))


def test_new_and_vanished_files_are_found(served, tmp_path):
    folders, collection = FollowedFolders(served), served.collection
    put(tmp_path, 1)
    put(tmp_path, 2, b"no picture")
    folders.look()
    assert [item.name for item in collection.items()] == ["0.jpg", "1.jpg"]
    before = collection.last_change()
    folders.look()  # unreadable files are not tried again
    assert collection.last_change() == before
    (tmp_path / "photos" / "0.jpg").unlink()
    folders.look()
    assert collection.ids(state="missing") == [1]


def test_undone_and_forgotten_files_do_not_return(served, tmp_path):
    folders, collection = FollowedFolders(served), served.collection
    put(tmp_path, 1)
    folders.look()
    assert collection.ids() == [1, 2]
    collection.undo()
    folders.look()
    assert collection.ids() == [1]
    put(tmp_path, 2)
    folders.look()
    (new,) = set(collection.ids()) - {1}
    collection.forget(new)
    folders.look()
    assert collection.ids() == [1]
    put(tmp_path, 2, picture(11))  # different content is a different file
    os.utime(tmp_path / "photos" / "2.jpg", ns=(10**18 + 99, 10**18 + 99))
    folders.look()
    assert [item.name for item in collection.items()] == ["0.jpg", "2.jpg"]


def test_a_missing_folder_is_reported_once_and_may_return(served, tmp_path, caplog):
    folders = FollowedFolders(served)
    (tmp_path / "photos").rename(tmp_path / "away")
    with caplog.at_level(logging.WARNING, "nearlabel.service"):
        folders.look()
        folders.look()
    assert len(caplog.records) == 1
    assert served.collection.ids(state="missing") == []
    (tmp_path / "away").rename(tmp_path / "photos")
    put(tmp_path, 3)
    folders.look()
    assert len(served.collection.ids()) == 2


def test_the_thread_scans_until_it_is_stopped(served, tmp_path):
    folders = FollowedFolders(served, every=0.01)
    folders.start()
    put(tmp_path, 4)
    end = time.monotonic() + 20
    while len(served.collection.ids()) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    folders.stop()
    assert len(served.collection.ids()) == 2
    put(tmp_path, 5)
    time.sleep(0.05)
    assert len(served.collection.ids()) == 2


def test_a_long_scan_can_be_stopped_between_files(served, tmp_path, monkeypatch):
    monkeypatch.setattr("nearlabel.collection.indexing._FILES_AT_ONCE", 1)
    for number in range(10, 40):
        put(tmp_path, number)
    folders = FollowedFolders(served)
    folders.start()
    while len(served.collection.ids()) < 3:
        time.sleep(0.001)
    folders.stop()
    assert 3 <= len(served.collection.ids()) < 31
