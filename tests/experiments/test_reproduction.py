"""The published tables made anew, on small data sets under the names of the real ones."""

from __future__ import annotations

from collections import Counter

import pytest
from lookalikes import write_lookalikes

from nearlabel.experiments import reproduction, running
from nearlabel.experiments.plans import plan
from nearlabel.experiments.published import cells
from nearlabel.experiments.reproduction import reproduce
from nearlabel.experiments.verdicts import VERDICTS
from nearlabel.search import ExactIndex

SOME = ("birds", "corel16k001", "emotions", "image", "yeast")
FIELDS = (
    *("paper", "table", "dataset", "algorithm", "metric"),
    *("published", "std", "ours", "verdict", "reason"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_lookalikes(folder, *SOME)
    return folder


@pytest.fixture(autouse=True)
def data(folder, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(folder))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of results that the tests of this file share."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def found(kept):
    """Everything, measured by the first test that asks for it."""
    return reproduce(results=kept)


@pytest.fixture
def no_search(monkeypatch):
    def search(*_, **__):
        raise AssertionError("this searches")

    monkeypatch.setattr(ExactIndex, "graph", search)


def only(records, **wanted):
    return [record for record in records if wanted.items() <= record.items()]


def test_every_published_cell_has_a_record(found):
    assert len(found.records) == 738 == len(cells())
    for cell, record in zip(cells(), found.records, strict=True):
        assert tuple(record)[: len(FIELDS)] == FIELDS
        assert record["printed"] == cell.printed
        assert record["verdict"] in VERDICTS
        assert (record["verdict"] == "not run") == (record["ours"] is None)
        assert (record["reason"] is None) == (record["verdict"] in ("digits", "within std"))
        assert (record["published"] is None) == (cell.printed is None)


def test_what_can_be_run_is_run(found):
    ran = {record["dataset"] for record in found.records if record["ours"] is not None}
    assert ran == set(SOME)
    for record in found.records:
        if record["dataset"] in SOME and record["algorithm"] not in plan().other_methods:
            assert record["ours"] is not None, record
    reasons = Counter(record["reason"] for record in only(found.records, verdict="not run"))
    assert reasons["not a neighbor method"] == 237 - 14 + 14 - 14 + 14
    assert reasons["the paper has no number here"] == 17
    assert reasons["not in the data folder: scene"] == 24 + 4 + 20 - 4
    (average,) = {
        r["reason"]
        for r in only(found.records, dataset="yahoo_average", table="10")
        if r["algorithm"] == "ML-KNN"
    }
    assert average.startswith("not in the data folder: yahoo_arts, yahoo_business, ")
    assert "yahoo_arts" in found.absent
    assert "yeast" not in found.absent


def test_a_second_run_only_reads(found, kept, no_search):
    again = reproduce(results=kept)
    assert again.records == found.records
    assert again.measured == 0
    assert again.read == found.measured + found.read > 20


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    run, ran = running.run_unit, []

    def interrupted(unit, *rest, **more):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(unit)
        return run(unit, *rest, **more)

    monkeypatch.setattr(running, "run_unit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["000", "001"], results=tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("NEARLABEL_DATA", str(reproduction.data_key and ""))
