"""Calibration of probabilities: reliability diagrams and the expected calibration error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats, LabelsLike
from nearlabel.common.validation import ArgumentError, check_integer, label_matrix
from nearlabel.labels.scores import LabelScores, ScoresLike
from nearlabel.metrics.sets import ratio_or_nan


class Reliability(NamedTuple):
    """The data of a reliability diagram: (row, label) pairs, binned by probability.

    Attributes
    ----------
    pairs : ndarray of int, shape (bins,)
        Number of pairs in each bin.
    probability : ndarray of float, shape (bins,)
        Their mean probability; nan in an empty bin.
    share : ndarray of float, shape (bins,)
        The share of them in which the row has the label; nan in an empty bin.
    """

    pairs: Array
    probability: Floats
    share: Floats


def reliability(Y: LabelsLike, probabilities: ScoresLike, *, bins: int = 10) -> Reliability:
    """Mean probability and share of true labels, in bins of equal width [1]_.

    Parameters
    ----------
    Y : 0/1 matrix, shape (n, q)
        True labels.
    probabilities : LabelScores or array-like of float, shape (n, q)
        From `predict_proba`, or from `label_scores` if a method's scores are probabilities.
    bins : int, default=10
        Number of bins. A probability on the border of two belongs to the upper one.

    Returns
    -------
    Reliability

    References
    ----------
    .. [1] A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with supervised
       learning", ICML 2005.
    """
    bins = check_integer(bins, "bins", low=1)
    dense = probabilities.toarray() if isinstance(probabilities, LabelScores) else probabilities
    chances = np.asarray(dense, np.float64)
    truth = label_matrix(Y, "Y").toarray()
    if truth.shape != chances.shape:
        raise ValueError(
            f"Y and probabilities must have the same shape; got {truth.shape} and {chances.shape}"
        )
    wrong = chances[~((chances >= 0) & (chances <= 1))]
    if wrong.size:
        given = f"{wrong[0]:g}"
        raise ArgumentError(f"probabilities must be from 0 to 1; got {given}", "probabilities")
    edges = np.arange(1, bins) / bins
    place = np.searchsorted(edges, chances.ravel(), side="right")
    pairs = np.bincount(place, minlength=bins)
    total, right = (np.bincount(place, part.ravel(), bins) for part in (chances, truth))
    return Reliability(pairs, ratio_or_nan(total, pairs), ratio_or_nan(right, pairs))


def calibration_error(Y: LabelsLike, probabilities: ScoresLike, *, bins: int = 10) -> float:
    """Expected calibration error [1]_: how far probabilities are from the share of true labels.

    The mean, over all (row, label) pairs, of the distance between the mean probability in their bin
    and the share of true labels there. It is 0 if probabilities are frequencies. It does not
    measure discrimination: the constant probability (mean number of labels) / q has an error of 0,
    too.

    Parameters
    ----------
    Y, probabilities, bins
        As in `reliability`.

    Returns
    -------
    float
        Nan if there are no pairs.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining well calibrated probabilities
       using Bayesian binning", AAAI Conference on Artificial Intelligence, 2015.
    """
    pairs, probability, share = reliability(Y, probabilities, bins=bins)
    filled = pairs > 0
    distance = np.abs(probability - share)[filled]
    return float(np.average(distance, weights=pairs[filled])) if filled.any() else np.nan
