"""The choices of `LabelSpace`: the regression, and how its predictions become a distance."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from nearlabel.blend.joined_space import METRICS, Joining, left_out_quality, unit_scale
from nearlabel.blend.kernel_features import drawn_rows, seed_of
from nearlabel.blend.label_axes import LabelAxes
from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge import KERNELS, LabelRidge
from nearlabel.common.arrays import Csr, Floats
from nearlabel.common.threads import one_blas_thread
from nearlabel.common.validation import ArgumentError, check_choice, check_real

_SPREADS, _WEIGHTS = (0.5, 0.0), (0.5, 1.0)  # what "auto" chooses from
_ROWS = 4_000  # on which candidates are compared


class SpaceOptions(NamedTuple):
    """Spreads, weights and metrics to choose from."""

    spreads: tuple[float, ...]
    weights: tuple[float, ...]
    metrics: tuple[str, ...]

    @classmethod
    def of(cls, spread: Any, weight: Any, metric: Any) -> SpaceOptions:
        """The options that the parameters of `LabelSpace` leave; an error for an invalid one."""
        spreads: tuple[float, ...] = _SPREADS
        weights: tuple[float, ...] = _WEIGHTS
        metrics: tuple[str, ...] = METRICS
        if not _is_auto(spread):
            spreads = (check_real(spread, 'spread (or "auto")', low=0, high=2),)
        if not _is_auto(weight):
            weights = (_above_0(weight, "weight", 1),)
        if not _is_auto(metric):
            metrics = (check_choice(metric, "metric", ("auto", *METRICS)),)
        return cls(spreads, weights, metrics)


class ChosenSpace(NamedTuple):
    """The best of some options, and the score of each.

    Attributes
    ----------
    spread, weight, metric : what was chosen
    candidates : list of dict
        All combinations, with their scores; empty if there is only one.
    projection : Projection
        Learned coordinates of new rows.
    joining : Joining
        How they are joined with the features.
    left_out : ndarray
        Learned coordinates of the training rows, each left out.
    """

    spread: float
    weight: float
    metric: str
    candidates: list[dict[str, Any]]
    projection: Projection
    joining: Joining
    left_out: Floats

    @classmethod
    def of(
        cls,
        ridge: LabelRidge,
        X: Any,
        Y: Csr,
        options: SpaceOptions,
        n_components: int,
        n_jobs: int | None,
    ) -> ChosenSpace:
        """The option with the best leave-one-out score of ML-kNN, given a fitted regression."""
        kind, alpha, spreads = float_type(X), ridge.choice_.alpha, options.spreads
        with one_blas_thread:
            axes = {one: LabelAxes(ridge.form_, alpha, one, n_components) for one in spreads}
            learned = {one: axes[one].left_out(kind) for one in spreads}
        plain_scale = unit_scale(X)
        scales = {one: (unit_scale(learned[one]), plain_scale) for one in spreads}
        rows = drawn_rows(X.shape[0], _ROWS, ridge.random_state)
        candidates = []
        for spread, weight, metric in product(*options):
            one: dict[str, Any] = {"spread": spread, "weight": weight, "metric": metric}
            if math.prod(map(len, options)) > 1:
                joining = Joining.of(weight, scales[spread], metric)
                some = joining.rows(learned[spread][rows], X[rows])
                one["score"] = left_out_quality(some, Y[rows], n_jobs)
            candidates.append(one)
        best = max(candidates, key=lambda one: one.get("score", 0))  # the first of equal ones
        spread, weight, metric = (best[key] for key in ("spread", "weight", "metric"))
        return cls(
            *(spread, weight, metric),
            candidates if "score" in best else [],
            axes[spread].projection,
            Joining.of(weight, scales[spread], metric),
            learned[spread],
        )


def checked_ridge(kernel: Any, alpha: Any, random_state: Any) -> LabelRidge:
    """The regression for the parameters of `LabelSpace`; an error for an invalid one."""
    kernel = check_choice(kernel, "kernel", ("auto", *KERNELS))
    alpha = "auto" if _is_auto(alpha) else _above_0(alpha, "alpha", 1e9)
    return LabelRidge(kernel, alpha, seed_of(random_state))


def float_type(X: Any) -> Any:
    """The type of learned coordinates: that of the features if these are small floats."""
    return np.float32 if X.dtype in (np.float16, np.float32) else np.float64


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _above_0(value: Any, name: str, high: float) -> float:
    wanted = f'{name} (or "auto")'
    number = check_real(value, wanted, low=0, high=high)
    if number == 0:
        message = f"{wanted} must be above 0 and at most {high:g}; got {value!r}"
        raise ArgumentError(message, name)
    return number
