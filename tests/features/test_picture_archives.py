from __future__ import annotations

import io
import os
import re
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from drawn_pictures import COLORS, file_of, quadrants
from forking import ends_well_in_a_fork

from nearlabel.features import (
    GridMoments,
    find_pictures,
    picture_files,
    picture_vectors,
)
from nearlabel.features.pictures import upright_rgb

pytest.importorskip("PIL.Image")
FILES = {
    "b/sea.png": file_of(quadrants(9, 9), "PNG"),
    "a.jpg": file_of(quadrants(10, 12, COLORS[::-1]), "JPEG"),
    "no suffix": file_of(quadrants(7, 8), "BMP"),
    "../../outside.gif": file_of(quadrants(8, 7), "GIF"),
    "broken.png": b"\x89PNG\r\n\x1a\n",
    "notes.txt": b"no picture",
    ".hidden/c.png": file_of(quadrants(9, 9), "PNG"),
    "__MACOSX/a.jpg": b"",
}
GOOD = ["b/sea.png", "a.jpg", "no suffix", "../../outside.gif"]


def zipped(path, files=FILES, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.mkdir("b") if hasattr(archive, "mkdir") else None
        for name, content in files.items():
            archive.writestr(name, content)


def tarred(path, files=FILES, mode="w"):
    with tarfile.open(path, mode) as archive:
        folder = tarfile.TarInfo("b")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("form", ["zip", "deflated", "tar"])
def test_every_form(form, n_jobs, tmp_path):
    """In the order of the archive; the suffix of its name does not matter."""
    path = tmp_path / "pictures"
    if form in ("zip", "deflated"):
        zipped(path, compression=zipfile.ZIP_DEFLATED if form == "deflated" else 0)
    else:
        tarred(path)
    found = picture_vectors(path, GridMoments(), n_jobs=n_jobs)
    assert found.names == GOOD
    assert [name for name, _ in found.skipped] == ["broken.png"]
    expected = GridMoments().transform([FILES[name] for name in GOOD])
    np.testing.assert_array_equal(found.X, expected)
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_pictures_in_any_order(form, tmp_path):
    path = tmp_path / f"a.{form}"
    zipped(path) if form == "zip" else tarred(path)
    pictures = {one.name: one for one in find_pictures(path)}
    for name in (*GOOD[::-1], *GOOD):
        np.testing.assert_array_equal(upright_rgb(pictures[name]), upright_rgb(FILES[name]))


def test_encrypted_files_are_reported_as_such(tmp_path):
    path = tmp_path / "a.zip"
    zipped(path, {"a.png": FILES["b/sea.png"], "notes.txt": b"secret", "b.png": FILES["b/sea.png"]})
    content = path.read_bytes()
    for name in (b"a.png", b"notes.txt"):  # a flag before the content, and in the directory
        first, second = (found.start() for found in re.finditer(re.escape(name), content))
        changed = bytearray(content)
        changed[first - 30 + 6] |= 1
        changed[second - 46 + 8] |= 1
        content = bytes(changed)
    path.write_bytes(content)
    found = picture_vectors(path, GridMoments())
    assert found.names == ["b.png"]
    ((name, reason),) = found.skipped
    assert name == "a.png"
    assert "encrypted" in reason


def test_bombs_in_zip(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    bomb = b"BM" + bytes(2**26)
    zipped(
        path, {"bomb.bmp": bomb, "no suffix": bomb, "fine.png": FILES["b/sea.png"]}, compression=8
    )
    found = picture_vectors(path, GridMoments())
    assert found.names == ["fine.png"]
    assert found.skipped == [
        (name, "unpacks to more than 200 times its packed size")
        for name in ("bomb.bmp", "no suffix")
    ]
    small = replace(picture_files.PICTURES, most_bytes=2**18)
    monkeypatch.setattr(picture_files, "PICTURES", small)
    assert "at most 262,144" in picture_vectors(path, GridMoments()).skipped[0][1]


@pytest.mark.parametrize("form", ["gz", "bz2", "xz"])
def test_compressed_tar_archives_are_refused_with_a_way_on(form, tmp_path):
    tarred(tmp_path / "a", mode=f"w:{form}")
    found = picture_vectors(tmp_path / "a", GridMoments())
    assert (found.names, found.X.shape) == ([], (0, 294))
    ((name, reason),) = found.skipped
    assert name == "a"
    assert "unpack it" in reason


def test_a_header_with_a_huge_size(tmp_path):
    """A name of a gibibyte is not unpacked."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 2**40
    path = tmp_path / "a.tar"
    path.write_bytes(entry.tobuf() + bytes(2048))
    found = picture_vectors(path, GridMoments())
    assert found.names == []
    assert [name for name, _ in found.skipped] == ["a.tar"]


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_damaged_archives(form, tmp_path):
    """Wherever it is damaged, intact files are read, and the rest is reported."""
    path = tmp_path / "whole"
    zipped(path) if form == "zip" else tarred(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged"
    for number in range(40):
        content = bytearray(whole)
        if number % 2:
            del content[rng.integers(300, len(content)) :]
        else:
            for place in rng.integers(30, len(content), 5):
                content[place] = rng.integers(256)
        damaged.write_bytes(content)
        found = picture_vectors(damaged, GridMoments())
        assert len(found.names) == len(found.X) <= 6
        assert form == "tar" or found.skipped


def sparse_entry(name, size):
    """A sparse GNU tar entry: one block of content that represents `size` bytes."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    for place, number in ((386, 0), (398, 512), (410, size), (422, 0), (483, size)):
        header[place : place + 12] = b"%011o\0" % number
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + FILES["b/sea.png"][:512].ljust(512, b"\0")


def test_sparse_files_in_tar_are_refused(tmp_path):
    sea = FILES["b/sea.png"]
    whole = tarfile.TarInfo("sea.png")
    whole.size = len(sea)
    content = sparse_entry("gaps.png", 2**29) + sparse_entry("gaps", 2**29) + whole.tobuf()
    (tmp_path / "sparse.tar").write_bytes(content + sea.ljust(-(-len(sea) // 512) * 512, b"\0"))
    found = picture_vectors(tmp_path / "sparse.tar", GridMoments())
    assert found.names == ["sea.png"]
    ((name, reason),) = found.skipped
    assert name == "gaps.png"
    assert "sparse" in reason


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("form", ["zip", "tar"])
def test_forked_processes_have_separate_positions(form, tmp_path):
    contents = {f"{at}.bmp": b"BM" + bytes([at]) * 100_000 for at in range(9)}
    path = tmp_path / f"a.{form}"
    zipped(path, contents) if form == "zip" else tarred(path, contents)
    pictures = find_pictures(path)

    def work():
        for _ in range(20):
            for picture in pictures[::-1]:
                assert picture.read() == contents[picture.name]

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(work)
        assert ends_well_in_a_fork(work)
        reading.result()
