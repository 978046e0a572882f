from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.search import VectorStore

pytestmark = pytest.mark.engines


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.booleans())
def test_appending_in_parts_equals_storing_at_once(sizes, is_sparse):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 3, (size, 3)).astype(float) for size in sizes]
    form = sparse.csr_array if is_sparse else np.asarray
    store = VectorStore(form(parts[0]))
    for part in parts[1:]:
        store.append(form(part))
    whole = np.concatenate(parts)
    stored = store.vectors.toarray() if is_sparse else store.vectors
    np.testing.assert_array_equal(stored, whole)
    assert store.ids.tolist() == list(range(len(whole)))
    assert len(store) == len(whole)


def test_the_first_rows_are_neither_copied_nor_written_to():
    first = np.ones((3, 2), np.float32)
    store = VectorStore(first)
    assert np.shares_memory(store.vectors, first)
    store.append(np.zeros((0, 2), np.float32))
    store.append(np.zeros((2, 2), np.float64))
    assert store.vectors.dtype == np.float64
    np.testing.assert_array_equal(first, 1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_are_joined_only_when_they_are_asked_for(form):
    first = form(np.zeros((5, 2)))
    store = VectorStore(first)
    for _ in range(9):
        store.append(form(np.ones((1, 2))))
    assert store._parts[0] is first
    assert store.vectors.shape == (14, 2)
    assert store.vectors is store.vectors


def test_ids_are_given_or_counted_and_never_given_twice():
    store = VectorStore(np.zeros((2, 1)), ids=[7, 3])
    store.append(np.zeros((2, 1)))
    assert store.ids.tolist() == [7, 3, 8, 9]
    assert store.rows_of([9, 7]).tolist() == [3, 0]
    for ids, twice in (([3, 4], 3), ([5, 5], 5)):
        with pytest.raises(ValueError, match=f"ids .*{twice}"):
            store.append(np.zeros((2, 1)), ids=ids)
    assert len(store) == 4
    with pytest.raises(KeyError, match="id 5"):
        store.rows_of([5])


def test_unsigned_ids_stay_integers():
    store = VectorStore(np.zeros((1, 1)), ids=np.array([2**40], np.uint64))
    store.append(np.zeros((1, 1)))
    assert store.ids.tolist() == [2**40, 2**40 + 1]
    assert store.ids.dtype == np.int64


def test_ids_may_be_names():
    store = VectorStore(np.zeros((2, 1)), ids=["sea.jpg", "hill.jpg"])
    with pytest.raises(ValueError, match="ids .*given"):
        store.append(np.zeros((1, 1)))
    with pytest.raises(TypeError, match="ids .*<U.*int64"):
        store.append(np.zeros((1, 1)), ids=[4])
    store.append(np.zeros((1, 1)), ids=["a much longer name.jpg"])
    assert store.rows_of(["a much longer name.jpg"]).tolist() == [2]


def test_rows_of_another_shape_or_form_are_refused():
    store = VectorStore(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="vectors .*3 features.*2"):
        store.append(np.zeros((1, 2)))
    with pytest.raises(TypeError, match="vectors .*dense"):
        store.append(sparse.csr_array(np.zeros((1, 3))))
    with pytest.raises(ValueError, match="ids .*2.*vectors .*1"):
        store.append(np.zeros((1, 3)), ids=[5, 6])
    with pytest.raises(TypeError, match="ids .*float64"):
        store.append(np.zeros((1, 3)), ids=[0.5])
