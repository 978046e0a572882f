"""The baselines by name: what the command line, comparisons and model files choose from.

The registry itself is the stub ``baselines/__init__.pyi``: one import per method.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from nearlabel.common.lazy import public_names

_MODULES = public_names(str(Path(__file__).with_name("__init__.py")))

BASELINES = tuple(_MODULES)
"""Names of all baselines, in the order of tables; known without importing any of them."""


def baseline(name: str) -> Any:
    """The class of a baseline."""
    return getattr(import_module(_MODULES[name]), name)
