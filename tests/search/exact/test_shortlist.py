"""Shortlists: compared with literal versions, and invalid input."""

from contextlib import suppress
from itertools import pairwise

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples

from nearlabel.search.exact.row_arithmetic import core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]
NO_INTS, NO_FLOATS = np.empty(0, np.int32), np.empty(0)


def dense(X, metric="euclidean"):
    return CORE.dense_rows(X, metric, NO_INTS, NO_FLOATS)


def ints(*shape):
    return np.zeros(shape, np.int32)


def floats(*shape):
    return np.zeros(shape, np.float32)


class Guarded:
    """Output rows and distances, between others that must not change."""

    def __init__(self, shape, kind):
        n, k = shape
        self._rows = np.full((n + 4, k), -7, np.int32)
        self._distances = np.full((n + 4, k), -7, kind)
        self.rows, self.distances = self._rows[2:-2], self._distances[2:-2]

    def check(self, names):
        """Check that nothing else was written, and that outputs are valid names or unchanged."""
        for array in (self._rows, self._distances):
            assert (array[:2] == -7).all()
            assert (array[-2:] == -7).all()
        assert np.isin(self.rows, [*names, -7]).all()


# Blocks of chosen queries


def shortlist(base, queries=None, **changes):
    queries = base if queries is None else queries
    options = {
        "queries": queries,
        "base": base,
        "k": 2,
        "room": 4,
        "query_errors": floats(len(queries)),
        "base_errors": floats(len(base)),
        "scale": 1.0,
        "itself": -1,
        "starts": [0],
        "names": NO_INTS,
    }
    return CORE.Shortlist(**{**options, **changes})


# Places of blocks of three rows that are not within six: query, row, and whether both ways.
OUTSIDE = [(-1, 0, False), (4, 0, False), (0, 4, False), (0, -1, True), (1, 0, False)]
OUTSIDE += [(0, 0, True), (0, 2, True)]


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 0},
        {"k": 6},
        {"room": 1},
        {"room": 2},
        {"starts": []},
        {"relative": -0.1},
        {"relative": np.nan},
        {"starts": [1, 3]},
        {"starts": [0, 4, 2]},
        {"query_errors": floats(5)},
        {"base_errors": floats(7)},
        {"itself": 1},
        {"itself": -2},
        {"queries": dense(np.zeros((6, 3))), "itself": -1},
        {"queries": dense(np.zeros((6, 2)), "manhattan"), "itself": -1},
    ],
)
def test_a_shortlist_of_inconsistent_parts_is_refused(changes):
    with pytest.raises(ValueError, match=rf"\b({'|'.join(changes)}|errors)\b"):
        shortlist(dense(np.zeros((6, 2))), **{"itself": 0, "starts": [0, 3], **changes})


def test_blocks_outside_the_rows_are_refused():
    lists = shortlist(dense(np.zeros((6, 2))), itself=0, starts=[0, 3])
    block = floats(3, 3)
    for query, row, both in OUTSIDE:
        with pytest.raises(ValueError, match="block"):
            lists.offer(block, query, row, both)
    for changed in (block.astype(np.float64), block[:, ::2]):
        with pytest.raises(TypeError):
            lists.offer(changed, 0, 0, False)  # would be a copy
    found = ints(3, 2), np.zeros((3, 2))
    with pytest.raises(ValueError, match="query.*too few"):
        lists.finish(0, *found)
    for query, rows, distances in (
        (4, *found),
        (0, found[0][:, :1].copy(), found[1]),
        (0, found[0], found[1][:2]),
    ):
        with pytest.raises(ValueError, match="rows and distances"):
            lists.finish(query, rows, distances)
    with pytest.raises(ValueError, match="result"):
        lists.given_up(np.zeros(5, bool))


def test_nan_errors_are_refused():
    lists = shortlist(dense(np.zeros((6, 2))), base_errors=floats(6) + np.float32(np.nan))
    lists.offer(floats(3, 6), 0, 0, False)
    with pytest.raises(ValueError, match="NaN|too few"):
        lists.finish(0, ints(3, 2), np.zeros((3, 2)))


