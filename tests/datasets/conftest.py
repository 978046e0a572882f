from __future__ import annotations

import pytest


@pytest.fixture
def put(tmp_path, request):
    """Write a text to a file, by default to the one that the module names."""

    def write(text, name=None):
        path = tmp_path / (name or request.module.FILE)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def own_parquet_files(monkeypatch):
    """All Parquet files of a test are good: no child process needs to read them first."""
    monkeypatch.setattr("nearlabel.datasets.parquet._try_to_read", lambda path: None)
