"""The terms of an explanation determine its score, in every method."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from notebook_cells import Cells
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MinMaxScaler
from strategies import problems

import nearlabel as nl
from nearlabel.methods.explanations import Explanation
from nearlabel.methods.registry import METHODS, estimator
from nearlabel.search import ExactIndex

pytestmark = pytest.mark.engines


def by_counts(terms, k):
    yes = terms["prior"] * terms["likelihood_with"]
    no = (1 - terms["prior"]) * terms["likelihood_without"]
    return yes / (yes + no)


def by_log_odds(terms, k):
    names = ("intercept", "own", "others", "features")
    return 1 / (1 + np.exp(-sum(terms.get(name, 0) for name in names)))


# How the terms of a method determine its score, where its own tests do not compare both.
MAKE_THE_SCORE = [
    (nl.LAMLkNN(random_state=0), by_counts),
    (nl.MallowskNN(), lambda terms, k: (terms["count"] + terms["prior"]) / (k + 1)),
    (nl.MallowskNN(estimate="mle"), lambda terms, k: terms["share"]),
    (nl.BRkNN(), lambda terms, k: terms["share"]),
    (nl.BRkNN(weights="distance"), lambda terms, k: terms["share"]),
    (nl.PositivekNN(n_neighbors=10), lambda terms, k: terms["log_sum"]),
    (nl.IBLR(), by_log_odds),
    (nl.IBLR(keep_features=True), by_log_odds),
]


MODELS = [repr(model) for model, _ in MAKE_THE_SCORE]


@pytest.mark.parametrize(("model", "score"), MAKE_THE_SCORE, ids=MODELS)
def test_terms_determine_the_score(model, score):
    data = nl.datasets.make_local_labels(200, 4, 7, random_state=0)
    model.fit(data.X, data.Y)
    for row in range(0, 200, 40):
        for label in model.explain(data.X[row] + 0.1, top=7):
            assert score(label.terms, 10) == pytest.approx(label.score, rel=1e-9, abs=1e-9)
            carried = [voter.id for voter in label.neighbors]
            assert label.terms["count"] == len(carried)


EXPLAINED = [
    *(nl.MLkNN(), nl.LAMLkNN(n_clusters=2, random_state=0), nl.DMLkNN(tolerance=1)),
    *(nl.MallowskNN(), nl.BRkNN(weights="distance"), nl.MLCWkNN(), nl.PositivekNN(rate=1.0)),
    *(nl.IBLR(ridge=1.0), nl.IBLR(keep_features=True, ridge=1.0)),
]


@pytest.mark.parametrize("method", EXPLAINED, ids=repr)
@given(problem=problems())
def test_every_neighbor_that_carries_a_label_and_the_score_without_it(method, problem):
    X, Y, queries, k = problem
    model, x = clone(method).set_params(n_neighbors=k).fit(X, Y), queries[:1]
    (further,), (distances,) = oracles.neighbors(X, k + 1, x)
    ranked, decided = model.rank(x, 99), model.predict(x)[0]
    explained = model.explain(x[0], top=99)
    assert [label.label for label in explained] == ranked.labels[0].tolist()
    for label, score in zip(explained, ranked.scores[0], strict=True):
        assert label.score == score
        assert label.predicted == decided[label.label]
        voters = [place for place in range(k) if Y[further[place], label.label]]
        assert label.terms["count"] == len(voters) == len(label.neighbors)
        assert all(np.isfinite(value) for name, value in label.terms.items() if name != "theta")
        for voter, place in zip(label.neighbors, voters, strict=True):
            assert (voter.id, voter.distance) == (further[place], distances[place])
            others = (np.delete(part, place)[None] for part in (further, distances))
            without = model.scores_from_graph(nl.NeighborGraph(*others, len(X)), x)
            expected = without.toarray()[0, label.label]
            assert voter.score_without == pytest.approx(expected, rel=1e-10, abs=1e-317)
            assert voter.part == score - voter.score_without


def alone(model, X, **options):
    return [str(model.explain(X[[row]], **options)) for row in range(X.shape[0])]


@pytest.mark.parametrize("name", [*METHODS, "LabelThresholds"])
def test_several_items_are_explained_as_each_alone(name, monkeypatch):
    data = nl.datasets.make_local_labels(120, 4, 7, random_state=0)
    if name == "LabelThresholds":
        model = nl.LabelThresholds(nl.BalancedkNN(3))
    else:
        model = estimator(name, 8, random_state=0)
    model.fit(data.X, data.Y)
    new = data.X[:9] + 0.1
    expected = [model.explain(x, top=4) for x in new]
    assert model.explain(new, top=4) == expected
    assert model.explain(new[:1], top=4) == expected[0]
    assert list(map(str, model.explain(new, labels=[6, 0]))) == alone(model, new, labels=[6, 0])
    monkeypatch.setattr("nearlabel.methods.explanations._WORK_AT_ONCE", 100)  # two rows at once
    assert model.explain(new, top=4) == expected


def test_several_items_are_searched_together(monkeypatch):
    data = nl.datasets.make_local_labels(120, 4, 7, random_state=0)
    model = nl.MLkNN(n_neighbors=5).fit(data.X, data.Y)
    searched, graph = [], ExactIndex.graph

    def noted(self, k, queries=None, **options):
        searched.append(len(queries))
        return graph(self, k, queries, **options)

    monkeypatch.setattr(ExactIndex, "graph", noted)
    assert len(model.explain(data.X[:50])) == 50
    assert searched == [50]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, np.ndarray.tolist])
def test_several_items_in_every_form(form):
    data = nl.datasets.make_local_labels(60, 4, 5, random_state=0)
    model = nl.BRkNN(n_neighbors=4).fit(data.X, data.Y, ids=[f"item {row}" for row in range(60)])
    new = (data.X[:3] + np.float32(0.1)).astype(np.float64)
    assert model.explain(form(new)) == model.explain(new)
    assert model.explain(new, labels=[]) == [Explanation((), 4)] * 3


def test_pipelines_explain_rows_and_texts():
    data = nl.datasets.make_local_labels(60, 4, 5, random_state=0)
    model = nl.make_pipeline("passthrough", MinMaxScaler(), nl.MLkNN(5)).fit(data.X, data.Y)
    assert list(map(str, model.explain(data.X[:3]))) == alone(model, data.X[:3])
    assert str(model.explain(data.X[0])) == alone(model, data.X[:1])[0]
    texts = ["sea and sand", "the sea at night", "a city at night", "city lights"]
    tags = [[1, 0], [1, 1], [0, 1], [0, 1]]
    model = nl.make_pipeline(TfidfVectorizer(), nl.BRkNN(2)).fit(texts, tags)
    one, other = model.explain("sand at night"), model.explain("the city")
    assert one != other
    for several in (["sand at night", "the city"], np.array(["sand at night", "the city"])):
        assert model.explain(several) == [one, other]
    assert model.explain(["the city"]) == other
    counted = nl.make_pipeline(DictVectorizer(), nl.BRkNN(2))
    counted.fit([dict.fromkeys(text.split(), 1) for text in texts], tags)
    assert counted.explain([{"sea": 1}, {"city": 1}])[1] == counted.explain({"city": 1})


def test_html_shows_labels_terms_and_voters():
    X, Y = np.arange(30.0)[:, None], np.zeros((30, 3), int)
    Y[:15, 0] = Y[:2, 1] = Y[29, 2] = 1
    ids = [f"<i>{row}" for row in range(30)]
    model = nl.BRkNN(n_neighbors=16).fit(X, Y, label_names=["<b>&", "sea", "far"], ids=ids)
    explained = model.explain([0.25], top=3)
    shown = Cells(explained._repr_html_())
    assert shown.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert "16 neighbors" in shown.text
    first, sea, far = shown.rows[1], shown.rows[12], shown.rows[14]
    assert first == ["<b>&", "0.9375", "yes", "count 15share 0.9375", "<i>0", "0.25", "0.8750"]
    assert shown.rows[2] == ["<i>1", "0.75", "0.8750"]
    assert shown.rows[11][0] == "… 5 more"
    assert sea == ["sea", "0.1250", "no", "count 2share 0.125", "<i>0", "0.25", "0.0625"]
    assert far == ["far", "0.0000", "no", "count 0share 0", "none", "", ""]
    assert len(shown.rows) == 15
    assert repr(explained) == "Explanation(+ <b>& 0.9375, - sea 0.1250, - far 0.0000)"
    many = nl.BRkNN(2).fit(X, np.ones((30, 30), int)).explain([0.25], top=30)
    assert repr(many).endswith(", + 9 1.0000, … 20 more labels)")
    shown = Cells(many._repr_html_())
    assert len(shown.rows) == 1 + 10 * 2
    assert "… 20 more labels" in shown.text


def test_labels_by_column_are_made_once_a_fit():
    first, second = (nl.datasets.make_local_labels(n, 3, 6) for n in (60, 90))
    model = nl.LabelThresholds(nl.MLkNN(n_neighbors=4)).fit(first.X, first.Y)
    before = [group.ids.tolist() for group in model.retrieve(first.X[:1])[0]]
    columns = model.items_.by_label
    assert [group.ids.tolist() for group in model.retrieve(first.X[:1])[0]] == before
    assert model.items_.by_label is columns
    inner = model.estimator_.retrieve(first.X[:1])[0]
    assert [group.ids.tolist() for group in inner] == before
    model.fit(second.X, second.Y)
    again = nl.LabelThresholds(nl.MLkNN(n_neighbors=4)).fit(second.X, second.Y)
    for ours, theirs in zip(
        model.retrieve(second.X[:9]), again.retrieve(second.X[:9]), strict=True
    ):
        assert [group.ids.tolist() for group in ours] == [group.ids.tolist() for group in theirs]
