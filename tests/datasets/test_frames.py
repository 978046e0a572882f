"""Tables with texts, categories and gaps, as frames."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import nearlabel as nl
from nearlabel.datasets import DataError
from nearlabel.datasets.formats import FORMATS

pytestmark = pytest.mark.usefixtures("own_parquet_files")
FILE = "toy.csv"
TABLE = """id,tempo,split,key,title,x,tags
a,,train,,1984,1,p;q
b,90.5,train,7,"the, sea",?,p
c,NA,test,C,,-3,q
"""
HOW = {"text": ["title"], "categories": ["key"], "gaps": True}


@pytest.fixture
def data(put):
    return nl.datasets.load(put(TABLE), **HOW)


def test_columns_stay_as_they_are(data):
    X = data.X
    assert X.schema == {"tempo": pl.Float64, "key": pl.String, "title": pl.String, "x": pl.Float64}
    assert str(X["tempo"].to_list()) == "[nan, 90.5, nan]"
    assert X["key"].to_list() == [None, "7", "C"]
    assert X["title"].to_list() == ["1984", "the, sea", ""]
    assert data.text == ("title",)
    assert data.feature_names.tolist() == X.columns
    assert data.label_names.tolist() == ["p", "q"]
    assert data.train.tolist() == [True, True, False]
    assert "3 items, 4 features, 2 labels" in repr(data)
    assert nl.datasets.describe(data).dtype == "numbers 2, categories 1, texts 1"
    part = data.rows(data.train)
    assert (len(part), part.X["key"].to_list(), part.text) == (2, [None, "7"], ("title",))


def test_the_type_of_a_column_is_that_of_its_first_known_cell(put):
    text = "a,b,c,tags\n,NA,,p\n1,w,,q\n?,null,,p\n"
    X = nl.datasets.load(put(text), gaps=True).X
    assert str(X["a"].to_list()) == "[nan, 1.0, nan]"
    assert X["b"].to_list() == [None, "w", None]
    assert X["c"].dtype == pl.Float64
    with pytest.raises(DataError, match=r"line 4: .*'a'.*'w'.*categories="):
        nl.datasets.load(put("a,tags\n,p\n1,q\nw,p\n"), gaps=True)


def test_numbers_alone_stay_an_array(put):
    X = nl.datasets.load(put("a,b,tags\n,1,p\n2,nan,q\n"), gaps=True).X
    np.testing.assert_array_equal(X, [[np.nan, 1], [2, np.nan]])
    with pytest.raises(DataError, match=r"line 3: .*'b'"):
        nl.datasets.load(put("a,b,tags\n,1,p\n2,,q\n"), gaps=["a"])


def test_gaps_that_are_found(put):
    whole = nl.datasets.load(put("a,b,tags\n,u,p\n2,v,q\n"), gaps="found")
    np.testing.assert_array_equal(whole.X, [[np.nan, 1, 0], [2, 0, 1]])
    assert whole.feature_names.tolist() == ["a", "b=u", "b=v"]
    words = nl.datasets.load(put("a,b,tags\n,u,p\n2,,q\n"), gaps="found")
    assert words.X["b"].to_list() == ["u", None]
    with pytest.raises(TypeError, match="gaps must be a list of names; got the string 'a'"):
        nl.datasets.load(put("a,b,tags\n,u,p\n"), gaps="a")


def test_a_frame_can_be_asked_for(put):
    text = "x,word,yes,tags\n1,a,no,p\n2,b,yes,q\n"
    X = nl.datasets.load(put(text), frame=True).X
    assert X.to_dicts() == [{"x": 1, "word": "a", "yes": "no"}, {"x": 2, "word": "b", "yes": "yes"}]
    known = nl.datasets.load(
        put(text), frame=True, features=["yes", "x"], categories=["yes"], labels=()
    )
    assert known.X.to_dicts() == [{"yes": "no", "x": 1}, {"yes": "yes", "x": 2}]


def test_the_columns_of_a_model_in_another_format(tmp_path):
    """A model finds its columns by name in any format."""
    made = nl.datasets.make_local_labels(20, 3, 4)
    for suffix in (".npz", ".arff", ".txt"):
        nl.datasets.save(made, tmp_path / f"toy{suffix}")
        found = nl.datasets.load(
            tmp_path / f"toy{suffix}", features=["2", "0"], gaps=["0"], frame=True
        )
        np.testing.assert_array_equal(found.X.to_numpy(), made.X[:, [2, 0]])
        with pytest.raises(ValueError, match=r"gaps= .*True"):
            nl.datasets.load(tmp_path / f"toy{suffix}", gaps=True)


def test_json_rows_may_leave_out_what_is_missing(put):
    rows = [{"x": 1, "word": "a", "text": 5, "tags": "p"}, {"x": None, "tags": "q"}]
    path = put("\n".join(map(json.dumps, rows)), "toy.jsonl")
    data = nl.datasets.load(path, text=["text"], gaps=True)
    assert data.X["text"].to_list() == ["5", ""]
    assert data.X["word"].to_list() == ["a", None]
    assert data.X["x"].is_nan().to_list() == [False, True]
    with pytest.raises(DataError, match="same keys.*'text'"):
        nl.datasets.load(path, text=["text"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"text": ["lyrics"]}, "text='lyrics'"),
        ({"text": ["tags"]}, "text='tags'"),
        ({"text": ["title"], "ignore": ["title"]}, "text='title'"),
        ({"text": ["title"]}, r"line 2: .*'tempo'.*empty.*gaps="),
    ],
)
def test_options_that_do_not_fit(put, how, message):
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(TABLE), **how)
    with pytest.raises(TypeError, match="text must be a list"):
        nl.datasets.load(put(TABLE), text="title")


def test_patterns_of_columns(put):
    data = nl.datasets.load(put(TABLE), text=["ti*"], categories=["k?y"], gaps=True)
    assert (data.text, data.X["key"].to_list()) == (("title",), [None, "7", "C"])
    with pytest.raises(DataError, match=r"categories='z\*'"):
        nl.datasets.load(put(TABLE), categories=["z*"])


def test_many_distinct_words_suggest_a_text_column(put):
    rows = "".join(f"word{row} here,p\n" for row in range(30))
    with pytest.raises(DataError, match=r"'t' has 30 .*text=.*ignore=.*id="):
        nl.datasets.load(put(f"t,tags\n{rows}"))
    given = nl.datasets.load(put(f"t,tags\n{rows}"), categories=["t"])
    assert given.X.shape == (30, 30)


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(data, tmp_path, name):
    path = tmp_path / f"again{FORMATS[name].suffixes[0]}"
    if "frames" not in FORMATS[name].keeps:
        with pytest.raises(ValueError, match=f"format must be one of csv, .*got '{name}'"):
            nl.datasets.save(data, path)
        return
    nl.datasets.save(data, path)
    again = nl.datasets.load(path, **HOW)
    assert again.X.equals(data.X, null_equal=True)
    assert (again.Y != data.Y).nnz == 0
    assert again.row_names.tolist() == data.row_names.tolist()
    assert again.train.tolist() == data.train.tolist()


def test_frames_that_are_refused(data, tmp_path):
    for X, message in (
        (data.X.with_columns(x=pl.lit(1)), "'x' is Int"),
        (data.X.with_columns(x=pl.lit(np.inf)), "'x' is infinite"),
        (data.X.rename({"x": "y"}), "feature_names"),
    ):
        with pytest.raises(ValueError, match=message):
            nl.datasets.save(replace(data, X=X), tmp_path / "toy.csv")
