"""All algorithms by name, methods and baselines: what commands, tables and files choose from.

The registry of baselines is the stub ``baselines/__init__.pyi``: one import per baseline. That of
the methods is beside it in ``methods/``; here the two become one.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from nearlabel.common.lazy import public_names
from nearlabel.methods.registry import METHODS, method, with_neighbors

_MODULES = public_names(str(Path(__file__).with_name("__init__.py")))

BASELINES = tuple(_MODULES)
"""Names of all baselines, in the order of tables; known without importing any of them."""
ALGORITHMS = (*METHODS, *BASELINES)
"""Names of the methods and of the baselines."""


def algorithm(name: str) -> Any:
    """The class of a method or of a baseline."""
    return getattr(import_module(_MODULES[name]), name) if name in _MODULES else method(name)


def takes_missing(name: str) -> bool:
    """Whether an algorithm learns from vectors with missing values, which are NaN."""
    return name in BASELINES and bool(algorithm(name).takes_missing)


def title(name: str) -> str:
    """The name of an algorithm in print, such as "ML-kNN"."""
    return str(algorithm(name).title)


def estimator(name: str, k: int, **shared: Any) -> Any:
    """An unfitted estimator of an algorithm; a method has k neighbors.

    Of the `shared` parameters, such as the seed of a comparison, it takes those that it has.
    """
    return with_neighbors(algorithm(name), k, **shared)
