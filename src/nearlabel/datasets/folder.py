"""The data folder: data sets as files, by name."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.datasets.dataset import Dataset
from nearlabel.validation import canonical_vectors, label_matrix


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
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise ValueError(f"name must be of letters, digits, '_', '-' and '.'; got {name!r}")
    folders = data_folders()
    path = next((p for folder in folders if (p := folder / f"{name}.npz").is_file()), None)
    if path is None:
        looked = ", ".join(map(str, folders))
        raise FileNotFoundError(f"no data set {name!r}: {name}.npz is not in {looked}")
    with np.load(path, allow_pickle=False) as parts:
        try:
            return _dataset(parts)
        except (KeyError, ValueError, IndexError) as error:
            raise ValueError(f"{path} is not a data set: {error}") from None


def _dataset(parts: Any) -> Dataset:
    if "X" in parts:
        X = parts["X"]
    else:
        entries = parts["X_data"], parts["X_indices"], parts["X_indptr"]
        X = canonical_vectors(sparse.csr_array(entries, shape=tuple(parts["X_shape"])))
    ones = np.ones(len(parts["Y_indices"]), np.int8)
    entries = ones, parts["Y_indices"], parts["Y_indptr"]
    Y = label_matrix(sparse.csr_array(entries, shape=tuple(parts["Y_shape"])), "Y")
    return Dataset(
        X, Y, parts.get("label_names"), parts.get("feature_names"), train=parts.get("train")
    )
