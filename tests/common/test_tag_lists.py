"""Accepted forms of tags, invalid ones, and predictions in the same form."""

from collections import deque
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples

from nearlabel.common.tag_lists import TagForm, TagLists, read_tags, tag_array
from nearlabel.common.validation import check_labels

LISTS = [["sea", "sunset"], ["sea"], []]


class Mood(str, Enum):  # noqa: UP042 - whose str() is not its value
    CALM = "calm"


@pytest.mark.parametrize(
    ("y", "form"),
    [
        (LISTS, TagForm(list, is_array=False)),
        ([tuple(row) for row in LISTS], TagForm(tuple, is_array=False)),
        ([set(row) for row in LISTS], TagForm(set, is_array=False)),
        (tuple(frozenset(row) for row in LISTS), TagForm(frozenset, is_array=False)),
        ([np.array(row, dtype=str) for row in LISTS], TagForm(np.ndarray, is_array=False)),
        (pd.Series(LISTS), TagForm(list, is_array=True)),
        (pd.Series([*LISTS[:2], None]), TagForm(list, is_array=True)),
        (pd.DataFrame({"tags": LISTS}), TagForm(list, is_array=True)),
        (pl.Series(LISTS), TagForm(list, is_array=True)),
        (pl.Series([*LISTS[:2], None]), TagForm(list, is_array=True)),
        (pl.DataFrame({"tags": LISTS}), TagForm(list, is_array=True)),
        (np.array([*LISTS, None], dtype=object)[:3], TagForm(list, is_array=True)),
        ([pd.Series(row, dtype=object) for row in LISTS], TagForm(list, is_array=False)),
        ([deque(row) for row in LISTS], TagForm(list, is_array=False)),
        ([dict.fromkeys(row).keys() for row in LISTS], TagForm(list, is_array=False)),
        (np.array([["sea;sunset"], ["sea"], [""]]), TagForm(str, is_array=True, separator=";")),
        (["sea;sunset", "sea", ""], TagForm(str, is_array=False, separator=";")),
        (["sunset| sea ", "sea|", None], TagForm(str, is_array=False, separator="|")),
        (pd.Series(["sea,sunset", "sea", np.nan]), TagForm(str, is_array=True, separator=",")),
        (pd.Series(["sea,sunset", "sea", pd.NA], dtype="string"), TagForm(str, True, ",")),
        (pl.Series(["sea;sunset", "sea", None]), TagForm(str, is_array=True, separator=";")),
    ],
)
def test_the_forms_of_tags(y, form):
    tags = read_tags(y)
    assert [sorted(row) for row in tags.rows] == LISTS
    assert tags.form == form
    matrix, unknown = tags.matrix_of(tags.names())
    assert matrix.toarray().tolist() == [[1, 1], [1, 0], [0, 0]]
    assert not unknown
    answer = form.rows(matrix, tags.names())
    assert isinstance(answer, np.ndarray if form.is_array else TagLists)
    assert all(type(row) is form.row for row in answer)
    assert [sorted(row) for row in read_tags(answer, form.separator).rows] == LISTS


@pytest.mark.parametrize(
    "y",
    [
        [[1, 0], [0, 1]],
        [[1.0, 0.0], [0.0, 1.0]],
        [[True, False], [False, True]],
        np.array([[1, 2], [3, 4]]),
        np.array([0, 1, 1]),
        pd.DataFrame({"a": [0, 1], "b": [1, 1]}),
        pl.DataFrame({"a": [0, 1], "b": [1, 1]}),
        sparse.csr_array([[1, 0], [0, 1]]),
        ["yes", "no", "yes"],
        [0, 1, 1],
        "sea",
        None,
    ],
)
def test_not_a_table_of_tags(y):
    assert read_tags(y) is None


