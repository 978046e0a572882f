"""Partition into lists of near rows: each row in one list, no list empty or long."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, vectors

from nearlabel.search.approximate import partition as clusters
from nearlabel.search.approximate.partition import divide, nearest_centers

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]


def check(lists, X):
    n = len(X)
    assert sorted(lists.order.tolist()) == list(range(n))
    assert lists.order.dtype == np.int32
    assert (lists.starts[0], lists.starts[-1]) == (0, n)
    assert len(lists) == len(lists.centers) == len(lists.sizes)
    assert lists.sizes.min() >= 1
    mean = n / max(1, round(clusters._LISTS * np.sqrt(n)))
    assert lists.sizes.max() <= clusters._LARGEST * mean + 1
    assert lists.centers.shape[1] == X.shape[1]
    assert np.isfinite(lists.centers).all()


@st.composite
def skewed(draw):
    """Some rows very often, some near each other, some far from all."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(64, 600)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-9, 1.0, 1e9]))
    same = draw(st.sampled_from([0.0, 0.3, 0.5, 0.85, 0.95, 1.0]))
    X[: int(same * n)] = X[0] + draw(st.sampled_from([0, 0, 1e-12])) * X[: int(same * n)]
    return X[rng.permutation(n)] + draw(st.sampled_from([0.0, 1e6]))


@pytest.mark.engines
@examples(60)
@given(X=st.one_of(skewed(), vectors(rows=st.integers(64, 200))), metric=st.sampled_from(METRICS))
def test_every_row_is_in_one_list_and_no_list_is_empty_or_long(X, metric):
    lists = divide(X, metric, 0, 1)
    check(lists, X)


@pytest.mark.parametrize(
    "metric", [*METRICS[:3], pytest.param("manhattan", marks=pytest.mark.engines)]
)
def test_lists_depend_neither_on_threads_nor_on_how_the_numbers_are_stored(metric, tmp_path):
    X = np.random.default_rng(0).integers(0, 50, (200, 3))
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    # Centers have the precision of the rows.
    for forms in ((X.astype(np.float64), X), (X.astype(np.float32), mapped, X.astype(np.uint8))):
        lists = divide(forms[0], metric, 3, 1)
        check(lists, X)
        for form in forms:
            twin = divide(form, metric, 3, 3)
            np.testing.assert_array_equal(twin.centers, lists.centers)
            np.testing.assert_array_equal(twin.order, lists.order)
            np.testing.assert_array_equal(twin.starts, lists.starts)


@pytest.mark.engines
def test_equal_rows_of_one_list_are_divided_in_their_order():
    lists = divide(np.zeros((400, 2)), "euclidean", 0, 1)
    np.testing.assert_array_equal(lists.order, np.arange(400))
    assert len(lists) == 8


@pytest.mark.engines
def test_rows_are_in_the_list_of_the_nearest_center_unless_lists_were_cut():
    rng = np.random.default_rng(0)
    X = np.repeat(50 * rng.normal(size=(40, 3)), 20, axis=0) + 0.1 * rng.normal(size=(800, 3))
    lists = divide(X, "euclidean", 0, 1)
    home = np.repeat(np.arange(len(lists)), lists.sizes)
    nearest = nearest_centers(X[lists.order], lists.centers, "euclidean", 1)
    assert np.mean(home == nearest) > 0.8


@pytest.mark.engines
def test_a_common_offset_does_not_merge_the_lists():
    """Centers in float32 would all be the same here."""
    X = np.random.default_rng(0).normal(size=(900, 3))
    near, far = (divide(X + offset, "euclidean", 0, 1) for offset in (0, 2.0**33))
    assert len(np.unique(far.centers, axis=0)) == len(far)
    assert len(far) > 0.8 * len(near)
