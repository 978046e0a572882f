"""Baselines on the command line: learners without neighbors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import (
    ALGORITHMS,
    BASELINES,
    algorithm,
    estimator,
    takes_missing,
    title,
)
from nearlabel.experiments import evaluate_splits, splits
from nearlabel.features.scales import scaler
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
        message = f"{option[0]}: there are no neighbors in AdaBoostMH; leave it out"
        assert message in fail("evaluate", *some, *option)
        assert message in fail("compare", *some, *option)
        assert message in fail("fit", *some, *option, "-o", tmp_path / "m")
    for verb in ("evaluate", "compare"):
        assert "--split loo: baselines need" in fail(verb, *some, "--split", "loo")
    message = "--tune: baselines have the parameters of the papers; leave it out"
    assert message in fail("compare", *some, "--tune")
    assert "got 'AdaBoostMH'" in fail("tune", *some)


def test_evaluate_and_compare_agree(ask, here):
    how = ("--split", "holdout", "--scale", "minmax", "--json")
    found = json.loads(ask("compare", "songs.csv", "--algorithm", "MLkNN", "C45Tree", *how))
    tree = found["results"][1]
    (alone,) = json.loads(ask("evaluate", "songs.csv", "--algorithm", "C45Tree", *how))["results"]
    assert "k" not in alone
    assert tree["metrics"].items() <= alone["metrics"].items()
    some = ("songs.csv", "--algorithm", "BRkNN", "C45Tree", "--k", 5, "--distance", "euclidean")
    tuned = json.loads(ask("compare", *some, "--tune", *how))
    assert tuned["results"][1]["metrics"] == tree["metrics"]
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
    assert "--thresholds: there are no neighbors in C45Tree, PMM" in fail("compare", *both)


def test_a_baseline_that_cannot_handle_the_data_is_left_out(ask, fail, here):
    table = "sun,rain,tags\n" + "".join(f"{i % 5 - 1},{i % 3},{'ab'[i % 2]}\n" for i in range(20))
    (here / "signed.csv").write_text(table)
    some = ("signed.csv", "--algorithm", "MLkNN", "PMM", "--k", 2, "--split", "cv2")
    printed = ask("compare", *some)
    assert "PMM was left out: Negative values in data passed to X" in printed
    tuned = json.loads(ask("compare", *some, "--tune", "--json"))
    assert [bool(one["metrics"]) for one in tuned["results"]] == [True, False]
    assert "Negative values" in fail("evaluate", "signed.csv", "--algorithm", "PMM")


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A folder with tables in which numbers, or numbers and words, are missing."""
    folder = tmp_path_factory.mktemp("gaps")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(2)
    tags = ["calm" if x > 0 else "loud;late" if y > 0 else "loud" for x, y in X]
    cells = X.astype(str)
    cells[::5, 0], cells[3::7, 1] = "", "?"
    keys = np.array(["C", "D", "E"])[np.arange(60) % 3]
    for name, words in (("numbers", keys), ("words", np.where(np.arange(60) % 4, keys, ""))):
        rows = map(",".join, zip(*cells.T, words, tags, strict=True))
        (folder / f"{name}.csv").write_text("\n".join(["tempo,pitch,key,tags", *rows, ""]))
    return folder


TAKERS = ("AdaBoostMH", "ADTBoostMH", "C45Tree")


def test_gaps_reach_the_methods_that_take_them(ask, gaps, monkeypatch):
    monkeypatch.chdir(gaps)
    assert tuple(filter(takes_missing, ALGORITHMS)) == TAKERS
    data = nl.datasets.load("numbers.csv", gaps="found")
    for name in TAKERS:
        quick = options(name)[4:]
        ask("fit", "numbers.csv", "-o", "m", "--algorithm", name, *quick)
        ranked = json.loads(ask("rank", "m", "numbers.csv", "--top", 3, "--json"))
        model = nl.load("m")
        rank = algorithm(name)(**model.get_params()).fit(data.X, data.Y).rank(data.X, 3)
        assert [[one["score"] for one in row["labels"]] for row in ranked] == rank.scores.tolist()
        assert model.feature_names_in_.tolist() == ["tempo", "pitch", "key=C", "key=D", "key=E"]
    how = ("--split", "holdout", "--json")
    found = json.loads(ask("compare", "numbers.csv", "--algorithm", *TAKERS[1:], *how))
    alone = json.loads(ask("evaluate", "numbers.csv", "--algorithm", "C45Tree", *how))
    tree = found["results"][1]["metrics"]
    assert tree.items() <= alone["results"][0]["metrics"].items()
    filled = json.loads(
        ask("evaluate", "numbers.csv", "--algorithm", "C45Tree", *how, "--impute", "zero")
    )
    assert filled["results"] != alone["results"]


