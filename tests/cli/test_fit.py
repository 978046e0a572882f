"""fit, and the options about how it learns."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.cli import fit, run
from nearlabel.methods.registry import METHODS


def test_fit_on_a_part_and_with_few_rows(ask, fail, here, tmp_path, capsys):
    data = nl.datasets.make_local_labels(60, 3, 4)
    nl.datasets.save(data, tmp_path / "made.npz")
    model = tmp_path / "m"
    told = json.loads(ask("fit", tmp_path / "made.npz", "-o", model, "--part", "train", "--json"))
    assert told["items"] == int(data.train.sum())
    ranked = json.loads(ask("rank", model, tmp_path / "made.npz", "--part", "test", "--json"))
    assert len(ranked) == int((~data.train).sum())
    assert [item["id"] for item in ranked][:2] == [1, 2]
    assert "--part train" in fail("fit", "songs.csv", "-o", model, "--part", "train")
    assert run(["fit", "songs.csv", "-o", str(model), "--k", "5000"]) == 0
    note = capsys.readouterr().err
    assert note.startswith("nearlabel: note: ")
    assert all(number in note for number in ("5000", "599"))


def test_the_best(ask, fail, tmp_path):
    """--best is AutoNeighbors: the same predictions, and a note on the choices."""
    data = nl.datasets.make_local_labels(90, 3, 4)
    nl.datasets.save(data, tmp_path / "made.npz")
    made, model = tmp_path / "made.npz", tmp_path / "m"
    told = json.loads(ask("fit", made, "-o", model, "--best", "--part", "train", "--json"))
    train = data.rows(data.train)
    auto = nl.AutoNeighbors().fit(train.X, train.Y)
    assert told["algorithm"] == "BlendedNeighbors"
    assert told["scale"] == auto.scale_
    assert told["chosen"] == auto.blend_.summary().splitlines()
    saved = nl.load(model)
    assert (saved.predict_proba(data.X) == auto.predict_proba(data.X)).all()
    text = ask("fit", made, "-o", model, "--best", "--set", "objective=hamming", "--scale", "none")
    assert text.startswith("Blend, 40 neighbors, scale none, learned from")
    assert "largest weights in the blend: " in text
    assert "at least 0.50" in text
    assert "leave out --algorithm" in fail("fit", made, "-o", model, "--best", "--thresholds")
    assert "did you mean 'ridge'" in fail("fit", made, "-o", model, "--best", "--set", "rige=1")


def test_a_learned_distance(ask, fail, tmp_path):
    """The commands do what a pipeline with LabelSpace does."""
    data = nl.datasets.make_local_labels(120, 4, 5)
    nl.datasets.save(data, tmp_path / "made.npz")
    made, model = tmp_path / "made.npz", tmp_path / "m"
    learning = ("--scale", "minmax", "--learn-distance")
    text = ask("fit", made, "-o", model, "--part", "train", *learning)
    assert text.startswith("ML-kNN, 10 neighbors, scale minmax, learned distance, learned from")
    train, test = data.rows(data.train), data.rows(~data.train)
    pipeline = nl.make_pipeline(MinMaxScaler(), nl.LabelSpace(), nl.MLkNN()).fit(train.X, train.Y)
    expected = pipeline.predict_proba(test.X)
    assert (nl.load(model).predict_proba(test.X) == expected).all()
    told = json.loads(ask("evaluate", made, *learning, "--json"))
    assert told["learn_distance"]
    precision = nl.metrics.average_precision(test.Y, pipeline.label_scores(test.X))
    assert told["results"][0]["metrics"]["average_precision"] == pytest.approx(precision, abs=1e-9)
    told = json.loads(ask("compare", made, "--algorithm", "MLkNN", "BRkNN", *learning, "--json"))
    assert told["learn_distance"]
    assert "leave out --learn-distance" in fail("fit", made, "-o", model, "--best", *learning)


def test_features_without_names(ask, tmp_path):
    """A set without names goes through every form; a file with labels can be predicted, too."""
    made = nl.datasets.make_local_labels(60, 3, 4)
    data = nl.datasets.Dataset(made.X, made.Y)
    answers = []
    for suffix in (".npz", ".csv", ".arff", ".jsonl", ".txt"):
        path = tmp_path / f"made{suffix}"
        nl.datasets.save(data, path)
        ask("fit", path, "-o", tmp_path / "m")
        answers.append(ask("rank", tmp_path / "m", path, "--why", "--json"))
    assert set(answers) == {answers[0]}
    first = json.loads(answers[0])[0]
    assert first["id"] == 1
    carried = {str(label) for label in data.Y[[0]].indices}
    nearest = [one["neighbors"][0]["id"] for one in first["labels"] if one["label"] in carried]
    assert nearest == [1] * len(carried)


@pytest.mark.parametrize("algorithm", METHODS)
def test_every_algorithm_goes_from_a_table_to_answers(ask, here, tmp_path, algorithm):
    model = tmp_path / "m.model"
    told = json.loads(
        ask("fit", "songs.csv", "-o", model, "--algorithm", algorithm, "--thresholds", "--json")
    )
    assert told["algorithm"] == algorithm
    assert ask("predict", model, "new.csv").count("song ") == 3
    assert ask("rank", model, "new.csv", "--top", 2).count("song ") == 3
    assert "neighbors carry it" in ask("rank", model, "new.csv", "--top", 2, "--why")


def test_parameters_of_an_algorithm(ask, fail, here, tmp_path):
    model = tmp_path / "m.model"
    some = ("--algorithm", "LAMLkNN", "--set", "n_clusters=3", "smoothing=0.5")
    told = json.loads(ask("fit", "songs.csv", "-o", model, *some, "--json"))
    assert told["parameters"] == {"n_clusters": 3, "smoothing": 0.5, "counts": "paper"}
    assert nl.load(model).get_params()["n_clusters"] == 3
    printed = ask("evaluate", "songs.csv", *some, "--metric", "one_error")
    assert "LAML-kNN, n_clusters 3, smoothing 0.5, euclidean, scale none" in printed
    settings = ("--set", "fill=top", "weights=distance")
    ask("fit", "songs.csv", "-o", model, "--algorithm", "BRkNN", *settings)
    assert nl.load(model).fill == "top"
    for options, parts in (
        (("--set", "n_clusters=3"), ["--set n_clusters: MLkNN has no", "search, smoothing"]),
        (("--set", "smoothing"), ["--set", "NAME=VALUE", "'smoothing'"]),
        (("--set", "smoothing=much"), ["--set smoothing", "'much'"]),
        (("--set", "smoothing=-1"), ["--set smoothing", "-1"]),
        (("--set", "n_neighbors=0"), ["--set n_neighbors", "0"]),
    ):
        message = fail("evaluate", "songs.csv", *options)
        assert all(part in message for part in parts), message


def test_a_lazy_algorithm_does_not_search_to_learn(ask, here, tmp_path, searches):
    ask("fit", "songs.csv", "-o", tmp_path / "m", "--algorithm", "BRkNN", "--scale", "none")
    assert searches == []


def test_all_rows_as_neighbors(ask, tmp_path):
    nl.datasets.save(nl.datasets.make_local_labels(60, 3, 4), tmp_path / "few.npz")
    settings = ("--algorithm", "PositivekNN", "--set", "n_neighbors=none")
    ask("fit", tmp_path / "few.npz", "-o", tmp_path / "m", *settings)
    assert nl.load(tmp_path / "m").n_neighbors is None


def test_the_model_is_scikit_learns_pipeline(ask, here, tmp_path):
    """Scaled in the file, with the names of the features in its first step."""
    ask("fit", "songs.csv", "-o", tmp_path / "m", "--scale", "minmax", "--k", 7)
    model, songs = nl.load(tmp_path / "m"), nl.datasets.load("songs.csv")
    assert isinstance(model, Pipeline)
    assert [type(step).__name__ for _, step in model.steps] == ["MinMaxScaler", "MLkNN"]
    assert model.feature_names_in_.tolist() == songs.feature_names.tolist()
    named = pd.DataFrame(songs.X, columns=songs.feature_names)
    scaled = model[0].transform(named)
    by_hand = nl.MLkNN(n_neighbors=7).fit(scaled, songs.Y)
    assert (model.predict(named) != by_hand.predict(scaled)).nnz == 0


def test_progress_of_learning(there, monkeypatch):
    told = []

    class Noted:
        def __init__(self, what):
            assert what == "learning"

        def __enter__(self):
            return lambda *steps: told.append(steps)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(fit, "steps", Noted)
    assert run(["fit", "many.npz", "-o", "m"]) == 0
    assert told == sorted(told)
    assert told[-1] == (1500 + 188, 1500 + 188)
