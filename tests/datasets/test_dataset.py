import numpy as np
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import Dataset


def test_describe():
    Y = sparse.csr_array([[1, 0, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0]])
    data = Dataset(np.zeros((4, 2)), Y, train=np.array([True, True, False, False]))
    told = nl.datasets.describe(data)
    assert (told.instances, told.features, told.labels) == (4, 2, 3)
    assert (told.cardinality, told.density) == (1.25, 1.25 / 3)
    assert (told.distinct_label_sets, told.without_labels) == (3, 1)
    assert (told.train, told.test, told.other) == (2, 2, 0)
    assert (told.sparse, told.dtype) == (False, "float64")


def test_data_sets_created_by_users(tmp_path):
    Y = sparse.csr_array(([1, 0, 1], [0, 1, 1], [0, 2, 3]), shape=(2, 2))  # a zero is stored
    data = Dataset(np.eye(2), Y, ["a", "b"], row_names=["x", "y"])
    nl.datasets.save(data, tmp_path / "toy.npz")
    again = nl.datasets.load(tmp_path / "toy.npz")
    assert again.Y.toarray().tolist() == [[1, 0], [0, 1]]
    assert again.label_names.tolist() == ["a", "b"]
    assert again.X.flags.writeable
    assert data == data
    assert repr(again.rows(np.arange(0))).startswith("Dataset(0 items, 2 features, 2 labels, 0.00")


def test_parts_of_more_than_one_test():
    part = np.array([0, 0, 1, 2])
    data = Dataset(
        np.zeros((4, 1)), sparse.csr_array((4, 1)), train=part == 0, extra={"part": part}
    )
    assert data.test.tolist() == [False, False, True, False]
    told = nl.datasets.describe(data)
    assert (told.train, told.test, told.other) == (2, 1, 1)
    assert data.rows(data.test).extra["part"].tolist() == [1]
    assert Dataset(data.X, data.Y).test is None
