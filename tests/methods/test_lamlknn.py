from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import problems

import nearlabel as nl
from nearlabel.formulas import k_means

pytestmark = pytest.mark.engines

NEAR = {"atol": 5e-7, "rtol": 0}
CENTERS = [[1 / 3, 2 / 3], [13 / 3, 3.1 / 3]]


class TestWorkedExample:
    """Two clusters of three rows; the limit of k + 1 = 4 rows is disabled here."""

    def test_centers(self, f6):
        X, Y, t = f6
        model = nl.LAMLkNN(n_neighbors=2, n_clusters=2, random_state=0).fit(X, Y)
        centers = np.array(sorted(model.cluster_centers_.tolist()))
        np.testing.assert_allclose(centers, [[0.333333, 0.666667], [4.333333, 1.033333]], **NEAR)
        far = k_means.center_distances(centers, t)
        np.testing.assert_allclose(far, [[3.555556, 4.952222]], **NEAR)
        assert (model.cluster_sizes_ / len(X)).tolist() == [0.5, 0.5]  # P(W)

    def test_tables_and_posteriors(self, f6):
        X, Y, t = f6
        group = np.array([0, 0, 0, 1, 1, 1])
        model = nl.LAMLkNN(n_neighbors=3, cluster_centers=CENTERS)
        with pytest.MonkeyPatch.context() as patch:
            everything = "nearlabel.methods.lamlknn.large_enough"
            patch.setattr(everything, lambda distances, least: np.arange(2))
            model.fit(X, Y)
        assert model._cluster.tolist() == group.tolist()
        counted = model._counted
        h1, h0 = (
            np.split(h, counted.start[1:-1]) for h in (counted.with_label, counted.without_label)
        )
        assert [h.tolist() for h in h1[:4]] == [[0, 0, 3, 0], [0, 1, 0, 0], [0], [0, 0, 0, 3]]
        assert [h.tolist() for h in h0[:4]] == [[0] * 4, [0, 0, 2, 0], [3], [0] * 4]
        labels = sorted(model.explain(t[0], top=4), key=lambda label: label.label)
        terms = {
            term: np.array([label.terms[term] for label in labels]) for term in labels[0].terms
        }
        assert terms["cluster"].tolist() == [0, 0, 0, 0]
        a = terms["prior"]
        np.testing.assert_allclose(a, [0.8, 0.4, 0.2, 0.8], **NEAR)
        P = counted.n[0] / 6  # P(W), which has no effect
        np.testing.assert_allclose(
            P * a * terms["likelihood_with"], [0.228571, 0.04, 0.025, 0.228571], **NEAR
        )
        np.testing.assert_allclose(
            P * (1 - a) * terms["likelihood_without"], [0.025, 0.15, 0.228571, 0.025], **NEAR
        )
        here = [[0.901408, 0.210526, 0.098592, 0.901408]]
        np.testing.assert_allclose(model.predict_proba(t), here, **NEAR)
        assert model.prior_.shape == (2, 4)
        np.testing.assert_array_equal(model.prior_[0], a)
        np.testing.assert_allclose(model.likelihood_.sum(axis=3), np.ones((2, 2, 4)))
        other = model._by_count.table[counted.cells(4 + np.arange(4), [2, 2, 0, 3])]
        np.testing.assert_allclose(other, [0.304348, 0.695652, 0.098592, 0.901408], **NEAR)


@given(
    problem=problems(),
    s=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(0)]),
    m=st.integers(1, 4),
    is_sparse=st.booleans(),
)
def test_equals_the_literal_method(problem, s, m, is_sparse):
    X, Y, queries, k = problem
    X, queries = X.astype(float), queries.astype(float)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.LAMLkNN(n_neighbors=k, n_clusters=m, smoothing=float(s), random_state=0)
    model.fit(form(X), form(Y))
    centers = model.cluster_centers_

    def cluster(row):
        far = [oracles.distance(row, center, "sqeuclidean") for center in centers]
        return far.index(min(far))

    of_row = [cluster(row) for row in X]
    assert model.cluster_sizes_.tolist() == [of_row.count(j) for j in range(len(centers))]
    assert len(centers) == 1 or model.cluster_sizes_.min() >= k + 1
    training, _ = oracles.neighbors(X, k)
    found, _ = oracles.neighbors(X, k, queries)
    expected = []
    for query, near in zip(queries, found, strict=True):
        rows = [i for i in range(len(X)) if of_row[i] == cluster(query)]
        expected.append(oracles.mlknn(Y, training, [near], s, rows)[0][0])
    got = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(got, np.array(expected, float), rtol=1e-12, atol=1e-12)


