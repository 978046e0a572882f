"""compare."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from html_pages import Page, check_needs_nothing

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.methods.registry import METHODS


def test_all_algorithms_share_two_searches(ask, here, searches):
    found = json.loads(ask("compare", "songs.csv", "--scale", "standard", "--json"))
    assert [one["algorithm"] for one in found["results"]] == list(METHODS)
    rows = [rows for rows, _ in searches]
    assert rows[:2] == ["training", 200]
    assert "training" not in rows[2:]
    # Only the balanced one searches by itself, within each class.
    assert "BalancedkNN" in METHODS
    without = [name for name in METHODS if name != "BalancedkNN"]
    searches.clear()
    ask("compare", "songs.csv", "--scale", "standard", "--algorithm", *without)
    assert [rows for rows, _ in searches] == ["training", 200]


def test_each_row_agrees_with_evaluate(ask, here):
    found = json.loads(ask("compare", "songs.csv", "--k", 7, "--split", "holdout", "--json"))
    for one in found["results"]:
        name = one["algorithm"]
        options = ("--algorithm", name, "--k", 7, "--split", "holdout")
        (alone,) = json.loads(ask("evaluate", "songs.csv", *options, "--json"))["results"]
        for metric, value in one["metrics"].items():
            assert alone["metrics"][metric] == value, (name, metric)
        assert one["seconds"] >= 0


def test_the_best_of_each_column_is_marked(ask, here, tmp_path):
    table = tmp_path / "table.csv"
    options = ("--metric", "ranking_loss", "macro_f1", "-o", table)
    printed = ask("compare", "songs.csv", *options)
    assert max(len(line) for line in printed.splitlines() if str(table) not in line) <= 80
    with table.open(encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert [row["algorithm"] for row in cells] == list(METHODS)
    for metric, best in (("ranking_loss", np.argmin), ("macro_f1", np.argmax)):
        values = [round(float(row[metric]), 4) for row in cells]
        winner = values[int(best(values))]
        assert f"*{winner:.4f}" in printed
    assert printed.count("*") == 1 + sum(
        values.count(best(values))
        for values, best in (
            ([round(float(row["ranking_loss"]), 4) for row in cells], min),
            ([round(float(row["macro_f1"]), 4) for row in cells], max),
        )
    )


def test_ten_parts_and_cuts(ask, here):
    some = ("--algorithm", "MLkNN", "BRkNN", "--metric", "macro_f1")
    own = json.loads(ask("compare", "songs.csv", *some, "--split", "cv10", "--json"))
    cuts = json.loads(
        ask("compare", "songs.csv", *some, "--split", "cv10", "--thresholds", "--json")
    )
    for before, after in zip(own["results"], cuts["results"], strict=True):
        assert before["std"]["macro_f1"] > 0
        assert after["metrics"]["macro_f1"] > before["metrics"]["macro_f1"]
    assert "means of 10 parts" in ask("compare", "songs.csv", *some, "--split", "cv10")


def test_an_algorithm_that_refuses_the_data_is_noted(ask, here, monkeypatch):
    def refuse(self, *_, **__):
        raise MemoryError("it would need 9,999 GiB")

    monkeypatch.setattr(nl.BRkNN, "_scores", refuse)
    printed = ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN")
    assert "BRkNN was left out: it would need 9,999 GiB" in printed
    found = json.loads(ask("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN", "--json"))
    assert found["results"][1]["refusal"] == "it would need 9,999 GiB"
    assert found["results"][1]["metrics"] == {}


@pytest.mark.parametrize("columns", [100, 60, 40, 20])
def test_a_narrow_terminal_has_all_digits(ask, here, monkeypatch, columns):
    command = ("compare", "songs.csv", "--algorithm", "MLkNN", "BRkNN")
    monkeypatch.setenv("COLUMNS", "1000")
    wide = re.findall(r"\*?\d\.\d{4}\b", ask(*command))
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = ask(*command)
    assert sorted(re.findall(r"\*?\d\.\d{4}\b", printed)) == sorted(wide)
    assert len(wide) == 10
    table = [line for line in printed.splitlines() if re.match("ML-kNN|BRkNN|─| {4}", line)]
    assert max(map(len, table)) <= max(columns, len("ML-kNN   coverage ↓"))
    assert len(table) == 4 * {100: 1, 60: 2, 40: 3, 20: 6}[columns]


def test_notes_are_printed_once(here, capsys):
    assert run(["compare", "songs.csv", "--k", "500", "--algorithm", "MLkNN", "BRkNN"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "--k 500" in line]
    assert len(notes) == 1


def test_other_learners_are_compared_with_ours(ask, here, tmp_path, monkeypatch):
    from nearlabel.experiments.others import other_methods

    some = {name: other_methods.OTHERS[name] for name in ("KNeighbors",)}
    monkeypatch.setattr(other_methods, "OTHERS", some)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    figure, table = tmp_path / "compared.svg", tmp_path / "table.csv"
    lines = (here / "songs.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join(lines[:181]), encoding="utf-8")
    data = tmp_path / "few.csv"
    words = ("compare", data, "--algorithm", "MLkNN", "BRkNN", "--others", "--k", 5, 10)
    printed = ask(*words, "--figure", figure, "-o", table)
    assert "4 algorithms, tuned by average_precision on the training items" in printed
    for name in ("ML-kNN", "BRkNN", "blend", "kNN, scikit-learn"):
        assert re.search(rf"^{re.escape(name)} .*[*≈]?0\.\d{{4}} ±0\.\d{{3}}", printed, re.M), name
        assert re.search(rf"^  {re.escape(name)}: ", printed, re.M), name
    assert "* the best; ≈ not significantly worse: paired t-test over test items" in printed
    drawn = figure.read_text()
    assert "<svg" in drawn
    with table.open(encoding="utf-8") as file:
        rows = {row["algorithm"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["MLkNN", "BRkNN", "AutoNeighbors", *some]
    assert rows["KNeighbors"]["chosen"].startswith("scale ")

    def nothing_runs(*_):
        raise AssertionError("a kept run was made again")

    monkeypatch.setattr("nearlabel.experiments.others.other_runs._in_process", nothing_runs)
    found = json.loads(ask(*words, "--json"))["results"]
    for one in found:
        assert one["metrics"]["average_precision"] == float(
            rows[one["algorithm"]]["average_precision"]
        )
        assert one["standard_error"]["average_precision"] > 0
        assert 0 <= one["p_value"]["average_precision"] <= 1
        assert one["p_value"]["micro_f1"] in (None, 1.0)


def test_results_of_the_blend(ask, here):
    words = ("compare", "songs.csv", "--algorithm", "MLkNN", "--best", "--json")
    mine, best = json.loads(ask(*words))["results"]
    assert best["algorithm"] == "AutoNeighbors"
    assert best["chosen"][0]["scale"]
    assert best["metrics"]["average_precision"] > mine["metrics"]["average_precision"]


def test_the_command_that_fits_the_best_has_the_given_options(ask, here):
    words = ("compare", "songs.csv", "--algorithm", "BRkNN", "--distance", "cosine", "--k", "7")
    command = json.loads(ask(*words, "--thresholds", "--json"))["fit_command"]
    usual = "nearlabel fit songs.csv -o songs.model --algorithm BRkNN"
    assert command == f"{usual} --k 7 --distance cosine --thresholds"


@pytest.fixture
def report_packages():
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package)


@pytest.mark.usefixtures("report_packages")
def test_a_report_has_what_is_printed(ask, here, tmp_path, monkeypatch):
    def refuse(self, *_, **__):
        raise MemoryError("it would need <9,999 GiB>")

    monkeypatch.setattr(nl.IBLR, "_scores", refuse)
    path = tmp_path / "the songs.html"
    path.write_text("an earlier report")
    some = ("--algorithm", "MLkNN", "BRkNN", "IBLR", "--metric", "ranking_loss", "macro_f1")
    words = ("compare", "songs.csv", *some, "--split", "cv5", "--tune", "--k", "3", "9")
    printed = ask(*words, "--seed", "3", "--report", path)
    assert f"wrote {path}\nto fit BRkNN, the best of ours by " in printed
    command = printed.splitlines()[-1]
    assert command.startswith("nearlabel fit songs.csv -o songs.model --algorithm BRkNN --k ")
    again = shlex.split(command.replace("songs.model", str(tmp_path / "songs.model")))
    assert "BRkNN" in ask(*again[1:])
    page = path.read_text("utf-8")
    check_needs_nothing(page)
    texts = [text.strip() for text in Page(page).texts]
    for told in (
        "Comparison of multi-label methods: songs.csv",
        "600 items, 6 features, 12 labels",
        "3 algorithms, tuned by ranking_loss on the training items",
        "scale none",
        "cv5: 5 times 480 training items, 120 test items",
        "paper, for ties and rows without labels",
        shlex.join(["nearlabel", *words, "--seed", "3", "--report", str(path)]),
        "IBLR-ML: it would need <9,999 GiB>",
    ):
        assert told in texts
    data = nl.datasets.load("songs.csv")
    assert f"{data.Y.sum() / 600:.3f} labels per item" in texts
    for mark, value in re.findall(r"([*≈]?)(\d\.\d{4})", printed):
        classes = {"*": "best", "≈": "alike", "": ""}[mark]
        assert re.search(rf'class="number {classes}"><span>{value} ± 0\.\d{{4}}<', page)
    for choice in re.findall(r"k \d, [a-z ]+\(\d\)", printed):
        assert choice in texts
    assert set(data.label_names) <= set(texts)
    assert page.count("<figure>") == 4


@pytest.mark.usefixtures("report_packages")
@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not have")
def test_hostile_names_in_a_report(ask, songs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["<script>alert(1)</script>", "{{7*7}}", "\u202eturned", "$x$"]
    data = nl.datasets.load(songs / "songs.csv")
    rows, names = slice(0, 120), os.fsdecode(b'<b>$&"\xff.npz')
    one = nl.datasets.Dataset(data.X[rows], data.Y[rows][:, :4], label_names=labels)
    nl.datasets.save(one, names)
    ask("compare", names, "--algorithm", "MLkNN", "--metric", "macro_f1", "--report", "a.html")
    page = Path("a.html").read_text("utf-8")
    check_needs_nothing(page)
    read = Page(page)
    assert {"script", "b"}.isdisjoint(read.tags)
    assert {"<script>alert(1)</script>", "{{7*7}}", "?turned", "$x$"} <= set(read.texts)
    assert 'Comparison of multi-label methods: <b>$&"\\udcff.npz' in read.texts


def test_a_report_without_its_packages_says_what_to_install(here, fail, tmp_path, monkeypatch):
    for package in ("matplotlib", "jinja2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            message = fail("compare", "songs.csv", "--report", tmp_path / "new.html")
        assert f"{package}: pip install 'nearlabel[report]'" in message
    assert not (tmp_path / "new.html").exists()


def test_a_report_does_not_replace_the_input(fail, songs, tmp_path):
    data = tmp_path / "songs.html"
    data.write_bytes((songs / "songs.csv").read_bytes())
    message = fail("compare", data, "--format", "csv", "--report", data)
    assert "this would overwrite the input" in message
    assert data.read_bytes() == (songs / "songs.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--others", "--split", "loo"),
            "--split loo: --best and --others need held-out test items",
        ),
        (("--minutes", "0", "--others"), 'Invalid value "0.0" for --minutes. Must be > 0.'),
        (("--figure", "x.gif"), "--figure must end in .png, .svg, .pdf; got 'x.gif'"),
        (("--figure", "no/x.png"), "--figure no/x.png: the folder "),
        (("--report", "report"), "--report must end in .html; got report"),
        (("--report", "no/x.html"), "--report no/x.html: the folder "),
    ],
)
def test_conflicting_options_are_refused(here, capsys, words, message):
    assert run(["compare", "songs.csv", *words]) != 0
    assert message in capsys.readouterr().err
