"""The rows of all blocks in one file, in any order: written by the workers, checked when read.

Each worker writes its rows to their places and returns their checksums, which are stored beside
the rows. So no process reads all rows, and none of their bits can change unnoticed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import BLOCK, FileError, read_stored, sync, sync_folder, write_tree
from nearlabel.common.mapped_arrays import MappedArray
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls

if TYPE_CHECKING:
    import numpy.typing as npt
    from distributed import Client

ROWS_A_CALL = 2**15
"""Rows that one call to a worker searches or puts in order."""


def write_rows(
    client: Client, blocks: VectorBlocks, kind: npt.DTypeLike, folder: Path, order: Path | None
) -> None:
    """Write all rows as one type, in the order that a file of lists has, or in their own."""
    part, dtype, n = folder / "rows.part", np.dtype(kind).newbyteorder("<"), len(blocks)
    with part.open("wb") as file:
        file.truncate(n * blocks.width * dtype.itemsize)
    step = max(1, BLOCK // (blocks.width * dtype.itemsize))  # rows with a checksum of their own
    size = -(-ROWS_A_CALL // step) * step
    calls = [
        (blocks, str(part), dtype.str, order, step, start, min(start + size, n))
        for start in range(0, n, size)
    ]
    sums = "".join(run_calls(client, put_rows, calls))
    part.replace(folder / "rows")
    sync_folder(part)
    about = {"shape": blocks.shape, "dtype": dtype.str, "rows_a_sum": step, "sums": sums}
    write_tree(folder / "rows.tree", about)


def put_rows(
    blocks: VectorBlocks,
    path: str,
    dtype: str,
    order: Path | None,
    step: int,
    start: int,
    stop: int,
) -> str:
    """Write rows to their places; returns a checksum for every `step` of them. Runs on workers."""
    if order is None:
        numbers = np.arange(start, stop)
    else:
        numbers = read_stored(order, mmap=True).tree["order"][start:stop]
    rows = np.ascontiguousarray(blocks[numbers], dtype)
    with Path(path).open("r+b") as file:
        file.seek(start * rows.shape[1] * rows.itemsize)
        file.write(rows.data)
        file.flush()
        sync(file.fileno())
    return "".join(checksum(rows[first : first + step]) for first in range(0, len(rows), step))


def mapped_file(folder: Path) -> MappedArray:
    """The rows that `write_rows` has written to a folder, mapped into memory."""
    about, path = read_stored(folder / "rows.tree").tree, folder / "rows"
    (n, width), dtype, step = about["shape"], np.dtype(about["dtype"]), about["rows_a_sum"]
    sums = about["sums"]

    def check(number: int, content: Array) -> None:
        if checksum(content) != sums[64 * number : 64 * (number + 1)]:
            raise FileError("is altered: the checksum of its rows does not match", path)

    with path.open("rb") as file:
        if path.stat().st_size != n * width * dtype.itemsize:
            raise FileError("is truncated or altered: its size does not match", path)
        return MappedArray(file, 0, dtype, (n, width), step * width * dtype.itemsize, check)


def checksum(content: Array) -> str:
    """The sha256 of the memory of an array."""
    return hashlib.sha256(content.data).hexdigest()
