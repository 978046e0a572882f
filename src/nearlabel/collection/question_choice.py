"""Which items to ask a person about: choices from vectors and a model, without a store.

For learning, an answer is worth most where the model is unsure and the item is representative of
many others. So among the fifth of the items with the highest entropy, the most representative one
is chosen: an item represents another to the degree that it is nearer to it than any tagged item.
This is the gain of facility location; items chosen together share what they represent. Without a
model, the most representative items come first.

For quick confirmation, the items come first whose tags the model is most certain of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.methods.answers import chances
from nearlabel.methods.explanations import neighbors_of, scores_of
from nearlabel.search import neighbor_graph

if TYPE_CHECKING:
    from nearlabel.methods.base import NeighborClassifier
    from nearlabel.search.exact.distances import Metric

LOOKED_AT = 1000
"""Items among which questions are chosen, a random sample if there are more; see `looked_at`."""

_CELLS_AT_ONCE = 2**22  # probabilities processed at once
_ROWS_AT_ONCE = 4096  # vectors compared at once


class Seen(NamedTuple):
    """What a model predicts for n items.

    Attributes
    ----------
    doubts : ndarray of float, shape (n,)
        The entropy of all tags together, in bits: 0 if each is certain.
    best : ndarray of float, shape (n,)
        The probability of the most probable tag.
    nearest : ndarray of float, shape (n,)
        The distance to the nearest item the model has learned from.
    """

    doubts: Floats
    best: Floats
    nearest: Floats


def seen_by(model: NeighborClassifier, X: Matrix) -> Seen:
    """What a fitted model predicts for the rows of X."""
    graph = neighbors_of(model, X, model.n_neighbors_)
    count, q = X.shape[0], model.items_.n_labels
    doubts, best = np.empty(count), np.empty(count)
    for place, near in graph.blocks(max(1, _CELLS_AT_ONCE // q)):
        probabilities = chances(model, scores_of(model, near, X[place]))
        doubts[place] = _entropy(probabilities)
        best[place] = probabilities.max(axis=1)
    return Seen(doubts, best, graph.distances[:, 0])


def _entropy(probabilities: Floats) -> Floats:
    """The entropy of independent tags, one row per item, in bits."""
    bits = np.zeros_like(probabilities)
    for side in (probabilities, 1 - probabilities):
        bits -= side * np.log2(side, where=side > 0, out=np.zeros_like(side))
    return np.asarray(bits.sum(axis=1))


def looked_at(n_learned: int) -> int:
    """The number of candidates for questions: fewer if each is compared with many items.

    Some four million pairs take under half a second.
    """
    return int(np.clip(4_000_000 // max(n_learned, 1), LOOKED_AT // 10, LOOKED_AT))


def telling(X: Matrix, seen: Seen | None, n: int, metric: Metric = "cosine") -> Array:
    """The rows of X whose tags would teach a model most, best first.

    `seen` is what the model predicts for them; None without a model.
    """
    count = X.shape[0]
    if count < 2:
        return np.arange(min(n, count))
    near = neighbor_graph(X, min(30, count - 1), metric=metric)  # which it may stand for
    itself = np.arange(count)[:, None]
    standing = np.hstack([itself, near.indices])  # who may represent each row, and how far it is
    distances = np.hstack([np.zeros((count, 1)), near.distances])
    if seen is None:
        uncovered, is_open = distances[:, -1].copy(), np.ones(count, bool)
    else:
        uncovered = seen.nearest.copy()
        is_open = np.zeros(count, bool)
        in_doubt = max(n, round(0.2 * count))
        is_open[np.argsort(-seen.doubts, kind="stable")[:in_doubt]] = True
    chosen: list[int] = []
    for _ in range(min(n, int(is_open.sum()))):
        nearer = np.maximum(uncovered[:, None] - distances, 0)
        gains = np.bincount(standing.ravel(), nearer.ravel(), minlength=count)
        best = int(np.argmax(np.where(is_open, gains, -1)))
        chosen.append(best)
        is_open[best] = False
        rows, places = np.nonzero(standing == best)
        uncovered[rows] = np.minimum(uncovered[rows], distances[rows, places])
    return np.array(chosen, np.int64)


def certain(seen: Seen | None, n: int) -> Array:
    """The rows whose tags a model is most certain of, best first; only rows with a tag."""
    if seen is None:
        return np.empty(0, np.int64)
    order = np.argsort(seen.doubts, kind="stable")
    return np.asarray(order[seen.best[order] >= 0.5][:n])


def mixed(X: Matrix, seen: Seen | None, n: int, metric: Metric = "cosine") -> tuple[Array, Array]:
    """Informative rows of X, every fourth one quick to confirm; and which ones these are."""
    every = 4
    quick = certain(seen, n // every)
    slow = [row for row in telling(X, seen, n, metric).tolist() if row not in quick]
    rows = slow[: n - len(quick)]
    for place, row in enumerate(quick.tolist(), 1):
        rows.insert(place * every - 1, row)
    chosen = np.array(rows, np.int64)
    return chosen, np.isin(chosen, quick)


def nearest_to(
    X: Matrix, vectors: Callable[[slice], Matrix], count: int, n: int, metric: Metric = "cosine"
) -> Array:
    """Which n of `count` items, whose vectors come in blocks, are nearest to any row of X."""
    distances = np.empty(count)
    for start in range(0, count, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, count))
        distances[part] = neighbor_graph(X, 1, vectors(part), metric=metric).distances[:, 0]
    return np.argsort(distances, kind="stable")[:n]


def tag_probabilities(
    model: NeighborClassifier, X: Matrix, tag: int, places: Sequence[int | None]
) -> Floats:
    """The probability of a tag, by its column, for the rows of X.

    `places` says which of them the model has learned from: these are answered as if they were new.
    """
    probabilities = np.zeros(X.shape[0])
    if tag >= model.items_.n_labels:
        return probabilities
    new = np.array([at for at, place in enumerate(places) if place is None], np.int64)
    learned = np.array([at for at, place in enumerate(places) if place is not None], np.int64)
    own = np.array([place for place in places if place is not None], np.int64)
    for which, rows in ((new, None), (learned, own)):
        if len(which):
            near = neighbors_of(model, X[which], model.n_neighbors_, rows)
            scores = scores_of(model, near, X[which], rows)
            probabilities[which] = chances(model, scores)[:, tag]
    return probabilities
