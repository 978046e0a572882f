from unittest import mock

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.experiments import Part, evaluate_splits, splits
from nearlabel.experiments.folds import PartsOfModels
from nearlabel.methods.registry import METHODS, estimator
from nearlabel.search.exact.index import ExactIndex


@pytest.fixture(scope="module")
def made():
    return nl.datasets.make_local_labels(150, 5, 6, random_state=2)


@pytest.fixture
def searches():
    """Every search: among how many rows, and of how many queries; None for the rows themselves."""
    found = []
    search = ExactIndex.graph

    def graph(self, k, queries=None, **how):
        rows = self.vectors.shape[0]
        found.append((rows, None if queries is None else queries.shape[0]))
        return search(self, k, queries, **how)

    with mock.patch.object(ExactIndex, "graph", graph):
        yield found


def folds_of(data, parts, model):
    each = PartsOfModels(data.X, parts, [model], answered=0)
    return [fold for _, folds in each for fold in folds.values()]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["cv3", "cv2x2"])
def test_one_graph_gives_what_separate_fits_give_to_the_last_bit(made, name, kind, searches):
    parts = splits(made, kind, seed=1)
    model = estimator(name, 7, random_state=0)
    each = folds_of(made, parts, model)
    assert searches == [(150, None)]
    for part, fold in zip(parts, each, strict=True):
        answers = fold.answers(model, made.Y[part.train])
        alone = estimator(name, 7, random_state=0).fit(made.X[part.train], made.Y[part.train])
        scores = alone.label_scores(made.X[part.test]).toarray()
        assert answers.scores.toarray().tobytes() == scores.tobytes()
        decided = alone.predict(made.X[part.test])
        np.testing.assert_array_equal(answers.decided.toarray(), decided.toarray())


@pytest.mark.parametrize("name", METHODS)
def test_leave_one_out(made, name):
    [part] = splits(made, "loo")
    assert part.left_out
    model = estimator(name, 7, random_state=0)
    [fold] = folds_of(made, [part], model)
    answers = fold.answers(model, made.Y)
    fitted = estimator(name, 7, random_state=0).fit(made.X, made.Y)
    graph = nl.neighbor_graph(made.X, 7)
    left_out = fitted._left_out_scores(graph, fitted.items_.vectors, np.arange(150))
    assert answers.scores.toarray().tobytes() == left_out.toarray().tobytes()
    [[result]] = evaluate_splits(made, [model], [part])
    expected = nl.metrics.evaluate(made.Y, left_out, fitted._decide(left_out, graph))
    assert result.metrics == expected


def test_as_many_parts_as_rows_hide_each_row_from_all(made):
    # Literal leave-one-out. It makes no difference for methods that learn nothing from neighbors.
    few = made.rows(np.arange(40))
    parts = splits(few, "cv40", seed=0)
    assert sorted(int(part.test[0]) for part in parts) == list(range(40))
    for model, same in ((nl.BRkNN(n_neighbors=3), True), (nl.MLkNN(n_neighbors=3), False)):
        [hidden] = evaluate_splits(few, [model], parts)
        [[left_out]] = evaluate_splits(few, [model], splits(few, "loo"))
        losses = [one.metrics["hamming_loss"] for one in hidden]
        assert (np.mean(losses) == pytest.approx(left_out.metrics["hamming_loss"])) == same


def test_short_rows_are_searched_again_among_the_rows_that_are_left(searches):
    # The held-out half is a cluster: hiding it removes all neighbors of its rows.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((30, 3)), 100 + rng.random((30, 3))])
    data = nl.datasets.Dataset(X, sparse.csr_array(rng.integers(0, 2, (60, 4))))
    parts = [Part(np.arange(30), np.arange(30, 60)), Part(np.arange(30, 60), np.arange(30))]
    found = evaluate_splits(data, [nl.MLkNN(n_neighbors=3)], parts)
    assert searches == [(60, None), (30, 30), (30, 30)]
    for part, result in zip(parts, found[0], strict=True):
        model = nl.MLkNN(n_neighbors=3).fit(X[part.train], data.Y[part.train])
        answers = model.label_scores(X[part.test]), model.predict(X[part.test])
        assert result.metrics == nl.metrics.evaluate(data.Y[part.test], *answers)


