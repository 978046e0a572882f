"""Untrusted collections, altered at random: refused with one sentence or repaired.

`test_store_hostile.py` has what is known to be dangerous; here a seeded generator alters bytes,
rows and kinds of files. Nothing outside of the folder may change, nothing may be executed, and no
error may be of another kind than those that are documented.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collection_lives import walk

from nearlabel.collection import Collection, CollectionError

pytest.importorskip("PIL.Image")

NUMBERS = [0, 1, -1, 2, 7, 64, 255, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 1.5, None]
TEXTS = [
    "",
    "x",
    "../../outside",
    "/etc/passwd",
    "[]",
    "{}",
    "null",
    "[" * 5000,
    "1e999",
    "\x1b[2J",
]
TEXTS += ["<script>alert(1)</script>", "line\nbreak", "\u202egnp.exe", "a" * 100_000, "\0", "7"]
BLOBS = [b"", b"\0", b"\xff" * 32, b"../outside", b"/etc/passwd", bytes(2**16)]
WIDTH = 294  # of moments


class Made:
    """A collection with some of everything, and one that was copied while it was open."""

    def __init__(self, top: Path) -> None:
        self.folders = [top / "closed", top / "open"]
        (top / "photos").mkdir()
        with Collection.create(top / "c", features="moments") as collection:
            for number in range(26):
                walk(collection, number, top / "photos", top / "backup")
            for item in collection.ids(limit=3):
                collection.tag(item, ["sea", f"tag {item}"])
                with suppress(FileNotFoundError):
                    collection.thumbnail(item)
            collection.save_index()
            collection.reject(collection.ids()[:2], "dog")
            shutil.copytree(top / "c", self.folders[1])
        shutil.copytree(top / "c", self.folders[0])
        assert (self.folders[1] / "collection.sqlite-wal").stat().st_size


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("made"))


def use(folder: Path, readonly: bool, deep: bool) -> None:
    """Read and change everything possible; with `deep`, also query and erase, which is slow."""
    with Collection(folder, readonly=readonly) as collection:
        collection.counts(), collection.tags(), collection.changes(100)
        items = collection.items()
        for root in collection.roots():
            collection.files(root)
        ids = [item.id for item in items]
        collection.vectors(ids)
        if items:
            collection.find(items[0].name)
            with suppress(FileNotFoundError):
                collection.thumbnail(ids[-1])
        if not readonly:
            collection.tag(ids, "new")
            for _ in range(3):
                collection.undo()
        if deep:
            collection.suggest(np.ones(collection.settings.width or 1))
            if items:
                collection.retrieve(ids[0])
            collection.verify()
            if not readonly:
                collection.forget(ids[:1])
                collection.compact()


def told(folder: Path, readonly: bool, deep: bool) -> str | None:
    """The reason why a folder cannot be used, one sentence; None if it can."""
    try:
        use(folder, readonly, deep)
    except (CollectionError, OSError) as error:
        message = str(error)
        assert "\n" not in message
        assert "\x1b" not in message
        assert len(message) < 1000
        return message
    return None


def altered_bytes(folder: Path, chance: random.Random) -> None:
    path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    content = bytearray(path.read_bytes() or b"\0")
    for _ in range(chance.choice([1, 1, 3, 20])):
        at, how = chance.randrange(len(content)), chance.randrange(6)
        some = slice(at, at + chance.choice([1, 2, 4, 8, 100, 4096]))
        if how == 0:
            content[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            content[at] = chance.choice([0, 1, 127, 128, 255])
        elif how == 2:
            content[some] = bytes(len(content[some]))
        elif how == 3:
            content[some] = content[chance.randrange(len(content)) :][: len(content[some])]
        elif how == 4:
            content[some] = bytes(chance.randrange(256) for _ in content[some])
        else:
            content = content[: at + 1]
    path.write_bytes(content)


def altered_rows(folder: Path, chance: random.Random) -> None:
    path = folder / "collection.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        select = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        tables = [name for (name,) in database.execute(select)]
        for _ in range(chance.choice([1, 1, 2, 5])):
            table = chance.choice(tables)
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column, other = chance.choice(columns), chance.choice(columns)
            value: Any = chance.choice(chance.choice([NUMBERS, NUMBERS, TEXTS, BLOBS]))
            where = chance.choice(["", f"WHERE {other} = (SELECT max({other}) FROM {table})"])
            how = chance.randrange(5)
            with suppress(sqlite3.Error):
                if how == 0:
                    database.execute(f"DELETE FROM {table} {where}")
                elif how == 1:
                    database.execute(f"UPDATE {table} SET {column} = {other} {where}")
                elif how == 2 and table == "settings":
                    text = chance.choice(TEXTS)
                    given = chance.choice([text, json.dumps({"name": text, "width": 1.5})])
                    database.execute(f"UPDATE settings SET value = ? {where}", (given,))
                else:
                    database.execute(f"UPDATE {table} SET {column} = ? {where}", (value,))


def altered_files(folder: Path, chance: random.Random) -> None:
    names = sorted(path for path in folder.rglob("*") if path.name != "thumbnails")
    path, other = chance.choice(names), chance.choice(names)
    outside, how = folder.parent / "outside", chance.randrange(8)
    if how == 0 and path.is_file():
        os.truncate(path, 2**40)  # a file of holes
        return
    if how == 1 and path.is_file() and other.is_file() and path != other:
        shutil.copyfile(other, path)
        return
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    if how == 2:
        path.symlink_to(outside / "file")
    elif how == 3:
        path.symlink_to(outside)
    elif how == 4:
        os.mkfifo(path)
    elif how == 5:
        path.mkdir()
    elif how == 6:
        path.symlink_to(path.name)
    else:
        path.touch()


WAYS = (altered_bytes, altered_bytes, altered_rows, altered_rows, altered_files)


def campaign(made: Made, top: Path, numbers: range, share_deep: float = 1) -> Counter[str]:
    """Alter and use collections; return how many could be used, and how many were refused."""
    outside = top / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"untouched")
    counts: Counter[str] = Counter()
    for number in numbers:
        chance = random.Random(number)
        folder = top / "c"
        shutil.copytree(chance.choice(made.folders), folder)
        way = chance.choice(WAYS)
        way(folder, chance)
        try:
            readonly = chance.random() < 0.5
            refused = told(folder, readonly, deep=chance.random() < share_deep)
        except Exception as error:
            raise AssertionError(f"alteration {number}: {error!r}") from error
        assert sorted(path.name for path in top.iterdir()) == ["c", "outside"], number
        assert [path.name for path in outside.iterdir()] == ["file"], number
        assert (outside / "file").read_bytes() == b"untouched", number
        counts["refused" if refused else "used"] += 1
        shutil.rmtree(folder)
    return counts


def test_a_method_without_a_name(made, tmp_path):
    with pytest.raises(ValueError, match="method must be one of .*got None"):
        Collection.create(tmp_path / "new", method={"n_neighbors": 3})
    shutil.copytree(made.folders[0], tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c" / "collection.sqlite")) as database, database:
        database.execute("UPDATE settings SET value = '{}' WHERE name = 'method'")
    assert "method" in (told(tmp_path / "c", readonly=True, deep=True) or "")


@pytest.mark.parametrize("number", [2**62, 2**63 - 1])
def test_an_order_that_no_model_can_have(made, tmp_path, number):
    shutil.copytree(made.folders[0], tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c" / "collection.sqlite")) as database, database:
        last = "learned = (SELECT max(learned) FROM items)"
        database.execute(f"UPDATE items SET learned = ? WHERE {last}", (number,))
        database.execute("UPDATE state SET index_change = NULL, index_digest = NULL")
    assert "order" in (told(tmp_path / "c", readonly=True, deep=True) or "")


def test_altered_collections(made, tmp_path):
    counts = campaign(made, tmp_path, range(80), share_deep=0.1)
    assert min(counts["refused"], counts["used"]) > 10


@pytest.mark.slow
def test_20_000_altered_collections(made, tmp_path, capsys):
    counts = campaign(made, tmp_path, range(20_000))
    with capsys.disabled():
        print(f"\n{counts['used']:,} used, {counts['refused']:,} refused")  # noqa: T201
