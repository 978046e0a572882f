import ast
import importlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.methods.registry import METHODS


def test_importing_is_light_and_every_public_name_loads_without_extras():
    code = """
import sys, nearlabel as nl
heavy = {"sklearn", "scipy", "numpy", "pandas"} & set(sys.modules)
assert not heavy, heavy
extras = "cyclopts rich iterstrat polars matplotlib jinja2 scikit_posthocs PIL onnxruntime "
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
    assert f"nearlabel: {nl.__version__}\n" in shown


def test_the_version_is_the_same_everywhere():
    project = Path(__file__).parents[1]
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    citation = (project / "CITATION.cff").read_text(encoding="utf-8")
    changes = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    assert pyproject["project"]["version"] == nl.__version__
    assert f"\nversion: {nl.__version__}\n" in citation
    headings = [line for line in changes.splitlines() if line.startswith("## ")]
    released = [heading for heading in headings if heading != "## Not yet released"]
    assert released[0].startswith(f"## {nl.__version__}, ")
    assert headings[-len(released) :] == released  # what is not yet released comes first


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
