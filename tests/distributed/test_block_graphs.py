"""Graphs by blocks equal those of one process, bit for bit."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.distributed.block_graphs import _calls_among
from nearlabel.distributed.vector_blocks import blocks_in
from nearlabel.distributed.workers import ClusterError


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    assert found.indices.dtype == expected.indices.dtype
    assert found.n_base == expected.n_base


@pytest.mark.parametrize("count", range(1, 9))
def test_each_pair_of_blocks_is_compared_once_and_those_with_other_blocks_follow(tmp_path, count):
    files = [tmp_path / f"{number}.npy" for number in range(count)]
    for path in files:
        np.save(path, np.ones((1, 2)))
    seen = np.zeros((count, count), bool)
    calls = _calls_among(blocks_in(files, "X"), files, seen)
    numbers = [tuple(side.number for side in sides) for sides, _ in calls]
    assert numbers[:count] == [(number,) for number in range(count)]
    pairs = numbers[count:]
    assert sorted(pairs) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for total in range(count):
        turn = [block for pair in pairs if sum(pair) % count == total for block in pair]
        assert len({*turn}) == len(turn)
    assert sorted(pairs, key=lambda pair: sum(pair) % count) == pairs


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
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    assert nl.distributed.neighbor_graph(rows, 4, client, folder=work) == first
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()} == before
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
    for metric in ("precomputed", lambda a, b: 0.0):
        with pytest.raises(ValueError, match="metric must not be 'precomputed' or a function on a"):
            graph(items.X, 3, client, metric=metric)
    with pytest.raises(ValueError, match="search must be 'auto', 'exact', 'approximate' or Inver"):
        graph(items.X, 3, client, search=lambda X, queries, k: None)
    with pytest.raises(ValueError, match="X has 1 sample"):
        graph(items.X[:1], 1, client)
    with pytest.raises(ValueError, match=r"X must have rows and columns; got shape \(9, 0\)"):
        graph(items.X[:9, :0], 1, client)
    with pytest.raises(TypeError, match="X must be dense on a cluster; got a csr_"):
        graph(sparse.csr_array(items.X), 1, client)
    with pytest.raises(TypeError, match="folder must be a path or None; got int"):
        graph(items.X, 3, client, folder=3)
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match="folder: .*file cannot be used as a folder: File exi"):
        graph(items.X, 3, client, folder=tmp_path / "file")
    with pytest.raises(NotADirectoryError, match="X: .*file is a file; expected a folder of blo"):
        graph(tmp_path / "file", 3, client)
    with pytest.raises(ValueError, match="metric must not be 'precomputed' or a"):
        nl.distributed.fit(nl.BRkNN(3, metric="precomputed"), items.X, items.Y, client)


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


def test_changes_that_names_and_times_do_not_show(client, items, folder_of, tmp_path):
    da = pytest.importorskip("dask.array")
    X, how = items.X[:40], {"client": client, "folder": tmp_path / "work"}

    def distances(rows):
        return nl.distributed.neighbor_graph(rows, 2, **how).load().distances

    def expected(rows):
        return nl.neighbor_graph(rows, 2).distances

    for rows in (X, 2 * X):  # a Dask array of the same name
        given = da.from_array(rows, chunks=(40, 6), name="X")
        np.testing.assert_array_equal(distances(given), expected(rows))
    folder = folder_of(X, (20,))
    for rows in (X, 2 * X):
        for number, part in enumerate(np.split(rows, (20,))):
            np.save(folder / f"block {number}.npy", part)
            os.utime(folder / f"block {number}.npy", (0, 0))
        np.testing.assert_array_equal(distances(folder), expected(rows))
    moved = (tmp_path / "work").rename(tmp_path / "moved")
    how["folder"] = moved
    np.testing.assert_array_equal(distances(folder), expected(2 * X))


def test_nan_in_any_argument_is_refused(client, items, folder_of):
    da = pytest.importorskip("dask.array")
    graph, X = nl.distributed.neighbor_graph, items.X[:40].copy()
    X[30, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 30, in .*block 1.npy"):
        graph(folder_of(X, (20,)), 2, client, queries=items.X[:3])
    with pytest.raises(ValueError, match="queries contains NaN or infinity in row 30"):
        graph(items.X[:9], 2, client, queries=X)
    with pytest.raises(ValueError, match="queries contains NaN or infinity in row 30; impute"):
        graph(items.X[:9], 2, client, queries=da.from_array(X, chunks=(20, 6)))
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 30"):
        nl.distributed.fit(nl.BRkNN(2), X, items.Y[:40], client)


def test_an_array_keeps_the_temporary_folder_of_its_graph(client, items, folder_of):
    lazy = nl.distributed.neighbor_graph(folder_of(items.X[:30], ()), 2, client).indices[:5]
    np.testing.assert_array_equal(lazy.compute(), nl.neighbor_graph(items.X[:30], 2).indices[:5])


def test_two_runs_in_one_folder_at_the_same_time(client, items, folder_of, tmp_path):
    rows, how = folder_of(items.X[:40], (20,)), {"folder": tmp_path / "work"}
    refused = []

    def start_another(*_):
        if not refused:
            with pytest.raises(ClusterError, match="another run is writing to .*graph-") as error:
                nl.distributed.neighbor_graph(rows, 2, client, **how)
            refused.append(error)

    found = nl.distributed.neighbor_graph(rows, 2, client, **how, progress=start_another)
    assert refused
    assert_same(found.load(), nl.neighbor_graph(items.X[:40], 2))
