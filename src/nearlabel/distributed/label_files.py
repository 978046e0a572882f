"""Labels of all rows in memory-mapped files, from which a worker reads only the rows it needs."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Matrix, csr_of_known
from nearlabel.common.validation import Labels, check_labels, label_matrix
from nearlabel.distributed.vector_blocks import files_in, mapped_file, read_arrays, write_array
from nearlabel.labels.counts import label_totals

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROWS_AT_ONCE = 2**14  # converted to sparse together


@dataclass(frozen=True)
class LabelFiles:
    """Label sets of all rows in files; `q` is the number of labels."""

    folder: str
    q: int

    @classmethod
    def written(cls, folder: Path, Y: Csr) -> LabelFiles:
        """Write labels to files for the workers."""
        write_array(folder / "starts.npy", Y.indptr.astype(np.int64))
        write_array(folder / "labels.npy", Y.indices)
        write_array(folder / "totals.npy", label_totals(Y))
        return cls(str(folder), Y.shape[1])

    def totals(self) -> Array:
        """Number of rows with each label, shape (q,)."""
        return read_arrays(Path(self.folder) / "totals.npy", 1)[0]

    def of(self, rows: Array) -> Csr:
        """The label sets of some rows, in the order given."""
        starts, labels = (
            np.load(Path(self.folder) / name, mmap_mode="r")
            for name in ("starts.npy", "labels.npy")
        )
        first, sizes = starts[rows], starts[rows + 1] - starts[rows]
        ends = np.cumsum(sizes)
        place = np.repeat(first - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
        ones = np.ones(len(place), np.int8)
        parts = ones, labels[place], np.concatenate([[0], ends])
        return csr_of_known(*parts, (len(rows), self.q))


def read_labels(
    y: Any, label_names: Iterable[object] | None = None, separator: str | None = None
) -> Labels:
    """Read labels in any form that `fit` accepts, a Dask array of 0 and 1, or a folder of blocks.

    Blocks are ``.npy`` or Parquet files of 0 and 1, or ``.npz`` files written by
    `scipy.sparse.save_npz`.
    """
    if isinstance(y, str | os.PathLike):
        y = _from_folder(Path(y).absolute())
    elif hasattr(y, "to_delayed") and hasattr(y, "chunks") and y.ndim == 2:
        parts = [label_matrix(part.compute(), "y") for part in y.rechunk({1: -1}).blocks.ravel()]
        y = sparse.vstack(parts, format="csr")
    elif hasattr(y, "to_delayed") and hasattr(y, "compute"):
        y = y.compute()
    return check_labels(y, label_names, separator)


def _from_folder(folder: Path) -> Csr:
    files, ending = files_in(folder, "y")
    read = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}[ending]
    parts: list[Csr] = []
    width = None
    for path in files:
        for start, labels in read(path):
            if labels.ndim != 2:
                raise ValueError(f"y: {path} must contain a 0/1 matrix; got shape {labels.shape}")
            if width not in (None, labels.shape[1]):
                raise ValueError(
                    f"y: {path} has {labels.shape[1]} columns, but the blocks before it have "
                    f"{width}"
                )
            width = labels.shape[1]
            if not labels.shape[0]:
                continue
            try:
                parts.append(label_matrix(labels, "y"))
            except ValueError as error:
                where = f"{path}, from row {start}" if start else path
                raise ValueError(f"y: {where}: {error}") from None
    if not parts:
        raise ValueError(f"y: {folder} has no rows")
    return sparse.vstack(parts, format="csr")


def _read_npy(path: Path) -> Iterator[tuple[int, Matrix]]:
    """Some rows of a block at a time, each with the number of its first row in the block."""
    rows = mapped_file(path, "y")
    for start in range(0, max(1, len(rows) if rows.ndim else 0), _ROWS_AT_ONCE):
        yield start, rows[start : start + _ROWS_AT_ONCE] if rows.ndim else rows


def _read_npz(path: Path) -> Iterator[tuple[int, Matrix]]:
    try:
        rows = sparse.load_npz(path)
        if hasattr(rows, "check_format"):
            rows.check_format(full_check=True)  # an index outside would be used as it is
    except (
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
    ):
        raise ValueError(f"y: {path} was not written by scipy.sparse.save_npz") from None
    yield 0, rows


def _read_parquet(path: Path) -> Iterator[tuple[int, Matrix]]:
    from nearlabel.datasets.frames import import_polars

    polars = import_polars()
    try:
        frame = polars.read_parquet(path, glob=False, hive_partitioning=False)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"y: {path} is not a Parquet file: {error}") from None
    yield 0, frame.to_numpy()
