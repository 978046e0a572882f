"""Untrusted folders: damaged or malicious ones are refused with one sentence, or repaired."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from nearlabel.collection import Collection, CollectionError, FileState, NewItem
from nearlabel.collection.records import content_of

N = 8
VERSION_1 = Path(__file__).parents[1] / "files" / "collection-1.0.0"
BOTH = [False, pytest.param(True, marks=pytest.mark.slow)]  # whether it is readonly


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A collection with some of everything, closed."""
    folder = tmp_path_factory.mktemp("made") / "c"
    rng = np.random.default_rng(0)
    with Collection.create(folder, features="moments") as collection:
        for seed in range(N):
            file = FileState("/photos", f"{seed}.jpg", 1, 1)
            collection.add([NewItem(content_of(b"%d" % seed), rng.normal(size=6), (file,))])
        collection.add([NewItem(content_of(b"edited"), rng.normal(size=6), (file,))])
        for item in range(1, N):
            collection.tag(item, ["sea", "sky"][item % 2])
        collection.reject(1, "dog")
        collection.rename_tag("sea", "see")
        collection.set_files("/photos", missing=["1.jpg"])
        collection.save_index()
        collection.clear(3, "sky")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "c"))


def use(folder: Path, readonly: bool = False) -> None:
    """Read, query and change everything possible."""
    with Collection(folder, readonly=readonly) as collection:
        collection.counts()
        for item in collection.items():
            repr(item)
        collection.vectors([item.id for item in collection.items()])
        collection.tags(), collection.changes(100), collection.roots(), collection.files("/photos")
        collection.suggest(np.ones(collection.settings.width or 6))
        collection.verify()
        if not readonly:
            collection.tag([item.id for item in collection.items()], "new")
            for _ in range(4):
                collection.undo()
            collection.forget([item.id for item in collection.items(limit=1)])
            collection.compact()


def told(folder: Path, readonly: bool) -> str | None:
    """The reason why a folder cannot be used, one sentence; None if it can."""
    try:
        use(folder, readonly)
    except (CollectionError, OSError) as error:
        message = str(error)
    else:
        return None
    assert "\n" not in message
    assert str(folder) in message
    assert len(message) < 600
    return message


def execute(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "collection.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            database.execute(statement)


def test_the_folder_as_it_is_made_is_fine(folder):
    use(folder, readonly=True)
    use(folder)


@pytest.mark.parametrize("readonly", BOTH)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
@pytest.mark.parametrize(
    "name",
    ["collection.sqlite", "collection.sqlite-wal", "vectors-000001.bin", "lock", "index-1.model"],
)
def test_special_files_in_a_collection(folder, tmp_path, name, kind, readonly):
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    (folder / name).unlink(missing_ok=True)
    if kind == "link":
        (folder / name).symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).mkdir()
    with pytest.raises(CollectionError, match=f"{name} is not a regular file"):
        Collection(folder, readonly=readonly)
    assert outside.read_bytes() == b"untouched"


def test_links_to_other_folders(folder, tmp_path):
    outside = tmp_path / "outside"
    (outside / "ab").mkdir(parents=True)
    (outside / "ab" / "file.jpg").write_bytes(b"untouched")
    (folder / "thumbnails").symlink_to(outside)
    with pytest.raises(CollectionError, match="thumbnails is not a regular folder"):
        Collection(folder)
    (folder / "thumbnails").unlink()
    (folder / "thumbnails").mkdir()
    (folder / "thumbnails" / "ab").symlink_to(outside / "ab")
    with Collection(folder) as collection:
        collection.forget(1)
    assert (outside / "ab" / "file.jpg").read_bytes() == b"untouched"


