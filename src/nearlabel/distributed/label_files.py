"""Labels of all rows in a memory-mapped file, from which a worker reads only the rows it needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Matrix, Tree, csr_of_known
from nearlabel.common.files import read_stored, write_tree
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.validation import Labels, check_labels, label_matrix
from nearlabel.distributed.vector_blocks import files_in, mapped_rows, same_width
from nearlabel.labels.counts import label_totals

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class LabelFile:
    """Label sets of all rows in a file, which is mapped; `q` is the number of labels."""

    path: Path
    q: int

    @classmethod
    def written(cls, folder: Path, Y: Csr) -> LabelFile:
        """Write labels to a file for the workers."""
        path, starts = folder / "labels.tree", Y.indptr.astype(np.int64)
        if not path.exists():
            write_tree(path, {"starts": starts, "labels": Y.indices, "totals": label_totals(Y)})
        return cls(path, Y.shape[1])

    def totals(self) -> Array:
        """Number of rows with each label, shape (q,)."""
        return checked(_mapped_labels(self.path)["totals"])

    def of(self, rows: Array) -> Csr:
        """The label sets of some rows, in the order given."""
        tree = _mapped_labels(self.path)
        starts, labels = tree["starts"], tree["labels"]
        first = starts[rows]
        sizes = starts[rows + 1] - first
        ends = np.cumsum(sizes)
        place = np.repeat(first - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
        ones = np.ones(len(place), np.int8)
        parts = ones, labels[place], np.concatenate([[0], ends])
        return csr_of_known(*parts, (len(rows), self.q))


@lru_cache(maxsize=1)
def _mapped_labels(path: Path) -> Tree:
    return read_stored(path, mmap=True).tree


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
        labels = read(path)
        if labels.ndim != 2:
            raise ValueError(f"y: {path} must contain a 0/1 matrix; got shape {labels.shape}")
        width = same_width(width, labels.shape[1], path, "y")
        try:
            parts += [label_matrix(labels, "y")] if labels.shape[0] else []
        except ValueError as error:
            raise ValueError(f"y: {path}: {error}") from None
    if not parts:
        raise ValueError(f"y: {folder} has no rows")
    return sparse.vstack(parts, format="csr")


def _read_npy(path: Path) -> Matrix:
    return mapped_rows(path, "y")


def _read_npz(path: Path) -> Matrix:
    try:
        rows = sparse.load_npz(path)
        if hasattr(rows, "check_format"):
            rows.check_format(full_check=True)  # an index outside would be used as it is
    except Exception:  # zipfile, zlib and SciPy raise many kinds
        raise ValueError(f"y: {path} was not written by scipy.sparse.save_npz") from None
    return rows


def _read_parquet(path: Path) -> Matrix:
    from nearlabel.datasets.frames import import_polars

    polars = import_polars()
    try:
        frame = polars.read_parquet(path, glob=False, hive_partitioning=False)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"y: {path} is not a Parquet file: {error}") from None
    return frame.to_numpy()
