"""Problems of a cluster are reported in one sentence before work begins."""

from __future__ import annotations

import operator
import signal
import subprocess
import sys

import pytest

import nearlabel as nl
from nearlabel.distributed import workers


def test_results_are_in_the_order_of_calls(client):
    told = []
    calls, uses = [(number,) for number in range(9)], [(number % 2,) for number in range(9)]
    found = workers.run_calls(
        client, operator.neg, calls, uses=uses, progress=lambda *of: told.append(of)
    )
    assert found == [0, -1, -2, -3, -4, -5, -6, -7, -8]
    assert told == [(done, 9) for done in range(1, 10)]
    with pytest.raises(TypeError, match="bad operand type"):
        workers.run_calls(client, operator.neg, [(1,), (None,)])


def test_workers_with_a_different_version_or_none(client, monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "__version__", "0.0.9")
    with pytest.raises(
        workers.ClusterError, match=r"worker tcp://\S+ has nearlabel .*this process has 0.0.9"
    ):
        workers.check_workers(client, tmp_path)
    told = {"tcp://a:1": ModuleNotFoundError("No module named 'nearlabel'")}
    monkeypatch.setattr(client, "run", lambda *_, **__: told)
    with pytest.raises(
        workers.ClusterError, match="worker tcp://a:1 cannot import nearlabel: No module"
    ):
        workers.check_workers(client, tmp_path)


def test_a_scheduler_without_nearlabel(client, monkeypatch, tmp_path):
    def fails(*_):
        raise ModuleNotFoundError("No module named 'nearlabel'")

    monkeypatch.setattr(client, "run_on_scheduler", fails)
    with pytest.raises(workers.ClusterError, match="the scheduler cannot import nearlabel: No mod"):
        workers.check_workers(client, tmp_path)


def test_a_closed_and_an_asynchronous_client(monkeypatch, client, items):
    monkeypatch.setattr(client, "status", "closed")
    with pytest.raises(workers.ClusterError, match="client is closed"):
        nl.distributed.neighbor_graph(items.X, 3, client)
    monkeypatch.setattr(type(client), "asynchronous", True)
    with pytest.raises(TypeError, match="client must not be asynchronous"):
        nl.distributed.neighbor_graph(items.X, 3, client)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signal masks")
def test_processes_started_without_interrupts_do_not_receive_them():
    script = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with workers._without_interrupts():
        child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert child.stdout == "True\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_folder_or_a_file_that_workers_do_not_see(client, tmp_path):
    with pytest.raises(
        workers.ClusterError, match="does not see the folder .*folder= must be one that"
    ):
        workers.check_workers(client, tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="X: worker .* does not see .*missing.npy"):
        workers.check_files(client, [str(tmp_path / "missing.npy")], "X")


def test_no_scheduler_and_no_valid_client(items, monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE", 0.5)
    with pytest.raises(workers.ClusterError, match="no Dask scheduler answers at 127.0.0.1:9"):
        nl.distributed.neighbor_graph(items.X, 3, "127.0.0.1:9")
    with pytest.raises(TypeError, match="client must be a dask.distributed.Client, .*; got int"):
        nl.distributed.neighbor_graph(items.X, 3, 5)


def test_without_dask_nothing_imports_it_and_the_error_names_the_extra():
    script = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import nearlabel as nl
nl.distributed.fit, nl.MLkNN().fit([[0.0], [1.0], [2.0]], [[1, 0], [0, 1], [1, 1]])
try:
    nl.distributed.neighbor_graph([[0.0], [1.0]], 1)
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "nl.distributed needs Dask: pip install 'nearlabel[distributed]'\n"
