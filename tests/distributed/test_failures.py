"""Dead workers and interrupted runs: the result is that of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import threading

import numpy as np
import pytest

import nearlabel as nl


def kill_one(client):
    client.wait_for_workers(1)
    by_worker = client.run(os.getpid, on_error="ignore")
    os.kill(random.choice(list(by_worker.values())), signal.SIGKILL)


@pytest.fixture
def two_workers(client):
    """A client whose workers are replaced even if a nanny ends with its worker."""
    done = threading.Event()

    def replace():
        while not done.wait(0.5):
            client.cluster.scale(2)

    thread = threading.Thread(target=replace)
    thread.start()
    yield client
    client.wait_for_workers(2)
    done.set()
    thread.join()


def assert_same(found, X, k):
    expected = nl.neighbor_graph(X, k)
    np.testing.assert_array_equal(found.load().indices, expected.indices)
    np.testing.assert_array_equal(found.load().distances, expected.distances)


def test_a_worker_killed_in_the_middle(two_workers, items, folder_of, tmp_path):
    killed = []

    def kill(done, of):
        if 2 * done >= of and not killed:
            killed.append(done)
            kill_one(two_workers)

    rows = folder_of(items.X, range(60, 700, 60))
    found = nl.distributed.neighbor_graph(
        rows, 6, two_workers, folder=tmp_path / "work", progress=kill
    )
    assert killed
    assert_same(found, items.X, 6)
    two_workers.wait_for_workers(2)


def test_an_interrupted_run_continues(client, items, folder_of, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(done, of):
        if 2 * done >= of:
            raise StoppedError

    rows, work = folder_of(items.X), tmp_path / "work"
    with pytest.raises(StoppedError):
        nl.distributed.neighbor_graph(rows, 6, client, folder=work, progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in work.rglob("lists-*")}
    assert kept
    told = []
    found = nl.distributed.neighbor_graph(
        rows, 6, client, folder=work, progress=lambda *of: told.append(of)
    )
    assert len(told) < 4 + 6  # some of the four blocks and six pairs were done
    assert_same(found, items.X, 6)


def test_work_lost_to_a_late_call_is_repeated(client, items, folder_of, tmp_path):
    """Older lists replace newer ones, as by a worker that was thought dead."""
    older = {}

    def replace(done, of):
        for path in (tmp_path / "work").rglob("lists-*"):
            if path not in older:
                older[path] = path.read_bytes()
            elif done == of:
                path.write_bytes(older[path])

    found = nl.distributed.neighbor_graph(
        folder_of(items.X), 6, client, folder=tmp_path / "work", progress=replace
    )
    assert older
    assert_same(found, items.X, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_random_during_a_fit(two_workers, items, folder_of, tmp_path, seed):
    chance, killed = random.Random(seed), []

    def kill(done, of):
        if len(killed) < 5 and chance.random() < 0.05:
            killed.append(done)
            kill_one(two_workers)

    rows = folder_of(items.X, range(50, 700, 50))
    how = {"folder": tmp_path / "work", "progress": kill}
    found = nl.distributed.fit(nl.MLkNN(8), rows, items.Y, two_workers, **how)
    assert killed
    expected = nl.MLkNN(8).fit(items.X, items.Y)
    np.testing.assert_array_equal(found._counted.with_label, expected._counted.with_label)
    np.testing.assert_array_equal(found._counted.without_label, expected._counted.without_label)
    np.testing.assert_array_equal(found.rank(items.X).labels, expected.rank(items.X).labels)