@given(problem=problems(), s=st.sampled_from([Fraction(1), Fraction(0)]), m=st.integers(1, 4))
def test_a_left_out_row_is_in_no_table(problem, s, m):
    X, Y, _, k = problem
    X = X.astype(float)
    graph, (training, _) = nl.neighbor_graph(X, k), oracles.neighbors(X, k)
    model = nl.LAMLkNN(n_neighbors=k, n_clusters=m, smoothing=float(s), random_state=0)
    model.fit_graph(graph, Y, X)
    rows = np.arange(len(X))[::-2]
    got = model._left_out_scores(graph.take(rows), X[rows], rows).toarray()
    for row, scores in zip(rows, got, strict=True):
        same = np.flatnonzero(model._cluster == model._cluster[row])
        others = [int(i) for i in same if i != row]
        expected = oracles.mlknn(Y, training, [training[row]], s, others)[0][0]
        np.testing.assert_allclose(scores, np.array(expected, float), rtol=1e-12, atol=1e-12)


@given(problem=problems(), least=st.integers(1, 8), m=st.integers(1, 6))
def test_centers_are_dropped_as_a_literal_loop_drops_them(problem, least, m):
    X, centers = problem[0].astype(float), problem[0][:m].astype(float)
    distances = k_means.center_distances(centers, X)
    kept = list(range(len(centers)))
    while len(kept) > 1:
        of_row = [min(kept, key=lambda j: (distances[i, j], j)) for i in range(len(X))]
        sizes = [of_row.count(j) for j in kept]
        if min(sizes) >= least:
            break
        kept.pop(sizes.index(min(sizes)))
    assert k_means.large_enough(distances, least).tolist() == kept


@given(problem=problems(), s=st.sampled_from([1.0, 0.0]))
def test_one_cluster_is_mlknn_to_the_last_bit(problem, s):
    X, Y, queries, k = problem
    one = nl.LAMLkNN(n_neighbors=k, n_clusters=1, smoothing=s).fit(X, Y)
    same = nl.MLkNN(n_neighbors=k, smoothing=s).fit(X, Y)
    got, expected = (model.label_scores(queries).toarray() for model in (one, same))
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(one.predict(queries), same.predict(queries))


def test_more_clusters_than_distinct_rows_are_no_warning():
    X = np.repeat(np.eye(3), 8, axis=0)
    Y = np.repeat(np.eye(3, dtype=int), 8, axis=0)
    model = nl.LAMLkNN(n_neighbors=4, n_clusters=10, random_state=0).fit(X, Y)
    assert model.cluster_sizes_.tolist() == [8, 8, 8]
    assert model.predict(np.eye(3)).tolist() == np.eye(3).tolist()


def test_of_many_rows_k_means_sees_some(monkeypatch):
    data = nl.datasets.make_local_labels(400, 3, 5)
    monkeypatch.setattr(k_means, "_ROWS", 100)
    model = nl.LAMLkNN(n_clusters=3, random_state=7).fit(data.X, data.Y)
    some = np.sort(np.random.RandomState(7).choice(400, 100, replace=False))
    monkeypatch.undo()
    fewer = nl.LAMLkNN(n_clusters=3, random_state=7).fit(data.X[some], data.Y[some])
    np.testing.assert_array_equal(model.cluster_centers_, fewer.cluster_centers_)
    assert model.cluster_sizes_.sum() == 400


def test_given_centers_of_any_form_are_kept_in_files(tmp_path):
    data = nl.datasets.make_local_labels(300, 4, 8)
    model = nl.LAMLkNN(n_clusters=6, random_state=3).fit(data.X, data.Y)
    centers, expected = model.cluster_centers_, model.predict_proba(data.X)
    for form in (centers, centers.tolist(), tuple(map(tuple, centers)), sparse.csr_array(centers)):
        nl.LAMLkNN(cluster_centers=form).fit(data.X, data.Y).save(tmp_path / "a")
        np.testing.assert_array_equal(nl.load(tmp_path / "a").predict_proba(data.X), expected)


def test_sparse_rows_with_indices_of_64_bits():
    """Readers of large files make such rows, and scikit-learn's k-means refuses them."""
    data = nl.datasets.make_local_labels(60, 5, 4, random_state=0)
    X = sparse.csr_array(np.where(data.X > 0.2, data.X, 0))
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    model = nl.LAMLkNN(n_neighbors=3, n_clusters=2, random_state=0)
    expected = model.fit(X, data.Y).predict_proba(X)
    np.testing.assert_array_equal(model.fit(wide, data.Y).predict_proba(wide), expected)


def test_parameters_by_position():
    given = nl.LAMLkNN(7, 3, np.zeros((3, 2))).get_params()
    assert (given["n_neighbors"], given["n_clusters"], given["smoothing"]) == (7, 3, 1.0)
