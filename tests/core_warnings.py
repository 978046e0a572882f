"""Compile our C++ code with all warnings as errors, and discard the result.

By default with CXX or c++, and for aarch64 if that cross compiler is installed; other
compilers can be given as arguments instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
CROSS = "aarch64-linux-gnu-g++"  # for NEON
FLAGS = (
    *("-std=c++17", "-fvisibility=hidden", "-fsyntax-only", "-DNEARLABEL_CORE_VERSION=0"),
    *("-Wall", "-Wextra", "-Wpedantic", "-Werror"),
)


def main(compilers: list[str]) -> int:
    """Return the number of files with warnings."""
    import nanobind  # not everywhere where pytest looks into this file for doctests

    binding = Path(nanobind.__file__).parent
    # Headers from there are not ours, and may cause warnings.
    includes = [sysconfig.get_paths()["include"], str(binding / "include")]
    system = [part for folder in includes for part in ("-isystem", folder)]
    own = ["-I", str(ROOT / "core")]
    sources = [path for path in ROOT.glob("core/*.cpp") if path.stem != "nanobind"]
    sources += ROOT.glob("tests/core/*.cpp")
    if not Path(includes[0], "Python.h").exists():
        print("core: warnings are not checked, there is no Python.h here")  # noqa: T201
        return 0
    work = []
    for compiler in compilers:
        if not shutil.which(compiler):
            print(f"core: warnings are not checked, there is no {compiler} here")  # noqa: T201
            continue
        work += [[compiler, *FLAGS, *own, *system, str(source)] for source in sorted(sources)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        codes = threads.map(lambda command: subprocess.run(command, check=False).returncode, work)
        return sum(code != 0 for code in codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [os.environ.get("CXX", "c++"), CROSS]))
