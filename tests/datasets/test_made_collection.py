"""Generated collections have the intended properties."""

import re

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import made_collection as module
from nearlabel.datasets import make_collection

N, D, Q = 20_000, 32, 3800


@pytest.fixture(scope="module")
def made():
    return make_collection(N, D, Q, n_queries=500)


def same(one, other):
    """Whether two collections are equal to the last bit."""
    pairs = [(one.data, other.data), (one.queries, other.queries)]
    return (
        all(np.array_equal(a.X, b.X) and (a.Y != b.Y).nnz == 0 for a, b in pairs)
        and (one.complete != other.complete).nnz == 0
        and (one.queries_complete != other.queries_complete).nnz == 0
    )


def test_shape_and_types(made):
    for part, complete, n in (
        (made.data, made.complete, N),
        (made.queries, made.queries_complete, 500),
    ):
        assert part.X.shape == (n, D)
        assert part.X.dtype == np.float32
        for Y in (part.Y, complete):
            assert isinstance(Y, sparse.csr_array)
            assert Y.shape == (n, Q)
            assert Y.dtype == np.int8
            assert Y.has_canonical_format
            assert set(Y.data.tolist()) == {1}
            assert Y.indices.dtype == np.int32
        assert len(part.extra["scene"]) == len(part.extra["region"]) == n
        assert part.label_names[[0, Q - 1]].tolist() == ["label 0000", "label 3799"]
    text = f"Collection(Dataset({N} items, {D} features, {Q} labels, "
    assert repr(made).startswith(text)
    assert repr(made).endswith(", 500 queries)")


def test_lists_contain_part_of_the_true_labels(made):
    assert made.data.Y.nnz / N == pytest.approx(8, rel=0.05)
    assert made.complete.nnz / N == pytest.approx(8 / 0.7, rel=0.05)
    for part, complete in ((made.data, made.complete), (made.queries, made.queries_complete)):
        assert part.Y.multiply(complete).sum() == part.Y.nnz  # only true labels
        assert part.Y.nnz / complete.nnz == pytest.approx(0.7, abs=0.02)
    whole = make_collection(500, 4, 60, completeness=1)
    assert (whole.complete != whole.data.Y).nnz == 0


def test_the_vocabulary_has_a_long_tail(made):
    totals = np.sort(np.bincount(made.data.Y.indices, minlength=Q))[::-1]
    assert (totals > 0).mean() > 0.9
    assert (totals <= 10).mean() > 1 / 3
    assert 0.1 < totals[0] / N < 0.4
    assert 0.3 < totals[:38].sum() / totals.sum() < 0.8  # a hundredth of the labels


def test_frequent_labels_are_everywhere_and_rare_ones_in_scenes(made):
    Y, extra = made.complete, made.data.extra
    totals = np.bincount(Y.indices, minlength=Q)
    entries = Y.tocoo()

    def places_a_label(level, some):
        """Places of one level in which a label occurs, relative to its occurrences."""
        inside = np.isin(entries.col, some)
        pairs = np.unique(
            extra[level][entries.row[inside]].astype(np.int64) * Q + entries.col[inside]
        )
        return len(pairs) / inside.sum()

    rare = np.flatnonzero((totals >= 5) & (totals <= 10))
    frequent = np.flatnonzero(totals > 1000)
    assert len(rare) > 500
    assert len(frequent) > 5
    assert places_a_label("scene", rare) < 0.5  # most occur within one scene
    assert places_a_label("region", rare) < 0.3
    regions = extra["region"].max() + 1
    for label in frequent[np.argsort(-totals[frequent])][:3]:
        there = np.unique(extra["region"][entries.row[entries.col == label]])
        assert len(there) > 0.9 * regions


def test_neighbors_are_of_one_place_and_share_rare_labels(made):
    X, scene, region = made.data.X, made.data.extra["scene"], made.data.extra["region"]
    new = made.queries
    near = nl.neighbor_graph(X, 10, new.X).indices
    assert np.mean(scene[near] == new.extra["scene"][:, None]) > 0.6
    assert np.mean(region[near] == new.extra["region"][:, None]) > 0.99
    totals = np.bincount(made.complete.indices, minlength=Q)
    rare = (totals > 2) & (totals <= 10)
    here, there = made.queries_complete[:, rare], made.complete[:, rare]
    shared = here.multiply(there[near[:, 0]]).sum()
    anywhere = here.multiply(there[np.random.default_rng(0).integers(N, size=500)]).sum()
    assert shared > 20 * max(anywhere, 1)


