"""Snapshots: one state of a collection during changes."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nearlabel.collection import Collection, CollectionError, NewItem
from nearlabel.collection.learner import Learner
from nearlabel.collection.records import vector_content

X = np.random.default_rng(0).integers(-3, 4, (40, 5)).astype(np.float32)


def new(name, x):
    return NewItem(vector_content(name, x), x, name=name)


@pytest.fixture
def songs(tmp_path):
    """Forty items; the first thirty have tags."""
    with Collection.create(tmp_path / "songs", kind="vectors") as collection:
        collection.add([new(str(i), x) for i, x in enumerate(X)])
        ups = [item for item in range(1, 31) if X[item - 1, 0] > 0]
        group = collection.new_group()
        collection.tag(ups, ["all", "up"], group=group)
        collection.tag([item for item in range(1, 31) if item not in ups], "all", group=group)
        collection.reject(30, "up")
        yield collection


def seen(collection):
    """The content of a collection without its derived files."""
    ids = collection.ids()
    return {
        "settings": collection.settings,
        "counts": collection.counts(),
        "items": collection.items(),
        "some": collection.items_of([1, 35]),
        "tags": collection.tags(),
        "changes": (collection.changes(), collection.last_change(), collection.next_undo()),
        "vectors": collection.vectors(ids).tolist(),
        "suggestions": [collection.suggest(item) for item in (2, 5, 35)],
        "groups": [collection.retrieve(item) for item in (2, 35)],
        "similar": [collection.similar(item, 4) for item in (2, 35)],
        "questions": collection.questions(3),
    }


def elsewhere(work):
    """The result of a function in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[iv]*")}


CHANGES = (
    lambda songs: songs.tag([2, 35, 36], ["all", "new"]),
    lambda songs: songs.reject([5, 36], "all"),
    lambda songs: songs.clear(2, ["all", "up"]),
    lambda songs: songs.add([new("more", X[34] + 1), new("same", X[1])]),
    lambda songs: songs.rename_tag("up", "rising"),
    lambda songs: songs.merge_tags(["rising", "new"], "all"),
    lambda songs: songs.undo(),
    lambda songs: songs.set_method({"name": "BRkNN", "metric": "euclidean"}),
)


def test_all_answers_inside_are_of_one_state(songs):
    after = seen(songs)
    for change in CHANGES:
        with songs.snapshot():
            elsewhere(lambda change=change: (change(songs), songs.suggest(35), songs.similar(35)))
            assert seen(songs) == after
        before, after = after, seen(songs)
        assert after != before
    with Collection(songs.path, readonly=True) as fresh:
        assert seen(fresh) == after


def test_another_reader_has_a_state_of_its_own(songs):
    with Collection(songs.path, readonly=True) as reader:
        before = seen(reader)
        with reader.snapshot():
            for change in CHANGES:
                change(songs)
            songs.save_index()
            assert seen(reader) == before
        assert seen(reader) == seen(songs) != before


@pytest.mark.parametrize("learned", [True, False])
def test_the_state_is_that_of_the_beginning_not_of_the_first_question(songs, learned):
    before = songs.last_change(), songs.item(30).no
    with songs.snapshot(learned=learned):
        elsewhere(songs.undo)
        assert (songs.last_change(), songs.item(30).no) == before
    assert (songs.last_change(), songs.item(30).no) == (before[0] + 1, [])


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_snapshots_nest(songs, outer, inner):
    before = songs.item(35), songs.suggest(36)
    with songs.snapshot(learned=outer):
        with songs.snapshot(learned=inner):
            elsewhere(lambda: songs.tag(35, "new"))
            assert (songs.item(35), songs.suggest(36)) == before
        assert (songs.item(35), songs.suggest(36)) == before
    assert songs.item(35).yes == ["new"]
    assert "new" in [one.tag for one in songs.suggest(36)]


def test_later_learning_is_not_visible(songs):
    """With `learned=False` the state may be older than the only one that was learned."""
    with songs.snapshot(learned=False):
        elsewhere(lambda: (songs.tag([35, *range(1, 31, 2)], "new"), songs.suggest(36)))
        with Collection(songs.path, readonly=True) as later:
            assert "new" in [one.tag for one in later.suggest(36)]
        assert {one.tag for one in songs.suggest(36)} == {"all", "up"}
        for voter in [voter for one in songs.suggest(36) for voter in one.voters]:
            assert songs.item(voter.id).is_learned
        assert 35 in [question.item for question in songs.questions(40)]
        assert songs.verify()
    assert "new" in [one.tag for one in songs.suggest(36)]
    assert songs.verify()


