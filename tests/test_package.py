from __future__ import annotations

import subprocess
import sys

import pytest

import nearlabel as nl


def test_importing_is_light_and_every_public_name_loads():
    code = """
import sys, nearlabel as nl
heavy = {"sklearn", "scipy", "numpy", "pandas"} & set(sys.modules)
assert not heavy, heavy
for name in nl.__all__:
    assert name in dir(nl)
    getattr(nl, name)
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
