"""A fit by blocks equals a fit: the same tables, and the same predictions bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl

METHODS = {
    "MLkNN": lambda: nl.MLkNN(),
    "MLkNN, even counts": lambda: nl.MLkNN(counts="even", metric="cosine"),
    "DMLkNN": lambda: nl.DMLkNN(),
    "MallowskNN": lambda: nl.MallowskNN(),
    "BRkNN": lambda: nl.BRkNN(fill="cardinality"),
    "PositivekNN": lambda: nl.PositivekNN(random_state=0),
    "MLCWkNN": lambda: nl.MLCWkNN(),
    "LAMLkNN": lambda: nl.LAMLkNN(random_state=0),
    "IBLR": lambda: nl.IBLR(),
    "LabelThresholds": lambda: nl.LabelThresholds(nl.MLkNN()),
}


def assert_same(found, expected, queries):
    np.testing.assert_array_equal(
        found.label_scores(queries).toarray(), expected.label_scores(queries).toarray()
    )
    assert (found.predict(queries) != expected.predict(queries)).sum() == 0
    np.testing.assert_array_equal(found.rank(queries).labels, expected.rank(queries).labels)


@pytest.mark.parametrize(
    "name",
    [name if name == "MLkNN" else pytest.param(name, marks=pytest.mark.slow) for name in METHODS],
)
def test_every_method_is_fitted_as_in_one_process(client, items, folder_of, tmp_path, name):
    make = METHODS[name]
    found = nl.distributed.fit(
        make(), folder_of(items.X), items.Y, client, folder=tmp_path / "work"
    )
    expected = make().fit(items.X, items.Y)
    assert_same(found, expected, items.X[:50] + 0.01)
    if isinstance(found, nl.MLkNN):
        np.testing.assert_array_equal(found._counted.with_label, expected._counted.with_label)
        np.testing.assert_array_equal(found._counted.without_label, expected._counted.without_label)
    found.save(tmp_path / "a.model")
    assert_same(nl.load(tmp_path / "a.model"), expected, items.X[:5])


def test_labels_in_blocks_and_a_temporary_folder(client, items, folder_of, tmp_path):
    labels = tmp_path / "Y"
    labels.mkdir()
    for number, block in enumerate(np.split(items.Y.toarray(), (300, 301))):
        sparse.save_npz(labels / f"{number}.npz", sparse.csr_matrix(block))
    found = nl.distributed.fit(nl.MLkNN(5), folder_of(items.X), labels, client, ids=range(1, 701))
    assert_same(found, nl.MLkNN(5).fit(items.X, items.Y), items.X[:20])
    assert found.ids_[0] == 1
    found.forget([1])  # an ordinary model, which can be updated
    assert_same(found, nl.MLkNN(5).fit(items.X[1:], items.Y[1:]), items.X[:20])


def test_parquet_files(client, items, tmp_path):
    polars = pytest.importorskip("polars")
    for name, rows in (("X", items.X), ("Y", items.Y.toarray())):
        (tmp_path / name).mkdir()
        for number, part in enumerate(np.split(rows, (300,))):
            polars.DataFrame(part).write_parquet(tmp_path / name / f"{number}.parquet")
    found = nl.distributed.fit(nl.MLkNN(5), tmp_path / "X", tmp_path / "Y", client)
    assert_same(found, nl.MLkNN(5).fit(items.X, items.Y), items.X[:20])
    frame = polars.DataFrame([[1.0, None], *([0.0, 0.0] for _ in range(5))], orient="col")
    frame.write_parquet(tmp_path / "X" / "2.parquet")
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 701; impute"):
        nl.distributed.fit(nl.MLkNN(5), tmp_path / "X", tmp_path / "Y", client)


def test_estimators_without_a_graph_are_refused(client, items, folder_of):
    with pytest.raises(TypeError, match="such as MLkNN.*; got BalancedkNN, which cannot be fitted"):
        nl.distributed.fit(nl.BalancedkNN(), items.X, items.Y, client)
    with pytest.raises(ValueError, match="X has 700, y has 699"):
        nl.distributed.fit(nl.MLkNN(), items.X, items.Y[1:], client)
    X = items.X.copy()
    X[200, 3] = np.nan
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 200, in .*block 2.npy"):
        nl.distributed.fit(nl.MLkNN(), folder_of(X), items.Y, client)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MLkNN", "PositivekNN"])
def test_by_lists(client, folder_of, tmp_path, name):
    data = nl.datasets.make_local_labels(33_000, 10, 10, random_state=0)
    X, how = data.X.astype(np.float32), {"search": nl.InvertedLists(recall=0.9)}
    rows, make = folder_of(X, (9_000, 9_500, 21_000)), METHODS[name]
    model, expected = make().set_params(**how), make().set_params(**how).fit(X, data.Y)
    found = nl.distributed.fit(model, rows, data.Y, client, folder=tmp_path / "work")
    assert found.search_recall_ == expected.search_recall_
    assert_same(found, expected, X[:50] + 0.01)
