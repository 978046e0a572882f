"""Protocols: how the rows of a data set are split into training and test rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError, check_dense_size, check_integer, check_real
from nearlabel.datasets import Dataset

SPLITS = ("official", "holdout", "cv10", "cv10x5", "loo")  # cv: any numbers of folds and repeats


class Part(NamedTuple):
    """Training rows and test rows.

    Attributes
    ----------
    train, test : ndarray of int
    left_out : bool
        Whether both are the same rows, each predicted as if it alone were new: leave-one-out.
    """

    train: Array
    test: Array
    left_out: bool = False


def splits(
    data: Dataset,
    kind: str | None = None,
    *,
    test_size: float = 1 / 3,
    seed: int = 0,
    stratified: bool = False,
) -> list[Part]:
    """Split the rows of a data set into training and test rows, once or several times.

    Parameters
    ----------
    data : Dataset
    kind : {"official", "holdout", "cv10", "cv10x5", "loo"}, optional
        The split of the data set itself; one random test set; ten random folds; ten folds repeated
        five times, each time with other folds; leave-one-out. Other numbers of folds and repeats
        are written the same way, such as "cv5". By default the official split where there is one,
        else "cv10".
    test_size : float, default=1/3
        Share of the test rows in "holdout".
    seed : int, default=0
        Of the random folds. The first repeat of "cv10x5" is "cv10".
    stratified : bool, default=False
        Whether each label has about the same share in all folds, by iterative stratification [1]_.

    Notes
    -----
    Leave-one-out takes a row out of its own neighbors and its own entry out of a method's tables,
    while its place among the neighbors of other rows stays. To hide it from these too, ask for as
    many folds as there are rows: "cv200" for 200 rows.

    References
    ----------
    .. [1] K. Sechidis, G. Tsoumakas and I. Vlahavas, "On the stratification of multi-label data",
       ECML PKDD 2011.
    """
    n = len(data)
    if kind is None:
        kind = "cv10" if data.train is None else "official"
    folds, repeats = _folds_and_repeats(kind)
    seed = check_integer(seed, "seed", low=0)
    if stratified and kind in ("official", "loo"):
        message = f"stratified=True: split={kind!r} has no random parts to stratify"
        raise ArgumentError(message, "stratified")
    if kind == "official":
        if data.train is None or data.test is None:
            raise ArgumentError(
                "split='official': this data set has no split of its own; use 'holdout' or 'cv10'",
                "split",
            )
        return [Part(np.flatnonzero(data.train), np.flatnonzero(data.test))]
    if kind == "loo":
        return [Part(np.arange(n), np.arange(n), left_out=True)]
    if kind == "holdout":
        share = check_real(test_size, "test_size", low=0, high=1)
        folds, repeats, held = 1, 1, round(share * n)
        if not 0 < held < n - 1 and n > 3:  # with so many rows, the share is to blame
            raise ArgumentError(
                f"test_size={test_size!r} leaves too few of {n} rows on one side; at least one row "
                "must be tested, and two learned from",
                "test_size",
            )
    else:
        held = -(-n // folds)
    if not 0 < held < n - 1 or folds > n:
        message = (
            f"split={kind!r} leaves too few of {n} rows on one side; neighbor methods need only "
            "two rows with 'loo'"
        )
        raise ArgumentError(message, "split")
    parts = _stratified_parts if stratified else _random_parts
    tests = parts(data, folds, repeats, held, seed)
    return [Part(np.setdiff1d(np.arange(n), test), np.sort(test)) for test in tests]


def _folds_and_repeats(kind: object) -> tuple[int, int]:
    """The numbers of folds and repeats in a name such as "cv10x5"; zeros for other names."""
    match = re.fullmatch(r"cv([1-9]\d{0,8})(?:x([1-9]\d{0,4}))?", str(kind))
    if match is not None and match[1] != "1":
        return int(match[1]), int(match[2] or 1)
    if kind not in ("official", "holdout", "loo"):
        known = ", ".join(repr(name) for name in SPLITS)
        raise ArgumentError(
            f"split must be one of {known}, or like 'cv5' and 'cv5x2' with two or more parts; "
            f"got {kind!r}{did_you_mean(str(kind), SPLITS)}",
            "split",
        )
    return 0, 0


def _random_parts(data: Dataset, folds: int, repeats: int, held: int, seed: int) -> Iterator[Array]:
    """Test rows: each fold of each repeat, or one set of `held` rows."""
    rng = np.random.default_rng(seed)
    for _ in range(repeats):
        shuffled = rng.permutation(len(data))
        yield from [shuffled[:held]] if folds == 1 else np.array_split(shuffled, folds)


def _stratified_parts(
    data: Dataset, folds: int, repeats: int, held: int, seed: int
) -> Iterator[Array]:
    """The same, with about the same share of each label in all folds."""
    what = "stratified parts need iterative-stratification"
    stratifiers = extra_module("iterstrat.ml_stratifiers", what, "data")
    n = len(data)
    check_dense_size("the labels, to be stratified", data.Y.shape, 3, "parts by chance")
    labels, empty = data.Y.toarray(), np.zeros((n, 1))
    for state in np.random.default_rng(seed).integers(2**31 - 1, size=repeats).tolist():
        if folds == 1:
            splitter = stratifiers.MultilabelStratifiedShuffleSplit(
                1, test_size=held, random_state=state
            )
        else:
            splitter = stratifiers.MultilabelStratifiedKFold(
                folds, shuffle=True, random_state=state
            )
        yield from (test for _, test in splitter.split(empty, labels))
