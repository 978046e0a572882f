"""Features by rank: the literal definition, sparse rows, and awkward features."""

from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nearlabel as nl
from nearlabel.features.scales import scaler

CELLS = st.lists(st.integers(0, 12), min_size=1, max_size=30)


def place(value, seen, quantiles=200):
    """The rank of a value among seen ones, from 0 to 1, in fractions."""
    seen = sorted(map(Fraction, seen))
    count = min(quantiles, len(seen))
    if value <= seen[0] or count == 1:
        return Fraction(0)
    if value >= seen[-1]:
        return Fraction(1)
    last, steps = len(seen) - 1, count - 1
    known = []
    for step in range(count):
        below, part = divmod(Fraction(step * last, steps), 1)
        above = min(below + 1, last)
        known.append(seen[below] + part * (seen[above] - seen[below]))
    first, end = bisect_left(known, value), bisect_right(known, value)
    if first < end:  # one or several quantiles: the middle of the lowest and the highest
        return Fraction(first + end - 1, 2 * steps)
    part = (value - known[end - 1]) / (known[end] - known[end - 1])
    return (end - 1 + part) / steps


@given(seen=CELLS, asked=CELLS)
def test_ranks_are_those_of_the_definition(seen, asked):
    X, new = (np.array(cells, float)[:, None] for cells in (seen, asked))
    ranks = scaler("rank", X).fit(X).transform(np.vstack([X, new]))
    for rank, value in zip(ranks.ravel(), (*seen, *asked), strict=True):
        # scikit-learn may round the first or the last of tied quantiles differently.
        tied = 0.5 / (len(seen) - 1) if seen.count(value) > 1 and len(seen) > 1 else 0.0
        assert abs(rank - place(value, seen)) <= tied + 1e-12
    assert np.all(ranks[X.argmin()] == 0)
    assert np.all(np.diff(ranks[np.argsort(np.vstack([X, new]), axis=0).ravel()], axis=0) >= 0)


def test_ranks_of_many_rows_are_linear_between_200_quantiles():
    X = np.random.default_rng(0).integers(0, 10**6, (700, 1)) / 2.0**20
    ranks = scaler("rank", X).fit_transform(X)
    some = slice(None, None, 70)
    expected = [float(place(Fraction(value), X.ravel())) for value in X.ravel()[some]]
    np.testing.assert_allclose(ranks.ravel()[some], expected, rtol=0, atol=1e-9)


def test_awkward_features_have_ranks_too():
    X = np.array([[0, 5, -8e307, 0], [0, 5, 0, 0], [0, 5, 3e307, 7], [0, 5, 8e307, 9]])
    ranks = scaler("rank", X).fit(X).transform([*X, [1, 6, 1e308, -1], [-1, 4, -1e308, np.nan]])
    expected = [
        *([0, 0, 0, 0], [0, 0, 1 / 3, 0], [0, 0, 2 / 3, 2 / 3], [0, 0, 1, 1]),
        *([1, 1, 1, 0], [0, 0, 0, np.nan]),
    ]
    np.testing.assert_allclose(ranks, expected, rtol=0, atol=1e-12)


@given(seed=st.integers(0, 99))
def test_ranks_of_sparse_rows_are_those_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (40, 5)) * rng.integers(0, 2, (40, 5)) + np.array([0, 0, 0, 0, 1.0])
    seen = sparse.csr_array(X[:30])
    apart, together = (scaler("rank", rows).fit(rows) for rows in (seen, seen.toarray()))
    found = apart.transform(sparse.csr_array(X))
    assert sparse.issparse(found)
    np.testing.assert_array_equal(found.toarray(), together.transform(X))


def test_sparse_rows_with_negative_values_have_no_ranks():
    with pytest.raises(ValueError, match="scale='rank' needs dense features.*negative"):
        scaler("rank", sparse.csr_array([[0.0, -1.0]]))


@pytest.mark.parametrize(
    ("name", "plain", "ranked"), [("emotions", 0.783, 0.821), ("scene", 0.849, 0.872)]
)
def test_gain_of_ranks(load, name, plain, ranked):
    data = load(name)
    train, test = data.train, data.test
    for scale, expected in (("minmax", plain), ("rank", ranked)):
        first = scaler(scale, data.X[train]).fit(data.X[train])
        model = nl.MLkNN(20).fit(first.transform(data.X[train]), data.Y[train])
        scores = model.label_scores(first.transform(data.X[test]))
        found = nl.metrics.average_precision(data.Y[test], scores, convention="paper")
        assert round(found, 3) == expected
