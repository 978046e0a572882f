"""Reproduction of the published tables, on small data sets under the names of the real ones."""

import os
import shutil
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from lookalikes import TRAINING_ROWS, make_baselines_quick, write_lookalikes
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import ALGORITHMS, algorithm
from nearlabel.common.file_locks import try_lock
from nearlabel.experiments import splits
from nearlabel.experiments.papers.prepared_data import prepared
from nearlabel.experiments.papers.printed_tables import all_cells, tables_of
from nearlabel.experiments.papers.table_experiments import (
    METRICS,
    Experiment,
    experiment,
    setup_of,
    table_setups,
)
from nearlabel.experiments.papers.table_reproduction import reproduce
from nearlabel.experiments.papers.verdicts import Verdict, reason_off
from nearlabel.search import ExactIndex

SOME = ("birds", "emotions", "image", "scene", "yeast")
FIELDS = (
    *("paper", "table", "dataset", "algorithm", "metric"),
    *("published", "std", "ours", "verdict", "reason"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_lookalikes(folder, *SOME)
    return folder


@pytest.fixture(autouse=True)
def data_folder(folder, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(folder))
    make_baselines_quick(monkeypatch)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of results that the tests of this file share, in all processes of pytest-xdist."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return tmp_path_factory.mktemp("results")
    folder = tmp_path_factory.getbasetemp().parent / "results of all papers"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def found(kept):
    """Everything, measured by the first test that asks for it."""
    with (kept / "lock").open("ab", buffering=0) as file:
        while not try_lock(file):
            time.sleep(0.1)
        return reproduce(results=kept)


@pytest.fixture
def searches(monkeypatch):
    """Numbers of rows of each search that is done; None for those of the rows themselves."""
    done = []
    search = ExactIndex.graph

    def counted(self, k, queries=None, **how):
        done.append(None if queries is None else queries.shape[0])
        return search(self, k, queries, **how)

    monkeypatch.setattr(ExactIndex, "graph", counted)
    return done


def records_of(found):
    return [one.record() for one in found.cells]


def only(found, **wanted):
    return [record for record in records_of(found) if wanted.items() <= record.items()]


def planned(paper, table, dataset, algorithm):
    return experiment(setup_of(paper, table), dataset, algorithm)


def measurements(one, data):
    return one.measurements(prepared(data, one))


def test_every_published_cell_has_a_record(found):
    assert len(found.cells) == 738 + 54 + 60
    for cell, compared in zip(all_cells(), found.cells, strict=True):
        record = compared.record()
        assert tuple(record)[: len(FIELDS)] == FIELDS
        place = ("paper", "table", "dataset", "algorithm", "metric", "printed")
        assert [record[key] for key in place] == [getattr(cell, key) for key in place]
        assert record["verdict"] in list(Verdict)
        assert (record["verdict"] == "not run") == (record["ours"] is None)
        assert (record["reason"] is None) == compared.verdict.agrees
        assert (record["verdict"] == "within std") <= (cell.std is not None)
        assert (record["verdict"] == "close") <= (cell.std is None)
        assert (record["published"] is None) == (cell.printed is None)
        if record["verdict"] == "off":
            assert "docs/errata.md" in record["reason"]


def test_what_can_be_run_is_run(found):
    ran = {one.cell.dataset for one in found.cells if one.ours is not None}
    assert ran == set(SOME)
    for one in found.cells:
        record = one.record()
        if record["dataset"] in SOME and record["printed"] is not None:
            # A cluster of the small data may have no row with a label.
            is_mean = record["metric"] in ("count_with_label", "count_without_label")
            assert record["ours"] is not None or is_mean, record
    means = only(found, paper="wang-2018", table="1")
    assert sum(record["ours"] is not None for record in means) > 40
    reasons = Counter(record["reason"] for record in only(found, verdict="not run"))
    assert reasons["the paper has no number here"] == 17
    assert reasons["not in the data folder: enron"] == 20
    lost = sum(reasons[text] for text in reasons if "data are not available" in text)
    assert lost == 20 + 16 + 6
    average = only(found, dataset="yahoo_average", algorithm="ML-KNN")
    assert len({record["reason"] for record in average}) == 1
    assert average[0]["reason"].startswith("not in the data folder: yahoo_arts, yahoo_business, ")
    assert reasons["not in the data folder: natural_scenes"] == 54
    assert {"yahoo_arts", "enron", "natural_scenes"} <= set(found.absent)
    assert not set(SOME) & set(found.absent)


def test_a_second_run_only_reads(found, kept, searches):
    again = reproduce(results=kept)
    assert records_of(again) == records_of(found)
    assert (again.measured, searches) == (0, [])
    assert again.read == found.measured + found.read > 20


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    run, ran = Experiment.measurements, []

    def interrupted(one, *rest, **more):
        if ran:
            raise KeyboardInterrupt
        ran.append(one)
        return run(one, *rest, **more)

    wanted = (["zhang-2007", "zhang-2005"], ["1", "I"])
    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "measurements", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce(*wanted, results=tmp_path)
    rest = reproduce(*wanted, results=tmp_path)
    assert (rest.read, rest.measured) == (1, 1)
    again = reproduce(*wanted, results=tmp_path, again=True)
    assert (again.read, again.measured) == (0, 2)
    assert records_of(again) == records_of(rest)


def test_other_data_are_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    write_lookalikes(tmp_path, "image", "yeast")
    first = reproduce(["zhang-2007"], ["1", "5"], results=tmp_path)
    write_lookalikes(tmp_path, "yeast")
    second = reproduce(["zhang-2007"], ["1", "5"], results=tmp_path)
    assert (first.measured, second.measured, second.read) == (5, 1, 4)
    one, other = (only(some, table="1", metric="coverage")[0]["ours"] for some in (first, second))
    assert one != other


def test_table_1_of_2007_takes_one_search(tmp_path, searches):
    """Five numbers of neighbors, ten folds, five metrics."""
    found = reproduce(["zhang-2007"], ["1"], results=tmp_path)
    assert [len(found.cells), found.measured] == [25, 1]
    assert searches[0] is None
    # Held-out rows are hidden; rows that lose too many neighbors are searched again.
    assert searches.count(None) == 1
    assert sum(filter(None, searches)) < 240


def five(metrics):
    return [metrics[name] for name in METRICS]


def test_folds_are_those_of_separate_fits(found):
    data = nl.datasets.load("yeast")
    table = only(found, paper="zhang-2007", table="1")
    for k in (8, 12):
        records = table[5 * (k - 8) : 5 * (k - 7)]
        assert {record["parameters"]["n_neighbors"] for record in records} == {k}
        each = []
        for train, test, _ in splits(data, "cv10", seed=0):
            model = nl.MLkNN(n_neighbors=k).fit(data.X[train], data.Y[train])
            new = data.X[test]
            told = nl.metrics.evaluate(data.Y[test], model.label_scores(new), model.predict(new))
            each.append(five(told))
        assert np.allclose([r["ours"] for r in records], np.mean(each, axis=0), atol=1e-12)
        assert np.allclose([r["ours_std"] for r in records], np.std(each, axis=0, ddof=1))
        assert all(r["setting"]["split"] == "cv10" for r in records)


def test_official_split_raw_and_by_convention(found):
    data = nl.datasets.load("yeast")
    seen, new = data.X[data.train], data.X[~data.train]
    model = nl.MLkNN(n_neighbors=7).fit(seen, data.Y[data.train])
    told = nl.metrics.evaluate(
        data.Y[~data.train], model.label_scores(new), model.predict(new), "lamda"
    )
    records = [
        r for r in only(found, paper="zhang-2005") if r["parameters"].get("n_neighbors") == 7
    ]
    assert [record["ours"] for record in records] == five(told)
    assert {record["ours_std"] for record in records} == {None}


def test_only_rows_with_several_labels():
    data = nl.datasets.load("image")
    one = planned("zhang-2007", "7", "image", "ML-KNN")
    several = data.rows(np.asarray(data.Y.sum(axis=1)).ravel() >= 2)
    assert 0 < len(several) < len(data)
    plain = replace(one, rows="all")
    assert measurements(one, data) == measurements(plain, several)
    assert measurements(one, data) != measurements(plain, data)


def test_coverage_as_a_share():
    data = nl.datasets.load("emotions")
    share = planned("wang-2018", "3", "emotions", "BRkNN")
    assert share.coverage == "share"
    labels = replace(share, coverage="labels")
    (divided,), (plain,) = (measurements(one, data) for one in (share, labels))
    assert divided.metrics["coverage"] == [plain.metrics["coverage"][0] / 6]
    assert divided.metrics["one_error"] == plain.metrics["one_error"]


@pytest.mark.parametrize(
    ("paper", "table", "algorithm"),
    [
        ("wang-2018", "3", "ML-kNN"),
        # The same code with estimators that take longer.
        pytest.param("wang-2018", "3", "LAML-kNN", marks=pytest.mark.slow),
        pytest.param("zhang-2017", "1", "positive-sample", marks=pytest.mark.slow),
    ],
)
def test_parameters_are_chosen_by_the_training_rows(paper, table, algorithm):
    """By leave-one-out: different test rows give the same parameters."""
    data, one = nl.datasets.load("emotions"), planned(paper, table, "emotions", algorithm)
    (run,) = measurements(one, data)
    for name, values in one.grid.items():
        assert run.parameters[name] in values
    X = data.X.copy()
    X[TRAINING_ROWS:] *= 100
    (other,) = measurements(one, replace(data, X=X))
    assert other.parameters == run.parameters
    assert other.metrics != run.metrics
    Y = data.Y.toarray()
    Y[:TRAINING_ROWS] = Y[:TRAINING_ROWS][::-1]
    (shuffled,) = measurements(one, replace(data, Y=sparse.csr_array(Y)))
    assert shuffled.parameters != run.parameters


def test_nominal_features_are_at_distance_0_or_1():
    data, setup = nl.datasets.load("birds"), planned("wang-2018", "3", "birds", "ML-kNN")
    ready, train = prepared(data, setup), np.flatnonzero(data.train)
    assert ready.scale == "none"  # it is done
    scaled = MinMaxScaler().fit(data.X[train, :4]).transform(data.X[:, :4])
    for first, second in ((0, 1), (0, 3), (5, 7)):
        differ = data.X[first, 4] != data.X[second, 4]
        squares = np.sum((scaled[first] - scaled[second]) ** 2) + differ
        distance = np.sum((ready.data.X[first] - ready.data.X[second]) ** 2)
        assert distance == pytest.approx(squares)
    with pytest.raises(ValueError, match="feature 'place'"):
        prepared(data, replace(setup, nominal=("place",)))


def test_an_average_is_that_of_all_its_data_sets(tmp_path, monkeypatch):
    (yahoo,) = [one for one in table_setups() if one.average]
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    write_lookalikes(tmp_path, *yahoo.datasets)
    records = only(reproduce(["zhang-2007"], ["12"], results=tmp_path), algorithm="ML-KNN")
    *each, average = [record["ours"] for record in records]
    assert len(each) == 11
    assert average == pytest.approx(np.mean(each), abs=1e-12)
    (tmp_path / "yahoo_health.npz").unlink()
    records = only(reproduce(["zhang-2007"], ["12"], results=tmp_path), algorithm="ML-KNN")
    assert [record["reason"] for record in records if record["ours"] is None] == (
        ["not in the data folder: yahoo_health"] * 2
    )


def test_data_that_do_not_fit_are_not_run_and_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    (tmp_path / "yeast.npz").write_bytes(b"nonsense")
    (reason,) = {one.reason for one in reproduce(["zhang-2005"], ["I"], results=tmp_path).cells}
    assert "yeast.npz: " in reason.text
    data = nl.datasets.make_local_labels(60, 3, 5)
    nl.datasets.save(replace(data, train=None), tmp_path / "yeast.npz")
    found = reproduce(["zhang-2005"], ["I"], results=tmp_path)
    assert "official" in found.cells[0].reason.text
    # This is not stored as a result: other data are tried again.
    assert found.measured == 0


def test_labels_that_are_not_there_are_missed_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    data = nl.datasets.make_local_labels(60, 3, 6)
    nl.datasets.save(data, tmp_path / "scene.npz")
    (reason,) = {one.reason for one in reproduce(["wang-2018"], ["1"], results=tmp_path).cells}
    assert "label 'Urban'" in reason.text


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_mistake_of_ours_is_no_reason(tmp_path, monkeypatch, error):
    def broken(*_, **__):
        raise error("a mistake")

    monkeypatch.setattr(Experiment, "measurements", broken)
    with pytest.raises(error, match="a mistake"):
        reproduce(["zhang-2005"], ["I"], results=tmp_path)


def test_what_does_not_fit_in_memory_is_not_run(tmp_path, monkeypatch):
    def too_much(*_, **__):
        raise MemoryError("10 GB are needed")

    monkeypatch.setattr(Experiment, "measurements", too_much)
    found = reproduce(["zhang-2005"], ["I"], results=tmp_path)
    assert {one.reason.text for one in found.cells} == {"10 GB are needed"}
    assert found.measured == 0


def test_papers_and_tables_by_name(kept):
    found = reproduce(["zhang-2005", "cheng-2009"], ["2", "I"], results=kept)
    places = {(one.cell.paper, one.cell.table) for one in found.cells}
    assert places == {("zhang-2005", "I"), ("cheng-2009", "2")}
    assert tables_of("wang-2018") == ["1", "3", "4"]
    for arguments, message in (
        ((["005"],), "paper.*zhang-2007.*'005'"),
        (
            (["zhang-2005", "zhang-2017"], ["3"]),
            "table.*zhang-2005: I, II; zhang-2017: 1, 2, 2-p.*'3'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            reproduce(*arguments, results=kept)


@pytest.mark.parametrize(
    ("paper", "tables", "count"), [("zhang-2007", ["1", "5"], 5), ("zhang-2017", ["1"], 5)]
)
def test_progress_goes_from_nothing_to_all(tmp_path, folder, monkeypatch, paper, tables, count):
    for name in ("emotions", "image", "yeast")[: 3 if paper == "zhang-2007" else 1]:
        shutil.copy(folder / f"{name}.npz", tmp_path)
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    told = []
    reproduce([paper], tables, results=tmp_path, progress=lambda *step: told.append(step))
    assert told[0] == (0, 1000 * count)
    assert told[-1] == (1000 * count, 1000 * count)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("paper", "dataset", "algorithm", "parameters", "anchor"),
    [
        ("cheng-2009", "image135", "ML-kNN", {"n_neighbors": 10}, "standardized-copies"),
        # With the k that fits, the reason is ties; with a different one, it is k.
        ("wang-2018", "enron", "ML-kNN", {"n_neighbors": 12}, "ties-at-the-k-th-distance"),
        ("wang-2018", "enron", "DML-kNN", {"n_neighbors": 12}, "ties-at-the-k-th-distance"),
        ("wang-2018", "enron", "ML-kNN", {"n_neighbors": 15}, "k-and-m-are-not-stated"),
        ("wang-2018", "corel5k", "DML-kNN", {"n_neighbors": 20}, "k-and-m-are-not-stated"),
        (
            "wang-2018",
            "yeast",
            "LAML-kNN",
            {"n_neighbors": 10, "n_clusters": 3},
            "k-and-m-are-not-stated",
        ),
        ("wang-2018", "slashdot", "ML-kNN", {"n_neighbors": 20}, "splits-that-are-not-stated"),
    ],
)
def test_reasons(paper, dataset, algorithm, parameters, anchor):
    place = (paper, dataset, algorithm)
    cell = next(c for c in all_cells() if (c.paper, c.dataset, c.algorithm) == place)
    reason = reason_off(cell, parameters)
    assert reason.text.endswith(f"(docs/errata.md#{anchor})")


def test_reasons_of_brknn_on_binary_features_tell_of_k():
    cell = next(c for c in all_cells() if (c.dataset, c.algorithm) == ("enron", "BRkNN"))
    fitting, other = (reason_off(cell, {"n_neighbors": k}).text for k in (12, 15))
    assert "vote (docs/errata.md#ties-at-the-k-th-distance)" in fitting
    assert "vote; k is another one, too (docs/errata.md#ties-at-the-k-th-distance)" in other


def test_unknown_reasons_are_stated():
    """Papers whose cells are all close have no entry, nor have rows that agree."""
    yeast = next(c for c in all_cells() if (c.paper, c.dataset) == ("wang-2018", "yeast"))
    right = {"n_neighbors": 10, "n_clusters": 2, "random_state": 0}
    for cell, parameters in ((all_cells()[0], {"n_neighbors": 8}), (yeast, right)):
        assert reason_off(cell, parameters).text.startswith("not explained yet")


def test_descriptions_list_the_values_that_were_tried():
    told = setup_of("wang-2018", "4").description
    tried = "k from 2, 5, 8, 9, 10, 12, 15, 20"
    assert f"LAML-kNN {tried} and m from 2, 3, 5, 8, 10; ML-kNN, BRkNN, DML-kNN {tried};" in told
    assert "k stops at 20, since" in told


@pytest.mark.parametrize(
    ("name", "parameters"), [(name, algorithm(name)().get_params()) for name in ALGORITHMS]
)
def test_every_parameter_is_named(name, parameters):
    """Not by the default of a class, which may change; None is an option that is off."""
    of_machine = {"n_jobs"}
    off = {key for key, value in parameters.items() if value is None}
    off -= {"random_state", *of_machine}
    for setup in table_setups():
        for dataset in setup.datasets:
            for in_paper, made_by in setup.methods.items():
                if made_by.estimator == name:
                    one = experiment(setup, dataset, in_paper)
                    for some in one.parameters:
                        assert {*some, *one.grid} | off == parameters.keys() - of_machine


@pytest.mark.parametrize(
    ("paper", "table", "digits"), [("zhang-2005", "I", 12), ("wang-2018", "1", 33)]
)
def test_published_digits(load, monkeypatch, tmp_path, paper, table, digits):
    """On the real data: every cell is close, and a known number is equal."""
    monkeypatch.undo()
    load("yeast"), load("scene")
    cells = reproduce([paper], [table], results=tmp_path).cells
    counts = Counter(one.verdict for one in cells)
    assert counts == {"digits": digits, "close": len(cells) - digits}
