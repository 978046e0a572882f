"""The nearest items that carry a label, however many items do."""

from __future__ import annotations

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.methods import retrieval


@pytest.mark.parametrize("widened", [12, 40, 1000])
@pytest.mark.parametrize("change", [False, True])
def test_more_neighbors_find_the_same_items(monkeypatch, widened, change):
    """Labels of many items are looked for among more neighbors first, rare ones at all items."""
    random = np.random.default_rng(0)
    X, Y = random.integers(0, 4, (150, 3)), random.random((150, 4)) < [0.9, 0.5, 0.06, 0.01]
    queries, whole = random.integers(0, 4, (5, 3)), np.arange(150)
    model = nl.MLkNN(5).fit(X, Y.astype(int))
    if change:
        model.forget([3, 4]).partial_fit(X[:6], Y[:6].astype(int))
        whole = np.r_[whole[[*range(3), *range(5, 150)]], 150 + np.arange(6)]
        X, Y = np.vstack([X, X[:6]]), np.vstack([Y, Y[:6]])
    monkeypatch.setattr(retrieval, "_FEW_CELLS", 9)
    monkeypatch.setattr(retrieval, "_MANY_NEAR", widened)
    for query, groups in zip(queries, model.retrieve(queries, 4, 7), strict=True):
        assert len(groups) == 4
        for group in groups:
            carriers = whole[Y[whole, group.label]]
            distances = np.sqrt(((X[carriers] - query) ** 2).sum(axis=1))
            order = np.lexsort((carriers, distances))[:7]
            assert group.ids.tolist() == carriers[order].tolist()
            assert group.distances == pytest.approx(distances[order])


def test_approximate_searches_are_not_planned_for_more_neighbors(monkeypatch):
    monkeypatch.setattr(retrieval, "_FEW_CELLS", 9)
    data = nl.datasets.make_local_labels(33_000, 8, 6)
    model = nl.MLkNN(5, search=nl.InvertedLists(recall=0.9)).fit(data.X, data.Y)
    for _ in range(2):
        plans = set(_lists(model)._plans)
        (groups,) = model.retrieve(data.X[:1], 3, 40)
        assert set(_lists(model)._plans) == plans
        for group in groups:
            carried = model.label_matrix(data.Y[: len(data.X)]).toarray()[:, group.label] == 1
            carriers = np.flatnonzero(carried)
            nearest = np.sort(np.sqrt(((data.X[carriers] - data.X[0]) ** 2).sum(axis=1)))[:40]
            assert np.mean(group.distances <= nearest[-1] * (1 + 1e-6)) > 0.8
        model.partial_fit(data.X[:2] + 9, data.Y[:2])


def _lists(model):
    index = model._items.index
    return index.segments[0].index if hasattr(index, "segments") else index
