"""Which engine computes: the compiled core, or NumPy where that could not be built.

Both give the same results. ``NEARLABEL_ENGINE`` chooses one: "numpy", or "compiled" for an error
where the compiled core is missing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, Protocol, TypeVar, cast

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Given = TypeVar("_Given", covariant=True)


class _Twin(Protocol[_P, _Given]):
    """A function that a kernel stands in for, and the NumPy function itself."""

    by_numpy: Callable[..., Any]

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _Given: ...


# Version of the compiled core's interface: raise it when an existing kernel is called differently.
# setup.py runs this file and compiles the number into the core, so that one from an older build is
# not used. Hence this file imports nothing but the standard library.
CORE_VERSION = 8

_SETTING = "NEARLABEL_ENGINE"
_CHOICES = ("auto", "compiled", "numpy")
_ADVICE = (
    "install a C++ compiler and then nearlabel again, by "
    "pip install --force-reinstall --no-deps --no-cache-dir nearlabel "
    "(in a checkout: pip install --editable .)"
)


def core() -> Any:
    """The compiled core, or None where NumPy computes; warns once if it is missing."""
    module, missing = _chosen()
    if missing:
        _warn_once(missing)
    return module


def engine_name() -> str:
    """Which engine runs, for reports: what it was compiled to and by what, or why it is NumPy."""
    module, missing = _chosen()
    if module is not None:
        return f"compiled ({module.instruction_set()}, {module.COMPILER})"
    return f"numpy (no compiled core: {missing})" if missing else "numpy"


@cache
def _chosen() -> tuple[Any, str]:
    """The compiled core or None, and why it is missing where nobody chose that."""
    choice = os.environ.get(_SETTING) or "auto"
    if choice not in _CHOICES:
        raise ValueError(f"{_SETTING} must be one of {', '.join(_CHOICES)}; got {choice!r}")
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
    found = getattr(module, "VERSION", None)
    if found != CORE_VERSION:
        raise ImportError(
            f"it is from another build: its version is {found}, and {CORE_VERSION} is needed"
        )
    return module


@cache
def _warn_once(missing: str) -> None:
    warnings.warn(
        f"nearlabel computes with NumPy, several times slower than its compiled core, which is "
        f"missing ({missing}). To get it, {_ADVICE}. {_SETTING}=numpy silences this.",
        RuntimeWarning,
        stacklevel=3,
    )


def compiled_by(
    by_core: Callable[..., _Result],
) -> Callable[[Callable[_P, _Result]], _Twin[_P, _Result]]:
    """Let a kernel do the work of a NumPy function where the compiled core is there.

    The decorated function is the meaning of the kernel, and runs where there is no core. `by_core`
    takes the core and then the same arguments, and gives the same to the last bit unless the
    function says otherwise. The function itself stays within reach as `by_numpy`, for tests.
    """

    def decorate(by_numpy: Callable[_P, _Result]) -> _Twin[_P, _Result]:
        @wraps(by_numpy)
        def either(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
            kernels = core()
            if kernels is None:
                return by_numpy(*args, **kwargs)
            return by_core(kernels, *args, **kwargs)

        either.by_numpy = by_numpy  # type: ignore[attr-defined]
        return cast("_Twin[_P, _Result]", either)

    return decorate
