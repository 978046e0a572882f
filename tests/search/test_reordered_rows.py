"""The ordered copy of the rows: the same graph from a temporary file, which is removed."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from unittest import mock

import numpy as np
import pytest

from nearlabel.search import InvertedLists
from nearlabel.search import reordered_rows as ordered
from nearlabel.search.reordered_rows import ordered_rows

pytestmark = pytest.mark.usefixtures("small_lists")
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for temporary files, to which all copies go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ordered, "_KEPT_BYTES", 0)
    return tmp_path


def some_rows(n=400, d=5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, d))[rng.integers(0, 20, n)] + 0.5 * rng.normal(size=(n, d))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_the_same_graph_from_a_file(kind, metric, folder, monkeypatch):
    X = some_rows().astype(kind)
    index = InvertedLists(0.8).build(X, metric)
    graph, asked = index.graph(7), index.graph(7, X[:9])
    assert isinstance(index._listed.rows, np.memmap)
    assert not any(folder.iterdir())
    monkeypatch.setattr(ordered, "_KEPT_BYTES", 2**31)
    twin = InvertedLists(0.8).build(X, metric)
    for ours, theirs in ((graph, twin.graph(7)), (asked, twin.graph(7, X[:9]))):
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_array_equal(ours.distances, theirs.distances)
        assert ours.recall == theirs.recall
    assert not isinstance(twin._listed.rows, np.memmap)


@pytest.mark.parametrize("limit", [0, 2**31])
def test_rows_in_another_order(limit, folder, monkeypatch):
    monkeypatch.setattr(ordered, "_KEPT_BYTES", limit)
    monkeypatch.setattr(ordered, "ELEMENTS_AT_ONCE", 17)
    X = np.arange(60, dtype=np.float16).reshape(20, 3)
    order = np.random.default_rng(0).permutation(20)
    rows = ordered_rows(X, order, np.float32)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, X[order])
    assert not any(folder.iterdir())


def assert_full(error, folder, size):
    message = str(error)
    assert "\n" not in message
    assert str(folder) in message
    assert f"{size:.1f} GiB" in message
    assert "TMPDIR" in message
    assert not any(folder.iterdir())


def test_a_full_disk_is_reported_before_anything_is_written(folder):
    X = some_rows()
    index = InvertedLists(0.8).build(X)
    full = mock.patch("shutil.disk_usage", return_value=Usage(10, 9, X.nbytes - 1))
    opened = mock.patch("tempfile.TemporaryFile", side_effect=AssertionError)
    with full, opened, pytest.raises(OSError, match="no space left on device") as caught:
        index.graph(5)
    assert caught.value.errno == errno.ENOSPC
    assert_full(caught.value, folder, 0)
    with mock.patch("shutil.disk_usage", return_value=Usage(10, 9, X.nbytes)):
        assert index.graph(5).recall.value >= 0.8  # when there is room, the index works


def test_the_size_is_reported_in_gib(folder):
    X = np.lib.stride_tricks.as_strided(np.zeros(1), (2**20, 768), (0, 0))
    full = mock.patch("shutil.disk_usage", return_value=Usage(10, 10, 0))
    with full, pytest.raises(OSError, match="vectors.*6.0 GiB") as caught:
        ordered_rows(X, np.arange(2**20), np.float64)
    assert_full(caught.value, folder, 6)


PROGRAM = """
import os, tempfile
import numpy as np
import nearlabel as nl
from nearlabel.search.approximate import inverted_lists as lists
from nearlabel.search import reordered_rows as ordered
from nearlabel.search.approximate import probe_counts as plans

lists._FEWEST, ordered._KEPT_BYTES, plans._ROWS_TUNED, plans.ROWS_MEASURED = 64, 0, 16, 32
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(1000, 20)), rng.integers(0, 2, (1000, 3))
model = nl.MLkNN(5, search="approximate")
"""

ON_A_FULL_DISK = """
import resource

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    model.fit(X, Y)
except OSError as error:
    print(error)
print(os.listdir(tempfile.gettempdir()), sorted(set(vars(model)) - set(model.get_params())))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
print(model.fit(X, Y).n_features_in_)
"""


def run(program, folder):
    command = [sys.executable, "-c", PROGRAM + program]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of Unix")
def test_a_disk_that_is_full_in_the_middle(tmp_path):
    process = run(ON_A_FULL_DISK, tmp_path)
    said, failed = process.communicate(timeout=120)
    assert process.returncode == 0, failed
    message, left, later = said.splitlines()
    assert message.startswith(f"[Errno {errno.EFBIG}] ")
    assert "0.0 GiB" in message
    assert f"{tmp_path} (File too large)" in message
    assert left == "[] []"  # no file, and an unfitted model
    assert later == "20"
    assert not any(tmp_path.iterdir())


# Interrupts


class Interrupts:
    """Progress that interrupts once some rows are done."""

    def __init__(self, after):
        self.after = after

    def __call__(self, done, total):
        if done >= self.after * total:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [0, 0.2, 0.5, 0.9, 1])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_nothing_and_the_index_works(after, n_jobs, folder):
    X = some_rows()
    index = InvertedLists(0.8).build(X)
    with pytest.raises(KeyboardInterrupt):
        index.graph(7, n_jobs=n_jobs, progress=Interrupts(after))
    assert not any(folder.iterdir())
    twin = InvertedLists(0.8).build(X).graph(7)
    np.testing.assert_array_equal(index.graph(7).indices, twin.indices)
    assert index.graph(7).recall == twin.recall
    with pytest.raises(KeyboardInterrupt):
        index.graph(7, X, n_jobs=n_jobs, progress=Interrupts(after))
    assert len(index.graph(7, X)) == len(X)


SLOW = """
def slow(done, total):  # the middle of a fit, whatever the machine
    import time

    print(done, flush=True)
    time.sleep(0.2)

model.fit(X, Y, progress=slow)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of Unix")
def test_nothing_is_left_of_a_program_that_is_killed(tmp_path):
    process = run(SLOW, tmp_path)
    try:
        for _ in range(3):
            process.stdout.readline()
    finally:
        process.kill()
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert not any(tmp_path.iterdir())
