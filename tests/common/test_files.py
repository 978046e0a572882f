"""The file format: what is written comes back, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    arrays,
    boolean_dtypes,
    floating_dtypes,
    integer_dtypes,
)

from nearlabel.common.files import FORMAT, FileError, read_tree, replacing, write_tree

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
dtypes = integer_dtypes() | floating_dtypes(endianness="?") | boolean_dtypes()
numbers = arrays(dtypes, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
trees = st.recursive(
    leaves | st.text(st.characters(codec="utf-8")) | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=8,
)


def same(one, other):
    if isinstance(one, np.ndarray):
        as_bytes = [part.astype(part.dtype.newbyteorder("<")).tobytes() for part in (one, other)]
        return one.shape == other.shape and as_bytes[0] == as_bytes[1]
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@given(tree=st.dictionaries(st.text("abc"), trees, max_size=3), mmap=st.booleans())
def test_there_and_back(tmp_path_factory, tree, mmap):
    path = tmp_path_factory.mktemp("tree") / "file"
    write_tree(path, tree)
    again, version = read_tree(path, mmap=mmap)
    assert version == FORMAT
    assert same(tree, again)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    write_tree(path, {"text": "ä", "numbers": np.arange(100.0), "few": np.arange(3, dtype=np.int8)})
    return path


def test_mapped_arrays_are_read_only_and_not_copied(file):
    tree, _ = read_tree(file, mmap=True)
    assert isinstance(tree["numbers"], np.memmap)
    assert not tree["numbers"].flags.writeable
    assert tree["numbers"].ctypes.data % 64 == 0
    assert tree["numbers"].tolist() == list(range(100))


def test_every_bit_counts(file):
    """A change of any byte, and any cut, is noticed, in the arrays and around them."""
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        for mmap in (False, True):
            with pytest.raises(FileError, match=re.escape(str(file))):
                read_tree(file, mmap=mmap)
    for size in range(0, len(whole), 7):
        file.write_bytes(whole[:size])
        with pytest.raises(FileError, match="file .*(not a nearlabel file|cut off)"):
            read_tree(file)
    file.write_bytes(whole + b"\0")
    with pytest.raises(FileError, match=f"file .*{len(whole)} bytes.*{len(whole) + 1}"):
        read_tree(file)


def resealed(content, header=None, version=None):
    """A file with another header or version, and the checksum that belongs to it."""
    mark, old, size, total = struct.unpack("<14sHQQ", content[:32])
    text = content[64 : 64 + size] if header is None else header
    begin = -(-(64 + size) // 64) * 64
    start = -(-(64 + len(text)) // 64) * 64
    total += start - begin
    lengths = struct.pack("<14sHQQ", mark, old if version is None else version, len(text), total)
    head = lengths + hashlib.sha256(lengths + text).digest() + text
    return head.ljust(start, b"\0") + content[begin:]


def test_newer_files_and_foreign_ones(file, tmp_path):
    whole = file.read_bytes()
    file.write_bytes(resealed(whole))
    assert read_tree(file)[0]["text"] == "ä"
    file.write_bytes(resealed(whole, version=FORMAT + 1))
    with pytest.raises(FileError, match=f"file .*version {FORMAT + 1}.*{FORMAT}"):
        read_tree(file)
    for content in (b"", b"text", pickle.dumps({}), b"PK\x03\x04" + b"0" * 99):
        file.write_bytes(content)
        with pytest.raises(FileError, match="file .*not a nearlabel file"):
            read_tree(file)
    with pytest.raises(FileNotFoundError):
        read_tree(tmp_path / "none")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"tree": {}, "arrays": 5}',
        b'{"tree": {}, "arrays": [{"dtype": "|O8", "shape": [1], "sha256": ""}]}',
        b'{"tree": {}, "arrays": [{"dtype": "<f8", "shape": [-1], "sha256": ""}]}',
        b'{"tree": {}, "arrays": [{"dtype": "<f8", "shape": [1e3], "sha256": ""}]}',
        b'{"tree": {}, "arrays": [{"dtype": "<f8", "shape": [4611686018427387904], "sha256": ""}]}',
        b'{"tree": NaN, "arrays": []}',
        b'{"tree": {}}',
    ],
)
def test_headers_that_make_no_sense(file, header):
    file.write_bytes(resealed(file.read_bytes(), header))
    with pytest.raises(FileError, match="file .*(header|cut off)"):
        read_tree(file)


def test_truth_values_that_are_none(file):
    """Other bytes than 0 and 1 would be a third truth value to numpy."""
    write_tree(file, {"x": np.array([True, False])})
    whole = file.read_bytes()
    size = struct.unpack("<14sHQQ", whole[:32])[2]
    wrong = whole[:-64] + b"\2" + whole[-63:]
    old, new = (hashlib.sha256(two).hexdigest().encode() for two in (b"\1\0", b"\2\0"))
    file.write_bytes(resealed(wrong, whole[64 : 64 + size].replace(old, new)))
    with pytest.raises(FileError, match="file .*truth value"):
        read_tree(file)


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "file"
    for value in (np.array(["a"]), np.array([{}], dtype=object), np.array([1j])):
        with pytest.raises(TypeError, match=f"arrays.*{re.escape(str(value.dtype))}"):
            write_tree(path, {"x": value})
    with pytest.raises(ValueError, match="Out of range float"):
        write_tree(path, {"x": float("nan")})
    assert not list(tmp_path.iterdir())


def fail_to_write(path, error):
    with replacing(path) as file:
        file.write(b"half of the new")
        raise error


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail_to_write(path, error)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="needs links, devices and modes")
def test_links_devices_and_modes(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"
    with replacing("/dev/null") as file:
        file.write(b"x")
    assert not Path("/dev/null").is_file()
    target.chmod(0o600)
    with replacing(target) as file:
        file.write(b"y")
    assert target.stat().st_mode & 0o777 == 0o600
    umask = os.umask(0o027)
    try:
        with replacing(tmp_path / "shared") as file:
            file.write(b"x")
    finally:
        os.umask(umask)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o640


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path):
    target = tmp_path / "model [1]"
    orphan, recent = tmp_path / ".model [1].0badcafe.part", tmp_path / ".model [1].5eed.part"
    other = tmp_path / ".another.0badcafe.part"
    for path in (orphan, recent, other):
        path.write_bytes(b"half")
    for path in (orphan, other):
        os.utime(path, (0, 0))
    write_tree(target, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [other.name, recent.name, target.name]
    )
