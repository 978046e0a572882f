"""Neighbor graphs of rows in blocks: each pair of blocks is compared once, by any worker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import check_dense_size, check_integer
from nearlabel.distributed.growing_lists import Comparing, Side, compare, finish, seen_blocks
from nearlabel.distributed.list_blocks import lists_for
from nearlabel.distributed.list_searches import search_by_lists
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import ClusterError, dask_module, run_calls
from nearlabel.distributed.workspaces import Workspace, alone_in, data_mark, working
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.persistence.models import load
from nearlabel.search import check_metric, check_search, is_precomputed

if TYPE_CHECKING:
    from distributed import Client

    from nearlabel.distributed.workspaces import Folder
    from nearlabel.search.exact.distances import Metric


@dataclass(frozen=True)
class BlockGraph:
    """The k nearest base rows of each row, in one file per block.

    Attributes
    ----------
    files : tuple of str
        The graph of each block, which `nearlabel.load` reads.
    sizes : tuple of int
        Number of rows of each block.
    n_base : int
        Number of rows that were searched.
    k : int
    recall : Recall or None
        The estimated recall of an approximate search.
    temporary : GraphFolder or None
        The folder of the files if it is deleted with the graph.
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...]
    n_base: int
    k: int
    recall: Recall | None = None
    temporary: GraphFolder | None = None

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def indices(self) -> Any:
        """Base rows, nearest first: a Dask array of shape (n, k)."""
        return self._array("indices")

    @property
    def distances(self) -> Any:
        """Their distances: a Dask array of shape (n, k)."""
        return self._array("distances")

    def blocks(self) -> Iterator[NeighborGraph]:
        """Yield the graph of each block, memory-mapped from its file."""
        for path in self.files:
            graph = read_graph(path)
            graph.recall = self.recall
            yield graph

    def load(self) -> NeighborGraph:
        """Load the graph of all rows into the memory of this process."""
        shape = len(self), self.k
        check_dense_size("the graph", shape, 16, "indices and distances, which are Dask arrays")
        parts = [(block.indices, block.distances) for block in self.blocks()]
        indices, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return NeighborGraph.unchecked(indices, distances, self.n_base, self.recall)

    def _array(self, name: str) -> Any:
        dask, arrays = dask_module("dask"), dask_module("dask.array")
        parts = []
        for path, size in zip(self.files, self.sizes, strict=True):
            kind = read_stored(path, mmap=True).tree[name].dtype
            part = dask.delayed(read_graph_array)(path, name, self.temporary)
            parts.append(arrays.from_delayed(part, (size, self.k), kind))
        return arrays.concatenate(parts)


class GraphFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder that lives as long as a graph, or a Dask array that reads from it."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:  # the workers need only its files
        return str, (self.name,)


def read_graph(path: str) -> NeighborGraph:
    """The graph of a block, mapped and checked."""
    graph = load(path, mmap=True)
    if not isinstance(graph, NeighborGraph):
        raise FileError("is not a neighbor graph", path)
    return graph


def read_graph_array(path: str, name: str, _: object) -> Array:
    """Read an array of the graph of a block; runs on workers."""
    array: Array = getattr(read_graph(path), name)
    return array


def neighbor_graph(
    X: object,
    k: int,
    client: Client | str | None = None,
    *,
    queries: object = None,
    metric: Metric = "euclidean",
    search: object = "auto",
    folder: Folder = None,
    progress: Progress | None = None,
) -> BlockGraph:
    """Find the k nearest rows of X for each row on a Dask cluster.

    The graph equals that of `nearlabel.neighbor_graph` bit for bit, whatever the block sizes and
    the number of workers, and even if workers die during the run.

    Parameters
    ----------
    X : Dask array, folder of blocks, or matrix, shape (n, d)
        A folder must be readable by all workers and contain ``.npy`` or Parquet files, one per
        block, which are taken in the order of the numbers in their names. A Dask array, Parquet
        files and a matrix in memory are first written to `folder` as blocks.
    k : int
        Number of neighbors of each row: from 1 to n, or to n - 1 without queries.
    client : dask.distributed.Client, or str, optional
        A client of the cluster, or the address of its scheduler. By default the current client if
        there is one, else workers on this machine, one per core.
    queries : as X, shape (m, d), optional
        Rows to find the neighbors of. By default the rows of X, each of which is not its own
        neighbor.
    metric, search
        As in `nearlabel.neighbor_graph`, except for search indexes of other libraries,
        metric="precomputed" and functions.
    folder : path, optional
        Folder for the graph and all intermediate files; all workers must share it. An interrupted
        run continues from the files in it. By default a temporary folder on this machine, which
        is deleted with the graph.
    progress : callable, optional
        Called with (rows done, total number of rows); compared pairs of rows are converted to
        rows.

    Returns
    -------
    BlockGraph
    """
    check_metric_of_cluster(metric)
    check_search(search)
    own = None
    if folder is None:
        own = GraphFolder(prefix="nearlabel-")
        folder = own.name
    try:
        with working(client, folder) as place:
            blocks = place.vectors(X)
            asked = None if queries is None else place.vectors(queries, "queries")
            n = len(blocks)
            if asked is None and n < 2:
                raise ValueError("X has 1 sample; neighbors among its rows need at least 2")
            k = check_integer(k, "k", low=1, high=n - 1 if asked is None else n)
            graph = graph_of(place, blocks, k, asked, metric, search, progress)
    except BaseException:
        if own is not None:  # not when the traceback is collected
            own.cleanup()
        raise
    return replace(graph, temporary=own)


