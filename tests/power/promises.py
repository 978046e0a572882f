"""What collections and models contain, and what their writers have promised about it."""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from power.recorded_disk import Entry

import nearlabel as nl
from nearlabel.collection import Collection

TABLES = ("items", "roots", "files", "tags", "decisions", "changes", "differences", "vectors")
QUERIES = np.random.default_rng(2).normal(size=(5, 2))


class Promises:
    """What each collection and model may contain, as digests; None stands for nothing there."""

    def __init__(self) -> None:
        self.allowed: dict[str, list[str | None]] = {}

    def follow(self, entry: Entry) -> None:
        """Take an entry of a record into account."""
        (name,), digest = entry.names, entry.data.decode()
        allowed = self.allowed.setdefault(name, [None])
        if entry.kind == "P":  # from now on this may be there
            allowed.append(digest)
        elif entry.kind == "K" and digest in allowed:  # confirmed; what came before is gone
            del allowed[: allowed.index(digest)]
        elif entry.kind == "O":  # seen after opening; nothing else counts any more
            assert digest in allowed, (name, digest, allowed)
            allowed[:] = [digest]
        elif entry.kind == "V" and digest in allowed[1:]:  # refused
            del allowed[allowed.index(digest, 1)]


def content_in(connection: sqlite3.Connection) -> str:
    """The digest of what a collection contains, apart from what is derived."""
    selects = [f"SELECT * FROM {table} ORDER BY 1, 2" for table in TABLES]
    selects += ["SELECT * FROM settings WHERE name <> 'uploads' ORDER BY 1"]
    rows = [connection.execute(select).fetchall() for select in selects]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def content_of(collection: Collection) -> str:
    with collection._database.reading() as connection:
        return content_in(connection)


def model_content(model: Any) -> str:
    ids = [*model.items_.ids(model.items_.places)]
    scores = model.label_scores(QUERIES).toarray()
    return hashlib.sha256(repr((ids, scores.tolist())).encode()).hexdigest()


def checked_content(path: Path) -> str | None:
    """The digest of a collection or a model, which must open, and be in order; None without one."""
    if not path.exists():
        return None
    if path.suffix == ".model":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a change that was not confirmed
            with nl.load(path, journal=True) as model:
                return model_content(model)
    with Collection(path) as collection:
        check = collection.verify()
        assert check, str(check)
        uploads = str(path.with_name("c-uploads"))
        for item in collection.items() if uploads in collection.roots() else ():
            collection.content(item.id)  # the file is there, as it was sent
        for thumbnail in path.glob("thumbnails/*/*.jpg"):
            ids = collection.known_contents([bytes.fromhex(thumbnail.stem)])
            stored = [collection.thumbnail(item) for item in ids.values()]
            thumbnail.unlink()
            assert stored == [collection.thumbnail(item) for item in ids.values()]
        return content_of(collection)
