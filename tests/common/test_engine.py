import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.common import engine


@pytest.fixture
def choose(monkeypatch):
    """Choose the engine again, with a replacement for the compiled core."""

    def choosing(setting=None, module=None):
        def found(name):
            assert name == "nearlabel._core"
            if module is None:
                raise ModuleNotFoundError(f"No module named {name!r}")
            return module

        monkeypatch.setattr(engine, "import_module", found)
        if setting is None:
            monkeypatch.delenv("NEARLABEL_ENGINE", raising=False)
        else:
            monkeypatch.setenv("NEARLABEL_ENGINE", setting)
        _forget()

    yield choosing
    monkeypatch.undo()
    _forget()


def _forget():
    engine._chosen.cache_clear()
    engine.core.cache_clear()


def made(version=engine.CORE_VERSION):
    return SimpleNamespace(VERSION=version, COMPILER="made", instruction_set=lambda: "plain")


@pytest.mark.parametrize("setting", [None, "", "auto", "compiled"])
def test_the_compiled_core_is_used_if_available(choose, setting):
    module = made()
    choose(setting, module)
    assert engine.core() is module
    assert engine.engine_name() == "compiled (plain, made)"


def test_numpy_on_request_without_a_warning(choose):
    choose("numpy", made())
    assert engine.core() is None
    assert engine.engine_name() == "numpy"


def test_a_missing_core_is_one_warning(choose):
    choose()
    with pytest.warns(RuntimeWarning, match=r"No module named.*pip install.*NEARLABEL_ENGINE=n"):
        assert engine.core() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.core() is None
    assert engine.engine_name() == ("numpy (no compiled core: No module named 'nearlabel._core')")


def test_a_missing_core_is_an_error_on_request(choose):
    choose("compiled")
    with pytest.raises(ImportError, match=r"NEARLABEL_ENGINE.*No module.*pip install"):
        engine.core()


@pytest.mark.parametrize("module", [made(engine.CORE_VERSION - 1), SimpleNamespace()])
def test_a_core_of_another_build_is_not_used(choose, module):
    choose("auto", module)
    with pytest.warns(RuntimeWarning, match=r"another build.*version.*pip install"):
        assert engine.core() is None
    assert "another build" in engine.engine_name()
    choose("compiled", module)
    with pytest.raises(ImportError, match="another build"):
        engine.core()


def test_an_unknown_engine(choose):
    choose("fast")
    with pytest.raises(ValueError, match="NEARLABEL_ENGINE.*'fast'"):
        engine.core()


@pytest.mark.parametrize(("setting", "expected"), [("1", "baseline"), ("0", None), ("", None)])
def test_the_baseline_can_be_forced(core, setting, expected, monkeypatch):
    monkeypatch.setenv("NEARLABEL_BASELINE", setting)
    code = "import nearlabel._core as core; print(core.instruction_set())"
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
    known = ("avx2 and avx512-vnni", "avx2", "avx2 intrinsics", "neon", "baseline")
    assert found in known
    assert expected is None or found == expected


def test_the_core_is_of_this_version(core):
    assert core.VERSION == engine.CORE_VERSION


def test_search_without_the_core(choose):
    """tests/search compares the engines; here, NumPy alone must be enough."""
    X = np.random.default_rng(0).normal(size=(50, 4))
    expected = nl.neighbor_graph(X, 3)
    choose("numpy")
    found = nl.neighbor_graph(X, 3)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.distances, expected.distances)
