import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.experiments import evaluate_splits, scaler, splits


@pytest.fixture
def made():
    return nl.datasets.make_local_labels(200, 5, 6)


def test_splits(made):
    [(train, test, left_out)] = splits(made)
    assert not left_out
    assert train.tolist() == np.flatnonzero(made.train).tolist()
    assert test.tolist() == np.flatnonzero(~made.train).tolist()
    [(train, test, _)] = splits(made, "holdout", test_size=0.25, seed=3)
    assert (len(train), len(test)) == (150, 50)
    assert sorted([*train, *test]) == list(range(200))
    folds = splits(made, "cv10", seed=3)
    assert sorted(np.concatenate([part.test for part in folds])) == list(range(200))
    for train, test, _ in folds:
        assert sorted([*train, *test]) == list(range(200))
    again, other = splits(made, "cv10", seed=3), splits(made, "cv10", seed=4)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(folds, again, strict=True))
    assert not all(np.array_equal(a.test, b.test) for a, b in zip(folds, other, strict=True))
    assert len(splits(nl.datasets.Dataset(made.X, made.Y))) == 10


def test_impossible_splits(made):
    bare = nl.datasets.Dataset(made.X, made.Y)
    for arguments, message in (
        ((bare, "official"), "split='official'.*data set"),
        ((made, "half"), "split .*'official', .*'cv5'.*'half'"),
        ((made, "cv1"), "split .*'cv5'.*'cv1'"),
        ((made, 5), "split .*'cv5'.*5"),
        ((made.rows(np.arange(5)), "cv10"), "split='cv10' .* 5 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            splits(*arguments)
    for size in (0, 1, 0.999):
        with pytest.raises(ValueError, match=f"test_size={size} .* 200 rows"):
            splits(made, "holdout", test_size=size)
    with pytest.raises(ValueError, match="split='holdout' .* 2 rows"):
        splits(made.rows(np.arange(2)), "holdout")


def test_models_that_need_searches_of_their_own(made):
    models = [nl.MLkNN(), nl.MLkNN(metric="cosine")]
    together = evaluate_splits(made, models, splits(made))
    assert not any(hasattr(model, "classes_") for model in models)
    for model, results in zip(models, together, strict=True):
        [alone] = evaluate_splits(made, [model], splits(made))
        assert [part.metrics for part in results] == [part.metrics for part in alone]
    for none in ([], [models, []]):
        with pytest.raises(ValueError, match="models must be at least one"):
            evaluate_splits(made, none, splits(made))
    with pytest.raises(ValueError, match="models: .*a scorer"):
        evaluate_splits(made, [models], splits(made))


def test_scaling_of_sparse_features():
    X = sparse.csr_array([[0.0, 2, 0], [1, 0, 0], [4, 1, 0]])
    small = scaler("minmax", X).fit_transform(X)
    assert sparse.issparse(small)
    assert small.toarray().tolist() == [[0, 1, 0], [0.25, 0, 0], [1, 0.5, 0]]
    dense = scaler("minmax", X.toarray()).fit_transform(X.toarray())
    np.testing.assert_array_equal(small.toarray(), dense)
    apart, together = (scaler("standard", A).fit_transform(A) for A in (X, X.toarray()))
    ours, theirs = (nl.neighbor_graph(A, 2) for A in (apart, together))
    np.testing.assert_allclose(ours.distances, theirs.distances, rtol=1e-12)
    for wrong in ([[-1.0, 0]], [[1.0, 2], [3, 0]]):
        with pytest.raises(ValueError, match="scale='minmax' .*dense"):
            scaler("minmax", sparse.csr_array(wrong))
    with pytest.raises(ValueError, match="scale .*'none', 'minmax', 'standard'.*'x'"):
        scaler("x", X)
