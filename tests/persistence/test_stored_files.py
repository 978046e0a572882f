"""Files of earlier versions are read, and their models predict as they did then."""

import json
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tree_paths import paths, read_tree

import nearlabel as nl
from nearlabel.common import files
from nearlabel.common.mapped_arrays import MappedArray, checked

FILES = Path(__file__).parents[1] / "files"
ANSWERS = json.loads((FILES / "format-2-answers.json").read_text())
QUERIES = np.array(ANSWERS["queries"])


def stored(name):
    return nl.load(FILES / f"format-2-{name}.nearlabel")


@pytest.mark.parametrize("name", ANSWERS["models"])
def test_a_stored_model_predicts_as_before(name):
    answers, queries = ANSWERS["models"][name], QUERIES
    model = stored(name)
    if name == "Pipeline":
        queries, model = model[0].transform(queries), model[-1]
    # Reconstruction weights are solutions of equations: see test_simplex.py.
    close = 1e-12 if "MLCW" in name else 4e-16
    assert_allclose(model.label_scores(queries).toarray(), answers["scores"], rtol=close, atol=0)
    assert_allclose(model.predict_proba(queries), answers["probabilities"], rtol=close, atol=0)
    assert_array_equal(model.predict(queries), answers["predicted"])
    assert_array_equal(model.rank(queries, top=3).names, answers["ranked"])
    explained = model.explain(queries[0], top=2)
    for label, (label_name, score, voters, terms) in zip(
        explained, answers["explained"], strict=True
    ):
        assert label.name == label_name
        assert label.score == pytest.approx(score, rel=1e-12)
        assert [voter.id for voter in label.neighbors] == voters
        assert dict(label.terms) == pytest.approx(terms, rel=1e-12)


@pytest.mark.parametrize(
    "path", sorted(FILES.glob("format-[12]*.nearlabel")), ids=lambda path: path.stem
)
def test_a_mapped_file_is_the_same(path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 8)
    plain, mapped = read_tree(path)[0], read_tree(path, mmap=True)[0]
    for place in paths(plain):
        one, other = (reduce(getitem, place, tree) for tree in (plain, mapped))
        if isinstance(one, np.ndarray):
            assert isinstance(other, MappedArray) == (one.nbytes > 8)
            assert_array_equal(one, checked(other))


@pytest.mark.parametrize("mmap", [False, True])
def test_a_changed_model_of_format_3_goes_on(mmap):
    """It keeps spare neighbors behind the first ones, which later formats do not store."""
    model = nl.load(FILES / "format-3-MLkNN.nearlabel", mmap=mmap)
    assert model.verify()
    model.partial_fit(QUERIES[:2, :3], np.eye(4, dtype=int)[:2]).forget([5, 7])
    assert model.verify()


def test_a_stored_blend_predicts_as_before():
    """Version 1.0 had a parameter more, which was None in every file."""
    model = nl.load(FILES / "format-3-BlendedNeighbors.nearlabel")
    expected = [0.7616340090363458, 0.2214042098647816, 0.7214210648770772, 0.06695328451539592]
    scores = model.label_scores(np.linspace(-1, 1, 3)[None])
    assert_allclose(scores.toarray(), [expected], rtol=1e-12)


def test_a_stored_graph_is_the_same():
    graph = stored("NeighborGraph")
    assert_array_equal(graph.indices, ANSWERS["graph"]["indices"])
    assert_array_equal(graph.distances, ANSWERS["graph"]["distances"])


def test_a_stored_model_of_sparse_rows_predicts_as_before():
    scores = stored("sparse").label_scores(QUERIES).toarray()
    assert_allclose(scores, ANSWERS["sparse"], rtol=4e-16, atol=0)


def test_a_stored_model_of_two_classes_predicts_as_before():
    assert stored("two-classes").predict(QUERIES).tolist() == ANSWERS["two classes"]


def test_a_stored_model_without_vectors_predicts_as_before():
    near = ANSWERS["queries graph"]
    graph = nl.NeighborGraph(near["indices"], near["distances"], n_base=40)
    scores = stored("graph-alone").scores_from_graph(graph).toarray()
    assert_allclose(scores, ANSWERS["graph alone"], rtol=4e-16, atol=0)


@pytest.mark.parametrize("name", ["BalancedkNN", "LabelThresholds-BalancedkNN", "PositivekNN"])
def test_a_stored_model_that_knows_no_frequencies_is_whole_and_learns_them(name):
    model = stored(name)
    assert model.verify()
    own = getattr(model, "estimator_", model)
    assert own._calibration is None
    assert model.refresh() is model
    own = getattr(model, "estimator_", model)
    assert own._calibration is not None
