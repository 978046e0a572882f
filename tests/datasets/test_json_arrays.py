from __future__ import annotations

import io
import json
import sys

import pandas as pd
import pytest

import nearlabel as nl
from nearlabel.datasets import DataError

FILE = "toy.json"
ROWS = [
    {"id": 7, "tempo": 120, "mode": "ma[j]or", "tags": ["calm", "sad"]},
    {"id": "b", "tempo": 90.5, "mode": 'mi"n}or', "tags": []},
]


@pytest.mark.parametrize("indent", [None, 0, 3])
def test_an_array_is_read_as_lines_are(put, indent):
    data = nl.datasets.load(put(json.dumps(ROWS, indent=indent)))
    lines = nl.datasets.load(put("\n".join(map(json.dumps, ROWS)), "toy.jsonl"))
    assert data.X.tolist() == lines.X.tolist() == [[120, 1, 0], [90.5, 0, 1]]
    assert data.label_names.tolist() == ["calm", "sad"]
    assert data.row_names.tolist() == ["7", "b"]


def test_what_pandas_writes(tmp_path):
    frame = pd.DataFrame({"x": [1.5, None], "word": ["a", "b"], "tags": ["p", "p;q"]})
    frame.to_json(tmp_path / "toy.json", orient="records")
    data = nl.datasets.load(tmp_path / "toy.json", gaps=["x"])
    assert str(data.X.tolist()) == "[[1.5, 1.0, 0.0], [nan, 0.0, 1.0]]"


def test_standard_input(monkeypatch):
    text = io.TextIOWrapper(io.BufferedReader(io.BytesIO(json.dumps(ROWS).encode())))
    monkeypatch.setattr(sys, "stdin", text)
    assert len(nl.datasets.load("-")) == 2


def test_a_data_folder_may_hold_other_json_files(put, monkeypatch, tmp_path):
    put('{"name": "notes"}', "notes.json")
    put(json.dumps(ROWS), "songs.json")
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert list(nl.datasets.available()) == ["songs"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "array of objects.*the end of the file"),
        ("[]", "empty"),
        ('{"x": 1}', "line 1: .*array of objects.*'{'"),
        ('[\n{"x": 1, "tags": "a"}\n{"x": 1, "tags": "a"}]', r"line 3: .*'\{'"),
        ('[{"x": 1, "tags": "a"}, ]', r"line 1: .*'\]'"),
        ('[{"x": 1, "tags": "a"}', "the end of the file"),
        ('[{"x": 1, "tags": "a"}] 5', "'5'"),
        ('[{"x": 1, "tags": "a"}][', r"'\['"),
        ('[5, {"x": 1, "tags": "a"}]', "'5"),
        ('["x"]', """'"'"""),
        ("[[1]]", r"array of objects.*'\['"),
        ('[{"x": ]}]', "expected a JSON object"),
        ('[{"x": 1, "tags": "a"},\n\n{"x": "", "tags": "a"}]', "line 3: .*'x'"),
        ("[" * 100_000, "array of objects"),
        ('[{"x": "' + r"\"" * 40_000 + "\n", "line 1: .*JSON object"),  # not once per quote
        ('[{"x": "a\n1", "tags": "a"}]', "line 1: .*JSON object"),
        ('[{"x": 1,\n"x": 2, "tags": "a"}]', "line 1: .*'x'.*twice"),
    ],
)
def test_arrays_that_are_refused(put, text, message):
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(text))
