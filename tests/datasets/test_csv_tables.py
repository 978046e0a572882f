import csv
import json
import re

import pytest

import nearlabel as nl
from nearlabel.datasets import DataError, column_values, csv_tables
from nearlabel.datasets.column_values import source_columns

FILE = "toy.csv"
SONGS = """id,tempo,mode,live,tags
one,120,major,yes,calm; sad
two,90.5,minor,no,
three,100,major,no,happy;calm
"""


def test_a_table_with_tags(put):
    data = nl.datasets.load(put(SONGS))
    assert data.feature_names.tolist() == ["tempo", "mode=major", "mode=minor", "live"]
    assert data.X.tolist() == [[120, 1, 0, 1], [90.5, 0, 1, 0], [100, 1, 0, 0]]
    assert data.label_names.tolist() == ["calm", "happy", "sad"]
    assert data.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert data.row_names.tolist() == ["one", "two", "three"]


def test_a_table_with_one_column_per_label(put):
    text = "x,calm,sad,split\n1,1,yes,train\n2,0,no,test\n"
    data = nl.datasets.load(put(text), labels=["sad", "calm"])
    assert data.label_names.tolist() == ["calm", "sad"]
    assert data.Y.toarray().tolist() == [[1, 1], [0, 0]]
    assert data.train.tolist() == [True, False]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;\r"])
def test_excels_first_line(put, first):
    data = nl.datasets.load(put(f"{first}\nx;'a,b';tags\n1,5;0;c\n2,5;0;d,e\n"))
    assert data.X.tolist() == [[1.5, 0], [2.5, 0]]
    assert data.label_names.tolist() == ["c", "d", "e"]
    assert nl.datasets.load(put("sep=|\nx;tags\n1;a\n"), delimiter=";").X.tolist() == [[1]]
    with pytest.raises(DataError, match="the file is empty; it must have the names of the columns"):
        nl.datasets.load(put(f"{first}\n"))


@pytest.mark.parametrize("first", ["sep=", "sep=\r", '"sep="\r'])
def test_excels_first_line_without_a_delimiter(put, first):
    path = put(f"{first}\nx,tags\n1,a\n")
    with pytest.raises(DataError, match="line 1: .*delimiter="):
        nl.datasets.load(path)
    assert nl.datasets.load(path, delimiter=",").X.tolist() == [[1]]


def test_a_long_cell_is_read(put):
    """The csv module has its own limit of 131,072 characters, for the whole process."""
    csv.field_size_limit(131_072)
    text = "note,x,tags\n" + f'"{"long " * 40_000}",1,a\nshort,2,b\n'
    data = nl.datasets.load(put(text), ignore=["note"])
    assert data.X.tolist() == [[1], [2]]
    with pytest.raises(DataError, match="line 3"):
        nl.datasets.load(put(text.replace(",2,", ",two,")), ignore=["note"])


def test_an_unclosed_quote(put, monkeypatch):
    """The error names the line of its row, before a large file is read as one cell."""
    rows = "".join(f"some text,{row},a\n" for row in range(40_000))
    path = put(f'note,x,tags\ntext,1,a\n"text,2,b\n{rows}')
    with pytest.raises(DataError, match=r"line 3: .*end"):
        nl.datasets.load(path, ignore=["note"])
    seen = []
    csv.field_size_limit(131_072)
    monkeypatch.setattr(csv_tables, "LONGEST_LINE", 200_000)
    with pytest.raises(DataError, match=r"line 3: not a row of .*quote must be closed, .*200,000"):
        nl.datasets.load(path, ignore=["note"], progress=lambda done, total: seen.append(done))
    assert seen[-1] < 250_000 < path.stat().st_size


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "arff"])
def test_patterns_of_columns(put, suffix):
    names, cells = ["x", "y", "note_1", "tag_b", "tag_a", "tag_*", "is[1]"], [5, 6, 7, 1, 0, 1, 1]
    text = {
        "csv": ",".join(names) + "\n" + ",".join(map(str, cells)) + "\n",
        "tsv": "\t".join(names) + "\n" + "\t".join(map(str, cells)) + "\n",
        "jsonl": json.dumps(dict(zip(names, cells, strict=True))) + "\n",
        "arff": "@relation r\n"
        + "".join(f"@attribute '{name}' numeric\n" for name in names)
        + "@data\n"
        + ",".join(map(str, cells)),
    }[suffix]
    path = put(text, f"toy.{suffix}")

    def found(**options):
        data = nl.datasets.load(path, **options)
        return data.feature_names.tolist(), data.label_names.tolist()

    labels = ["tag_b", "tag_a", "tag_*"]
    assert found(labels=["tag_?"], ignore=["note_*", "is*"]) == (["x", "y"], labels)
    assert found(labels=["tag_*"], ignore=["[n]*", "tag_[ab]"]) == (["x", "y", "is[1]"], ["tag_*"])
    assert found(labels=["is[1]"], ignore=["note_1", "tag_?"]) == (["x", "y"], ["is[1]"])
    assert found(labels=["tag_?"], ignore=["tag_a", "i*", "n*"])[1] == ["tag_b", "tag_*"]
    for option in ("labels", "ignore"):
        for name in ("topic_*", "topic", "TAG_?"):
            options = {"labels": ["tag_?"], option: [name]}
            message = rf"{option}='{re.escape(name)}'.*'x', 'y', 'note_1'"
            with pytest.raises(DataError, match=message):
                nl.datasets.load(path, **options)


