"""Commands that cannot be parsed: one line, with the closest name, and code 2."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("datasets lst", 'Unknown command "lst". Did you mean "list"? Available commands: list, '),
        (
            "evaluate songs.csv --algoritm MLkNN",
            "Unknown option: --algoritm. Did you mean --algorithm?",
        ),
        (
            "evaluate songs.csv --scale minmx",
            'Invalid value "minmx" for --scale. Choose from: "none", "minmax", "standard", "rank", '
            '"tfidf", "auto". Did you mean "minmax"?',
        ),
        ("demo song", 'Invalid value "song" for WHAT. Choose from: "pictures", "songs". '),
        ("fit songs.csv -o m --k 0", 'Invalid value "0" for --k. Must be >= 1.'),
        ("fit songs.csv -o m --k 1.5", "Invalid value for --k: must be a whole number; got '1.5'"),
        ("fit songs.csv -o m --jobs 0", 'Invalid value "0" for --jobs. must be at least 1, or -1'),
        ("fit songs.csv -o m --recall 0.9", "--recall: only with --search approximate"),
        ("fit songs.csv -o m --k 3 --k 4", "Parameter --k specified multiple times."),
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
def test_messages(fail, here, command, message):
    assert fail(*command.split()).startswith(f"nearlabel: {message}")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("evaluate yeest", "yeast"),
        ("evaluate songs.cvs", "songs.csv"),  # rather than songs.model
        ("evaluate songs.csv --algorithm mlnn", "MLkNN"),
        ("evaluate songs.csv --split holdot", "holdout"),
        ("evaluate songs.csv --metric haming_loss", "hamming_loss"),
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
    assert message.startswith(f"nearlabel: Invalid value for {option}: must be a whole number")
    assert len(message) < 2100


def test_a_test_set_of_no_rows(fail, here):
    command = ["evaluate", "songs.csv", "--split", "holdout", "--test-size"]
    for share in ("0", "1"):
        assert fail(*command, share).startswith(f"nearlabel: --test-size {share}.0 leaves too few")


def test_a_figure_of_another_kind(fail, here):
    for verb in ("compare", "tune"):
        message = fail(verb, "songs.csv", "--figure", "a.html")
        assert message == "nearlabel: --figure must end in .png, .svg, .pdf; got 'a.html'\n"
