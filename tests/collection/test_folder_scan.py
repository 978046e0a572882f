"""The files of a folder."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from nearlabel.collection import folder_scan
from nearlabel.collection.folder_scan import FileStamp, read_unchanged, scan_folder
from nearlabel.features import UnreadablePicture, pictures
from nearlabel.features.pictures import PICTURES

LONG_AGO = 10**18
PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


def write(path, content=b"picture", mtime_ns=LONG_AGO):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(mtime_ns, mtime_ns))
    return path


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    write(folder / "b.JPG", b"12345")
    write(folder / "a" / "x.png")
    write(folder / "a" / "no_suffix", PNG)
    write(folder / "notes.txt")
    return folder


def test_pictures_are_found_by_suffix_or_content(photos):
    found = scan_folder(photos, PICTURES)
    assert [*found.files] == ["a/no_suffix", "a/x.png", "b.JPG"]
    assert found.files["b.JPG"] == FileStamp(5, LONG_AGO)
    assert (found.skipped, found.unread) == ([], [])


def test_a_part_of_a_folder(photos):
    (photos / "a" / "twin.jpg").symlink_to(photos / "b.JPG")
    found = scan_folder(photos, PICTURES, inside="a")
    assert [*found.files] == ["a/no_suffix", "a/twin.jpg", "a/x.png"]


def test_hidden_files_and_collections_are_left_out(photos):
    write(photos / ".hidden.jpg")
    write(photos / ".cache" / "x.jpg")
    write(photos / "photos.nearlabel" / "collection.sqlite")
    write(photos / "photos.nearlabel" / "thumbnails" / "ab" / "x.jpg")
    assert len(scan_folder(photos, PICTURES).files) == 3


def test_links_lead_to_files_of_the_folder_only(photos, tmp_path):
    outside = write(tmp_path / "elsewhere" / "secret.jpg")
    (photos / "twin.jpg").symlink_to(photos / "b.JPG")
    (photos / "again").symlink_to(photos / "a")
    (photos / "round").symlink_to(photos)
    (photos / "out.jpg").symlink_to(outside)
    (photos / "out").symlink_to(outside.parent)
    (photos / "sibling.jpg").symlink_to(write(tmp_path / "photos2" / "x.jpg"))
    (photos / "nothing.jpg").symlink_to(photos / "gone.jpg")
    (photos / "loop.jpg").symlink_to(photos / "loop.jpg")
    found = scan_folder(photos, PICTURES)
    assert [*found.files] == ["a/no_suffix", "a/x.png", "b.JPG", "twin.jpg"]
    reasons = dict(found.skipped)
    assert {*reasons} == {"out.jpg", "out", "sibling.jpg", "nothing.jpg", "loop.jpg"}
    assert all("outside the folder" in reasons[one] for one in ("out.jpg", "out", "sibling.jpg"))


def test_a_folder_that_is_itself_a_link(photos, tmp_path):
    (tmp_path / "link").symlink_to(photos)
    assert len(scan_folder(tmp_path / "link", PICTURES).files) == 3


def test_special_files(photos):
    os.mkfifo(photos / "pipe.jpg")
    os.mkfifo(photos / "pipe")
    found = scan_folder(photos, PICTURES)
    assert found.skipped == [("pipe.jpg", "is not a regular file")]


def test_a_name_that_is_not_utf8(photos):
    name = os.fsdecode(b"\xe9t\xe9.jpg")
    write(photos / name)
    assert name in scan_folder(photos, PICTURES).files


def test_a_folder_that_cannot_be_listed(photos, monkeypatch):
    listed = os.scandir

    def refusing(path):
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(folder_scan.os, "scandir", refusing)
    found = scan_folder(photos, PICTURES)
    assert ([*found.files], found.unread) == (["b.JPG"], ["a"])
    assert found.skipped == [("a", "cannot be listed: Permission denied")]
    assert found.may_have("a/x.png")
    assert not found.may_have("ab.png")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        scan_folder(tmp_path / "gone", PICTURES)


def test_known_files_are_not_opened_again(photos, monkeypatch):
    known = scan_folder(photos, PICTURES).files
    opened = []
    regular_file = pictures.regular_file
    monkeypatch.setattr(
        pictures, "regular_file", lambda path: opened.append(path) or regular_file(path)
    )
    assert scan_folder(photos, PICTURES, known).files == known
    assert opened == [str(photos / "notes.txt")]


def test_content(tmp_path):
    read = read_unchanged(write(tmp_path / "x.jpg", b"abc"), 10)
    assert read == (b"abc", hashlib.sha256(b"abc").digest(), FileStamp(3, LONG_AGO))


def test_a_file_that_was_just_written_has_no_usable_time(tmp_path):
    """It may be written again in the same clock tick."""
    now, second = time.time_ns(), 10**9
    whole = now // second * second
    for moment, is_kept in (
        (now, False),
        (now - second // 5 | 1, True),
        (whole - second, False),  # by a clock that may tick every other second
        (whole - 3 * second, True),
        (now + 1000 * second | 1, True),  # by a clock that was put back since
    ):
        read = read_unchanged(write(tmp_path / "x.jpg", b"abc", moment), 10)
        assert read.stamp == FileStamp(3, moment if is_kept else 0)


@pytest.mark.parametrize("change", ["longer", "shorter", "other"])
def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch, change):
    path = write(tmp_path / "x.jpg", b"abcdef")
    about = os.fstat
    calls = []

    def changing(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:  # regular_file has asked first
            content = {"longer": b"abcdefg", "shorter": b"abc", "other": b"ABCDEF"}[change]
            write(path, content, LONG_AGO + (change == "other"))
        return about(descriptor)

    monkeypatch.setattr(os, "fstat", changing)
    with pytest.raises(UnreadablePicture, match="changed while it was being read"):
        read_unchanged(path, 10)
    assert len(calls) == 3


def test_dates_of_other_centuries(tmp_path):
    """The database has integers of 64 bits, which count nanoseconds up to the year 2262."""
    for year in (2299, 2300, 1950):
        seconds = int((year - 1970) * 365.25 * 86400)
        path = write(tmp_path / "x.jpg", b"abc", seconds * 10**9)
        if path.stat().st_mtime_ns != seconds * 10**9:
            pytest.skip("this file system has no such dates")
        stamp = read_unchanged(path, 10).stamp
        assert stamp == scan_folder(tmp_path, PICTURES).files["x.jpg"]
        assert abs(stamp.mtime_ns) < 2**63
        assert (stamp.mtime_ns - seconds * 10**9) % 2**64 == 0


def test_too_large(tmp_path):
    with pytest.raises(UnreadablePicture, match="has 6 bytes; at most 5"):
        read_unchanged(write(tmp_path / "x.jpg", b"abcdef"), 5)