@pytest.mark.parametrize(
    ("text", "name", "delimiter"),
    [
        ("x;tags\n1,5;a\n2.5;b\n", "toy.csv", None),
        ("x|tags\n1.5|a\n2.5|b\n", "toy.csv", "|"),
        ("x\ttags\n1.5\ta\n2.5\tb\n", "toy.tsv", None),
        ("x\ttags\n1.5\ta\n2.5\tb\n", "toy.csv", None),
        ('x;"a,b"' + ";tags\n1.5;0;a\n2.5;0;b\n", "toy.csv", None),
    ],
)
def test_delimiters(put, text, name, delimiter):
    assert nl.datasets.load(put(text, name), delimiter=delimiter).X[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("90.5", "n/a", r"toy.csv, line 3: .*'tempo'.*'n/a'"),
        ("90.5", "", r"line 3: .*'tempo'.*''.*empty"),
        ("90.5", "inf", r"line 3: .*'tempo'.*'inf'"),
        (",major,yes", ",major", r"line 2: expected 5 cells.*4"),
        (",minor", ",", r"line 3: .*'mode'.*''"),
        ("tempo", "id", r"line 1: .*'id'"),
        ("tags", "moods", r"line 1: .*labels.*'tags'"),
        ("calm; sad", '"calm', r"line 2: .*unexpected end of data"),
    ],
)
def test_errors_name_the_file_the_line_and_what_was_expected(put, old, new, message):
    assert old in SONGS
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(SONGS.replace(old, new, 1)))


def test_of_several_errors_the_first_is_raised(put):
    path = put("x,y,tags\n1,2,a\n3,four,b\nfive,6,c\n7,8\n")
    with pytest.raises(DataError, match="line 3: column 'y'"):
        nl.datasets.load(path)
    with pytest.raises(DataError, match="line 4: column 'x'"):
        nl.datasets.load(path, ignore=["y"])


def test_errors_in_later_blocks_of_rows(put, monkeypatch):
    monkeypatch.setattr(column_values, "_CELLS_AT_ONCE", 12)
    text = "x,w,tags\n" + "".join(f'{row},"w\n{row % 3}",a\n' for row in range(40))
    assert nl.datasets.load(put(text)).X[:, 0].tolist() == list(range(40))
    for old, new, message in (
        ("30,", "thirty,", "line 63: column 'x'"),
        ('30,"w\n0",', '30,"w\n0"b,', "line 62: not a row"),
        ("30,", "30,31,", "line 63: expected 3 cells; got 4"),
    ):
        with pytest.raises(DataError, match=message):
            nl.datasets.load(put(text.replace(old, new)))


def test_errors_about_columns(put):
    path = put(SONGS)
    for options, message in (
        (
            {"tags": "moods"},
            "tags.*'moods'.*'id', 'tempo', 'mode'",
        ),
        ({"labels": ["sad"]}, "labels.*'sad'"),
        ({"ignore": ["x"]}, "ignore.*'x'"),
        (
            {"labels": ["tempo"], "ignore": ["tags"]},
            "line 2: .*'tempo': expected 0.*1.*'120'",
        ),
        ({"ignore": ["tempo", "mode", "live"]}, "no feature column"),
    ):
        with pytest.raises(DataError, match=message):
            nl.datasets.load(path, **options)
    many = "x,title,tags\n" + "".join(f"1,song {row},a\n" for row in range(30))
    with pytest.raises(DataError, match="'title'.*30.*30"):
        nl.datasets.load(put(many))
    assert nl.datasets.load(put(many), id="title").row_names[29] == "song 29"
    most = "x,title,tags\n" + "".join(f"1,song {row},a\n" for row in range(101))
    with pytest.raises(DataError, match="'title'.*100"):
        nl.datasets.load(put(most))
    for text, message in (
        ("", "line 1: .*names of the columns"),
        ("x,tags\n", "line 1: .*no row"),
        ("x,tags\n1,\n", "no row .*label"),
        ("x,tags,split\n1,a,train\n2,b,dev\n", "line 3: .*split.*train.*'dev'"),
    ):
        with pytest.raises(DataError, match=message):
            nl.datasets.load(put(text))


