"""Far clusters: the core finds the same as NumPy, and leaves little to it."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from twin_graphs import assert_same, by_numpy

import nearlabel as nl
from nearlabel.search.exact.compiled_index import compiled_index
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.row_arithmetic import core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def clusters(count, sizes=1e6, n=1100, d=9, outliers=0):
    rng = np.random.default_rng(0)
    centers = sizes * rng.normal(size=(count, d))
    X = rng.normal(size=(n, d)) + centers[rng.integers(0, count, n)]
    X[:outliers] = 1e9 * rng.normal(size=(outliers, d))
    return X


FAR = {
    "two clusters": clusters(2),
    "many clusters": clusters(40),
    "farther than float64 tells by products": clusters(3, 1e10),
    "nested": clusters(5, 1e4) + clusters(3, 1e9),
    "with outliers": clusters(4, outliers=30),
    "one far row": clusters(1, outliers=1),
    "with rows of zeros": clusters(3) * (np.arange(1100) % 5 > 0)[:, None] + 0.0,
    "with ties": np.round(clusters(4)),
}


@pytest.mark.parametrize(
    "metric",
    ["euclidean", pytest.param("sqeuclidean", marks=pytest.mark.slow), "cosine", "manhattan"],
)
@pytest.mark.parametrize("kind", FAR)
def test_as_numpy(kind, metric):
    X = FAR[kind]
    rng = np.random.default_rng(1)
    queries = np.vstack([X[::40] + 0.1, rng.normal(size=(20, X.shape[1]))])
    twin, its = by_numpy(X, 5, metric=metric), by_numpy(X, 30, queries, metric=metric)
    for search in (nl.ExactSearch(), nl.ExactSearch(block_bytes=4 * 64 * 64)):
        assert_same(nl.neighbor_graph(X, 5, metric=metric, search=search, n_jobs=2), twin)
        assert_same(nl.neighbor_graph(X, 30, queries, metric=metric, search=search), its)


def test_clusters_are_seen_from_their_own_centers():
    def centers(X):
        return compiled_index(X, "euclidean", core_rows(X, "euclidean"), 2**26)._bounds.centers

    assert centers(FAR["two clusters"]) is not None
    near = np.random.default_rng(0).normal(size=(1500, 9))
    for X in (near, near + 1e6, np.eye(400)):
        assert centers(X) is None


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["two clusters", "many clusters"])
def test_nothing_is_left_to_numpy(kind, metric):
    X = FAR[kind]
    with mock.patch.object(NumpyIndex, "fill", side_effect=AssertionError):
        nl.neighbor_graph(X, 5, metric=metric)
        nl.neighbor_graph(X, 5, X[::9] + 0.1, metric=metric)
