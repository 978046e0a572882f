"""The examples run, and what they print is fit to be read."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_demo(capsys):
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for metric in ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"):
        assert sum(line.strip().startswith(metric) for line in lines) == 1
    assert sum(line.startswith("item ") for line in lines) == 3
    assert sum(" of 10: " in line for line in lines) == 12


def test_figure(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", ["why_these_labels.py", str(picture)])
    runpy.run_path(str(ROOT / "examples" / "why_these_labels.py"), run_name="__main__")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_documents_hold_the_numbers_of_the_result_files(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run

    assert (ROOT / "docs" / "benchmarks.md").read_text() == run.page()
    readme = (ROOT / "README.md").read_text()
    assert run.with_numbers(readme) == readme
