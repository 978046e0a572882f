"""The verbs about data sets."""

from __future__ import annotations

import json

from nearlabel.cli import run


def test_datasets(ask, fail, here, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert ask("datasets", "list").startswith(f"no data set in {tmp_path}")
    for name in ("one.npz", "three.jsonl", "two.csv"):
        assert ask("datasets", "convert", "songs.csv", tmp_path / name).startswith("wrote ")
    listed = json.loads(ask("datasets", "list", "--json"))
    assert [item["name"] for item in listed] == ["one", "three", "two"]
    assert "3 data sets in" in ask("datasets", "list")
    told = json.loads(ask("datasets", "describe", "one", "two", "three", "songs.csv", "--json"))
    for item in told:
        del item["dataset"]
        assert item == told[0]
    assert (told[0]["instances"], told[0]["features"], told[0]["labels"]) == (600, 6, 12)
    assert "cardinality" in ask("datasets", "describe", "one")
    for verb in ("describe", "fetch"):
        message = fail("datasets", verb)
        assert "data set" in message
        assert "name" in message
    assert "'nothing'" in fail("datasets", "fetch", "nothing")
    message = fail("datasets", "convert", "songs.csv", tmp_path / "x.xls")
    assert message.startswith("nearlabel: TARGET ")
    assert "x.xls" in message


def test_what_a_form_has_no_place_for_is_a_note(here, tmp_path, capsys):
    assert run(["datasets", "convert", "songs.csv", str(tmp_path / "two.arff")]) == 0
    note = capsys.readouterr().err
    assert note.startswith("nearlabel: note: ")
    assert "'arff'" in note
    assert note.count("\n") == 1
