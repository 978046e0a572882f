"""Invariants of every result and of every error."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

import nearlabel as nl
from fuzzing.limits import SECONDS, limits
from nearlabel.datasets import Dataset, load, save
from nearlabel.datasets.formats import FORMATS
from nearlabel.datasets.text_lines import names_or_numbers

LONGEST = 600  # characters of a message without the file name


def assert_clean(error: Exception, path: Path) -> None:
    text = str(error)
    assert text.startswith(str(path.with_suffix(""))), f"the file is not named: {text[:200]!r}"
    assert text.isprintable(), f"not one printable line: {text[:200]!r}"
    assert len(text) - len(str(path)) < LONGEST, f"{len(text)} characters: {text[:200]!r}"


def assert_whole(data: Dataset) -> None:
    X, Y = data.X, data.Y
    assert X.ndim == 2
    assert 0 not in X.shape
    assert X.dtype.kind in "iuf"
    assert np.isfinite(X.data if sparse.issparse(X) else X).all()
    assert Y.shape[0] == X.shape[0]
    assert Y.dtype == np.int8
    for matrix in (X, Y):
        if sparse.issparse(matrix):
            matrix.check_format(full_check=True)
            assert matrix.has_canonical_format
    assert (Y.data == 1).all()
    for names, length in ((data.label_names, Y.shape[1]), (data.feature_names, X.shape[1])):
        assert names is None or len(set(names.tolist())) == len(names) == length
    for rows in (data.train, data.row_names, *data.extra.values()):
        assert rows is None or len(rows.tolist()) == X.shape[0]


def assert_survives(data: Dataset, folder: Path, choice: int) -> None:
    """Write a data set in one of the formats and read it again."""
    row = list(FORMATS.values())[choice % len(FORMATS)]
    suffix = row.suffixes[0]
    if max(data.X.shape[1], data.Y.shape[1]) > 1000 or float(abs(data.X).max()) > 2**53:
        return  # too wide for a table of cells; whole numbers beyond 2**53 are not those of float64
    if "extra" not in row.keeps:
        data = replace(data, extra={})
    if "row_names" not in row.keeps:
        data = replace(data, row_names=None)
    for old in folder.glob("again*"):  # files next to it belong to it
        old.unlink()
    path = folder / f"again{suffix}"
    try:
        save(data, path)
    except ValueError as error:  # a name that the format cannot store: nothing is written
        assert re.search("cannot be written|is no text|NUL|surrogate", str(error)), repr(error)  # noqa: PT017
        return
    unlabeled = {} if data.Y.shape[1] or suffix in (".npz", ".txt") else {"labels": ()}
    with patch("nearlabel.datasets.parquet._try_to_read"):  # a file of our own
        again = load(path, **unlabeled)  # type: ignore[arg-type]
    assert np.array_equal(dense(again.X), dense(data.X))
    assert np.array_equal(dense(again.Y), dense(data.Y))
    for key, width in (("feature_names", data.X.shape[1]), ("label_names", data.Y.shape[1])):
        ours, theirs = (names_or_numbers(getattr(one, key), width) for one in (data, again))
        assert ours == theirs
    for key in ("train", "row_names"):
        ours, theirs = getattr(data, key), getattr(again, key)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs)


def dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_predicts(model: Any) -> None:
    """Call all methods of a model from a file."""
    if isinstance(model, nl.NeighborGraph):
        nl.NeighborGraph(model.indices, model.distances, model.n_base)
        return
    d = getattr(model, "n_features_in_", None)
    if d is None or d > 1000:
        return
    X = np.vstack([np.zeros(d), np.arange(d) / d])
    last = model[-1] if hasattr(model, "steps") else model
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.filterwarnings("ignore", "metric=")
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        scaled = X
        for scaler in [part for _, part in getattr(model, "steps", [("", model)])]:
            scaled = scaler.transform(scaled) if hasattr(scaler, "transform") else scaled
            if np.isinf(abs(scaled).max()):
                return  # one that overflows, which the next transformer would refuse
        if not hasattr(last, "predict_proba") or not abs(scaled).max() <= 1e100:
            return  # a scaler, or one that produces NaN or overflows
        if last.items_.store is None or float(abs(last.items_.vectors).max()) > 1e100:
            return  # made without vectors; or so large that their distances are not finite
        chances = model.predict_proba(X)
        assert ((chances > 0) & (chances < 1)).all()
        assert len(chances) == model.predict(X).shape[0] == 2
        assert np.isfinite(last.rank(X, 1).scores).all()


_LONG = "sea night " * 20 + "a" * 2000 + "!"
_ITEMS: list[Any] = [
    [[1.5, np.nan, 0.5, "red", "blue", 2], [None, 2, 0, None, "red", 1]],
    np.arange(10.0).reshape(2, 5),
    [["red", "green", "red"], ["blue", "red", "x"]],
    np.arange(6).reshape(2, 3),
    ["the sea at night", _LONG],
]


def assert_answers(model: Any) -> None:
    """Call a pipeline from a file with items of all forms: it predicts or raises a clean error."""
    with limits(measured=False, seconds=SECONDS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            answers = [answer for items in _ITEMS for answer in _answer(model, items)]
    for answer in answers:
        assert answer.shape[0] == 2
        if hasattr(model, "predict_proba"):
            assert ((answer > 0) & (answer < 1)).all()


def _answer(model: Any, items: Any) -> list[Any]:
    items = np.array(items, object) if isinstance(items[0], list) else items
    ask = getattr(model, "predict_proba", None) or getattr(model, "transform", None)
    try:
        return [ask(items)] if ask else []
    except (
        ValueError,
        TypeError,
        AttributeError,
    ):  # items of a wrong form, or inconsistent parts
        return []
