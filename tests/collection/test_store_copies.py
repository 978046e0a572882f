"""Backups, recovery, full disks, migrations, and traces of forgotten items."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from nearlabel.collection import (
    Collection,
    CollectionError,
    FileState,
    NewItem,
    database,
    opened_folder,
    schema,
)
from nearlabel.collection.records import content_of
from nearlabel.common.file_locks import try_lock

ROOT = "/photos"


def numbers(seed: int, width: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=width).astype(np.float32)


def new(seed: int, *paths: str) -> NewItem:
    files = tuple(FileState(ROOT, path, 1, 1) for path in paths)
    return NewItem(content_of(b"%d" % seed), numbers(seed), files)


def filled(folder: Path, n: int = 12) -> Collection:
    collection = Collection.create(folder, features="moments")
    collection.add([new(seed, f"{seed}.jpg") for seed in range(n)])
    collection.decide([(item, "even" if item % 2 else "odd", True) for item in range(1, n)])
    return collection


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_backup_is_the_collection(tmp_path):
    with filled(tmp_path / "c") as collection:
        collection.suggest(1)
        collection.save_index()
        collection.backup(tmp_path / "copy")
        collection.tag(1, "later")
        with Collection(tmp_path / "copy") as copy:
            assert copy.notes == []
            assert len(copy.items()) == 12
            assert copy.item(1).yes == ["even"]
            np.testing.assert_array_equal(copy.vectors([3]), collection.vectors([3]))
            copy.suggest(1)
            assert copy.notes == []  # from the index that was copied
            assert copy.verify()
            copy.undo()
            assert copy.tags() == []
        with pytest.raises(FileExistsError, match="copy"):
            collection.backup(tmp_path / "copy")
        assert len(collection.tags()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "copy"]


def test_leftovers_of_a_killed_backup_are_removed_by_the_next(tmp_path):
    left, others = tmp_path / ".copy.00aa11bb.part", tmp_path / ".copy.mine.part"
    for folder in (left, others):
        folder.mkdir()
        (folder / "lock").touch()
    busy = tmp_path / ".copy.00aa11bc.part"
    busy.mkdir()
    with filled(tmp_path / "c") as collection, (busy / "lock").open("wb", buffering=0) as lock:
        assert try_lock(lock)
        collection.backup(tmp_path / "copy")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [busy.name, others.name, "c", "copy"]


def test_backups_while_it_is_changed(tmp_path):
    """Every copy is an actual state: as many items as tags, complete vectors."""
    is_over = threading.Event()
    with (
        filled(tmp_path / "c", 2) as collection,
        Collection(tmp_path / "c", readonly=True) as reader,
    ):

        def work() -> None:
            seed = 100
            while not is_over.is_set():
                (item,) = collection.add([new(seed, f"{seed}.jpg")])
                if seed % 3 == 0:
                    collection.forget(item)
                if seed % 7 == 0:
                    collection.compact()
                seed += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for at in range(6):
                reader.backup(tmp_path / f"copy{at}")
        finally:
            is_over.set()
            thread.join()
    for at in range(6):
        with Collection(tmp_path / f"copy{at}") as copy:
            assert copy.verify(), str(copy.verify())


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    filled(tmp_path / "c").close()
    for name in ("index-7.model", ".index-7.model.0abc.part", ".collection.sqlite.0abc.part"):
        (tmp_path / "c" / name).write_bytes(b"of nobody")
    (tmp_path / "c" / "vectors-000001.bin").write_bytes(b"of a version that was converted")
    with Collection(tmp_path / "c") as collection:
        assert collection.notes == []
        assert collection.verify()
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == ["collection.sqlite", "lock"]


def test_a_killed_process_loses_only_unacknowledged_changes(tmp_path):
    filled(tmp_path / "c").close()
    code = f"""
