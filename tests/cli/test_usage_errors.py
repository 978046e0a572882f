"""Commands that cannot be parsed: one line, with the closest name, and code 2."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evalute songs.csv", "unknown command 'evalute'; did you mean 'evaluate'?"),
        ("fly", "unknown command 'fly'; 'nearlabel --help' lists all commands"),
        ("datasets lst", "datasets: unknown command 'lst'; did you mean 'list'?"),
        ("collection undoo x", "collection: unknown command 'undoo'; did you mean 'undo'?"),
        (
            "evaluate songs.csv --algoritm MLkNN",
            "unknown option --algoritm; did you mean '--algorithm'?",
        ),
        (
            "evaluate songs.csv --minutes 3",  # no similar option
            "unknown option --minutes; 'nearlabel evaluate --help' lists all options",
        ),
        (
            "evaluate songs.csv --scale minmx",
            "--scale must be one of none, minmax, standard, rank, tfidf, auto; got 'minmx'; "
            "did you mean 'minmax'?",
        ),
        ("demo song", "WHAT must be one of pictures, songs; got 'song'; did you mean 'songs'?"),
        ("fit songs.csv -o m --k 0", "--k must be a whole number from 1 up; got '0'"),
        ("evaluate -->.csv", "unknown option -->.csv; if it is a file, give ./-->.csv"),
        ("evaluate songs.csv --k 3 --ignore a -->", "unknown option -->"),
        ("fit songs.csv -o m --smoothing x", "--smoothing must be a number; got 'x'"),
        ("fit songs.csv -o m --json=maybe", "--json takes no value; got 'maybe'"),
        ("fit songs.csv -o m --k 3 --k 4", "--k is given twice"),
        (
            "tune songs.csv --grid smothing=1,2",
            "--grid 'smothing=1,2': 'smothing' is not a parameter of MLkNN that --grid sets; "
            "did you mean 'smoothing'?",
        ),
        (
            "rank song.model new.csv",
            "song.model: No such file or directory; did you mean 'songs.model'?",
        ),
    ],
)
def test_the_whole_message(fail, here, command, message):
    assert fail(*command.split()) == f"nearlabel: {message}\n"


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("evaluate yeest", "yeast"),
        ("evaluate songs.cvs", "songs.csv"),  # rather than songs.model
        ("evaluate songs.csv --algorithm mlnn", "MLkNN"),
        ("evaluate songs.csv --split holdot", "holdout"),
        ("evaluate songs.csv --metric haming_loss", "hamming_loss"),
        ("evaluate songs.csv --distance cosin", "cosine"),
        ("evaluate songs.csv --ignore temp", "tempo"),
        ("evaluate songs.csv --set smothing=1", "smoothing"),
        ("datasets fetch yeest", "yeast"),
        ("reproduce --paper zang-2007", "zhang-2007"),
        ("models get pplcnet", "pplcnetv2"),
    ],
)
def test_the_closest_name(fail, here, command, meant):
    assert fail(*command.split()).endswith(f"; did you mean '{meant}'?\n")


def test_an_option_without_effect_is_refused(fail, here):
    message = fail("evaluate", "songs.csv", "--test-size", "0.2")
    assert message == "nearlabel: --test-size: only with --split holdout; the split is cv10\n"


@pytest.mark.parametrize("name", ["balancedknn", "BKNN", "Mallows kNN", "C4.5"])
def test_algorithms_by_their_names_in_tables(fail, here, name):
    assert "no data set 'no.csv'" in fail("evaluate", "no.csv", "--algorithm", name)


@pytest.mark.parametrize("option", ["--k", "--seed", "--jobs"])
def test_thousands_of_digits(fail, here, option):
    message = fail("fit", "songs.csv", "-o", "m", option, "9" * 5000)
    assert message.startswith(f"nearlabel: {option} must be a whole number")
    assert len(message) < 2100


def test_a_test_set_of_no_rows(fail, here):
    command = ["evaluate", "songs.csv", "--split", "holdout", "--test-size"]
    for share in ("0", "1"):
        assert fail(*command, share).startswith(f"nearlabel: --test-size {share}.0 leaves too few")


def test_a_figure_of_another_kind(fail, here):
    for verb in ("compare", "tune"):
        message = fail(verb, "songs.csv", "--figure", "a.html")
        assert message == "nearlabel: --figure must end in .png, .svg, .pdf; got 'a.html'\n"
