"""Large data: blocks, threads, progress, interrupts and memory of fits and predictions."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.common import validation
from nearlabel.labels import counts as statistics
from nearlabel.methods import answers as answering
from nearlabel.methods.base import TrainingRows
from nearlabel.methods.registry import METHODS, estimator


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(300, 4, 9)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of few rows, so that several threads have something to do."""
    monkeypatch.setattr(statistics, "_ROWS_AT_ONCE", 31)
    monkeypatch.setattr(statistics, "_VOTES_AT_ONCE", 300)
    monkeypatch.setattr(answering, "_NEIGHBORS_AT_ONCE", 500)
    monkeypatch.setattr(answering, "_SCORES_AT_ONCE", 200)


def made(name, n_jobs, k=5):
    method = estimator(name.partition("+")[0], k, random_state=0, n_jobs=n_jobs)
    return nl.LabelThresholds(method) if "+" in name else method


def answers(name, data, n_jobs):
    """All predictions of a method for some queries."""
    model, new = made(name, n_jobs).fit(data.X[:200], data.Y[:200]), data.X[200:]
    ranked = model.rank(new, top=4)
    return (
        ranked.labels,
        ranked.scores,
        model.predict(new).toarray(),
        model.predict_proba(new),
        model.label_scores(new).toarray(),
        [[group.ids.tolist() for group in groups] for groups in model.retrieve(new[:9], 2, 3)],
    )


@pytest.mark.parametrize("name", [*METHODS, "MLkNN+cuts"])
def test_threads_change_nothing(name, data, small_blocks):
    for ours, theirs in zip(answers(name, data, 3), answers(name, data, 1), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "n_jobs"),
    [
        *((name, 2) for name in [*METHODS, "MLkNN+cuts"]),
        ("MLkNN", 1),
        *(
            pytest.param(name, 1, marks=pytest.mark.slow)
            for name in [*METHODS, "MLkNN+cuts"]
            if name != "MLkNN"
        ),
    ],
)
def test_progress_ends_at_all_and_never_goes_back(name, n_jobs, data, small_blocks):
    def check(told, total=None):
        assert told == sorted(told)
        assert {of for _, of in told} == {total or told[0][1]}
        assert told[-1][0] == told[-1][1]

    def note(*steps):
        told.append(steps)

    told = []
    model = made(name, n_jobs).fit(data.X[:200], data.Y[:200], progress=note)
    check(told)
    new = data.X[200:]
    for work in (model.rank, model.predict, model.predict_proba, model.label_scores):
        told = []
        work(new, progress=note)
        check(told, total=100)
        assert len(told) > 1


@pytest.mark.parametrize("name", ["MLkNN", "LAMLkNN"])
def test_progress_covers_searching_and_learning(name, data, small_blocks):
    told = []
    made(name, 1).fit(data.X, data.Y, progress=lambda *steps: told.append(steps))
    assert told[-1] == (338, 338)  # 300 rows searched, and one step more for each 8 of them
    assert sum(done > 300 for done, _ in told) > 5
    told = []
    graph = nl.neighbor_graph(data.X, 5)
    model = made(name, 1)
    model.fit_graph(graph, data.Y, data.X, progress=lambda *steps: told.append(steps))
    assert told[-1] == (300, 300)
    assert len(told) > 5
    told = []
    model.rank_from_graph(graph, data.X, progress=lambda *steps: told.append(steps))
    assert told[-1] == (300, 300)
    assert len(told) > 5


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", ["MLkNN", "LAMLkNN", "IBLR", "MLkNN+cuts"])
def test_an_interrupted_fit_leaves_the_model_as_it_was(name, n_jobs, data, small_blocks):
    model = made(name, n_jobs).fit(data.X[:100], data.Y[:100])
    state = dict(vars(model))
    for at in (1, 250, 301, 320):  # while neighbors are searched, and while it learns

        def interrupt(done, total, at=at):
            if done >= at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            model.fit(data.X, data.Y, progress=interrupt)
        assert vars(model) == state


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_answer_leaves_the_model_as_it_was(n_jobs, data, small_blocks):
    model = made("MLkNN", n_jobs).fit(data.X, data.Y)
    expected, state = model.rank(data.X), dict(vars(model))
    for at in (1, 95, 200):

        def interrupt(done, total, at=at):
            if done >= at:
                raise KeyboardInterrupt

        for work in (model.rank, model.predict, model.predict_proba, model.label_scores):
            with pytest.raises(KeyboardInterrupt):
                work(data.X, progress=interrupt)
        assert vars(model) == state
    np.testing.assert_array_equal(model.rank(data.X).scores, expected.scores)


def peak(work):
    """Peak bytes of arrays during `work`, in addition to its inputs."""
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        kept = work()
        return tracemalloc.get_traced_memory()[1] - before, kept
    finally:
        tracemalloc.stop()


