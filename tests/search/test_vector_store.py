import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.search import VectorStore

pytestmark = pytest.mark.engines

FORMS = [np.asarray, sparse.csr_array]


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


@st.composite
def histories(draw):
    """Rows that are added, places that are removed, in turn; and whether ids are names."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    removals = [draw(st.lists(st.integers(0, 30), max_size=3)) for _ in sizes]
    return sizes, removals, draw(st.sampled_from(["none", "numbers", "names"]))


@given(histories(), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_every_state_stays_what_it_was(history, form, form_of_new):
    sizes, removals, kind = history
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 3, (2, 3)).astype(float)
    free = {"none": [], "numbers": [9, 2, 7, 4, 0, 30], "names": list("gcadfb")}[kind]
    named = [free.pop(), free.pop()] if free else [0, 1]
    store = VectorStore(form(whole), named if kind != "none" else None)
    states, there = [], dict(zip(named, range(2), strict=True))
    for size, gone in zip(sizes, removals, strict=True):
        part = rng.integers(0, 3, (size, 3)).astype(float)
        ids = None
        if kind != "none":
            ids = [free.pop() for _ in range(min(size, len(free)))]
            part = part[: len(ids)]
        store = store.added(form_of_new(part), ids)
        ids = ids if ids is not None else list(range(len(whole), len(whole) + len(part)))
        there = {**there, **{name: len(whole) + i for i, name in enumerate(ids)}}
        named, whole = named + ids, np.concatenate([whole, part])
        places = np.unique([place for place in gone if place < len(whole)]).astype(int)
        freed = [name for name, place in there.items() if place in places]
        store = store.removed(places)
        there = {name: place for name, place in there.items() if name not in freed}
        if kind != "none":
            free += freed  # and given again
        states.append((store, whole, named, there))
    copied = pickle.loads(pickle.dumps(store))
    for store, rows, ids, places in [*states, (copied, *states[-1][1:])]:
        assert store.ids.tolist() == ids
        assert store.rows_of(list(places)).tolist() == list(places.values())
        for missing in set(ids) - set(places):
            with pytest.raises(KeyError, match=f"id {missing!r}"):
                store.rows_of([missing])
        some = rng.permutation(len(rows))
        np.testing.assert_array_equal(dense(store.take(some)), rows[some])
        np.testing.assert_array_equal(dense(store.take(slice(1, None))), rows[1:])
        assert sparse.issparse(store.take(some)) == (form is sparse.csr_array)
    np.testing.assert_array_equal(dense(store.vectors), whole)


@pytest.mark.parametrize("form", FORMS)
def test_two_stores_that_grow_from_one_are_independent(form):
    store = VectorStore(form(np.zeros((2, 2))), ["a", "b"])
    one = store.added(form(np.ones((1, 2))), ["c"])
    other = store.added(form(np.full((1, 2), 2.0)), ["d"])
    again = one.added(form(np.full((1, 2), 3.0)), ["d"])
    assert (one.rows_of(["c"]), other.rows_of(["d"]), again.rows_of(["d"])) == (2, 2, 3)
    with pytest.raises(KeyError, match="id 'c'"):
        other.rows_of(["c"])
    assert [dense(s.take(np.array([2])))[0, 0] for s in (one, other, again)] == [1, 2, 1]


def test_the_first_rows_are_neither_copied_nor_written_to(tmp_path):
    first = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (3, 2))
    first.flags.writeable = False
    store = VectorStore(first)
    assert store.vectors is first
    longer = store.added(np.ones((2, 2), np.float32))
    assert np.shares_memory(longer.take(slice(0, 3)), first)
    assert longer.added(np.zeros((0, 2))).take(slice(3, 5)).tolist() == [[1, 1], [1, 1]]


def test_rows_that_were_joined_are_not_kept_twice():
    store = VectorStore(np.zeros((2, 1))).added(np.ones((1, 1)))
    assert store.vectors is store.vectors
    longer = store.added(np.ones((1, 1)))
    assert np.shares_memory(longer.take(slice(0, 3)), store.vectors)


@pytest.mark.parametrize("form", FORMS)
def test_rows_stay_exact_where_the_type_of_the_first_is_too_narrow(form):
    store = VectorStore(form(np.ones((1, 2), np.float32)))
    assert store.added(form(np.full((1, 2), 0.5))).vectors.dtype == np.float32
    for value in (0.1, 1e300):
        longer = store.added(form(np.full((1, 2), 0.5))).added(form(np.full((1, 2), value)))
        assert dense(longer.vectors)[:, 0].tolist() == [1, 0.5, value]
        assert dense(longer.take(np.array([2, 0])))[:, 0].tolist() == [value, 1]
    whole = VectorStore(form(np.ones((1, 2), np.int64)))
    assert dense(whole.added(form(np.full((1, 2), 0.5))).vectors)[:, 0].tolist() == [1, 0.5]


def test_ids_are_given_or_counted_and_unique():
    store = VectorStore(np.zeros((2, 1)), ids=[7, 3]).added(np.zeros((2, 1)))
    assert store.ids.tolist() == [7, 3, 8, 9]
    assert store.rows_of([9, 7]).tolist() == [3, 0]
    for ids, twice in (([3, 4], 3), ([5, 5], 5)):
        with pytest.raises(ValueError, match=f"ids .*{twice}"):
            store.added(np.zeros((2, 1)), ids=ids)
    with pytest.raises(KeyError, match="id 5"):
        store.rows_of([5])


def test_counted_ids_are_not_reused_unless_given():
    store = VectorStore(np.zeros((3, 1))).removed(np.array([2]))
    longer = store.added(np.zeros((1, 1)))
    assert longer.ids.tolist() == [0, 1, 2, 3]
    assert VectorStore(np.zeros((2, 1)), [0, 1], next_id=3).added(np.zeros((1, 1))).ids[-1] == 3
    given_again = longer.added(np.zeros((1, 1)), [2])
    assert given_again.rows_of([2]).tolist() == [4]
    assert given_again.next_id == 4
    with pytest.raises(ValueError, match="ids .*2"):
        given_again.added(np.zeros((1, 1)), [2])


def test_unsigned_ids_stay_integers():
    store = VectorStore(np.zeros((1, 1)), ids=np.array([2**40], np.uint64)).added(np.zeros((1, 1)))
    assert store.ids.tolist() == [2**40, 2**40 + 1]
    assert store.ids.dtype == np.int64
    with pytest.raises(ValueError, match=f"ids .*{2**63}"):
        store.added(np.zeros((1, 1)), ids=np.array([2**63], np.uint64))


def test_ids_may_be_names():
    store = VectorStore(np.zeros((2, 1)), ids=["sea.jpg", "hill.jpg"])
    with pytest.raises(ValueError, match="ids .*given"):
        store.added(np.zeros((1, 1)))
    with pytest.raises(TypeError, match="ids .*<U.*int64"):
        store.added(np.zeros((1, 1)), ids=[4])
    longer = store.added(np.zeros((1, 1)), ids=["a much longer name.jpg"])
    assert longer.rows_of(["a much longer name.jpg"]).tolist() == [2]


def test_rows_of_another_shape_are_refused():
    store = VectorStore(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="vectors .*3 features.*2"):
        store.added(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="ids .*2.*vectors .*1"):
        store.added(np.zeros((1, 3)), ids=[5, 6])
    with pytest.raises(TypeError, match="ids .*0.5"):
        store.added(np.zeros((1, 3)), ids=[0.5])
