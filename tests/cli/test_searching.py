"""Options of the search."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nearlabel as nl

LEARNING = (("fit", "-o", "m"), ("evaluate",), ("compare",), ("tune",))


def test_fit_reports_the_measured_recall(ask, there):
    command = ("fit", "many.npz", "-o", "lists", "--search", "approximate", "--recall", 0.9)
    told = json.loads(ask(*command, "--json"))
    model = nl.load("lists")
    assert model.search == nl.InvertedLists(recall=0.9)
    assert (
        model.search_recall_
        == nl.neighbor_graph(nl.datasets.load("many.npz").X, 10, search=model.search).recall
    )
    assert told["search"] == "approximate"
    assert told["asked_recall"] == 0.9
    assert told["recall"]["value"] == model.search_recall_.value >= 0.9
    assert f"approximate search, measured recall {model.search_recall_}\n" in ask(*command)


def test_an_exact_search_has_no_recall(ask, there):
    for search in ((), ("--search", "exact"), ("--search", "auto")):
        told = json.loads(ask("fit", "many.npz", "-o", "m", *search, "--json"))
        assert (told["recall"], told["asked_recall"]) == (None, None)
        assert told["search"] == (search or ("", "auto"))[1]
    assert "recall" not in ask("fit", "many.npz", "-o", "m")


@pytest.mark.parametrize("cuts", [pytest.param((), marks=pytest.mark.slow), ("--thresholds",)])
def test_a_model_uses_the_requested_search(cuts, ask, there, searches):
    """A poor search, so that its results differ from those of an exact one."""
    ask("fit", "many.npz", "-o", "m", *cuts)
    model, X = nl.load("m"), nl.datasets.load("many.npz").X
    poor = nl.neighbor_graph(X, 10, X, search=nl.InvertedLists(recall=0.5))
    asked = {
        (): nl.neighbor_graph(X, 10, X),
        ("--search", "approximate", "--recall", 0.5, "--jobs", 2): poor,
    }
    scores = []
    for options, graph in asked.items():
        ranked = json.loads(ask("rank", "m", "many.npz", "--top", 3, *options, "--json"))
        found = [[label["score"] for label in item["labels"]] for item in ranked]
        np.testing.assert_array_equal(found, model.rank_from_graph(graph, top=3).scores)
        scores.append(found)
        predicted = json.loads(ask("predict", "m", "many.npz", *options, "--json"))
        sizes = np.diff(model.predict_from_graph(graph).indptr)
        assert [len(item["labels"]) for item in predicted] == sizes.tolist()
    assert scores[0] != scores[1]
    searches.clear()
    ask("rank", "m", "many.npz", "--jobs", 2, "--json")
    ask("rank", "m", "many.npz", "--json")
    assert [threads for _, threads in searches] == [2, 1]


@pytest.mark.parametrize("verb", ["evaluate", "compare", "tune"])
def test_measures_of_an_approximate_search(verb, ask, there):
    data = ("--split", "holdout", "--k", 5, "--algorithm", "MLkNN", "--metric", "ranking_loss")
    asked = (verb, "many.npz", *data, "--search", "approximate", "--recall", 0.95)
    told = json.loads(ask(*asked, "--json"))
    assert (told["search"], told["asked_recall"]) == ("approximate", 0.95)
    assert "approximate search with recall 0.95" in ask(*asked)
    plain = json.loads(ask(verb, "many.npz", *data, "--json"))
    assert (plain["search"], plain["asked_recall"]) == ("auto", None)


@pytest.mark.parametrize("verb", LEARNING)
@pytest.mark.parametrize(
    "options",
    [
        ("--search", "approximate", "--recall", "2"),
        ("--search", "fast"),
        ("--jobs", "0"),
        ("--jobs", "1.5"),
    ],
)
def test_invalid_options(verb, options, fail, there):
    message = fail(verb[0], "many.npz", *verb[1:], *options)
    assert all(word in message for word in options[-2:])
    assert not (there / "m2").exists()


@pytest.mark.parametrize("search", [(), ("--search", "exact")])
@pytest.mark.parametrize("verb", [*LEARNING, ("predict",), ("rank",)])
def test_only_an_approximate_search_has_a_recall(verb, search, fail, there):
    files = (
        ("exact", "many.npz")
        if len(verb) == 1 and verb[0] in ("predict", "rank")
        else ("many.npz",)
    )
    line = fail(verb[0], *files, *verb[1:], *search, "--recall", 0.9)
    assert "--recall: " in line
    assert "--search approximate" in line
