import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import nearlabel as nl
from nearlabel.features.filled_texts import FilledTexts

CELLS = ["a", None, "1.0"]


@pytest.mark.parametrize(
    "column",
    [
        CELLS,
        np.array(["a", np.nan, 1.0], dtype=object),
        pd.Series(CELLS),
        pd.Series(CELLS, dtype=object),
        pd.Series(CELLS).convert_dtypes(),
        pl.Series(CELLS),
    ],
    ids=["list", "array", "pandas", "objects", "NA", "polars"],
)
def test_missing_texts_are_empty(column, tmp_path):
    nl.save(FilledTexts().fit(column), tmp_path / "filled")
    for filled in (FilledTexts(), clone(FilledTexts()), nl.load(tmp_path / "filled")):
        a, gap, number = filled.transform(column)
        assert (a, gap) == ("a", "")
        assert number in ("1.0", "1")


def test_columns_of_a_frame():
    for frame in (pd.DataFrame, pl.DataFrame):
        X = frame({"word": ["a", None], "zip": [10115.0, 2.5]})
        assert FilledTexts().transform(X).tolist() == [["a", "10115"], ["", "2.5"]]
