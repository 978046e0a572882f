"""Baselines on the command line: learners that know no neighbors."""

from __future__ import annotations

import json

import pytest

import nearlabel as nl
from nearlabel.baselines.known_baselines import ALGORITHMS, BASELINES, algorithm, estimator, title
from nearlabel.experiments import evaluate_splits, splits
from nearlabel.methods.registry import METHODS

QUICK = {"AdaBoostMH": ("n_rounds=5",), "ADTBoostMH": ("n_rounds=3",), "RankSVM": ("degree=2",)}


def options(name):
    quick = QUICK.get(name, ())
    return ("--algorithm", name, "--scale", "minmax", *(("--set", *quick) if quick else ()))


def test_algorithms_are_the_methods_and_the_baselines():
    assert (*METHODS, *BASELINES) == ALGORITHMS
    assert all(name in nl.__all__ for name in BASELINES)
    assert (title("MLkNN"), title("C45Tree")) == ("ML-kNN", "C4.5")
    assert algorithm("PMM") is nl.PMM
    assert estimator("PMM", 7, metric="cosine", order=2).get_params()["order"] == 2


@pytest.mark.parametrize("name", BASELINES)
def test_from_a_table_to_answers(ask, fail, here, tmp_path, name):
    model = tmp_path / "m.model"
    told = json.loads(ask("fit", "songs.csv", "-o", model, *options(name), "--json"))
    assert (told["algorithm"], told["k"], told["distance"]) == (name, None, None)
    assert ask("predict", model, "new.csv").count("song ") == 3
    assert ask("rank", model, "new.csv", "--top", 2, "--jobs", 2).count("song ") == 3
    assert "--why: " in fail("rank", model, "new.csv", "--why")
    assert "keeps no items" in fail("retrieve", model, "new.csv")
    assert "keeps no items" in fail("verify", model)
    assert "--search: " in fail("rank", model, "new.csv", "--search", "exact")
    assert "cannot be changed" in fail("add", model, "songs.csv")


def test_what_they_do_not_know_is_refused(fail, here, tmp_path):
    some = ("songs.csv", "--algorithm", "AdaBoostMH")
    for more in (("--k", 3), ("--distance", "cosine"), ("--thresholds",)):
        assert f"{more[0]}: AdaBoostMH knows no neighbors" in fail("evaluate", *some, *more)
    assert "--k: AdaBoostMH knows" in fail("fit", *some, "--k", 3, "-o", tmp_path / "m")
    assert "use folds or a held-out part" in fail("evaluate", *some, "--split", "loo")
    assert "--split loo: baselines need" in fail("compare", *some, "--split", "loo")
    assert "got 'AdaBoostMH'" in fail("tune", *some)


def test_evaluate_and_compare_say_the_same(ask, here):
    how = ("--split", "holdout", "--scale", "minmax", "--json")
    found = json.loads(ask("compare", "songs.csv", "--algorithm", "MLkNN", "C45Tree", *how))
    tree = found["results"][1]
    (alone,) = json.loads(ask("evaluate", "songs.csv", "--algorithm", "C45Tree", *how))["results"]
    assert "k" not in alone
    assert tree["metrics"].items() <= alone["metrics"].items()
    tuned = json.loads(ask("compare", "songs.csv", "--algorithm", "C45Tree", "--tune", *how))
    assert tuned["results"][0]["metrics"] == tree["metrics"]
    printed = ask("evaluate", "songs.csv", "--algorithm", "C45Tree", "--split", "cv2")
    assert "graph" not in printed
    assert "k =" not in printed


def test_folds_are_separate_fits():
    data = nl.datasets.make_local_labels(120, 4, 5, labels_per_sample=2)
    models = [nl.MLkNN(3), nl.C45Tree()]
    parts = splits(data, "cv3")
    for part, one in zip(parts, evaluate_splits(data, models, parts, scale="rank")[1], strict=True):
        train, test = data.rows(part.train), data.rows(part.test)
        scaled = nl.make_pipeline(nl.datasets.preparing.scaler("rank", train.X), nl.C45Tree())
        scaled.fit(train.X, train.Y)
        alone = nl.metrics.evaluate(test.Y, scaled.label_scores(test.X), scaled.predict(test.X))
        assert one.metrics == alone
