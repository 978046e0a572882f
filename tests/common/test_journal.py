"""Journals: acknowledged changes survive, and damage is distinguished from a torn write."""

import os
import re
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.common.journal import Journal, journal_path, read_changes, save_tree

HEAD = 64
CHANGES = [
    {"number": 0},
    {"number": 1, "rows": np.arange(6.0).reshape(2, 3)},
    {"number": 2, "names": ["ä"]},
]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    write_tree(path, {"x": 1})
    return path


def put(path, content):
    """Write a file in place; truncating it first would be slow."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def digest_of(model):
    return read_stored(model).digest


def opened(model):
    stored = read_stored(model)
    journal, _ = Journal.create_or_open(model, stored.digest, stored.tree.get("replaces"))
    return closing(journal)


def read(model):
    stored = read_stored(model)
    return numbers(read_changes(model, stored.digest, stored.tree.get("replaces")))


def numbers(changes):
    return [change["number"] for change in changes]


@pytest.fixture
def written(model):
    """A model file with a journal of three records, and where each of them ends."""
    ends = [HEAD]
    with opened(model) as journal:
        for change in CHANGES:
            journal.append(change)
            ends.append(journal.path.stat().st_size)
    return model, ends


def test_changes_come_back(written):
    model, _ = written
    with opened(model) as journal:
        assert numbers(journal.records()) == [0, 1, 2]
        journal.append({"number": 3}, {"number": 4})
        assert numbers(journal.records()) == [0, 1, 2, 3, 4]
        assert read(model) == [0, 1, 2, 3, 4]  # during a write
    changes = read_changes(model, digest_of(model))
    np.testing.assert_array_equal(changes[1]["rows"], CHANGES[1]["rows"])
    assert changes[2] == CHANGES[2]
    assert read_changes(model.with_name("none"), "00") == []


def test_a_journal_has_the_mode_of_its_model(model):
    model.chmod(0o600)
    with opened(model) as journal:
        assert journal.path.stat().st_mode & 0o777 == 0o600


def test_a_journal_torn_at_any_byte(written, monkeypatch):
    """Complete records are read; a writer drops the rest with a warning, and truncates it."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # takes most of the time
    model, ends = written
    path = journal_path(model)
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        put(path, whole[:size])
        expected = [0, 1, 2][: sum(end <= size for end in ends[1:])]
        is_torn = size > HEAD and size not in ends
        is_near_an_end = min(abs(size - end) for end in ends) < 9
        for use in (read, read_and_add) if is_near_an_end or size % 7 == 0 else (read,):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert use(model) == expected
            assert [str(one.message).startswith(f"{path}: the last") for one in told] == (
                [True] * (is_torn and use is read_and_add)
            )
        if use is read_and_add:
            assert read(model) == [*expected, 9]


def read_and_add(model):
    with opened(model) as journal:
        found = numbers(journal.records())
        journal.append({"number": 9})
    return found


@pytest.mark.parametrize("unit", [512, 4096])
def test_sectors_that_never_arrived(model, unit):
    """A crash may leave zeros for any unit of the last record that a disk writes as a whole."""
    path, digest = journal_path(model), digest_of(model)
    with opened(model) as journal:
        journal.append({"number": 0})
        end = path.stat().st_size
        journal.append({"number": 1, "rows": np.arange(1, 3000)})
    whole = path.read_bytes()
    for start in range(end // unit * unit, len(whole), unit):
        first, stop = max(start, end), min(start + unit, len(whole))
        put(path, whole[:first] + bytes(stop - first) + whole[stop:])
        assert numbers(read_changes(model, digest)) == [0]
    put(path, whole[:end] + bytes(len(whole) - end))
    assert numbers(read_changes(model, digest)) == [0]
    with pytest.warns(UserWarning, match="not written completely"):
        assert read_and_add(model) == [0]
    put(path, bytes(HEAD))  # its head did not arrive
    assert read_changes(model, digest) == []
    put(path, bytes(HEAD) + whole[HEAD:])  # not a crash: there were records
    with pytest.raises(FileError, match="not a nearlabel journal"):
        read_changes(model, digest)


def test_every_bit_of_a_journal_counts(written):
    """Damage is distinguished from a torn write, also in the last record."""
    model, _ = written
    path, digest = journal_path(model), digest_of(model)
    whole = path.read_bytes()
    for place in range(len(whole)):
        put(path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        for use in (read_changes, Journal.create_or_open):
            with pytest.raises(FileError, match=re.escape(str(path))):
                use(model, digest)
        assert len(path.read_bytes()) == len(whole)


@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 200), st.binary(max_size=80)), max_size=4
    )
)
def test_random_damage_to_a_journal(tmp_path_factory, edits):
    """The result is the first records as written, or an error."""
    model = tmp_path_factory.mktemp("any") / "model"
    write_tree(model, {"x": 1})
    with opened(model) as journal:
        for change in CHANGES:
            journal.append(change)
    content = bytearray(journal.path.read_bytes())
    for share, removed, added in edits:
        place = int(share * len(content))
        content[place : place + removed] = added
    put(journal.path, content)
    try:
        found = read(model)
    except FileError as error:
        assert str(error).startswith(str(journal.path))  # noqa: PT017
    else:
        assert found == [0, 1, 2][: len(found)]


