"""Graphs by blocks equal those of one process, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.distributed.block_graphs import _rounds


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    assert found.indices.dtype == expected.indices.dtype
    assert found.n_base == expected.n_base


@pytest.mark.parametrize("count", range(1, 9))
def test_each_pair_of_blocks_is_compared_once_and_never_concurrently_with_another_of_its_blocks(
    count,
):
    pairs = _rounds(count)
    assert sorted(pairs) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for start in range(0, len(pairs), count // 2 or 1):
        turn = np.ravel(pairs[start : start + count // 2])
        assert len(set(turn)) == len(turn)


def test_blocks_of_uneven_size_on_three_workers(resized, items, folder_of, tmp_path):
    told = []
    found = nl.distributed.neighbor_graph(
        folder_of(items.X),
        12,
        resized(3),
        folder=tmp_path / "work",
        progress=lambda *of: told.append(of),
    )
    assert_same(found.load(), nl.neighbor_graph(items.X, 12))
    assert found.indices.compute().shape == (700, 12)  # a Dask array, too
    assert told == sorted(told)
    assert told[-1] == (700, 700)


def test_queries_and_a_dask_array_in_columns(client, items):
    da = pytest.importorskip("dask.array")
    rows = da.from_array(items.X, chunks=(300, 2))
    queries = items.X[:40].astype(np.float32) + 0.25
    found = nl.distributed.neighbor_graph(rows, 9, client, queries=queries, metric="cosine")
    assert_same(found.load(), nl.neighbor_graph(items.X, 9, queries, metric="cosine"))


def test_a_second_run_reuses_the_files_of_the_first(client, items, folder_of, tmp_path):
    rows, work = folder_of(items.X), tmp_path / "work"
    first = nl.distributed.neighbor_graph(rows, 4, client, folder=work)
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*.npy")}
    assert nl.distributed.neighbor_graph(rows, 4, client, folder=work) == first
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*.npy")} == before
    other = np.load(rows / "block 2.npy") + 1
    np.save(rows / "block 2.npy", other)
    changed = nl.distributed.neighbor_graph(rows, 4, client, folder=work)
    assert changed.files != first.files
    X = np.concatenate([np.load(rows / f"block {number}.npy") for number in range(4)])
    assert_same(changed.load(), nl.neighbor_graph(X, 4))


def test_bad_arguments_are_refused(client, items, tmp_path):
    graph = nl.distributed.neighbor_graph
    for k in (0, 700):
        with pytest.raises(ValueError, match="k must be an integer from 1 to 699; got"):
            graph(items.X, k, client)
    with pytest.raises(ValueError, match="queries must have as many features as X: 6; got 5"):
        graph(items.X, 3, client, queries=items.X[:, :5])
    with pytest.raises(ValueError, match="metric must not be 'precomputed' on a cluster"):
        graph(items.X, 3, client, metric="precomputed")
    with pytest.raises(ValueError, match="search must be 'auto', 'exact', 'approximate' or Inver"):
        graph(items.X, 3, client, search=lambda X, queries, k: None)
    with pytest.raises(ValueError, match="X has 1 sample"):
        graph(items.X[:1], 1, client)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan"])
def test_other_workers_and_metrics(resized, items, folder_of, workers, metric):
    found = nl.distributed.neighbor_graph(folder_of(items.X), 15, resized(workers), metric=metric)
    assert_same(found.load(), nl.neighbor_graph(items.X, 15, metric=metric))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_lists_are_those_of_one_process(client, folder_of, metric):
    X = nl.datasets.make_local_labels(33_000, 10, 10, random_state=0).X.astype(np.float32)
    search = nl.InvertedLists(recall=0.9)
    rows = folder_of(X, (9_000, 9_500, 21_000))
    found = nl.distributed.neighbor_graph(rows, 10, client, search=search, metric=metric)
    expected = nl.neighbor_graph(X, 10, search=search, metric=metric)
    assert_same(found.load(), expected)
    assert found.recall == expected.recall