def test_the_features_of_a_model(put):
    wanted = ["live", "mode=minor", "mode=major", "tempo"]
    text = "title,live,mode,tempo\nA,no,minor,1\nB,yes,dorian,2\n"
    with pytest.warns(UserWarning, match="'mode': 'dorian'.*model"):
        data = nl.datasets.load(put(text), features=wanted, labels=())
    assert data.X.tolist() == [[0, 1, 0, 1], [1, 0, 0, 2]]  # an unknown value counts as none
    assert data.Y.shape == (2, 0)
    with pytest.raises(DataError, match="toy.csv.*feature.*'loud', 'key'$"):
        nl.datasets.load(put(text), features=["loud", "live", "key"], labels=())


def test_labels_without_features(put):
    """Data read for a model need not have labels."""
    data = nl.datasets.load(put("title,x,tags,id\nA,word,b;a,1\nB,,,2\n"), features=())
    assert (data.X.shape, data.row_names.tolist()) == ((2, 0), ["1", "2"])
    assert (data.Y.toarray().tolist(), data.label_names.tolist()) == ([[1, 1], [0, 0]], ["a", "b"])
    data = nl.datasets.load(put("id,label:a,label:b\n1,0,1\n"), features=())
    assert (data.X.shape, data.Y.toarray().tolist()) == ((1, 0), [[0, 1]])
    data = nl.datasets.load(put("x,tags\n1,\n"), features=["x"])
    assert (data.X.tolist(), data.Y.shape, data.label_names.tolist()) == ([[1]], (1, 0), [])
    with pytest.raises(DataError, match="pass tags= for a column of tags, or labels= for"):
        nl.datasets.load(put("id,x\n1,2\n"), features=())


@pytest.mark.parametrize("missing", ["", "NA", "n/a", "?", "NaN", "null", "#N/A", "inf", "1e400"])
def test_a_missing_value_in_the_first_row_does_not_make_a_column_of_words(put, missing):
    text = f"x,tags\n{missing},a\n" + "".join(f"{row},a\n" for row in range(9))
    with pytest.raises(DataError, match="line 2: .*'x'"):
        nl.datasets.load(put(text))


@pytest.mark.parametrize("cell", ["inf", "-INF", "+inf", "Infinity", "1e400"])
@pytest.mark.parametrize("gaps", [True, ["x"]])
def test_an_infinite_number_is_not_a_missing_value(put, cell, gaps):
    for text in (f"x,tags\n{cell},a\n1,b\n", f"x,tags\n,a\n{cell},b\n", f"x,tags\n1,a\n{cell},b\n"):
        with pytest.raises(DataError, match="'x': expected a finite number") as told:
            nl.datasets.load(put(text), gaps=gaps)
        assert cell in str(told.value)
        assert "gaps=" not in str(told.value)
    data = nl.datasets.load(put(f"x,y,tags\n{cell},1,a\nw,2,b\n"), categories=["x"], gaps=True)
    assert data.X["x"].to_list() == [cell, "w"]


@pytest.mark.parametrize("rows", [9, 30, 300])
def test_an_odd_cell_among_numbers_is_named(put, rows):
    text = "x,tags\nunknown,a\n" + "".join(f"{row}.5,a\n" for row in range(rows))
    with pytest.raises(DataError, match="'x': 'unknown'"):
        nl.datasets.load(put(text))
    commas = "x,tags\n" + "".join(f'"{row},5",a\n' for row in range(rows))
    with pytest.raises(DataError, match="'0,5'"):
        nl.datasets.load(put(commas))


def test_columns_that_features_come_from():
    features = ["color=a=b", "x", "=", "a" + "=" * 50_000]
    there = ["color", "color=a", "x", "y", "", "a==", "color=a=b=c"]
    assert source_columns(features, there) == {"color", "color=a", "x", "", "a=="}


