"""reproduce: published and measured numbers, for people and for programs."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter

import numpy as np
import pytest
from lookalikes import make_baselines_quick, write_lookalikes

from nearlabel.cli import run
from nearlabel.cli.reproduce import claims
from nearlabel.experiments.papers.printed_tables import cells, papers
from nearlabel.experiments.papers.table_experiments import METRICS, Experiment, Measurement
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_lookalikes(folder, "emotions", "image", "scene", "yeast")
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of results that the tests of this file share."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(autouse=True)
def data_folder(folder, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(folder))
    make_baselines_quick(monkeypatch)


@pytest.fixture
def quick(monkeypatch):
    """Experiments with fake numbers: the tests are about their display."""

    def measurements(experiment, ready, **_):
        values = np.random.default_rng(len(experiment.dataset)).random((len(METRICS), 3))
        metrics = dict(zip(METRICS, values.tolist(), strict=True))
        chosen = {name: values[0] for name, values in experiment.grid.items()}
        sets = [{**one, **chosen} for one in experiment.parameters]
        return [Measurement(one, metrics) for one in sets]

    monkeypatch.setattr(Experiment, "measurements", measurements)


def test_json_is_a_list_of_records(ask, kept):
    records = json.loads(
        ask("reproduce", "--paper", "zhang-2005", "zhang-2007", "--results", kept, "--json")
    )
    assert len(records) == 325 + 30 + 35
    fields = "paper table dataset algorithm metric published std ours verdict reason"
    for record in records:
        assert set(fields.split()) <= set(record)
        assert (record["ours"] is None) == (record["verdict"] == "not run")
    first = records[0]
    assert [first[key] for key in ("paper", "table", "dataset")] == ["zhang-2007", "1", "yeast"]
    assert (first["published"], first["std"]) == (0.195, 0.01)
    exact = {"metric": "euclidean", "search": "exact"}
    assert first["parameters"] == {"n_neighbors": 8, "smoothing": 1, "counts": "paper", **exact}
    neighbors = [
        one["parameters"] for one in records if (one["paper"], one["table"]) == ("zhang-2005", "I")
    ]
    assert [one["n_neighbors"] for one in neighbors[::5]] == [6, 7, 8, 9]


def test_tables_for_people(ask, kept):
    printed = ask(
        "reproduce", "--paper", "zhang-2007", "--table", "1", "5", "10", "--results", kept
    )
    lines = printed.splitlines()
    assert max(len(line) for line in lines if str(kept) not in line) <= 80
    assert lines[0] == "Zhang and Zhou (2007), Table 1"
    assert "split cv10; scale none; convention paper" in lines[1]
    published = next(place for place, line in enumerate(lines) if line.startswith("yeast"))
    assert lines[published].split()[1] == "0.195±0.010"
    assert lines[published + 1].startswith("  ML-KNN k=8")
    assert lines[published + 1][-1] in "=~≈!"
    absent = "(48 cells): not in the data folder: yahoo_arts, yahoo_business"
    assert absent in " ".join(printed.split())
    assert "11 data sets are not in the data folder: 'nearlabel datasets list" in printed


def test_counts_of_the_summary_are_those_of_the_records(ask, kept):
    options = ("--paper", "wang-2018", "--table", "1", "--results", kept)
    records = json.loads(ask("reproduce", *options, "--json"))
    counts = Counter(record["verdict"] for record in records)
    printed = ask("reproduce", *options)
    (line,) = re.findall(r"^wang-2018  (.*)$", printed, re.MULTILINE)
    wanted = [counts[verdict] for verdict in Verdict]
    assert list(map(int, line.split())) == wanted
    assert sum(wanted) == 60
    marks = Counter("".join(re.findall(r"(?<=\d)[=~≈!](?=\s)", printed)))
    assert marks == {
        mark: counts[verdict]
        for mark, verdict in (("=", "digits"), ("≈", "close"), ("!", "off"))
        if counts[verdict]
    }


def test_a_second_run_continues_after_an_interrupt(kept, tmp_path, monkeypatch, capsys):
    measured, ran = Experiment.measurements, []

    def interrupted(one, *rest, **more):
        if ran:
            raise KeyboardInterrupt
        ran.append(one)
        return measured(one, *rest, **more)

    tables = ("--paper", "zhang-2007", "zhang-2005", "--table", "1", "I")
    command = ["reproduce", *tables, "--results", str(tmp_path)]
    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "measurements", interrupted)
        assert run(command) == 130
    assert capsys.readouterr().err == "nearlabel: interrupted\n"
    assert run(command) == 0
    assert "1 results measured now, 1 read from" in capsys.readouterr().out
    assert run(command) == 0
    assert "0 results measured now, 2 read from" in capsys.readouterr().out
    assert run([*command, "--again"]) == 0
    assert "2 results measured now, 0 read from" in capsys.readouterr().out


def test_without_data_nothing_is_run_and_nothing_fails(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path / "nowhere"))
    printed = ask("reproduce", "--results", tmp_path)
    assert "set NEARLABEL_DATA to the folder that has the others" in " ".join(printed.split())
    assert "Zhang and Zhou (2007), Table 1\n" in printed
    records = json.loads(ask("reproduce", "--results", tmp_path, "--json"))
    assert {record["verdict"] for record in records} == {"not run"}
    assert len(records) == 798 + 54
    assert all(record["reason"] for record in records)
    assert not list(tmp_path.iterdir())


def test_the_help_lists_all_papers(ask):
    printed = ask("reproduce", "--help")
    assert all(paper in printed for paper in papers())


def test_errors_that_users_can_fix(fail, kept, tmp_path):
    for options, message in (
        (("--paper", "2007"), "paper.*zhang-2007, zhang-2005.*'2007'"),
        (("--paper", "zhang-2005", "--table", "3"), "table.*zhang-2005: I, II.*'3'"),
        (("--paper", "zhang-2005", "--table", "3"), "table.*zhang-2005: I, II.*'3'"),
        (("--table", "XX"), "table.*zhang-2007: 1, 2, 5, 7, 5-pictures, 7-pictures, 10, .*'XX'"),
    ):
        assert re.search(message, fail("reproduce", *options, "--results", kept))
    file = tmp_path / "file"
    file.write_text("no folder")
    assert "file" in fail("reproduce", "--paper", "zhang-2005", "--results", file)


def test_the_report_is_written_from_stored_results(ask, fail, tmp_path, monkeypatch, quick):
    for package in ("matplotlib", "jinja2", "scikit_posthocs"):
        pytest.importorskip(package)
    options = (
        "reproduce",
        "--paper",
        "zhang-2005",
        "zhang-2017",
        "--results",
        tmp_path,
        "--report",
    )
    assert f"wrote {tmp_path / 'one'}" in ask(*options, tmp_path / "one")
    page = (tmp_path / "one" / "report.html").read_text("utf-8")
    assert "the data are not available" in page

    def measure(*_, **__):
        raise AssertionError("this measures")

    monkeypatch.setattr(Experiment, "measurements", measure)
    records = json.loads(ask(*options, tmp_path / "two", "--json"))
    assert len(records) == 35 + 96 + 24
    assert (tmp_path / "two" / "report.html").read_text("utf-8") == page
    file = tmp_path / "file"
    file.write_text("no folder")
    assert f"--report {file}: " in fail(*options, file)


def test_a_report_without_its_packages_says_what_to_install(fail, kept, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    message = fail(
        "reproduce", "--paper", "zhang-2005", "--results", kept, "--report", tmp_path / "new"
    )
    assert "pip install 'nearlabel[report]'" in message
    assert not (tmp_path / "new").exists()


def test_doubtful_numbers_are_marked(ask, tmp_path, monkeypatch, quick):
    monkeypatch.setenv("COLUMNS", "100")  # all numbers of a row in one line
    printed = ask("reproduce", "--paper", "wang-2018", "--table", "3", "--results", tmp_path)
    (line,) = re.findall(r"^(emotions .*)\n  DML-kNN", printed, re.MULTILINE)
    assert line.split() == ["emotions", "0.187", "0.147", "0.253?", "0.300", "0.816"]
    told = "? doubtful, ML-kNN, DML-kNN · emotions · one-error (2 cells), printed 0.253: no whole"
    assert told in " ".join(printed.split())
    assert "? doubtful: the published number cannot be right, or hardly" in printed


def test_claims_about_the_older_method(ask, tmp_path, monkeypatch, quick):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    names = ("emotions", "genbase", "image135", "reuters", "scene", "yeast")
    write_lookalikes(tmp_path, *names)
    printed = ask("reproduce", "--paper", "cheng-2009", "--results", tmp_path)
    folded = " ".join(printed.split())
    title = (
        "Cheng and Hüllermeier (2009), Table 2, Mallows against ML-kNN by Wilcoxon's signed-rank"
    )
    assert f"{title} test; data sets: {', '.join(names)}" in folded
    (line,) = [one for one in printed.splitlines() if one.startswith("hamming loss ↓ published")]
    # 0.197 < 0.261, 0.003 < 0.005, 0.192 < 0.193; 0.085 > 0.073, 0.094 > 0.087, 0.197 > 0.194.
    assert line.split()[4:6] == ["6", "3/0/3"]
    assert line.split()[-1] not in ("better", "worse")
    assert "\nhamming loss ↓ ours " in printed
    assert "(docs/errata.md#scaling-that-differs)" in folded
    assert max(len(one) for one in printed.splitlines() if str(tmp_path) not in one) <= 80
    (tmp_path / "reuters.npz").unlink()
    folded = " ".join(ask("reproduce", "--paper", "cheng-2009", "--results", tmp_path).split())
    assert "Too few data sets for a test, which takes 6: 5 by hamming loss" in folded
    assert "won/tied/lost" not in folded


def test_claims_fit_in_80_columns():
    """Also those with the longest names: five metrics of Wang et al. (2018)."""
    compared = [
        ComparedCell(cell, ours=float(cell.printed))
        for cell in cells()
        if cell.paper == "wang-2018"
    ]
    lines = "\n".join(map(str, claims(compared))).splitlines()
    assert max(map(len, lines)) <= 80
    (line,) = [one for one in lines if one.startswith("average precision ↑ published")]
    assert line.split()[4:] == ["12", "11/1/0", "+0.0155", "<0.001", "better"]
    (line,) = [one for one in lines if one.startswith("hamming loss ↓ ours")]
    assert line.split()[-1] not in ("better", "worse")