def test_records_that_are_missing_moved_or_overwritten(written, tmp_path):
    model, (_, one, two, three) = written
    path = journal_path(model)
    whole = path.read_bytes()
    other = tmp_path / "other"
    write_tree(other, {"x": 2})
    with opened(other) as journal:
        journal.append(CHANGES[0])
    foreign = journal_path(other).read_bytes()
    for wrong in (
        whole[:HEAD] + whole[one:],
        whole[:one] + whole[two:],
        whole[:HEAD] + whole[one:two] + whole[HEAD:one] + whole[two:],
        whole[:HEAD] + bytes(one - HEAD) + whole[one:],  # zeros, but records follow
        whole[:one] + bytes(two - one) + whole[two : three - 1],
        whole + b"more" * 16,
        whole[:HEAD] + foreign[HEAD:],
        b"something else",
        b"something else" * 99,
    ):
        put(path, wrong)
        with pytest.raises(FileError, match=re.escape(str(path))):
            read(model)


def test_a_newer_journal(written):
    model, _ = written
    path = journal_path(model)
    whole = path.read_bytes()
    put(path, whole[:14] + b"\2\0" + whole[16:])
    with pytest.raises(FileError, match=r"version 2.*version 1"):
        read(model)


def test_one_writer_at_a_time(model):
    with opened(model) as journal:
        journal.append({"number": 0})
        with pytest.raises(BlockingIOError, match=re.escape(str(journal.path))):
            opened(model)
        with pytest.raises(BlockingIOError, match="journal=True.*still open"):
            save_tree(model, {"x": 2})
        assert read_stored(model).tree == {"x": 1}
    with opened(model) as journal:
        assert numbers(journal.records()) == [0]


def test_a_reader_does_not_see_what_is_being_written(written):
    model, ends = written
    path = journal_path(model)
    whole = path.read_bytes()
    with opened(model):
        put(path, whole[:-7])
        assert read(model) == [0, 1]
        put(path, whole[: ends[2]] + bytes(len(whole) - ends[2]))
        assert read(model) == [0, 1]
        put(path, whole[: ends[0]] + bytes(9) + whole[ends[0] + 9 :])
        with pytest.raises(FileError, match="altered"):
            read(model)


def test_saving_empties_the_journal(written):
    model, _ = written
    before = digest_of(model)
    with opened(model) as journal:
        save_tree(model, {"x": 2}, journal)
        assert read_stored(model).tree == {"x": 2, "replaces": before}
        assert len(journal.path.read_bytes()) == HEAD
        journal.append({"number": 7})
        assert read(model) == [7]
        save_tree(model.with_name("elsewhere"), {"x": 2}, journal)
        assert read_stored(model.with_name("elsewhere")).tree == {"x": 2}
        assert read(model) == [7]
    save_tree(model, {"x": 3}, journal)  # closed: no more writes
    assert not journal_path(model).exists()
    assert read_stored(model).tree["x"] == 3
    save_tree(model, {"x": 4})
    assert read_stored(model).tree == {"x": 4}


def test_a_crash_before_the_journal_is_emptied(written, monkeypatch):
    model, _ = written
    path = journal_path(model)
    records = path.read_bytes()
    with opened(model) as journal:
        save_tree(model, {"x": 2}, journal)
    put(path, records)
    assert read(model) == []
    with opened(model) as journal:
        assert list(journal.records()) == []
        assert len(path.read_bytes()) == HEAD
    put(path, records)
    save_tree(model, {"x": 3})
    assert not path.exists()


def test_a_journal_of_another_file(written):
    model, _ = written
    write_tree(model, {"x": 2})
    for use in (read, opened):
        with pytest.raises(FileError, match=r"journal belongs to a different model file"):
            use(model)
    assert numbers(read_changes(model, read_digest_of_head(model))) == [0, 1, 2]


