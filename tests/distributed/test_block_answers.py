"""Predictions by blocks equal those of one process, and metrics are sums over blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl


def test_rank_predict_and_evaluate(client, items, folder_of, tmp_path):
    X, Y = items.X, items.Y.toarray()
    model = nl.make_pipeline(MinMaxScaler(), nl.MLkNN(7)).fit(X[:500], Y[:500])
    rows, truth = folder_of(X[500:], (3, 90)), folder_of(Y[500:], (50,), "Y")
    how = {"client": client, "folder": tmp_path / "work"}
    ranked, expected = nl.distributed.rank(model, rows, 4, **how), model.rank(X[500:], 4)
    np.testing.assert_array_equal(ranked.labels, expected.labels)
    np.testing.assert_array_equal(ranked.scores, expected.scores)
    decided = model.predict(X[500:])
    np.testing.assert_array_equal(nl.distributed.predict(model, rows, **how), decided)
    found = nl.distributed.evaluate(model, rows, truth, **how)
    whole = nl.metrics.evaluate(Y[500:], model.label_scores(X[500:]), decided)
    assert whole.keys() - found.keys() == {"macro_auc", "macro_average_precision"}
    assert found == pytest.approx({name: whole[name] for name in found}, abs=1e-12, nan_ok=True)
    assert not list((tmp_path / "work").rglob("*.model"))


def test_bad_arguments_are_refused(client, items):
    model = nl.MLkNN(3).fit(items.X, items.Y)
    with pytest.raises(ValueError, match="top must be an integer from 1 up; got 0"):
        nl.distributed.rank(model, items.X, 0, client)
    with pytest.raises(ValueError, match="X has 700, y has 5"):
        nl.distributed.evaluate(model, items.X, items.Y[:5], client)


def test_a_model_that_has_changed_since_the_last_call(client, items, tmp_path):
    model, how = nl.MLkNN(3).fit(items.X, items.Y), {"client": client, "folder": tmp_path / "work"}
    nl.distributed.rank(model, items.X[:9], 3, **how)
    model.fit(items.X[:50], items.Y[:50])
    found, expected = nl.distributed.rank(model, items.X[:9], 3, **how), model.rank(items.X[:9], 3)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_pipeline_that_imputes(client, items):
    X = items.X[:60].copy()
    X[::5, 2] = np.nan
    model = nl.make_pipeline(SimpleImputer(), nl.MLkNN(3)).fit(X, items.Y[:60])
    found, expected = nl.distributed.rank(model, X, 3, client), model.rank(X, 3)
    np.testing.assert_array_equal(found.scores, expected.scores)
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 0"):
        nl.distributed.rank(model[-1], X, 3, client)