def test_seeded():
    one, again, other = (make_collection(300, 8, 60, random_state=seed) for seed in (1, 1, 2))
    assert same(one, again)
    assert not same(one, other)
    assert not np.array_equal(one.data.X, other.data.X)
    assert (one.complete != other.complete).nnz
    assert make_collection(300, 8, 60, random_state=None).data.X.shape == (300, 8)


@pytest.mark.parametrize("rows_at_once", [1, 64])
def test_the_size_of_the_blocks_changes_nothing(monkeypatch, rows_at_once):
    whole = make_collection(1000, 24, 60)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
    assert same(whole, make_collection(1000, 24, 60))


def test_the_order_of_additions_does_not_matter(monkeypatch):
    """A BLAS with a different order of additions gives the same vectors."""
    made = make_collection(300, 100, 20, overlap=0.01)
    laid_out, rng = module._laid_out, np.random.default_rng(0)

    def shuffled(*args):
        geometry = laid_out(*args)
        order = rng.permutation(len(geometry.rotation))
        place = np.argsort(order)
        return geometry._replace(
            centers=geometry.centers[:, order],
            directions=place[geometry.directions],
            rotation=geometry.rotation[order],
        )

    monkeypatch.setattr(module, "_laid_out", shuffled)
    assert same(made, make_collection(300, 100, 20, overlap=0.01))


def test_more_queries_do_not_change_the_items():
    assert len(make_collection(400, 4, 60).queries) == 4
    none = make_collection(400, 4, 60, n_queries=0)
    assert len(none.data) == 400
    assert none.queries.X.shape == (0, 4)
    assert none.queries_complete.shape == (0, 60)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_in_a_file(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 100)
    path = tmp_path / "vectors.npy"
    mapped = make_collection(350, 8, 60, dtype=dtype, out=path)
    plain = make_collection(350, 8, 60, dtype=dtype)
    assert isinstance(mapped.data.X, np.memmap)
    assert mapped.data.X.dtype == plain.data.X.dtype == mapped.queries.X.dtype == dtype
    assert not mapped.data.X.flags.writeable
    assert same(mapped, plain)
    np.testing.assert_array_equal(np.load(path), plain.data.X)
    assert [file.name for file in tmp_path.iterdir()] == ["vectors.npy"]


def test_an_interrupt_leaves_no_file_and_an_earlier_one_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "vectors.npy"
    path.write_bytes(b"earlier")

    def interrupted(*arguments):
        yield np.zeros((10, 8), np.float32)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_vectors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_collection(300, 8, 60, out=path)
    assert [file.name for file in tmp_path.iterdir()] == ["vectors.npy"]
    assert path.read_bytes() == b"earlier"


@pytest.mark.parametrize("size", [(2, 1, 1), (3, 2, 5), (33, 70, 3), (40, 3, 40)])
def test_small_collections(size):
    n, d, q = size
    made = make_collection(n, d, q, labels_per_sample=min(q, 2), n_queries=3)
    assert made.data.X.shape == (n, d)
    assert np.isfinite(made.data.X).all()
    assert made.complete.shape == (n, q)
    assert made.complete.nnz > 0


def test_labels_per_sample():
    for mean in (0, 1, 20):
        made = make_collection(5000, 4, 2000, labels_per_sample=mean)
        assert made.data.Y.nnz / 5000 == pytest.approx(mean, rel=0.1)


@pytest.mark.slow
def test_a_million_items(tmp_path):
    made = make_collection(out=tmp_path / "vectors.npy")
    assert made.data.X.shape == (1_000_000, 128)
    assert made.data.Y.nnz / 1_000_000 == pytest.approx(8, rel=0.02)
    totals = np.bincount(made.data.Y.indices, minlength=190_000)
    assert (totals > 0).mean() > 0.9
    assert (totals <= 10).mean() > 0.5
    assert len(made.queries) == 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 1}, "n_samples.* 1$"),
        ({"n_features": 0}, "n_features.* 0$"),
        ({"n_labels": 0}, "n_labels.* 0$"),
        ({"labels_per_sample": -1}, "labels_per_sample.* 190000"),
        ({"completeness": 0}, "completeness.* 0$"),
        ({"completeness": 1.5}, "completeness.* 1.5$"),
        ({"n_queries": -1}, "n_queries.* -1$"),
        ({"overlap": 0}, "overlap.* 0$"),
        ({"dtype": "float64"}, "dtype.* 'float64'$"),
        ({"out": "vectors.npz"}, "out.* 'vectors.npz'$"),
        ({"random_state": -1}, "random_state.* -1$"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_collection(**arguments)


def test_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "vectors.npy"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        make_collection(100, 4, 60, out=path)
