import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from strategies import label_scores

from nearlabel.labels.scores import LabelScores, labels_from

pytestmark = [pytest.mark.kernels, pytest.mark.engines]


@given(label_scores(), st.data())
def test_everything_equals_the_dense_matrix(given_scores, data):
    scores, dense = given_scores
    n, q = dense.shape
    np.testing.assert_array_equal(scores.toarray(), dense)
    best = [sorted(range(q), key=lambda a: (-row[a], a)) for row in dense]
    Y = data.draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1)))
    for form in (scores, LabelScores.from_dense(dense)):
        for r in {1, min(2, q), q, q + 3}:
            labels, values = form.top(r)
            np.testing.assert_array_equal(labels, [row[:r] for row in best])
            np.testing.assert_array_equal(values, np.take_along_axis(dense, labels, axis=1))
        np.testing.assert_array_equal(form.rank().labels, best)
        for ties in ("max", "min", "higher", "lower"):
            expected = np.array([oracles.ranks(row, ties) for row in dense.tolist()]) * Y
            np.testing.assert_array_equal(form.ranks_of(Y, ties).toarray(), expected)
        np.testing.assert_array_equal(labels_from(form, 0.5).toarray(), dense >= 0.5)


def test_a_million_labels_without_a_dense_matrix():
    n, q = 2000, 1_000_000
    rng = np.random.default_rng(0)
    row, label = np.repeat(np.arange(n), 20), rng.integers(q, size=20 * n)
    touched = sparse.csr_array((rng.random(20 * n), (row, label)), shape=(n, q))
    scores = LabelScores(touched, rng.random(q) * 0.9)
    labels, values = scores.top(10)
    assert labels.shape == values.shape == (n, 10)
    assert (np.diff(values) <= 0).all()
    ranks = scores.ranks_of(
        sparse.csr_array((np.ones(n), (np.arange(n), labels[:, 4])), shape=(n, q))
    )
    assert set(ranks.data.tolist()) == {5}
    assert labels_from(scores, 0.95).nnz == np.sum(touched.data >= 0.95)
    huge = LabelScores(sparse.csr_array((10_000_000, q)), np.zeros(q))
    for dense in (huge.toarray, huge.rank):
        with pytest.raises(MemoryError, match="10,000,000 x 1,000,000 .* GiB.*rank"):
            dense()
    with pytest.raises(ValueError, match="read-only"):
        scores.untouched()[0][0, 0] = 7


def test_names():
    scores = LabelScores.from_dense([[0.1, 0.9]], label_names=np.array(["sea", "hill"]))
    assert scores.rank().names.tolist() == [["hill", "sea"]]
    assert LabelScores.from_dense([[0.1, 0.9]]).rank(1).names.tolist() == [[1]]
    assert repr(scores) == "LabelScores(n=1, q=2, dense)"
    assert (
        repr(LabelScores(sparse.csr_array((3, 4)))) == "LabelScores(n=3, q=4, touched=0, groups=1)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"defaults": [0.0, 1.0]}, r"defaults.*3.*2\)"),
        ({"defaults": [0.0, np.nan, 0.0]}, "defaults.*finite"),
        ({"touched": [[np.inf, 0, 0]]}, "touched.*finite"),
        ({"group": [1]}, "group.*defaults.*0 to 0.*1 to 1"),
        ({"group": [0, 0]}, "touched.* 1.*group.* 2"),
        ({"group": [0.0]}, "group.*1-d.*integers.*float64"),
        ({"defaults": np.zeros((2, 3))}, "group.* 2 .*defaults"),
        ({"label_names": ["a"]}, r"label_names.*3.*\(1,\)"),
        ({"touched": np.zeros((2, 0))}, "touched.* label"),
    ],
)
def test_invalid_scores_are_refused(arguments, message):
    given = {"touched": [[1.0, 0.0, 0.0]], "defaults": 0.0, **arguments}
    with pytest.raises(ValueError, match=message):
        LabelScores(sparse.csr_array(given.pop("touched")), **given)


def test_arguments_of_the_methods():
    scores = LabelScores.from_dense([[0.1, 0.9]])
    with pytest.raises(ValueError, match=r"\br\b.*1.*0"):
        scores.top(0)
    with pytest.raises(ValueError, match=r"\bY\b.*\(1, 2\)"):
        scores.ranks_of([[1, 0, 1]])
    with pytest.raises(ValueError, match="ties.*'average'"):
        scores.ranks_of([[1, 0]], ties="average")
    with pytest.raises(ValueError, match="Input scores contains NaN"):
        LabelScores.from_dense([[np.nan]])
