import literal_boosting as literal
import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from hypothesis import strategies as st
from strategies import boosting_problems, examples

import nearlabel as nl

pytestmark = pytest.mark.engines


@parametrize_with_quick_checks([nl.AdaBoostMH(n_rounds=30)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_worked_example(f6):
    X, Y, t = f6
    model = nl.AdaBoostMH(2, "article").fit(X, Y)
    assert model.features_.tolist() == [0, 0]
    assert model.cuts_.tolist() == [2.5, 0.5]
    np.testing.assert_array_equal(
        model.outputs_.round(6),
        [
            [
                [0.693147, -0.202733, -0.693147, 0.693147],
                [-0.693147, 0.693147, -0.693147, 0.693147],
            ],
            [
                [0.514222, -0.684831, -0.514222, 0.514222],
                [-0.333005, 0.887101, -0.762313, 0.762313],
            ],
        ],
    )
    np.testing.assert_array_equal(model.normalizers_.round(6), [0.556572, 0.552374])
    np.testing.assert_array_equal(
        model.label_scores(t).toarray().round(6), [[0.360142, 0.684369, -1.455460, 1.455460]]
    )
    staged = [(scores.toarray() > 0) != Y for scores in model.staged_label_scores(X)]
    assert [wrong.mean() for wrong in staged] == [1 / 24, 0]
    half = nl.AdaBoostMH(1, "program").fit(X, Y)
    # 1/2 ln((3/24 + 1/48) / (0 + 1/48)) = 1/2 ln 7
    assert half.outputs_[0, 0, 0] == pytest.approx(np.log(7) / 2, abs=1e-15)


@examples(160)
@given(boosting_problems(), st.sampled_from([("article", 1.0), ("program", 0.5)]))
def test_every_round_is_that_of_the_formulas(problem, smoothing):
    X, Y = problem
    (n, q), rows = Y.shape, range(len(Y))
    model = nl.AdaBoostMH(4, smoothing[0]).fit(X, Y)
    conditions = literal.conditions(X)
    W = [[1 / (n * q)] * q for _ in rows]
    scores = np.zeros((n, q))
    for t, staged in enumerate(model.staged_label_scores(X)):
        chosen = int(model.features_[t]), float(model.cuts_[t])
        at = conditions.index(chosen)
        losses = [literal.loss(X, Y, W, rows, condition) for condition in conditions]
        assert losses[at] <= min(losses) + 1e-9
        # No earlier stump splits the rows in the same way.
        divided = [literal.division(X, rows, condition) for condition in conditions[: at + 1]]
        assert divided[at] not in divided[:at]
        values = literal.outputs(X, Y, W, rows, chosen, smoothing[1] / (n * q))
        np.testing.assert_allclose(model.outputs_[t], values, rtol=0, atol=1e-9)
        W = literal.multiplied(X, Y, W, rows, chosen, values)
        norm = sum(map(sum, W))
        assert model.normalizers_[t] == pytest.approx(norm, abs=1e-9)
        W = [[weight / norm for weight in row] for row in W]
        for i in rows:
            where = literal.side(X[i], *chosen)
            scores[i] += 0 if where is None else values[where]
        np.testing.assert_allclose(staged.toarray(), scores, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.label_scores(X).toarray(), staged.toarray())
    np.testing.assert_array_equal(model.predict(X), staged.toarray() > 0)
    wrong = (model.predict(X) != Y).mean()
    assert wrong <= np.prod(model.normalizers_) + 1e-9  # Theorem 1 of Schapire and Singer (1999)
    found, expected = model.predict_proba(X), 1 / (1 + np.exp(-2 * staged.toarray()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@given(boosting_problems(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_sign_of_features_do_not_matter(problem, random):
    """Equal stumps stay equal to the last bit, whatever the order of summation."""
    X, Y = problem
    order = random.sample(range(len(X)), len(X))
    model, shuffled = nl.AdaBoostMH(1).fit(X, Y), nl.AdaBoostMH(1).fit(X[order], Y[order])
    twice = nl.AdaBoostMH(1).fit(np.hstack([X, -X]), Y)
    for other in (shuffled, twice):
        assert other.features_ == model.features_
        assert other.cuts_ == model.cuts_
        np.testing.assert_array_equal(other.outputs_, model.outputs_)


def test_cuts_between_floats_without_a_float_between():
    low = 1.0
    high = np.nextafter(low, 2)
    X = np.array([[low], [high], [-1e308], [1e308]])
    model = nl.AdaBoostMH(3).fit(X, [[0], [1], [0], [1]])
    assert (model.cuts_ == low).all()
    assert model.predict(X).ravel().tolist() == [0, 1, 0, 1]


def test_odd_labels_and_few_rows():
    nothing = nl.AdaBoostMH(10).fit([[0.0], [1.0]], np.zeros((2, 3), int))
    assert not nothing.predict([[0.0], [5.0]]).any()
    told = []
    one = nl.AdaBoostMH(3)
    one.fit([[0.0], [1.0]], [[1], [0]], progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert one.predict([[-1.0], [0.4], [0.6], [np.nan]]).ravel().tolist() == [1, 1, 0, 0]
    assert one.label_scores([[np.nan]]).toarray() == 0
    assert 0.49 < one.predict_proba([[np.nan]])[0, 0] <= 0.5


# Hamming loss and average precision after 500 rounds of another public implementation.
REFERENCE = {
    "emotions": (0.211, 0.786),
    "scene": (0.092, 0.864),
    "yeast": (0.229, 0.717),
}


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["emotions", *(pytest.param(name, marks=pytest.mark.slow) for name in ("scene", "yeast"))],
)
def test_another_implementation_is_reproduced(load, name):
    data = load(name)
    train, test = data.rows(data.train), data.rows(data.test)
    model = nl.AdaBoostMH().fit(train.X, train.Y)
    found = (
        nl.metrics.hamming_loss(test.Y, model.predict(test.X)),
        nl.metrics.average_precision(test.Y, model.label_scores(test.X)),
    )
    np.testing.assert_allclose(found, REFERENCE[name], rtol=0, atol=0.0006)
