"""Predictions by blocks equal those of one process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl


def test_rank_and_predict(client, items, folder_of, tmp_path):
    X, Y = items.X, items.Y.toarray()
    model = nl.make_pipeline(MinMaxScaler(), nl.MLkNN(7)).fit(X[:500], Y[:500])
    rows = folder_of(X[500:], (3, 90))
    how = {"client": client, "folder": tmp_path / "work"}
    ranked, expected = nl.distributed.rank(model, rows, 4, **how), model.rank(X[500:], 4)
    np.testing.assert_array_equal(ranked.labels, expected.labels)
    np.testing.assert_array_equal(ranked.scores, expected.scores)
    decided = model.predict(X[500:])
    np.testing.assert_array_equal(nl.distributed.predict(model, rows, **how), decided)
    assert not list((tmp_path / "work").rglob("*.model"))


@pytest.mark.parametrize("form", ["sparse", "one column", "tags"])
def test_predictions_have_the_form_of_the_labels(client, items, folder_of, form):
    X, Y = items.X[:90], items.Y[:90].toarray()
    y = {
        "sparse": sparse.csr_array(Y),
        "one column": np.where(Y[:, 0], "yes", "no"),
        "tags": [[f"tag {at}" for at in np.flatnonzero(row)] for row in Y],
    }[form]
    model = nl.BRkNN(3).fit(X, y)
    found = nl.distributed.predict(model, folder_of(X + 0.01, (30,)), client)
    expected = model.predict(X + 0.01)
    assert type(found) is type(expected)
    if form == "sparse":
        found, expected = found.toarray(), expected.toarray()
    np.testing.assert_array_equal(
        np.array(found, object if form == "tags" else None),
        np.array(expected, object if form == "tags" else None),
    )


def test_bad_arguments_are_refused(client, items):
    model = nl.MLkNN(3).fit(items.X, items.Y)
    with pytest.raises(ValueError, match="top must be an integer from 1 up; got 0"):
        nl.distributed.rank(model, items.X, 0, client)


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
