"""Few rows: the core computes all distances."""

from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import vectors

import nearlabel as nl
from nearlabel.search.exact import index
from nearlabel.search.exact.index import are_few
from nearlabel.search.exact.row_arithmetic import METRICS, core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core", "few_rows")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


@pytest.fixture(scope="module")
def few_rows():
    """Treat all data as few rows, and make bounds unavailable."""
    with (
        mock.patch.object(index, "_FEW", 2**40),
        mock.patch("nearlabel.search.exact.index.compiled_index", side_effect=AssertionError),
    ):
        yield


@given(data=st.data(), X=vectors(), metric=st.sampled_from(METRICS))
def test_equals_the_oracle(data, X, metric):
    k = data.draw(st.integers(1, len(X) - 1))
    queries = X[: data.draw(st.integers(1, len(X)))] + data.draw(st.sampled_from([0, 0.1]))
    for form in (X, sparse.csr_array(X)):
        for asked in (None, queries):
            graph = nl.neighbor_graph(form, k, asked, metric=metric)
            indices, distances = oracles.neighbors(X, k, asked, metric)
            np.testing.assert_array_equal(graph.indices, indices)
            np.testing.assert_array_equal(graph.distances, distances)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_every_number_of_rows_and_features(metric, dtype):
    rng = np.random.default_rng(0)
    shapes = [(n, 6) for n in range(2, 19)] + [(11, width) for width in (1, 2, 3, 4, 5, 17, 1024)]
    for n, width in shapes:
        X = rng.standard_normal((n, width)).astype(dtype)
        graph = nl.neighbor_graph(X, n - 1, metric=metric)
        indices, distances = oracles.neighbors(X.astype(float), n - 1, None, metric)
        np.testing.assert_array_equal(graph.indices, indices)
        np.testing.assert_array_equal(graph.distances, distances)


def test_progress_ends_at_all():
    told = []
    nl.neighbor_graph(np.eye(5), 2, progress=lambda done, n: told.append((done, n)))
    assert told == [(5, 5)]


def test_a_distance_that_overflows_is_refused():
    with pytest.raises(ValueError, match="float64.*X"):
        nl.neighbor_graph(np.array([[1e200], [-1e200], [0.0]]), 2, metric="sqeuclidean")


def test_what_counts_as_few():
    with mock.patch.object(index, "_FEW", 600):
        assert are_few(np.empty((100, 6)), 1)
        assert not are_few(np.empty((100, 6)), 2)
        assert not are_few(sparse.eye_array(100, format="csr"), 1)


def test_arguments_that_do_not_belong_together():
    base, one = core_rows(np.eye(4), "euclidean"), core_rows(np.ones((1, 4)), "euclidean")
    room = np.empty((1, 2), np.int32), np.empty((1, 2))
    for queries, rows, alone, out, wrong in (
        (one, base, True, room, "queries"),
        (
            core_rows(np.ones((1, 3)), "euclidean"),
            base,
            False,
            room,
            "queries and base must have the same",
        ),
        (
            core_rows(np.ones((1, 4)), "cosine"),
            base,
            False,
            room,
            "queries and base must have the same",
        ),
        (one, base, False, (np.empty((1, 5), np.int32), np.empty((1, 5))), "k must"),
        (one, base, False, (np.empty((1, 0), np.int32), np.empty((1, 0))), "k must"),
        (one, base, False, (room[0], np.empty((2, 2))), "distances"),
        (base, base, True, (np.empty((4, 4), np.int32), np.empty((4, 4))), "k must"),
    ):
        with pytest.raises(ValueError, match=wrong):
            CORE.nearest_rows(queries, rows, alone, *out)