def test_stratified_parts(made):
    pytest.importorskip("iterstrat")
    for kind in ("holdout", "cv5", "cv5x2"):
        parts = splits(made, kind, stratified=True, seed=3)
        again = splits(made, kind, stratified=True, seed=3)
        other = splits(made, kind, stratified=True, seed=4)
        same = [np.array_equal(a.test, b.test) for a, b in zip(parts, again, strict=True)]
        assert all(same)
        assert not all(np.array_equal(a.test, b.test) for a, b in zip(parts, other, strict=True))
        for part in parts:
            assert sorted([*part.train, *part.test]) == list(range(150))
    shares = made.Y.mean(axis=0)

    def spread(stratified):
        parts = splits(made, "cv5", stratified=stratified)
        return max(abs(made.Y[part.test].mean(axis=0) - shares).max() for part in parts)

    assert spread(True) < 0.05 < spread(False)
    for kind in ("official", "loo"):
        with pytest.raises(ValueError, match=f"stratified=True.*split={kind!r}"):
            splits(made, kind, stratified=True)


def test_stratified_parts_without_the_library(made):
    with (
        mock.patch.dict("sys.modules", {"iterstrat": None, "iterstrat.ml_stratifiers": None}),
        pytest.raises(ModuleNotFoundError, match=r"pip install 'nearlabel\[data\]'"),
    ):
        splits(made, "cv5", stratified=True)


def test_repeats_begin_with_the_single_run(made):
    once, often = splits(made, "cv5", seed=2), splits(made, "cv5x3", seed=2)
    assert len(often) == 15
    for a, b in zip(once, often[:5], strict=True):
        np.testing.assert_array_equal(a.test, b.test)
    assert not np.array_equal(often[0].test, often[5].test)
    for start in range(0, 15, 5):
        rows = np.concatenate([part.test for part in often[start : start + 5]])
        assert sorted(rows) == list(range(150))


def test_impossible_parts(made):
    whole, some = np.arange(150), np.arange(40)
    for parts, message in (
        ([Part(some[::-1], np.arange(40, 60))], "train .*rising order"),
        ([Part(some, np.array([50, 50]))], "test .*rising order"),
        ([Part(some, np.arange(39, 60))], "row .*train and in test"),
        ([Part(whole > 5, whole[:5])], "train .*array of rows.*149"),
        ([Part(some, np.array([150]))], "test .*array of rows.*149"),
        ([Part(some, some[:0])], "test .*array of rows"),
        ([Part(whole, whole, True), Part(some, whole[50:])], "only part"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate_splits(made, [nl.MLkNN()], parts)


def test_parts_that_keep_few_rows_have_their_own_graphs(made, searches):
    parts = [Part(np.arange(15), np.arange(20, 150)), Part(np.arange(20, 35), np.arange(20))]
    found = evaluate_splits(made, [nl.MLkNN(n_neighbors=3)], parts)
    assert searches == [(15, None), (15, 130), (15, None), (15, 20)]
    model = nl.MLkNN(n_neighbors=3).fit(made.X[:15], made.Y[:15])
    answers = model.label_scores(made.X[20:]), model.predict(made.X[20:])
    assert found[0][0].metrics == nl.metrics.evaluate(made.Y[20:], *answers)


def test_neighbors_of_all_rows_that_do_not_fit(made, monkeypatch):
    from nearlabel.common import validation

    monkeypatch.setattr(validation, "physical_memory", lambda: 10_000)
    huge = Part(np.arange(140), np.arange(140, 150))
    with pytest.raises(MemoryError, match="neighbors.* GiB"):
        evaluate_splits(made, [nl.PositivekNN(n_neighbors=None, rate=1.0)], [huge])
