"""The compiled core: an optional extension. Everything else about the package is in pyproject.toml.

Where it cannot be built the installation still succeeds, and NumPy does its work, slower.
"""

import os
import runpy
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nanobind
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

BINDING = Path(nanobind.__file__).parent
# One wheel serves every Python from 3.12 on, by its stable interface.
STABLE = (
    sys.implementation.name == "cpython"
    and sys.version_info >= (3, 12)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
ENGINE = "src/nearlabel/common/engine.py"  # which says what version of the core it needs
SANITIZE = bool(os.environ.get("NEARLABEL_SANITIZE"))  # see tests/sanitize.py
INCLUDES = [str(BINDING / folder) for folder in ("include", "src", "ext/robin_map/include")]


def compiler_options() -> list[str]:
    """No fused multiply-add: every operation must round on its own (core/arithmetic.h)."""
    if sys.platform == "win32":
        return ["/std:c++17", "/O2", "/EHsc", "/fp:precise", "/bigobj"]
    options = ["-std=c++17", "-O3", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"]
    options += ["-fno-strict-aliasing", "-g0"]  # nanobind asks for the first
    if SANITIZE:
        # -Og compiles twice as fast as -O1, whose passes stumble over the many checks.
        options += ["-Og", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
        options += ["-fno-sanitize-recover=undefined"]  # the first finding ends the process
        options += ["-fno-wrapv"]  # Python compiles with -fwrapv, which would hide overflows
        # Warnings are errors in this build, too; what is included from elsewhere may warn.
        options += ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-maybe-uninitialized"]
        for folder in (*INCLUDES, sysconfig.get_paths()["include"]):
            options += ["-isystem", folder]
    return options


def linker_options() -> list[str]:
    """Names of functions, a fifth of the module, are left out where the linker can."""
    if SANITIZE:
        return ["-fsanitize=address,undefined"]
    return ["-Wl,--strip-all"] if sys.platform == "linux" else []


def core_version() -> str:
    """The version of the interface that the Python sources need, which the core is stamped with."""
    return str(runpy.run_path(ENGINE)["CORE_VERSION"])


class BuildSideBySide(build_ext):
    """Compiles the source files of an extension at the same time."""

    def build_extensions(self) -> None:
        """Build as usual, but for what compiles several files."""
        one_by_one = self.compiler.compile

        def side_by_side(sources: list[str], **how: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                compiled = list(threads.map(lambda source: one_by_one([source], **how), sources))
            return [made for objects in compiled for made in objects]

        if sys.platform != "win32":  # whose compiler is set up at its first call
            self.compiler.compile = side_by_side
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildSideBySide},
    ext_modules=[
        Extension(
            "nearlabel._core",
            sources=sorted(str(path) for path in Path("core").glob("*.cpp")),
            depends=["setup.py", ENGINE, *sorted(str(path) for path in Path("core").glob("*.h"))],
            include_dirs=INCLUDES,
            define_macros=[("NDEBUG", None), ("NEARLABEL_CORE_VERSION", core_version())]
            + ([("Py_LIMITED_API", "0x030C0000")] if STABLE else []),
            extra_compile_args=compiler_options(),
            extra_link_args=linker_options(),
            py_limited_api=STABLE,
            optional=not SANITIZE,
        )
    ]
    if not os.environ.get("NEARLABEL_NO_CORE")
    else [],
    options={"bdist_wheel": {"py_limited_api": "cp312"}} if STABLE else {},
)