@pytest.mark.parametrize("scale", ["none", "standard", "rank", "auto"])
def test_missing_words_are_a_category_of_their_own(ask, gaps, monkeypatch, scale):
    monkeypatch.chdir(gaps)
    ask("fit", "words.csv", "-o", "w", "--algorithm", "C45Tree", "--scale", scale)
    model = nl.load("w")
    assert model[0].transformers_[1][1][-1].categories_[0].tolist() == ["", "C", "D", "E"]
    assert ask("predict", "w", "words.csv").count("\n") == 62


def test_arrays_may_have_gaps_too(ask, fail, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = nl.datasets.make_local_labels(40, 3, 4)
    data.X[::3, 0] = np.nan
    labels = data.Y.tocsr()
    np.savez("a.npz", X=data.X, Y_indices=labels.indices, Y_indptr=labels.indptr, Y_shape=(40, 4))
    ask("fit", "a.npz", "-o", "m", "--algorithm", "C45Tree")
    assert ask("predict", "m", "a.npz").count("\n") == 42
    assert "one is infinite or missing" in fail("fit", "a.npz", "-o", "n")


def test_what_cannot_take_gaps_says_so(fail, gaps, monkeypatch):
    monkeypatch.chdir(gaps)
    empty = "the cell is empty; --impute median"
    for verb in (("evaluate",), ("compare",), ("fit", "-o", "m")):
        told = fail(*verb, "numbers.csv", "--algorithm", "PMM")
        assert f"line 2: column 'tempo': expected a finite number; got '' ({empty} accepts" in told
    mixed = ("numbers.csv", "--algorithm", "MLkNN", "C45Tree", "AdaBoostMH")
    assert f"{empty} accepts missing cells)" in fail("compare", *mixed)
    assert f"{empty} accepts" in fail("compare", *mixed[:2], "C45Tree", "--best")
    tree = ("numbers.csv", "--algorithm", "C45Tree")
    assert "--scale 'tfidf' takes no missing values; pass --impute" in fail(
        "evaluate", *tree, "--scale", "tfidf"
    )
    assert "--learn-distance takes no missing values; pass --impute" in fail(
        "fit", "-o", "m", *tree, "--learn-distance"
    )


def test_folds_are_separate_fits():
    data = nl.datasets.make_local_labels(120, 4, 5, labels_per_sample=2)
    models = [nl.MLkNN(3), nl.C45Tree()]
    parts = splits(data, "cv3")
    for part, one in zip(parts, evaluate_splits(data, models, parts, scale="rank")[1], strict=True):
        train, test = data.rows(part.train), data.rows(part.test)
        scaled = nl.make_pipeline(scaler("rank", train.X), nl.C45Tree())
        scaled.fit(train.X, train.Y)
        alone = nl.metrics.evaluate(test.Y, scaled.label_scores(test.X), scaled.predict(test.X))
        assert one.metrics == alone


def test_a_comparison_of_nothing_is_an_error(fail, here):
    message = fail("compare", "songs.csv", "--algorithm", "PMM", "--scale", "none")
    assert message.startswith("nearlabel: PMM: Negative values in data")


def test_no_cluster_for_baselines(fail, here, tmp_path):
    words = ("songs.csv", "-o", tmp_path / "c45.model", "--algorithm", "C45Tree")
    assert "uses a neighbor graph, such as MLkNN(); got C45Tree" in fail(
        "fit", *words, "--cluster", "local"
    )
