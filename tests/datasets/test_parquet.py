import datetime

import numpy as np
import polars as pl
import pytest

import nearlabel as nl
from nearlabel.datasets import DataError, parquet

good = pytest.mark.usefixtures("own_parquet_files")
FRAME = pl.DataFrame(
    {
        "id": [2**60, 5, 6],
        "x": [1.5, None, float("nan")],
        "count": pl.Series([1, 2, 3], dtype=pl.UInt8),
        "is": [True, False, True],
        "word": pl.Series(["u", "v", None], dtype=pl.Categorical),
        "tags": [["p", "q"], [], ["p"]],
        "inf": [None, float("-inf"), 1],
        "when": [datetime.date(2026, 1, 1)] * 3,
    }
)


@pytest.fixture
def write(tmp_path):
    def written(frame):
        frame.write_parquet(tmp_path / "toy.parquet")
        return tmp_path / "toy.parquet"

    return written


@good
def test_types_of_columns(write):
    data = nl.datasets.load(write(FRAME), gaps=True, ignore=["when", "inf"])
    assert data.X.to_dicts()[0] == {"x": 1.5, "count": 1, "is": 1, "word": "u"}
    assert data.X["x"].is_nan().to_list() == [False, True, True]
    assert data.X["word"].to_list() == ["u", "v", None]
    assert data.Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert data.row_names.tolist() == [str(2**60), "5", "6"]
    plain = nl.datasets.load(write(FRAME), ignore=["when", "inf", "x", "word"])
    assert plain.X.tolist() == [[1, 1], [2, 0], [3, 1]]
    words = nl.datasets.load(
        write(FRAME), ignore=["when", "inf", "x", "word", "is"], categories=["count"]
    )
    assert words.feature_names.tolist() == ["count=1", "count=2", "count=3"]
    floats = FRAME.select("tags", zip=pl.Series([5.0, None, 2.5]))  # as pandas has whole numbers
    words = nl.datasets.load(write(floats), categories=["zip"], gaps=True)
    assert words.X["zip"].to_list() == ["5", None, "2.5"]


@good
def test_rows_that_are_named_by_dates(write):
    times = [datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.datetime(2026, 2, 1)]
    frame = pl.DataFrame({"x": [1, 2], "when": times, "tags": ["p", "q"]})
    data = nl.datasets.load(write(frame.with_columns(pl.col("when").dt.date())), id="when")
    assert data.row_names.tolist() == ["2026-01-02", "2026-02-01"]
    data = nl.datasets.load(write(frame), id="when")
    assert data.row_names[0].startswith("2026-01-02 03:04:05")


@good
@pytest.mark.filterwarnings("ignore:.*'1' is unknown to the model")
def test_columns_of_labels_and_of_a_model(write):
    frame = FRAME.select("count", "is", "word", texts=pl.Series(["5", None, "b"]))
    data = nl.datasets.load(write(frame), labels=["is"], text=["texts"], gaps=["word"])
    assert data.Y.toarray().ravel().tolist() == [1, 0, 1]
    assert data.X["texts"].to_list() == ["5", "", "b"]
    known = nl.datasets.load(write(frame), features=["count=2", "count=7"], labels=())
    assert known.X.tolist() == [[0, 0], [1, 0], [0, 0]]


@good
@pytest.mark.parametrize(
    ("columns", "how", "message"),
    [
        (["count", "tags", "when"], {}, "'when' .*Date.*ignore="),
        (["word", "tags"], {"categories": ["word"], "ignore": ["x"]}, "ignore='x'"),
        (["x", "tags"], {}, "row 2: .*'x'.*'nan'.*gaps="),
        (["count", "word", "tags"], {}, "row 3: .*'word'.*'None'.*gaps="),
        (["count", "word"], {"labels": ["count"]}, "row 2: .*'count'.*0 or 1.*'2.0'"),
        (["inf", "tags"], {"gaps": True}, "row 2: .*'inf'.*finite"),
        (["count"], {}, "which columns are labels"),
        (["count", "tags"], {"labels": (), "features": ["x"]}, "'x'"),
        ([], {}, "no column"),
    ],
)
def test_tables_that_are_refused(write, columns, how, message):
    path = write(FRAME.select(columns))
    with pytest.raises(DataError, match=message) as told:
        nl.datasets.load(path, **how)
    assert str(told.value).startswith(str(path))


@good
def test_a_gap_in_the_first_row(write):
    with pytest.raises(DataError, match="row 1: .*'x'.*gaps="):
        nl.datasets.load(write(FRAME.select("x", "tags").reverse()))


@good
def test_an_empty_table(write):
    with pytest.raises(DataError, match="no row"):
        nl.datasets.load(write(FRAME.select("count", "tags").clear()))


@good
def test_gaps_are_null_in_the_file(tmp_path, write):
    data = nl.datasets.load(write(FRAME.select("x", "tags")), gaps=True)
    nl.datasets.save(data, tmp_path / "again.parquet")
    assert pl.read_parquet(tmp_path / "again.parquet")["x"].null_count() == 2
    again = nl.datasets.load(tmp_path / "again.parquet", gaps=True)
    np.testing.assert_array_equal(again.X, data.X)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + bytes(8) + b"PAR1", b"x" * 500], ids=range(4)
)
def test_files_that_are_not_parquet(tmp_path, content):
    path = tmp_path / "toy.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"toy.parquet: this is not a Parquet file") as told:
        nl.datasets.load(path)
    assert str(told.value).isprintable()


def test_a_file_that_would_end_the_process(tmp_path, monkeypatch, write):
    """Only the child process crashes."""
    monkeypatch.setattr(parquet, "_TRIAL", "import os; os.abort()")
    path = write(FRAME.select("count", "tags"))
    with pytest.raises(DataError, match="toy.parquet.*damaged or too large"):
        nl.datasets.load(path)
    with pytest.raises(FileNotFoundError, match="none.parquet"):
        nl.datasets.load(tmp_path / "none.parquet")
