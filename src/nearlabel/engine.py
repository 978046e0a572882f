"""Which engine computes: the compiled core, or NumPy where that could not be built.

Both give the same results. ``NEARLABEL_ENGINE`` chooses one: "numpy", or "compiled" for an error
where the compiled core is missing.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from typing import Any

_SETTING = "NEARLABEL_ENGINE"
_CHOICES = ("auto", "compiled", "numpy")
_ADVICE = (
    "install a C++ compiler and then nearlabel again: "
    "pip install --force-reinstall --no-deps --no-cache-dir nearlabel"
)


def core() -> Any:
    """The compiled core, or None where NumPy computes; warns once if it is missing."""
    module, missing = _chosen()
    if missing:
        _warn_once(missing)
    return module


def engine_name() -> str:
    """Which engine runs, for reports: "compiled" with its instruction set, or "numpy"."""
    module, missing = _chosen()
    if module is not None:
        return f"compiled ({module.instruction_set()})"
    return f"numpy (no compiled core: {missing})" if missing else "numpy"


@cache
def _chosen() -> tuple[Any, str]:
    """The compiled core or None, and why it is missing where nobody chose that."""
    choice = os.environ.get(_SETTING, "auto")
    if choice not in _CHOICES:
        raise ValueError(f"{_SETTING} must be one of {', '.join(_CHOICES)}; got {choice!r}")
    if choice == "numpy":
        return None, ""
    try:
        return import_module("nearlabel._core"), ""
    except ImportError as error:
        if choice == "compiled":
            raise ImportError(f"the compiled core is missing ({error}); {_ADVICE}") from None
        return None, str(error)


@cache
def _warn_once(missing: str) -> None:
    warnings.warn(
        f"nearlabel computes with NumPy, several times slower than its compiled core, which is "
        f"missing ({missing}). To get it, {_ADVICE}. NEARLABEL_ENGINE=numpy silences this.",
        RuntimeWarning,
        stacklevel=3,
    )
