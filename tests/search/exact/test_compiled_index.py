"""The compiled search: equal to NumPy's bit for bit, also if float32 bounds are loose."""

from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, vectors
from twin_graphs import assert_same, by_numpy

import nearlabel as nl
from nearlabel.search.exact import compiled_index as compiled
from nearlabel.search.exact import packed_bounds
from nearlabel.search.exact.index import ExactIndex
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.row_arithmetic import core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]
NO_INTS, NO_FLOATS = np.empty(0, np.int32), np.empty(0)


@pytest.fixture
def searched_again():
    """The number of rows left to NumPy by the core."""
    rows = []
    original = NumpyIndex.fill

    def spy(self, vectors, chosen, *more):
        rows.append(len(chosen))
        return original(self, vectors, chosen, *more)

    with mock.patch.object(NumpyIndex, "fill", spy):
        yield rows


@st.composite
def forms(draw, X):
    """X as an array of some type and layout, or as CSR."""
    kinds = [np.float64, np.float32]
    if X.dtype.kind == "i":
        kinds += [np.int64, np.int32, np.uint8, bool]
    X = X.astype(draw(st.sampled_from(kinds)))
    layout = draw(st.sampled_from(["rows", "columns", "strided", "csr", "csr64"]))
    if layout == "columns":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    if layout.startswith("csr"):
        X = sparse.csr_array(X)
        if layout == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@given(data=st.data(), X=vectors(features=st.integers(1, 40)), metric=st.sampled_from(METRICS))
def test_equals_numpy_in_every_form(data, X, metric):
    X = data.draw(forms(X))
    search = nl.ExactSearch(block_bytes=data.draw(st.sampled_from([4, 64, 2**26])))
    n_jobs = data.draw(st.integers(1, 3))
    k = data.draw(st.integers(1, X.shape[0] - 1))
    options = {"metric": metric, "search": search, "n_jobs": n_jobs}
    dense = data.draw(st.sampled_from([True, False]))
    kept = data.draw(st.sampled_from([0, 2**28]))
    with (
        mock.patch.object(packed_bounds, "_better_dense", return_value=dense),
        mock.patch.object(compiled, "KEPT_BYTES", kept),
    ):
        among = nl.neighbor_graph(X, k, **options)
        asked = nl.neighbor_graph(X, k + 1, X[: data.draw(st.integers(1, 5))], **options)
    assert_same(among, by_numpy(X, k, metric=metric))
    assert_same(asked, by_numpy(X, k + 1, X[: len(asked)], metric=metric))


def far_clusters(rng, count, apart=1e6, n=1100, d=9):
    """Clusters around random centers, and some rows far from all."""
    X = rng.normal(size=(n, d)) + apart * rng.normal(size=(count, d))[rng.integers(0, count, n)]
    X[::40] = 1e3 * apart * rng.normal(size=(len(X[::40]), d))
    return X


HARD = {
    "gaussian": lambda rng: rng.normal(size=(400, 20)),
    "far from the origin": lambda rng: rng.normal(size=(400, 20)) + 1e9,
    "far and close together": lambda rng: 1e-6 * rng.normal(size=(400, 20)) + 3,
    "two far clusters": lambda rng: (
        rng.normal(size=(1100, 5)) + 1e6 * rng.integers(0, 2, (1100, 1))
    ),
    "many far clusters": lambda rng: far_clusters(rng, 40),
    "farther than float64 tells by products": lambda rng: far_clusters(rng, 3, 1e10),
    "nested clusters": lambda rng: far_clusters(rng, 5, 1e4) + far_clusters(rng, 3, 1e9),
    "ties in far clusters": lambda rng: np.round(far_clusters(rng, 4)),
    "one far row": lambda rng: np.vstack([rng.normal(size=(400, 20)), np.full((1, 20), 1e12)]),
    "features of all sizes": lambda rng: (
        rng.normal(size=(400, 20)) * 10.0 ** np.linspace(-6, 9, 20)
    ),
    "few distinct distances": lambda rng: rng.integers(0, 2, (400, 6)).astype(float),
    "all the same": lambda rng: np.full((300, 6), 0.1),
    "every row often": lambda rng: np.repeat(rng.normal(size=(9, 4)), 45, axis=0),
    "rows of zeros": lambda rng: rng.normal(size=(400, 6)) * (np.arange(400) % 3 > 0)[:, None],
    "very small": lambda rng: rng.normal(size=(300, 6)) * 1e-130,
    "too small for float32": lambda rng: (
        rng.normal(size=(300, 6)) * 10.0 ** rng.integers(-90, 1, (300, 1))
    ),
    "very large": lambda rng: rng.normal(size=(300, 6)) * 1e130,
    "too large for the core": lambda rng: rng.normal(size=(300, 6)) * 1e150,
    "too small for the core": lambda rng: rng.normal(size=(300, 6)) * 1e-150,
    "the smallest floats": lambda rng: rng.integers(-4, 5, (300, 5)) * 5e-324,
    "next floats": lambda rng: np.nextafter(1.0, rng.integers(0, 3, (300, 5))),
}