@examples(80)
@given(data=st.data(), metric=st.sampled_from(METRICS), among=st.booleans(), named=st.booleans())
def test_blocks_of_chosen_queries_against_the_literal_version(data, metric, among, named):
    """Each query is offered parts of the base in any order, with bounds that may be loose.

    Its k nearest are those by (distance, name) of all that it was offered.
    """
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, k = data.draw(st.sampled_from([3, 12, 90])), data.draw(st.sampled_from([1, 2, 7]))
    k = min(k, n - 1)
    X = rng.integers(-2, 3, (n, 3)) * 0.7
    first = int(rng.integers(0, n))
    queries = X[first:] if among else X[:5] + 0.25
    itself = first if among else -1
    names = rng.permutation(n).astype(np.int32) if named else NO_INTS
    room = min(2 * k + data.draw(st.sampled_from([1, 16])), n - among)
    error = np.float32(data.draw(st.sampled_from([1e-4, 3.0, 1e6])))  # of the bounds
    lists = shortlist(
        core_rows(X, metric),
        core_rows(queries, metric),
        k=k,
        room=room,
        itself=itself,
        query_errors=np.full(len(queries), error),
        base_errors=np.full(n, error),
        names=names,
    )
    distances = np.array([[oracles.distance(x, y, metric) for y in X] for x in queries])
    bounds = (distances**2 if metric == "euclidean" else distances) - 2 * error * rng.random()
    bounds = (bounds - 1e-5).astype(np.float32)

    ends = np.unique(np.concatenate([[0, n], rng.integers(0, n + 1, 3)]))
    parts = [slice(a, b) for a, b in pairwise(ends)]
    offered = rng.random((len(queries), len(parts))) < data.draw(st.sampled_from([0.5, 1.0]))
    known = np.zeros((len(queries), n), bool)
    for number in rng.permutation(len(parts)):
        some = np.flatnonzero(offered[:, number]).astype(np.int32)
        rng.shuffle(some)
        known[some, parts[number]] = True
        block = np.ascontiguousarray(bounds[some, parts[number]])
        lists.offer_to(block, some, int(parts[number].start))
    if among:
        known[np.arange(len(queries)), first + np.arange(len(queries))] = False

    rows, found = np.empty((len(queries), k), np.int32), np.empty((len(queries), k))
    if known.sum(axis=1).min() < k:
        with pytest.raises(ValueError, match="query.*too few"):
            lists.finish(0, rows, found)
        return
    lists.finish(0, rows, found)
    given_up = np.empty(len(queries), bool)
    lists.given_up(given_up)
    tie = names if named else np.arange(n)
    for query in np.flatnonzero(~given_up):
        candidates = np.flatnonzero(known[query])
        order = np.lexsort((tie[candidates], distances[query, candidates]))[:k]
        np.testing.assert_array_equal(rows[query], candidates[order])
        np.testing.assert_array_equal(found[query], distances[query, candidates[order]])
    assert not given_up.any() or error > 1


def test_blocks_of_unknown_queries_are_refused():
    lists = shortlist(dense(np.zeros((6, 2))))
    block, chosen = floats(3, 4), np.array([0, 2, 5], np.int32)
    for row in (-1, 3, 6, 2**62, -(2**62)):
        with pytest.raises(ValueError, match="block.*base rows"):
            lists.offer_to(block, chosen, row)
    for bad in (-1, 6, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="chosen"):
            lists.offer_to(block, np.array([0, bad, 1], np.int32), 0)
    for wrong in (chosen[:2].copy(), ints(4), ints(0)):
        with pytest.raises(ValueError, match="chosen.*block"):
            lists.offer_to(block, wrong, 0)
    with pytest.raises(ValueError, match="block.*base rows"):
        lists.offer_to(floats(3, 7), chosen, 0)
    with pytest.raises(ValueError, match="block.*starts.*stripe"):
        shortlist(dense(np.zeros((6, 2))), starts=[0, 5]).offer_to(block, chosen, 0)
    for changed in ((block.astype(np.float64), chosen), (block, chosen.astype(np.int64))):
        with pytest.raises(TypeError):
            lists.offer_to(*changed, 0)
    for changed in ((block[:, ::2], chosen), (block, ints(6)[::2]), (block.T, ints(4))):
        with pytest.raises((TypeError, ValueError)):
            lists.offer_to(*changed, 0)
    for empty in ((floats(0, 4), ints(0)), (floats(3, 0), chosen)):
        lists.offer_to(*empty, 0)
    with pytest.raises(ValueError, match="query.*too few"):
        lists.finish(0, ints(6, 2), np.zeros((6, 2)))


