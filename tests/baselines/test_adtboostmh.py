import literal_boosting as literal
import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from scipy import sparse
from strategies import boosting_problems, examples

import nearlabel as nl

pytestmark = pytest.mark.engines


@parametrize_with_quick_checks([nl.ADTBoostMH(n_rounds=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_worked_example(f6):
    X, Y, t = f6
    model = nl.ADTBoostMH(2).fit(X, Y)
    np.testing.assert_array_equal(model.root_.round(6), [0, 0.255413, -0.972955, 0.972955])
    assert model.parents_.tolist() == [0, 0]
    assert model.features_.tolist() == [0, 0]
    assert model.cuts_.tolist() == [2.5, 0.5]
    np.testing.assert_array_equal(model.losses_.round(6), [2.828427, 1.732051])
    np.testing.assert_array_equal(
        model.outputs_.round(6),
        [
            [
                [0.693147, -0.351173, -0.378974, 0.378974],
                [-0.693147, 0.600553, -0.378974, 0.378974],
            ],
            [
                [0.346574, -0.517901, -0.208526, 0.208526],
                [-0.255413, 0.608214, -0.355239, 0.355239],
            ],
        ],
    )
    np.testing.assert_array_equal(
        model.label_scores(t).toarray().round(6), [[0.437734, 0.512455, -1.707168, 1.707168]]
    )


@examples(160)
@given(boosting_problems())
def test_every_round_is_that_of_the_formulas(problem):
    X, Y = problem
    (n, q), rounds = Y.shape, 5
    model = nl.ADTBoostMH(rounds).fit(X, Y)
    W = [[1.0] * q for _ in range(n)]
    everything = [(0, np.inf)], np.zeros((n, 1)), range(n)
    root = literal.outputs(everything[1], Y, W, range(n), (0, np.inf), 1)[0]
    np.testing.assert_allclose(model.root_, root, rtol=0, atol=1e-12)
    W = literal.multiplied(everything[1], Y, W, range(n), (0, np.inf), [root, root])
    conditions, nodes = literal.conditions(X), [set(range(n))]
    scores = np.tile(root, (n, 1))
    for t in range(rounds):
        chosen = int(model.features_[t]), float(model.cuts_[t])
        at = int(model.parents_[t]), conditions.index(chosen)
        losses = {
            (node, place): literal.loss(X, Y, W, rows, condition)
            + sum(sum(W[i]) for i in range(n) if i not in rows)
            for node, rows in enumerate(nodes)
            for place, condition in enumerate(conditions)
        }
        assert losses[at] <= min(losses.values()) + 1e-9
        assert model.losses_[t] == pytest.approx(losses[at], abs=1e-9)
        # No earlier pair, by node, feature and cut, splits the same rows in the same way.
        divided = {
            literal.division(X, nodes[node], conditions[place]) | {frozenset(nodes[node])}
            for node, place in losses
            if (node, place) < at
        }
        own = literal.division(X, nodes[at[0]], chosen) | {frozenset(nodes[at[0]])}
        assert own not in divided
        reached = nodes[at[0]]
        values = literal.outputs(X, Y, W, reached, chosen, 1)
        np.testing.assert_allclose(model.outputs_[t], values, rtol=0, atol=1e-9)
        W = literal.multiplied(X, Y, W, reached, chosen, values)
        for where in (0, 1):
            nodes.append({i for i in reached if literal.side(X[i], *chosen) == where})
            for i in nodes[-1]:
                scores[i] += values[where]
    np.testing.assert_allclose(model.label_scores(X).toarray(), scores, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), model.label_scores(X).toarray() > 0)
    found, expected = model.predict_proba(X), 1 / (1 + np.exp(-2 * scores))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    compressed = nl.ADTBoostMH(rounds).fit(sparse.csr_array(X), Y)
    for name in ("parents_", "features_", "cuts_", "outputs_", "losses_"):
        np.testing.assert_array_equal(getattr(compressed, name), getattr(model, name))
    np.testing.assert_array_equal(
        compressed.label_scores(sparse.csr_array(X)).toarray(), model.label_scores(X).toarray()
    )


@pytest.fixture
def xor():
    """A label that two features decide together, and one that is their sum."""
    X = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 5, float)
    X[0, 0] = 0.1  # otherwise all first cuts would be equally good
    return X, np.column_stack([X[:, 0].round() != X[:, 1], X.sum(axis=1) > 0.5]).astype(int)


def test_conditions_stand_below_nodes(xor):
    X, Y = xor
    model = nl.ADTBoostMH(6).fit(X, Y)
    assert model.parents_.any()
    np.testing.assert_array_equal(model.predict(X), Y)


def test_odd_labels_and_few_rows():
    nothing = nl.ADTBoostMH(4).fit([[0.0], [1.0]], np.zeros((2, 3), int))
    assert not nothing.predict([[0.0], [5.0], [np.nan]]).any()
    one = nl.ADTBoostMH(4).fit([[0.0], [1.0]], [[1], [0]])
    assert one.predict([[-1.0], [0.4], [0.6], [np.nan]]).ravel().tolist() == [1, 1, 0, 0]
    told = []
    nl.ADTBoostMH(2).fit([[0.0], [1.0]], [[1], [0]], progress=lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]


def test_names_with_line_breaks_stay_on_their_lines(xor):
    pd = pytest.importorskip("pandas")
    X, Y = xor
    frame = pd.DataFrame(X, columns=["wi\nnd", "\x1b[31mtide"])
    model = nl.ADTBoostMH(6).fit(frame, Y, label_names=["sa\nil", "sa\ril"])
    lines = model.tree_text().split("\n")
    assert len(lines) == 13
    assert all(line.isprintable() and line.count("sa?il ") == 2 for line in lines)
    tree = nl.C45Tree().fit(frame, Y)
    assert "\x1b" not in tree.tree_text(0)


def test_the_text_has_every_node_below_its_condition(xor):
    pd = pytest.importorskip("pandas")
    X, Y = xor
    frame = pd.DataFrame(X, columns=["wind", "tide"])
    model = nl.ADTBoostMH(6).fit(frame, Y, label_names=["sail", "row"])
    lines = model.tree_text("row").split("\n")
    assert len(lines) == 13
    assert lines[0] == f"{model.root_[1]:+.3f}"
    for t in range(6):
        for side, sign in enumerate(("<=", ">")):
            name = ["wind", "tide"][model.features_[t]]
            told = f"{t + 1}: {name} {sign} {model.cuts_[t]:.4g}: {model.outputs_[t, side, 1]:+.3f}"
            [at] = [at for at, line in enumerate(lines) if line.endswith(f"| {told}")]
            depth = lines[at].count("| ")
            above = next(line for line in lines[at::-1] if line.count("| ") == depth - 1)
            above_t, above_side = divmod(int(model.parents_[t]) - 1, 2)
            if model.parents_[t]:
                assert above.split(":")[0].endswith(f"| {above_t + 1}")
                assert (" <= " in above) == (above_side == 0)
            else:
                assert above == lines[0]
    assert model.tree_text(1) == model.tree_text("row")
    assert model.tree_text().startswith(f"sail {model.root_[0]:+.3f}, row {model.root_[1]:+.3f}\n")
    with pytest.raises(ValueError, match="^label must be a name or a column.*'sea'"):
        model.tree_text("sea")
    with pytest.raises(ValueError, match="^label must be an integer from 0 to 1; got 2"):
        model.tree_text(2)


def test_near_cuts_are_printed_differently():
    X = np.array([[1.0], [1.000001], [1.000002]] * 5)
    model = nl.ADTBoostMH(4).fit(X, [[1, 0], [0, 0], [0, 1]] * 5)
    texts = {line.split(": ")[1] for line in model.tree_text().split("\n")[1:]}
    assert len(texts) == 2 * len(set(model.cuts_)) == 4
