"""Bounds from bytes hold in exact fractions, and graphs found with them are those of NumPy."""

from unittest import mock

import numpy as np
import pytest
from exact_bounds import block_of, climb, closest, packed
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from twin_graphs import assert_same, by_numpy, bytes_wanted

from nearlabel.graph import NeighborGraph
from nearlabel.search.exact import byte_bounds
from nearlabel.search.exact.byte_bounds import ByteBounds
from nearlabel.search.exact.distances import space
from nearlabel.search.exact.index import ExactSearch
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.packed_bounds import bounds_for
from nearlabel.search.exact.row_arithmetic import core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
UNIT = 2.0**-24


SCALES = [1.0, 1e-137, 1e-45, 1e-30, 1e19, 1e100]
SHARES = [1e-6, 0.007, 0.5, None]  # None: the usual ratio of the rows themselves


def from_bytes(base, metric, share):
    """Bounds of base rows, or None if these cannot have any."""
    sharper = bounds_for(base, metric)
    if sharper is None:
        return None
    if share is None:
        sample = np.arange(len(base), dtype=np.int32)
        share = byte_bounds._usual_ratio(sharper, core_rows(base, metric), sample)
    return ByteBounds(sharper, share)


def check_by_climbing(seed, metric, width, scale, offset, share, effort):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(4, width)) + offset) * scale
    if rng.random() < 0.2:
        rows[int(rng.integers(4))] = 0
    if rng.random() < 0.2:  # a query far beyond the base rows
        rows[0] *= 2.0 ** int(rng.integers(30, 60))

    def bounds_of(base):
        return from_bytes(base, metric, share)

    steps = effort * (10 + 300 // width)
    found, queries, base = climb(bounds_of, rows[:2], rows[2:], metric, rng, steps)
    assert found >= 0
    if bounds_of(base) is not None:
        assert found == closest(bounds_of(base), queries, base, metric)


climbs = given(
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(["euclidean", "cosine"]),
    width=st.one_of(st.integers(1, 9), st.integers(1, 130)),
    scale=st.sampled_from(SCALES),
    offset=st.sampled_from([0.0, 1.0, 1e7]),
    share=st.sampled_from(SHARES),
)


@examples(150)  # the thorough profile tries more of them
@climbs
def test_hill_climbing_finds_no_bound_that_fails(seed, metric, width, scale, offset, share):
    check_by_climbing(seed, metric, width, scale, offset, share, 1)


def test_hill_climbing_finds_bounds_that_fail():
    """Where errors are a little too small, or what rounding leaves is not considered."""
    rng = np.random.default_rng(0)
    rows = np.random.default_rng(1).normal(size=(4, 5))

    class Bolder(ByteBounds):
        def pack(self, *arguments):
            packed, errors = super().pack(*arguments)
            return packed, errors * np.float32(0.75)

    for kind in (ByteBounds, Bolder):
        found, *_ = climb(
            lambda base, kind=kind: kind(bounds_for(base, "euclidean"), 0.007),
            *(rows[:2], rows[2:], "euclidean", rng, 400),
        )
        assert (found < 0) == (kind is Bolder)


def nearly_tied(rng, n, width, scale, kind):
    """A query, and rows around it: their distances differ by the rounding of sums, or not at all.

    The differences are the same for all rows, but for their order and, at times, the last digit.
    """
    apart = rng.normal(size=width) * rng.choice([1.0, 1e-3, 1e-6], width)
    rows = rng.permuted(np.tile(apart, (n, 1)), axis=1) * rng.choice([-1, 1], (n, width))
    query = rng.integers(-2, 3, (1, width)) * rng.choice([0.0, 1.0])
    base = ((query + rows) * scale).astype(kind)
    some = rng.random((n, width)) < 1 / (4 * width)
    base[some] = np.nextafter(base[some], kind(np.inf))
    return base, (query * scale).astype(kind)


@examples(200)
@given(
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(["euclidean", "sqeuclidean", "cosine"]),
    width=st.integers(1, 130),
    scale=st.sampled_from([1.0, 1e-40, 1e-30, 1e-22, 3e-20, 1e18, 1e19, 1e30]),
    kind=st.sampled_from([np.float32, np.float64]),
    k=st.sampled_from([1, 3, 20]),
)
def test_refined_bounds_lose_no_neighbor(seed, metric, width, scale, kind, k):
    """Lists overflow with rows that rough distances can hardly tell from each other."""
    rng = np.random.default_rng(seed)
    base, query = nearly_tied(rng, 150, width, scale, kind)
    queries = np.vstack([query, base[:7], base[:2] * kind(0.5)])
    with bytes_wanted():
        index = ExactSearch().build(base, metric)
        found, asked = index.graph(k), index.graph(k, queries)
    assert_same(found, by_numpy(base, k, metric=metric))
    assert_same(asked, by_numpy(base, k, queries, metric=metric))


@pytest.mark.parametrize("scale", [1.4e18, 1.7e18, 2e18, 2.4e18])
def test_rough_distances_that_overflow(scale):
    """Those of the nearest rows do not, which must not be displaced by the others."""
    X = (scale * np.random.default_rng(0).normal(size=(500, 64))).astype(np.float32)
    with bytes_wanted():
        found = ExactSearch().build(X, "euclidean").graph(5)
    assert_same(found, by_numpy(X, 5))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (5, 63, 7), (13, 130, 100), (7, 64, 129)])