def test_names_must_be_one_per_row_or_none():
    for count in (1, 5, 7):
        with pytest.raises(ValueError, match="names"):
            shortlist(dense(np.zeros((6, 2))), names=ints(count))
    with pytest.raises(TypeError):
        shortlist(dense(np.zeros((6, 2))), names=np.zeros(6, np.int64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_invalid_blocks_are_safe(value):
    """Pairs offered twice, NaN bounds or rows: only an error or a wrong result."""
    rng = np.random.default_rng(0)
    n, k = 300, 60
    for kind in (np.float64, np.float32):
        for share in (0.02, 0.3, 1.0):
            X = rng.normal(size=(n, 3))
            with np.errstate(over="ignore"):
                X[rng.random((n, 3)) < share] = value
                X = X.astype(kind)
            for bad_bounds in (False, True):
                lists = shortlist(dense(X), k=k, room=k + 9, names=ints(n), itself=0)
                block = rng.random((n, n)).astype(np.float32)
                with np.errstate(over="ignore"):
                    block[rng.random((n, n)) < share * bad_bounds] = np.float32(value)
                chosen = rng.integers(0, n, n).astype(np.int32)  # some of them twice
                written = Guarded((n, k), np.float64)
                with suppress(ValueError):
                    lists.offer_to(block, np.arange(n, dtype=np.int32), 0)
                    lists.offer_to(block, chosen, 0)
                    lists.finish(0, written.rows, written.distances)
                written.check(range(n))
                given_up = np.empty(n, bool)
                lists.given_up(given_up)
                # Rows that are given up are reported, and nothing is written for them.
                assert (written.rows[given_up] == -7).all()


def test_nan_rows_come_last():
    """Sorting unordered values would read outside of the list."""
    rng = np.random.default_rng(0)
    for share in (0.05, 0.3, 0.6):
        for n in (30, 200):
            X = rng.normal(size=(n, 1))
            X[rng.random(n) < share] = np.nan
            good = np.flatnonzero(~np.isnan(X[:, 0]))
            queries = dense(np.zeros((1, 1)))
            for k in (len(good), n - 1):
                few = shortlist(dense(X), queries, k=k, room=n, query_errors=floats(1) + 9)
                few.offer_to(floats(1, n), ints(1), 0)
                rows, distances = ints(1, k), np.zeros((1, k))
                if k > len(good):
                    with pytest.raises(ValueError, match="float64.*X"):
                        few.finish(0, rows, distances)
                    continue
                few.finish(0, rows, distances)
                order = good[np.argsort(np.abs(X[good, 0]), kind="stable")]
                np.testing.assert_array_equal(rows[0], order[:k])


# Lists that are written by ranks


def written(X, query, k, room=None, **changes):
    """The k nearest rows of one query, which was offered all of them without bounds."""
    base = dense(X)
    room = room or len(X)
    lists = shortlist(base, dense(query), k=k, room=room, query_errors=floats(1) + 9, **changes)
    lists.offer_to(floats(1, len(X)) - 1, ints(1), 0)
    rows, distances = ints(1, k), np.zeros((1, k))
    lists.finish(0, rows, distances)
    return rows[0], distances[0]


@examples(200)
@given(
    data=st.data(),
    n=st.sampled_from([2, 3, 40, 255, 256, 257, 400]),
    values=st.sampled_from([2, 30, 10**6]),
    named=st.booleans(),
)
def test_ranks_equal_sorting(data, n, values, named):
    """Ties inside, at and across the k-th place, and more rows than are ranked by counting."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.integers(0, values, (n, 1)) * 1.0
    k = data.draw(st.sampled_from([1, max(1, n // 2), n - 1, n]))
    names = rng.permutation(n).astype(np.int32) if named else NO_INTS
    rows, distances = written(X, np.zeros((1, 1)), k, names=names)
    order = np.lexsort((names if named else np.arange(n), X[:, 0]))[:k]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(distances, X[order, 0])


@pytest.mark.parametrize("n", [6, 255, 300])
@pytest.mark.parametrize("infinite", [1, 2, 5])
def test_infinite_distances_are_refused_only_among_the_nearest(n, infinite):
    X = np.arange(1.0, n + 1)[:, None]
    X[:infinite] = 1e200  # its square is beyond float64
    query = np.zeros((1, 1))
    rows, distances = written(X, query, n - infinite)
    np.testing.assert_array_equal(rows, np.arange(infinite, n))
    np.testing.assert_array_equal(distances, X[infinite:, 0])
    for k in range(n - infinite + 1, n + 1):
        with pytest.raises(ValueError, match="float64.*X"):
            written(X, query, k)


def test_limits_leave_fewer_than_k():
    X = np.arange(30.0)[:, None]
    lists = shortlist(
        *(dense(X), dense(np.zeros((3, 1)))),
        k=5,
        room=20,
        limits=np.array([4.0, -np.inf, np.inf], np.float32),
    )
    lists.offer_to(np.tile(X.T**2, (3, 1)).astype(np.float32), np.arange(3, dtype=np.int32), 0)
    rows, distances = ints(3, 5) - 7, np.zeros((3, 5))
    lists.finish(0, rows, distances)
    np.testing.assert_array_equal(rows, [[0, 1, 2, -1, -1], [-7] * 5, [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(distances[0], [0, 1, 2, np.inf, np.inf])
    for wrong in (floats(2), floats(4), np.full(3, np.nan, np.float32)):
        with pytest.raises(ValueError, match="limits"):
            shortlist(dense(X), dense(np.zeros((3, 1))), limits=wrong)


# Bytes


def as_bytes(X, metric="euclidean"):
    """Rows as bytes, and the same as queries."""
    chosen, errors = np.arange(len(X), dtype=np.int32), floats(len(X))
    center = np.zeros(X.shape[1])
    rows = CORE.ByteRows(core_rows(X, metric), chosen, center, 1.0, 0.1, 1e-6, 1e-30, errors)
    return rows, rows.as_queries(-2.0)


def byte_lists(X, queries=None, **changes):
    """Lists for bytes, with errors that cover any bound."""
    queries = X if queries is None else queries
    errors = {"query_errors": floats(len(queries)) + 99, "base_errors": floats(len(X)) + 99}
    return shortlist(
        core_rows(X, "euclidean"),
        core_rows(queries, "euclidean"),
        **{**errors, "refined": True, **changes},
    )


def test_blocks_of_bytes_outside_the_rows_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 5))
    lists = byte_lists(X, starts=[0, 3], itself=0)
    base, queries = as_bytes(X[:3])
    huge = [(0, 2**62, False), (-(2**62), 0, False), (2**62, 0, True)]
    for query, row, both in OUTSIDE + huge:
        with pytest.raises(ValueError, match="block"):
            lists.offer_bytes(queries, base, query, row, both)
    with pytest.raises(ValueError, match="block.*starts"):
        lists.offer_bytes_to(as_bytes(X)[1], base, ints(3), 0)
    alone = byte_lists(X, X[:3])
    with pytest.raises(ValueError, match="block"):  # both sides need rows of one set
        alone.offer_bytes(queries, base, 0, 3, True)
    with pytest.raises(ValueError, match="block"):
        alone.offer_bytes(as_bytes(X)[1], base, 0, 0, False)
    with pytest.raises(ValueError, match="block"):
        alone.offer_bytes(queries, as_bytes(np.vstack([X, X]))[0], 0, 0, False)


@pytest.mark.parametrize("width", [1, 4, 9, 40])
def test_bytes_of_another_width_are_refused(width):
    X = np.random.default_rng(0).normal(size=(6, 5))
    other = np.random.default_rng(0).normal(size=(6, width))
    lists, (base, queries) = byte_lists(X), as_bytes(X)
    for rows, columns in (
        (as_bytes(other)[1], base),
        (queries, as_bytes(other)[0]),
        as_bytes(other)[::-1],
    ):
        with pytest.raises(ValueError, match="width"):
            lists.offer_bytes(rows, columns, 0, 0, False)
        with pytest.raises(ValueError, match="width"):
            lists.offer_bytes_to(rows, columns, ints(1), 0)


def test_bytes_for_unknown_queries_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 5))
    lists, (base, queries) = byte_lists(X), as_bytes(X)
    for bad in (-1, 6, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="chosen"):
            lists.offer_bytes_to(queries, base, np.array([0, bad, 1], np.int32), 0)
    for row in (-1, 1, 6, 2**62, -(2**62)):
        with pytest.raises(ValueError, match="block.*base rows"):
            lists.offer_bytes_to(queries, base, ints(1), row)
    with pytest.raises(ValueError, match="rows must be all queries"):
        lists.offer_bytes_to(as_bytes(X[:5])[1], base, ints(1), 0)
    for wrong in (
        (queries, base, np.zeros(1, np.int64), 0),
        (queries, base, ints(2)[::2], 0.5),
        (base, queries, ints(1), 0),
        (None, base, ints(1), 0),
        (floats(6, 5), base, ints(1), 0),
    ):
        with pytest.raises(TypeError):
            lists.offer_bytes_to(*wrong)
    lists.offer_bytes_to(queries, base, ints(0), 0)
    lists.offer_bytes_to(queries, base[:0], ints(1), 6)
    lists.offer_bytes(queries, base[:0], 0, 0, False)
    with pytest.raises(ValueError, match="query.*too few"):
        lists.finish(0, ints(6, 2), np.zeros((6, 2)))


def test_bytes_need_refined_bounds_of_dense_rows():
    X = np.random.default_rng(0).normal(size=(6, 5))
    base, queries = as_bytes(X)
    with pytest.raises(ValueError, match="refined"):
        byte_lists(X, refined=False).offer_bytes(queries, base, 0, 0, False)
    for rows in (core_rows(sparse.csr_array(X), "euclidean"), core_rows(X, "manhattan")):
        lists = shortlist(rows, refined=True)
        with pytest.raises(ValueError, match="bytes need dense rows"):
            lists.offer_bytes(queries, base, 0, 0, False)


@examples(60)
@given(data=st.data(), n=st.sampled_from([5, 63, 64, 65, 300]), both=st.booleans())
def test_blocks_of_bytes_against_the_literal_version(data, n, both):
    """Rows of one set, in stripes of any size, or chosen queries in any order."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.integers(-3, 4, (n, 6)) * 0.5
    k = int(rng.integers(1, min(n - 1, 9)))
    room = min(k + 9, n - both)
    chosen = np.arange(n, dtype=np.int32)
    errors, center = floats(n), np.zeros(6)
    base = CORE.ByteRows(dense(X), chosen, center, 1.0, 0.01, 1e-6, 1e-30, errors)
    how = {"k": k, "room": room, "query_errors": errors, "base_errors": errors}
    if both:
        step = CORE.PANEL_ROWS * data.draw(st.integers(1, 3))
        starts = list(range(0, n, step))
        lists = shortlist(dense(X), **how, itself=0, starts=starts, refined=True)
        for number, first in enumerate(starts):
            mine = base[first : min(first + step, n)]
            lists.offer_bytes(mine.as_queries(-2.0), mine, first, first, False)
            for other in starts[number + 1 :]:
                theirs = base[other : min(other + step, n)]
                lists.offer_bytes(mine.as_queries(-2.0), theirs, first, other, True)
    else:
        lists = shortlist(dense(X), **how, refined=True)
        for some in (chosen[::2].copy(), rng.permutation(chosen[1::2])):
            lists.offer_bytes_to(base.as_queries(-2.0), base, some, 0)
    rows, found = ints(n, k), np.zeros((n, k))
    lists.finish(0, rows, found)
    given_up = np.empty(n, bool)
    lists.given_up(given_up)
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    for query in np.flatnonzero(~given_up):
        candidates = np.delete(np.arange(n), query) if both else np.arange(n)
        order = candidates[np.lexsort((candidates, distances[query, candidates]))[:k]]
        np.testing.assert_array_equal(rows[query], order)
        np.testing.assert_array_equal(found[query], distances[query, order])
    assert not given_up.any() or n == 300
