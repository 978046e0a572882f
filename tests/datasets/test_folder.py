from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl


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


def test_what_is_missing_broken_or_outside_the_folder(folder):
    with pytest.raises(FileNotFoundError, match="no data set 'toy': toy.npz is not in .*none, "):
        nl.datasets.load("toy")
    np.savez(folder / "toy.npz", X=np.eye(2))
    with pytest.raises(ValueError, match=r"toy.npz is not a data set: .*Y_indices"):
        nl.datasets.load("toy")
    np.savez(folder / "pickle.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="is not a data set: Object arrays cannot be loaded"):
        nl.datasets.load("pickle")
    for name in ("../toy", "/etc/toy", "..", "a/b", ""):
        with pytest.raises(ValueError, match="name must be of letters"):
            nl.datasets.load(name)


def test_the_users_cache_is_the_default(monkeypatch):
    monkeypatch.delenv("NEARLABEL_DATA", raising=False)
    assert [folder.name for folder in nl.datasets.data_folders()] == ["nearlabel"]
