"""Test a build of the compiled core with the address and undefined-behavior sanitizers.

`build` makes it, with all warnings as errors, in a folder of its own: the core that everything else
uses is never replaced. Without an argument all tests of the kernels run, for both forms of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import core_warnings

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "sanitize"


def runtime(compiler: str) -> list[str] | None:
    """The libraries to preload before Python starts, or None if the compiler has none."""
    found = []
    for library in ("libasan.so", "libstdc++.so"):  # the second for the exceptions of C++
        command = [compiler, f"-print-file-name={library}"]
        path = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        if not Path(path).is_absolute():
            return None
        found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """Build the core."""
    shutil.rmtree(BUILD / "lib" / "nearlabel", ignore_errors=True)
    building = {**os.environ, "NEARLABEL_SANITIZE": "1", "CC": "gcc", "CXX": "g++"}
    command = [sys.executable, "setup.py", "--quiet", "build", "--build-base", str(BUILD)]
    command += ["--build-lib", str(BUILD / "lib")]
    subprocess.run(command, cwd=ROOT, env=building, check=True)


def test(preload: list[str], baseline: str) -> bool:
    """Whether the tests pass, with or without AVX2."""
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(preload),
        # Python and its libraries leak at their end; an array that is too large is an error
        # that the tests expect, not a finding.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that the edges of small arrays are guarded, too
        "PYTHONPATH": str(BUILD / "lib"),
        "NEARLABEL_ENGINE": "compiled",
        "NEARLABEL_BASELINE": baseline,
    }
    where = "import nearlabel._core as core; print(core.__file__, core.instruction_set())"
    command = [sys.executable, "-c", where]
    said = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout
    if not said.startswith(str(BUILD)):
        sys.exit(f"sanitize: another core would be tested: {said}")
    print(f"sanitize: {said.split()[-1]}", flush=True)  # noqa: T201
    # Only Python's own output is captured: that of the sanitizers is shown.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--capture=sys"]
    command += ["-m", "kernels and not slow", "-p", "no:cacheprovider", "tests"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main(step: str) -> None:
    """Build or test, if the system supports it."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    can_compile = sys.platform.startswith("linux") and header.exists() and shutil.which("g++")
    preload = runtime("g++") if can_compile else None
    if preload is None:
        print("sanitize: skipped, it needs Linux, Python.h and g++ with libasan")  # noqa: T201
        if step == "build":
            sys.exit(core_warnings.main([os.environ.get("CXX", "c++")]))
    elif step == "build":
        build()
    else:
        passed = [test(preload, baseline) for baseline in ("0", "1")]
        sys.exit(not all(passed))


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
