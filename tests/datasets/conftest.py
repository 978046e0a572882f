import pytest


@pytest.fixture
def put(tmp_path, request):
    """Write a text to a file, by default to the one named by the module."""

    def write(text, name=None):
        path = tmp_path / (name or request.module.FILE)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def own_parquet_files(monkeypatch):
    """Skip the child process that checks Parquet files: those of the tests are good."""
    monkeypatch.setattr("nearlabel.datasets.parquet._try_to_read", lambda path: None)
