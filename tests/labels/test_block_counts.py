"""Counts of blocks add up to the counts of all rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nearlabel as nl
from nearlabel.labels.block_counts import BlockHistograms, BlockNeighborCounts
from nearlabel.labels.counts import label_totals, neighbor_counts
from nearlabel.labels.histograms import label_histograms


@given(cuts=st.sets(st.integers(1, 79)), k=st.integers(1, 30))
def test_blocks_need_only_the_labels_of_their_neighbors(cuts, k):
    data = nl.datasets.make_local_labels(80, 3, 6, random_state=k)
    graph, Y = nl.neighbor_graph(data.X, k), data.Y
    tables = BlockHistograms(label_totals(Y), 80, k)
    counts = BlockNeighborCounts(label_totals(Y), 80, k)
    parts = []
    for start, stop in zip((0, *sorted(cuts)), (*sorted(cuts), 80), strict=True):
        own, near = np.arange(start, stop), graph.rows(start, stop).indices
        used, place = np.unique(np.concatenate([own, near.ravel()]), return_inverse=True)
        few = nl.NeighborGraph.unchecked(
            place[len(own) :].reshape(near.shape), np.empty(near.shape), len(used)
        )
        rows, its = place[: len(own)], Y[used]
        parts.append((tables.counted(few, rows, its), counts.counted(few, rows, its)))
    cells, counted = zip(*parts, strict=True)
    found, expected = tables.learned(tables.joined(cells)), label_histograms(graph, Y)
    for name in ("n", "totals", "start", "with_label", "without_label"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    joined = counts.learned(counts.joined(counted))
    np.testing.assert_array_equal(joined.toarray(), neighbor_counts(graph, Y).toarray())
