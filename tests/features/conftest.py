"""Pictures of the data folder, and networks with made-up weights in an empty cache."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest
from made_networks import made_network

import nearlabel as nl
from nearlabel.features.networks import catalog, sessions


@pytest.fixture(scope="session")
def natural_scenes():
    """Paths of the 2,000 natural scenes and their labels; skips the test where they are absent."""
    for folder in nl.datasets.data_folders():
        for place in (folder / "natural_scenes", folder.parent / "images" / "natural_scenes"):
            if (place / "labels.csv").exists():
                with (place / "labels.csv").open(encoding="utf-8") as file:
                    _, *rows = csv.reader(file)
                paths = [place / "pictures" / row[0] for row in rows]
                return paths, np.array([row[1:] for row in rows], int)
    if os.environ.get("NEARLABEL_REQUIRE_DATA"):
        raise FileNotFoundError("natural_scenes is not in the data folder")
    return pytest.skip("natural_scenes is not in the data folder (set NEARLABEL_DATA)")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder in the place of the user's cache."""
    folder = tmp_path / "cache"
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def made(cache, tmp_path, monkeypatch):
    """A network of made-up weights, the only one of the catalog, and the folder of its wheel."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "wheels"
    folder.mkdir()
    network = made_network(folder)
    monkeypatch.setattr(sessions, "_open", {})
    monkeypatch.setattr(catalog, "NETWORKS", {network.name: network})
    monkeypatch.setattr("nearlabel.features.picture_embedding.NETWORKS", catalog.NETWORKS)
    return network, folder
