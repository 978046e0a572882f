"""ML-kNN with one carrier of a label left out of every count: a test of an explanation.

A training row that carries a label is left out of its own neighbors. So it is compared with n_l - 1
carriers, and a row without the label, and a new one, with n_l. Where nearly all carriers of a label
are neighbors of each other, the count then tells in training who carries it, the wrong way round.
Here all rows are compared with n_l - 1 carriers: one carrier, drawn at random, does not count, and
what follows is the mean over the draws.
"""

from __future__ import annotations

import numpy as np

import nearlabel as nl
from nearlabel.common.arrays import Csr, with_data
from nearlabel.labels.histograms import cell_values, label_histograms
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.mlknn import posteriors


def even_scores(graph: nl.NeighborGraph, Y: Csr, votes: Csr, s: float) -> LabelScores:
    """Posteriors of new rows.

    Parameters
    ----------
    graph : NeighborGraph
        The k neighbors of each training row, itself left out.
    Y : csr_array, shape (n, q)
    votes : csr_array of int, shape (m, q)
        For each new row the number of its neighbors that carry each label.
    s : float
        Rows added to every cell, as in ML-kNN.
    """
    counted = label_histograms(graph, Y)
    start = counted.start
    label = np.repeat(np.arange(len(counted.totals)), np.diff(start))
    n_l = counted.totals[label]
    count = np.arange(len(label)) - start[label]
    drawn = count / np.maximum(n_l, 1)  # chance that the carrier left out is one of those counted
    # A row without the label stays in its cell, or comes from the next one of the same label.
    from_next = np.append(counted.without_label * drawn, 0.0)[1:]
    from_next[start[1:] - 1] = 0.0
    without = counted.without_label * (1 - drawn) + from_next
    told = posteriors(s, graph.k, counted.n[label], n_l, counted.with_label, without)
    # A new row, too, is in its cell or in the one before; where there is none, `drawn` is 0.
    table = (1 - drawn) * told + drawn * np.roll(told, 1)
    values = cell_values(table, start, votes.indices, votes.data)
    return LabelScores(with_data(votes, values), table[start[:-1]])
