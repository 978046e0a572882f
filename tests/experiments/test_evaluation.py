import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.experiments import evaluate_splits, folds, splits
from nearlabel.experiments.candidates import tried_parameters, usual_candidates
from nearlabel.methods.registry import METHODS
from nearlabel.metrics import scorer


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(180, 5, 6, random_state=4)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("official", "none"),
        ("cv3", "minmax"),
        pytest.param("official", "minmax", marks=pytest.mark.slow),
        pytest.param("cv3", "none", marks=pytest.mark.slow),
    ],
)
def test_the_best_candidate_on_training_rows_is_measured_on_test_rows(made, kind, scale):
    parts = splits(made, kind)
    candidates = {
        name: usual_candidates(name, 90, [2, 12], random_state=0) for name in ("MLkNN", "LAMLkNN")
    }
    by = scorer("average_precision")
    found = evaluate_splits(made, list(candidates.values()), parts, scorer=by, scale=scale)
    for name, selections in zip(candidates, found, strict=True):
        for part, selection in zip(parts, selections, strict=True):
            X, new, Y = made.X[part.train], made.X[part.test], made.Y[part.train]
            if scale == "minmax":
                scaling = MinMaxScaler().fit(X)
                X, new = scaling.transform(X), scaling.transform(new)
            # By hand: each candidate is scored by leave-one-out on the training rows.
            values = []
            for model in candidates[name]:
                fitted = clone(model).fit(X, Y)
                graph = nl.neighbor_graph(X, model.n_neighbors, metric=model.metric)
                scores = fitted._left_out_scores(graph, X, np.arange(len(X)))
                values.append(nl.metrics.average_precision(Y, scores))
            tied = [m for m, v in zip(candidates[name], values, strict=True) if v == max(values)]
            best = min(tied, key=lambda model: model.n_neighbors)
            assert str(selection.chosen) == str(best)
            assert selection.left_out == max(values)
            fitted = clone(best).fit(X, Y)
            expected = nl.metrics.evaluate(
                made.Y[part.test], fitted.label_scores(new), fitted.predict(new)
            )
            assert selection.metrics == expected


def test_one_graph_per_metric_for_all_methods_and_parts(made, monkeypatch):
    searched = []
    search = folds.neighbor_graph

    def neighbor_graph(X, k, *rest, **how):
        searched.append((X.shape[0], k, how["metric"]))
        return search(X, k, *rest, **how)

    monkeypatch.setattr(folds, "neighbor_graph", neighbor_graph)
    candidates = [usual_candidates(name, 90, [3, 9]) for name in ("MLkNN", "BRkNN", "MallowskNN")]
    told = []
    evaluate_splits(
        made,
        candidates,
        splits(made, "cv3x2"),
        scorer=scorer("ranking_loss"),
        progress=lambda *step: told.append(step),
    )
    assert [(n, metric) for n, _, metric in searched] == [(180, "euclidean"), (180, "cosine")]
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("name", METHODS)
def test_candidates(name):
    models = usual_candidates(name, 1000, random_state=3)
    assert len({str(model) for model in models}) == len(models)
    assert {type(model).__name__ for model in models} == {name}
    if "random_state" in models[0].get_params():
        assert {model.random_state for model in models} == {3}
    assert {model.metric for model in models} == {"euclidean", "cosine"}
    chosen = tried_parameters(name, models[0])
    assert next(iter(chosen)) in ("n_neighbors", "per_class")
    assert len({str(tried_parameters(name, model)) for model in models}) == len(models)
    few = usual_candidates(name, 1000, [4], ["manhattan"])
    assert {model.n_neighbors for model in few} == {4}
    assert max(model.n_neighbors for model in usual_candidates(name, 90)) <= 22
    assert {model.n_neighbors for model in usual_candidates(name, 3)} == {1}


def test_a_method_that_refuses_is_noted(made, monkeypatch):
    def refuse(self, Y, X):
        raise MemoryError("it would need 9 GiB")

    monkeypatch.setattr(nl.IBLR, "_rows_to_learn_from", refuse)
    candidates, by = [usual_candidates(name, 90, [3]) for name in ("IBLR", "BRkNN")], "ranking_loss"
    found = evaluate_splits(made, candidates, splits(made), scorer=scorer(by), refusals=True)
    [[refused], [done]] = found
    assert (refused.chosen, refused.refusal) == (None, "it would need 9 GiB")
    assert done.metrics


def test_ties_go_to_the_fewer_neighbors():
    # Two far clusters with one label each: every k up to 9 is perfect.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((40, 2)), 50 + rng.random((40, 2))])
    data = nl.datasets.Dataset(X, np.repeat([[1, 0], [0, 1]], 40, axis=0))
    for order in ([9, 3, 5], [3, 5, 9]):
        candidates, by = usual_candidates("MLkNN", 40, order, ["euclidean"]), scorer("ranking_loss")
        [found] = evaluate_splits(data, [candidates], splits(data, "cv2"), scorer=by)
        assert [one.chosen.n_neighbors for one in found] == [3, 3]


def test_leave_one_out_cannot_be_measured_on(made):
    candidates, by = usual_candidates("MLkNN", 100), scorer("ranking_loss")
    with pytest.raises(ValueError, match="parts.*'holdout' or 'cv10'"):
        evaluate_splits(made, [candidates], splits(made, "loo"), scorer=by)


def test_what_is_chosen_is_unfitted(made):
    candidates, by = usual_candidates("BRkNN", 100), scorer("ranking_loss")
    [found] = evaluate_splits(made, [candidates], splits(made, "cv2"), scorer=by)
    assert not any(hasattr(one.chosen, "classes_") for one in found)
    assert not any(hasattr(model, "classes_") for model in candidates)
