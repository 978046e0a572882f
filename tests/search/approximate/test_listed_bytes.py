"""Lists compared as bytes: the graphs of float32 bounds and of NumPy, also from files."""

from unittest import mock

import numpy as np
import pytest
from tree_paths import read_tree
from twin_graphs import assert_same, bytes_wanted

from nearlabel.common import engine
from nearlabel.common.files import write_tree
from nearlabel.search import InvertedLists
from nearlabel.search.approximate.inverted_lists import ListIndex
from nearlabel.search.exact import byte_bounds
from nearlabel.search.exact.byte_bounds import MOST_FEATURES, RATIOS, ByteBounds
from nearlabel.search.exact.compiled_index import CompiledIndex
from nearlabel.search.interfaces import Reached

pytestmark = [pytest.mark.usefixtures("small_lists", "core"), pytest.mark.kernels]
SEARCH = InvertedLists(0.8)
K = 9


def clustered(n, d=20, seed=0):
    """Clusters that overlap: some neighbors of a row are in other lists."""
    centers = 1.5 * np.random.default_rng(0).normal(size=(40, d))
    rng = np.random.default_rng(seed)
    return centers[rng.integers(0, 40, n)] + rng.normal(size=(n, d))


def ways(index):
    """The kinds of bounds by which lists are compared, the fastest first."""
    return [type(way._bounds) for way in index._listed._compiled]


def answers(X, metric, queries, limits):
    """All that lists are asked for: neighbors of rows and queries, and rows within their reach."""
    index = SEARCH.build(X, metric)
    graphs = index.graph(K, n_jobs=2), index.graph(K, queries), index.graph(40, queries[:3])
    graphs += (index.graph(K, queries[:1]),)
    reached = index.nearest_and_reached(queries, K, limits)[1]
    few = index.renewal(10**9, 0)(queries, np.full(len(queries), -1))
    return (
        index,
        (*graphs, few.graph(3, X[:50])),
        (
            reached,
            few.nearest_and_reached(X[:50], 3, limits[: len(queries)])[1],
        ),
    )


def assert_all_same(ours, theirs):
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert_same(mine, other)
    for mine, other in zip(ours[2], theirs[2], strict=True):
        for name in Reached._fields:
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
        assert len(mine.row)


DATA = {
    "clusters": lambda rng: clustered(700),
    "single precision": lambda rng: clustered(700).astype(np.float32),
    "ties": lambda rng: rng.integers(0, 2, (600, 20)).astype(float),
    "rows of zeros": lambda rng: clustered(600) * (np.arange(600) % 5 > 0)[:, None],
    "heavy tails": lambda rng: rng.standard_cauchy((600, 20)),
    "large": lambda rng: (2e18 * clustered(600)).astype(np.float32),
    "small": lambda rng: (1e-23 * clustered(600)).astype(np.float32),
}


QUICK = [
    *(("euclidean", kind, False) for kind in ("ties", "large", "small")),
    *(("euclidean", "single precision", True), ("cosine", "clusters", True)),
    ("cosine", "rows of zeros", False),
]
ALL = [
    (metric, kind, are_given_up)
    for metric in ("euclidean", "cosine", "sqeuclidean")
    for kind in DATA
    for are_given_up in (False, True)
    if metric != "sqeuclidean" or kind in ("clusters", "ties")
]


@pytest.mark.parametrize(
    ("metric", "kind", "are_given_up"),
    [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in ALL],
)
@pytest.mark.usefixtures("copies_listed")
def test_graphs_of_bytes_float32_and_numpy(metric, kind, are_given_up):
    """Also if bytes give up half of the queries, which float32 bounds search again."""
    X = DATA[kind](np.random.default_rng(1))
    queries = np.vstack([X[:60:2] * X.dtype.type(1.01), X[::40], 100 * X[:3]]).astype(X.dtype)
    searched = []
    real = ByteBounds.pack, CompiledIndex.search

    def pack(self, *arguments):
        packed, errors = real[0](self, *arguments)
        if are_given_up:
            errors[1::2] = np.inf  # a query with an infinite error is given up; a row stays open
        return packed, errors

    def search(self, *arguments, **options):
        searched.append(type(self._bounds))
        return real[1](self, *arguments, **options)

    with mock.patch.object(engine, "core", return_value=None):
        index = SEARCH.build(X, metric)
        near = index.graph(K).distances[:, -1]
        limits = np.where(np.arange(len(X)) % 3, near, np.float32(-np.inf))
        twins = answers(X, metric, queries, limits)
    with bytes_wanted(False):
        floats = answers(X, metric, queries, limits)
    with (
        bytes_wanted(),
        mock.patch.object(ByteBounds, "pack", pack),
        mock.patch.object(CompiledIndex, "search", search),
    ):
        ours = answers(X, metric, queries, limits)
    assert ways(ours[0]) == [ByteBounds, byte_bounds.DenseBounds]
    assert ways(floats[0]) == [byte_bounds.DenseBounds]
    assert ByteBounds in searched
    assert not are_given_up or byte_bounds.DenseBounds in searched
    assert_all_same(ours, floats)
    assert_all_same(ours, twins)