import os
from nearlabel.collection import Collection, NewItem, file_changes
collection = Collection({str(tmp_path / "c")!r})
collection.tag(12, "acknowledged")
append = file_changes.append_vectors
def dying(*arguments):
    append(*arguments)
    os._exit(9)
file_changes.append_vectors = dying
collection.add([NewItem(bytes(32), [1, 2, 3, 4])])
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with Collection(tmp_path / "c") as collection:
        assert collection.notes == []
        assert collection.item(12).yes == ["acknowledged"]
        assert len(collection.items()) == 12
        assert collection.verify()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_nothing_is_left_of_a_forgotten_item(tmp_path, is_sparse):
    def vector(seed: int):
        values = numbers(seed, 8)
        return sparse.csr_array(values[None]) if is_sparse else values

    with Collection.create(tmp_path / "c", kind="vectors") as collection:
        names = [f"name-of-{seed}" for seed in range(6)]
        collection.add(
            [
                NewItem(content_of(name.encode()), vector(seed), (), name, f"text of {name}")
                for seed, name in enumerate(names)
            ]
        )
        file = FileState("/a/secret/root", "secret/path.jpg", 1, 1)
        collection.add([NewItem(content_of(b"x"), vector(50), (file,), "x")])
        collection.add([NewItem(content_of(b"y"), vector(51), (file,), "secret name")])
        assert collection.counts()["items"] == 7
        collection.undo()  # only its file has the second content of item 7
        collection.add([NewItem(content_of(b"z"), vector(52), (file,), "secret name")])
        collection.tag([1, 2, 7], ["shared"])
        collection.tag(7, ["secret tag", "secret other"])
        collection.rename_tag("secret tag", "secret new")
        collection.clear(7, "secret other")
        collection.tag([3, 4], "kept")
        thumbnail = tmp_path / "c" / "thumbnails" / content_of(b"z").hex()[:2]
        thumbnail.mkdir(parents=True)
        (thumbnail / f"{content_of(b'z').hex()}.jpg").write_bytes(b"secret picture")
        collection.suggest(1)
        collection.save_index()
        before = all_bytes(tmp_path / "c")
        secrets = [numbers(seed, 8)[:2].tobytes() for seed in (50, 52)]
        secrets += [b"secret", *(content_of(one) for one in (b"x", b"z"))]
        secrets += [content_of(one).hex().encode() for one in (b"x",)]
        assert all(secret in before for secret in secrets)
        secrets += [numbers(51, 8)[:2].tobytes(), content_of(b"y")]

        change = collection.forget(7)
        assert change.kind == "forget"
        after = all_bytes(tmp_path / "c")
        assert [secret for secret in secrets if secret in after] == []
        assert b"name-of-1" in after
        with pytest.raises(CollectionError, match="no item 7"):
            collection.item(7)
        assert collection.verify()
        collection.compact()
        undone = []
        while (change := collection.undo()) is not None:
            undone.append(change.kind)
        assert undone == ["tag", "tag", "add"]
        assert collection.counts()["items"] == 0


