"""The file format: files are read back as written, and anything else is refused."""

import copy
import hashlib
import os
import pickle
import re
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
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
from tree_paths import read_tree

from nearlabel.common import files
from nearlabel.common.files import (
    FORMAT,
    FileError,
    read_stored,
    replacing,
    stored_digest,
    write_tree,
)
from nearlabel.common.mapped_arrays import MappedArray, checked, checked_tree

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
def test_round_trip(tmp_path_factory, tree, mmap):
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


def flip(file, whole, place):
    """Write a file with one bit changed, in place: truncating it first would be slow."""
    with file.open("r+b") as out:
        out.write(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def test_every_bit_counts(file):
    """Any changed byte and any truncation is detected, in the arrays and around them."""
    whole = file.read_bytes()
    for place in range(len(whole)):
        flip(file, whole, place)
        for mmap in (False, True):
            with pytest.raises(FileError, match=re.escape(str(file))):
                read_tree(file, mmap=mmap)
    for size in range(0, len(whole), 7):
        file.write_bytes(whole[:size])
        with pytest.raises(FileError, match="file .*(not a nearlabel file|truncated)"):
            read_tree(file)
    file.write_bytes(whole + b"\0")
    with pytest.raises(FileError, match=f"file .*{len(whole)} bytes.*{len(whole) + 1}"):
        read_tree(file)


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """A file in blocks of 64 bytes; a row of its large array has 24."""
    monkeypatch.setattr(files, "BLOCK", 64)
    path = tmp_path / "mapped"
    numbers = np.arange(54.0).reshape(18, 3)
    write_tree(path, {"text": "ä", "numbers": numbers, "few": np.arange(3)})
    return path


def test_mapped_arrays_are_read_only_and_not_copied(mapped):
    tree, _ = read_tree(mapped, mmap=True)
    numbers = tree["numbers"]
    assert isinstance(numbers, MappedArray)
    assert not isinstance(tree["few"], MappedArray)
    for array in (numbers, checked(numbers), numbers.checked(3, 5), numbers[2:4]):
        assert not array.flags.writeable
        assert np.shares_memory(array, numbers.view(np.ndarray))
    assert numbers.ctypes.data % 64 == 0
    assert type(checked(numbers)) is np.ndarray
    assert checked(numbers).tolist() == np.arange(54.0).reshape(18, 3).tolist()
    plain = np.arange(3)
    assert checked(plain) is plain


def test_every_bit_of_a_mapped_file_counts(mapped):
    """What is not detected at load is detected on first access to its block."""
    whole, late = mapped.read_bytes(), []
    start = whole.index(np.arange(54.0).tobytes())
    for place in range(len(whole)):
        flip(mapped, whole, place)
        with pytest.raises(FileError, match=re.escape(str(mapped))):
            read_tree(mapped)
        try:
            tree, _ = read_tree(mapped, mmap=True)
        except FileError:
            continue
        late.append(place)
        block = (place - start) // 64
        for row, numbers in enumerate(np.arange(54.0).reshape(18, 3)):
            if block in range(24 * row // 64, (24 * row + 23) // 64 + 1):
                for touch in (
                    lambda array, row: array.checked(row, row + 1),
                    lambda array, row: array.checked_rows([row - 18]),
                    lambda array, row: array[row],
                    lambda array, row: array[row : row + 1],
                    lambda array, row: array[row, 2],
                ):
                    with pytest.raises(FileError, match=f"{re.escape(str(mapped))} .*checksum"):
                        touch(tree["numbers"], row)
            else:
                assert tree["numbers"].checked(row, row + 1).tolist() == [numbers.tolist()]
                assert tree["numbers"].checked_rows([row]).tolist() == [numbers.tolist()]
        with pytest.raises(FileError, match="checksum"):
            checked_tree(tree)
    assert late == list(range(start, start + 54 * 8))


@pytest.mark.parametrize(
    "use",
    [
        checked,
        MappedArray.checked,
        lambda a: a[::2],
        lambda a: a[..., 1],
        lambda a: a[np.arange(18) > 3],
        lambda a: a[checked(a) > 3],
        lambda a: a[True],
        lambda a: a[[1, 8]],
        lambda a: a + 1,
        lambda a: a.sum(),
        lambda a: np.concatenate([np.zeros((1, 3)), a]),
        pickle.dumps,
        copy.deepcopy,
        lambda a: write_tree(os.devnull, {"x": a}),
    ],
)
def test_uses_of_a_mapped_array_are_checked(mapped, use):
    whole = mapped.read_bytes()
    right = use(read_tree(mapped, mmap=True)[0]["numbers"])
    assert not isinstance(right, MappedArray)
    flip(mapped, whole, whole.index(np.arange(54.0).tobytes()) + 200)
    with pytest.raises(FileError, match="checksum"):
        use(read_tree(mapped, mmap=True)[0]["numbers"])


def test_a_block_is_checked_once(mapped, monkeypatch):
    blocks = []
    check = files._Checks.check
    monkeypatch.setattr(files._Checks, "check", lambda *a: blocks.append(a[1]) or check(*a))
    numbers = read_tree(mapped, mmap=True)[0]["numbers"]
    blocks.clear()  # of the arrays that are not mapped
    numbers.checked(0, 0)
    assert blocks == []
    numbers.checked(2, 4)  # bytes 48 to 95
    assert blocks == [0, 1]
    numbers.checked_rows([17, 2, 17])
    assert blocks == [0, 1, 6]
    checked(numbers)
    checked(numbers)
    assert sorted(blocks) == list(range(7))


def test_threads_check_in_parallel(mapped):
    whole = mapped.read_bytes()
    expected = np.arange(54.0).reshape(18, 3)
    for is_right in (True, False):
        if not is_right:
            flip(mapped, whole, whole.index(expected.tobytes()))
        numbers = read_tree(mapped, mmap=True)[0]["numbers"]
        with ThreadPoolExecutor(8) as threads:
            rows = [row for row in range(18) for _ in range(8)]
            found = [threads.submit(numbers.checked, row, row + 1) for row in rows]
        for row, one in zip(rows, found, strict=True):
            if is_right or 24 * row >= 64:
                assert one.result().tolist() == [expected[row].tolist()]
            else:
                assert isinstance(one.exception(), FileError)


def test_memory_does_not_grow_with_an_array_that_is_written(tmp_path):
    path = tmp_path / "file"
    write_tree(path, {"x": np.arange(2**20)})
    array = read_tree(path, mmap=True)[0]["x"]
    tracemalloc.start()
    try:
        write_tree(path, {"x": array})
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(checked(array), np.arange(2**20))


def test_a_part_without_checksums_says_so(mapped):
    numbers = read_tree(mapped, mmap=True)[0]["numbers"]
    with pytest.raises(TypeError, match="part of a mapped array"):
        checked(numbers.T)


def test_a_replaced_file_stays_as_it_was(mapped):
    numbers = read_tree(mapped, mmap=True)[0]["numbers"]
    write_tree(mapped, {"numbers": np.zeros((18, 3))})
    assert checked(numbers)[0].tolist() == [0, 1, 2]
    mapped.unlink()
    assert checked(numbers)[0].tolist() == [0, 1, 2]


def test_rows_are_gathered_as_from_plain_arrays(mapped):
    numbers = read_tree(mapped, mmap=True)[0]["numbers"]
    plain = np.arange(54.0).reshape(18, 3)
    for rows in ([], [3], [17, 0, -1], np.array([[1, 2], [3, 4]]), np.arange(18) % 5 == 0, 4):
        assert numbers.checked_rows(rows).tolist() == plain[rows].tolist()
    for wrong in (18, -19, [18], [-19]):
        with pytest.raises(IndexError):
            numbers.checked_rows(wrong)


@given(data=st.data(), width=st.integers(1, 40))
def test_exactly_the_blocks_of_some_rows_are_checked(tmp_path_factory, data, width):
    path = tmp_path_factory.mktemp("rows") / "file"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", 64)
        write_tree(path, {"x": np.zeros((20, width))})
        array = read_tree(path, mmap=True)[0]["x"]
    rows = data.draw(st.lists(st.integers(-20, 19), max_size=4))
    array.checked_rows(rows)
    starts = [row % 20 * 8 * width for row in rows]
    expected = {at // 64 for start in starts for at in range(start, start + 8 * width)}
    assert {*np.flatnonzero(array._is_right).tolist()} == expected


def test_a_file_is_known_by_its_digest(mapped):
    tree, _, digest = read_stored(mapped)
    assert stored_digest(mapped) == digest
    assert write_tree(mapped, tree) == digest
    assert write_tree(mapped, {**tree, "few": tree["few"] + 1}) != digest
    mapped.write_bytes(b"something else")
    assert stored_digest(mapped) is None
    assert stored_digest(mapped / "none") is None


@pytest.mark.skipif(os.name == "nt", reason="needs pipes")
def test_a_pipe_gets_the_same_bytes(mapped):
    tree, _ = read_tree(mapped)
    pipe = mapped.with_name("pipe")
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        written = other.submit(pipe.read_bytes)
        write_tree(pipe, tree)
        assert written.result() == mapped.read_bytes()


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
def test_invalid_headers(file, header):
    file.write_bytes(resealed(file.read_bytes(), header))
    with pytest.raises(FileError, match="file .*(header|truncated)"):
        read_tree(file)


def test_older_files_have_one_checksum_for_an_array(file, monkeypatch):
    whole = resealed(file.read_bytes(), version=2)
    last = whole.index(np.arange(100.0).tobytes()) + 799
    monkeypatch.setattr(files, "BLOCK", 64)
    file.write_bytes(whole)
    numbers = read_tree(file, mmap=True)[0]["numbers"]
    assert isinstance(numbers, MappedArray)
    assert numbers[:2].tolist() == [0, 1]
    flip(file, whole, last)
    numbers = read_tree(file, mmap=True)[0]["numbers"]
    with pytest.raises(FileError, match="checksum"):
        numbers[:2]


def test_as_many_checksums_as_blocks(file):
    whole = file.read_bytes()
    size = struct.unpack("<14sHQQ", whole[:32])[2]
    digits = hashlib.sha256(np.arange(100.0).tobytes()).hexdigest().encode()
    for wrong in (b"", digits[:-1], 2 * digits):
        file.write_bytes(resealed(whole, whole[64 : 64 + size].replace(digits, wrong)))
        with pytest.raises(FileError, match=r"file .*header is not valid"):
            read_tree(file)


def test_invalid_booleans(file, monkeypatch):
    """Bytes other than 0 and 1 would be a third truth value in NumPy."""
    write_tree(file, {"x": np.array([True, False])})
    whole = file.read_bytes()
    size = struct.unpack("<14sHQQ", whole[:32])[2]
    wrong = whole[:-64] + b"\2" + whole[-63:]
    old, new = (hashlib.sha256(two).hexdigest().encode() for two in (b"\1\0", b"\2\0"))
    file.write_bytes(resealed(wrong, whole[64 : 64 + size].replace(old, new)))
    with pytest.raises(FileError, match="file .*boolean"):
        read_tree(file)
    monkeypatch.setattr(files, "BLOCK", 1)  # two bytes are mapped, and are two blocks
    one = hashlib.sha256(b"\2").hexdigest() + hashlib.sha256(b"\0").hexdigest()
    file.write_bytes(resealed(wrong, whole[64 : 64 + size].replace(old, one.encode())))
    truths = read_tree(file, mmap=True)[0]["x"]
    assert truths.checked(1).tolist() == [False]
    with pytest.raises(FileError, match="file .*boolean"):
        checked(truths)


def test_values_that_cannot_be_written(tmp_path):
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


def test_leftovers_of_a_killed_process_are_removed_after_a_day(tmp_path):
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