def test_lists_on_which_bytes_do_not_pay_use_float32():
    rng = np.random.default_rng(0)
    tight = np.repeat(rng.normal(size=(20, 50)), 60, axis=0) + 1e-3 * rng.normal(size=(1200, 50))
    for X, pays in ((clustered(1200, 50), True), (tight, False), (clustered(1200, 8), False)):
        with mock.patch.object(engine.core(), "multiplies_bytes", return_value=True):
            index = SEARCH.build(X)
            index.graph(K, X[:2])
        assert (index._listed.byte_share is not None) == pays
        assert (ByteBounds in ways(index)) == pays
        assert index._tree()["bounds"]["byte_share"] == index._listed.byte_share


# Lists from files


@pytest.fixture(scope="module")
def listed(small_lists):
    """An index that uses bytes, its tree, its rows, queries and their answers."""
    X, queries = clustered(700).astype(np.float32), clustered(40, seed=1).astype(np.float32)
    with bytes_wanted():
        index = SEARCH.build(X)
        asked = index.graph(K, queries)
    return index._tree(), index.stored()[1], queries, asked


@pytest.mark.parametrize("mmap", [False, True])
def test_the_share_comes_back_from_a_file(mmap, listed, tmp_path):
    tree, rows, queries, asked = listed
    share = tree["bounds"]["byte_share"]
    assert RATIOS[0] <= share <= RATIOS[1]
    write_tree(tmp_path / "lists.nl", {**tree, "rows": rows})
    stored, _ = read_tree(tmp_path / "lists.nl", mmap=mmap)
    for wanted in (True, False):
        with bytes_wanted(wanted):
            back = ListIndex.from_tree(stored, stored["rows"], "euclidean")
            assert back._listed.byte_share == back._tree()["bounds"]["byte_share"] == share
            assert (ByteBounds in ways(back)) == wanted
            assert_same(back.graph(K, queries), asked)


MISSING = object()


def with_bounds(tree, **changes):
    bounds = {**tree["bounds"], **changes}
    return {**tree, "bounds": {key: value for key, value in bounds.items() if value is not MISSING}}


@pytest.mark.parametrize("share", [MISSING, None])
def test_files_without_a_share_use_float32(share, listed):
    tree, rows, queries, asked = listed
    with bytes_wanted():
        back = ListIndex.from_tree(with_bounds(tree, byte_share=share), rows, "euclidean")
        assert ways(back) == [byte_bounds.DenseBounds]
        assert_same(back.graph(K, queries), asked)
    with mock.patch.object(engine, "core", return_value=None):
        back = ListIndex.from_tree({**tree, "bounds": None}, rows, "euclidean")
        assert_same(back.graph(K, queries), asked)
        assert back._tree()["bounds"] is None


@pytest.mark.parametrize(
    "share",
    [0.0, -0.1, 1e-7, 0.51, 2, np.nan, np.inf, -np.inf, "much", True, [0.1], {}, np.ones(2)],
)
def test_an_invalid_share_is_refused(share, listed):
    tree, rows, *_ = listed
    with pytest.raises((ValueError, TypeError), match="byte_share"):
        ListIndex.from_tree(with_bounds(tree, byte_share=share), rows, "euclidean")


def test_a_share_for_rows_too_wide_for_bytes_is_refused(listed):
    width = MOST_FEATURES + 1
    rows, centers = np.zeros((2, width), np.float32), np.zeros((1, width), np.float32)
    tree = with_bounds(listed[0], center=np.zeros(width), reach=1.0)
    tree |= {"centers": centers, "order": np.arange(2), "starts": np.array([0, 2]), "plans": []}
    with pytest.raises(ValueError, match=f"{width} features.*bytes"):
        ListIndex.from_tree(tree, rows, "euclidean")
    ListIndex.from_tree(with_bounds(tree, byte_share=None), rows, "euclidean")


@pytest.mark.parametrize(
    "share", [None, RATIOS[0], pytest.param(RATIOS[1], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("reach", [0.0, 1e-130, 1e-14, 1e-3, 1e130])
@pytest.mark.parametrize("far", [0.0, 1e9, -1e300])
def test_poor_bounds_of_a_file_change_no_answer(reach, far, share, listed):
    tree, rows, queries, asked = listed
    center = np.full(rows.shape[1], far)
    for by_list in (False, True):
        poor = with_bounds(tree, center=center, reach=reach, byte_share=share, by_list=by_list)
        with bytes_wanted():
            back = ListIndex.from_tree(poor, rows, "euclidean")
            assert by_list or (ByteBounds in ways(back)) == (share is not None)
            assert_same(back.graph(K, queries), asked)
