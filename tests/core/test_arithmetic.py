"""core/arithmetic.h and setup.py: no multiplication is fused with an addition in any file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = "aarch64-linux-gnu-"  # aarch64 always has fused instructions, and GCC uses them by default
FUSED = re.compile(r"\tf(?:n?madd|n?msub|mla|mls)\b")


@pytest.mark.slow
def test_nothing_is_fused(tmp_path):
    pytest.importorskip("nanobind")
    for tool in ("g++", "gcc", "objdump"):
        if shutil.which(TOOLS + tool) is None:
            pytest.skip(f"needs {TOOLS}{tool}")
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += ["--build-temp", str(tmp_path), "--build-lib", str(tmp_path)]
    compilers = {"CC": f"{TOOLS}gcc", "CXX": f"{TOOLS}g++"}
    subprocess.run(command, cwd=ROOT, env={**os.environ, **compilers}, check=True)
    objects = sorted(tmp_path.rglob("*.o"))
    assert len(objects) == len(list(ROOT.glob("core/*.cpp")))
    for path in objects:
        disassembled = subprocess.run(
            [f"{TOOLS}objdump", "--disassemble", str(path)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert "aarch64" in disassembled
        assert not FUSED.findall(disassembled), path.stem
