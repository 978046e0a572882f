"""Are probabilities frequencies? Reliability diagrams and the expected calibration error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.validation import ArgumentError, check_integer, label_matrix
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics.label_curves import ratio_or_nan


class Reliability(NamedTuple):
    """What a reliability diagram shows: pairs of a row and a label, by their probability.

    Attributes
    ----------
    pairs : ndarray of int, shape (bins,)
        How many are in each bin.
    probability : ndarray of float, shape (bins,)
        Their mean probability; nan where there are none.
    share : ndarray of float, shape (bins,)
        How many of them are right, as a share: the row carries the label. Nan where there are none.
    """

    pairs: Array
    probability: Floats
    share: Floats


def reliability(Y: Any, probabilities: Any, *, bins: int = 10) -> Reliability:
    """Mean probability and share of right labels, in bins of equal width [1]_.

    Parameters
    ----------
    Y : 0/1 matrix, shape (n, q)
        True labels.
    probabilities : LabelScores or array-like of float, shape (n, q)
        Such as `predict_proba` gives, or `label_scores` of a method whose scores are probabilities.
    bins : int, default=10
        A probability on the border of two belongs to the upper one.

    Returns
    -------
    Reliability

    References
    ----------
    .. [1] A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with supervised
       learning", ICML 2005.
    """
    bins = check_integer(bins, "bins", low=1)
    told = probabilities
    told = np.asarray(told.toarray() if isinstance(told, LabelScores) else told, np.float64)
    truth = label_matrix(Y, "Y").toarray()
    if truth.shape != told.shape:
        raise ValueError(
            f"Y and probabilities must have one shape; got {truth.shape} and {told.shape}"
        )
    wrong = told[~((told >= 0) & (told <= 1))]
    if wrong.size:
        given = f"{wrong[0]:g}"
        raise ArgumentError(f"probabilities must be from 0 to 1; got {given}", "probabilities")
    edges = np.arange(1, bins) / bins
    place = np.searchsorted(edges, told.ravel(), side="right")
    pairs = np.bincount(place, minlength=bins)
    total, right = (np.bincount(place, part.ravel(), bins) for part in (told, truth))
    return Reliability(pairs, ratio_or_nan(total, pairs), ratio_or_nan(right, pairs))


def calibration_error(Y: Any, probabilities: Any, *, bins: int = 10) -> float:
    """Expected calibration error [1]_: how far probabilities are from the share of right labels.

    The mean over all pairs of a row and a label of the distance between the mean probability in
    their bin and the share of right labels there. It is 0 where probabilities are frequencies. It
    says nothing of how well they tell labels apart: the mean number of labels over q, given to
    every pair, has an error of 0, too.

    Parameters
    ----------
    Y, probabilities, bins
        As in `reliability`.

    Returns
    -------
    float
        Nan where there are no pairs.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining well calibrated probabilities
       using Bayesian binning", AAAI Conference on Artificial Intelligence, 2015.
    """
    pairs, probability, share = reliability(Y, probabilities, bins=bins)
    some = pairs > 0
    distance = np.abs(probability - share)[some]
    return float(np.average(distance, weights=pairs[some])) if some.any() else np.nan
