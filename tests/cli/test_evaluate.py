"""evaluate."""

from __future__ import annotations

import csv
import io
import json

import numpy as np

import nearlabel as nl


def test_evaluate(ask, fail, here, tmp_path):
    told = json.loads(ask("evaluate", "songs.csv", "--k", 5, 10, "--scale", "standard", "--json"))
    assert (told["split"], told["items"], told["convention"]) == ("cv10", 600, "paper")
    assert [result["k"] for result in told["results"]] == [5, 10]
    assert set(told["results"][0]["metrics"]) == set(nl.metrics.METRICS)
    assert 0 < told["results"][0]["std"]["ranking_loss"] < 0.1
    again = json.loads(ask("evaluate", "songs.csv", "--k", 10, "--scale", "standard", "--json"))
    assert again["results"][0] == told["results"][1]  # one search for all gives the same
    other = json.loads(ask("evaluate", "songs.csv", "--seed", 1, "--scale", "standard", "--json"))
    assert other["results"][0] != told["results"][1]
    half = ["evaluate", "songs.csv", "--split", "holdout", "--test-size", 0.5]
    table = ask(*half, "--metric", "ranking_loss", "coverage")
    assert "300 training items, 300 test items" in table
    assert [line.split()[0] for line in table.splitlines()[-2:]] == ["ranking_loss", "coverage"]
    ask(*half, "-o", tmp_path / "e.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "e.csv").read_text())))
    assert len(rows) == 1
    assert f"{float(rows[0]['coverage']):.4f}" in table
    for options in (
        ("--metric", "accuracy"),
        ("--split", "official"),
        ("--convention", "sklearn", "--metric", "one_error"),
        ("--split", "loo", "--stratified"),
        ("--test-size", "2"),
    ):
        split = () if "--split" in options else ("--split", "holdout")
        message = fail("evaluate", "songs.csv", *split, *options)
        assert options[0] in message
        assert options[1].removeprefix("--") in message


def test_evaluate_is_what_the_library_computes(ask, tmp_path):
    data = nl.datasets.make_local_labels(200, 4, 6)
    nl.datasets.save(data, tmp_path / "made.npz")
    told = json.loads(ask("evaluate", tmp_path / "made.npz", "--k", 7, "--json"))
    train, test = data.rows(data.train), data.rows(data.test)
    model = nl.MLkNN(n_neighbors=7).fit(train.X, train.Y)
    expected = nl.metrics.evaluate(test.Y, model.label_scores(test.X), model.predict(test.X))
    assert told["split"] == "official"
    assert told["results"][0]["metrics"] == expected
    assert told["results"][0]["std"] is None


def test_per_label(ask, here, tmp_path):
    songs, rows = nl.datasets.load("songs.csv"), tmp_path / "labels.csv"
    command = ("evaluate", "songs.csv", "--split", "loo", "--k", 5, 20, "--per-label")
    told = json.loads(ask(*command, "-o", rows, "--json"))
    model = nl.MLkNN(n_neighbors=5).fit(songs.X, songs.Y)
    near = nl.neighbor_graph(songs.X, 5)
    scores = model._left_out_scores(near, songs.X, np.arange(600))
    expected = nl.metrics.per_label(songs.Y, scores, model._decide(scores, near))
    order = np.argsort(expected.f1, kind="stable")
    labels = told["results"][0]["labels"]
    assert [one["label"] for one in labels] == songs.label_names[order].tolist()
    for name in ("support", "precision", "recall", "f1", "average_precision", "auc"):
        values = np.array([one[name] for one in labels], float)  # None as nan
        np.testing.assert_array_equal(values, getattr(expected, name)[order])
    assert "macro_auc" in told["results"][0]["metrics"]
    written = list(csv.DictReader(io.StringIO(rows.read_text())))
    assert [(row["k"], row["label"]) for row in written][:12] == [
        ("5", one["label"]) for one in labels
    ]
    printed = ask(*command)
    first = printed[printed.index("k = 5, per label") :].splitlines()[3].split("   ")[0]
    assert first.strip() == labels[0]["label"]
    assert max(map(len, printed.splitlines())) <= 80


def test_per_label_over_folds_where_it_is_defined(ask, tmp_path, monkeypatch):
    lines = [f"{row},{'a' if row % 2 else 'b'}{';rare' if row == 7 else ''}" for row in range(40)]
    path = tmp_path / "rare.csv"
    path.write_text("x,tags\n" + "\n".join(lines) + "\n")
    told = json.loads(ask("evaluate", path, "--k", 3, "--per-label", "--json"))
    by_name = {one["label"]: one for one in told["results"][0]["labels"]}
    assert [by_name[name]["support"] for name in ("a", "b", "rare")] == [20, 20, 1]
    assert by_name["rare"]["precision"] is None
    assert by_name["rare"]["recall"] == 0
    monkeypatch.setattr("nearlabel.cli.evaluate._LABELS_SHOWN", 2)
    printed = ask("evaluate", path, "--k", 3, "--per-label")
    assert printed.splitlines()[-1].startswith("… 1 more label")


def test_long_names_of_labels_make_room_for_numbers(ask, tmp_path):
    names = [f"{kind} of a label whose name is longer than most others" for kind in "ab"]
    path = tmp_path / "long.csv"
    path.write_text("x,tags\n" + "".join(f"{row},{names[row % 2]}\n" for row in range(20)))
    printed = ask("evaluate", path, "--k", 3, "--per-label")
    _, _, table = printed.partition("per label\n")
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("\n") == 4  # one block: all numbers of a label are on its line
    assert all(f"{name[:10]}" in table for name in names)
    assert table.count("…") == 2


def test_published_digits(ask, load):
    """The 2017 paper's emotions row: min-max scaling, k = 8, Mulan's convention."""
    load("emotions")
    options = ["--k", 8, "--scale", "minmax", "--convention", "mulan", "--json"]
    told = json.loads(ask("evaluate", "emotions", *options))
    metrics = told["results"][0]["metrics"]
    assert round(metrics["one_error"], 3) == 0.252
    assert round(metrics["coverage"], 3) == 1.787
    assert round(metrics["ranking_loss"], 3) == 0.145
    assert round(metrics["average_precision"], 3) == 0.818


def test_unpublished_counts_are_reported(ask, here):
    command = ("evaluate", "songs.csv", "--split", "holdout", "--set")
    assert "\nML-kNN, counts even, smoothing 1," in ask(*command, "counts=even")
    assert "\nML-kNN, smoothing 1," in ask(*command, "counts=paper")


def test_metrics_that_are_not_defined(ask, tmp_path):
    path = tmp_path / "same.csv"
    path.write_text("x,tags\n" + "".join(f"{row},a\n" for row in range(30)))
    told = json.loads(ask("evaluate", path, "--k", 3, "--json"))
    assert told["results"][0]["metrics"]["ranking_loss"] is None
    assert told["results"][0]["metrics"]["hamming_loss"] == 0
    ask("evaluate", path, "--k", 3, "-o", tmp_path / "e.jsonl")
    assert json.loads((tmp_path / "e.jsonl").read_text().splitlines()[0])["ranking_loss"] is None
    assert "not defined" in ask("evaluate", path, "--k", 3)


def test_numbers_are_whole_on_a_narrow_terminal(ask, here, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal to rich
    monkeypatch.setenv("COLUMNS", "40")
    told = json.loads(ask("evaluate", "songs.csv", "--k", 5, 10, 20, "--json"))
    printed = ask("evaluate", "songs.csv", "--k", 5, 10, 20)
    for one in told["results"]:
        for name, mean in one["metrics"].items():
            assert f"{mean:.4f} ±{one['std'][name]:.4f}" in printed


def test_tables_of_many_columns_stay_within_80(ask, here):
    wide = ask("evaluate", "songs.csv", "--k", 1, 2, 3, 4, 5, 6, 7)
    assert max(map(len, wide.splitlines())) <= 80
    assert all(wide.count(f" k = {k}\n") + wide.count(f" k = {k} ") == 1 for k in range(1, 8))
