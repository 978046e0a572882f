"""Rows of data sets as items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from nearlabel.collection import Collection
from nearlabel.collection.exchange.data_rows import add_rows, given_features
from nearlabel.datasets.dataset import Dataset

ROWS = Dataset(
    np.array([[1.0, 2.0], [3.0, 4.0]]),
    sparse.csr_array([[1, 0], [1, 1]]),
    label_names=np.array(["calm", "warm"]),
    feature_names=np.array(["tempo", "loudness"]),
    row_names=np.array(["a", "b"]),
)


@pytest.fixture
def songs(tmp_path):
    with Collection.create(tmp_path / "c", kind="vectors", features=given_features(ROWS)) as made:
        yield made


def test_rows_become_items_that_one_undo_takes_back(songs):
    steps = []
    report, tags = add_rows(songs, ROWS, "t", progress=lambda *step: steps.append(step))
    assert (report.new, report.unchanged, tags.given, steps) == (2, 0, 3, [(2, 2)])
    assert {item.name: item.yes for item in songs.items()} == {"a": ["calm"], "b": ["calm", "warm"]}
    songs.undo()
    assert songs.counts()["items"] == 0


def test_a_row_of_a_known_name_is_the_new_vector_of_its_item(songs):
    add_rows(songs, ROWS, "t")
    # Columns are found by their names.
    other = replace(
        ROWS, X=np.array([[2.0, 1.0], [4.0, 9.0]]), feature_names=ROWS.feature_names[::-1]
    )
    report, _ = add_rows(songs, other, "t")
    assert (report.new, report.changed, report.unchanged) == (0, 1, 1)
    assert songs.vectors([1, 2]).tolist() == [[1, 2], [9, 4]]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"row_names": None}, "t has no ids of items"),
        ({"row_names": np.array(["a", "a"])}, "two items with the id 'a'"),
        ({"feature_names": np.array(["tempo", "x"])}, "loudness"),
    ],
)
def test_other_rows_are_refused(songs, other, message):
    with pytest.raises(ValueError, match=message):
        add_rows(songs, replace(ROWS, **other), "t")
    assert songs.counts()["items"] == 0
