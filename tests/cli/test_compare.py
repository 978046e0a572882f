"""compare, and the options about how it learns."""

from __future__ import annotations

import csv
import json
from typing import get_args

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.cli.method_options import TITLES, Algorithm
from nearlabel.methods.registry import METHODS
from nearlabel.search import ExactIndex


def test_the_names_of_the_help_are_those_of_the_algorithms():
    assert list(TITLES) == list(get_args(Algorithm)) == list(METHODS)


@pytest.fixture
def searches(monkeypatch):
    """Numbers of rows of each search that is done."""
    done = []
    search = ExactIndex.graph

    def counted(self, k, queries=None, **how):
        done.append("training" if queries is None else queries.shape[0])
        return search(self, k, queries, **how)

    monkeypatch.setattr(ExactIndex, "graph", counted)
    return done


def test_all_algorithms_share_two_searches(ask, here, searches):
    found = json.loads(ask("compare", "songs.csv", "--scale", "standard", "--json"))
    assert [one["algorithm"] for one in found["results"]] == list(METHODS)
    assert searches[:2] == ["training", 200]
    own = [rows for rows in searches[2:] if rows == "training"]
    assert not own
    # Only the balanced one searches by itself, within each class.
    assert "BalancedkNN" in METHODS
    without = [name for name in METHODS if name != "BalancedkNN"]
    searches.clear()
    ask("compare", "songs.csv", "--scale", "standard", "--algorithm", *without)
    assert searches == ["training", 200]


def test_each_row_is_what_evaluate_says(ask, here):
    found = json.loads(ask("compare", "songs.csv", "--k", 7, "--split", "holdout", "--json"))
    for one in found["results"]:
        name = one["algorithm"]
        options = ("--algorithm", name, "--k", 7, "--split", "holdout")
        (alone,) = json.loads(ask("evaluate", "songs.csv", *options, "--json"))["results"]
        for metric, value in one["metrics"].items():
            assert alone["metrics"][metric] == value, (name, metric)
        assert one["seconds"] >= 0


def test_the_best_of_each_column_is_marked(ask, here, tmp_path):
    table = tmp_path / "table.csv"
    options = ("--metric", "ranking_loss", "macro_f1", "-o", table)
    printed = ask("compare", "songs.csv", *options)
    assert max(len(line) for line in printed.splitlines() if str(table) not in line) <= 80
    with table.open(encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert [row["algorithm"] for row in cells] == list(METHODS)
    for metric, best in (("ranking_loss", np.argmin), ("macro_f1", np.argmax)):
        values = [round(float(row[metric]), 4) for row in cells]
        winner = values[int(best(values))]
        assert f"*{winner:.4f}" in printed
    assert printed.count("*") == 1 + sum(
        values.count(best(values))
        for values, best in (
            ([round(float(row["ranking_loss"]), 4) for row in cells], min),
            ([round(float(row["macro_f1"]), 4) for row in cells], max),
        )
    )


def test_ten_parts_and_cuts(ask, here):
    some = ("--algorithm", "MLkNN", "BRkNN", "--metric", "macro_f1")
    own = json.loads(ask("compare", "songs.csv", *some, "--split", "cv10", "--json"))
    cuts = json.loads(
        ask("compare", "songs.csv", *some, "--split", "cv10", "--thresholds", "--json")
    )
    for before, after in zip(own["results"], cuts["results"], strict=True):
        assert before["std"]["macro_f1"] > 0
        assert after["metrics"]["macro_f1"] > before["metrics"]["macro_f1"]
    assert "means of 10 parts" in ask("compare", "songs.csv", *some, "--split", "cv10")


def test_an_algorithm_that_refuses_is_noted(ask, here, monkeypatch):
    def refuse(self, *_, **__):
        raise MemoryError("it would need 9,999 GiB")

    monkeypatch.setattr(nl.BRkNN, "_scores", refuse)
    printed = ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN")
    assert "BRkNN was left out: it would need 9,999 GiB" in printed
    found = json.loads(ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN", "--json"))
    assert found["results"][1]["refusal"] == "it would need 9,999 GiB"
    assert found["results"][1]["metrics"] == {}


@pytest.mark.parametrize("algorithm", METHODS)
def test_every_algorithm_goes_from_a_table_to_answers(ask, here, tmp_path, algorithm):
    model = tmp_path / "m.model"
    told = json.loads(
        ask("fit", "songs.csv", "-o", model, "--algorithm", algorithm, "--thresholds", "--json")
    )
    assert told["algorithm"] == algorithm
    assert ask("predict", model, "new.csv").count("song ") == 3
    assert ask("rank", model, "new.csv", "--top", 2).count("song ") == 3
    assert "neighbors: song" in ask("rank", model, "new.csv", "--top", 2, "--why")


def test_parameters_of_an_algorithm(ask, fail, here, tmp_path):
    model = tmp_path / "m.model"
    some = ("--algorithm", "LAMLkNN", "--set", "n_clusters=3", "smoothing=0.5")
    told = json.loads(ask("fit", "songs.csv", "-o", model, *some, "--json"))
    assert told["parameters"] == {"n_clusters": 3, "smoothing": 0.5}
    assert nl.load(model).get_params()["n_clusters"] == 3
    printed = ask("evaluate", "songs.csv", *some, "--metric", "one_error")
    assert "LAML-kNN, n_clusters 3, smoothing 0.5, euclidean, scale none" in printed
    ask(
        "fit",
        "songs.csv",
        "-o",
        model,
        "--algorithm",
        "BRkNN",
        "--set",
        "fill=top",
        "weights=distance",
    )
    assert nl.load(model).fill == "top"
    for options, message in (
        (
            ("--set", "n_clusters=3"),
            "MLkNN has no parameter 'n_clusters'; it has n_neighbors, smoothing",
        ),
        (("--algorithm", "BRkNN", "--smoothing", 2), "BRkNN has no parameter 'smoothing'"),
        (("--set", "smoothing"), "--set takes NAME=VALUE, such as n_clusters=10; got 'smoothing'"),
        (("--set", "smoothing=much"), "smoothing must be a number from 0 to 1e+100; got 'much'"),
    ):
        assert message in fail("evaluate", "songs.csv", *options)


def test_a_lazy_algorithm_does_not_search_to_learn(ask, here, tmp_path, searches):
    ask("fit", "songs.csv", "-o", tmp_path / "m", "--algorithm", "BRkNN")
    assert searches == []


def test_all_rows_as_neighbors(ask, here, tmp_path):
    model = tmp_path / "m.model"
    ask("fit", "songs.csv", "-o", model, "--algorithm", "PositivekNN", "--set", "n_neighbors=none")
    assert nl.load(model).n_neighbors is None


def test_notes_come_once(here, capsys):
    assert run(["compare", "songs.csv", "--k", "500", "--algorithm", "MLkNN", "BRkNN"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "n_neighbors=500" in line]
    assert len(notes) == 1
