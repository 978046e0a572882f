import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import DataError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", os.pathsep.join([str(tmp_path / "none"), str(tmp_path)]))
    return tmp_path


def parts_of(matrix, name):
    csr = sparse.csr_array(matrix)
    return {
        f"{name}_data": csr.data,
        f"{name}_indices": csr.indices,
        f"{name}_indptr": csr.indptr,
        f"{name}_shape": np.array(csr.shape),
    }


@pytest.mark.parametrize("is_sparse", [False, True])
def test_load(folder, is_sparse):
    X, Y = np.eye(3, 4), np.array([[1, 0], [0, 0], [1, 1]])
    labels = parts_of(Y, "Y")
    del labels["Y_data"]
    features = parts_of(X, "X") if is_sparse else {"X": X}
    train, names = np.array([True, True, False]), np.array(["a", "b"])
    np.savez(folder / "toy.npz", **features, **labels, train=train, label_names=names)
    data = nl.datasets.load("toy")
    np.testing.assert_array_equal(data.X.toarray() if is_sparse else data.X, X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)
    assert data.train.tolist() == [True, True, False]
    assert data.label_names.tolist() == ["a", "b"]
    assert data.feature_names is None


def test_broken_archives(folder):
    np.savez(folder / "toy.npz", X=np.eye(2))
    with pytest.raises(DataError, match=r"toy.npz: .*'Y_.*missing"):
        nl.datasets.load("toy")
    np.savez(folder / "pickle.npz", X=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="pickle.npz: .*object arrays cannot be loaded"):
        nl.datasets.load("pickle")


GOOD = {
    "X": np.arange(12.0).reshape(6, 2),
    "Y_indices": np.array([0, 1, 2, 0, 1, 2]),
    "Y_indptr": np.array([0, 1, 2, 3, 4, 5, 6]),
    "Y_shape": np.array([6, 3]),
}
SPARSE = {
    "X_data": np.ones(3),
    "X_indices": np.array([0, 1, 0]),
    "X_indptr": np.array([0, 1, 2, 3, 3, 3, 3]),
    "X_shape": np.array([6, 2]),
}

TWO_ROWS = {
    "Y_indices": np.array([0, 1]),
    "Y_indptr": np.array([0, 1, 2]),
    "Y_shape": np.array([2, 2]),
}


@pytest.mark.parametrize(
    "damage",
    [
        {"Y_indptr": np.array([0, -(2**30), 1, 2, 3, 4, 6])},
        {"Y_indptr": np.array([0, 2**30, 1, 2, 3, 4, 6])},
        {"Y_indptr": np.array([0, 5, 1, 2, 3, 4, 6])},
        {"Y_indptr": np.array([0.0, 1, 2, 3, 4, 5, 6])},
        {"Y_indices": np.array([0, 1, 2, 0, 1, 99])},
        {"Y_indices": np.array([0, 1, 2, 0, 1, -1])},
        {"Y_indices": np.array([0, 1, 2, 0, 1, 2.5])},
        {"Y_indices": np.array(3)},
        {"Y_shape": np.array([6.0, 3.0])},
        {"Y_shape": np.array([6, 3, 1])},
        {"X": np.zeros((5, 2))},
        {"X": np.zeros(6)},
        {"X": np.full((6, 2), np.nan)},
        {"X": np.full((6, 2), "a")},
        {"train": np.ones(5, bool)},
        {"train": np.ones(6, int)},
        {"label_names": np.array(["a", "b", "a"])},
        {"label_names": np.array([1, 2, 3])},
        {"row_names": np.array(["a"])},
        {"bag": np.ones(5, int)},
        {"label_names": np.array(["a", "b"])},
        {"feature_names": np.array(["a", "b", "c"])},
        {"X": None, **SPARSE, "X_indices": np.array([0, 1, 99])},
        {"X": None, **SPARSE, "X_indices": np.array([0, 1, -1])},
        {"X": None, **SPARSE, "X_indptr": np.array([0, -(2**30), 2, 3, 3, 3, 3])},
    ],
    ids=lambda damage: "-".join(damage),
)
def test_a_damaged_file_is_refused_with_its_name(folder, damage):
    parts = {key: value for key, value in {**GOOD, **damage}.items() if value is not None}
    np.savez(folder / "toy.npz", **parts)
    with pytest.raises(DataError, match="toy.npz: .*not a data set"):
        nl.datasets.load("toy")


