"""Scheduler and workers in separate network namespaces, joined by a bridge, not by loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest

import nearlabel as nl

pytestmark = pytest.mark.slow
SCRIPT = """
import sys
import numpy as np
import nearlabel as nl
if __name__ == "__main__":
    address, rows, labels, work, model = sys.argv[1:]
    Y = np.load(labels)
    nl.distributed.fit(nl.MLkNN(8), rows, Y, address, folder=work).save(model)
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture
def namespaces():
    """Four namespaces on one bridge, in a namespace of its own."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("needs ip of iproute2, and the right to make network namespaces")
    mark = f"nl{os.getpid() % 10_000}"
    hub, names = f"{mark}hub", [f"{mark}n{number}" for number in range(4)]
    made = []
    try:
        for name in (hub, *names):
            run("ip", "netns", "add", name)
            made.append(name)
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        for number, name in enumerate(names):
            ends = f"{mark}a{number}", f"{mark}b{number}"
            run(
                "ip",
                "link",
                "add",
                ends[0],
                "netns",
                hub,
                "type",
                "veth",
                "peer",
                "name",
                ends[1],
                "netns",
                name,
            )
            run("ip", "-n", hub, "link", "set", ends[0], "master", "bridge", "up")
            run("ip", "-n", name, "addr", "add", f"10.231.7.{number + 1}/24", "dev", ends[1])
            run("ip", "-n", name, "link", "set", ends[1], "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        pytest.skip(f"network namespaces cannot be made here: {getattr(error, 'stderr', error)}")
    yield names
    for name in made:
        run("ip", "netns", "delete", name)


def test_a_fit_across_namespaces(namespaces, items, folder_of, tmp_path):
    rows, labels, model = folder_of(items.X), tmp_path / "Y.npy", tmp_path / "a.model"
    np.save(labels, items.Y.toarray())
    address = "tcp://10.231.7.1:8786"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    with ExitStack() as running:

        def start(name, *command):
            process = subprocess.Popen(["ip", "netns", "exec", name, *command])
            running.callback(process.wait)
            running.callback(process.terminate)

        start(namespaces[0], *dask, "--host", "10.231.7.1", "--port", "8786", "--no-dashboard")
        time.sleep(1)
        for number in (1, 2):
            start(namespaces[number], *worker, "--host", f"10.231.7.{number + 1}", "--no-dashboard")
        script = tmp_path / "client.py"
        script.write_text(SCRIPT)
        wait = (
            f"from distributed import Client; Client({address!r}, timeout=60).wait_for_workers(2)"
        )
        inside = ["ip", "netns", "exec", namespaces[3], sys.executable]
        run(*inside, "-c", wait)
        run(*inside, str(script), address, str(rows), str(labels), str(tmp_path / "w"), str(model))
    expected = nl.MLkNN(8).fit(items.X, items.Y)
    found = nl.load(model)
    np.testing.assert_array_equal(found._counted.with_label, expected._counted.with_label)
    np.testing.assert_array_equal(
        found.label_scores(items.X).toarray(), expected.label_scores(items.X).toarray()
    )
