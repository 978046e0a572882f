"""Fitting on a cluster: the graph and its counts by blocks, the model an ordinary one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentTypeError, Labels, check_same_length
from nearlabel.distributed.block_graphs import (
    BlockGraph,
    check_metric_of_cluster,
    graph_of,
    read_graph,
)
from nearlabel.distributed.label_files import LabelFile, read_labels
from nearlabel.distributed.list_blocks import list_index, lists_for
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import run_calls
from nearlabel.distributed.workspaces import Workspace, working
from nearlabel.graph import NeighborGraph
from nearlabel.labels.block_counts import BlockCounts
from nearlabel.methods.answers import no_neighbors
from nearlabel.methods.base import NeighborClassifier, TrainingRows
from nearlabel.methods.fitted_model import FittedModel
from nearlabel.search import InvertedLists, check_search

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    from distributed import Client

    from nearlabel.distributed.workspaces import Folder


def fit(
    estimator: NeighborClassifier,
    X: object,
    y: object,
    client: Client | str | None = None,
    *,
    label_names: Iterable[object] | None = None,
    ids: npt.ArrayLike | None = None,
    separator: str | None = None,
    folder: Folder = None,
    progress: Progress | None = None,
) -> NeighborClassifier:
    """Fit an estimator to rows in blocks on a Dask cluster.

    The fitted estimator has the same neighbors, counts and predictions as after its own `fit` on
    the same rows.

    Parameters
    ----------
    estimator : nearlabel estimator that uses a neighbor graph
        `MLkNN` and `DMLkNN` count their blocks on the workers. `BRkNN`, `MallowskNN` and `MLCWkNN`
        have nothing to learn from the graph, and `PositivekNN` learns from a sample. The other
        estimators learn from the neighbors of all rows in this process.
    X, client, progress
        As in `nearlabel.distributed.neighbor_graph`.
    y : labels as in the `fit` of estimators, Dask array of 0 and 1, or folder of blocks
        Blocks are ``.npy`` or Parquet files of 0 and 1, or ``.npz`` files from
        `scipy.sparse.save_npz`. Their rows are in the order of X, in blocks of any size.
    label_names, ids, separator
        As in the `fit` of estimators.
    folder : path, optional
        Folder for the graph and for the vectors in one file; all workers must share it. The model
        maps that file, so that the vectors need not fit into memory. An interrupted run continues
        from the files in the folder. By default a temporary folder on this machine; the vectors
        are then in memory.

    Returns
    -------
    estimator
    """
    if not isinstance(estimator, NeighborClassifier) or not estimator.needs.graph:
        raise ArgumentTypeError(
            "estimator must be a nearlabel estimator that uses a neighbor graph, such as MLkNN(); "
            f"got {type(estimator).__name__}, which cannot be fitted by blocks",
            "estimator",
        )
    estimator.check_parameters()
    check_metric_of_cluster(estimator.metric)
    check_search(estimator.search)
    labels = read_labels(y, label_names, separator)
    with working(client, folder) as place:
        return estimator._fit(ClusterRows(place, X, labels), labels, ids, progress)


class ClusterRows(TrainingRows):
    """Training rows in blocks, among which the workers of a cluster search."""

    def __init__(self, place: Workspace, X: object, labels: Labels) -> None:
        super().__init__(X)
        self.are_kept = False  # the first change searches them
        self._place, self._labels = place, labels
        self._lists: InvertedLists | None = None  # for an exact search

    @cached_property
    def _blocks(self) -> VectorBlocks:
        return self._place.vectors(self._X)

    def vectors(self, model: FittedModel, n: int) -> Matrix:
        """The rows of all blocks, mapped or in memory; the model notes how many features."""
        blocks = self._blocks
        check_same_length(X=len(blocks), y=n)
        model.__dict__.pop("feature_names_in_", None)
        model.n_features_in_ = blocks.width
        lists = lists_for(self._place, blocks, model.metric, model.search)
        self._lists = lists
        if lists is None:
            return self._place.joined(blocks)
        return checked(
            list_index(self._place, blocks, str(model.metric), lists, model.search).vectors
        )

    def neighbors(
        self,
        model: FittedModel,
        rows: Array | None,
        *,
        and_spare: bool,  # noqa: ARG002
        n_jobs: int,  # noqa: ARG002
        searching: Progress | None,
        learning: Progress | None,
    ) -> tuple[NeighborGraph, Any]:
        """The neighbors of some training rows, of all if None, or what was counted on them."""
        place, blocks, n = self._place, self._blocks, len(self._blocks)
        k, how = min(model.n_neighbors_, n - 1), (model.metric, model.search)
        graph, counted = no_neighbors(0, n), None
        if rows is None:
            stored = graph_of(place, blocks, k, None, *how, searching)
            if model.by_blocks is None:
                graph = stored.load()
            else:
                graph = no_neighbors(0, n, stored.recall)
                counted = _counted(place, stored, self._labels, model.by_blocks, learning)
        elif len(rows):
            assert model.items_.store is not None
            queries = place.vectors(np.asarray(model.items_.store.take(rows)))
            graph = graph_of(place, blocks, k + 1, queries, *how, searching).load().without(rows)
        if self._lists is not None:  # with the plans that were made on the way
            model.items_.index = list_index(
                place, blocks, str(model.metric), self._lists, model.search
            )
        return graph, counted


def _counted(
    place: Workspace,
    graph: BlockGraph,
    labels: Labels,
    kind: type[BlockCounts],
    progress: Progress | None,
) -> Any:
    """The counts of all blocks of a graph, joined as they arrive."""
    stored, starts = place.labels(labels.matrix), np.cumsum([0, *graph.sizes]).tolist()
    calls = [
        (kind, stored, len(graph), path, start)
        for path, start in zip(graph.files, starts, strict=False)
    ]
    parts: list[Any] = []

    def take(_: int, part: object) -> None:
        _add(kind, parts, part)

    run_calls(place.client, count_block, calls, take=take, progress=progress)
    return kind(stored.totals(), len(graph), graph.k).learned(kind.joined(parts))


def _add(kind: type[BlockCounts], parts: list[Any], part: object) -> None:
    """Add a partial count; a few are joined together, as each joining passes over all tables."""
    parts.append(part)
    if len(parts) == 8:
        parts[:] = [kind.joined(parts)]


def count_block(kind: type[BlockCounts], labels: LabelFile, n: int, path: str, start: int) -> Any:
    """Count the rows of a block of a graph that begins with row `start`; runs on workers."""
    near = read_graph(path).indices
    m, k = near.shape
    counts = kind(labels.totals(), n, k)
    parts: list[Any] = []
    step = max(1, 2**19 // k)
    for first in range(0, m, step):
        batch = np.asarray(near[first : first + step])
        own = np.arange(start + first, start + first + len(batch))
        used, place = np.unique(np.concatenate([own, batch.ravel()]), return_inverse=True)
        rows, places = place[: len(own)], place[len(own) :].reshape(batch.shape)
        graph = NeighborGraph.unchecked(places, np.empty(batch.shape), len(used))
        _add(kind, parts, counts.counted(graph, rows, labels.of(used)))
    return counts.joined(parts)