def test_columns_that_look_like_labels_are_not_features(put):
    for text, options in (
        ("a,label:x,tags\n1,0,b\n", {}),
        ("a,labels,tags\n1,b,c\n", {}),
        ("a,genre,tags\n1,b,c\n", {"tags": "genre"}),
    ):
        with pytest.raises(DataError, match="line 1: .*'(tags|labels)'"):
            nl.datasets.load(put(text), **options)
    kept = nl.datasets.load(put("a,genre,tags\n1,b,c\n"), tags="genre", ignore=["tags"])
    assert kept.feature_names.tolist() == ["a"]


def test_a_first_column_without_a_name_names_the_rows(put):
    data = nl.datasets.load(put(",x,tags\n0,1,a\n1,2,b\n"))
    assert data.row_names.tolist() == ["0", "1"]
    assert data.feature_names.tolist() == ["x"]


def test_invalid_delimiters(put):
    path = put("x\ttags\n1\ta\n")
    assert nl.datasets.load(path, delimiter="\\t").X.tolist() == [[1]]
    with pytest.raises(ValueError, match="delimiter.*'::'"):
        nl.datasets.load(path, delimiter="::")
    for mark in '"\r\n\0':
        with pytest.raises(ValueError, match="delimiter must be .* neither a quote"):
            nl.datasets.load(path, delimiter=mark)


def test_line_ends_of_old_programs(put):
    with pytest.raises(DataError, match="line 1: not a row of .* lines end in LF or CR LF"):
        nl.datasets.load(put("x,tags\r1,a\r2,b\r"))


def test_unwanted_labels_are_not_features(put):
    assert nl.datasets.load(put(SONGS), labels=()).feature_names.tolist() == [
        *("tempo", "mode=major", "mode=minor", "live"),
    ]
    marked = nl.datasets.load(put("x,label:a\n1,maybe\n2,\n"), labels=())
    assert marked.feature_names.tolist() == ["x"]
    assert nl.datasets.load(put("x,y\n1,2\n"), labels=()).X.tolist() == [[1, 2]]


def test_a_column_called_split_can_be_left_out(put):
    text = "x,split,tags\n1,7,a\n2,8,b\n"
    with pytest.raises(DataError, match="line 2: .*split.*train.*'7'"):
        nl.datasets.load(put(text))
    assert nl.datasets.load(put(text), ignore=["split"]).feature_names.tolist() == ["x"]


def test_a_wide_header_is_refused_at_once(put):
    with pytest.raises(DataError, match="'c39999'"):
        nl.datasets.load(put(",".join(f"c{column}" for column in range(40_000)) + ",c39999\n"))


def test_a_very_long_name(put):
    text = "id,x,tags\n" + "y" * 130_000 + ",1,a\n" + "".join(f"{row},1,a\n" for row in range(999))
    with pytest.raises(DataError, match="130000.*name"):
        nl.datasets.load(put(text))


def test_the_index_that_pandas_writes_is_not_a_feature(put):
    for first in ("", "Unnamed: 0"):
        alone = nl.datasets.load(put(f"{first},x,tags\n7,1,a\n8,2,b\n"))
        assert alone.row_names.tolist() == ["7", "8"]
        beside = nl.datasets.load(put(f"{first},id,x,tags\n0,one,1,a\n1,two,2,b\n"))
        assert beside.feature_names.tolist() == ["x"]
        assert beside.row_names.tolist() == ["one", "two"]
    asked = nl.datasets.load(put("Unnamed: 0,x,tags\n7,1,a\n8,2,b\n"), features=["Unnamed: 0"])
    assert asked.X.tolist() == [[7], [8]]


def test_lists_of_tags_written_as_strings(put):
    cells = ["['calm', \"o'er\"]", '["sad"]', "[]", "('calm',)", "{'sad', 'calm'}", "calm"]
    quoted = [cell.replace('"', '""') for cell in cells]
    data = nl.datasets.load(put("x,tags\n" + "".join(f'1,"{cell}"\n' for cell in quoted)))
    assert data.label_names.tolist() == ["calm", "o'er", "sad"]
    assert data.Y.toarray().tolist() == [
        *([1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 0]),
    ]
    for odd in ("['a'", "[1, 'a']", "{'a': 'b'}", "['a' for a in b]"):
        kept = nl.datasets.load(put(f'x,tags\n1,"{odd}"\n'), separator=";")
        assert kept.label_names.tolist() == [odd]
