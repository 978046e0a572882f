"""core/filter.h: all variants do what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [str(ROOT / name) for name in ("tests/core/filter.cpp", "core/cpu.cpp")]


def required(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}")
    return found


def reported(tmp_path, command: list[str], emulator: list[str]) -> dict[str, str]:
    """The program's output for each variant that the machine supports."""
    program = tmp_path / "filter"
    options = ["-std=c++17", "-O2", f"-I{ROOT / 'core'}", "-o", str(program)]
    subprocess.run([*command, *options, *SOURCES], check=True)
    said = subprocess.run(
        [*emulator, str(program)],
        env={**os.environ, "NEARLABEL_BASELINE": ""},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return dict(line.split() for line in said.splitlines())


def test_the_variants_of_this_machine(tmp_path):
    forms = reported(tmp_path, [required(os.environ.get("CXX", "c++"))], [])
    assert "baseline" in forms
    assert set(forms.values()) == {"same"}
