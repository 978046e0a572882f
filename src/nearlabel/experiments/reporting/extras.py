"""Packages that only reports need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PACKAGES = {"scikit_posthocs": "scikit-posthocs"}


def report_module(name: str) -> Any:
    """A module of the extra `report`; an ImportError says how to get it where it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:  # it is there, and misses something itself
            raise
        raise ModuleNotFoundError(
            f"figures and reports need {_PACKAGES.get(package, package)}: "
            "pip install 'nearlabel[report]'",
            name=package,
        ) from None
