"""The engine, the hypothesis profiles, the data folder and the worked example."""

from __future__ import annotations

import gc
import os
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import nearlabel as nl
from nearlabel.blend.ridge import ALPHAS
from nearlabel.common import engine

if not os.environ.get("NEARLABEL_ENGINE"):
    # Warnings are errors here, so NumPy is selected explicitly if there is no core.
    try:
        engine._imported()
    except ImportError:
        os.environ["NEARLABEL_ENGINE"] = "numpy"

# Numbers of examples of a property: few for runs of `make test` that repeat it with
# another engine, more (always the same) for its first run, and many new ones in `make test-all`.
settings.register_profile(
    "usual",
    deadline=None,
    derandomize=True,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("few", parent=settings.get_profile("usual"), max_examples=8)
settings.register_profile(
    "thorough", parent=settings.get_profile("usual"), derandomize=False, max_examples=500
)
settings.load_profile(os.environ.get("NEARLABEL_HYPOTHESIS", "usual"))


def pytest_collection_finish() -> None:
    """Exclude what was collected from garbage collection, which would visit all of it often."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    """The tested engine; an error if the requested one is missing."""
    return f"nearlabel engine: {engine.engine_name()}"


@pytest.fixture(scope="session")
def core():
    """The compiled core; the test is skipped if it is not in use."""
    module = engine.core()
    if module is None:
        pytest.skip("needs the compiled core; the engine of this run is NumPy")
    return module


@pytest.fixture(scope="module")
def compiled_core():
    """The tests of a module use the compiled core, whatever the engine."""
    module = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
    with mock.patch.object(engine, "core", return_value=module):
        yield


@pytest.fixture(scope="session", autouse=True)
def small_blends():
    """Blends of few trees and penalties: only the quality of predictions needs more."""
    with pytest.MonkeyPatch.context() as patch:
        for name, count in (("_TREES", 12), ("_FEWEST_TREES", 12), ("_PILOT_TREES", 4)):
            patch.setattr(f"nearlabel.blend.voting_forest.{name}", count)
        if os.environ.get("NEARLABEL_HYPOTHESIS") != "thorough":
            patch.setattr("nearlabel.blend.ridge.ALPHAS", ALPHAS[::3])
        yield


@pytest.fixture
def all_penalties(monkeypatch):
    """For tests of the quality of predictions."""
    monkeypatch.setattr("nearlabel.blend.ridge.ALPHAS", ALPHAS)


@pytest.fixture(scope="session")
def load():
    """Load a data set of the data folder; the test is skipped if it is missing."""

    def read(name: str):
        try:
            return nl.datasets.load(name)
        except FileNotFoundError as error:
            if os.environ.get("NEARLABEL_REQUIRE_DATA"):
                raise
            pytest.skip(f"{error} (set NEARLABEL_DATA)")

    return read


@pytest.fixture(scope="session")
def natural_scenes():
    """The 2,000 natural scenes and their labels; the test is skipped if they are missing."""
    try:
        found = nl.datasets.load_pictures("natural_scenes")
    except FileNotFoundError as error:
        if os.environ.get("NEARLABEL_REQUIRE_DATA"):
            raise
        pytest.skip(f"{error} (set NEARLABEL_DATA)")
    return found.pictures, found.Y.toarray().astype(int)


@pytest.fixture
def f6():
    """The six-row worked example of the ML-kNN literature notes: X, Y, the query, k = 3."""
    X = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
    Y = np.array(
        [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    )
    return X, Y, np.array([[2.2, 0.4]])
