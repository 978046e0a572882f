from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers import paper_figures
from nearlabel.experiments.papers.measured_works import prepared
from nearlabel.experiments.papers.paper_figures import PLOTS, Plot, measured_figures
from nearlabel.experiments.papers.table_experiments import setup_of
from nearlabel.experiments.protocols import splits


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(240, 5, 6, n_clusters=4)


FIGURES = paper_figures.paper_figures()


def small(name, **settings):
    figure = FIGURES[name]
    return replace(figure, settings={**figure.settings, **settings})


def plotted(figure, data, progress=None):
    """The plot of a figure; checks that it can be stored and loaded."""
    plot = PLOTS[figure.kind](prepared(data, figure.data), progress, **figure.settings)
    assert Plot(**json.loads(json.dumps(asdict(plot), allow_nan=False))) == plot
    return plot


def metric_of(data, model, metric, scale="minmax", convention="paper"):
    [[found]] = evaluate_splits(
        data, [model], splits(data, "official"), scale=scale, convention=convention
    )
    return found.metrics[metric]


def test_the_figures_are_those_of_the_papers():
    figures = [
        (one.paper, one.number, one.dataset, one.settings.get("k")) for one in FIGURES.values()
    ]
    assert ("cheng-2009", "1", "image135", 10) in figures
    assert ("zhang-2017", "1", "yeast", 40) in figures
    first = {
        dataset: k for paper, figure, dataset, k in figures if (paper, figure) == ("wang-2018", "1")
    }
    assert (first["emotions"], first["birds"]) == (9, 2)
    second = [
        dataset for paper, figure, dataset, _ in figures if (paper, figure) == ("wang-2018", "2")
    ]
    assert len(first) == len(second) == 6
    assert all(one.name == name for name, one in FIGURES.items())


def test_clusters(made):
    figure = small("clusters_emotions", k=5, clusters=[1, 2, 3], seeds=2)
    told = []
    plot = plotted(figure, made, lambda *steps: told.append(steps))
    assert told[-1][0] == told[-1][1] > 0
    assert (plot.x, plot.x_label) == ([1, 2, 3], "clusters m")
    [curve], [line] = plot.curves.values(), plot.lines.values()
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
    low, high = plot.spread["LAML-kNN"]
    assert (low[2], high[2]) == (min(values), max(values))


def test_rates(made):
    rates = [0.1, 1.0, 10.0]
    plot = plotted(small("rate", k=7, rates=rates), made)
    product, quotient = plot.curves.values()
    assert list(plot.curves) == ["exp(-z d)", "exp(-d / z)"]
    assert quotient == product[::-1]  # the two readings are related by 1 / z
    assert len(set(product)) > 1
    model = nl.PositivekNN(n_neighbors=7, rate=0.1)
    assert product[0] == metric_of(made, model, "ranking_loss", convention="mulan")
    votes = metric_of(made, nl.BRkNN(n_neighbors=7), "ranking_loss", convention="mulan")
    assert plot.lines == {"BRkNN": votes}
    assert (plot.log_x, plot.shaded) == (True, [0.01, 1.0])


def test_run_time(made):
    told = []
    figure = small("run_time", k=3, sizes=[60, 120, 1000], folds=10, repeats=1)
    plot = plotted(figure, made, lambda *steps: told.append(steps))
    assert plot.x == [60, 120]  # the data have no 1000 items
    assert told == [(1, 2), (2, 2)]
    assert list(plot.curves) == [
        "ML-kNN, with the search",
        "Mallows kNN, with the search",
        "ML-kNN, without",
        "Mallows kNN, without",
    ]
    assert all(len(values) == 2 and min(values) >= 0 for values in plot.curves.values())


def test_a_data_set_without_a_split_of_its_own(made):
    bare = nl.datasets.Dataset(made.X, made.Y)
    plot = plotted(small("clusters_corel16k001", k=5, clusters=[1], seeds=1), bare)
    model = nl.MLkNN(n_neighbors=5)
    [[found]] = evaluate_splits(
        bare, [model], splits(bare, "holdout"), scale="minmax", convention="mulan"
    )
    assert plot.lines == {"ML-kNN": found.metrics["average_precision"]}


