from collections import Counter
from unittest import mock

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments import evaluate_splits, splits
from nearlabel.experiments.folds import part_vectors
from nearlabel.features.scales import scaler
from nearlabel.metrics import scorer


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(90, 4, 5, labels_per_sample=2, random_state=3)


@pytest.fixture
def fits():
    """The rows of every fit of a scaler."""
    found = []
    fit = MinMaxScaler.fit

    def counted(self, X, y=None):
        found.append(X.shape[0])
        return fit(self, X, y)

    with mock.patch.object(MinMaxScaler, "fit", counted):
        yield found


def test_a_part_is_scaled_once_for_methods_baselines_and_metrics(made, fits):
    parts = splits(made, "cv3")
    evaluate_splits(made, [nl.MLkNN(3), nl.BRkNN(5), nl.C45Tree()], parts, scale="minmax")
    assert fits == [60] * 3
    fits.clear()
    by = scorer("ranking_loss")
    candidates = [nl.MLkNN(3, metric=metric) for metric in ("euclidean", "cosine")]
    _, found = evaluate_splits(made, [candidates, nl.C45Tree()], parts, scorer=by, scale="minmax")
    assert fits == [60] * 3
    [alone] = evaluate_splits(made, [nl.C45Tree()], parts, scale="minmax")
    assert [one.metrics for one in found] == [one.metrics for one in alone]


def test_leave_one_out_is_scaled_once(made, fits):
    evaluate_splits(made, [nl.MLkNN(3), nl.BRkNN(5)], splits(made, "loo"), scale="minmax")
    assert fits == [90]


def test_the_scale_is_chosen_once_per_metric(made):
    chosen = Counter()
    scores = Preparing.scale_scores

    def counted(self, X, Y, metric="euclidean"):
        chosen[metric] += 1
        return scores(self, X, Y, metric)

    models = [nl.MLkNN(3), nl.BRkNN(3), nl.MLkNN(3, metric="cosine")]
    by = scorer("ranking_loss")
    with mock.patch.object(Preparing, "scale_scores", counted):
        evaluate_splits(made, [models, nl.C45Tree()], splits(made, "cv2"), scorer=by, scale="auto")
    assert chosen == {"euclidean": 2, "cosine": 2}


def test_metrics_with_different_best_scales_have_separate_vectors(made):
    [part] = splits(made, "holdout")
    best = {"euclidean": "minmax", "cosine": "standard"}

    def scores(self, X, Y, metric="euclidean"):
        return {best[metric]: 1.0}

    with mock.patch.object(Preparing, "scale_scores", scores):
        vectors_for = part_vectors(part, made.X, made.Y, Preparing("auto"))
        found = {metric: vectors_for(metric) for metric in best}
    for metric, scale in best.items():
        vectors = found[metric]
        assert vectors.scale == scale
        transformer = scaler(scale, made.X).fit(made.X[part.train])
        np.testing.assert_array_equal(vectors.train, transformer.transform(made.X[part.train]))
        np.testing.assert_array_equal(vectors.test, transformer.transform(made.X[part.test]))
