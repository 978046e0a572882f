"""A reproducible history of a collection, step by step, and its expected state.

One process is killed again and again, another is not: their results must be the same.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from drawn_pictures import file_of

import nearlabel as nl
from nearlabel.collection import Collection, indexing
from nearlabel.collection.exchange.importing import import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.collection.stored_vectors import named_vectors

LONG_AGO = 10**18
TAGS = ["sea", "sky", "dog", "Places", "Places|Rome", "7"]
WRITING = ("add", "set_files", "tag", "reject", "clear", "set_tags", "decide", "rename_tag")
WRITING += ("merge_tags", "undo", "forget")
DERIVED = ("ask", "save_index", "compact", "thumbnail", "backup")
STEPS = ("index", "tag", "reject", "import", "rename", "merge", "undo", "undo", "forget")
STEPS += ("set_tags", "clear")


class Told(Collection):
    """A collection that reports the number of changes after each change."""

    def tell(self, changes: int) -> None:
        """A change is acknowledged."""


def _telling(name: str) -> Any:
    def method(self: Told, *given: Any, **options: Any) -> Any:
        result = getattr(Collection, name)(self, *given, **options)
        self.tell(changes_of(self))
        return result

    return method


for _name in WRITING:
    setattr(Told, _name, _telling(_name))


def changes_of(collection: Collection) -> int:
    """The number of changes, including those without effect."""
    with collection._database.reading() as connection:
        select = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
        found = connection.execute(select).fetchone()
    return int(found[0]) if found else 0


def picture(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return file_of(pixels, "PNG")


def put_files(root: Path, number: int) -> None:
    """Set the files of a step; idempotent."""

    def put(name: str, seed: int) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".part").write_bytes(picture(seed))
        time = LONG_AGO + seed * 10**9
        os.utime(path.with_suffix(".part"), ns=(time, time))
        path.with_suffix(".part").rename(path)

    for at in range(3):
        put(f"{number}-{at}.png", 10 * number + at)
    (root / f"{number - 4}-0.png").unlink(missing_ok=True)
    if (root / f"{number - 3}-1.png").exists():
        (root / "moved").mkdir(exist_ok=True)
        (root / f"{number - 3}-1.png").rename(root / "moved" / f"{number}.png")
    if (root / f"{number - 2}-2.png").exists():
        put(f"{number - 2}-2.png", 10 * number + 5)


def step_of(number: int) -> str:
    """What is done in a step."""
    if number < 2 or number % 5 == 0:
        return "index"
    chance = random.Random(number)
    return chance.choice(DERIVED if number % 3 == 0 else STEPS)


def walk(collection: Collection, number: int, root: Path, backup: Path) -> None:
    """Make a step."""
    chance, step = random.Random(number + 1000), step_of(number)
    ids = collection.ids()
    some, tags = chance.sample(ids, min(len(ids), 3)), chance.sample(TAGS, 2)
    if step == "index":
        put_files(root, number)
        with mock.patch.object(indexing, "_FILES_AT_ONCE", 2):
            run_index(collection, plan_index(collection, root))
    elif step in ("tag", "reject", "clear"):
        getattr(collection, step)(some, tags)
    elif step == "set_tags" and some:
        collection.set_tags(some[0], tags)
    elif step == "import":
        files = [TaggedFile("", (tags[0],), (tags[1],), id=item) for item in some]
        import_files(collection, files, overrule=number % 2 == 0)
    elif step == "rename":
        with suppress(ValueError):  # one of the tags does not exist
            collection.rename_tag(tags[0], tags[1])
    elif step == "merge":
        with suppress(ValueError):
            collection.merge_tags(tags, tags[1])
    elif step == "undo":
        collection.undo()
    elif step == "forget" and len(ids) > 4:
        collection.forget(some[:1])
    elif step == "ask":
        collection.suggest(some[0] if some else 1)
    elif step in ("save_index", "compact"):
        getattr(collection, step)()
    elif step == "thumbnail":
        for item in some:
            with suppress(FileNotFoundError):
                collection.thumbnail(item)
    elif step == "backup":
        old = backup.with_name("old backup")  # written atomically, in case of a kill
        shutil.rmtree(old, ignore_errors=True)
        if backup.exists():
            backup.rename(old)
        collection.backup(backup)


def content_of(folder: Path) -> dict[str, Any]:
    """The content of a collection without times and the folder of its files."""
    with closing(sqlite3.connect(f"file:{folder}/collection.sqlite?mode=ro", uri=True)) as database:

        def rows(select: str) -> list[Any]:
            return database.execute(select).fetchall()

        return {
            "items": rows("SELECT id, content, name, text, learned FROM items ORDER BY id"),
            "files": rows("SELECT id, path, item, is_missing FROM files ORDER BY id"),
            "tags": rows("SELECT * FROM tags ORDER BY id"),
            "decisions": rows("SELECT item, tag, is_yes, by FROM decisions ORDER BY item, tag"),
            "changes": rows("SELECT id, kind, run, items, is_undone FROM changes ORDER BY id"),
            "differences": rows(
                "SELECT change, place, what, key, tag, before IS NULL FROM differences "
                "ORDER BY change, place"
            ),
        }


def orphans(folder: Path) -> list[str]:
    """Files without a reference, and rows that refer to nothing."""
    with closing(sqlite3.connect(f"file:{folder}/collection.sqlite?mode=ro", uri=True)) as database:
        (index,) = database.execute("SELECT index_change FROM state").fetchone()
        contents = {row[0].hex() for row in database.execute("SELECT content FROM items")}
        found = [f"row {row}" for row in database.execute("PRAGMA foreign_key_check")]
        found += [w for (w,) in database.execute("PRAGMA integrity_check") if w != "ok"]
        unused = "SELECT name FROM tags WHERE id NOT IN (SELECT tag FROM decisions) AND id NOT IN "
        unused += "(SELECT tag FROM differences WHERE what = 3 AND before IS NOT NULL)"
        found += [f"tag {name}" for (name,) in database.execute(unused)]
        stored = {vector for (vector,) in database.execute("SELECT id FROM vectors WHERE item")}
        found += [f"vector {vector}" for vector in stored ^ named_vectors(database).keys()]
    known = {"collection.sqlite", "collection.sqlite-wal", "collection.sqlite-shm", "lock"}
    known |= {"thumbnails", f"index-{index}.model"}
    found += [path.name for path in folder.iterdir() if path.name not in known]
    for path in folder.glob("thumbnails/*/*"):
        if path.suffix != ".jpg" or (path.stem not in contents):
            found.append(str(path.relative_to(folder)))
    return found


def fresh_answers(collection: Collection, query: Any) -> dict[str, float]:
    """The probability of each tag in use, by a model fitted to the current content."""
    ids = collection._folder.learned.source.rows().ids.tolist()
    items = {item.id: item for item in collection.items()}
    assert set(ids) == {item.id for item in items.values() if item.tags}
    tags = [tag.name for tag in collection.tags() if tag.yes]
    if len(ids) < 2 or not tags:
        return {}
    Y = np.array([[tag in items[item].yes for tag in tags] for item in ids], int)
    method: Any = nl.MLkNN if len(ids) >= 15 else nl.MallowskNN
    model = method(min(10, max(1, len(ids) // 15)), metric="cosine")
    model.fit(collection.vectors(ids), Y.reshape(-1, len(tags)))
    return dict(zip(tags, model.label_scores([query]).toarray()[0].tolist(), strict=True))


def answers(collection: Collection, query: Any) -> dict[str, float]:
    """The probability of each tag according to the collection."""
    return {one.tag: one.probability for one in collection.suggest(query, top=1000)}
