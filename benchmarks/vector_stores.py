"""Where should a collection keep its vectors: in rows or chunks of its database, or in a file?

Usage: python vector_stores.py [--rounds N]

All ways are safe against a loss of power: a vector exists once a commit of SQLite that is synced
names it, and the file is synced before that commit. Nothing else that a collection does is measured
here; see `stored_collections.py`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measuring import report

QUESTION = (
    "Vectors in rows of an SQLite database, in chunks of 256 KiB of it, or in a file beside it: "
    "medians of rounds in which the ways take turns, in wall-clock time"
)
SIZES = (100_000, 1_280), (1_000_000, 128)
BATCH = 10_000  # vectors that are added by one change
SINGLE = 100  # vectors that are added one by one
RANDOM = 1_000  # vectors that are read in random order
CHUNK = 2**18  # bytes
AT_ONCE = 2**22  # bytes that are read before they are copied to an array


class Rows:
    """A row of a table for each vector."""

    def __init__(self, folder: Path, d: int, page_size: int) -> None:
        self.row_bytes = 4 * d
        self.d, self.n, self.path = d, 0, folder / "vectors.sqlite"
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        for setting in (f"page_size = {page_size}", "journal_mode = WAL", "synchronous = FULL"):
            self.connection.execute(f"PRAGMA {setting}")
        self.connection.execute("CREATE TABLE state (n INTEGER NOT NULL)")
        self.connection.execute("INSERT INTO state VALUES (0)")
        self.connection.execute("CREATE TABLE vectors (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")

    @contextmanager
    def change(self, more: int) -> Iterator[None]:
        """Commit what is done, and the number of vectors."""
        self.connection.execute("BEGIN IMMEDIATE")
        yield
        self.n += more
        self.connection.execute("UPDATE state SET n = ?", (self.n,))
        self.connection.execute("COMMIT")

    def add(self, X: Any) -> None:
        """Add vectors by one change."""
        with self.change(len(X)):
            data = ((x.tobytes(),) for x in X)
            self.connection.executemany("INSERT INTO vectors (data) VALUES (?)", data)

    def all(self) -> Any:
        """All vectors, in one array."""
        X, place = np.empty((self.n, self.d), np.float32), 0
        rows = self.connection.execute("SELECT data FROM vectors ORDER BY id")
        while block := rows.fetchmany(max(1, AT_ONCE // self.row_bytes)):
            numbers = np.frombuffer(b"".join([data for (data,) in block]), np.float32)
            vectors = numbers.reshape(-1, self.d)[: self.n - place]
            X[place : place + len(vectors)] = vectors
            place += len(vectors)
        return X

    def one(self, number: int) -> Any:
        """A vector, by its number from 0."""
        row = self.connection.execute("SELECT data FROM vectors WHERE id = ?", (number + 1,))
        return np.frombuffer(row.fetchone()[0], np.float32)

    def back_up(self, folder: Path) -> None:
        """Copy everything to a new folder, and sync it."""
        folder.mkdir()
        copy = sqlite3.connect(folder / self.path.name)
        self.connection.backup(copy)
        copy.close()


class Chunks(Rows):
    """A row of a table for many vectors, which incremental blobs read and write."""

    def __init__(self, folder: Path, d: int, page_size: int) -> None:
        super().__init__(folder, d, page_size)
        self.row_bytes = CHUNK

    def add(self, X: Any) -> None:
        """Add vectors by one change."""
        in_chunk, start = CHUNK // (4 * self.d), 0
        with self.change(len(X)):
            while start < len(X):
                chunk, place = divmod(self.n + start, in_chunk)
                if place == 0:
                    self.connection.execute(
                        "INSERT INTO vectors (data) VALUES (zeroblob(?))", (4 * self.d * in_chunk,)
                    )
                part = X[start : start + in_chunk - place]
                with self.connection.blobopen("vectors", "data", chunk + 1) as blob:
                    blob.seek(4 * self.d * place)
                    blob.write(part.tobytes())
                start += len(part)

    def one(self, number: int) -> Any:
        """A vector, by its number from 0."""
        chunk, place = divmod(number, CHUNK // (4 * self.d))
        with self.connection.blobopen("vectors", "data", chunk + 1, readonly=True) as blob:
            blob.seek(4 * self.d * place)
            return np.frombuffer(blob.read(4 * self.d), np.float32)


class Beside(Rows):
    """A file beside the database, which names how much of it counts."""

    def __init__(self, folder: Path, d: int, page_size: int) -> None:
        super().__init__(folder, d, page_size)
        self.file = (folder / "vectors.bin").open("w+b")

    def add(self, X: Any) -> None:
        """Add vectors by one change."""
        with self.change(len(X)):
            self.file.seek(4 * self.d * self.n)
            self.file.write(X.tobytes())
            self.file.flush()
            os.fsync(self.file.fileno())

    def all(self) -> Any:
        """All vectors, in one array."""
        return np.fromfile(self.file.name, np.float32).reshape(-1, self.d)[: self.n]

    def one(self, number: int) -> Any:
        """A vector, by its number from 0."""
        data = os.pread(self.file.fileno(), 4 * self.d, 4 * self.d * number)
        return np.frombuffer(data, np.float32)

    def back_up(self, folder: Path) -> None:
        """Copy everything to a new folder, and sync it."""
        super().back_up(folder)
        copy = shutil.copyfile(self.file.name, folder / "vectors.bin")
        with copy.open("r+b") as file:
            os.fsync(file.fileno())


WAYS: dict[str, Callable[[Path, int], Rows]] = {
    "rows, pages of 4 KiB": partial(Rows, page_size=2**12),
    "rows, pages of 16 KiB": partial(Rows, page_size=2**14),
    "chunks, pages of 16 KiB": partial(Chunks, page_size=2**14),
    "file": partial(Beside, page_size=2**14),
}


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def times(way: str, folder: Path, X: Any) -> dict[str, float]:
    """What everything takes that a collection asks of its vectors."""
    store = WAYS[way](folder, X.shape[1])
    kept, later = X[:-SINGLE], X[-SINGLE:]
    blocks = [kept[start : start + BATCH] for start in range(0, len(kept), BATCH)]
    numbers = np.random.default_rng(0).integers(0, len(X), RANDOM).tolist()
    took = {
        "add_all_seconds": sum(seconds(partial(store.add, block)) for block in blocks),
        "add_one_ms": 1e3 * median(seconds(partial(store.add, later[[i]])) for i in range(SINGLE)),
        "read_all_seconds": seconds(store.all),
        "read_1000_ms": 1e3 * seconds(lambda: [store.one(number) for number in numbers]),
        "backup_seconds": seconds(partial(store.back_up, folder / "backup")),
    }
    np.testing.assert_array_equal(store.all(), X)
    np.testing.assert_array_equal([store.one(number) for number in numbers], X[numbers])
    size = sum(path.stat().st_size for path in (folder / "backup").iterdir())
    return {**took, "bytes_a_number": size / X.size}


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds, results = parser.parse_args().rounds, []
    for n, d in SIZES:
        X = np.random.default_rng(0).random((n, d), np.float32)
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, rows in taken.items():
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(times(way, Path(folder), X))
        for way, rows in taken.items():
            middle = {name: round(median(row[name] for row in rows), 3) for name in rows[0]}
            results.append({"n": n, "d": d, "way": way, **middle})
    report(QUESTION, results)


if __name__ == "__main__":
    main()
