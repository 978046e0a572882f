"""Labels of all rows in memory-mapped files, from which a worker reads only the rows it needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, csr_of_known
from nearlabel.common.validation import Labels, check_labels, label_matrix
from nearlabel.distributed.vector_blocks import files_in, mapped_file, read_arrays, write_array
from nearlabel.labels.counts import label_totals

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


def read_labels(y: Any, label_names: Any = None, separator: str | None = None) -> Labels:
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
    parts: list[Csr] = []
    for path in files:
        if ending == ".npz":
            try:
                found = [sparse.load_npz(path)]
            except (ValueError, KeyError, OSError):
                raise ValueError(f"y: {path} was not written by scipy.sparse.save_npz") from None
        elif ending == ".parquet":
            from nearlabel.datasets.frames import import_polars

            found = [import_polars().read_parquet(path, glob=False).to_numpy()]
        else:
            rows = mapped_file(path, "y")
            if rows.ndim != 2:
                raise ValueError(f"y: {path} must contain a 0/1 matrix; got shape {rows.shape}")
            steps = range(0, len(rows), _ROWS_AT_ONCE)
            found = [rows[start : start + _ROWS_AT_ONCE] for start in steps]
        for some in found:
            if parts and some.shape[1] != parts[0].shape[1]:
                raise ValueError(
                    f"y: {path} has {some.shape[1]} columns, but the blocks before it have "
                    f"{parts[0].shape[1]}"
                )
            parts.append(label_matrix(some, "y"))
    return sparse.vstack(parts, format="csr")
