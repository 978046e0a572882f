"""The ``.npz`` form of the data folder: all of a data set as arrays of one archive, no pickle."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr
from nearlabel.datasets.dataset import Dataset, unlabeled
from nearlabel.datasets.text import DataError
from nearlabel.persistence import replacing
from nearlabel.validation import physical_memory

# What reading a file that is no archive of arrays, or a damaged one, can end in.
_BROKEN = (
    KeyError,
    ValueError,
    IndexError,
    TypeError,
    OSError,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
_OWN = {"X", "label_names", "feature_names", "train", "row_names"}


def read_npz(path: Path) -> Dataset:
    """Read the arrays ``X``, or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``;
    ``Y_indices``, ``Y_indptr`` and ``Y_shape``; and what else is known.
    """
    with path.open("rb") as file:
        try:
            _check_size(path)
            with np.load(file, allow_pickle=False) as parts:
                return _dataset({key: parts[key] for key in parts})
        except _BROKEN as error:
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
            raise DataError(str(path), None, f"this is not a data set: {reason}") from None


def _check_size(path: Path) -> None:
    """Refuse an archive of a few bytes that would unfold to more than the memory."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    memory = physical_memory()
    if memory is not None and size > memory:
        raise ValueError(
            f"its arrays would take {size / 2**30:,.1f} GiB, more than the "
            f"{memory / 2**30:,.1f} GiB of this machine"
        )


def _dataset(parts: dict[str, Array]) -> Dataset:
    X = parts["X"] if "X" in parts else _csr(parts, "X", parts["X_data"])
    Y = _csr(parts, "Y", np.ones(len(parts["Y_indices"]), np.int8))
    if not Y.shape[1]:
        Y = unlabeled(Y.shape[0])
    extra = {
        key: values
        for key, values in parts.items()
        if key not in _OWN and not key.startswith(("X_", "Y_"))
    }
    known = {key: parts.get(key) for key in _OWN - {"X"}}
    return Dataset(X, Y, extra=extra, **known)


def _csr(parts: dict[str, Array], name: str, data: Array) -> Csr:
    """A CSR matrix of the file, checked to the last index: a wrong one would crash later."""
    indices, indptr, shape = (parts[f"{name}_{key}"] for key in ("indices", "indptr", "shape"))
    for key, part in (("indices", indices), ("indptr", indptr), ("shape", shape)):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise ValueError(f"{name}_{key} must be a list of integers; got {part.dtype}")
    rows, columns = (int(size) for size in shape)
    matrix = sparse.csr_array((data, indices, indptr), shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def write_npz(data: Dataset, path: Path) -> None:
    """Write all of a data set to one compressed archive."""
    parts: dict[str, Array] = {}
    for name, matrix in (("X", data.X), ("Y", data.Y)):
        if not sparse.issparse(matrix):
            parts[name] = matrix
            continue
        parts[f"{name}_indices"], parts[f"{name}_indptr"] = matrix.indices, matrix.indptr
        parts[f"{name}_shape"] = np.array(matrix.shape)
        if name == "X":
            parts["X_data"] = matrix.data
    for key in ("label_names", "feature_names", "train", "row_names"):
        if getattr(data, key) is not None:
            parts[key] = getattr(data, key)
    taken = sorted(set(parts) & set(data.extra))
    if taken or any(key.startswith(("X_", "Y_")) for key in data.extra):
        raise ValueError(f"extra must not have the names of the form's own arrays; got {taken}")
    with replacing(path) as file:
        np.savez_compressed(file, **parts, **data.extra)  # type: ignore[arg-type]
