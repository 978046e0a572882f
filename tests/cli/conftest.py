"""The files of the demonstration, and commands that must succeed or fail."""

from __future__ import annotations

import pytest

from nearlabel.cli import run


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    """The folder of the demonstration's files."""
    folder = tmp_path_factory.mktemp("songs")
    assert run(["demo", "--folder", str(folder)]) == 0
    return folder


@pytest.fixture
def here(songs, monkeypatch):
    monkeypatch.chdir(songs)
    return songs


@pytest.fixture
def ask(capsys):
    """Run a command that must succeed; what it prints."""

    def command(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return command


@pytest.fixture
def fail(capsys):
    """Run a command that must fail as a user's error does; its line on standard error."""

    def command(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert (code, printed.out) == (2, "")
        assert printed.err.startswith("nearlabel: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return command
