"""Versions of nearlabel, its dependencies and the platform."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from nearlabel import __version__
from nearlabel.common.engine import engine_name


def versions() -> dict[str, str]:
    """Versions of Python, the platform and the packages in use, for reports and result files."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        "engine": engine_name(),
        **package_versions(),
    }


def package_versions(
    packages: Iterable[str] = ("nearlabel", "numpy", "scipy", "scikit-learn", "threadpoolctl"),
) -> dict[str, str]:
    """Versions of packages: by default of this one and its main dependencies."""
    return {package: _version(package) for package in packages}


@cache
def _version(package: str) -> str:
    """The version of a package; reading it takes milliseconds."""
    if package == "nearlabel":  # of the code that runs, whichever is installed
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions to include in a bug report."""
    for name, value in versions().items():
        sys.stdout.write(f"{name:>14}: {value}\n")
