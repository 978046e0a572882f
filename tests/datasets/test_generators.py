import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import make_local_labels


@pytest.fixture(scope="module")
def data():
    return make_local_labels(4000, 16, 200, labels_per_sample=4, n_clusters=10)


def test_shape_and_types(data):
    assert data.X.shape == (4000, 16)
    assert data.X.dtype == np.float32
    assert isinstance(data.Y, sparse.csr_array)
    assert data.Y.shape == (4000, 200)
    assert data.Y.has_canonical_format
    assert set(data.Y.data.tolist()) == {1}
    assert data.Y.nnz / 4000 == pytest.approx(4, rel=0.15)
    assert data.train.mean() == pytest.approx(0.75, abs=0.03)
    assert data.label_names[[0, 199]].tolist() == ["label 000", "label 199"]
    assert repr(data).startswith("Dataset(4000 items, 16 features, 200 labels, ")


def test_seeded():
    one, same, other = (make_local_labels(200, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, same.X)
    assert (one.Y != same.Y).nnz == 0
    assert (one.Y != other.Y).nnz > 0


def test_neighbors_share_labels(data):
    graph = nl.neighbor_graph(data.X, 5)
    dense = data.Y.toarray().astype(bool)
    near = (dense[:, None] & dense[graph.indices]).sum(-1).mean()
    shuffled = np.random.default_rng(0).permutation(4000)
    far = (dense & dense[shuffled]).sum(-1).mean()
    assert near > 5 * far


def test_labels_are_long_tailed_and_occur_together(data):
    wide = make_local_labels(4000, 16, 1000, labels_per_sample=4, n_clusters=10)
    totals = np.sort(np.bincount(wide.Y.indices, minlength=1000))
    assert totals[-100:].sum() > 0.4 * totals.sum()
    assert (totals < 5).mean() > 0.3
    together = (data.Y.T.astype(int) @ data.Y.astype(int)).toarray()
    expected = np.outer(together.diagonal(), together.diagonal()) / 4000
    often = (expected > 5) & ~np.eye(200, dtype=bool)
    assert (together[often] > 3 * expected[often]).mean() > 0.05
    assert (together[often] == 0).mean() > 0.05


def test_noise_makes_labels_harder_to_predict():
    def loss(noise):
        data = make_local_labels(1500, 8, 20, noise=noise)
        model = nl.MLkNN().fit(data.X[data.train], data.Y[data.train])
        scores = model.label_scores(data.X[~data.train])
        return nl.metrics.ranking_loss(data.Y[~data.train], scores)

    assert loss(0.0) < loss(0.5) < loss(1.0)
    assert loss(1.0) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 1}, "n_samples.* 1$"),
        ({"n_clusters": 0}, "n_clusters.*0"),
        ({"noise": 1.5}, "noise.* 1.5$"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_local_labels(**arguments)
