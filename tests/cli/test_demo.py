"""demo."""

from __future__ import annotations

import shutil
import tempfile

import pytest

from nearlabel.cli import demo
from nearlabel.cli.demo import SONGS
from nearlabel.features import GridMoments, picture_embedding


def test_songs(ask, songs, tmp_path, monkeypatch):
    """It is readable in a terminal and in a log: plain text, 80 columns, no trailing blanks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("COLUMNS", "80")
    lines = ask("demo", "songs").splitlines()
    assert max(len(line) for line in lines if not line.startswith("to look at: ")) <= 80
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert sum(line.startswith("$ nearlabel ") for line in lines) == len(SONGS)
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert {path.name for path in songs.iterdir()} >= {"songs.csv", "new.csv", "songs.model"}


def test_pictures(ask, fail, tmp_path, monkeypatch):
    """All commands on a collection run, and the page is written."""
    pytest.importorskip("PIL")
    monkeypatch.setattr(demo, "TAGGED", 30)
    monkeypatch.setattr(demo, "NEW", 8)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    # Moments, because a network once opened would stay open for later tests.
    monkeypatch.setattr(picture_embedding, "best_picture_features", GridMoments)
    lines = ask("demo").splitlines()
    paths = ("indexed: ", "to look at: ")
    assert max(len(line) for line in lines if not line.startswith(paths)) <= 80
    commands = demo.picture_commands()
    assert sum(line.startswith("$ nearlabel ") for line in lines) == len(commands)
    assert any(line.startswith("average_precision ↑") for line in lines)
    (folder,) = tmp_path.iterdir()
    assert lines[-1].endswith(str(folder / "sheet.html"))
    assert "<article" in (folder / "sheet.html").read_text(encoding="utf-8")
    assert "--folder" in fail("demo", "--folder", folder)
    shutil.rmtree(folder)
