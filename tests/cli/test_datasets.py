"""The commands for data sets."""

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
    for verb, name in (("describe", "DATA"), ("fetch", "NAME")):
        message = fail("datasets", verb)
        assert f"{name} requires" in message
        assert f"nearlabel datasets {verb} yeast" in message
    assert "'nothing'" in fail("datasets", "fetch", "nothing")


def test_a_target_of_an_unknown_format_is_refused_before_anything_is_read(fail):
    message = fail("datasets", "convert", "no such file", "out.xls")
    assert message.startswith("nearlabel: TARGET ")
    assert ".npz, .arff" in message
    assert "=" not in message
    assert message.endswith("got out.xls\n")


def test_the_public_sets_are_easy_to_find(ask, fail, monkeypatch, tmp_path):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert "datasets list --public" in ask("datasets", "list")
    (tmp_path / "yeast.npz").touch()
    rows = [line.split() for line in ask("datasets", "list", "--public").splitlines()]
    assert ["yeast", "2417", "103", "14", "yes"] in rows
    assert ["scene", "2407", "294", "6", "no"] in rows
    told = json.loads(ask("datasets", "list", "--public", "--json"))
    scene = {"name": "scene", "items": 2407, "features": 294, "labels": 6, "there": False}
    assert scene in told
    assert "datasets fetch scene" in fail("evaluate", "scene")
    assert "did you mean 'scene'" in fail("evaluate", "scenne")
    assert "did you mean 'scene'" in fail("datasets", "fetch", "scenne")
    assert "datasets list --public" in fail("evaluate", "unlike_any")
    message = fail("datasets", "fetch", "scene", "--mirror", "ftp://x")
    assert message.startswith("nearlabel: --mirror must")
    assert message.endswith("got 'ftp://x'\n")


def test_a_note_lists_what_a_format_cannot_store(here, tmp_path, capsys):
    assert run(["datasets", "convert", "songs.csv", str(tmp_path / "two.arff")]) == 0
    note = capsys.readouterr().err
    assert note.startswith("nearlabel: note: ")
    assert "'arff'" in note
    assert note.count("\n") == 1
