"""Options of the search, and answers for many items."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.cli import INTERRUPTED, run
from nearlabel.cli import fit_predict_rank as models
from nearlabel.datasets.npz import write_npz
from nearlabel.search.approximate import inverted_lists as lists

LEARNING = (("fit", "-o", "m"), ("evaluate",), ("compare",), ("tune",))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """The folder of a data set, and of an exact model of it."""
    folder = tmp_path_factory.mktemp("many")
    write_npz(nl.datasets.make_local_labels(1500, 6, 12), folder / "many.npz")
    assert run(["fit", str(folder / "many.npz"), "-o", str(folder / "exact")]) == 0
    return folder


@pytest.fixture
def there(many, monkeypatch):
    monkeypatch.chdir(many)
    monkeypatch.setattr(lists, "_FEWEST", 1024)
    return many


def test_fit_tells_the_recall_that_was_measured(ask, there):
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


@pytest.mark.parametrize("cuts", [(), ("--thresholds",)])
def test_a_model_searches_as_it_is_asked_to(cuts, ask, there, monkeypatch):
    """A poor search, so that its answers are others than those of an exact one."""
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
    threads = []
    searched = nl.MLkNN._neighbors_of if not cuts else nl.LabelThresholds._neighbors_of

    def noting(self, *arguments, **options):
        threads.append(self.n_jobs)
        return searched(self, *arguments, **options)

    monkeypatch.setattr(type(model), "_neighbors_of", noting)
    ask("rank", "m", "many.npz", "--jobs", 2, "--json")
    ask("rank", "m", "many.npz", "--json")
    assert threads == [2, 1]


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
    ("options", "message"),
    [
        (("--recall", "0.9"), "--recall: only together with --search approximate"),
        (("--search", "exact", "--recall", "0.9"), "--recall: only together with"),
        (("--search", "approximate", "--recall", "2"), "--recall must be a finite number from 0"),
        (("--search", "fast"), "Invalid value"),
        (("--jobs", "0"), "--jobs must be at least 1, or -1 for all cores; got 0"),
        (("--jobs", "1.5"), "a whole number expected; got '1.5'"),
    ],
)
def test_options_that_cannot_be(verb, options, message, fail, there):
    assert message in fail(verb[0], "many.npz", *verb[1:], *options)
    assert not (there / "m2").exists()


def test_answers_refuse_a_recall_of_an_exact_search(fail, there):
    for verb in ("predict", "rank"):
        line = fail(verb, "exact", "many.npz", "--recall", 0.9, "-o", "none.csv")
        assert "--recall: only together with --search approximate" in line
        assert not Path("none.csv").exists()


@pytest.mark.parametrize("verb", ["predict", "rank"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_files_of_many_items_are_written_in_blocks(verb, suffix, ask, there, monkeypatch):
    ask(verb, "exact", "many.npz", "-o", f"whole.{suffix}")
    asked = []
    search = nl.MLkNN._neighbors_of
    monkeypatch.setattr(models, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(
        nl.MLkNN,
        "_neighbors_of",
        lambda self, X, *more, **how: asked.append(len(X)) or search(self, X, *more, **how),
    )
    ask(verb, "exact", "many.npz", "-o", f"blocks.{suffix}")
    assert asked == [700, 700, 100]
    ours, whole = (Path(f"{name}.{suffix}").read_bytes() for name in ("blocks", "whole"))
    assert ours == whole


@pytest.mark.parametrize("phase", ["_neighbors_of", "_scores"])
@pytest.mark.parametrize("verb", ["predict", "rank"])
def test_an_interrupt_leaves_no_half_written_file(verb, phase, there, monkeypatch, capsys):
    before = set(there.iterdir())
    work, calls = getattr(nl.MLkNN, phase), []

    def interrupted(*arguments, **options):
        calls.append(phase)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    monkeypatch.setattr(models, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(nl.MLkNN, phase, interrupted)
    assert run([verb, "exact", "many.npz", "-o", "half.csv"]) == INTERRUPTED
    assert capsys.readouterr().err == "nearlabel: interrupted\n"
    assert set(there.iterdir()) == before


def test_progress_of_answers(there, monkeypatch):
    told = []

    class Noted:
        def __init__(self, what):
            self.what = what

        def __enter__(self):
            return lambda *steps: told.append((self.what, *steps))

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(models, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(models, "Steps", Noted)
    for verb, what in (("predict", "predicting"), ("rank", "ranking"), ("fit", "learning")):
        told.clear()
        files = ("many.npz", "-o", "m") if verb == "fit" else ("exact", "many.npz", "-o", "p.csv")
        assert run([verb, *files]) == 0
        assert told == sorted(told)
        assert {one[0] for one in told} == {what}
        assert told[-1][1] == told[-1][2] == (1500 + 188 if verb == "fit" else 1500)
    told.clear()
    write_npz(nl.datasets.make_local_labels(9, 6, 12), there / "few.npz")
    assert run(["rank", "exact", "few.npz", "--why", "-o", "w.jsonl"]) == 0
    np.testing.assert_array_equal([one[1] for one in told], np.arange(1, 10))
