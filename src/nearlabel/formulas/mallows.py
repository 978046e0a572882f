"""The Mallows model of rankings, from label sets: its ranking, and the spread around that.

With a neutral label 0* the model orders q + 1 objects; the product in Eq. (3) of the paper, which
ends at q, must run to q + 1. A label set Y is the event that all of Y are before 0* and all
others after it:

    log P(Y)  =  -theta X + log phi_|Y| + log phi_(q - |Y|) - log phi_(q + 1),

where X is the number of reversed pairs among those of a label in Y and one outside, of a label in Y
and 0*, and of 0* and a label outside; phi_m(theta) is the normalizer of m objects. The paper does
not estimate theta. Setting the derivative of the likelihood of k sets to zero gives

    sum of X  =  sum over the sets of  mu_(q + 1) - mu_|Y| - mu_(q - |Y|),

where mu_m(theta) is the mean number of reversed pairs of m objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers, runs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import blocks_of_votes, neighbor_counts


@dataclass(frozen=True)
class RankingKeys:
    """What the most likely ranking sorts labels by, given how many of k neighbors have them.

    f = c / k (Theorem 1), or with a prior g that breaks ties (Theorem 2): (c + g) / (k + 1). The
    prior is kept inside (0, 1), so that it is less than one count. n_l of n training rows have a
    label.
    """

    n_l: Array
    n: int
    k: int
    has_prior: bool

    @cached_property
    def g(self) -> Floats:
        """The prior of each label."""
        return self._prior(self.n, self.n_l)

    @property
    def neutral(self) -> float:
        """The lowest key of a label before the neutral one: that of c > k/2.

        The paper does not say whether a label with c = k/2 is before it; here it is not.
        """
        return (self.k // 2 + 1) / (self.k + self.has_prior)

    def prepare(self) -> None:
        """Compute the prior."""
        _ = self.g

    def at(self, label: Array, count: Array, group: Array | int = 0) -> Floats:  # noqa: ARG002
        """Keys of labels with the given counts."""
        return self._key(count, self.g[label])

    def left_out(
        self,
        label: Array,
        count: Array,
        own: Array,
        group: Array | int = 0,  # noqa: ARG002
    ) -> Floats:
        """Keys for training rows as if each were new; `own` is 1 if a row has the label."""
        return self._key(count, self._prior(self.n - 1, self.n_l[label] - own))

    def at_0(self, *, left_out: bool = False) -> Floats:
        """Keys of all labels at count 0, of training rows without them if `left_out`."""
        return self._key(np.zeros_like(self.n_l), self._prior(self.n - left_out, self.n_l))

    def probabilities(self, keys: Floats, label: Array) -> Floats:
        """Keys with the prior, whether it was used or not."""
        if self.has_prior:
            return keys
        return np.asarray((self.k * keys + self.g[label]) / (self.k + 1))

    def _key(self, count: Array, g: Floats) -> Floats:
        return np.asarray((count + g) / (self.k + 1) if self.has_prior else count / self.k)

    @staticmethod
    def _prior(n: int, n_l: Array) -> Floats:
        return np.asarray((n_l + 1) / (n + 2))


def dispersion(graph: NeighborGraph, Y: Csr) -> Floats:
    """Theta per query, from the label sets of its neighbors; Y has those of the base rows."""
    theta, labels = np.empty(len(graph)), np.diff(Y.indptr).astype(np.int64)
    for rows, part in blocks_of_votes(graph, Y):
        sizes = labels[part.indices]
        pairs = reversed_pairs(neighbor_counts(part, Y), sizes)
        theta[rows] = dispersion_of_pairs(pairs, sizes, Y.shape[1])
    return theta


def reversed_pairs(counts: Csr, sizes: Array) -> Array:
    """X: pairs that the most likely ranking reverses, over all neighbors of each query.

    `counts` (n, q) is how many neighbors have each label, and `sizes` (n, k) how many labels each
    neighbor has. Each neighbor with the label at rank p reverses its pairs with the p - 1 labels
    before it, except those that it has as well. All labels before that one are labels of some
    neighbor, so the others need not be visited.
    """
    k, row = sizes.shape[1], row_numbers(counts)
    order = np.lexsort((-counts.data, row))
    c = counts.data[order].astype(np.int64)
    place = np.arange(len(c)) - counts.indptr[row] + 1
    before = 2 * c > k  # of the neutral label
    n = counts.shape[0]
    pairs = np.bincount(row, c * (place - 2 * before) + k * before, minlength=n)
    return np.asarray(np.rint(pairs) - (sizes * (sizes - 1) // 2).sum(axis=1), np.int64)


def dispersion_of_pairs(pairs: Array, sizes: Array, q: int) -> Floats:
    """Theta per query: 0 if the sets look random, infinite if no pair is reversed.

    `pairs` (n,) is X from `reversed_pairs`; `sizes` is the same as there.
    """
    smaller = np.minimum(sizes, q - sizes)  # a set and its complement have the same means
    by_chance = (sizes * (q - sizes) + q).sum(axis=1) / 2
    theta = np.where(pairs > 0, 0.0, np.inf)
    open_rows = np.flatnonzero((pairs > 0) & (pairs < by_chance))
    # Group rows of similar width, so that a wide one does not widen the others.
    width = np.frexp(smaller[open_rows].max(axis=1, initial=0))[1]
    for exponent in np.unique(width):
        alike = open_rows[width == exponent]
        for run in runs(np.full(len(alike), 2 ** (int(exponent) + 1)), 2**20):
            rows = alike[run]
            theta[rows] = _root(pairs[rows], smaller[rows], q)
    return theta


def _root(pairs: Array, smaller: Array, q: int) -> Floats:
    """The theta at which the mean number of reversed pairs, decreasing in theta, is as observed."""
    most = int(smaller.max())
    # mu_(q+1) - mu_s - mu_(q-s) = h(1) + [h(1) + … + h(s)] - [h(q+1-s) + … + h(q+1)], where h(j) is
    # j / (e^(j theta) - 1) - 1 / theta: the large terms, which cancel, are left out. h(j) occurs
    # once for each neighbor with s >= j.
    times = np.stack([(smaller >= j).sum(axis=1) for j in range(most + 1)], axis=1)
    j = np.concatenate([np.arange(1, most + 1), q + 1 - np.arange(most + 1)])
    weight = np.concatenate([times[:, 1:], -times], axis=1).astype(np.float64)

    def mean(theta: Floats) -> Floats:
        first = smaller.shape[1] * _h(np.ones(1), theta[:, None])[:, 0]
        # Added one by one, so that the zeros of narrower rows do not change the rounding.
        others = np.cumsum(weight * _h(j, theta[:, None]), axis=1)[:, -1]
        return np.asarray(first + others)

    # Beyond 50, a reversed pair has probability e^-50: practically none.
    low, high = np.zeros(len(pairs)), np.full(len(pairs), 50.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = mean(middle) > pairs
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)


def _h(j: Array, theta: Floats) -> Floats:
    """J / (e^(j theta) - 1) - 1 / theta, which tends to -j / 2 for a small theta."""
    x = j * theta
    series = -x / 2 + x * x / 12
    with np.errstate(over="ignore"):
        whole = x / np.expm1(x) - 1
    result: Floats = np.where(x < 1e-3, series, whole) / theta
    return result