def test_files_that_are_not_archives(folder):
    np.savez(folder / "whole.npz", **GOOD)
    whole = (folder / "whole.npz").read_bytes()
    assert nl.datasets.load("whole").Y.nnz == 6
    np.save(folder / "array.npy", np.eye(2))
    array = (folder / "array.npy").read_bytes()
    for content in (b"", b"text", whole[:-40], whole[: len(whole) // 2], array):
        (folder / "toy.npz").write_bytes(content)
        with pytest.raises(DataError, match="toy.npz: .*not a data set"):
            nl.datasets.load("toy")


def test_an_archive_packed_by_another_method(folder):
    with zipfile.ZipFile(folder / "toy.npz", "w", zipfile.ZIP_LZMA) as archive:
        for name, values in GOOD.items():
            content = io.BytesIO()
            np.save(content, values)
            archive.writestr(f"{name}.npy", content.getvalue())
    with pytest.raises(DataError, match="toy.npz: .*archive"):
        nl.datasets.load("toy")


def test_an_archive_that_unfolds_to_more_than_the_memory(folder, monkeypatch):
    np.savez_compressed(folder / "toy.npz", **GOOD, bag=np.zeros((6, 100_000)))
    assert nl.datasets.load("toy").extra["bag"].shape == (6, 100_000)
    monkeypatch.setattr("nearlabel.datasets.npz.physical_memory", lambda: 2**20)
    with pytest.raises(DataError, match=r"toy.npz.* 0.0 GiB"):
        nl.datasets.load("toy")


N = 20_000
LABELS = {
    "Y_indices": np.arange(3 * N) % 50,
    "Y_indptr": np.arange(0, 3 * N + 1, 3),
    "Y_shape": np.array([N, 50]),
}
NAMED = {"row_names": np.array([f"row {row}" for row in range(N)])}
BACKWARDS = {  # features in descending order have to be sorted
    "X_data": np.ones(4 * N),
    "X_indices": np.tile([9, 7, 3, 0], N),
    "X_indptr": np.arange(0, 4 * N + 1, 4),
    "X_shape": np.array([N, 10]),
}
NUMBERS = np.arange(20 * N).reshape(N, 20) % 7


@pytest.mark.parametrize(
    "parts",
    [
        *({"X": NUMBERS.astype(kind)} for kind in ("f8", "f4", "f2", ">f8", "i4", "i1", "?")),
        {"X": np.asfortranarray(NUMBERS.astype("f8"))},
        BACKWARDS,
        {"X": np.ones((N, 1)), **NAMED},
        {"X": np.ones((N, 1)), "row_names": np.array(["x" * 90, *"ab"]).repeat(N)[:N]},
        {"X": np.ones((2, N)), "feature_names": NAMED["row_names"], **TWO_ROWS},
    ],
    ids=["f8", "f4", "f2", ">f8", "i4", "i1", "bool", "fortran", "csr", "rows", "wide", "features"],
)
def test_the_guard_counts_what_loading_takes(folder, monkeypatch, parts):
    """A file is refused by a machine with less memory than loading takes, not by a larger one."""
    np.savez(folder / "toy.npz", **{**LABELS, **parts})
    nl.datasets.load("toy")
    tracemalloc.start()
    nl.datasets.load("toy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    monkeypatch.setattr("nearlabel.datasets.npz.physical_memory", lambda: peak - 2**18)
    with pytest.raises(DataError, match="toy.npz.* GiB"):
        nl.datasets.load("toy")
    monkeypatch.setattr("nearlabel.datasets.npz.physical_memory", lambda: 3 * peak)
    nl.datasets.load("toy")