def test_blocks_equal_numpy(metric, m, n, d):
    """Whole numbers of a scale per row, their products, and offsets, as the formulas say."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    sharper = bounds_for(X, metric)
    bounds = ByteBounds(sharper, 0.01)

    def rounded(rows):
        if metric == "cosine":
            rows = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
        rows = (rows - sharper.center) * sharper.unit
        scales = (np.abs(rows).max(axis=1, keepdims=True) / 127).astype(np.float32)
        kept = np.rint(rows / np.where(scales > 0, scales, 1).astype(np.float64)) * scales
        margin = 0.01 * (kept**2).sum(axis=1) + (1 + 100) * ((rows - kept) ** 2).sum(axis=1)
        return kept, (rows**2).sum(axis=1), margin

    (a, a_size, a_margin), (b, b_size, b_margin) = rounded(queries), rounded(X)
    expected = (a_size - a_margin)[:, None] + b_size - b_margin - 2 * a @ b.T
    half = 0.5 if metric == "cosine" else 1
    base, errors = packed(bounds, X, metric)
    assert len(base) == n
    size = float((a_size[:, None] + b_size).max())
    np.testing.assert_allclose(
        block_of(bounds, packed(bounds, queries, metric)[0], base),
        half * expected,
        atol=64 * UNIT * size,
    )
    np.testing.assert_allclose(errors, half * 2 * (b_margin + byte_bounds._TINY), rtol=1e-3)


def twin(X, k, queries, metric):
    """The graph of NumPy, without a check of X."""
    asked = X if queries is None else queries
    shape = len(asked), k
    graph = NeighborGraph.unchecked(np.empty(shape, np.int32), np.empty(shape), len(X))
    by_blocks = NumpyIndex(space(X, metric), 2**24)
    by_blocks.fill(asked, np.arange(len(asked)), graph, queries is None, 1, None)
    return graph


def awkward(n=1500, d=24):
    """Data on which bounds from bytes are tight, loose or useless, by name."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    heavy = rng.standard_cauchy((n, d))
    return {
        "Gaussian": X,
        "single precision": X.astype(np.float32),
        "heavy tails": heavy,
        "one large feature": X * np.where(np.arange(d) == 0, 1e4, 1.0),
        "two far clusters": X + 1e6 * (np.arange(n) % 2)[:, None],
        "ties": rng.integers(0, 2, (n, d)).astype(np.float64),
        "duplicates": X[np.arange(n) % (n // 3)],
        "zero rows": X * (np.arange(n) % 5 > 0)[:, None],
        "tiny": X * 1e-30,
    }


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("data", awkward())
@pytest.mark.parametrize("k", [1, 6])
def test_graphs_found_with_bytes_equal_numpy(data, metric, k):
    """However loose the bounds: they are used although a sample would advise against them."""
    X = awkward()[data]
    queries = np.vstack([X[:40] * 1.01, X[-40:], -X[:20]]).astype(X.dtype)
    used = []
    real = ByteBounds.offer

    def seen(self, *arguments):
        used.append(self)
        real(self, *arguments)

    with bytes_wanted(), mock.patch.object(ByteBounds, "offer", seen):
        index = ExactSearch().build(X, metric)
        found = index.graph(k, n_jobs=2), index.graph(k, queries, n_jobs=2)
    if data not in ("duplicates", "zero rows"):  # equal rows are searched once
        assert used
    for graph, asked in zip(found, (None, queries), strict=True):
        assert_same(graph, twin(X, k, asked, metric))


def test_a_sample_decides_where_bytes_pay():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50))
    far = X + 1e3 * (np.arange(2000) % 2)[:, None]
    for rows, pays in ((X, True), (far, False), (X[:, :8], False), (X[:500], False)):
        found = byte_bounds.byte_bounds(bounds_for(rows, "euclidean"), core_rows(rows, "euclidean"))
        assert (found is not None) == pays


