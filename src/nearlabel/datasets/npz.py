"""The ``.npz`` format of the data folder: a data set as arrays in one archive, without pickle."""

from __future__ import annotations

import math
import sys
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, csr_of_parts
from nearlabel.common.files import replacing
from nearlabel.common.messages import shown
from nearlabel.common.validation import physical_memory
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset, too_many_labels, unlabeled

_OWN = {"X", "label_names", "feature_names", "train", "row_names"}
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(source: DataFile) -> Dataset:
    """Read the arrays ``X``, or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``;
    ``Y_indices``, ``Y_indptr`` and ``Y_shape``; and optional others.
    """
    with source.path.open("rb") as file:
        try:
            with warnings.catch_warnings(action="ignore"):  # about files written by Python 2
                _check_arrays(file)
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    return _dataset({name: _checked(name, arrays[name]) for name in arrays})
        except KeyError as error:
            reason = f"{error.args[0]!r} is missing"
        except Exception as error:  # zipfile and numpy raise many kinds
            reason = f"{error}" or type(error).__name__
    raise ValueError(f"this is not a data set: {reason}")


def _check_arrays(file: IO[bytes]) -> None:
    """Raise an error for non-arrays, and for compressed arrays larger than the memory."""
    memory, needed = physical_memory(), 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            # With LZMA, a file decides how much memory is used.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("the archive is compressed by another method than deflate")
            with archive.open(member) as array:
                shape, _, dtype = _HEADERS[npy.read_magic(array)](array)
                size = member.file_size - array.tell()
            if dtype.hasobject:
                raise ValueError("object arrays cannot be loaded: they would be unpickled")
            if math.prod(shape) * dtype.itemsize != size or dtype.kind not in "biufU":
                raise ValueError(f"{shown(member.filename)} is not an array of numbers or text")
            needed += _bytes_to_load(shape, dtype)
    if memory is not None and needed > memory:
        raise ValueError(
            f"its arrays would take {needed / 2**30:,.1f} GiB, more than the "
            f"{memory / 2**30:,.1f} GiB of this machine"
        )


def _bytes_to_load(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> int:
    """The most memory that an array takes while it is read and checked."""
    if dtype.kind == "U":  # checked as Python strings, in a list and in a set
        each = 2 * dtype.itemsize + 150
    elif dtype.isnative and dtype.itemsize >= 4:
        each = dtype.itemsize + (1 if dtype.kind == "f" else 4)  # masks; the values of labels
    else:
        each = 2 * dtype.itemsize + 5  # it is converted
    return math.prod(shape) * each


def _checked(name: str, values: Array) -> Array:
    """An array whose strings, if any, consist of valid characters."""
    if values.dtype.kind == "U" and values.nbytes:
        marks = np.ravel(values, "K").view(f"{values.dtype.byteorder}u4")
        if marks.max() > sys.maxunicode:
            raise ValueError(f"{shown(name)} contains invalid characters")
    return values


def _dataset(parts: dict[str, Array]) -> Dataset:
    X = parts["X"] if "X" in parts else _csr(parts, "X", parts["X_data"])
    Y = _csr(parts, "Y", np.ones(len(parts["Y_indices"]), np.int8))
    if not Y.shape[1]:
        Y = unlabeled(Y.shape[0])
    if problem := too_many_labels(Y.shape[1]):
        raise ValueError(problem)
    extra = {
        key: values
        for key, values in parts.items()
        if key not in _OWN and not key.startswith(("X_", "Y_"))
    }
    known: dict[str, Any] = {key: parts.get(key) for key in _OWN - {"X"}}
    return Dataset(X, Y, extra=extra, **known)


def _csr(parts: dict[str, Array], name: str, data: Array) -> Csr:
    indices, indptr, shape = (parts[f"{name}_{key}"] for key in ("indices", "indptr", "shape"))
    if shape.dtype.kind not in "iu":
        raise ValueError(f"{name}_shape must be two integers; got {shape.dtype}")
    rows, columns = shape.tolist()
    try:
        matrix = csr_of_parts(data, indices, indptr, (rows, columns))
        matrix.sum_duplicates()  # in place: these arrays are not shared
        return matrix
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def write_npz(data: Dataset, path: Path) -> None:
    """Write a data set to one compressed archive."""
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
        raise ValueError(f"extra must not use the names of the format's own arrays; got {taken}")
    with replacing(path) as file:
        np.savez_compressed(file, **parts, **data.extra)  # type: ignore[arg-type]
