"""Baselines on the command line: learners without neighbors."""

from __future__ import annotations

import json

import pytest

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import (
    ALGORITHMS,
    BASELINES,
    algorithm,
    estimator,
    title,
)
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


def test_unsupported_options_are_refused(fail, here, tmp_path):
    some = ("songs.csv", "--algorithm", "AdaBoostMH")
    more = (("--k", 3), ("--distance", "cosine"), ("--thresholds",), ("--search", "exact"))
    for option in more:
        message = f"{option[0]}: AdaBoostMH knows no neighbors; leave it out"
        assert message in fail("evaluate", *some, *option)
        assert message in fail("compare", *some, *option)
        assert message in fail("fit", *some, *option, "-o", tmp_path / "m")
    for verb in ("evaluate", "compare"):
        assert "--split loo: baselines need" in fail(verb, *some, "--split", "loo")
    assert "got 'AdaBoostMH'" in fail("tune", *some)


def test_evaluate_and_compare_agree(ask, here):
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


def test_a_comparison_reports_options_that_baselines_ignore(ask, fail, here, tmp_path):
    some = ("songs.csv", "--algorithm", "MLkNN", "C45Tree", "--split", "holdout", "--thresholds")
    printed = " ".join(ask("compare", *some).split())
    assert "one threshold per label, euclidean (except baselines), scale" in printed
    found = json.loads(ask("compare", *some, "--json"))
    method, tree = found["results"]
    assert "k" not in method
    assert (tree["k"], tree["distance"], tree["thresholds"]) == (None, None, False)
    (plain,) = json.loads(ask("compare", "songs.csv", *options("C45Tree")[:2], "--json"))["results"]
    assert tree["metrics"] == plain["metrics"]
    rows = ask("compare", *some, "-o", "-").splitlines()
    columns = rows[0].split(",")
    cells = [dict(zip(columns, row.split(","), strict=True)) for row in rows[1:]]
    assert [(one["k"], one["thresholds"]) for one in cells] == [("10", "True"), ("", "False")]
    alone = ask("compare", "songs.csv", "--algorithm", "C45Tree", "PMM", "--split", "cv2")
    assert "2 algorithms, scale none" in alone
    assert "graph" not in alone
    both = ("songs.csv", "--algorithm", "C45Tree", "PMM", "--thresholds")
    assert "--thresholds: C45Tree, PMM know no neighbors; leave it out" in fail("compare", *both)


def test_a_baseline_that_cannot_handle_the_data_is_left_out(ask, fail, here):
    table = "sun,rain,tags\n" + "".join(f"{i % 5 - 1},{i % 3},{'ab'[i % 2]}\n" for i in range(20))
    (here / "signed.csv").write_text(table)
    some = ("signed.csv", "--algorithm", "MLkNN", "PMM", "--k", 2, "--split", "cv2")
    printed = ask("compare", *some)
    assert "PMM was left out: Negative values in data passed to X" in printed
    tuned = json.loads(ask("compare", *some, "--tune", "--json"))
    assert [bool(one["metrics"]) for one in tuned["results"]] == [True, False]
    assert "Negative values" in fail("evaluate", "signed.csv", "--algorithm", "PMM")


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


def test_a_comparison_of_nothing_is_an_error(fail, here):
    message = fail("compare", "songs.csv", "--algorithm", "PMM", "--scale", "none")
    assert message.startswith("nearlabel: PMM: Negative values in data")


def test_no_cluster_for_baselines(fail, here, tmp_path):
    words = ("songs.csv", "-o", tmp_path / "c45.model", "--algorithm", "C45Tree")
    assert "--cluster: C4.5 does not read a neighbor graph" in fail(
        "fit", *words, "--cluster", "local"
    )
