"""Base rows with a query within their limit: compared with all distances, and invalid input."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from nearlabel.search.exact.reaching import Reach, all_reached, measured, scaled_limits
from nearlabel.search.exact.row_arithmetic import core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]


@examples(40)
@given(data=st.data(), metric=st.sampled_from(METRICS), n=st.sampled_from([1, 31, 32, 70]))
def test_blocks_of_bounds_against_all_distances(data, metric, n):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X, queries = rng.integers(-3, 4, (n, 3)).astype(float), rng.normal(size=(5, 3))
    distances = np.array([[oracles.distance(a, b, metric) for b in X] for a in queries])
    limits = rng.choice([-np.inf, 0, 0.5, 1.0, 3.0, np.inf], n)
    limits = np.where(rng.random(n) < 0.3, distances[0], limits)
    scaled = scaled_limits(limits, metric, 1.0)
    reach = Reach(limits, np.float64, scaled)
    rows, base = core_rows(queries, metric), core_rows(X, metric)
    # The best bounds there are: in float32, never above the distance.
    exact = distances * distances if metric == "euclidean" else distances
    bounds = np.nextafter(exact.astype(np.float32), np.float32(-np.inf))
    first = data.draw(st.integers(0, n))
    chosen = np.array([4, 0, 2], np.int32)
    pairs = []
    for start, stop in ((0, first), (first, n)):
        pairs += reach.near_pairs(np.ascontiguousarray(bounds[chosen, start:stop]), chosen, start)
    is_done = np.array([True, True, True, True, data.draw(st.booleans())])
    reach.of(np.array([10, 11, 12, 13, 14])).measure(rows, base, pairs, is_done)
    query, row, distance = reach.pairs()
    expected = [
        (10 + i, j, distances[i, j])
        for i in (0, 2, 4)
        for j in range(n)
        if is_done[i] and distances[i, j] < limits[j]
    ]
    assert list(zip(query.tolist(), row.tolist(), distance.tolist(), strict=True)) == expected
    everyone = all_reached(rows, base, limits)
    within = np.nonzero(distances < limits)
    np.testing.assert_array_equal((everyone.new, everyone.row), within)
    np.testing.assert_array_equal(everyone.distance, distances[within])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1.0, 2.0**-40, 2.0**90])
def test_scaled_limits_are_above_all_that_is_within(metric, scale):
    limits = np.array([1e-45, 1e-20, 0.1, 1 / 3, 1.0, 7.7, 1e30, 3e38, np.inf], np.float32)
    scaled = scaled_limits(limits, metric, scale)
    assert scaled.dtype == np.float32
    below = np.nextafter(limits.astype(float) * (1 + 2.0**-24), 0)  # is rounded to the limit
    with np.errstate(over="ignore"):
        below = (below * below if metric == "euclidean" else below) * scale
    assert (scaled >= below).all()
    assert (scaled > 0).all()
    nothing = scaled_limits(np.array([0.0, -1.0, -np.inf]), metric, scale)
    np.testing.assert_array_equal(nothing, np.full(3, -np.inf))
    apart = scaled_limits(np.array([0.5, 1.0, 1.1]), "cosine", 1.0, marks_apart=True)
    assert apart[1] < 8 < apart[2] == np.inf


def measure(n=4, **changes):
    rows = core_rows(np.arange(2.0 * n).reshape(n, 2), "euclidean")
    if "shape" in changes:  # rows with a different width or metric
        changes["queries"] = core_rows(np.ones(changes.pop("shape")), changes.pop("metric"))
    given = {
        "queries": rows,
        "asked": np.array([0, n - 1, n - 1, 0], np.int32),
        "rows": np.array([0, 0, n - 1, 1], np.int32),
        "distances": np.empty(4),
    } | changes
    rows.measure(**given)
    return given["distances"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"shape": (4, 3), "metric": "euclidean"}, "queries"),
        ({"shape": (4, 2), "metric": "manhattan"}, "queries"),
        ({"asked": np.array([0], np.int32)}, "asked"),
        ({"distances": np.empty(3)}, "distances"),
        ({"asked": np.array([0, 1, 4, 0], np.int32)}, "asked"),
        ({"asked": np.array([0, 1, -1, 0], np.int32)}, "asked"),
        ({"rows": np.array([0, 1, 4, 0], np.int32)}, "rows"),
        ({"rows": np.array([0, -1, 1, 0], np.int32)}, "rows"),
    ],
)
def test_inconsistent_input_is_refused(changes, error):
    np.testing.assert_array_equal(measure(), np.array([0, 72, 0, 8]) ** 0.5)
    with pytest.raises(ValueError, match=error):
        measure(**changes)


def test_no_pairs_are_measured():
    rows = core_rows(np.ones((3, 2)), "euclidean")
    assert not len(measured(rows, rows, np.empty(0, np.int32), np.empty(0, np.int32)))


def test_nan_is_within_no_limit():
    reach = Reach(np.ones(4), np.float64, np.ones(4, np.float32))
    assert not reach.near_pairs(np.full((2, 3), np.nan, np.float32), np.arange(2), 1)
    unlimited = Reach(np.ones(4), np.float64, np.full(4, np.nan, np.float32))
    assert not unlimited.near_pairs(np.zeros((2, 3), np.float32), np.arange(2), 1)