def test_forgetting_that_was_interrupted_is_finished(tmp_path, monkeypatch):
    with filled(tmp_path / "c") as collection:
        collection.save_index()

        def fail(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(opened_folder, "rewrite_small_tables", fail)
        with pytest.raises(KeyboardInterrupt):
            collection.forget(3)
        monkeypatch.undo()
        assert numbers(2).tobytes() in all_bytes(tmp_path / "c")
        collection.close(save=False)
    with Collection(tmp_path / "c") as collection:
        assert "have now been erased" in collection.notes[0]
        assert numbers(2).tobytes() not in all_bytes(tmp_path / "c")
        assert numbers(1).tobytes() in all_bytes(tmp_path / "c")
        assert collection.suggest(1)[0].tag == "even"
    with Collection(tmp_path / "c") as collection:
        assert collection.notes == []


def test_forgetting_while_somebody_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_PATIENCE", 0.05)
    with (
        filled(tmp_path / "c") as collection,
        Collection(tmp_path / "c", readonly=True) as reader,
    ):
        with reader._database.reading():
            assert len(reader.items()) == 12
            collection.forget(3)
            assert len(reader.items()) == 12  # as when it began to read
        assert len(reader.items()) == 11
        assert collection._folder._is_erasing()  # the log of the database could not be emptied
    assert b"2.jpg" not in all_bytes(tmp_path / "c").replace(b"12.jpg", b"")
    with Collection(tmp_path / "c") as collection:
        assert collection.notes == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limits")
def test_a_full_disk_changes_nothing(tmp_path):
    """In another process with a file size limit: after an error nothing has changed."""
    filled(tmp_path / "c").close()
    code = f"""
import resource, signal
import numpy as np
from pathlib import Path
from nearlabel.collection import Collection, NewItem
from nearlabel.collection.records import content_of
from nearlabel.common.file_locks import try_lock
folder = Path({str(tmp_path / "c")!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
new = [NewItem(content_of(b"new%d" % i), np.ones(4), name="n" * 99) for i in range(3000)]
changes = {{
    "add": lambda: collection.add(new),
    "tag": lambda: collection.tag(range(1, 13), ["t" * 900, "u" * 900]),
    "forget": lambda: collection.forget(1),
}}
unlimited = resource.RLIM_INFINITY
for room in (0, 30, 1000, 20_000, 100_000, 200_000, 400_000, 2_000_000):
    collection = Collection(folder)
    for name, change in changes.items():
        before = collection.items(), collection.tags()
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited))
        try:
            change()
            is_done = True
        except OSError as error:
            print(name, "failed:", error)
            is_done = False
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
        if is_done:
            collection.undo()
        if name != "forget":
            assert before == (collection.items(), collection.tags())
        assert collection.verify(), collection.verify()
    collection.close()
    if len(before[0]) > len(Collection(folder, readonly=True).items()):
        break  # an item was forgotten
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for name in ("add", "tag", "forget"):
        assert f"{name} failed: [Errno" in run.stdout
    with Collection(tmp_path / "c") as collection:
        assert collection.verify()
        assert len(collection.tags()) == 2


def test_versions(tmp_path, monkeypatch):
    filled(tmp_path / "c").close()
    more = (*schema.MIGRATIONS, "ALTER TABLE items ADD COLUMN rating INTEGER;")
    monkeypatch.setattr(schema, "MIGRATIONS", more)
    schema.schema.cache_clear()
    with pytest.raises(CollectionError, match="version 2 of 3.*open it for writing once"):
        Collection(tmp_path / "c", readonly=True)
    with Collection(tmp_path / "c") as collection:
        assert len(collection.items()) == 12
        assert collection.verify()
    Collection(tmp_path / "c", readonly=True).close()
    monkeypatch.undo()
    schema.schema.cache_clear()
    with pytest.raises(CollectionError, match="version 3.*update nearlabel"):
        Collection(tmp_path / "c")


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    filled(tmp_path / "c").close()
    broken = "ALTER TABLE items ADD COLUMN rating INTEGER; SELECT nonsense;"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    schema.schema.cache_clear()
    with pytest.raises(CollectionError):
        Collection(tmp_path / "c")
    monkeypatch.undo()
    schema.schema.cache_clear()
    with Collection(tmp_path / "c") as collection:
        assert len(collection.items()) == 12


def test_a_folder_that_cannot_be_written_is_read(tmp_path):
    filled(tmp_path / "c").close()
    (tmp_path / "c" / "lock").unlink()
    (tmp_path / "c").chmod(0o500)
    try:
        if os.access(tmp_path / "c", os.W_OK):
            pytest.skip("this user may write everywhere")
        with Collection(tmp_path / "c", readonly=True) as collection:
            assert len(collection.items()) == 12
            assert collection.suggest(1)
    finally:
        (tmp_path / "c").chmod(0o700)