def read_digest_of_head(model):
    return journal_path(model).read_bytes()[16:48].hex()


def test_a_file_that_is_no_journal_is_left_alone(model):
    path = journal_path(model)
    path.write_text("dear diary")
    with pytest.raises(FileError, match="not a nearlabel journal"):
        save_tree(model, {"x": 2})
    assert path.read_text() == "dear diary"
    assert read_stored(model).tree == {"x": 1}


def test_a_deleted_journal_accepts_no_changes(model):
    with opened(model) as journal:
        journal.path.rename(model.with_name("aside"))
        for _ in range(2):
            with pytest.raises(FileError, match="removed or replaced"):
                journal.append({"number": 0})
            journal.path.write_bytes(b"")
        journal.path.unlink()
        model.with_name("aside").rename(journal.path)
        journal.append({"number": 1})
    assert read(model) == [1]


def test_a_link_has_the_journal_of_its_file(written):
    model, _ = written
    link = model.with_name("link")
    link.symlink_to(model)
    assert read(link) == [0, 1, 2]


def test_copies_have_no_journal(model):
    import copy
    import pickle

    with opened(model) as journal:
        assert copy.deepcopy({"journal": journal}) == {"journal": None}
        assert pickle.loads(pickle.dumps(journal)) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(5, "no")])
@pytest.mark.parametrize("place", ["write", "fsync"])
def test_an_error_leaves_the_journal_as_it_was(written, monkeypatch, error, place):
    model, _ = written
    path = journal_path(model)
    whole = path.read_bytes()

    def fail_once(self, *content):
        monkeypatch.undo()
        if place == "write":
            self._file.write(content[0][:50])
        raise error

    with opened(model) as journal:
        if place == "write":
            monkeypatch.setattr(Journal, "_write", fail_once)
        else:
            monkeypatch.setattr(os, "fsync", fail_once)
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            journal.append({"number": 3})
        assert path.read_bytes() == whole
        with pytest.raises(TypeError, match="arrays of type"):
            journal.append({"number": np.array([1j])})
        assert path.read_bytes() == whole
        journal.append({"number": 4})
    assert read(model) == [0, 1, 2, 4]


def test_a_journal_that_cannot_be_repaired_is_not_written_to(written, monkeypatch):
    model, _ = written

    def fail(_):
        raise OSError(5, "no")

    with opened(model) as journal:
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="no"):
                journal.append({"number": 3})
        with pytest.raises(OSError, match="load the model again"):
            journal.append({"number": 4})
    assert read(model) == [0, 1, 2]


FULL_DISK = """
import resource, sys
from nearlabel.common.files import read_stored
from nearlabel.common.journal import Journal
model, room = sys.argv[1], int(sys.argv[2])
journal, _ = Journal.create_or_open(model, read_stored(model).digest)
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
for number in range(99):
    try:
        journal.append({"number": number, "text": 500 * number * "x"})
    except OSError as error:
        print(error.filename, number)
        break
journal.append({"number": -1})
"""


@pytest.mark.skipif(os.name == "nt", reason="needs limits of files")
def test_a_full_disk(model):
    """The change without space is not there; a smaller one that fits is."""
    room = 2**15
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(model), str(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    name, number = done.stdout.split()
    assert name == str(journal_path(model))
    assert int(number) > 5
    assert read(model) == [*range(int(number)), -1]


def test_forgotten_items_are_not_in_an_emptied_journal(model):
    secret = np.random.default_rng(0).bytes(64)
    with opened(model) as journal:
        journal.append({"number": 0, "rows": np.frombuffer(secret, np.uint8)})
        assert secret in journal.path.read_bytes()
        save_tree(model, {"x": 2}, journal)
        assert secret not in b"".join(path.read_bytes() for path in model.parent.iterdir())


def test_the_folder_is_synced(tmp_path, monkeypatch):
    """A new journal, and a file renamed, are in the folder after a crash, too."""
    synced, fsync, open_files = [], os.fsync, Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("needs /proc")

    def noted(file):
        synced.append(str((open_files / str(file)).readlink()))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    model = tmp_path / "model"
    write_tree(model, {"x": 1})
    assert str(tmp_path) in synced
    synced.clear()
    with opened(model) as journal:
        assert synced[-2:] == [str(journal.path), str(tmp_path)]
        synced.clear()
        journal.append({"number": 0}, {"number": 1})
        assert synced == [str(journal.path)]
        synced.clear()
        save_tree(model, {"x": 2}, journal)
        assert synced.index(str(tmp_path)) < synced.index(str(journal.path))
