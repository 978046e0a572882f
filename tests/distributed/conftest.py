"""One local cluster for all tests of this folder, resized as they need it."""

from __future__ import annotations

import os

import numpy as np
import pytest

import nearlabel as nl

# Workers are forked from a process that has imported Dask, which takes a second in each otherwise.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")

# Warnings about the cluster's own threads and sockets are ignored.
QUIET = [
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/distributed" in item.path.as_posix():
            for one in QUIET:
                item.add_marker(pytest.mark.filterwarnings(one))


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes with one thread each."""
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    )
    with distributed.Client(cluster) as client:
        yield client
    try:
        cluster.close()
    except KeyError:  # raised by Dask at the very end for a worker that was killed as it started
        cluster.status = distributed.Status.closed


@pytest.fixture
def resized(client):
    """Change the number of workers."""

    def resize(count):
        client.cluster.scale(count)
        client.wait_for_workers(count)
        while len(client.nthreads()) > count:
            client.sync(client.cluster._correct_state)
        return client

    yield resize
    resize(2)


@pytest.fixture(scope="session")
def items():
    """Rows in local clusters, with labels that depend on them."""
    return nl.datasets.make_local_labels(700, 6, 9, random_state=0)


@pytest.fixture
def folder_of(tmp_path):
    """Write rows as a folder of blocks of uneven sizes; one has a single row."""

    def write(rows, cuts=(1, 130, 420), name="X"):
        folder = tmp_path / name
        folder.mkdir()
        for number, block in enumerate(np.split(rows, cuts)):
            np.save(folder / f"block {number}.npy", block)
        return folder

    return write
