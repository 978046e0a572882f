"""Even counts of ML-kNN and LAML-kNN, compared with all draws of a carrier in exact fractions."""

from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, problems

import nearlabel as nl

pytestmark = pytest.mark.engines
SMOOTHING = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(0), Fraction(1, 11)])


def even(k, s=1, **how):
    return nl.MLkNN(k, smoothing=float(s), counts="even", **how)


def assert_near(found, expected):
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12, atol=1e-12)


@examples(200)
@given(problem=problems(), s=SMOOTHING, is_sparse=st.booleans())
def test_equals_the_mean_over_the_carrier_that_is_left_out(problem, s, is_sparse):
    X, Y, queries, k = problem
    training, found = oracles.neighbors(X, k)[0], oracles.neighbors(X, k, queries)[0]
    expected, _ = oracles.even_mlknn(Y, training, found, s)
    form = sparse.csr_array if is_sparse else np.asarray
    model = even(k, s).fit(form(X), form(Y))
    assert_near(model.label_scores(form(queries)).toarray(), expected)
    del model._by_count.__dict__["table"]  # without it, each score is computed by itself
    few = model._scores(nl.neighbor_graph(X, k, queries[:1]), None).toarray()
    assert_near(few, expected[:1])
    if s:
        np.testing.assert_allclose(model.likelihood_.sum(axis=2), 1)


@given(problem=problems(), s=SMOOTHING)
def test_a_left_out_row_is_in_no_table(problem, s):
    X, Y, _, k = problem
    training, graph = oracles.neighbors(X, k)[0], nl.neighbor_graph(X, k)
    model, rows = even(k, s).fit_graph(graph, Y), np.arange(len(X))[::-1]
    found = model._left_out_scores(graph.take(rows), None, rows).toarray()
    for row, scores in zip(rows, found, strict=True):
        [expected], _ = oracles.even_mlknn(Y, training, [training[row]], s, left_out=row)
        assert_near(scores, expected)


@given(problem=problems(), s=SMOOTHING)
def test_a_cluster_draws_from_the_carriers_of_all(problem, s):
    X, Y, queries, k = problem
    centers = np.array([X[0], X[-1]], float)
    model = nl.LAMLkNN(k, cluster_centers=centers, smoothing=float(s), counts="even").fit(X, Y)
    training, found = oracles.neighbors(X, k)[0], oracles.neighbors(X, k, queries)[0]
    scores = model.label_scores(queries).toarray()
    for query, group in enumerate(model._groups(np.asarray(queries, float))):
        members = np.flatnonzero(model._cluster == group)
        expected, _ = oracles.even_mlknn(Y, training, found[[query]], s, cluster=members)
        assert_near(scores[[query]], expected)
    graph, rows = nl.neighbor_graph(X, k), np.arange(len(X))
    left_out = model._left_out_scores(graph, np.asarray(X, float), rows).toarray()
    for row in rows:
        members = np.flatnonzero(model._cluster == model._cluster[row])
        [expected], _ = oracles.even_mlknn(Y, training, [training[row]], s, row, members)
        assert_near(left_out[row], expected)


@given(problem=problems(), s=SMOOTHING)
def test_the_terms_of_an_explanation_determine_its_score(problem, s):
    X, Y, queries, k = problem
    found = oracles.neighbors(X, k, queries)[0]
    _, draws = oracles.even_mlknn(Y, oracles.neighbors(X, k)[0], found, s)
    for label in even(k, s).fit(X, Y).explain(queries[0], top=99):
        terms, told, score = label.terms, draws[0][label.label], 0.0
        chance = terms.get("one_less", 0.0)
        assert chance == pytest.approx(terms["count"] / max(len(told), 1) if chance else 0)
        for ending, share in (("", 1 - chance), ("_one_less", chance)):
            if share:
                yes = terms["prior"] * terms[f"likelihood_with{ending}"]
                no = (1 - terms["prior"]) * terms[f"likelihood_without{ending}"]
                score += share * (yes / (yes + no) if yes + no else terms["prior"])
        assert label.score == pytest.approx(score, abs=1e-12)


def test_a_scene_whose_carriers_are_all_near():
    """Five of twelve items of a scene carry a label: a new item among them probably does, too."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    X[:12] = 9 + X[:12] / 100
    y = np.zeros((500, 1), int)
    y[:5] = 1
    paper, mine = (
        nl.MLkNN(12, smoothing=0.01, counts=counts).fit(X, y).predict_proba([[9, 9]])[0, 0]
        for counts in ("paper", "even")
    )
    assert paper < 0.01  # no carrier has five votes
    # Five of the twelve carry it, and all twelve have four votes of the others.
    assert mine == pytest.approx(5 / 12, abs=0.01)


def test_a_label_of_one_item_is_not_informative():
    X, y = np.arange(20.0)[:, None], np.eye(20, 1, dtype=int)
    scores = even(3).fit(X, y).label_scores([[0.0], [19.0]]).toarray()
    assert scores[0] == scores[1]


def test_a_label_of_many_items_is_nearly_as_published():
    data = nl.datasets.make_local_labels(2000, 4, 6, labels_per_sample=2)
    paper, mine = (nl.MLkNN(10, counts=counts).fit(data.X, data.Y) for counts in ("paper", "even"))
    new = data.X[:50] + 0.01
    found = mine.label_scores(new).toarray(), paper.label_scores(new).toarray()
    np.testing.assert_allclose(*found, atol=0.02)
    assert not np.array_equal(*found)


@pytest.mark.parametrize("s", [0.0, 1e-300, 1e100])
def test_the_smoothing_may_be_extreme(s):
    data = nl.datasets.make_local_labels(60, 3, 5)
    scores = even(4, s).fit(data.X, data.Y).label_scores(data.X).toarray()
    assert np.all((scores >= 0) & (scores <= 1))


@pytest.mark.parametrize("counts", ["paper", "even"])
def test_scores_at_count_0_are_the_same_bits_from_the_table_and_without_it(counts):
    for seed in range(20):
        random = np.random.default_rng(seed)
        n, q = random.integers(30, 60), 12
        X, Y = random.normal(size=(n, 2)), (random.random((n, q)) < 0.3).astype(int)
        fitted = nl.MLkNN(3, counts=counts).fit(X, Y)
        changed = nl.MLkNN(3, counts=counts).fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
        assert "table" in vars(fitted._by_count)
        assert "table" not in vars(changed._by_count)
        np.testing.assert_array_equal(fitted._defaults.values, changed._defaults.values)
