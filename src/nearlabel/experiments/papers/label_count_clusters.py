"""Clusters of rows by the labels of their neighbors: Table 1 of Wang et al. (2018)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from nearlabel.datasets import Dataset
from nearlabel.labels.counts import neighbor_counts
from nearlabel.search import Progress, neighbor_graph


def label_count_clusters(
    data: Dataset,
    n_neighbors: int,
    groups: Sequence[Sequence[str]],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, list[float | None]]:
    """Mean number of neighbors with a label, over the rows of a cluster with or without that label.

    The clusters of the table are not clusters of the features, with which the method of that paper
    works: its numbers come out if rows are clustered by how many of their neighbors have each
    label.

    Parameters
    ----------
    data : Dataset
    n_neighbors : int
    groups : sequence of sequence of str
        The names of the labels around which each cluster begins; k-means goes on from there.
    n_jobs, progress
        Of the search.

    Returns
    -------
    dict of str to list
        "count_with_label NAME" and "count_without_label NAME" for each label: one mean per
        cluster, None where a cluster has no such row.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    names = [] if data.label_names is None else data.label_names.tolist()
    graph = neighbor_graph(data.X, n_neighbors, n_jobs=n_jobs, progress=progress)
    counts, has = neighbor_counts(graph, data.Y).toarray(), data.Y.toarray() > 0
    first = np.zeros((len(groups), len(names)))
    for row, group in zip(first, groups, strict=True):
        row[[names.index(name) for name in group]] = n_neighbors / len(group)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # clusters that end without a row
        cluster = KMeans(len(groups), init=first, n_init=1).fit_predict(counts.astype(np.float64))
    found: dict[str, list[float | None]] = {}
    for label, name in enumerate(names):
        for which, rows in (("with", has[:, label]), ("without", ~has[:, label])):
            members = [counts[rows & (cluster == one), label] for one in range(len(groups))]
            found[f"count_{which}_label {name}"] = [
                float(some.mean()) if len(some) else None for some in members
            ]
    return found
