"""The data folder: data sets as files, by name."""

from __future__ import annotations

import os
import re
import sys
import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr
from nearlabel.datasets.dataset import Dataset
from nearlabel.validation import check_same_length, check_vectors, label_matrix

# What reading a file that is no archive of arrays, or a damaged one, can end in.
_BROKEN = (KeyError, ValueError, IndexError, TypeError, OSError, EOFError, BadZipFile, zlib.error)


def data_folders() -> list[Path]:
    """Where data sets are looked for: NEARLABEL_DATA, folders as in PATH, else the user's cache."""
    given = [Path(part) for part in os.environ.get("NEARLABEL_DATA", "").split(os.pathsep) if part]
    if given:
        return given
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return [Path(cache) / "nearlabel"]


def load(name: str) -> Dataset:
    """Read a data set of the data folder.

    Parameters
    ----------
    name : str
        The file is ``NAME.npz``: arrays ``X``, or the parts ``X_data``, ``X_indices``, ``X_indptr``
        and ``X_shape`` of a CSR matrix; ``Y_indices``, ``Y_indptr`` and ``Y_shape`` of the labels;
        and where they are known ``label_names``, ``feature_names`` and the mask ``train``.

    Returns
    -------
    Dataset
    """
    if not isinstance(name, str) or not re.fullmatch(r"(?!\.)[\w.-]+", name):
        raise ValueError(f"name must be of letters, digits, '_', '-' and '.'; got {name!r}")
    folders = data_folders()
    path = next((p for folder in folders if (p := folder / f"{name}.npz").is_file()), None)
    if path is None:
        looked = ", ".join(map(str, folders))
        raise FileNotFoundError(f"no data set {name!r}: {name}.npz is not in {looked}")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
            return _dataset({key: parts[key] for key in parts})
    except _BROKEN as error:
        raise ValueError(f"{path} is not a data set: {error}") from None


def _dataset(parts: dict[str, Array]) -> Dataset:
    Y = label_matrix(_csr(parts, "Y", np.ones(len(parts["Y_indices"]), np.int8)), "Y")
    X = check_vectors(parts["X"] if "X" in parts else _csr(parts, "X", parts["X_data"]), "X")
    check_same_length(X=X.shape[0], Y=Y.shape[0])
    lengths = {"label_names": Y.shape[1], "feature_names": X.shape[1], "train": Y.shape[0]}
    for key, length in lengths.items():
        if key in parts and parts[key].shape != (length,):
            raise ValueError(f"{key} must have the shape ({length},); got {parts[key].shape}")
    train = parts.get("train")
    if train is not None and train.dtype != bool:
        raise ValueError(f"train must be a mask of booleans; got {train.dtype}")
    return Dataset(X, Y, parts.get("label_names"), parts.get("feature_names"), train=train)


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
