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
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.file_locks import try_lock
from nearlabel.common.files import replacing
from nearlabel.common.validation import all_finite
from nearlabel.distributed.label_files import LabelFiles
from nearlabel.distributed.vector_blocks import (
    ParquetBlocks,
    VectorBlocks,
    blocks_in,
    check_block,
    check_finite,
    found_blocks,
    write_array,
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

    @property
    def threads(self) -> int:
        """The number of calls that run at the same time."""
        return max(1, int(sum(self.client.nthreads().values())))

    def vectors(self, X: Any, name: str = "X", *, finite: bool = True) -> VectorBlocks:
        """Vectors as blocks in ``.npy`` files: the given files, or new ones written once.

        With `finite`, NaN and infinity are refused.
        """
        if isinstance(X, str | os.PathLike):
            X = found_blocks(Path(X).absolute(), name)
        if not isinstance(X, VectorBlocks):
            blocks = self._written(X, name, finite)
            check_files(self.client, [block.path for block in blocks.blocks], name)
            return blocks
        check_files(self.client, [block.path for block in X.blocks], name)
        if finite and X.dtype.kind == "f":
            checked = self.part("checked", data_mark(X)) / "finite"
            if not checked.exists():  # each version of the files is checked once
                run_calls(self.client, check_block, [(block.path, name) for block in X.blocks])
                checked.touch()
        return X

    def _written(self, X: Any, name: str, finite: bool) -> VectorBlocks:
        """Rows in new files, unless these were written before."""
        if isinstance(X, ParquetBlocks):
            check_files(self.client, [str(path) for path in X.files], name)
            target = self.part("vectors", [file_mark(path) for path in X.files], finite)
            paths = [(str(path), target / f"{i:06}.npy") for i, path in enumerate(X.files)]
            calls = [
                (source, str(path), name, finite) for source, path in paths if not path.exists()
            ]
            run_calls(self.client, copy_parquet, calls)
            return blocks_in([path for _, path in paths], name)
        if hasattr(X, "to_delayed") and hasattr(X, "chunks"):
            return self._chunks(X, name, finite)
        if sparse.issparse(X):
            raise TypeError(
                f"{name} must be dense on a cluster; got a {type(X).__name__}: pass X.toarray(), "
                "or use one process"
            )
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} must be a Dask array, a folder of .npy or Parquet blocks, or a matrix of "
                f"numbers; got {type(X).__name__} of {rows.dtype}, {rows.ndim}-d"
            )
        if not rows.size:
            raise ValueError(f"{name} must have rows and columns; got shape {rows.shape}")
        if finite and rows.dtype.kind == "f" and not all_finite(rows):
            row = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise ValueError(f"{name} contains NaN or infinity in row {row}; impute or remove it")
        return self._divided(rows, name)

    def _chunks(self, X: Any, name: str, finite: bool) -> VectorBlocks:
        """The chunks of a Dask array, written by the workers that compute them.

        They are computed in every run, and their files are named by their content: the name of a
        Dask array says where its rows come from, but they may have changed since.
        """
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must be a 2-d array of numbers; got a Dask array of {X.dtype}, {X.ndim}-d"
            )
        X = X.rechunk({1: -1})
        target = self.part("vectors", "chunks")
        delayed = dask_module("dask").delayed(write_chunk, pure=False)
        left = [
            delayed(part, str(target), name, number, finite)
            for number, part in enumerate(X.to_delayed().ravel())
        ]
        return blocks_in([Path(future.result()) for future in self.client.compute(left)], name)

    def _divided(self, rows: Array, name: str) -> VectorBlocks:
        """An array in memory, split into blocks by this process."""
        bytes_a_row = max(1, rows.shape[1] * rows.itemsize)
        even = -(-len(rows) // (4 * self.threads))
        size = max(1, min(even, 2**26 // bytes_a_row))
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
def working(client: Client | str | None, folder: Folder) -> Iterator[Workspace]:
    """A workspace in the given folder, or in a temporary one on this machine."""
    with connected(client) as own:
        if folder is not None:
            path = _made_folder(folder)
            check_workers(own, path)
            yield Workspace(own, path, True)
            return
        with tempfile.TemporaryDirectory(prefix="nearlabel-") as temporary:
            check_workers(own, Path(temporary))
            yield Workspace(own, Path(temporary), False)


def _made_folder(folder: Folder) -> Path:
    """The given folder, created if it does not exist yet."""
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path or None; got {type(folder).__name__}")
    path = Path(folder).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"folder: {path} cannot be used as a folder: {error.strerror}") from None
    return path


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
    """What identifies the data of blocks: the marks of their files, and their shape."""
    return [[file_mark(Path(block.path)) for block in blocks.blocks], *blocks.shape]


def file_mark(path: Path) -> list[object]:
    """What identifies a version of a file.

    The time of modification is not enough: archives set it, often to the same for all versions.
    """
    about = path.stat()
    return [str(path), about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]


def array_mark(rows: Array) -> tuple[tuple[int, ...], str]:
    """What identifies an array: its shape and a digest."""
    digest = hashlib.sha256(str(rows.dtype).encode())
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        digest.update(np.ascontiguousarray(rows[start : start + _ROWS_AT_ONCE]).data)
    return rows.shape, digest.hexdigest()


def write_chunk(rows: Any, folder: str, name: str, number: int, finite: bool) -> str:
    """Write a chunk of a Dask array as a block; return its path. Runs on workers."""
    rows = np.ascontiguousarray(rows)
    if finite:
        check_finite(rows, name, f"chunk {number} of the Dask array")
    shape, digest = array_mark(rows)
    path = Path(folder) / f"{'x'.join(map(str, shape))}-{digest}.npy"
    if not path.exists():
        write_array(path, rows)
    return str(path)


def copy_parquet(source: str, path: str, name: str, finite: bool) -> None:
    """Write the columns of a Parquet file as a block; runs on workers."""
    from nearlabel.datasets.frames import import_polars

    frame = import_polars().read_parquet(source, glob=False, hive_partitioning=False)
    if finite and any(frame.null_count().row(0)):
        raise ValueError(f"{name} has missing values, in {source}; impute or remove them")
    rows = np.ascontiguousarray(frame.to_numpy())
    if finite:
        check_finite(rows, name, source)
    write_array(path, rows)
