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