@pytest.mark.parametrize(
    ("y", "separator", "message"),
    [
        ([[1, 0], [1]], None, "0/1 matrix.*sets"),
        ([["1", "0"], ["0", "1"]], None, "0/1 matrix.*sets"),
        ([[3, 4], [4, 5]], None, "2 integers.*matrix.*sets"),
        (["a;b", "c,d", "e"], None, r"';' and ','.*separator=';'.*0 and 1"),
        (["a;b", "c", "a;b"], None, r"separator=';'"),
        (["a", "b", "c"], "", "separator must be.*''"),
        (["a", "b", "c"], 1, "separator must be.*1"),
        ([["a"], ["b"]], ";", r"separator=';'.*strings.*\['a'\]"),
        ([[1, 0], [0, 1]], ";", "separator=';'.*strings"),
        (np.eye(2), ";", "separator=';'.*strings"),
        (["a", 2, "b"], ";", "row 1 is 2"),
        ([["a"], "b"], None, "row 1 is 'b'"),
        ([["a", None], ["b"]], None, "row 0.*None"),
        ([["a"], ["b", float("nan")]], None, "missing.*row 1"),
        ([["a"], [("b", "c")]], None, r"row 1.*\('b', 'c'\)"),
        ([np.array("sea"), np.array(["a"])], None, "row 0 is array"),
        ([["a"], {"b": 1}], None, "row 1 is {'b': 1}"),
        (["a", ["b"], ["c"]], None, r"strings.*row 1 is \['b'\]"),
        ([["a", 1.5], ["b"]], None, "string or an integer.*row 0.*1.5"),
        ([["a"], [True]], None, "string or an integer.*row 1.*True"),
        ([[1.0, 2.0], [3.0]], None, "string or an integer.*row 0.*1.0"),
        (["['a', 'b']", "['a']", "[]"], None, r"converted to strings.*\['a', 'b'\].*literal_eval"),
        (['["a", "b"]', "", '["a"]'], ",", "converted to strings.*literal_eval"),
    ],
)
def test_ambiguous_and_unreadable_forms_are_refused(y, separator, message):
    with pytest.raises(ValueError, match=message):
        read_tags(y, separator)


def test_a_separator_splits_any_texts_into_tags():
    assert read_tags(["a", "b", "a"], "/").rows == [["a"], ["b"], ["a"]]
    assert read_tags(["a / b", "b;c/", "/ /"], "/").rows == [["a", "b"], ["b;c"], []]


def test_tags_are_plain_whatever_they_are_given_as():
    y = [[Mood.CALM, np.str_("sea"), np.int64(3)], [True + 1, 2**70]]
    rows = read_tags(y).rows
    assert rows == [["calm", "sea", 3], [2, 2**70]]
    assert all(type(tag) in (str, int) for row in rows for tag in row)


def test_an_empty_text_is_not_a_tag():
    assert read_tags([["a", ""], [""], ["b"]]).rows == [["a"], [], ["b"]]
    assert read_tags(np.array([["a", ""], ["b", "c"]])).rows == [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    "y",
    [
        pl.Series([[1, 0], [0, 1]], dtype=pl.Array(pl.Int8, 2)),
        pl.Series([[1, 0], [0, 1]]),
        pd.Series([[1, 0], [0, 1]]),
    ],
)
def test_a_column_of_rows_of_a_matrix(y):
    labels = check_labels(y)
    assert labels.tags is None
    assert labels.matrix.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("tag", ["\ud800", 2**5000])
def test_tags_that_cannot_be_stored(tag):
    with pytest.raises(ValueError, match=r"y contains a tag"):
        read_tags([["a"], [tag, "b"]]).names()


def test_integers_come_before_texts_in_the_order_of_labels():
    names = read_tags([["b", 10], [9, "a"], ["9"]]).names()
    assert names.tolist() == [9, 10, "9", "a", "b"]


def test_arrays_contain_tags_unchanged():
    assert tag_array(["a", "bc"]).dtype.kind == "U"
    for tags in (["a", "b\0"], [1, "a"], ["a" * 2**20] + ["b"] * 100):
        assert tag_array(tags).tolist() == tags


@pytest.mark.parametrize(
    "tree",
    [
        ["dict", False, None],
        ["list", 1, None],
        ["list", False, ";"],
        ["str", False, None],
        ["str", True, ""],
        ["str", True, 7],
    ],
)
def test_invalid_forms_in_files(tree):
    with pytest.raises(ValueError, match=r"form|separator"):
        TagForm.of_tree(tree)


@examples(300)
@given(
    rows=st.lists(st.lists(st.text(min_size=1, max_size=3) | st.integers(2, 5)), min_size=1),
    kind=st.sampled_from([list, tuple, set, frozenset]),
)
def test_random_tags_round_trip(rows, kind):
    rows = [*rows, ["sea"]]  # so that they are unambiguous
    tags = read_tags([kind(row) for row in rows])
    matrix, unknown = tags.matrix_of(tags.names())
    assert not unknown
    back = tags.form.rows(matrix, tags.names())
    assert [set(row) for row in back] == [set(row) for row in rows]
    assert all(type(row) is kind for row in back)
