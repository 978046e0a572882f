"""The folder in which a run keeps its blocks: shared by all workers, and reused by later runs.

The name of each subfolder has a digest of the data and parameters that its files were made from,
so that stale files are never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.files import replacing
from nearlabel.distributed.label_files import LabelFiles
from nearlabel.distributed.vector_blocks import (
    ParquetBlocks,
    VectorBlocks,
    blocks_in,
    checked_rows,
    found_blocks,
    write_array,
)
from nearlabel.distributed.workers import (
    check_files,
    check_workers,
    connected,
    dask_module,
    run_calls,
)

_BLOCKS_A_WORKER = 4  # for an array in memory, which has no blocks
_BLOCK_BYTES = 2**26  # maximum size of such a block
_ROWS_AT_ONCE = 2**13  # copied together


@dataclass(frozen=True)
class Workspace:
    """A client, and a folder for the files of its workers."""

    client: Any
    folder: Path
    is_kept: bool  # whether the folder remains after the run

    def part(self, kind: str, *made_from: Any) -> Path:
        """A subfolder for files made from some data and parameters; it may already exist."""
        text = json.dumps(made_from, default=str, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:20]
        path = self.folder / f"{kind}-{digest}"
        path.mkdir(exist_ok=True)
        return path

    @property
    def threads(self) -> int:
        """The number of calls that run at the same time."""
        return max(1, int(sum(self.client.nthreads().values())))

    def vectors(self, X: Any, name: str = "X") -> VectorBlocks:
        """Vectors as blocks in ``.npy`` files: the given files, or new ones written once."""
        blocks = self._vectors(X, name)
        check_files(self.client, [block.path for block in blocks.blocks], name)
        return blocks

    def _vectors(self, X: Any, name: str) -> VectorBlocks:
        if isinstance(X, str | os.PathLike):
            X = found_blocks(Path(X).absolute(), name)
        if isinstance(X, VectorBlocks):
            return X
        if isinstance(X, ParquetBlocks):
            check_files(self.client, [str(path) for path in X.files], name)
            target = self.part("vectors", [file_mark(path) for path in X.files])
            calls = [(str(path), str(target / f"{i:06}.npy")) for i, path in enumerate(X.files)]
            run_calls(self.client, copy_parquet, _missing(calls))
            return blocks_in([Path(path) for _, path in calls], name)
        if hasattr(X, "to_delayed") and hasattr(X, "chunks"):
            return self._chunks(X, name)
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} must be a Dask array, a folder of .npy or Parquet blocks, or a matrix of "
                f"numbers; got {type(X).__name__}"
            )
        return self._divided(rows, name)

    def _chunks(self, X: Any, name: str) -> VectorBlocks:
        """The chunks of a Dask array, written once by the workers that compute them."""
        if X.ndim != 2:
            raise ValueError(f"{name} must be 2-d; got a Dask array of shape {X.shape}")
        X = X.rechunk({1: -1})
        target = self.part("vectors", X.name)
        delayed = dask_module("dask").delayed(write_chunk, pure=False)
        parts = X.to_delayed().ravel()
        paths = [target / f"{i:06}.npy" for i in range(len(parts))]
        left = [
            delayed(part, str(path))
            for part, path in zip(parts, paths, strict=True)
            if not path.exists()
        ]
        for future in self.client.compute(left):
            future.result()
        return blocks_in(paths, name)

    def _divided(self, rows: Array, name: str) -> VectorBlocks:
        """An array in memory, split into blocks by this process."""
        bytes_a_row = max(1, rows.shape[1] * rows.itemsize)
        even = -(-len(rows) // (_BLOCKS_A_WORKER * self.threads))
        size = max(1, min(even, _BLOCK_BYTES // bytes_a_row))
        target = self.part("vectors", array_mark(rows), size)
        paths = []
        for start in range(0, len(rows), size):
            paths.append(target / f"{start:012}.npy")
            if not paths[-1].exists():
                write_array(paths[-1], np.ascontiguousarray(rows[start : start + size]))
        return blocks_in(paths, name)

    def labels(self, Y: Csr) -> LabelFiles:
        """Write labels to files for the workers."""
        marks = array_mark(Y.indptr), array_mark(Y.indices), Y.shape
        return LabelFiles.written(self.part("labels", *marks), Y)

    def joined(self, blocks: VectorBlocks) -> Array:
        """The rows of all blocks as one array: in memory, or mapped if the folder is kept."""
        if not self.is_kept:
            return blocks.read()
        if len(blocks.blocks) == 1:
            return np.asanyarray(np.load(blocks.blocks[0].path, mmap_mode="r"))
        path = self.part("joined", data_mark(blocks)) / "vectors.npy"
        if not path.exists():
            with replacing(path) as file:
                kind: Any = np.lib.format.dtype_to_descr(blocks.dtype)
                header = {"descr": kind, "fortran_order": False, "shape": blocks.shape}
                np.lib.format.write_array_header_1_0(file, header)
                for _, rows in blocks.runs(_ROWS_AT_ONCE):
                    file.write(np.ascontiguousarray(rows).data)
        return np.asanyarray(np.load(path, mmap_mode="r"))


@contextmanager
def working(client: Any, folder: Any) -> Iterator[Workspace]:
    """A workspace in the given folder, or in a temporary one on this machine."""
    with connected(client) as own:
        if folder is not None:
            path = Path(folder).absolute()
            path.mkdir(parents=True, exist_ok=True)
            check_workers(own, path)
            yield Workspace(own, path, True)
            return
        with tempfile.TemporaryDirectory(prefix="nearlabel-") as temporary:
            check_workers(own, Path(temporary))
            yield Workspace(own, Path(temporary), False)


def data_mark(blocks: VectorBlocks) -> list[Any]:
    """What identifies the data of blocks: paths, sizes and modification times of their files."""
    return [[file_mark(Path(block.path)) for block in blocks.blocks], *blocks.shape]


def file_mark(path: Path) -> list[Any]:
    """What identifies a version of a file: its path, size and modification time."""
    found = path.stat()
    return [str(path), found.st_size, found.st_mtime_ns]


def array_mark(rows: Array) -> list[Any]:
    """What identifies an array: its shape and a digest."""
    digest = hashlib.sha256(str(rows.dtype).encode())
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        digest.update(np.ascontiguousarray(rows[start : start + _ROWS_AT_ONCE]).data)
    return [rows.shape, digest.hexdigest()]


def write_chunk(rows: Any, path: str) -> None:
    """Write a chunk of a Dask array as a block; runs on workers."""
    write_array(path, checked_rows(np.ascontiguousarray(rows), path))


def copy_parquet(source: str, path: str) -> None:
    """Write the columns of a Parquet file as a block; runs on workers."""
    from nearlabel.datasets.frames import import_polars

    frame = import_polars().read_parquet(source, glob=False, hive_partitioning=False)
    if any(frame.null_count().row(0)):
        raise ValueError(f"X has missing values, in {source}; impute or remove them")
    write_array(path, checked_rows(np.ascontiguousarray(frame.to_numpy()), source))


def _missing(calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [call for call in calls if not Path(call[1]).exists()]
