"""compare."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.methods.registry import METHODS


def test_all_algorithms_share_two_searches(ask, here, searches):
    found = json.loads(ask("compare", "songs.csv", "--scale", "standard", "--json"))
    assert [one["algorithm"] for one in found["results"]] == list(METHODS)
    rows = [rows for rows, _ in searches]
    assert rows[:2] == ["training", 200]
    assert "training" not in rows[2:]
    # Only the balanced one searches by itself, within each class.
    assert "BalancedkNN" in METHODS
    without = [name for name in METHODS if name != "BalancedkNN"]
    searches.clear()
    ask("compare", "songs.csv", "--scale", "standard", "--algorithm", *without)
    assert [rows for rows, _ in searches] == ["training", 200]


def test_each_row_agrees_with_evaluate(ask, here):
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


def test_an_algorithm_that_refuses_the_data_is_noted(ask, here, monkeypatch):
    def refuse(self, *_, **__):
        raise MemoryError("it would need 9,999 GiB")

    monkeypatch.setattr(nl.BRkNN, "_scores", refuse)
    printed = ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN")
    assert "BRkNN was left out: it would need 9,999 GiB" in printed
    found = json.loads(ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN", "--json"))
    assert found["results"][1]["refusal"] == "it would need 9,999 GiB"
    assert found["results"][1]["metrics"] == {}


@pytest.mark.parametrize("columns", [100, 60, 40, 20])
def test_a_narrow_terminal_has_all_digits(ask, here, monkeypatch, columns):
    command = ("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN")
    monkeypatch.setenv("COLUMNS", "1000")
    wide = re.findall(r"\*?\d\.\d{4}\b", ask(*command))
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = ask(*command)
    assert sorted(re.findall(r"\*?\d\.\d{4}\b", printed)) == sorted(wide)
    assert len(wide) == 10
    table = [line for line in printed.splitlines() if re.match("ML-kNN|BRkNN|─| {4}", line)]
    assert max(map(len, table)) <= max(columns, len("ML-kNN   coverage ↓"))
    assert len(table) == 4 * {100: 1, 60: 2, 40: 3, 20: 6}[columns]


def test_notes_are_printed_once(here, capsys):
    assert run(["compare", "songs.csv", "--k", "500", "--algorithm", "MLkNN", "BRkNN"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "--k 500" in line]
    assert len(notes) == 1


def test_other_learners_are_compared_with_ours(ask, here, tmp_path, monkeypatch):
    from nearlabel.experiments.others import other_methods

    some = {name: other_methods.OTHERS[name] for name in ("KNeighbors",)}
    monkeypatch.setattr(other_methods, "OTHERS", some)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    figure, table = tmp_path / "compared.svg", tmp_path / "table.csv"
    words = ("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN", "--others", "--k", 5, 10)
    printed = ask(*words, "--figure", figure, "-o", table)
    assert "4 algorithms, tuned by average_precision on the training items" in printed
    for name in ("ML-kNN", "BRkNN", "blend", "kNN, scikit-learn"):
        assert re.search(rf"^{re.escape(name)} .*[*≈]?0\.\d{{4}} ±0\.\d{{3}}", printed, re.M), name
        assert re.search(rf"^  {re.escape(name)}: ", printed, re.M), name
    assert "* the best; ≈ not significantly worse: paired t-test over test items" in printed
    drawn = figure.read_text()
    assert "<svg" in drawn
    with table.open(encoding="utf-8") as file:
        rows = {row["algorithm"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["MLkNN", "BRkNN", "AutoNeighbors", *some]
    assert rows["KNeighbors"]["chosen"].startswith("scale ")

    def nothing_runs(*_):
        raise AssertionError("a kept run was made again")

    monkeypatch.setattr("nearlabel.experiments.others.other_runs._in_process", nothing_runs)
    found = json.loads(ask(*words, "--json"))["results"]
    for one in found:
        assert one["metrics"]["average_precision"] == float(
            rows[one["algorithm"]]["average_precision"]
        )
        assert one["standard_error"]["average_precision"] > 0
        assert 0 <= one["p_value"]["average_precision"] <= 1
        assert one["p_value"]["micro_f1"] in (None, 1.0)


def test_results_of_the_blend(ask, here):
    words = ("compare", "songs.csv", "--algorithm", "MLkNN", "--best", "--json")
    mine, best = json.loads(ask(*words))["results"]
    assert best["algorithm"] == "AutoNeighbors"
    assert best["chosen"][0]["scale"]
    assert best["metrics"]["average_precision"] > mine["metrics"]["average_precision"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--others", "--split", "loo"),
            "--split loo: --best and --others need held-out test items",
        ),
        (("--minutes", "0", "--others"), "--minutes must be a number above 0; got '0'"),
        (("--figure", "x.gif"), "a figure must end in .png, .svg, .pdf; got 'x.gif'"),
        (("--figure", "no/x.png"), "--figure no/x.png: the folder "),
    ],
)
def test_conflicting_options_are_refused(here, capsys, words, message):
    assert run(["compare", "songs.csv", *words]) != 0
    assert message in capsys.readouterr().err
