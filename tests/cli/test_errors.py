"""User errors: one line that names the option, what was given and what is accepted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.cli.errors import in_options
from nearlabel.common.validation import ArgumentError, ArgumentTypeError, check_integer
from nearlabel.datasets.text_lines import DataError


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fit"], ['"fit"', "--data requires", "nearlabel fit songs.csv -o songs.model"]),
        (["fly"], ["fly"]),
        (
            ["fit", "songs.csv"],
            ["--output requires", "nearlabel fit songs.csv -o songs.model"],
        ),
        (["datasets", "convert", "songs.csv"], ["--target", "nearlabel datasets convert "]),
        (["fit", "songs.csv", "-o"], ["-o requires an argument"]),
        (["fit", "songs.csv", "-o", "-"], ["-o requires an argument"]),
        (["fit", "songs.csv", "-o", "--json"], ["-o requires an argument"]),
        (["fit", "songs.csv", "-o", "m", "--labels"], ["--labels requires"]),
        (["fit", "songs.csv", "-o", "m", "--k", "x"], ["--k", "'x'"]),
        (["fit", "songs.csv", "-o", "m", "--k", "0"], ["--k", ">= 1", '"0"']),
        (["fit", "songs.csv", "-o", "m", "--seed", "-1"], ["--seed", "-1"]),
        (
            ["fit", "songs.csv", "-o", "m", "--algorithm", "kNN"],
            ["--algorithm", "'kNN'", "MLkNN,", "did you mean '"],
        ),
        (["fit", "songs.csv", "-o", "m", "--fast"], ["--fast"]),
        (["fit", "--scal", "minmax", "songs.csv", "-o", "m"], ["option: --scal;", "'--scale'?"]),
        (["evaluate", "--jsn", "songs.csv"], ["Unknown option: --jsn; did you mean '--json'?"]),
        (["evaluate", "-k", "5", "songs.csv"], ["Unknown option: -k; did you mean '--k'?"]),
        (["datasets", "describe", "songs.csv", "--jsn"], ["option: --jsn; did you mean '--json'?"]),
        (["evaluate", "--k", "5", "songs.csv"], ["--data requires an argument"]),
        (["evaluate", "songs.csv", "more.csv"], ["'more.csv'"]),
        (["fit", "-songs.csv", "-o", "m"], ["-songs.csv", "./-songs.csv"]),
        (["fit", "none.csv", "-o", "m"], ["'none.csv'"]),
        (["fit", "Song.csv", "-o", "m"], ["'Song.csv'", "did you mean 'songs.csv'"]),
        (["evaluate", "songs.csv", "--metric", "haming"], ["--metric", "mean 'hamming_loss'"]),
        (
            ["fit", "new.csv", "-o", "m"],
            ["new.csv, line 1", "pass --tags for a column of tags, or --labels for"],
        ),
        (["fit", "songs.csv", "-o", "m", "--xml", "x"], ["nearlabel: --xml ", "'csv'"]),
        (["fit", "songs.csv", "-o", "m", "--encoding", "x"], ["nearlabel: --encoding ", "'x'"]),
        (["evaluate", "songs.csv", "--set", "smoothin=2"], ["--set smoothin", "'smoothing'?"]),
        (["reproduce", "--paper", "zhan-2007"], ["--paper must", "mean 'zhang-2007'"]),
        (["reproduce", "--paper", "zhang-2007", "--table", "99"], ["--table must", "'99'"]),
        (["rank", "songs.csv", "new.csv"], ["songs.csv"]),
        (["rank", "none", "new.csv"], ["none: No such file or directory"]),
        (["rank", "songs.model", "new.csv", "--top", "0"], ["--top", ">= 1", '"0"']),
        (["rank", "songs.model", "new.csv", "--why", "-o", "w.csv"], ["--why", ".jsonl"]),
    ],
)
def test_users_errors_are_one_line_with_code_2(fail, here, arguments, parts):
    message = fail(*arguments)
    assert all(part in message for part in parts), message
    assert not Path("m").exists()


def test_messages_name_options_rather_than_parameters(fail, answer, here, tmp_path):
    rows = "".join(f"text number {row},{row},a\n" for row in range(30))
    (tmp_path / "text.csv").write_text(f"title,x,tags\n{rows}")
    message = fail("datasets", "describe", tmp_path / "text.csv")
    assert "--ignore to leave it out, or to --id to name" in message
    (tmp_path / "latin.csv").write_bytes(b"x,tags\n1,caf\xe9\n")
    assert "--encoding 'latin-1'" in fail("datasets", "describe", tmp_path / "latin.csv")
    (tmp_path / "gap.csv").write_text("x,tags\n1,a\n,b\n")
    assert "--impute median accepts missing cells" in fail("evaluate", tmp_path / "gap.csv")
    assert "--gaps accepts missing cells" in fail("datasets", "describe", tmp_path / "gap.csv")
    assert "--stratified: " in fail("evaluate", "songs.csv", "--split", "loo", "--stratified")
    shutil.copy("songs.csv", tmp_path / "songs.data")
    assert "pass --format" in fail("datasets", "describe", tmp_path / "songs.data")
    code, printed, notes = answer("fit", "songs.csv", "-o", tmp_path / "m", "--k", 600)
    assert (code, "599 neighbors" in printed) == (0, True)
    assert notes.startswith("nearlabel: note: --k 600 ")


@pytest.mark.parametrize("verb", ["fit", "evaluate", "tune", "compare"])
def test_one_row_is_too_few(fail, tmp_path, verb):
    (tmp_path / "one.csv").write_text("x,tags\n1,a\n")
    more = ("-o", tmp_path / "m") if verb == "fit" else ()
    assert "one.csv has 1 row to learn from" in fail(verb, tmp_path / "one.csv", *more)


def test_algorithms_are_known_in_any_case(ask, here):
    both = ("tune", "songs.csv", "--k", "5", "--json", "--algorithm")
    assert ask(*both, "mlknn", "IBLR") == ask(*both, "MLkNN", "iblr")
    one = ("evaluate", "songs.csv", "--split", "holdout", "--algorithm", "brknn", "--json")
    assert json.loads(ask(*one))["algorithm"] == "BRkNN"


def test_single_values_are_not_lists(ask, tmp_path):
    (tmp_path / "one.csv").write_text("x,tags\n" + "".join(f"{row},a\n" for row in range(9)))
    (tmp_path / "row.csv").write_text("x\n1\n")
    model = tmp_path / "m"
    printed = ask("fit", tmp_path / "one.csv", "-o", model, "--k", 1)
    assert "1 neighbor," in printed
    assert "9 items, 1 feature, 1 label\n" in printed
    assert "(1 row)" in ask("predict", model, tmp_path / "row.csv", "-o", tmp_path / "p.csv")


def test_messages_escape_control_characters(fail):
    assert r"\x1b[31mred" in fail("fit", "songs.csv", "-o", "\x1b[31mred/m")


def test_input_files_are_not_overwritten(fail, here, tmp_path):
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
    def in_words(error):
        return in_options(error, {"k": "--k", "tags": "--tags", "gaps": None})

    for kind in (ArgumentError, ArgumentTypeError):
        assert in_words(kind("k must be 1; got 'x'", "k")) == "--k must be 1; got 'x'"
    assert in_words(ArgumentError("k='all': no", "k")) == "--k 'all': no"
    with pytest.raises(ArgumentTypeError) as caught:
        check_integer("x", "k (or None)", low=1)
    assert in_words(caught.value).startswith("--k (or None) ")
    error = ArgumentError("k='x' has none; give tags=", "k")
    assert in_words(error) == "--k 'x' has none; give --tags"
    assert in_words("with k=7 (tags='y', say)") == "with --k 7 (--tags 'y', say)"
    assert in_words("k=True: no; tags=True is") == "--k: no; --tags is"
    assert in_words("x is empty (gaps=True accepts it)") == "x is empty"
    # Quoted text may come from a file, and file names are not changed.
    for text in ("column 'k=1'", 'column "k=\'1"', r"column 'it\'s k= 1'", "top_k=3", "x=k=3"):
        assert in_words(text) == text
    expected = "the k= of.csv, line 3: give --tags"
    assert in_words(DataError("the k= of.csv", 3, "give tags=")) == expected
    assert in_words("k is a column of q.csv") == "k is a column of q.csv"


@pytest.mark.parametrize("error", [KeyError("oops"), TypeError("fit() takes 2 arguments")])
def test_an_internal_error_is_one_line_too(monkeypatch, capsys, error):
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
