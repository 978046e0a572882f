"""How fast are files read, and with how much memory, compared with other libraries?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import arff
import numpy as np
from measuring import core_seconds, peak_mib, report
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import nearlabel as nl

QUESTION = "Reading data sets: core-seconds, and peak memory including the result"


def made(n: int, d: int, q: int, density: float) -> nl.datasets.Dataset:
    """Numbers with six digits; a CSR matrix if most are zero."""
    rng = np.random.default_rng(0)
    Y = nl.datasets.make_local_labels(n, 4, q).Y
    if density == 1:
        return nl.datasets.Dataset(rng.normal(size=(n, d)).round(6), Y)
    X = sparse.random_array((n, d), density=density, format="csr", random_state=rng)
    X.data = X.data.round(6)
    return nl.datasets.Dataset(sparse.csr_array(X), Y)


def liac(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        is_sparse = "{0,1}\n@data\n{" in file.read()
        file.seek(0)
        return arff.load(file, return_type=arff.LOD if is_sparse else arff.DENSE)


def svmlight(path: Path) -> Any:
    with path.open("rb") as file:
        file.readline()
        return load_svmlight_file(file, multilabel=True, zero_based=True)


def peak_of(path: Path) -> float:
    """Memory to read a file, in a new process."""
    return peak_mib(lambda: nl.datasets.load(path))


def size_mib(data: nl.datasets.Dataset) -> float:
    def size(matrix: Any) -> int:
        if not sparse.issparse(matrix):
            return int(matrix.nbytes)
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)

    return (size(data.X) + size(data.Y)) / 2**20


def main() -> None:
    dense, few = made(5000, 300, 20, 1), made(20_000, 5000, 200, 0.01)
    cases: list[tuple[str, nl.datasets.Dataset, Callable[[Path], Any] | None, str]] = [
        ("dense.arff", dense, liac, "liac-arff"),
        ("sparse.arff", few, liac, "liac-arff"),
        ("sparse.txt", few, svmlight, "scikit-learn, compiled"),
        ("dense.csv", dense, None, ""),
        ("sparse.jsonl", few, None, ""),
        ("dense.npz", dense, None, ""),
        ("sparse.npz", few, None, ""),
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, data, peer, peer_name in cases:
            path = Path(folder) / name
            nl.datasets.save(data, path)
            ours = core_seconds(lambda: nl.datasets.load(path), 3)  # noqa: B023
            theirs = None if peer is None else core_seconds(lambda: peer(path), 1)  # noqa: B023
            with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                peak = fresh.submit(peak_of, path).result()
            rows.append(
                {
                    "file": name,
                    "mib": round(path.stat().st_size / 2**20, 1),
                    "returned_mib": round(size_mib(data), 1),
                    "nearlabel_peak_mib": round(peak, 1),
                    "nearlabel": round(ours, 2),
                    "peer": None if theirs is None else round(theirs, 2),
                    "times_faster": None if theirs is None else round(theirs / ours, 1),
                    "peer_name": peer_name or None,
                }
            )
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
