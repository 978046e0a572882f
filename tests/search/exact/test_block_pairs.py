"""Neighbors between two blocks, merged block by block, equal those of all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearlabel as nl
from nearlabel.search.exact.block_pairs import merged_lists, neighbors_between

pytestmark = [pytest.mark.kernels, pytest.mark.engines]
METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")


def by_blocks(X, cuts, k, metric):
    """The graph of X, from pairs of the blocks between `cuts`."""
    blocks = [slice(*ends) for ends in zip((0, *cuts), (*cuts, len(X)), strict=True)]
    lists = []
    for block in blocks:
        rows = X[block]
        found = np.full((len(rows), k), -1, np.int32), np.full((len(rows), k), np.inf)
        if len(rows) > 1:
            near = nl.neighbor_graph(rows, min(k, len(rows) - 1), metric=metric, search="exact")
            found = merged_lists(*found, near.indices, near.distances, block.start)
        lists.append(found)
    for a in range(len(blocks)):
        for b in range(a + 1, len(blocks)):
            first, start = len(lists[a][0]), blocks[b].start - len(lists[a][0])
            both = np.concatenate([X[blocks[a]], X[blocks[b]]])
            limits = np.concatenate([lists[a][1][:, -1], lists[b][1][:, -1]])
            width = min(k, len(both) - 1)
            near, far = neighbors_between(both, first, metric, width, limits)
            lists[a] = merged_lists(*lists[a], near[:first], far[:first], start)
            lists[b] = merged_lists(*lists[b], near[first:], far[first:], blocks[a].start)
    return [np.concatenate(part) for part in zip(*lists, strict=True)]


@given(
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(METRICS),
    kind=st.sampled_from(["normal", "ties", "far clusters", "copies"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    cuts=st.sets(st.integers(1, 119), min_size=1, max_size=4),
    k=st.integers(1, 40),
)
def test_pairs_of_blocks_give_the_graph_of_all_rows(seed, metric, kind, dtype, cuts, k):
    rng = np.random.default_rng(seed)
    X = {
        "normal": rng.normal(size=(120, 9)),
        "ties": rng.integers(0, 2, (120, 9)),
        "far clusters": rng.normal(size=(120, 9)) + 1e6 * (np.arange(120) % 2)[:, None],
        "copies": np.repeat(rng.normal(size=(30, 9)), 4, axis=0),
    }[kind].astype(dtype)
    indices, distances = by_blocks(X, sorted(cuts), k, metric)
    expected = nl.neighbor_graph(X, k, metric=metric, search="exact")
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(distances, expected.distances)


def test_rows_without_a_search_and_rows_with_a_limit():
    X = np.array([[0.0], [10.0], [1.0], [2.0], [3.0]])
    limits = np.array([2.0, np.inf, -1.0, -1.0, -1.0])
    places, distances = neighbors_between(X, 2, "euclidean", 3, limits)
    assert places[0, :2].tolist() == [2, 3]  # a distance of just the limit is within it
    assert places[1].tolist() == [4, 3, 2]
    assert distances[1].tolist() == [7.0, 8.0, 9.0]
    if len(np.unique(places[2:])) == 1:  # without a search nothing is found
        assert np.isinf(distances[2:]).all()


@given(seed=st.integers(0, 2**32), wide=st.booleans())
def test_merged_lists_are_the_nearest_of_both(seed, wide):
    rng = np.random.default_rng(seed)
    n, a, b = rng.integers(1, 6, 3)
    offset = 2**40 if wide else 50
    parts = []
    for width in (a, b):
        far = np.sort(rng.integers(0, 4, (n, width)), axis=1).astype(float)
        near = np.sort(rng.choice(40, (n, width)), axis=1)
        length = rng.integers(0, width + 1, n)[:, None]
        beyond = np.arange(width) >= length
        parts += [np.where(beyond, -1, near), np.where(beyond, np.inf, far)]
    kind = np.int64 if wide else np.int32
    found = merged_lists(
        parts[0].astype(kind), parts[1], parts[2].astype(np.int32), parts[3], offset
    )
    for row in range(n):
        pairs = [(d, i) for i, d in zip(parts[0][row], parts[1][row], strict=True) if i >= 0]
        pairs += [
            (d, i + offset) for i, d in zip(parts[2][row], parts[3][row], strict=True) if i >= 0
        ]
        pairs = (sorted(pairs) + [(np.inf, -1)] * a)[:a]
        assert list(zip(found[1][row], found[0][row], strict=True)) == pairs
