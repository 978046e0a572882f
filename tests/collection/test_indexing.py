"""The files of a folder become items."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from drawn_pictures import file_of

from nearlabel.collection import Collection, CollectionError, NewItem, indexing
from nearlabel.collection.indexing import plan_index, root_of, run_index
from nearlabel.collection.item_features import chosen_features, item_features
from nearlabel.collection.records import content_of
from nearlabel.features import UnreadablePicture

LONG_AGO = 10**18


def picture(seed):
    """The content of a small picture of its own."""
    colors = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return file_of(colors, "PNG")


class Folder:
    """Pictures in a folder, with old modification times."""

    def __init__(self, path):
        self.path = path
        path.mkdir(exist_ok=True)
        self._clock = LONG_AGO

    def put(self, name, seed):
        content = seed if isinstance(seed, bytes) else picture(seed)
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self._clock += 10**9 + 1
        os.utime(target, ns=(self._clock, self._clock))
        return target


@pytest.fixture
def photos(tmp_path):
    folder = Folder(tmp_path / "photos")
    for seed in range(6):
        folder.put(f"{seed}.png", seed)
    return folder


@pytest.fixture
def store(tmp_path):
    features = chosen_features("pictures", "moments")
    with Collection.create(tmp_path / "c", features=features) as store:
        yield store


def features_of(store):
    return item_features(store.settings.kind, store.settings.features)


def index(store, folder, n_jobs=None, progress=None):
    """Index a folder; return its new, changed, known, unchanged and deleted files."""
    plan = plan_index(store, folder)
    report = run_index(store, plan, n_jobs=n_jobs, progress=progress)
    known = report.moved + report.copied + report.found
    counts = (report.new, report.changed, known, report.unchanged, report.gone)
    return counts, report.skipped


def paths(store, item):
    return [file.path for file in store.item(item).files if not file.is_missing]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_new_pictures_become_items(store, photos, n_jobs):
    assert index(store, photos.path, n_jobs) == ((6, 0, 0, 0, 0), [])
    assert [item.name for item in store.items()] == [f"{seed}.png" for seed in range(6)]
    vectors = features_of(store)([picture(seed) for seed in range(6)])
    assert np.array_equal(store.vectors(range(1, 7)), vectors)


def test_the_second_time_nothing_is_read(store, photos, monkeypatch):
    index(store, photos.path)
    monkeypatch.setattr(indexing, "read_unchanged", None)
    before = store.changes()
    assert index(store, photos.path) == ((0, 0, 0, 6, 0), [])
    assert store.changes() == before


def test_a_file_that_was_touched_is_the_same(store, photos):
    index(store, photos.path)
    photos.put("2.png", 2)
    assert index(store, photos.path) == ((0, 0, 1, 5, 0), [])
    assert index(store, photos.path) == ((0, 0, 0, 6, 0), [])


def test_moved_and_copied_files(store, photos):
    index(store, photos.path)
    store.tag([1, 2], "sea")
    (photos.path / "0.png").rename(photos.path / "moved.png")
    shutil.copy2(photos.path / "1.png", photos.path / "copy.png")
    (photos.path / "2.png").unlink()
    report = run_index(store, plan_index(store, photos.path))
    counts = (report.moved, report.copied, report.found, report.unchanged, report.gone)
    assert counts == (1, 1, 0, 4, 1)
    assert [(one.kind, one.items) for one in store.changes(2)] == [("files", 2), ("files", 2)]
    assert (paths(store, 1), store.item(1).yes) == (["moved.png"], ["sea"])
    assert (paths(store, 2), store.item(2).yes) == (["1.png", "copy.png"], ["sea"])


def test_a_changed_file_keeps_its_tags(store, photos):
    index(store, photos.path)
    store.tag(1, "sea")
    photos.put("0.png", 100)
    assert index(store, photos.path) == ((0, 1, 0, 5, 0), [])
    assert store.item(1).yes == ["sea"]
    vectors = features_of(store)([picture(100)])
    assert np.array_equal(store.vectors([1]), vectors)


def test_a_file_in_the_place_of_one_that_was_moved(store, photos):
    """Moved files keep their tags, whatever the order of paths."""
    index(store, photos.path)
    store.tag([1, 2, 3, 4], "sea")
    (photos.path / "0.png").rename(photos.path / "zz.png")
    photos.put("0.png", 100)
    (photos.path / "1.png").rename(photos.path / "a")  # 1 to 2, 2 to 3, and 3 is gone
    (photos.path / "2.png").rename(photos.path / "3.png")
    (photos.path / "a").rename(photos.path / "2.png")
    photos.put("1.png", 101)
    assert index(store, photos.path) == ((2, 0, 3, 2, 0), [])
    assert [paths(store, item) for item in (1, 2, 3, 4)] == [["zz.png"], ["2.png"], ["3.png"], []]
    assert [store.item(item).yes for item in (7, 8)] == [[], []]


def test_two_new_files_with_one_content(store, photos):
    photos.put("twin.png", 0)
    assert index(store, photos.path) == ((6, 0, 1, 0, 0), [])
    assert paths(store, 1) == ["0.png", "twin.png"]


def test_a_file_that_vanishes_and_comes_back(store, photos):
    index(store, photos.path)
    store.tag(3, "sea")
    (photos.path / "2.png").unlink()
    assert index(store, photos.path) == ((0, 0, 0, 5, 1), [])
    assert (store.item(3).is_missing, store.item(3).yes) == (True, ["sea"])
    assert index(store, photos.path) == ((0, 0, 0, 5, 0), [])
    photos.put("elsewhere/2.png", 2)
    assert index(store, photos.path) == ((0, 0, 1, 5, 0), [])
    assert (store.item(3).is_missing, paths(store, 3)) == (False, ["elsewhere/2.png"])


def test_a_folder_that_vanishes(store, photos):
    index(store, photos.path)
    photos.path.rename(photos.path.with_name("away"))
    with pytest.raises(FileNotFoundError):
        index(store, photos.path)
    photos.path.mkdir()  # where a disk was mounted
    with pytest.raises(FileNotFoundError, match="empty, but 6 files"):
        index(store, photos.path)
    assert store.counts()["missing"] == 0


def test_a_part_of_a_folder(store, photos):
    photos.put("2026/a.png", 10)
    index(store, photos.path)
    photos.put("2026/b.png", 11)
    photos.put("new.png", 12)
    (photos.path / "0.png").unlink()
    assert index(store, photos.path / "2026") == ((1, 0, 0, 1, 0), [])
    assert store.roots() == [str(photos.path)]
    assert index(store, photos.path) == ((1, 0, 0, 7, 1), [])


def test_a_single_file(store, photos):
    photos.put("2026/a.png", 10)
    assert index(store, photos.path / "2026" / "a.png") == ((1, 0, 0, 0, 0), [])
    assert store.roots() == [str(photos.path / "2026")]
    index(store, photos.path)
    (photos.path / "0.png").unlink()
    photos.put("1.png", 11)
    photos.put("2.png", 12)
    assert index(store, photos.path / "1.png") == ((0, 1, 0, 0, 0), [])
    assert index(store, photos.path) == ((0, 1, 0, 5, 1), [])
    assert store.roots() == [str(photos.path)]


def test_files_that_cannot_be_read(store, photos):
    photos.put("broken.png", b"no picture")
    photos.put("5.png", b"no picture any more")
    counts, skipped = index(store, photos.path)
    assert counts == (5, 0, 0, 0, 0)
    assert [name for name, _ in skipped] == ["5.png", "broken.png"]


def test_only_files_that_cannot_be_read(store, tmp_path):
    folder = Folder(tmp_path / "broken")
    folder.put("a.png", b"no picture")
    counts, skipped = index(store, folder.path)
    assert (counts, len(skipped), store.counts()["items"]) == ((0,) * 5, 1, 0)


def test_a_known_file_that_breaks_stays_as_it_was(store, photos):
    index(store, photos.path)
    store.tag(1, "sea")
    vector = store.vectors([1])
    photos.put("0.png", b"no picture")
    counts, skipped = index(store, photos.path)
    assert (counts, len(skipped)) == ((0, 0, 0, 5, 0), 1)
    assert store.item(1).yes == ["sea"]
    assert np.array_equal(store.vectors([1]), vector)


def test_a_file_with_a_date_beyond_the_numbers_of_the_database(store, photos):
    in_2299 = 10_382_000_000 * 10**9
    os.utime(photos.path / "0.png", ns=(in_2299, in_2299))
    if (photos.path / "0.png").stat().st_mtime_ns != in_2299:
        pytest.skip("this file system has no such dates")
    assert index(store, photos.path) == ((6, 0, 0, 0, 0), [])
    assert index(store, photos.path) == ((0, 0, 0, 6, 0), [])
    os.utime(photos.path / "0.png", ns=(in_2299 + 1, in_2299 + 1))
    assert index(store, photos.path) == ((0, 0, 1, 5, 0), [])


def test_a_file_whose_vector_is_not_finite_is_named(store, photos):
    features = features_of(store)

    def compute(contents):
        rows = features(contents)
        rows[2, 5] = np.nan
        return rows

    plan = plan_index(store, photos.path)
    report = run_index(store, plan, compute)
    assert report.skipped == [("2.png", "has a vector that is not finite")]
    assert store.counts()["items"] == 5


def test_a_file_that_changes_while_it_is_read(store, photos, monkeypatch):
    read = indexing.read_unchanged

    def changing(path, most_bytes):
        if path.name == "3.png":
            raise UnreadablePicture("", "changed while it was being read")
        return read(path, most_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(indexing, "read_unchanged", changing)
        counts, skipped = index(store, photos.path)
    assert (counts, skipped) == ((5, 0, 0, 0, 0), [("3.png", "changed while it was being read")])
    assert index(store, photos.path) == ((1, 0, 0, 5, 0), [])


def test_an_interrupt_loses_one_batch(store, photos, monkeypatch):
    monkeypatch.setattr(indexing, "_FILES_AT_ONCE", 2)
    told = []

    def interrupting(done, total):
        told.append((done, total))
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(store, photos.path, progress=interrupting)
    assert (told, store.counts()["items"]) == ([(2, 6), (4, 6)], 4)
    assert index(store, photos.path) == ((2, 0, 0, 4, 0), [])


def test_a_run_is_undone_as_a_whole(store, photos, monkeypatch):
    monkeypatch.setattr(indexing, "_FILES_AT_ONCE", 2)
    index(store, photos.path)
    store.tag(1, "sea")
    (photos.path / "0.png").unlink()
    photos.put("new.png", 10)
    photos.put("1.png", 11)
    index(store, photos.path)
    store.undo()
    assert (store.counts()["items"], store.item(1).is_missing) == (6, False)
    assert np.array_equal(store.vectors([2]), features_of(store)([picture(1)]))
    assert index(store, photos.path) == ((1, 1, 0, 4, 1), [])


def test_names_that_are_not_utf8(store, photos):
    name = os.fsdecode(b"\xe9t\xe9.png")
    photos.put(name, 10)
    assert index(store, photos.path) == ((7, 0, 0, 0, 0), [])
    assert store.item(7).name == r"\xe9t\xe9.png"
    assert paths(store, 7) == [name]
    assert index(store, photos.path) == ((0, 0, 0, 7, 0), [])


def test_watched_files_must_be_complete(store, photos):
    now = photos.put("young.png", 10)
    os.utime(now)
    assert plan_index(store, photos.path, patience_ns=10**12).new == [
        f"{seed}.png" for seed in range(6)
    ]
    stamps = plan_index(store, photos.path).scan.files
    passed = {"0.png": stamps["0.png"], "1.png": stamps["2.png"]}
    new = plan_index(store, photos.path, passed_over=passed).new
    assert "0.png" not in new
    assert "1.png" in new


def test_texts(tmp_path):
    folder = Folder(tmp_path / "notes")
    folder.put("a.txt", b"Waves and sand")
    folder.put("b.txt", b"\xff\xfe\x00")
    with Collection.create(
        tmp_path / "c", kind="texts", features=chosen_features("texts")
    ) as store:
        counts, skipped = index(store, folder.path)
        assert (counts, [name for name, _ in skipped]) == ((1, 0, 0, 0, 0), ["b.txt"])
        assert store.item(1).text == "Waves and sand"


def test_a_collection_is_no_folder_of_files(store, tmp_path):
    with pytest.raises(CollectionError, match="is a collection"):
        index(store, tmp_path / "c")


def test_a_folder_above_one_that_was_indexed(store, photos):
    part = photos.path / "part"
    for seed in (10, 11):
        photos.put(f"part/{seed}.png", seed)
    assert index(store, part)[0] == (2, 0, 0, 0, 0)
    store.tag(1, "sea")
    assert index(store, photos.path)[0] == (6, 0, 0, 2, 0)
    assert store.roots() == [str(photos.path)]
    assert paths(store, 1) == ["part/10.png"]
    photos.put("part/10.png", 12)
    (part / "11.png").unlink()
    assert index(store, photos.path)[0] == (0, 1, 0, 6, 1)
    assert store.item(1).yes == ["sea"]
    assert store.ids(state="missing") == [2]
    assert index(store, part)[0] == (0, 0, 0, 1, 0)
    store.undo()
    store.undo()
    assert store.roots() == [str(part)]
    assert paths(store, 1) == ["10.png"]


def test_a_path_in_two_roots(store, photos):
    index(store, photos.path)
    old, new = store.files(photos.path)[:2]
    above = photos.path.parent
    store.set_files(above, [new._replace(path=f"photos/{old.path}")])
    store.join_roots(above, store.roots()[:1])
    assert sorted(paths(store, new.item)) == [f"photos/{one.path}" for one in (old, new)]
    assert store.item(old.item).is_missing  # the file at its path was seen later


def test_a_folder_within_an_indexed_one(tmp_path):
    (tmp_path / "photos" / "2024").mkdir(parents=True)
    roots = [str(tmp_path / "photos"), str(tmp_path / "other")]
    assert root_of(tmp_path / "photos" / "2024", roots) == (roots[0], "2024")
    assert root_of(tmp_path / "photos", roots) == (roots[0], "")
    assert root_of(tmp_path / "photos2", roots) == (str(tmp_path / "photos2"), "")


def test_an_empty_folder_within_may_be_a_disk_that_is_not_mounted(store, photos):
    photos.put("disk/10.png", 10)
    index(store, photos.path / "disk")
    (photos.path / "disk" / "10.png").unlink()
    assert index(store, photos.path)[0] == (6, 0, 0, 0, 0)
    assert not store.item(1).is_missing
    photos.put("disk/10.png", 10)
    index(store, photos.path)
    assert paths(store, 1) == ["disk/10.png"]


def execute(folder, *statements):
    with closing(sqlite3.connect(folder / "collection.sqlite", isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_missing_vectors_are_computed_again(tmp_path, photos, kind):
    """As of a collection of version 1 with a damaged file, which has been converted."""
    for seed in range(3):
        photos.put(f"{seed}.txt", f"the words of {seed} and sea {'sun ' * seed}".encode())
    features = chosen_features(kind, {"pictures": "moments", "texts": "words"}[kind])
    with Collection.create(tmp_path / "c", kind=kind, features=features) as store:
        index(store, photos.path)
        store.tag([1, 2], "sea")
        right, ids = store.vectors(store.ids()), store.ids()
    delete = "DELETE FROM vectors WHERE item != 2"
    execute(tmp_path / "c", delete, "UPDATE files SET mtime_ns = 0 WHERE item != 2")
    with Collection(tmp_path / "c") as store:
        assert store.items(tag="sea")
        store.tag(3, "sun")
        with pytest.raises(CollectionError, match="of item 1; index its file again"):
            store.suggest(3)
        assert store.without_vectors(ids) == {*ids} - {2}
        assert not store.verify()
        index(store, photos.path)
        assert not store.without_vectors(ids)
        assert abs(store.vectors(ids) - right).max() == 0
        assert store.verify()
        assert [store.undo().kind for _ in range(2)] == ["files", "tag"]
        assert not store.without_vectors(ids)
    with Collection(tmp_path / "c", readonly=True) as store:
        assert (store.notes, store.item(3).yes) == ([], [])


def test_a_single_damaged_vector_is_recomputed_when_its_file_is_read(store, photos):
    index(store, photos.path)
    right = store.vectors([3])
    execute(
        store.path,
        "UPDATE vectors SET data = CAST(x'ffff' || substr(data, 3) AS BLOB) WHERE item = 3",
    )
    assert store.without_vectors(store.ids()) == {3}
    assert not store.verify()
    photos.put("2.png", 2)
    assert index(store, photos.path)[0] == (0, 0, 1, 5, 0)
    assert np.array_equal(store.vectors([3]), right)
    store.compact()
    assert store.verify()


def test_an_item_without_a_vector_can_be_forgotten(tmp_path):
    with Collection.create(tmp_path / "c", kind="vectors") as store:
        store.add([NewItem(content_of(b"%d" % n), [1, n], name=f"{n}") for n in range(4)])
        store.tag([1, 2, 3], "sea")
        execute(store.path, "DELETE FROM vectors WHERE item = 1")
        with pytest.raises(CollectionError, match="of item 1; .*restore a backup"):
            store.suggest(4)
        store.forget(1)
        assert store.suggest(4)
        assert store.verify()
