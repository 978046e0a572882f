"""The engine in use: the compiled core, or NumPy where it could not be built.

Both give the same results. ``NEARLABEL_ENGINE`` selects one: "numpy", or "compiled", which raises
an error if the compiled core is missing.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from typing import Any

# Version of the compiled core's interface: raise it when an existing kernel is called differently.
# setup.py runs this file and compiles the number into the core, so that one from an older build is
# not used. Hence this file imports nothing but the standard library.
CORE_VERSION = 17

_SETTING = "NEARLABEL_ENGINE"
_ADVICE = (
    "install a C++ compiler, then repeat the pip install of nearlabel "
    "with --force-reinstall --no-deps --no-cache-dir"
)


@cache
def core() -> Any:
    """The compiled core, or None if NumPy is in use; warns once if the core is missing."""
    module, missing = _chosen()
    if missing:
        warnings.warn(
            "nearlabel computes with NumPy, several times slower than its compiled core, which is "
            f"missing ({missing}). To get it, {_ADVICE}. {_SETTING}=numpy silences this.",
            RuntimeWarning,
            stacklevel=2,
        )
    return module


def engine_name() -> str:
    """The engine in use, for reports: its instruction set and compiler, or why it is NumPy."""
    module, missing = _chosen()
    if module is not None:
        return f"compiled ({module.instruction_set()}, {module.COMPILER})"
    return f"numpy (no compiled core: {missing})" if missing else "numpy"


@cache
def _chosen() -> tuple[Any, str]:
    """The compiled core or None, and why it is missing unless NumPy was requested."""
    choice = os.environ.get(_SETTING) or "auto"
    if choice not in ("auto", "compiled", "numpy"):
        raise ValueError(f"{_SETTING} must be one of auto, compiled, numpy; got {choice!r}")
    if choice == "numpy":
        return None, ""
    try:
        return _imported(), ""
    except ImportError as error:
        if choice == "compiled":
            raise ImportError(
                f"{_SETTING} asks for the compiled core, which is missing ({error}). "
                f"To get it, {_ADVICE}."
            ) from error
        return None, str(error)


def _imported() -> Any:
    module = import_module("nearlabel._core")
    version = getattr(module, "VERSION", None)
    if version != CORE_VERSION:
        raise ImportError(
            f"it is from another build: its version is {version}, but {CORE_VERSION} is required"
        )
    return module
