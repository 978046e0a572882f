import json

import pandas as pd
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import DataError, json_lines

FILE = "toy.jsonl"
FLAT = """{"id": 7, "tempo": 120, "mode": "major", "tags": ["calm", "sad"]}
{"tags": [], "mode": "minor", "tempo": 90.5, "id": "b"}
"""
NESTED = """{"features": [1, 2.5], "labels": ["x"], "id": "a", "split": "train"}

{"features": [0, -1], "labels": ["y", "x"], "id": "b", "split": "test"}
"""
OBJECTS = (
    '{"features": {"sun": 2}, "labels": ["x"]}\n{"features": {"sea": 1.5, "sun": 1}, "tags": "x"}\n'
)


def test_json_lines(put):
    flat = nl.datasets.load(put(FLAT))
    assert flat.X.tolist() == [[120, 1, 0], [90.5, 0, 1]]
    assert flat.Y.toarray().tolist() == [[1, 1], [0, 0]]
    assert flat.row_names.tolist() == ["7", "b"]
    nested = nl.datasets.load(put(NESTED))
    assert nested.X.tolist() == [[1, 2.5], [0, -1]]
    assert nested.label_names.tolist() == ["x", "y"]
    assert nested.train.tolist() == [True, False]
    objects = nl.datasets.load(put(OBJECTS))
    assert sparse.issparse(objects.X)
    assert objects.X.toarray().tolist() == [[2, 0], [1, 1.5]]
    assert objects.feature_names.tolist() == ["sun", "sea"]


def test_options_and_features_of_nested_json_lines(put):
    text = '{"features": {"b": 2, "z": 9}, "moods": ["x"], "title": "T"}\n'
    data = nl.datasets.load(put(text), tags="moods", id="title")
    assert (data.label_names.tolist(), data.row_names.tolist()) == (["x"], ["T"])
    known = nl.datasets.load(put(text), features=["a", "b"], labels=())
    assert known.X.toarray().tolist() == [[0, 2]]  # missing: 0, unknown: ignored
    listed = put('{"features": [1, 2]}\n')
    assert nl.datasets.load(listed, features=["a", "b"], labels=()).X.tolist() == [[1, 2]]
    for options in ({"ignore": ["b"]}, {"labels": ["b"]}):
        with pytest.raises(DataError, match="ignore=.*labels="):
            nl.datasets.load(put(text), **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: .* empty"),
        ("[1]\n", r"line 1: .*'\[1\]'"),
        ("{\n", "line 1: .*JSON object.*'{'"),
        ("[" * 100_000, r"line 1: .*\[\["),
        ('{"x": NaN, "tags": "a"}\n', "line 1: .*JSON object"),
        (
            '{"x": 1, "tags": "a"}\n{"x": 1}\n',
            "line 2: .*'tags'",
        ),
        ('{"x": null, "tags": "a"}\n', "line 1: .*'x'.*'None'"),
        ('{"x": [1], "tags": "a"}\n', "line 1: .*'x'"),
        ('{"x": 1, "tags": 5}\n', "line 1: .*labels.*'5'"),
        ('{"x": 1, "tags": [5]}\n', "line 1: .*labels"),
        ('{"x": 1, "tags": "a"}\n{"x": 1e999, "tags": "a"}\n', "line 2: .*'x'.*finite"),
        ('{"x": 1, "tags": "a"}\n{"x": 1, "x": 2, "tags": "a"}\n', "line 2: .*'x'.*twice"),
        ('{"features": {"a": 1, "a": 2}}\n', "line 1: .*'a'.*twice"),
        ('{"features": [1, "2"]}\n', "line 1: .*features.*'2'"),
        ('{"features": [1]}\n{"features": [1, 2]}\n', "line 2: expected 1.*features.*2"),
        ('{"features": [1]}\n{"features": {"a": 1}}\n', "line 2: .*features"),
        ('{"features": [1], "labels": []}\n{"features": [1]}\n', "all rows.*labels"),
        ('{"features": {}}\n', "no row .*feature"),
        ('{"nearlabel": 1, "features": -1}\n', "line 1: .*features.*features"),
        (
            '{"nearlabel": 1, "features": 2}\n{"features": {"7": 1}}\n',
            "line 2: '7'.*features",
        ),
    ],
)
def test_json_lines_that_are_refused(put, text, message):
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(text))


