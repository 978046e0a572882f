"""Fitting on a cluster: the graph and its counts by blocks, the model an ordinary one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.progress import Progress
from nearlabel.common.validation import Labels, check_same_length
from nearlabel.distributed.block_graphs import BlockGraph, check_metric_of_cluster, graph_of
from nearlabel.distributed.label_files import LabelFiles, read_labels
from nearlabel.distributed.list_blocks import list_index, lists_for
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import dask_module
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

_PARTS_AT_ONCE = 8  # partial counts joined by one call, in a tree


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
        raise TypeError(
            "estimator must be a nearlabel estimator that uses a neighbor graph, such as MLkNN(); "
            f"got {type(estimator).__name__}, which cannot be fitted by blocks"
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
    """The counts of all blocks of a graph, joined in a tree."""
    client, stored = place.client, place.labels(labels.matrix)
    starts = np.cumsum([0, *graph.sizes]).tolist()
    leaves = parts = [
        client.submit(count_block, kind, stored, len(graph), indices, start, pure=False)
        for (indices, _), start in zip(graph.files, starts, strict=False)
    ]
    while len(parts) > 1:
        groups = [parts[i : i + _PARTS_AT_ONCE] for i in range(0, len(parts), _PARTS_AT_ONCE)]
        parts = [client.submit(join_counts, kind, group, pure=False) for group in groups]
    for done, _ in enumerate(dask_module("distributed").as_completed(leaves), 1):
        if progress is not None:
            progress(done, len(leaves))
    return kind(stored.totals(), len(graph), graph.k).learned(parts[0].result())


def count_block(
    kind: type[BlockCounts], labels: LabelFiles, n: int, indices: str, start: int
) -> Any:
    """Count the rows of a block of a graph that begins with row `start`; runs on workers."""
    near: Array = np.load(indices, mmap_mode="r")
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
        parts.append(counts.counted(graph, rows, labels.of(used)))
        if len(parts) == _PARTS_AT_ONCE:
            parts = [counts.joined(parts)]
    return counts.joined(parts)


def join_counts(kind: type[BlockCounts], parts: Sequence[Any]) -> Any:
    """Join the counts of some blocks; runs on workers."""
    return kind.joined(parts)
