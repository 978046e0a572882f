import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from strategies import vectors

import nearlabel as nl

pytestmark = pytest.mark.engines


@given(X=vectors())
def test_dense_distances_give_the_same_graph(X):
    k = len(X) - 1
    full = nl.neighbor_graph(X, k)
    distances = np.zeros((len(X), len(X)))
    np.put_along_axis(distances, full.indices, full.distances, axis=1)
    for asked in range(1, k + 1):
        graph = nl.neighbor_graph(distances, asked, metric="precomputed")
        np.testing.assert_array_equal(graph.indices, full.head(asked).indices)
        np.testing.assert_array_equal(graph.distances, full.head(asked).distances)


def test_any_graph_of_scikit_learn_is_accepted():
    data = nl.datasets.make_local_labels(300, 6, 8)
    X, Y = data.X.astype(float), data.Y
    expected = nl.MLkNN(n_neighbors=5).fit(X, Y).predict_proba(X[:40] + 0.01)

    model = make_pipeline(
        KNeighborsTransformer(n_neighbors=5), nl.MLkNN(n_neighbors=5, metric="precomputed")
    )
    np.testing.assert_allclose(model.fit(X, Y).predict_proba(X[:40] + 0.01), expected)

    nearest = NearestNeighbors(n_neighbors=5).fit(X)
    graphs = [
        nearest.kneighbors_graph(mode="distance"),
        sparse.csr_array(nearest.kneighbors_graph(X, n_neighbors=6, mode="distance")),
    ]
    for graph in graphs:
        fitted = nl.MLkNN(n_neighbors=5).fit_graph(graph, Y)
        asked = nearest.kneighbors_graph(X[:40] + 0.01, mode="distance")
        np.testing.assert_allclose(fitted.scores_from_graph(asked).toarray(), expected)


def test_precomputed_distances_serve_every_method_of_a_model():
    data = nl.datasets.make_local_labels(80, 4, 6)
    X, Y, queries = data.X.astype(float), data.Y, data.X[:5].astype(float) + 0.1
    between = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    asked = np.sqrt(((queries[:, None] - X) ** 2).sum(-1))
    plain = nl.MLkNN(n_neighbors=4).fit(X, Y)
    model = nl.MLkNN(n_neighbors=4, metric="precomputed").fit(between, Y)
    np.testing.assert_array_equal(model.predict(asked).toarray(), plain.predict(queries).toarray())
    assert [v.id for v in model.explain(asked[0])[0].neighbors] == [
        v.id for v in plain.explain(queries[0])[0].neighbors
    ]
    for ours, theirs in zip(
        model.retrieve(asked, per_label=30)[0],
        plain.retrieve(queries, per_label=30)[0],
        strict=True,
    ):
        np.testing.assert_array_equal(ours.ids, theirs.ids)
    np.testing.assert_array_equal(model.kneighbors()[1], plain.kneighbors()[1])
    groups = model.retrieve(sparse.csr_array(asked), per_label=30)
    np.testing.assert_array_equal(groups[0][0].ids, model.retrieve(asked, per_label=30)[0][0].ids)


def test_wrong_distances_are_refused():
    with pytest.raises(ValueError, match=r"\bX\b.*square.*metric='precomputed'"):
        nl.neighbor_graph(np.ones((3, 2)), 1, metric="precomputed")
    with pytest.raises(ValueError, match="precomputed distance.*-1"):
        nl.neighbor_graph(-np.ones((3, 3)), 1, metric="precomputed")
    with pytest.raises(ValueError, match="row 0 .*graph .*1 neighbors"):
        nl.MLkNN(n_neighbors=2, metric="precomputed").fit(
            sparse.csr_array(np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1)), np.eye(4, 2, dtype=int)
        )
