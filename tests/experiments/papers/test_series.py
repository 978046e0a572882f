from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers.series import all_series, measured
from nearlabel.experiments.protocols import splits


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(240, 5, 6, n_clusters=4)


def small(name, **setting):
    series = all_series()[name]
    return replace(series, setting={**series.setting, **setting})


def metric_of(data, model, metric, scale="minmax", convention="paper"):
    [[found]] = evaluate_splits(
        data, [model], splits(data, "official"), scale=scale, convention=convention
    )
    return found.metrics[metric]


def test_the_series_are_those_of_the_papers():
    found = all_series()
    figures = [(one.paper, one.figure, one.dataset, one.setting["k"]) for one in found.values()]
    assert ("002", "1", "image135", 10) in figures
    assert ("004", "1", "yeast", 40) in figures
    first = {dataset: k for paper, figure, dataset, k in figures if (paper, figure) == ("003", "1")}
    assert (first["emotions"], first["birds"]) == (9, 2)
    second = [dataset for paper, figure, dataset, _ in figures if (paper, figure) == ("003", "2")]
    assert len(first) == len(second) == 6
    assert all(one.name == name for name, one in found.items())
    settings = [json.dumps({"name": one.name, **one.setting}) for one in found.values()]
    assert len(set(settings)) == len(found)


def test_clusters(made):
    series = small("clusters_emotions", k=5, clusters=[1, 2, 3], seeds=2)
    told = []
    record = series.measure(made, lambda *steps: told.append(steps))
    json.dumps(record, allow_nan=False)
    assert told[-1][0] == told[-1][1] > 0
    assert (record["x"], record["x_label"]) == ([1, 2, 3], "clusters m")
    [panel] = record["panels"]
    [curve], [line] = panel["curves"].values(), panel["lines"].values()
    assert curve[0] == pytest.approx(line, abs=1e-15)  # one cluster is ML-kNN
    values = [
        metric_of(
            made,
            nl.LAMLkNN(n_neighbors=5, n_clusters=3, random_state=seed),
            "average_precision",
            convention="mulan",
        )
        for seed in range(2)
    ]
    assert curve[2] == pytest.approx(np.mean(values), abs=1e-15)
    low, high = panel["spread"]["LAML-kNN"]
    assert (low[2], high[2]) == (min(values), max(values))


def test_rates(made):
    rates = [0.1, 1.0, 10.0]
    record = small("rate", k=7, rates=rates).measure(made)
    json.dumps(record, allow_nan=False)
    [panel] = record["panels"]
    product, quotient = panel["curves"].values()
    assert list(panel["curves"]) == ["exp(-z d)", "exp(-d / z)"]
    assert quotient == product[::-1]  # the one reading is the other one with 1 / z
    assert len(set(product)) > 1
    model = nl.PositivekNN(n_neighbors=7, rate=0.1)
    assert product[0] == metric_of(made, model, "ranking_loss", convention="mulan")
    votes = metric_of(made, nl.BRkNN(n_neighbors=7), "ranking_loss", convention="mulan")
    assert panel["lines"] == {"BRkNN": votes}
    assert (record["log_x"], record["shaded"]) == (True, [0.01, 1.0])


def test_neighbors(made):
    series = small("neighbors_yeast", k=[1, 4], methods=["MLkNN", "PositivekNN"])
    record = series.measure(made)
    json.dumps(record, allow_nan=False)
    metrics = [panel["metric"] for panel in record["panels"]]
    assert metrics == ["ranking_loss", "average_precision", "coverage", "one_error"]
    for panel in record["panels"]:
        curves = panel["curves"]
        assert curves["ML-kNN"] == [
            metric_of(made, nl.MLkNN(n_neighbors=k), panel["metric"]) for k in (1, 4)
        ]
        model = nl.PositivekNN(n_neighbors=4, random_state=0)
        assert curves["PositivekNN"][1] == metric_of(made, model, panel["metric"])


def test_run_time(made):
    told = []
    series = small("run_time", k=3, sizes=[60, 120, 1000], folds=10, repeats=1)
    record = series.measure(made, lambda *steps: told.append(steps))
    json.dumps(record, allow_nan=False)
    assert record["x"] == [60, 120]  # the data have no 1000 items
    assert told == [(1, 2), (2, 2)]
    [panel] = record["panels"]
    assert list(panel["curves"]) == [
        "ML-kNN, with the search",
        "Mallows, with the search",
        "ML-kNN, without",
        "Mallows, without",
    ]
    assert all(len(values) == 2 and min(values) >= 0 for values in panel["curves"].values())


def test_a_data_set_without_a_split_of_its_own(made):
    bare = nl.datasets.Dataset(made.X, made.Y)
    series = small("clusters_corel16k001", k=5, clusters=[1], seeds=1)
    [panel] = series.measure(bare)["panels"]
    model = nl.MLkNN(n_neighbors=5)
    [[found]] = evaluate_splits(
        bare, [model], splits(bare, "holdout"), scale="minmax", convention="mulan"
    )
    assert panel["lines"] == {"ML-kNN": found.metrics["average_precision"]}


def test_data_that_are_not_there():
    def absent(name):
        raise FileNotFoundError(f"no data set {name!r}\nin the data folder")

    record = measured(all_series()["rate"], read=absent)
    assert record["reason"] == "no data set 'yeast'?in the data folder"
    assert record["panels"] == []
    assert record["dataset"] == "yeast"


def test_it_reads_the_data_set_of_the_series(made):
    asked = []

    def read(name):
        asked.append(name)
        return made

    record = measured(small("clusters_yeast", k=3, clusters=[1], seeds=1), read=read)
    assert asked == ["yeast"]
    assert record["reason"] is None


def test_limits_of_the_rate(load):
    """The 2017 paper's limits are reversed: the votes of BRkNN are at z = 0, not at infinity."""
    data = load("yeast")
    record = small("rate", rates=[0.001, 7, 1000]).measure(data)
    [panel] = record["panels"]
    small_rate, good_rate, great_rate = panel["curves"]["exp(-z d)"]
    votes = panel["lines"]["BRkNN"]
    assert abs(small_rate - votes) < 0.005  # ties of votes are broken by distance
    assert great_rate > votes + 0.02
    assert good_rate < small_rate - 0.005
