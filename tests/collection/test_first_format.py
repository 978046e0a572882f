"""A collection made by nearlabel 1.0.0, whose vectors are in a file: nothing of it is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearlabel.collection import Collection, CollectionError, NewItem
from nearlabel.collection.records import content_of

FILES = Path(__file__).parents[1] / "files"
MADE = FILES / "collection-1.0.0"


def told_by(collection: Collection) -> dict[str, Any]:
    """Everything that a collection says of itself; the last vector of each item by its sha256."""
    items = collection.items()
    vectors = collection.vectors([item.id for item in items])
    return {
        "settings": [*collection.settings],
        "items": [
            {
                "id": item.id,
                "name": item.name,
                "files": [[*file] for file in item.files],
                "tags": {
                    tag: [decision.is_yes, decision.by, decision.at.isoformat()]
                    for tag, decision in item.tags.items()
                },
                "is_learned": item.is_learned,
                "is_missing": item.is_missing,
                "content": item.content.hex(),
                "vector": hashlib.sha256(np.asarray(row, "<f4").tobytes()).hexdigest(),
            }
            for item, row in zip(items, vectors, strict=True)
        ],
        "tags": [[*tag] for tag in collection.tags()],
        "roots": collection.roots(),
        "changes": [
            [change.number, change.kind, change.at.isoformat(), change.group, change.items]
            for change in collection.changes(1000)
            if change.kind != "undo"
        ],
        "next_undo": [change.number for change in collection.next_undo()],
        "suggestions": {
            item.id: [[one.tag, one.probability] for one in collection.suggest(item.id)]
            for item in items
        },
        "similar": {item.id: collection.similar(item.id, 3) for item in items},
    }


def briefly(told: dict[str, Any]) -> dict[str, Any]:
    """What undo changes."""
    return {
        str(item["id"]): [item["content"][:8], item["vector"][:8], *sorted(item["tags"])]
        for item in told["items"]
    }


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(MADE, tmp_path / "c"))


@pytest.fixture(scope="module")
def wanted():
    return json.loads((FILES / "collection-1.0.0.json").read_text(encoding="utf-8"))


def plain(told: dict[str, Any]) -> Any:
    return json.loads(json.dumps(told))


def test_everything_is_as_version_1_said(folder, wanted):
    with pytest.raises(CollectionError, match="version 1 of 2: open it for writing once"):
        Collection(folder, readonly=True)
    with Collection(folder) as collection:
        assert collection.notes == []  # the index file is still right, too
        told = plain(told_by(collection))
        assert collection.notes == []
        assert told == {name: wanted[name] for name in told}
        assert collection.verify()
        assert not [*folder.glob("vectors-*")]
    with Collection(folder, readonly=True) as collection:
        assert plain(told_by(collection)) == told
    with Collection(folder) as collection:
        for number, kind, before in wanted["undone"]:
            change = collection.undo()
            assert (change.number, change.kind) == (number, kind)
            assert briefly(told_by(collection)) == before
            assert collection.verify()
        assert collection.undo() is None


def test_what_follows_a_conversion(folder, tmp_path):
    with Collection(folder) as collection:
        vectors = collection.vectors(collection.ids())
        (new,) = collection.add([NewItem(content_of(b"new"), vectors[0] + 1)])
        assert np.array_equal(collection.vectors([new])[0], vectors[0] + 1)
        collection.forget(1)
        collection.compact()
        assert np.array_equal(collection.vectors(collection.ids())[:-1], vectors[1:])
        collection.backup(tmp_path / "copy")
        assert collection.verify()
    with Collection(tmp_path / "copy") as copy:
        assert np.array_equal(copy.vectors(copy.ids())[:-1], vectors[1:])


def test_a_conversion_that_is_killed_is_tried_again(folder, wanted):
    code = f"""
import os
from pathlib import Path
from nearlabel.collection import Collection, schema
move = schema.move_vectors
def dying(*given):
    move(*given)
    os._exit(9)
schema.move_vectors = dying
Collection({str(folder)!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert [*folder.glob("vectors-*")]
    with Collection(folder) as collection:
        told = plain(told_by(collection))
        assert told == {name: wanted[name] for name in told}
        assert collection.verify()


def records(folder: Path) -> dict[int, int]:
    """Where the vectors of items are in the file."""
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database:
        return dict(database.execute("SELECT id, vector FROM items"))


@pytest.mark.parametrize("damage", ["altered", "cut off", "another header", "missing"])
def test_only_damaged_vectors_are_lost(folder, wanted, damage):
    (path,) = folder.glob("vectors-*")
    places, content = records(folder), bytearray(path.read_bytes())
    ids = {*places}
    if damage == "altered":
        content[places[5] + 40] ^= 4
        lost = {5}
    elif damage == "cut off":
        del content[places[9] + 100 :]
        lost = {item for item, place in places.items() if place >= places[9]}
    elif damage == "another header":
        content[:64] = bytes(64)
        lost = set()
    else:
        lost = ids
    path.write_bytes(content)
    if damage == "missing":
        path.unlink()
    with Collection(folder) as collection:
        many = "1 item has" if len(lost) == 1 else f"{len(lost)} items have"
        notes = [f"{many} no vector any more", "'nearlabel index' computes them again"]
        assert all(note in " ".join(collection.notes) for note in notes) is bool(lost)
        assert collection.without_vectors(sorted(ids)) == lost
        assert [item.yes for item in collection.items()] == [
            [tag for tag, (is_yes, *_) in item["tags"].items() if is_yes]
            for item in wanted["items"]
        ]
        whole = sorted(ids - lost)
        hashes = {item["id"]: item["vector"] for item in wanted["items"]}
        for item, row in zip(whole, collection.vectors(whole), strict=True):
            assert hashlib.sha256(row.astype("<f4").tobytes()).hexdigest() == hashes[item]
        for item in lost:
            with pytest.raises(CollectionError, match=rf"of item {item};.*restore a backup"):
                collection.vectors([item])
            assert all(file.mtime_ns == 0 for file in collection.item(item).files)
        new = np.ones(collection.settings.width)
        (id,) = collection.add([NewItem(content_of(b"new"), new)])
        assert id not in lost
        collection.set_vectors(dict.fromkeys(lost, new))
        assert collection.without_vectors(sorted(ids)) == set()
        assert collection.verify()
    with Collection(folder) as collection:
        assert collection.notes == []