def test_files_with_another_name_elsewhere(folder, tmp_path):
    os.link(folder / "collection.sqlite", tmp_path / "outside")
    Collection(folder, readonly=True).close()
    with pytest.raises(CollectionError, match="hard link"):
        Collection(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE other (a)",
        "CREATE VIEW other AS SELECT * FROM items",
        "CREATE TRIGGER other AFTER INSERT ON decisions BEGIN DELETE FROM items; END",
        "CREATE INDEX other ON items (name)",
        "DROP INDEX files_of_item",
        "ALTER TABLE items ADD COLUMN other ANY",
        "PRAGMA application_id = 0",
        "PRAGMA user_version = 0",
        "DROP TABLE changes",
    ],
)
@pytest.mark.parametrize("readonly", BOTH)
def test_another_schema(folder, statement, readonly):
    execute(folder, statement)
    with pytest.raises(CollectionError, match="is refused|is not a collection"):
        Collection(folder, readonly=readonly)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions SET at = 9223372036854775807",
        "UPDATE decisions SET at = -9223372036854775807",
        "UPDATE changes SET at = 9223372036854775807, kind = 'nonsense', run = -1",
        "UPDATE decisions SET is_yes = 7, by = 'somebody'",
        "UPDATE decisions SET tag = tag + 99",
        "UPDATE decisions SET tag = tag + 1000000000000",
        "UPDATE decisions SET tag = -tag",
        "DELETE FROM tags",
        "DELETE FROM items",
        "DELETE FROM state",
        "DELETE FROM changes",
        "DELETE FROM settings",
        "INSERT INTO settings VALUES ('other', '1')",
        "UPDATE settings SET value = 'no json'",
        "UPDATE settings SET value = '[[[[1]]]]'",
        'UPDATE settings SET value = \'{"name": "os.system", "n_neighbors": "rm"}\' '
        "WHERE name = 'method'",
        "UPDATE settings SET value = '{\"name\": 5}' WHERE name = 'features'",
        "UPDATE settings SET value = '{\"width\": 1e9, \"is_sparse\": false}' WHERE name = 'form'",
        "UPDATE settings SET value = '{\"width\": 3, \"is_sparse\": true}' WHERE name = 'form'",
        'UPDATE settings SET value = \'{"width": 2000000000, "is_sparse": true}\' '
        "WHERE name = 'form'",
        "UPDATE vectors SET id = id + 9223372036854775000",
        "UPDATE vectors SET id = -id",
        "UPDATE vectors SET item = -9223372036854775807",
        "UPDATE vectors SET checksum = checksum + 1",
        "UPDATE vectors SET data = zeroblob(1000000)",
        "UPDATE vectors SET data = x''",
        "DELETE FROM vectors",
        "UPDATE state SET learned = 9223372036854775807",
        "UPDATE state SET learned = 0",
        "UPDATE state SET index_change = 9223372036854775807",
        "UPDATE state SET index_change = -5, index_digest = '../../x'",
        "UPDATE items SET vector = vector + 1",
        "UPDATE items SET vector = 9223372036854775807",
        "UPDATE items SET vector = -64",
        "UPDATE items SET learned = NULL",
        "UPDATE items SET learned = 9223372036854775807 WHERE id = 1",
        "UPDATE items SET id = 9223372036854775807 WHERE id = 8",
        "UPDATE items SET id = -id",
        "UPDATE items SET content = zeroblob(3) WHERE id = 1",
        "UPDATE items SET name = CAST(x'ff00fe' AS TEXT)",
        "UPDATE tags SET name = char(27) || '[31m' || id",
        "UPDATE files SET path = x'2e2e2f2e2e2f6574632f706173737764' WHERE id = 1",
        "UPDATE files SET root = 99",
        "UPDATE files SET item = 99",
        "UPDATE roots SET path = x'00ff'",
        "UPDATE differences SET before = 'no json' WHERE before IS NOT NULL",
        "UPDATE differences SET before = '[]' WHERE before IS NOT NULL",
        "UPDATE differences SET before = '[1, 2, 3, 4, 5, 6]'",
        "UPDATE differences SET before = '[null, null, null, null, null, null]'",
        "UPDATE differences SET what = 77",
        "UPDATE changes SET summary = char(27) || '[31m', summary_tags = '[1, 2'",
        "UPDATE changes SET summary_tags = '{\"a\": [-1, null, 9e99, [[]]]}'",
        "UPDATE differences SET key = 9223372036854775807, tag = -1",
        "UPDATE differences SET change = 1, place = place + 1000 * change",
        "UPDATE sqlite_sequence SET seq = 0",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE sqlite_sequence SET seq = 'text'",
        "DELETE FROM sqlite_sequence",
    ],
)
@pytest.mark.parametrize("readonly", BOTH)
def test_invalid_values(folder, statement, readonly):
    execute(folder, statement)
    told(folder, readonly)


def mutated(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 20])):
        at = rng.randrange(len(changed))
        how = rng.randrange(4)
        if how == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            changed[at] = rng.choice([0, 1, 127, 255])
        elif how == 2:
            end = min(at + rng.choice([4, 100]), len(changed))
            changed[at:end] = bytes(end - at)
        else:
            del changed[max(at, 1) :]
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "version"),
    [("collection.sqlite", 2), ("index", 2), ("collection.sqlite", 1), ("vectors-000001.bin", 1)],
)
def test_altered_bytes(made, tmp_path, name, version):
    rng = random.Random(name)
    made = made if version == 2 else VERSION_1
    for at in range(int(os.environ.get("NEARLABEL_MUTATIONS", 8))):
        folder = Path(shutil.copytree(made, tmp_path / str(at)))
        path = folder / name if name != "index" else next(folder.glob("index-*.model"))
        path.write_bytes(mutated(path.read_bytes(), rng))
        message = told(folder, readonly=at % 2 == 0 and version == 2)
        assert message is None or name != "index"
        shutil.rmtree(folder)


