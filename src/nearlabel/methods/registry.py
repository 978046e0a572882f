"""The methods by name: what the command line, comparisons and model files choose from.

The registry itself is the stub ``methods/__init__.pyi``: one import per method.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from nearlabel.common.lazy import public_names

_MODULES = public_names(str(Path(__file__).with_name("__init__.py")))

METHODS = tuple(_MODULES)
"""Names of all methods, in the order of tables; known without importing any of them."""


def method(name: str) -> Any:
    """The class of a method."""
    return getattr(import_module(_MODULES[name]), name)


def estimator(name: str, k: int, **shared: Any) -> Any:
    """An unfitted estimator with k neighbors, of each class where it is balanced.

    Of the `shared` parameters, such as the seed of a comparison, it takes those that it has.
    """
    return with_neighbors(method(name), k, **shared)


def with_neighbors(kind: Any, k: int, **shared: Any) -> Any:
    """The same for a class; one that knows no neighbors takes no k."""
    known = kind().get_params()
    given = {**shared, "n_neighbors": k, "per_class": k}
    return kind(**{key: value for key, value in given.items() if key in known})