def test_figures_are_made_as_the_tables_on_the_same_data():
    setup = setup_of("wang-2018", "4")
    for dataset in setup.datasets:
        figure = FIGURES[f"clusters_{dataset}"]
        assert figure.data.split == setup.splits.get(dataset, setup.split)
        assert figure.data.scale == setup.scale_of(dataset, "LAML-kNN")
        assert figure.settings["convention"] == setup.convention
        assert list(figure.data.nominal) == setup.nominal.get(dataset, [])


def test_the_line_of_birds_is_that_of_its_table(load):
    """0.578 in Table 3: the location of a recording is a category."""
    plot = plotted(small("clusters_birds", clusters=[1], seeds=1), load("birds"))
    assert round(plot.lines["ML-kNN"], 3) == 0.578


@pytest.fixture
def measures(monkeypatch):
    """What the figure of the rate does when it is measured; an error is raised."""

    def replaced(plot):
        def measure(*_, **__):
            if isinstance(plot, Exception):
                raise plot
            return plot

        monkeypatch.setitem(PLOTS, "rate", measure)

    return replaced


def test_figures_are_stored_and_measured_again_if_asked(made, tmp_path, monkeypatch, measures):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path / "data"))
    (absent,) = measured_figures(["zhang-2017"], results=tmp_path)
    assert (absent.reason, absent.plot) == ("not in the data folder: yeast", None)
    (tmp_path / "data").mkdir()
    nl.datasets.save(made, tmp_path / "data" / "yeast.npz")
    (first,) = measured_figures(["zhang-2017"], results=tmp_path)
    assert (first.reason, first.plot.metric) == ("", "ranking_loss")
    newer = Plot("ranking_loss", [1], "rate z", {"a": [0.5]})
    measures(newer)
    (stored,) = measured_figures(["zhang-2017"], results=tmp_path)
    assert stored.plot == first.plot
    (again,) = measured_figures(["004"], results=tmp_path, again=True)
    assert again.plot == newer


def test_figures_whose_data_do_not_fit(made, tmp_path, monkeypatch, measures):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    nl.datasets.save(replace(made, train=None), tmp_path / "yeast.npz")
    (found,) = measured_figures(["zhang-2017"], results=tmp_path)
    assert "official" in found.reason
    nl.datasets.save(made, tmp_path / "yeast.npz")
    measures(MemoryError("10 GB"))
    (found,) = measured_figures(["zhang-2017"], results=tmp_path)
    assert found.reason == "10 GB"
    measures(ValueError("a mistake"))  # one of ours is not hidden
    with pytest.raises(ValueError, match="a mistake"):
        measured_figures(["zhang-2017"], results=tmp_path)


def test_limits_of_the_rate(load):
    """The paper's limits are reversed: the votes of BRkNN are at z = 0, not at infinity."""
    data = load("yeast")
    plot = plotted(small("rate", rates=[0.001, 7, 1000]), data)
    small_rate, good_rate, great_rate = plot.curves["exp(-z d)"]
    votes = plot.lines["BRkNN"]
    assert votes - 0.005 < small_rate < votes  # ties of votes are broken by distance
    assert great_rate > votes + 0.02
    assert good_rate < small_rate - 0.005


def test_data_without_results_are_reported(made, monkeypatch, tmp_path):
    """Fewer rows than the smallest size, and labels that no row carries."""
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    few = {"run_time": FIGURES["run_time"]}
    few["clusters_emotions"] = small("clusters_emotions", clusters=[1, 2], seeds=1)
    monkeypatch.setattr(paper_figures, "paper_figures", lambda: few)
    nl.datasets.save(made.rows(np.arange(60)), tmp_path / "image135.npz")
    empty = nl.datasets.Dataset(made.X, made.Y * 0, train=made.train)
    nl.datasets.save(empty, tmp_path / "emotions.npz")
    found = measured_figures(results=tmp_path / "results")
    assert [one.figure.name for one in found] == list(few)
    for one in found:
        assert one.plot is None
        assert "too few rows, or no labels" in one.reason
    assert not list((tmp_path / "results").glob("*"))


def test_undefined_numbers_are_None(made):
    some = made.Y.toarray()
    some[~made.train] = 0
    data = nl.datasets.Dataset(made.X, some, train=made.train)
    plot = plotted(small("clusters_yeast", clusters=[1], seeds=1), data)
    assert all(value is None for curve in plot.curves.values() for value in curve)
    assert not plot.has_points