def test_near_rows_decide_where_those_of_a_list_are_compared():
    """Clusters that bytes can tell from each other, but whose own rows they cannot."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(20, 50))
    X = np.repeat(centers, 500, axis=0) + 1e-3 * rng.normal(size=(10_000, 50))
    bounds, rows = bounds_for(X, "euclidean"), core_rows(X, "euclidean")
    assert byte_bounds.byte_bounds(bounds, rows, byte_bounds.side_by_side(len(X))) is None


def test_sums_of_the_widest_rows_do_not_overflow():
    """Rows of equal signs, whose codes are as large as they can be; wider ones are refused."""
    width = byte_bounds.MOST_FEATURES
    X = np.random.default_rng(0).choice(np.float32([-1, 1]), (4, width + 1))
    X = np.vstack([X, X, -X])
    widest = X[:, :width].copy()
    bounds = ByteBounds(bounds_for(widest, "cosine"), 0.007)
    base, errors = packed(bounds, widest, "cosine")
    block = block_of(bounds, base, base)
    apart = 1 - widest @ widest.T / width
    assert (block <= apart).all()
    assert (apart <= block + errors[:, None] + errors).all()
    with pytest.raises(ValueError, match="features"):
        packed(ByteBounds(bounds_for(X, "cosine"), 0.007), X, "cosine")
    with bytes_wanted():
        for base in (X, widest):
            rows = np.tile(base, (3, 1))
            found = byte_bounds.byte_bounds(bounds_for(rows, "cosine"), core_rows(rows, "cosine"))
            assert (found is not None) == (base is widest)


def test_packed_rows_take_a_byte_per_feature():
    X = np.random.default_rng(0).normal(size=(640, 128))
    sharper = bounds_for(X, "euclidean")
    bounds = ByteBounds(sharper, 0.01)
    base, _ = packed(bounds, X, "euclidean")
    assert base.nbytes == 640 * (8 + 128)
    assert 3 * base.nbytes < packed(sharper, X, "euclidean")[0].nbytes


def test_invalid_arguments_are_refused():
    X = np.ones((70, 4))
    bounds = ByteBounds(bounds_for(X, "euclidean"), 0.01)
    rows, errors = core_rows(X, "euclidean"), np.empty(1, np.float32)
    good = {
        "rows": rows,
        "chosen": np.zeros(1, np.int32),
        "center": np.zeros(4),
        "unit": 1.0,
        "share": 0.1,
        "slack": 0.0,
        "tiny": 0.0,
        "errors": errors,
    }
    for changes, message in (
        ({"chosen": np.array([70], np.int32)}, "chosen"),
        ({"center": np.zeros(3)}, "center"),
        ({"share": 0.0}, "share"),
        ({"errors": np.empty(2, np.float32)}, "errors"),
        ({"chosen": np.array([-1], np.int32)}, "chosen"),
        ({"share": -1.0}, "share"),
        ({"share": np.nan}, "share"),
        ({"rows": core_rows(X, "manhattan")}, "metric"),
    ):
        with pytest.raises(ValueError, match=message):
            CORE.ByteRows(**{**good, **changes})
    base, _ = packed(bounds, X, "euclidean")
    with pytest.raises(ValueError, match="start"):
        base[3:9]
    with pytest.raises(ValueError, match="some"):
        bounds.as_queries(base)[np.array([70], np.int32)]
    with pytest.raises(ValueError, match="block"):
        base.block(bounds.as_queries(base), np.empty((70, 3), np.float32))
