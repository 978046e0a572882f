"""Changing the method of a collection."""

from __future__ import annotations

import os

import numpy as np
import pytest
from forking import ends_well_in_a_fork

import nearlabel as nl
from nearlabel.collection import Collection, CollectionError, NewItem
from nearlabel.collection.learning_methods import DEFAULT_METHOD
from nearlabel.collection.records import vector_content

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
METHODS = (
    {"name": "MLkNN", "n_neighbors": 2, "metric": "euclidean", "smoothing": 0.5, "counts": "even"},
    {"name": "BRkNN", "n_neighbors": 3, "weights": "distance"},
    {"name": "MallowskNN", "metric": "manhattan"},
    {"name": "MLCWkNN", "metric": "cosine"},
)


def filled(path, method=None):
    """Sixty items, fifty of them with tags."""
    collection = Collection.create(path, kind="vectors", method=method)
    named = [(str(at), x) for at, x in enumerate(X)]
    collection.add([NewItem(vector_content(name, x), x, name=name) for name, x in named])
    for column, tag in enumerate(["red", "green", "blue"]):
        collection.tag([item for item in range(1, 51) if X[item - 1, column] > 0], tag)
    collection.reject([*range(1, 51)], "gray")
    return collection


@pytest.fixture
def songs(tmp_path):
    with filled(tmp_path / "songs") as collection:
        yield collection


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A collection that tests do not change."""
    with filled(tmp_path_factory.mktemp("songs") / "songs") as collection:
        collection.save_index()
        yield collection


def answers(collection):
    return [
        (collection.suggest(query), collection.retrieve(query), collection.similar(query, 4))
        for query in (3, 55, [1, 0, 0, -1])
    ] + collection.questions(3)


def indexes(collection):
    return [path.name for path in collection.path.glob("index-*")]


def test_answers_are_those_of_a_collection_created_with_the_method(songs, tmp_path):
    before = answers(songs)
    for at, method in enumerate(METHODS):
        songs.set_method(method)
        with filled(tmp_path / str(at), method) as other:
            assert songs.settings == other.settings
            assert answers(songs) == answers(other) != before
        assert songs.verify()
    songs.set_method(None)
    assert answers(songs) == before


def test_it_survives(songs):
    songs.save_index()
    songs.set_method(METHODS[0])
    assert indexes(songs) == []  # of the method before
    found = answers(songs)
    for save in (False, True):
        if save:
            songs.save_index()
            assert len(indexes(songs)) == 1
        songs.close(save=False)
        songs = Collection(songs.path)
        assert songs.settings.method == METHODS[0]
        assert answers(songs) == found
        assert songs.notes == []
        assert songs.verify()
    songs.close()


def test_a_method_may_be_an_estimator(songs):
    songs.set_method(nl.BRkNN(3, metric="euclidean"))
    found = answers(songs)
    assert songs.settings.method["metric"] == "euclidean"
    songs.set_method({"name": "BRkNN", "n_neighbors": 3, "metric": "euclidean"})
    assert answers(songs) == found


def test_readers_follow(songs):
    with Collection(songs.path, readonly=True) as reader:
        for method in METHODS[:2]:
            before = answers(reader)
            songs.set_method(method)
            assert answers(reader) == answers(songs) != before
            songs.save_index()
            songs.tag(55, "red")
            assert answers(reader) == answers(songs)
        assert reader.notes == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_readers_in_other_processes_follow(songs):
    """One process queries before and after; another changes the method in between."""
    songs.save_index()
    path = songs.path
    songs.close()

    def change():
        with Collection(path) as other:
            other.set_method(METHODS[0])
            other.tag(55, "red")
            other.save_index()

    with Collection(path, readonly=True) as reader:
        before = answers(reader)
        assert ends_well_in_a_fork(change)
        after = answers(reader)
        with Collection(path, readonly=True) as fresh:
            assert after == answers(fresh) != before
        assert (reader.settings.method, reader.notes) == (METHODS[0], [])


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ({"name": "IBLR"}, r"method must be one of 'MLkNN', .*; got 'IBLR'"),
        ({"n_neighbors": 3}, r"method must be one of .*; got None"),
        ({"name": "MLkNN", "k": 3}, r"'k'"),
        ({"name": "MLkNN", "n_neighbors": 0}, r"n_neighbors must be .*; got 0"),
        ({"name": "MLkNN", "smoothing": -1}, r"smoothing must be .*; got -1"),
        ({"name": "MLkNN", "metric": "nearness"}, r"metric must be one of .*; got 'nearness'"),
        ({"name": "MLkNN", "metric": "precomputed"}, r"metric must be .*; got 'precomputed'"),
        ({"name": "MLkNN", "metric": max}, r"metric must be one of .*; got <built-in .* max>"),
        ({"name": "MLkNN", "search": "fast"}, r"search must be one of .*; got 'fast'"),
        (nl.MLkNN(search=nl.InvertedLists()), r"search must be one of .*; got InvertedLists"),
        (
            {"name": "MLkNN", "n_neighbors": np.int64(3)},
            r"method must have values that can be stored as JSON",
        ),
        ({"name": "BRkNN", "weights": "even"}, r"weights must be .*; got 'even'"),
        ("MLkNN", r"method must be an estimator, or its name and parameters; got 'MLkNN'"),
        (nl.IBLR(), r"method must be one of .*; got 'IBLR'"),
    ],
)
def test_refused_requests_change_nothing(kept, method, error):
    before = kept.suggest(3), indexes(kept), kept.last_change()
    with pytest.raises((ValueError, TypeError), match=error):
        kept.set_method(method)
    assert kept.settings.method == DEFAULT_METHOD
    assert (kept.suggest(3), indexes(kept), kept.last_change()) == before
    assert kept.notes == []


def test_readers_cannot_change_it(kept):
    files = {path.name: path.stat() for path in kept.path.glob("index-*")}
    with Collection(kept.path, readonly=True) as reader:
        for change in (lambda: reader.set_method(METHODS[0]), reader.save_index):
            with pytest.raises(CollectionError, match="readonly=True"):
                change()
    assert kept.settings.method == DEFAULT_METHOD
    assert {path.name: path.stat() for path in kept.path.glob("index-*")} == files


def test_undo_skips_it(songs):
    change, run = songs.last_change(), songs.next_undo()
    songs.set_method(METHODS[0])
    assert (songs.last_change(), songs.next_undo()) == (change, run)
    assert songs.undo().kind == "reject"
    assert songs.settings.method == METHODS[0]
    assert {one.tag for one in songs.suggest(55)} <= {"red", "green", "blue"}
