"""demo."""

from __future__ import annotations

from nearlabel.cli.demo import COMMANDS


def test_demo(ask, songs, tmp_path, monkeypatch):
    """It reads well in a terminal and in a log file: plain text, 80 columns, no blank at an end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    lines = ask("demo").splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert sum(line.startswith("$ nearlabel ") for line in lines) == len(COMMANDS)
    assert list(tmp_path.iterdir()) == []
    assert {path.name for path in songs.iterdir()} >= {"songs.csv", "new.csv", "songs.model"}