N, K, Q = 40_000, 50, 2000
A_NUMBER_A_NEIGHBOR = 4 * N * K  # of 32 bits: 8 MB


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    step = np.cumsum(rng.integers(1, 100, (N, K)), axis=1)
    indices = ((np.arange(N)[:, None] + step) % N).astype(np.int32)
    distances = np.cumsum(rng.random((N, K), np.float32), axis=1)
    return nl.NeighborGraph.unchecked(indices, distances, N)


@pytest.fixture(scope="module")
def labels():
    """Three labels per row, one from each third of all labels."""
    label = np.arange(3) * (Q // 3) + np.random.default_rng(1).integers(Q // 3, size=(N, 3))
    parts = (np.ones(label.size, np.int8), label.ravel(), np.arange(0, label.size + 1, 3))
    return sparse.csr_array(parts, shape=(N, Q))


@pytest.fixture
def small_parts(monkeypatch):
    """Smaller blocks than usual, because the graph is small."""
    monkeypatch.setattr(statistics, "_VOTES_AT_ONCE", 2**14)
    monkeypatch.setattr(statistics, "_ROWS_AT_ONCE", 2**11)
    monkeypatch.setattr(statistics, "_ENTRIES_AT_ONCE", 2**14)


@pytest.mark.usefixtures("small_parts")
class TestMemory:
    """Apart from the graph, nothing may grow with the number of neighbors."""

    @pytest.mark.parametrize(
        ("name", "n_jobs"),
        [
            *(("MLkNN", 1), ("BRkNN", 1), ("MallowskNN", 1), ("MLkNN", 3)),
            pytest.param("BRkNN", 3, marks=pytest.mark.slow),
            pytest.param("MallowskNN", 3, marks=pytest.mark.slow),
        ],
    )
    def test_of_fit_and_rank(self, name, n_jobs, graph, labels):
        made(name, n_jobs, K).fit_graph(graph, labels)  # imports what is needed
        most, model = peak(lambda: made(name, n_jobs, K).fit_graph(graph, labels))
        table = 8 * Q * (K + 1) if name == "MLkNN" else 0  # three, and two more a thread
        assert most < (3 + 2 * (n_jobs - 1)) * table + n_jobs * A_NUMBER_A_NEIGHBOR // 2
        most, ranked = peak(lambda: model.rank_from_graph(graph))
        of_runs = n_jobs * A_NUMBER_A_NEIGHBOR // 2
        assert most < ranked.labels.nbytes + ranked.scores.nbytes + of_runs

    def test_of_weighted_votes(self, graph, labels):
        model = nl.BRkNN(K, weights="distance").fit_graph(graph, labels)
        most, ranked = peak(lambda: model.rank_from_graph(graph))
        assert most < ranked.labels.nbytes + ranked.scores.nbytes + A_NUMBER_A_NEIGHBOR

    def test_of_clusters(self, graph, labels):
        X = np.random.default_rng(2).random((N, 2))
        model = nl.LAMLkNN(K, cluster_centers=X[:3]).fit_graph(graph, labels, X)
        most, model = peak(lambda: model.fit_graph(graph, labels, X))
        assert most < len(model.cluster_sizes_) * 3 * 8 * Q * (K + 1) + A_NUMBER_A_NEIGHBOR

    def test_names_are_made_when_they_are_asked_for(self, graph, labels):
        names = [f"a label with a long name, {label}" for label in range(Q)]
        model = nl.BRkNN(K).fit_graph(graph, labels, label_names=names)
        most, ranked = peak(lambda: model.rank_from_graph(graph))
        assert most < ranked.labels.nbytes + ranked.scores.nbytes + A_NUMBER_A_NEIGHBOR
        assert ranked.names[7, 0] == names[ranked.labels[7, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_training_vectors_are_not_copied(dtype, tmp_path, monkeypatch):
    """Not even as masks of float16 rows, whose sum is not finite."""
    monkeypatch.setattr(validation, "_NUMBERS_AT_ONCE", 2**16)
    path = tmp_path / "vectors"
    np.full((60_000, 40), 7, dtype).tofile(path)
    X = np.memmap(path, dtype, "r", shape=(60_000, 40))
    y = np.arange(60_000) % 2
    nl.BRkNN(3).fit(X[:1000], y[:1000])
    most, model = peak(lambda: TrainingRows(X).vectors(nl.BRkNN(3), len(X)))
    assert np.shares_memory(model, X)
    assert most < X.size // 2
    assert np.shares_memory(nl.BRkNN(3).fit(X, y).items_.vectors, X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_half_precision_that_is_not_finite_is_refused(value):
    X = np.ones((50_000, 100), np.float16)
    X[-1, -1] = value
    for work in (
        lambda: nl.BRkNN(3).fit(X, np.arange(50_000) % 2),
        lambda: nl.neighbor_graph(X, 3),
    ):
        with pytest.raises(ValueError, match="Input X contains (NaN|infinity)"):
            work()
