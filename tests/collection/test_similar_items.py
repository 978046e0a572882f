"""The items nearest to an item or a vector, compared with all items one by one."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from nearlabel.collection import Collection, CollectionError, FileState, NewItem, similar_items
from nearlabel.collection.records import content_of

WIDTH = 4
METHOD = {"name": "MLkNN", "n_neighbors": 3, "metric": "euclidean"}


def grid(n, seed=0):
    """Vectors on a grid: many are equally far, and some are equal."""
    return np.random.default_rng(seed).integers(0, 3, (n, WIDTH)).astype(np.float32)


def new(name, x):
    return NewItem(content_of(name.encode()), x, name=name)


@pytest.fixture
def made(tmp_path):
    """Makes a collection of vectors."""
    opened = []

    def make(X, **method):
        path = tmp_path / str(len(opened))
        opened.append(Collection.create(path, kind="vectors", method=METHOD | method))
        opened[-1].add([new(str(at), X[[at], :]) for at in range(X.shape[0])])
        return opened[-1]

    yield make
    for collection in opened:
        collection.close()


def far(x, y, metric):
    if metric == "euclidean":
        return math.dist(x, y)
    lengths = math.hypot(*x) * math.hypot(*y)
    return 1 - sum(a * b for a, b in zip(x, y, strict=True)) / lengths if lengths else 1.0


def nearest(collection, query, n):
    """The expected result of `similar`."""
    ids, metric = collection.ids(), collection.settings.method["metric"]
    vectors = collection.vectors(ids)
    rows = vectors.toarray() if sparse.issparse(vectors) else vectors
    X = dict(zip(ids, rows.tolist(), strict=True))
    x = X[query] if isinstance(query, int) else query
    found = sorted((far(x, X[item], metric), item) for item in ids if item != query)
    return [(item, distance) for distance, item in found][:n]


def assert_nearest(collection, *queries, n=5):
    for query in queries:
        found, wanted = collection.similar(query, n), nearest(collection, query, n)
        assert [item for item, _ in found] == [item for item, _ in wanted]
        np.testing.assert_allclose(
            [distance for _, distance in found],
            [distance for _, distance in wanted],
            rtol=0,
            atol=1e-12,
        )


def tag_in_turns(collection, ids):
    """Give items tags in another order than that of their ids."""
    for start in (2, 1, 0):
        collection.tag(ids[start::3], "abc"[start])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("decided", [0, 1, 20, 40])
def test_the_nearest_of_all_items(made, metric, is_sparse, decided):
    X = grid(40)
    if metric == "cosine":  # the only exact ties are those of equal rows
        X = np.random.default_rng(0).normal(size=X.shape) * (X != 1)
        X[[7, 31, 38]] = X[[3, 3, 0]]
    collection = made(sparse.csr_array(X) if is_sparse else X, metric=metric)
    tag_in_turns(collection, collection.ids()[:decided])
    for n in (1, 4, 38, 100):
        assert_nearest(collection, 1, 4, 33, [1, 0, 2, 1], n=n)
    assert collection.similar(5) == collection.similar(np.int64(5), 12)


def test_equal_items_are_in_the_order_of_their_ids(made):
    collection = made(np.ones((30, 2)))
    for item in range(30, 0, -2):
        collection.tag(item, "a")
    assert collection.similar([1, 1], 3) == [(1, 0), (2, 0), (3, 0)]
    assert collection.similar(2, 3) == [(1, 0), (3, 0), (4, 0)]
    assert [item for item, _ in collection.similar(2, 100)] == [1, *range(3, 31)]


@pytest.mark.parametrize(("touched", "kept"), [(256, 2**31), (3, 2**31), (3, 0)])
def test_any_changes(made, monkeypatch, touched, kept):
    """Also if the index is rebuilt often, and without an index."""
    monkeypatch.setattr(similar_items, "_MOST_TOUCHED", touched)
    monkeypatch.setattr(similar_items, "_MOST_KEPT", kept)
    monkeypatch.setattr(similar_items, "_ROWS_AT_ONCE", 7)
    random, collection = np.random.default_rng(1), made(grid(20))
    for step in range(24):
        ids = collection.ids()
        some = random.choice(ids, 2, replace=False).tolist()
        what = random.integers(7)
        if what == 0:
            collection.add([new(f"{step} {at}", x) for at, x in enumerate(grid(2, step))])
        elif what == 1:
            collection.clear(some, ["a", "b"])
        elif what == 2:
            collection.undo()
        elif what == 3:
            collection.set_vectors({some[0]: grid(1, step)[0]})
        elif what == 4 and step % 3 == 0:
            collection.forget(some[:1])
        else:
            collection.tag(some, "ab"[step % 2])
        assert_nearest(collection, collection.ids()[step % 5], grid(1, 9)[0].tolist())
    assert (collection._similar._indexed is None) == (kept == 0)


def test_few_changes_do_not_index_all_items_again(made, monkeypatch):
    collection, indexed = made(grid(30)), []
    build = similar_items.build_index

    def counted(rows, *how):
        indexed.append(rows.shape[0])
        return build(rows, *how)

    monkeypatch.setattr(similar_items, "build_index", counted)
    collection.tag([1, 2, 3], "a")
    for _ in range(3):
        collection.similar(1)
    assert indexed == [27]  # the model has the others
    collection.tag(4, "a")
    collection.clear(1, "a")
    collection.similar(1)
    assert indexed == [27, 1]


def test_all_near_items_were_removed(made):
    collection = made(np.arange(80).reshape(20, WIDTH))
    assert_nearest(collection, [0, 0, 0, 0], n=3)
    collection.set_vectors({item: np.full(WIDTH, 1000) for item in range(1, 5)})
    collection.forget([5, 6, 7])
    assert_nearest(collection, [0, 0, 0, 0], n=3)


def test_a_content_that_was_forgotten_since(tmp_path):
    """The log has lost it, but the item that once had it was changed."""

    def added(content, path):
        x = np.random.default_rng(ord(content)).normal(size=3)
        return NewItem(content_of(content.encode()), x, (FileState("/photos", path, 1, 1),))

    with Collection.create(tmp_path / "photos", features="moments") as photos:
        photos.add([added(name, name) for name in "abcdef"])
        photos.tag([1, 2, 3], "sea")
        photos.save_index()
        for altered in (1, 4):
            (name,) = (file.path for file in photos.item(altered).files)
            query = photos.vectors([altered])[0].tolist()
            assert_nearest(photos, query)
            photos.add([added(name.upper(), name)])
            (copy,) = photos.add([added(name, "copy")])
            assert photos.forget(copy).items == 1
            assert_nearest(photos, query, altered)
            assert photos.verify()


def test_another_metric(made):
    collection = made(np.random.default_rng(0).normal(size=(20, WIDTH)))
    tag_in_turns(collection, range(1, 16))
    assert_nearest(collection, 3, 18)
    with ThreadPoolExecutor(1) as pool, collection.snapshot():
        pool.submit(collection.set_method, METHOD | {"metric": "cosine"}).result()
        pool.submit(assert_nearest, collection, 3, 18).result()
        assert collection.settings.method == METHOD
        assert_nearest(collection, 3, 18)
    assert collection.settings.method["metric"] == "cosine"
    assert_nearest(collection, 3, 18)


def test_an_older_state_is_not_answered_from_a_later_index(made):
    collection = made(grid(20))
    collection.tag([1, 2], "a")

    def change():
        collection.tag([5, 6], "a")
        collection.clear(1, "a")
        collection.add([new("more", grid(20)[4])])
        assert_nearest(collection, 5)

    with ThreadPoolExecutor(1) as pool, collection.snapshot():
        pool.submit(change).result()
        assert_nearest(collection, 5, 1, grid(20)[4].tolist(), n=30)
    assert_nearest(collection, 5, 1, 21, n=30)


def test_vectors_of_either_form(made):
    for X in (grid(20), sparse.csr_array(grid(20))):
        collection = made(X)
        collection.tag([1, 2, 3], "a")
        expected = nearest(collection, [1, 0, 2, 0], 5)
        for query in ([1, 0, 2, 0], np.float32([[1, 0, 2, 0]]), sparse.csr_array([[1, 0, 2, 0]])):
            assert collection.similar(query, 5) == expected


def test_an_empty_collection_has_no_similar_items(made, tmp_path):
    with Collection.create(tmp_path / "empty", kind="vectors") as collection:
        assert collection.similar([1, 2]) == []
        with pytest.raises(CollectionError, match="no item 1"):
            collection.similar(1)
    collection = made(grid(1))
    assert collection.similar(1) == []
    assert collection.similar([0, 0, 0, 0]) == nearest(collection, [0, 0, 0, 0], 1)


@pytest.mark.parametrize("decided", [[], [1, 2, 3]])
def test_invalid_arguments_are_named(made, decided):
    collection = made(grid(5))
    collection.tag(decided, "a")
    with pytest.raises(ValueError, match="query must have 4 features; got 3"):
        collection.similar([1, 2, 3])
    with pytest.raises(ValueError, match="query must be one vector; got 2"):
        collection.similar(grid(2))
    with pytest.raises(ValueError, match=r"query.*NaN"):
        collection.similar([1, 2, 3, np.nan])
    with pytest.raises(CollectionError, match="no item 9"):
        collection.similar(9)
    with pytest.raises(TypeError, match="id must be an integer"):
        collection.similar(True)
    with pytest.raises(ValueError, match=r"n must be .* got 0"):
        collection.similar(1, 0)
