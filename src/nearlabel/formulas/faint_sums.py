"""The order of sums that float64 cannot hold.

At large rates S = sum exp(-x_j), x = z d, underflows, and its logarithm is that of its first term
alone: labels that share their nearest neighbor would tie. Their exact order is that of the rests of
their sums, from the first neighbor on that they do not share. Where all rests are as far apart it
is the lexicographic order of the distances: the nearest positive neighbor decides.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import blocks_of_votes

FAINTEST = 1e-300
_SPARE_BITS = 16  # of a score: they tell labels apart whose log S is the same but for these


def faint_scores(graph: NeighborGraph, Y: Csr, rate: float) -> Floats:
    """Scores from 0 to `FAINTEST` in the order of S, for the entries of `neighbor_sums`.

    They are FAINTEST log(FAINTEST) / log S to ten digits; the others tell apart what log S does
    not. Only for S < FAINTEST: all neighbors that carry such a label are beyond z d = 690, where
    w(z d) = exp(-z d) to the last bit. What stands for other labels means nothing.
    """
    blocks = [block for _, block in blocks_of_votes(graph, Y)]
    return np.concatenate([_scores_of_block(block, Y, rate) for block in blocks])


def _scores_of_block(graph: NeighborGraph, Y: Csr, rate: float) -> Floats:
    q = Y.shape[1]
    votes = Y[graph.indices.ravel()]  # row i k + j: the labels of neighbor j of row i
    neighbor = row_numbers(votes)
    entry = neighbor // graph.k * q + votes.indices
    order = np.argsort(entry, kind="stable")  # nearest first within an entry
    entry, d = entry[order], graph.distances.ravel()[neighbor[order]].astype(np.float64)
    first = np.flatnonzero(np.diff(entry, prepend=-1))
    end = np.append(first[1:], len(d))
    row = entry[first] // q
    with np.errstate(over="ignore"):
        x = np.minimum(rate * d, np.finfo(np.float64).max)
    log_sum = np.minimum(_log_sums(x, first, end), np.log(FAINTEST))
    scores = FAINTEST * (np.log(FAINTEST) / log_sum)

    # The place of each entry in its row, the least S first: the same for all that tie so far.
    place = np.searchsorted(row, row)
    different, as_which = _different(row, d, first)
    tied = different
    for shared in range(graph.k):  # neighbors that the tied entries have in common
        start = first[tied] + shared
        some = start < end[tied]  # that have more
        rest, nearest = np.full(len(tied), -np.inf), np.full(len(tied), np.inf)
        rest[some] = _log_sums(x, start[some], end[tied[some]])
        nearest[some] = d[start[some]]
        _part(place, tied, rest, -nearest)
        sizes = np.bincount(place[different], minlength=len(place))
        tied = tied[(sizes[place[tied]] > 1) & some]
        if not tied.size:
            break
    return _told_apart(scores, row, place[different][as_which])


def _different(row: Array, d: Floats, first: Array) -> tuple[Array, Array]:
    """Entries, of those of a row with the same distances only one, for they tie for ever.

    And for each entry the place of the one that stands for it. Distances are compared by the sum of
    their hashes (splitmix64).
    """
    z = d.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    sums = np.add.reduceat(z ^ (z >> np.uint64(31)), first)
    keys = np.stack([row.astype(np.uint64), sums])
    _, different, as_which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return different, as_which.ravel()


def _log_sums(x: Floats, start: Array, end: Array) -> Floats:
    """Log of the sum of exp(-x) from `start` to before `end`, where x rises."""
    times = end - start
    begin = np.cumsum(times) - times
    each = np.arange(times.sum()) + np.repeat(start - begin, times)
    with np.errstate(under="ignore"):
        terms = np.exp(np.repeat(x[start], times) - x[each])
    sums: Floats = np.log(np.add.reduceat(terms, begin)) - x[start] if len(start) else x[:0]
    return sums


def _part(place: Array, tied: Array, *keys: Floats) -> None:
    """Move entries that are tied to places of their own, by their keys in this order."""
    order = np.lexsort((*reversed(keys), place[tied]))
    tied = tied[order]
    new_place = np.diff(place[tied], prepend=-1) != 0
    new = new_place.copy()
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    at = np.arange(len(tied))
    place[tied] += np.maximum.accumulate(at * new) - np.maximum.accumulate(at * new_place)


def _told_apart(scores: Floats, row: Array, place: Array) -> Floats:
    """The scores with their last bits set by the places of those that are equal without them."""
    coarse = scores.view(np.int64) >> _SPARE_BITS
    order = np.lexsort((place, coarse, row))
    new_run = (np.diff(row[order], prepend=-1) != 0) | (np.diff(coarse[order], prepend=-1) != 0)
    new = np.cumsum(new_run | (np.diff(place[order], prepend=-1) != 0))
    steps = new - np.maximum.accumulate(new * new_run)
    apart = np.empty_like(coarse)
    apart[order] = (coarse[order] << _SPARE_BITS) + np.minimum(steps, (1 << _SPARE_BITS) - 1)
    return apart.view(np.float64)
