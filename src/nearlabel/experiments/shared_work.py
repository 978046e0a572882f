"""Work that several candidates on the same rows share, whatever their numbers of neighbors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Csr
from nearlabel.common.validation import canonical_vectors
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.labels.sweep import CountSweep, bytes_of_sweep
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.lamlknn import LAMLkNN
from nearlabel.methods.mlknn import MLkNN, posteriors

_SWEEP_BYTES = 2**28  # up to which a sweep over k takes dense counts


def with_known_centers(model: Any, X: Any, known: dict[Any, Any]) -> Any:
    """A model, or one that learns the same from X with the centers an earlier one has found.

    LAML-kNN's k-means is costly and does not depend on the neighbors; `known` keeps its centers.
    """
    wraps = hasattr(model, "estimator")
    method = model.estimator if wraps else model
    if not isinstance(method, LAMLkNN) or method.cluster_centers is not None:
        return model
    if isinstance(method.random_state, np.random.RandomState | np.random.Generator):
        return model
    key = (method.n_clusters, method.random_state)
    if key not in known:
        model.check_parameters()
        known[key] = method.initial_centers(canonical_vectors(X))
    name = "estimator__cluster_centers" if wraps else "cluster_centers"
    return clone(model).set_params(**{name: known[key]})


def can_sweep(model: NeighborClassifier, Y: Csr, most: int) -> TypeGuard[MLkNN]:
    """Whether `left_out_sweep` serves a model with up to `most` neighbors: ML-kNN, in memory."""
    is_published = type(model) is MLkNN and model.counts == "paper"
    return is_published and bytes_of_sweep(Y, most) <= _SWEEP_BYTES


def left_out_sweep(
    graph: NeighborGraph, Y: Csr, smoothing: float, neighbors: Sequence[int]
) -> Iterator[LabelScores]:
    """ML-kNN's leave-one-out scores for rising numbers of neighbors, each valid until the next."""
    sweep, s, n = CountSweep(graph, Y), smoothing, np.array(Y.shape[0])
    totals = label_totals(Y)[:, None]
    n_with, others_with = np.minimum(totals, n - 1), np.maximum(totals - 1, 0)
    for k in neighbors:
        while sweep.k < k:
            sweep.add_neighbor()
        without, with_label = sweep.cells[:, :, : k + 1]
        # The row's own entry is taken out. Cells that no row is in are not looked up.
        table = np.stack(
            [
                posteriors(s, k, n - 1, n_with, with_label, np.maximum(without - 1, 0)),
                posteriors(s, k, n - 1, others_with, np.maximum(with_label - 1, 0), without),
            ]
        )
        yield DenseScores(sweep.look_up(table))