def check_metric_of_cluster(metric: Metric) -> None:
    """Refuse an unknown metric, and one that does not compute distances from vectors by itself."""
    if callable(metric) or is_precomputed(metric):
        raise ValueError(
            "metric must not be 'precomputed' or a function on a cluster, which computes distances "
            "from X"
        )
    check_metric(metric)


def graph_of(
    place: Workspace,
    blocks: VectorBlocks,
    k: int,
    queries: VectorBlocks | None,
    metric: Metric,
    search: object,
    progress: Progress | None,
) -> BlockGraph:
    """The graph of blocks that are already in files; see `neighbor_graph`."""
    if queries is not None and queries.width != blocks.width:
        raise ValueError(
            f"queries must have as many features as X: {blocks.width}; got {queries.width}"
        )

    def exact(rows: Array, k: int) -> NeighborGraph:
        sample = place.vectors(blocks[rows])
        graph = graph_of(place, blocks, k + 1, sample, metric, "exact", None)
        return graph.load().without(rows)

    lists = lists_for(place, blocks, metric, search)
    marks = data_mark(blocks), None if queries is None else data_mark(queries)
    target = place.part("graph", *marks, k, metric, repr(lists))
    asking = blocks if queries is None else queries
    files = [target / f"{number:06}.graph" for number in range(len(asking.blocks))]
    stored = target / "recall.tree"
    if not stored.exists():
        with alone_in(target):
            recall, how = None, (place, blocks, queries, k)
            if lists is None:
                _compare(*how, metric, files, progress)
            else:
                assert isinstance(metric, str)
                recall = search_by_lists(*how, metric, lists, exact, files, progress)
            write_tree(stored, {"recall": recall and asdict(recall)})
    elif progress is not None:
        progress(len(asking), len(asking))
    tree = read_stored(stored).tree["recall"]
    sizes = tuple(block.rows for block in asking.blocks)
    paths = tuple(str(path) for path in files)
    return BlockGraph(paths, sizes, len(blocks), k, None if tree is None else Recall(**tree))


def _compare(
    place: Workspace,
    blocks: VectorBlocks,
    queries: VectorBlocks | None,
    k: int,
    metric: Metric,
    files: Sequence[Path],
    progress: Progress | None,
) -> None:
    """Write the exact graph: pairs of blocks are compared, and the lists of each block merged."""
    asking, target = blocks if queries is None else queries, files[0].parent
    count, n = len(blocks.blocks), len(asking)
    how = Comparing(k, metric, len(blocks), count)
    lists = [target / f"lists-{number:06}" for number in range(len(asking.blocks))]
    remaining = Stages(progress, n).next(n)
    for _ in range(3):  # a late call may replace what another has written
        seen = np.array([seen_blocks(path, count) for path in lists])
        if queries is None:
            calls = _calls_among(blocks, lists, seen)
        else:
            calls = _calls_of_queries(blocks, queries, lists, seen)
        run_calls(
            place.client,
            compare,
            [(sides, rows, how) for sides, rows in calls],
            uses=[tuple(side.number for side in sides if side.lists) for sides, _ in calls],
            sizes=[rows.blocks[0].rows * rows.blocks[-1].rows for _, rows in calls],
            progress=remaining,
        )
        remaining = None  # progress does not restart
        ends = [(path, len(blocks), graph) for path, graph in zip(lists, files, strict=True)]
        if all(run_calls(place.client, finish, ends)):
            break
    else:
        raise ClusterError(f"folder: another process writes to {target} at the same time")
    for path in lists:
        path.unlink()
    if progress is not None:
        progress(n, n)


def _calls_among(
    blocks: VectorBlocks, lists: Sequence[Path], seen: Array
) -> list[tuple[tuple[Side, ...], VectorBlocks]]:
    """Each block with itself, and each pair of blocks once, unless already compared.

    Pairs with the same sum, modulo the number of blocks, can be compared at the same time.
    """
    sides, count = [Side(number, path) for number, path in enumerate(lists)], len(lists)
    alone = [((side,), blocks.of([a])) for a, side in enumerate(sides) if not seen[a, a]]
    return alone + [
        ((sides[a], sides[b]), blocks.of([a, b]))
        for a, b in sorted(combinations(range(count), 2), key=lambda pair: sum(pair) % count)
        if not (seen[a, b] and seen[b, a])
    ]


def _calls_of_queries(
    blocks: VectorBlocks, queries: VectorBlocks, lists: Sequence[Path], seen: Array
) -> list[tuple[tuple[Side, ...], VectorBlocks]]:
    """Each block of queries with each base block, unless already compared."""
    kind = np.result_type(blocks.dtype, queries.dtype)
    return [
        ((Side(a, lists[a]), Side(b, None)), VectorBlocks((asking, base), blocks.width, kind))
        for b, base in enumerate(blocks.blocks)
        for a, asking in enumerate(queries.blocks)
        if not seen[a, b]
    ]
