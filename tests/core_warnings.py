"""Compile our own C++ with all warnings as errors, and throw the result away.

Names of compilers as arguments, also of such that compile for other machines, go before CXX.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

FLAGS = (
    *("-std=c++17", "-fvisibility=hidden", "-fsyntax-only"),
    *("-Wall", "-Wextra", "-Wpedantic", "-Werror"),
)
CORE = Path(__file__).parents[1] / "core"


def main(compilers: list[str]) -> int:
    """Return how many of the compilers complain."""
    import nanobind  # not everywhere where pytest looks into this file for doctests

    binding = Path(nanobind.__file__).parent
    # What is included from there is not ours, and may warn.
    includes = [sysconfig.get_paths()["include"], str(binding / "include")]
    system = [part for folder in includes for part in ("-isystem", folder)]
    sources = sorted(str(path) for path in CORE.glob("*.cpp") if path.stem != "nanobind")
    failed = 0
    if not Path(includes[0], "Python.h").exists():
        print("core: warnings are not checked, there is no Python.h here")  # noqa: T201
        return 0
    for compiler in compilers:
        if not shutil.which(compiler):
            print(f"core: warnings are not checked, there is no {compiler} here")  # noqa: T201
            continue
        failed += subprocess.run([compiler, *FLAGS, *system, *sources], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [os.environ.get("CXX", "c++")]))
