from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers.plans import plan
from nearlabel.experiments.papers.preparing import prepared
from nearlabel.experiments.papers.series import Series, all_series
from nearlabel.experiments.papers.series_points import TITLES
from nearlabel.experiments.papers.stored_series import stored_series
from nearlabel.experiments.protocols import splits
from nearlabel.methods.registry import title


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(240, 5, 6, n_clusters=4)


def small(name, **setting):
    series = all_series()[name]
    return replace(series, setting={**series.setting, **setting})


def measured(series, data, progress=None):
    return series.measure(prepared(data, series.setting), progress)


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
    record = measured(series, made, lambda *steps: told.append(steps))
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
    record = measured(small("rate", k=7, rates=rates), made)
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
    record = measured(series, made)
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
    record = measured(series, made, lambda *steps: told.append(steps))
    json.dumps(record, allow_nan=False)
    assert record["x"] == [60, 120]  # the data have no 1000 items
    assert told == [(1, 2), (2, 2)]
    [panel] = record["panels"]
    assert list(panel["curves"]) == [
        "ML-kNN, with the search",
        "Mallows kNN, with the search",
        "ML-kNN, without",
        "Mallows kNN, without",
    ]
    assert all(len(values) == 2 and min(values) >= 0 for values in panel["curves"].values())


def test_a_data_set_without_a_split_of_its_own(made):
    bare = nl.datasets.Dataset(made.X, made.Y)
    series = small("clusters_corel16k001", k=5, clusters=[1], seeds=1)
    [panel] = measured(series, bare)["panels"]
    model = nl.MLkNN(n_neighbors=5)
    [[found]] = evaluate_splits(
        bare, [model], splits(bare, "holdout"), scale="minmax", convention="mulan"
    )
    assert panel["lines"] == {"ML-kNN": found.metrics["average_precision"]}


def test_methods_are_called_as_elsewhere():
    assert {name: title(name) for name in TITLES} == TITLES


def test_figures_are_made_as_the_tables_on_the_same_data():
    (experiment,) = [one for one in plan().experiments if "4" in one.tables and one.paper == "003"]
    found = all_series()
    for dataset in experiment.datasets:
        setting = found[f"clusters_{dataset}"].setting
        assert setting["split"] == experiment.splits.get(dataset, experiment.split)
        assert setting["scale"] == experiment.scale_of(dataset, "LAML-kNN")
        assert setting["convention"] == experiment.convention
        assert setting.get("nominal") == experiment.nominal.get(dataset)


def test_the_line_of_birds_is_that_of_its_table(load):
    """0.578 in Table 3: the place of a recording is a category."""
    record = measured(small("clusters_birds", clusters=[1], seeds=1), load("birds"))
    assert round(record["panels"][0]["lines"]["ML-kNN"], 3) == 0.578


def test_series_are_kept_and_measured_again_if_asked(made, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path / "data"))
    (absent,) = stored_series(["004"], results=tmp_path)
    assert (absent["reason"], absent["panels"]) == ("not in the data folder: yeast", [])
    (tmp_path / "data").mkdir()
    nl.datasets.save(made, tmp_path / "data" / "yeast.npz")
    (first,) = stored_series(["004"], results=tmp_path)
    assert first["reason"] is None
    monkeypatch.setattr(Series, "measure", lambda *_: {"name": "measured now", "panels": []})
    assert stored_series(["004"], results=tmp_path) == [first]
    assert stored_series(["004"], results=tmp_path, again=True) == [
        {"name": "measured now", "panels": []}
    ]


def test_series_whose_data_do_not_fit(made, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    nl.datasets.save(replace(made, train=None), tmp_path / "yeast.npz")
    (found,) = stored_series(["004"], results=tmp_path)
    assert "has no split of its own" in found["reason"]
    nl.datasets.save(made, tmp_path / "yeast.npz")
    for error, reason in ((MemoryError("10 GB"), "10 GB"), (ValueError("a mistake"), None)):

        def broken(*_, error=error):
            raise error

        monkeypatch.setattr(Series, "measure", broken)
        if reason is None:  # one of ours is not hidden
            with pytest.raises(ValueError, match="a mistake"):
                stored_series(["004"], results=tmp_path)
        else:
            assert stored_series(["004"], results=tmp_path)[0]["reason"] == reason


def test_limits_of_the_rate(load):
    """The 2017 paper's limits are reversed: the votes of BRkNN are at z = 0, not at infinity."""
    data = load("yeast")
    record = measured(small("rate", rates=[0.001, 7, 1000]), data)
    [panel] = record["panels"]
    small_rate, good_rate, great_rate = panel["curves"]["exp(-z d)"]
    votes = panel["lines"]["BRkNN"]
    assert votes - 0.005 < small_rate < votes  # ties of votes are broken by distance
    assert great_rate > votes + 0.02
    assert good_rate < small_rate - 0.005


def test_data_that_have_nothing_to_show_are_told(made, monkeypatch, tmp_path):
    """Fewer rows than the smallest size, and labels that no row carries."""
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    nl.datasets.save(made.rows(np.arange(60)), tmp_path / "image135.npz")
    empty = nl.datasets.Dataset(made.X, made.Y * 0, train=made.train)
    nl.datasets.save(empty, tmp_path / "emotions.npz")
    times = stored_series(["002"], results=tmp_path / "results")
    clusters = stored_series(["003"], results=tmp_path / "results")
    ours = [one for one in clusters if one["dataset"] == "emotions"]
    for found in (*times, *ours):
        assert found["panels"] == []
        assert "too few rows, or no labels" in found["reason"]
    assert not list((tmp_path / "results").glob("*"))


def test_numbers_that_are_not_defined_are_none(made):
    some = made.Y.toarray()
    some[~made.train] = 0
    found = measured(
        small("clusters_yeast", clusters=[1], seeds=1),
        nl.datasets.Dataset(made.X, some, train=made.train),
    )
    assert all(value is None for curve in found["panels"][0]["curves"].values() for value in curve)
    json.dumps(found, allow_nan=False)
