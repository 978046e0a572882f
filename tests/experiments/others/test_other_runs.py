"""Runs of other learners: tuned on training rows, limited in time, and kept."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.experiments.others import other_runs
from nearlabel.experiments.others.other_methods import OTHERS
from nearlabel.experiments.others.other_results import BEST, evaluate_others
from nearlabel.experiments.others.other_runs import LearnerTask, run_key, run_other

# Warnings of learners are not shown in a comparison.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCORER = nl.metrics.scorer("average_precision")


def task_of(name, X, Y, queries, **more):
    return LearnerTask(name, OTHERS[name], X, Y, queries, SCORER, **more)


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(90, 4, 3, labels_per_sample=2, random_state=0)


@pytest.fixture
def here(monkeypatch):
    """Run learners in this process, which is faster, and count their runs."""
    calls = []

    def run(task, progress):
        calls.append(task.name)
        return other_runs.tuned_run(task, task.candidates(), lambda done, total: None)

    monkeypatch.setattr(other_runs, "_in_process", run)
    return calls


def test_a_separate_process_returns_the_predictions_of_the_chosen_candidate(data, tmp_path):
    told = []
    X, Y, queries = data.X[:60], data.Y[:60], data.X[60:]
    task = task_of("BinaryRelevance", X, Y, queries)
    run = run_other(
        task,
        folder=tmp_path,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(step, 19) for step in range(1, 19)]  # two scales, three costs, three folds
    model = OneVsRestClassifier(LogisticRegression(C=run.chosen["C"], solver="newton-cholesky"))
    assert run.chosen["scale"] in ("standard", "rank")
    if run.chosen["scale"] == "standard":
        peer = make_pipeline(StandardScaler(), model).fit(X, Y.toarray())
        assert run.scores == pytest.approx(peer.predict_proba(queries), abs=1e-4)
    assert (run.decided == (run.scores > 0.5)).all()
    assert run.refusal is None
    assert run.seconds > 0
    [kept] = (tmp_path / "others").iterdir()
    again = run_other(task, folder=tmp_path)
    assert (again.scores == run.scores).all()
    assert again.chosen == run.chosen
    assert kept.exists()


def test_slow_runs_are_stopped_and_remembered(data, tmp_path):
    run = run_other(task_of("MLP", data.X[:60], data.Y[:60], data.X, limit=1e-3), folder=tmp_path)
    assert run.scores is None
    assert "of a core" in run.refusal
    assert len(list((tmp_path / "others").iterdir())) == 1


def test_an_interrupted_comparison_continues(data, here, tmp_path):
    parts = splits(data, "cv3")[:2]
    how = {"folder": tmp_path}
    evaluate_others(data, ["KNeighbors"], parts[:1], SCORER, **how)
    assert here == ["KNeighbors"]
    names = ["KNeighbors", "BinaryRelevance", BEST]
    found = evaluate_others(data, names, parts, SCORER, **how)
    assert here == ["KNeighbors", "BinaryRelevance"] * 2
    evaluate_others(data, names[:2], parts, SCORER, **how)
    assert len(here) == 4
    evaluate_others(data, names[:1], parts[:1], SCORER, again=True, **how)
    assert len(here) == 5
    for name in names:
        assert len(found[name]) == 2
        for result in found[name]:
            rows = result.rows["average_precision"]
            assert np.nanmean(rows) == pytest.approx(result.metrics["average_precision"])
            assert result.parameters["scale"]
    model = nl.AutoNeighbors().fit(data.X[parts[0].train], data.Y[parts[0].train])
    expected = model.label_scores(data.X[parts[0].test])
    value = nl.metrics.average_precision(data.Y[parts[0].test], expected)
    assert found[BEST][0].metrics["average_precision"] == pytest.approx(value)


def test_another_version_of_a_learner_runs_again(data, here, tmp_path, monkeypatch):
    work = data.X[:60], data.Y[:60], data.X[60:]
    run = run_other(task_of("KNeighbors", *work), folder=tmp_path)
    kept = run_other(task_of("KNeighbors", *work), folder=tmp_path)
    assert (kept.scores == run.scores).all()
    monkeypatch.setattr(other_runs, "version", lambda package: "another")
    run_other(task_of("KNeighbors", *work), folder=tmp_path)
    assert here == ["KNeighbors", "KNeighbors"]


def test_an_error_is_a_refusal_that_is_not_kept(data, tmp_path):
    run = run_other(task_of("KNeighbors", data.X[:60], data.Y[:59], data.X), folder=tmp_path)
    assert "inconsistent" in run.refusal or "index" in run.refusal
    assert not list(tmp_path.iterdir())


def test_keys_depend_on_data_and_settings(data):
    X = np.asarray(data.X, np.float64)
    other = X.copy()
    other[0, 0] += 1
    keys = {
        run_key(["a"], [X]),
        run_key(["b"], [X]),
        run_key(["a"], [other]),
        run_key(["a"], [X.T]),
        run_key(["a"], [X.astype(np.float32)]),
        run_key(["a"], [data.Y]),
    }
    assert len(keys) == 6
    assert run_key(["a"], [X]) == run_key(["a"], [np.asfortranarray(X)])


def test_leave_one_out_has_no_test_rows(data):
    with pytest.raises(ValueError, match="parts must have test rows"):
        evaluate_others(data, ["KNeighbors"], splits(data, "loo"), SCORER)


@pytest.mark.slow
def test_more_labels_than_int8_can_count(here, tmp_path):
    """scikit-learn's binarizer numbers labels in the type of Y: int8 would end at 127."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3))
    Y = sparse.csr_array((X @ random.normal(size=(3, 140)) > 1).astype(np.int8))
    run = run_other(task_of("BinaryRelevance", X[:90], Y[:90], X[90:]), folder=tmp_path)
    assert nl.metrics.average_precision(Y[90:], run.scores) > 0.8