SMALL = nl.ExactSearch(block_bytes=4 * 64 * 64)  # blocks of 64 rows, each with all others


# Rows of either type become float32 bounds alike, and the bounds of squares are those of distances:
# what repeats these is for test-all.
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize(
    ("metric", "dtype"),
    [
        ("euclidean", np.float64),
        *((metric, np.float32) for metric in METRICS if not metric.endswith("euclidean")),
        pytest.param("euclidean", np.float32, marks=pytest.mark.slow),
        pytest.param("sqeuclidean", np.float32, marks=pytest.mark.slow),
        *(
            pytest.param(metric, np.float64, marks=pytest.mark.slow)
            for metric in METRICS
            if metric != "euclidean"
        ),
    ],
)
def test_hard_data(kind, metric, dtype):
    X = HARD[kind](np.random.default_rng(1))
    if dtype == np.float32 and np.abs(X).max() > 1e38:
        pytest.skip("out of the range of float32")
    X = X.astype(dtype)
    thirty = by_numpy(X, 30, metric=metric)
    for k in (1, 30):
        twin = thirty.head(k)
        assert_same(nl.neighbor_graph(X, k, metric=metric), twin)
        assert_same(nl.neighbor_graph(X, k, metric=metric, search=SMALL, n_jobs=2), twin)
        assert_same(nl.neighbor_graph(sparse.csr_array(X), k, metric=metric, n_jobs=2), twin)
    some = X[::17]
    assert_same(nl.neighbor_graph(X, 5, some, metric=metric), by_numpy(X, 5, some, metric=metric))


@examples(60)
@given(data=st.data(), stored=st.sampled_from([0.1, 0.3, 0.6]), signed=st.booleans())
def test_sparse_rows_that_share_nothing_are_at_one_exactly(data, stored, signed):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 12))
    X = rng.choice([1, 0.3, 1e-25, 1e-200], (n, d)) * (rng.random((n, d)) < stored)
    X *= rng.choice([1, -1], (n, d)) if signed else 1
    csr = sparse.csr_array(X)
    csr.data[rng.random(csr.nnz) < 0.1] = 0  # a stored zero is not a shared feature
    X = csr.toarray()
    k = data.draw(st.integers(1, n - 1))
    queries = X[: data.draw(st.integers(1, n))] * 3.3
    for asked in (None, queries):
        indices, distances = oracles.neighbors(X, k, asked, "cosine")
        for form in (csr, X):
            found = nl.neighbor_graph(form, k, asked, metric="cosine", n_jobs=2)
            np.testing.assert_array_equal(found.indices, indices)
            np.testing.assert_array_equal(found.distances, distances)


def test_many_sparse_rows_that_share_nothing_are_not_left_to_numpy():
    X = sparse.random_array((400, 4 * 10**5), density=1e-4, rng=np.random.default_rng(0)).tocsr()
    with mock.patch.object(NumpyIndex, "fill", side_effect=AssertionError):
        found = nl.neighbor_graph(X, 20, metric="cosine", search=nl.ExactSearch(2**20))
    assert_same(found, by_numpy(X, 20, metric="cosine"))
    assert np.mean(found.distances == 1) > 0.5


def test_packed_rows_are_not_kept_beyond_their_limit():
    X = sparse.csr_array(np.eye(20)[np.zeros(60, int)])  # few entries, and better made dense
    X.data[:] = np.arange(60)
    for limit, kept in ((60 * 22 * 4, 3), (60 * 22 * 4 - 1, 2), (20 * 22 * 4 - 1, 0)):
        with mock.patch.object(compiled, "KEPT_BYTES", limit):
            index = nl.ExactSearch(block_bytes=4 * 20**2).build(X)
            assert_same(index.graph(3), by_numpy(X, 3))
            assert len(index.compiled.stripes._kept) == kept


def test_rows_that_float32_cannot_distinguish_are_searched_again(searched_again):
    X = HARD["two far clusters"](np.random.default_rng(0))
    with mock.patch.object(packed_bounds.DenseBounds, "are_vague", return_value=False):
        assert_same(nl.neighbor_graph(X, 3), by_numpy(X, 3))
    given_up, by_twin = searched_again
    assert 0 < given_up <= by_twin == len(X)


