"""Checks of any network: its files must be the known ones, and it must return rows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.packages import NetworkError

MOST_BYTES = 2**31  # of an ONNX file: the limit of protocol buffers


def file_content(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a network file given by a user."""
    if not path.is_file():
        raise FileNotFoundError(f"network {path}: no such file")
    if (size := path.stat().st_size) > most:
        raise NetworkError(f"network {path} has {size:,} bytes; at most {most:,} are allowed")
    return path.read_bytes()


def checksum(content: bytes) -> str:
    """The SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def check_same(name: str, found: str, expected: str | None, part: str = "") -> None:
    """Refuse a network, or a part of it, whose checksum differs from the one used before."""
    if found != expected:
        raise NetworkError(
            f"{name} is not the network that the model was built with: "
            f"{f'the sha256 of its {part}' if part else 'its sha256'} is {found}, not {expected}"
        )


def rows_of(values: Any, name: str, count: int, what: str, width: int | None = None) -> Array:
    """The output of a network as float32 rows, or an error that describes the output.

    Parameters
    ----------
    values : array-like
    name : str
        The name of the network in error messages.
    count : int
        The number of items it received.
    what : str
        The kind of item, "picture" for example.
    width : int, optional
        The expected length of a row, if known.
    """
    rows = np.asarray(values)
    if rows.ndim > 2 and rows.size == np.prod(rows.shape[:2]):  # (n, width, 1, 1)
        rows = rows.reshape(rows.shape[:2])
    if rows.ndim != 2 or len(rows) != count or rows.dtype.kind not in "fiu":
        raise NetworkError(
            f"{name} must return a row of numbers for each of {count} {what}s; got an array of "
            f"shape {rows.shape} and type {rows.dtype}"
        )
    if width not in (None, rows.shape[1]):
        raise NetworkError(f"{name} returned {rows.shape[1]} values per {what}; expected {width}")
    return rows.astype(np.float32, copy=False)
