from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.methods.registry import METHODS


def test_importing_is_light_and_every_public_name_loads_without_extras():
    code = """
import sys, nearlabel as nl
heavy = {"sklearn", "scipy", "numpy", "pandas"} & set(sys.modules)
assert not heavy, heavy
extras = "cyclopts rich iterstrat pooch polars matplotlib jinja2 scikit_posthocs PIL onnxruntime "
extras += "pi_heif rawpy fastapi uvicorn python_multipart prometheus_client pandas"
sys.modules.update(dict.fromkeys(extras.split()))  # they cannot be imported now
for package in (nl, nl.datasets, nl.features, nl.metrics):
    for name in package.__all__:
        assert name in dir(package)
        getattr(package, name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'nearlabel' has no attribute 'MLKNN'"):
        _ = nl.MLKNN


def test_versions(capsys):
    nl.show_versions()
    shown = capsys.readouterr().out
    for package in ("nearlabel", "numpy", "scipy", "scikit-learn", "python", "engine"):
        assert f"{package}: " in shown
    assert nl.__version__ in shown


def test_the_version_is_the_same_everywhere():
    project = Path(__file__).parents[1]
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    citation = (project / "CITATION.cff").read_text(encoding="utf-8")
    changes = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    assert pyproject["project"]["version"] == nl.__version__
    assert f"\nversion: {nl.__version__}\n" in citation
    assert changes.startswith(f"# Changes\n\n## {nl.__version__}, ")


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_says_what_it_installs_before_it_does():
    root = Path(__file__).parents[1]
    for target in ("demo", "demo-serve", "lint"):
        command = ["make", "--dry-run", target, "VENV=build/none"]
        done = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)
        lines = done.stdout.splitlines()
        slow = [
            at for at, line in enumerate(lines) if "/pip install" in line or "build_ext" in line
        ]
        assert len(slow) >= 3
        assert all(lines[at - 1].startswith("echo ") for at in slow)
        assert "a few minutes" in next(line for line in lines if line.startswith("echo "))


@pytest.mark.slow
def test_an_installation_without_a_compiler_succeeds(tmp_path):
    """Installs a copy of the project by pip, offline, with compilers that fail."""
    for package in ("pip", "setuptools", "nanobind"):
        if not find_spec(package):
            pytest.skip(f"{package} is not in this environment")
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools is older than pyproject.toml asks for")
    project = Path(__file__).parents[1]
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.egg-info", "__pycache__")
    for folder in ("src", "core"):
        shutil.copytree(project / folder, copy / folder, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(project / name, copy)
    no_compiler = {"CC": shutil.which("false") or "false", "CXX": shutil.which("false") or "false"}
    place = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    command += ["--no-index", "--disable-pip-version-check", "--quiet", "--target", str(place)]
    subprocess.run(
        [*command, str(copy)], check=True, env={**os.environ, **no_compiler}, capture_output=True
    )
    assert not list((place / "nearlabel").glob("_core*"))
    code = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import nearlabel as nl
    from nearlabel.common import engine
    for _ in range(2):
        assert engine.core() is None
        nl.neighbor_graph(np.arange(12.0).reshape(6, 2), 2)
assert [warning.category for warning in found] == [RuntimeWarning], found
assert "C++ compiler" in str(found[0].message)
nl.show_versions()
print(nl.__file__)
"""
    environment = {name: value for name, value in os.environ.items() if name != "NEARLABEL_ENGINE"}
    shown = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**environment, "PYTHONPATH": str(place)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    ).stdout
    assert str(place) in shown
    assert "engine: numpy (no compiled core: No module named 'nearlabel._core')" in shown


def test_the_stub_matches_the_package():
    """The stub is read as text: compare this with how Python parses it."""
    for package in ("nearlabel", "nearlabel.methods", "nearlabel.features"):
        module = importlib.import_module(package)
        tree = ast.parse(Path(f"{module.__file__}i").read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in imports for alias in node.names if alias.name != "*"]
        assert all(alias.asname in (None, alias.name) for node in imports for alias in node.names)
        assert set(names) <= set(module.__all__)
    assert set(METHODS) < set(nl.__all__)
