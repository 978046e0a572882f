"""Errors of users: one line that names the option, what was given and what is accepted."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.cli.options.errors import OptionError, naming
from nearlabel.common.validation import ArgumentError, ArgumentTypeError, check_integer


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fit"], ["fit", "--data"]),
        (["fly"], ["fly"]),
        (["fit", "songs.csv"], ["fit", "--output"]),
        (["fit", "songs.csv", "-o", "m", "--k", "x"], ["--k", "'x'"]),
        (["fit", "songs.csv", "-o", "m", "--k", "0"], ["--k", "from 1 up", "'0'"]),
        (["fit", "songs.csv", "-o", "m", "--seed", "-1"], ["--seed", "-1"]),
        (
            ["fit", "songs.csv", "-o", "m", "--algorithm", "kNN"],
            ["--algorithm", '"kNN"', '"MLkNN"'],
        ),
        (["fit", "songs.csv", "-o", "m", "--fast"], ["--fast"]),
        (["fit", "none.csv", "-o", "m"], ["'none.csv'"]),
        (["fit", "new.csv", "-o", "m"], ["new.csv, line 1", "--tags", "--labels"]),
        (["fit", "songs.csv", "-o", "m", "--xml", "x"], ["nearlabel: --xml ", "'csv'"]),
        (["fit", "songs.csv", "-o", "m", "--encoding", "x"], ["nearlabel: --encoding ", "'x'"]),
        (["rank", "songs.csv", "new.csv"], ["songs.csv"]),
        (["rank", "none", "new.csv"], ["none: No such file or directory"]),
        (["rank", "songs.model", "new.csv", "--top", "0"], ["--top", "from 1 up", "'0'"]),
        (["rank", "songs.model", "new.csv", "--why", "-o", "w.csv"], ["--why", ".jsonl"]),
    ],
)
def test_users_errors_are_one_line_with_code_2(fail, here, arguments, parts):
    message = fail(*arguments)
    assert all(part in message for part in parts), message
    assert not Path("m").exists()


def test_a_message_does_not_control_a_terminal(fail):
    assert r"\x1b[31mred" in fail("fit", "songs.csv", "-o", "\x1b[31mred/m")


def test_what_is_read_is_not_written_to(fail, here, tmp_path):
    shutil.copy("songs.csv", tmp_path / "mine.csv")
    before = (tmp_path / "mine.csv").read_bytes()
    mine = tmp_path / "mine.csv"
    for command in (
        ["fit", mine, "-o", mine],
        ["rank", "songs.model", mine, "-o", mine],
        ["predict", "songs.model", mine, "-o", mine],
        ["evaluate", mine, "-o", mine],
        ["datasets", "convert", mine, mine],
    ):
        message = fail(*command)
        assert f"{mine}: " in message
        assert "overwrite" in message
    message = fail("fit", mine, "-o", tmp_path)
    assert f"--output {tmp_path}: " in message
    assert "folder" in message
    assert mine.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        ["rank", "songs.model", "new.csv", "--top", "3.5"],
        ["evaluate", "songs.csv", "--k", "5", "7.6"],
        ["evaluate", "songs.csv", "--seed", "0x10"],
    ],
)
def test_numbers_are_not_rounded(fail, here, command):
    message = fail(*command)
    assert f"'{command[-1]}'" in message
    assert next(word for word in command if word.startswith("--")) in message


def test_an_option_is_named_in_place_of_its_parameter():
    def refused(error):
        with pytest.raises(ValueError, match=".") as caught, naming(k="--k", tags="--tags"):
            raise error
        return type(caught.value), str(caught.value)

    def about_k(message, kind=ArgumentError):
        return refused(pickle.loads(pickle.dumps(kind(message, "k"))))

    assert about_k("k must be 1; got 0") == (OptionError, "--k must be 1; got 0")
    expected = OptionError, "--k must be 1; got 'x'"
    assert about_k("k must be 1; got 'x'", ArgumentTypeError) == expected
    assert about_k("k='all': no") == (OptionError, "--k 'all': no")
    with pytest.raises(ArgumentTypeError) as caught:
        check_integer("x", "k (or None)", low=1)
    assert refused(caught.value)[1].startswith("--k (or None) ")
    # What follows may quote a file: it stays, and the option of a hint is added.
    assert about_k("k=1.csv has none; give tags=") == (
        OptionError,
        "--k 1.csv has none; give tags= (--tags)",
    )
    assert refused(ValueError("q.csv: bad")) == (ValueError, "q.csv: bad")
    assert refused(ValueError("k is a column of q.csv")) == (ValueError, "k is a column of q.csv")
    with pytest.raises(TypeError, match="takes 1 positional"), naming(k="--k"):
        raise TypeError("fit() takes 1 positional argument")


@pytest.mark.parametrize("error", [KeyError("oops"), TypeError("fit() takes 2 arguments")])
def test_an_error_of_ours_is_one_line_too(monkeypatch, capsys, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(nl.datasets, "load", broken)
    assert run(["evaluate", "songs.csv"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("nearlabel: ")
    assert f"{type(error).__name__}: {error}" in printed
    assert printed.count("\n") == 1
    monkeypatch.setenv("NEARLABEL_TRACEBACK", "1")
    with pytest.raises(type(error)):
        run(["evaluate", "songs.csv"])