@pytest.mark.parametrize("cell", ["1e999", "-1e999"])
def test_an_infinite_number_is_not_a_missing_value(put, cell):
    text = f'{{"x": null, "tags": "a"}}\n{{"x": {cell}, "tags": "b"}}\n'
    with pytest.raises(DataError, match="line 2: .*'x'.*finite"):
        nl.datasets.load(put(text), gaps=True)


def test_no_tags_in_json_lines(put):
    for text in (
        '{"x": 1, "tags": null}\n{"x": 2, "tags": ["a"]}\n',
        '{"features": [1], "tags": null}\n{"features": [2], "tags": ["a"]}\n',
    ):
        assert nl.datasets.load(put(text)).Y.toarray().tolist() == [[0], [1]]


@pytest.mark.parametrize("what", ["feature", "label"])
def test_a_first_line_that_names_a_column_twice(put, what):
    header = f'{{"nearlabel": 1, "features": 2, "labels": 2, "{what}_names": ["a", "a"]}}\n'
    with pytest.raises(DataError, match=f"line 1: {what}_names.*'a'"):
        nl.datasets.load(put(header + '{"features": [1, 2], "labels": ["a"]}\n'))


@pytest.mark.parametrize("what", ["labels", "features"])
@pytest.mark.parametrize("count", ["-1", "1e999", "2.5", '"2"', "true", "[]", "3"])
def test_a_first_line_whose_counts_do_not_fit_its_names(tmp_path, what, count):
    counts = {"labels": "2", "features": "2", what: count}
    path = tmp_path / "data.jsonl"
    path.write_text(
        f'{{"nearlabel": 1, "features": {counts["features"]}, "labels": {counts["labels"]}, '
        '"label_names": ["a", "b"], "feature_names": ["c", "d"]}\n'
        '{"features": [1, 2], "labels": ["a"]}\n{"features": [3, 4], "labels": ["b"]}\n'
    )
    with pytest.raises(nl.datasets.DataError, match=f"data.jsonl, line 1: .*{what[:-1]}"):
        nl.datasets.load(path)


@pytest.mark.parametrize("features", ["[1, 2]", '{"x": 1}'])
def test_labels_without_features(put, features):
    row = f'{{"features": {features}, "labels": [%s], "id": "a"}}\n'
    data = nl.datasets.load(put(row % '"sea"'), features=())
    assert (data.X.shape, data.Y.toarray().tolist()) == ((1, 0), [[1]])
    assert (data.label_names.tolist(), data.row_names.tolist()) == (["sea"], ["a"])
    data = nl.datasets.load(put(row % ""), features=())
    assert (data.Y.shape, data.label_names.tolist()) == ((1, 0), [])


ROWS = [
    {"id": 7, "tempo": 120, "mode": "ma[j]or", "tags": ["calm", "sad"]},
    {"id": "b", "tempo": 90.5, "mode": 'mi"n}or', "tags": []},
]


@pytest.mark.parametrize("indent", [None, 0, 3])
def test_an_array_is_read_as_lines_are(put, indent):
    data = nl.datasets.load(put(json.dumps(ROWS, indent=indent), "toy.json"))
    lines = nl.datasets.load(put("\n".join(map(json.dumps, ROWS))))
    assert data.X.tolist() == lines.X.tolist() == [[120, 1, 0], [90.5, 0, 1]]
    assert data.label_names.tolist() == ["calm", "sad"]
    assert data.row_names.tolist() == ["7", "b"]


def test_an_array_that_is_too_long_to_be_read_as_a_whole(put, monkeypatch):
    monkeypatch.setattr(json_lines, "_LONGEST_ARRAY", 2**20)
    with pytest.raises(DataError, match="line [0-9]+: the array is longer than 1 MiB"):
        nl.datasets.load(put(json.dumps(ROWS) + f"{' ' * 1023}\n" * 2**10, "toy.json"))


def test_what_pandas_writes(tmp_path):
    frame = pd.DataFrame({"x": [1.5, None], "word": ["a", "b"], "tags": ["p", "p;q"]})
    frame.to_json(tmp_path / "toy.json", orient="records")
    data = nl.datasets.load(tmp_path / "toy.json", gaps=["x"])
    assert str(data.X.tolist()) == "[[1.5, 1.0, 0.0], [nan, 0.0, 1.0]]"


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
        nl.datasets.load(put(text, "toy.json"))
