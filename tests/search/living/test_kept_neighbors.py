import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from living_rows import LivingRows, added, histories

from nearlabel.common.files import FileError
from nearlabel.search.living.kept_neighbors import KeptNeighbors

pytestmark = pytest.mark.engines


def width_of(k):
    """How many neighbors a row has at most."""
    return k + max(3, k // 8)


def check(kept, rows, k):
    """Every list is exactly the nearest alive rows, as many as it says."""
    assert len(kept) == len(rows.x)
    alive = np.flatnonzero(rows.alive)
    np.testing.assert_array_equal(kept.lengths > 0, rows.alive)
    assert kept.lengths[alive].min() >= k
    assert kept.lengths.max() <= kept.width == width_of(k)
    true = rows.graph(alive, kept.width)
    for i, place in enumerate(alive):
        length = kept.lengths[place]
        assert kept.places[place, :length].tolist() == true.indices[i, :length].tolist()
        assert kept.distances[place, :length].tolist() == true.distances[i, :length].tolist()
        assert kept.limits()[place] == true.distances[i, length - 1]
    assert np.all(kept.limits()[~rows.alive] == -np.inf)
    beyond = np.arange(kept.width) >= kept.lengths[:, None]
    assert np.all(kept.places[beyond] == -1)
    assert np.all(np.isinf(kept.distances[beyond]))
    head = kept.head()
    assert (head.k, head.n_base) == (k, len(rows.x))
    assert head.indices.tolist() == true.indices[:, :k].tolist()


def check_changes(changes, before, after, k):
    """The changes are those between two states, for all rows that are in both."""
    old, new = before.heads(k), after.heads(k)
    changed = [row for row in old if row in new and old[row] != new[row]]
    assert changes.rows.tolist() == changed
    assert changes.before.tolist() == [old[row] for row in changed]
    assert changes.after.tolist() == [new[row] for row in changed]


@st.composite
def kept_histories(draw):
    k = draw(st.integers(1, 4))
    known = draw(st.integers(k, width_of(k) + 2))
    return draw(histories(least=width_of(k) + 2)), k, known, draw(st.integers(1, 2))


@given(kept_histories(), st.integers(0, 2**32 - 1))
def test_kept_neighbors_are_those_of_a_search(history, seed):
    (rows, *states), k, known, n_jobs = history
    order = np.random.default_rng(seed)
    most = len(rows.x) - 1
    kept = KeptNeighbors.of(rows.graph(np.arange(len(rows.x)), min(known, most)), k)
    check(kept, rows, k)
    for after in states:
        n = len(kept)
        if len(after.x) > n:
            found = int(order.integers(k, kept.width + 2))
            arrivals = after.arrivals(n, found, kept.limits(), order)
            changes = added(kept, arrivals, n_jobs)
        else:
            gone = order.permutation(np.flatnonzero(rows.alive & ~after.alive))
            pointing = [row for row, near in rows.heads(k).items() if set(near) & set(gone)]
            assert kept.pointing_at(gone, n_jobs=n_jobs).tolist() == pointing
            search = lambda places: after.graph(places, kept.width)  # noqa: B023, E731
            changes = kept.remove(gone, search, n_jobs=n_jobs)
        check_changes(changes, rows, after, k)
        check(kept, after, k)
        rows = after


@pytest.mark.parametrize("k", [1, 8, 40])
def test_many_rows_at_once_in_blocks(k, monkeypatch):
    monkeypatch.setattr("nearlabel.search.living.kept_neighbors._ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(k)
    rows = LivingRows(rng.integers(0, 300, 150), np.zeros((150, 1)))
    kept = KeptNeighbors.of(rows.graph(np.arange(150), width_of(k)), k)
    after = rows.added(rng.integers(0, 300, 100), np.zeros((100, 1)))
    arrivals = after.arrivals(150, kept.width, kept.limits(), rng)
    check_changes(added(kept, arrivals, n_jobs=2), rows, after, k)
    check(kept, after, k)
    least = after.removed(rng.permutation(250)[: 250 - kept.width - 2])
    gone = np.flatnonzero(~least.alive)
    changes = kept.remove(gone, lambda places: least.graph(places, kept.width), n_jobs=2)
    check_changes(changes, after, least, k)
    check(kept, least, k)


def test_spare_neighbors_are_used_before_any_search():
    rows = LivingRows(np.arange(20), np.zeros((20, 1)))
    kept = KeptNeighbors.of(rows.graph(np.arange(20), 5), 2)
    asked = []

    def search(after):
        def found(places):
            asked.append(places.tolist())
            return after.graph(places, kept.width)

        return found

    for gone in (9, 10, 8):  # neighbors of row 11: 10, 12, 9, 13, 8
        rows = rows.removed([gone])
        kept.remove(np.array([gone]), search(rows))
    assert asked == []
    rows = rows.removed([12])
    kept.remove(np.array([12]), search(rows))
    assert asked == [[11]]
    check(kept, rows, 2)


def test_neighbors_of_alive_places_only():
    rows = LivingRows(np.arange(12), np.zeros((12, 1))).removed([0, 5])
    alive = np.flatnonzero(rows.alive)
    for graph in (rows.graph(alive, 5), rows.graph(np.arange(12), 5), rows.graph(alive, 3)):
        kept = KeptNeighbors.of(graph, 2, rows.alive)
        check(kept, rows, 2)
        assert kept.head(np.array([6, 1])).indices.tolist() == [[7, 4], [2, 3]]


def test_the_given_arrays_stay_as_they_are():
    rows = LivingRows(np.arange(12), np.zeros((12, 1)))
    for width in (2, 5, 7):
        graph = rows.graph(np.arange(12), width)
        before = graph.indices.copy(), graph.distances.copy()
        graph.indices.flags.writeable = False
        kept, after = KeptNeighbors.of(graph, 2), rows.removed([3])
        kept.remove(np.array([3]), lambda places: after.graph(places, 5))  # noqa: B023
        check(kept, after, 2)
        np.testing.assert_array_equal(graph.indices, before[0])
        np.testing.assert_array_equal(graph.distances, before[1])


@pytest.mark.parametrize(("place", "distance"), [(-1, 1.0), (12, 1.0), (3, 9.0), (3, np.nan)])
def test_damaged_lists_are_refused(place, distance):
    graph = LivingRows(np.arange(12), np.zeros((12, 1))).graph(np.arange(12), 3)
    graph.indices[4, 1], graph.distances[4, 1] = place, distance
    with pytest.raises(FileError, match="damaged"):
        KeptNeighbors.of(graph, 2)


def test_partial_failures_are_reported(monkeypatch):
    rows = LivingRows(np.arange(12), np.zeros((12, 1)))
    kept = KeptNeighbors.of(rows.graph(np.arange(12), 2), 2)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # by the search, before anything is changed
        kept.remove(np.array([3]), interrupted)
    check(kept, rows, 2)
    assert kept.version == 0
    monkeypatch.setattr(KeptNeighbors, "_drop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kept.remove(np.array([3]), lambda places: rows.removed([3]).graph(places, 5))
    assert kept.version == 1


def test_a_copy_has_the_lists_and_no_more():
    rows = LivingRows(np.arange(12), np.zeros((12, 1)))
    kept = KeptNeighbors.of(rows.graph(np.arange(12), 5), 2)
    after = rows.added(np.array([3]), np.zeros((1, 1)))
    added(kept, after.arrivals(12, 5, kept.limits(), np.random.default_rng(0)))
    again = pickle.loads(pickle.dumps(kept))
    assert len(pickle.dumps(again)) == len(pickle.dumps(kept)) < 3000
    assert again.places.base is None
    check(again, after, 2)
    last = after.removed([4])
    again.remove(np.array([4]), lambda places: last.graph(places, 5))
    check(again, last, 2)
    check(kept, after, 2)