def test_no_reader_sees_half_of_a_change(songs):
    items, tags, done = [*range(1, 8)], ("day", "night"), threading.Event()
    told, of_change = [], {}

    def flip():
        step, end = 0, time.monotonic() + 20
        try:
            while len({*told}) < 8 and time.monotonic() < end:
                now, step = tags[step % 2], step + 1
                change = songs.decide([(item, tag, tag == now) for item in items for tag in tags])
                of_change[change.number] = (now,)
                time.sleep(0.001)
        finally:
            done.set()

    def read():
        while not done.is_set():
            with songs.snapshot():
                (now,) = {
                    tuple(tag for tag in tags if tag in songs.item(item).yes) for item in items
                }
                for suggestion in songs.suggest(X[0]):
                    assert suggestion.tag in ("all", "up", *now)
                    voters = songs.items_of([voter.id for voter in suggestion.voters])
                    assert all(suggestion.tag in item.yes for item in voters.values())
                told.append((songs.last_change(), now))

    with ThreadPoolExecutor(3) as pool:
        for work in [pool.submit(read), pool.submit(read), pool.submit(flip)]:
            work.result()
    assert all(now == of_change.get(change, ()) for change, now in told)
    assert len({*told}) >= 8


WRITING = (
    lambda songs: songs.add([new("more", X[0])]),
    lambda songs: songs.tag(1, "new"),
    lambda songs: songs.decide([(1, "all", None)]),
    lambda songs: songs.set_tags(1, []),
    lambda songs: songs.rename_tag("up", "rising"),
    lambda songs: songs.merge_tags("all", "one"),
    lambda songs: songs.set_vectors({1: X[1]}),
    lambda songs: songs.set_method({"name": "BRkNN"}),
    lambda songs: songs.undo(),
    lambda songs: songs.forget(1),
    lambda songs: songs.save_index(),
    lambda songs: songs.compact(),
)


@pytest.mark.parametrize("learned", [True, False])
def test_nothing_can_be_changed_inside(songs, learned):
    songs.save_index()
    before, files = seen(songs), files_of(songs.path)
    for write in WRITING:
        with songs.snapshot(learned=learned):
            with pytest.raises(RuntimeError, match="cannot be changed while this thread reads it"):
                write(songs)
            elsewhere(songs.last_change)  # no lock is held
    assert (seen(songs), files_of(songs.path)) == (before, files)
    for write in WRITING:
        write(songs)


def test_an_error_inside_ends_it(songs):
    with pytest.raises(CollectionError, match="no item 99"), songs.snapshot():
        songs.suggest(99)
    songs.tag(35, "new")
    assert songs.item(35).yes == ["new"]
    assert "new" in [one.tag for one in songs.suggest(36)]


def test_reading_alone_learns_nothing(songs, monkeypatch):
    monkeypatch.setattr(Learner, "opened", lambda *_, **__: 1 / 0)
    with songs.snapshot(learned=False):
        assert songs.item(1).is_learned
    with pytest.raises(ZeroDivisionError), songs.snapshot():
        pass


def test_forgotten_items_are_erased_when_no_reader_is_left(songs):
    songs.similar(35)
    with ThreadPoolExecutor(1) as pool:
        with songs.snapshot():
            before = seen(songs)
            work = pool.submit(songs.forget, [2, 35])
            while elsewhere(songs.ids) == songs.ids():
                time.sleep(0.001)
            assert seen(songs) == before
            assert not work.done()
        assert work.result().items == 2
    assert songs.ids() == [item for item in range(1, 41) if item not in (2, 35)]
    assert X[34].tobytes() not in b"".join(path.read_bytes() for path in songs.path.iterdir())
    assert songs.verify()


def test_readers_of_an_earlier_state_see_it_while_the_file_is_rewritten(songs):
    songs.forget(39)
    songs.add([NewItem(bytes(32), X[0])])
    songs.undo()
    with ThreadPoolExecutor(1) as pool:
        with songs.snapshot():
            before = seen(songs)
            work = pool.submit(songs.compact)
            time.sleep(0.1)
            assert seen(songs) == before
            assert not work.done()  # until the log can be emptied
        work.result()
    assert before["counts"]["garbage_bytes"] > 0
    assert seen(songs) == before | {"counts": before["counts"] | {"garbage_bytes": 0}}


def test_a_closed_collection_has_none(songs):
    songs.close()
    for learned in (True, False):
        with pytest.raises(CollectionError, match="is closed"), songs.snapshot(learned=learned):
            pass
