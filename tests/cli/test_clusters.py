"""fit --cluster: the same model file, from a table and from a folder of blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nearlabel as nl

distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def address():
    """A cluster whose only worker is a thread of this process."""
    how = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(
        **how, dashboard_address="127.0.0.1:0", protocol="tcp", host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_table_and_blocks_give_the_model_of_one_process(ask, fail, tmp_path, address):
    data = nl.datasets.make_local_labels(90, 3, 4, random_state=0)
    nl.datasets.save(data, tmp_path / "made.npz")
    expected = nl.MLkNN(5).fit(data.X, data.Y).predict_proba(data.X)
    model, how = tmp_path / "m", ("--k", "5", "--cluster", address)
    told = json.loads(ask("fit", tmp_path / "made.npz", "-o", model, *how, "--json"))
    assert (told["k"], told["items"]) == (5, 90)
    np.testing.assert_array_equal(nl.load(model).predict_proba(data.X), expected)
    blocks = tmp_path / "blocks"
    for name, rows in (("X", data.X), ("Y", data.Y.toarray())):
        (blocks / name).mkdir(parents=True)
        for number, part in enumerate(np.split(rows, (40, 70))):
            np.save(blocks / name / f"{number}.npy", part)
    ask("fit", blocks, "-o", model, *how, "--cluster-folder", tmp_path / "work")
    np.testing.assert_array_equal(nl.load(model).predict_proba(data.X), expected)
    assert list((tmp_path / "work").iterdir())
    for option in (
        ("--scale", "minmax"),
        ("--learn-distance",),
        ("--part", "train"),
        ("--id", "a"),
    ):
        assert f"{option[0]} cannot be used with blocks" in fail(
            "fit", blocks, "-o", model, *how, *option
        )
    polars = pytest.importorskip("polars")
    for path in (blocks / "X").iterdir():
        polars.DataFrame(np.load(path)).write_parquet(path.with_suffix(".parquet"))
        path.unlink()
    ask("fit", blocks, "-o", model, *how)
    np.testing.assert_array_equal(nl.load(model).predict_proba(data.X), expected)
    (blocks / "Y" / "2.npy").unlink()
    assert "X has 90 rows, but Y has 70" in fail("fit", blocks, "-o", model, *how)


def test_options_that_conflict_with_a_cluster(fail, here, tmp_path, monkeypatch):
    monkeypatch.setattr("nearlabel.distributed.workers._PATIENCE", 0.5)
    model = tmp_path / "m"
    assert "can only be used with --cluster" in fail(
        "fit", "songs.csv", "-o", model, "--cluster-folder", tmp_path
    )
    assert "--best cannot be used with --cluster" in fail(
        "fit", "songs.csv", "-o", model, "--best", "--cluster", "local"
    )
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in fail(
        "fit", "songs.csv", "-o", model, "--cluster", "tcp://127.0.0.1:9"
    )
