from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

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


@pytest.mark.parametrize("scale", ["none", "minmax", "standard", "rank"])
def test_one_search_gives_what_separate_fits_give(made, scale):
    models = [nl.MLkNN(n_neighbors=k) for k in (3, 12)]
    parts = splits(made, "cv10")[:3]
    told = []
    found = evaluate_splits(
        made, models, parts, scale=scale, progress=lambda *call: told.append(call)
    )
    if scale == "none":  # 200 rows are searched, then two models answer for 20 in each part
        assert told == [(200 + 20 * step, 320) for step in range(7)]
    else:  # in each part 180 and 20 rows are searched, then two models answer for 20
        steps = (180, 200, 220, 240)
        assert told == [(240 * split + step, 720) for split in range(3) for step in steps]
    for k, results in zip((3, 12), found, strict=True):
        for (train, test, _), result in zip(parts, results, strict=True):
            first = scaler(scale, made.X[train])
            steps = [nl.MLkNN(n_neighbors=k)] if first is None else [first, nl.MLkNN(n_neighbors=k)]
            model = make_pipeline(*steps).fit(made.X[train], made.Y[train])
            X = made.X[test] if first is None else model[0].transform(made.X[test])
            scores, predicted = model[-1].label_scores(X), model[-1].predict(X)
            assert result.metrics == nl.metrics.evaluate(made.Y[test], scores, predicted)


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
