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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.file_locks import try_lock
from nearlabel.common.mapped_arrays import checked
from nearlabel.distributed.label_files import LabelFile
from nearlabel.distributed.row_files import mapped_file, write_rows
from nearlabel.distributed.vector_blocks import (
    WRITTEN,
    VectorBlocks,
    blocks_in,
    first_wrong_row,
    found_blocks,
    write_block,
)
from nearlabel.distributed.workers import (
    ClusterError,
    check_files,
    check_workers,
    connected,
    dask_module,
    run_calls,
)

if TYPE_CHECKING:
    from distributed import Client

Folder: TypeAlias = str | os.PathLike[str] | None

_ROWS_AT_ONCE = 2**13  # copied together


@dataclass(frozen=True)
class Workspace:
    """A client, and a folder for the files of its workers."""

    client: Client
    folder: Path
    is_kept: bool  # whether the folder remains after the run

    def part(self, kind: str, *made_from: object) -> Path:
        """A subfolder for files made from some data and parameters; it may already exist."""
        text = json.dumps(made_from, default=str, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:20]
        path = self.folder / f"{kind}-{digest}"
        path.mkdir(exist_ok=True)
        return path

    def vectors(self, X: Any, name: str = "X", *, finite: bool = True) -> VectorBlocks:
        """Vectors as blocks in files: the given ones, or new ones written once.

        With `finite`, NaN and infinity are refused.
        """
        if isinstance(X, str | os.PathLike):
            X = found_blocks(Path(X).absolute(), name)
        blocks = X if isinstance(X, VectorBlocks) else self._written(X, name)
        check_files(self.client, [block.path for block in blocks.blocks], name)
        if blocks.blocks[0].path.endswith(".parquet"):
            target = self.part("vectors", data_mark(blocks))
            copies = [
                (block.path, target / f"{block.start:012}{WRITTEN}") for block in blocks.blocks
            ]
            blocks = blocks_in(run_calls(self.client, copy_parquet, copies), name)
        if finite and blocks.dtype.kind == "f":
            mark = self.part("checked", data_mark(blocks)) / "finite"
            if not mark.exists():  # each version of the files is checked once
                calls = [(block,) for block in blocks.blocks]
                rows = run_calls(self.client, first_wrong_row, calls)
                for block, row in zip(blocks.blocks, rows, strict=True):
                    if row is not None:
                        where = f"row {row}" if X is not blocks else f"row {row}, in {block.path}"
                        raise ValueError(
                            f"{name} contains NaN or infinity in {where}; impute or remove it"
                        )
                mark.touch()
        return blocks

    def _written(self, X: Any, name: str) -> VectorBlocks:
        """Rows in new files, unless these were written before."""
        if sparse.issparse(X):
            raise TypeError(
                f"{name} must be dense on a cluster; got a {type(X).__name__}: pass X.toarray(), "
                "or use one process"
            )
        is_lazy = hasattr(X, "to_delayed") and hasattr(X, "chunks")
        rows = X if is_lazy else np.asarray(X)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} must be a Dask array, a folder of .npy or Parquet blocks, or a matrix of "
                f"numbers; got {type(X).__name__} of {rows.dtype}, {rows.ndim}-d"
            )
        if not rows.size:
            raise ValueError(f"{name} must have rows and columns; got shape {rows.shape}")
        return self._chunks(rows, name) if is_lazy else self._divided(rows, name)

    def _chunks(self, X: Any, name: str) -> VectorBlocks:
        """The chunks of a Dask array, written by the workers that compute them.

        They are computed in every run, and their files are named by their content: the name of a
        Dask array says where its rows come from, but they may have changed since.
        """
        target, delayed = self.part("vectors", "chunks"), dask_module("dask").delayed
        chunks = X.rechunk({1: -1}).to_delayed().ravel()
        left = [delayed(write_chunk, pure=False)(chunk, target) for chunk in chunks]
        return blocks_in([future.result() for future in self.client.compute(left)], name)

    def _divided(self, rows: Array, name: str) -> VectorBlocks:
        """An array in memory, split into blocks by this process."""
        bytes_a_row = max(1, rows.shape[1] * rows.itemsize)
        threads = max(1, sum(self.client.nthreads().values()))
        even = -(-len(rows) // (4 * threads))
        size = max(1, min(even, 2**26 // bytes_a_row))
        target = self.part("vectors", array_mark(rows), size)
        paths = [
            write_block(target / f"{start:012}{WRITTEN}", rows[start : start + size])
            for start in range(0, len(rows), size)
        ]
        return blocks_in(paths, name)

    def labels(self, Y: Csr) -> LabelFile:
        """Write labels to files for the workers."""
        marks = array_mark(Y.indptr), array_mark(Y.indices), Y.shape
        return LabelFile.written(self.part("labels", *marks), Y)

    def joined(self, blocks: VectorBlocks) -> Array:
        """The rows of all blocks as one array: in memory, or mapped if the folder is kept."""
        if not self.is_kept:
            return blocks.read()
        if len(blocks.blocks) == 1:
            return checked(blocks.blocks[0].mapped())
        folder = self.part("joined", data_mark(blocks))
        if not (folder / "rows.tree").exists():
            with alone_in(folder):
                write_rows(self.client, blocks, blocks.dtype, folder, None)
        return mapped_file(folder).checked()


@contextmanager
def working(client: Client | str | None, folder: Folder) -> Iterator[Workspace]:
    """A workspace in the given folder, or in a temporary one on this machine."""
    with connected(client) as own, ExitStack() as stack:
        if folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="nearlabel-")
            path = Path(stack.enter_context(temporary))
        elif not isinstance(folder, str | os.PathLike):
            raise TypeError(f"folder must be a path or None; got {type(folder).__name__}")
        else:
            path = Path(folder).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"cannot be used as a folder: {error.strerror}"
            raise ClusterError(f"folder: {path} {what}") from None
        check_workers(own, path)
        yield Workspace(own, path, is_kept=folder is not None)


@contextmanager
def alone_in(part: Path) -> Iterator[None]:
    """Lock a subfolder, so that runs at the same time do not write to the same files."""
    with (part / ".lock").open("ab", buffering=0) as file:
        try:
            is_alone = try_lock(file)
        except OSError:  # a file system without locks
            is_alone = True
        if not is_alone:
            raise ClusterError(
                f"folder: another run is writing to {part}: wait for its end, or use a different "
                "folder"
            )
        yield


def data_mark(blocks: VectorBlocks) -> list[object]:
    """What identifies the data of blocks: the versions of their files, and their shape.

    The time of modification is not enough: archives set it, often to the same for all versions.
    """
    marks: list[object] = [*blocks.shape]
    for block in blocks.blocks:
        about = Path(block.path).stat()
        version = about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino
        marks.append((block.path, *version))
    return marks


def array_mark(rows: Array) -> tuple[tuple[int, ...], str]:
    """What identifies an array: its shape and a digest."""
    digest = hashlib.sha256(str(rows.dtype).encode())
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        digest.update(np.ascontiguousarray(rows[start : start + _ROWS_AT_ONCE]).data)
    return rows.shape, digest.hexdigest()


def write_chunk(rows: Any, folder: Path) -> Path:
    """Write a chunk of a Dask array as a block; return its path. Runs on workers."""
    rows = np.ascontiguousarray(rows)
    shape, digest = array_mark(rows)
    return write_block(folder / f"{'x'.join(map(str, shape))}-{digest}{WRITTEN}", rows)


def copy_parquet(source: str, path: Path) -> Path:
    """Write the columns of a Parquet file as a block; return its path. Runs on workers."""
    from nearlabel.datasets.frames import import_polars

    if path.exists():
        return path
    frame = import_polars().read_parquet(source, glob=False, hive_partitioning=False)
    return write_block(path, frame.to_numpy())
