"""What is checked of any network: that its files are the known ones, and that it gives rows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.packages import NetworkError

MOST_BYTES = 2**31  # of an ONNX file: protocol buffers have no more


def file_content(path: Path, most: int = MOST_BYTES) -> bytes:
    """What a file of a network holds, which a user names by its path."""
    if not path.is_file():
        raise FileNotFoundError(f"network {path}: there is no such file")
    if (size := path.stat().st_size) > most:
        raise NetworkError(f"network {path}: it has {size:,} bytes, more than such a file can have")
    return path.read_bytes()


def checksum(content: bytes) -> str:
    """The SHA-256 of what a file holds."""
    return hashlib.sha256(content).hexdigest()


def check_same(name: str, found: str, expected: str | None, part: str = "") -> None:
    """Refuse a network, or a part of it, with another checksum than the one used before."""
    if found != expected:
        raise NetworkError(
            f"{name} is another network than the one that the model was made with: "
            f"{f'of its {part} the' if part else 'its'} sha256 is {found}, not {expected}"
        )


def rows_of(values: Any, name: str, count: int, what: str, width: int | None = None) -> Array:
    """What a network gave as rows of float32, or an error that says what it gave instead.

    Parameters
    ----------
    values : array-like
    name : str
        What errors call the network.
    count : int
        How many items it got.
    what : str
        One of these items, "picture" for example.
    width : int, optional
        Values of a row, where they are known.
    """
    rows = np.asarray(values)
    if rows.ndim > 2 and rows.size == np.prod(rows.shape[:2]):  # (n, width, 1, 1)
        rows = rows.reshape(rows.shape[:2])
    if rows.ndim != 2 or len(rows) != count or rows.dtype.kind not in "fiu":
        raise NetworkError(
            f"{name} must give a row of numbers for each of {count} {what}s; it gives an array of "
            f"shape {rows.shape} and type {rows.dtype}"
        )
    if width not in (None, rows.shape[1]):
        raise NetworkError(f"{name} gives {rows.shape[1]} values a {what}; {width} expected")
    return rows.astype(np.float32, copy=False)