STATEMENTS_OF_VERSION_1 = [
    "UPDATE state SET vectors_end = 9223372036854775807",
    "UPDATE state SET vectors_file = 5",
    "UPDATE state SET vectors_file = 0",
    "UPDATE items SET vector = vector + 1",
    "UPDATE items SET vector = 9223372036854775807",
    "UPDATE items SET vector = -64",
    "UPDATE items SET vector = (SELECT max(vector) FROM items)",
    "UPDATE differences SET before = 'no json' WHERE before IS NOT NULL",
    "UPDATE differences SET before = '[1, 2, 3, 4]' WHERE before IS NOT NULL AND what = 0",
    """UPDATE differences SET before = '["", "", "", "x"]' WHERE before IS NOT NULL AND what = 0""",
    """UPDATE differences SET before = '["", "", "", -9]' WHERE before IS NOT NULL AND what = 0""",
    "UPDATE settings SET value = '{\"width\": 3, \"is_sparse\": true}' WHERE name = 'form'",
    "DELETE FROM settings WHERE name = 'form'",
    "DELETE FROM state",
]


@pytest.mark.parametrize("statement", STATEMENTS_OF_VERSION_1)
def test_invalid_values_of_version_1(tmp_path, statement):
    folder = Path(shutil.copytree(VERSION_1, tmp_path / "c"))
    execute(folder, statement)
    told(folder, readonly=False)


def store_vector(folder: Path, item: int, values: np.ndarray) -> None:
    """With the right checksum."""
    content = values.astype("<f4").tobytes()
    total = crc32(content, crc32(item.to_bytes(8, "little")))
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database, database:
        update = "UPDATE vectors SET data = ?, checksum = ? WHERE item = ?"
        database.execute(update, (content, total, item))


def test_vectors_that_are_not_finite(folder):
    store_vector(folder, 1, np.full(6, np.nan))
    with Collection(folder) as collection:
        with pytest.raises(CollectionError, match="not finite"):
            collection.vectors([1])
        assert "not finite" in str(collection.verify())


@pytest.mark.parametrize("width", [5, 7, 0])
def test_vectors_of_another_length(folder, width):
    store_vector(folder, 1, np.ones(width))
    with Collection(folder) as collection:
        with pytest.raises(CollectionError, match="that of item 1;"):
            collection.vectors([2, 1])
        assert not collection.verify()


def test_vectors_of_another_item(folder):
    execute(folder, "UPDATE items SET vector = (SELECT max(vector) FROM items) WHERE id = 1")
    with Collection(folder) as collection:
        with pytest.raises(CollectionError, match="that of item 1;"):
            collection.vectors([1])
        assert not collection.verify()


@pytest.mark.parametrize("bit", range(0, 8 * 24, 7))
def test_no_bit_of_a_vector_can_change(folder, bit):
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database, database:
        (data,) = database.execute("SELECT data FROM vectors WHERE item = 2").fetchone()
        content = bytearray(data)
        content[bit // 8] ^= 1 << bit % 8
        database.execute("UPDATE vectors SET data = ? WHERE item = 2", (bytes(content),))
    with Collection(folder) as collection:
        collection.vectors([1, 3])
        with pytest.raises(CollectionError, match="that of item 2;"):
            collection.vectors([1, 2, 3])
        assert collection.without_vectors([1, 2, 3]) == {2}


def test_vectors_that_only_the_log_names_are_verified(folder):
    update = "UPDATE vectors SET checksum = checksum + 1 WHERE id NOT IN (SELECT vector FROM items)"
    execute(folder, update)
    with Collection(folder) as collection:
        collection.vectors(collection.ids())
        assert f"that of item {N};" in str(collection.verify())


def test_a_missing_or_damaged_index_is_rebuilt(folder):
    (index,) = folder.glob("index-*.model")
    with Collection(folder) as collection:
        wanted = collection.suggest(1)
        assert collection.notes == []
    index.write_bytes(index.read_bytes()[:-1])
    with Collection(folder) as collection:
        assert collection.suggest(1) == wanted
        assert [index.name in note for note in collection.notes] == [True]
        collection.save_index()
    with Collection(folder) as collection:
        assert collection.suggest(1) == wanted
        assert collection.notes == []