def test_clusters_are_seen_from_their_own_centers():
    def centers(X):
        rows = core_rows(X, "euclidean")
        return compiled.compiled_index(X, "euclidean", rows, 2**26)._bounds.centers

    near = np.random.default_rng(0).normal(size=(1500, 9))
    assert centers(far_clusters(np.random.default_rng(0), 2)) is not None
    for X in (near, near + 1e6, np.eye(400)):
        assert centers(X) is None


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("count", [2, 40])
def test_nothing_of_far_clusters_is_left_to_numpy(count, metric):
    rng = np.random.default_rng(0)
    X = 1e6 * rng.normal(size=(count, 9))[rng.integers(0, count, 1100)] + rng.normal(size=(1100, 9))
    with mock.patch.object(NumpyIndex, "fill", side_effect=AssertionError):
        nl.neighbor_graph(X, 5, metric=metric)
        nl.neighbor_graph(X, 5, X[::9] + 0.1, metric=metric)


def test_ties_are_not_searched_again(searched_again):
    rng = np.random.default_rng(0)
    index = ExactIndex(np.zeros((3000, 9)), "euclidean", 2**26)
    np.testing.assert_array_equal(index.graph(3).indices[3:], [[0, 1, 2]] * 2997)
    nl.neighbor_graph(rng.normal(size=(1000, 30)), 5)
    assert not searched_again


def test_queries_far_beyond_the_rows(searched_again):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(200, 4)), rng.normal(size=(5, 4))
    for size, times in ((1e3, 0), (1e30, 1), (1e140, 1)):
        searched_again.clear()
        for form in (X, sparse.csr_array(X)):
            ours = nl.neighbor_graph(form, 4, size * queries)
            assert len(searched_again) == times
            searched_again.clear()
            assert_same(ours, by_numpy(form, 4, size * queries))
            searched_again.clear()


@pytest.mark.parametrize("count", range(1, 10))
def test_each_pair_of_stripes_is_compared_once(count):
    met = []
    found = nl.neighbor_graph(np.eye(count + 1), 1)
    index = nl.ExactSearch(block_bytes=4).build(np.eye(count + 1)[:, :count]).compiled
    with mock.patch.object(compiled.engine, "core") as core:
        core.return_value.Shortlist.return_value.offer = lambda _, *rows: met.append(rows)
        index.fill_among(found, 1, None)
    pairs = [frozenset(rows[:2]) for rows in met if rows[2]]
    assert [rows[:2] for rows in met if not rows[2]] == [(row, row) for row in range(count + 1)]
    assert len(pairs) == len(set(pairs)) == count * (count + 1) // 2
    assert all(len(pair) == 2 for pair in pairs)


def offsets(n):
    return np.zeros(n, np.float32)


def dense(X, metric="euclidean"):
    return CORE.dense_rows(X, metric, NO_INTS, NO_FLOATS)


def test_invalid_rows_are_refused():
    with pytest.raises(ValueError, match="metric"):
        dense(np.zeros((3, 2)), "jaccard")
    with pytest.raises(ValueError, match="values must have contiguous rows"):
        dense(np.zeros((3, 4))[:, ::2])
    with pytest.raises(ValueError, match="exponents and lengths"):
        dense(np.zeros((3, 2)), "cosine")
    columns, values, floats = np.array([0, 1], np.int32), np.ones(2), np.ones(2, np.float32)
    for starts in ([0, 1], [1, 2], [0, 2, 1, 2], [0, 3]):
        with pytest.raises(ValueError, match="starts"):
            CORE.sparse_rows(np.array(starts), columns, values, 2, "euclidean", NO_INTS, NO_FLOATS)
        with pytest.raises(ValueError, match="starts"):
            CORE.Postings(np.array(starts), columns, floats, offsets(len(starts) - 1), 2, 1.0)
    both = np.array([0, 2]), columns, floats
    with pytest.raises(ValueError, match="column"):
        CORE.Postings(*both, offsets(1), 1, 1.0)
    with pytest.raises(ValueError, match="offsets"):
        CORE.Postings(*both, offsets(2), 2, 1.0)
    postings = CORE.Postings(*both, offsets(1), 2, 1.0)
    row = np.array([0, 1]), np.array([5], np.int32), np.ones(1, np.float32)
    with pytest.raises(ValueError, match="column"):
        postings.block(*row, offsets(1), np.zeros((1, 1), np.float32))
    row = np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32)
    for more in ((offsets(2), (1, 1)), (offsets(1), (1, 2)), (offsets(1), (2, 1))):
        with pytest.raises(ValueError, match="block"):
            postings.block(*row, more[0], np.zeros(more[1], np.float32))
    for a, b, block in (((2, 3), (2, 4), (2, 2)), ((2, 1), (2, 1), (2, 2)), ((2, 3),) * 3):
        with pytest.raises(ValueError, match="block"):
            CORE.manhattan_block(*(np.zeros(shape, np.float32) for shape in (a, b, block)))
