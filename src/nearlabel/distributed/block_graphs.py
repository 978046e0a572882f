"""Neighbor graphs of rows in blocks: each pair of blocks is compared once, by any worker."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import replacing
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import check_dense_size, check_integer
from nearlabel.distributed.growing_lists import (
    Comparing,
    Side,
    compare_between,
    compare_within,
    finish,
    seen_blocks,
)
from nearlabel.distributed.list_blocks import lists_for
from nearlabel.distributed.list_searches import ListSearch, files_of
from nearlabel.distributed.vector_blocks import VectorBlocks
from nearlabel.distributed.workers import ClusterError, check_function, dask_module, run_calls
from nearlabel.distributed.workspaces import Workspace, alone_in, data_mark, working
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.search import InvertedLists, check_metric, check_search, is_precomputed

if TYPE_CHECKING:
    from distributed import Client

    from nearlabel.distributed.workspaces import Folder
    from nearlabel.search.exact.distances import Metric


@dataclass(frozen=True)
class BlockGraph:
    """The k nearest base rows of each row, in one pair of files per block.

    Attributes
    ----------
    files : tuple of pairs of str
        The ``.npy`` files of each block: indices and distances, of shape (rows, k).
    sizes : tuple of int
        Number of rows of each block.
    n_base : int
        Number of rows that were searched.
    k : int
    recall : Recall or None
        The estimated recall of an approximate search.
    temporary : TemporaryDirectory or None
        The folder of the files if it is deleted with the graph.
    """

    files: tuple[tuple[str, str], ...]
    sizes: tuple[int, ...]
    n_base: int
    k: int
    recall: Recall | None = None
    temporary: tempfile.TemporaryDirectory[str] | None = None

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def indices(self) -> Any:
        """Base rows, nearest first: a Dask array of shape (n, k)."""
        return self._array(0)

    @property
    def distances(self) -> Any:
        """Their distances: a Dask array of shape (n, k)."""
        return self._array(1)

    def blocks(self) -> Iterator[NeighborGraph]:
        """Yield the graph of each block, memory-mapped from its files."""
        for pair in self.files:
            indices, distances = (np.load(path, mmap_mode="r") for path in pair)
            yield NeighborGraph.unchecked(indices, distances, self.n_base, self.recall)

    def load(self) -> NeighborGraph:
        """Load the graph of all rows into the memory of this process."""
        shape = len(self), self.k
        check_dense_size("the graph", shape, 16, "indices and distances, which are Dask arrays")
        parts = [(block.indices, block.distances) for block in self.blocks()]
        indices, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return NeighborGraph.unchecked(indices, distances, self.n_base, self.recall)

    def _array(self, which: int) -> Any:
        dask, arrays = dask_module("dask"), dask_module("dask.array")
        parts = []
        for pair, size in zip(self.files, self.sizes, strict=True):
            kind = np.load(pair[which], mmap_mode="r").dtype
            read = dask.delayed(read_graph_file)(pair[which], KeptFolder(self.temporary))
            parts.append(arrays.from_delayed(read, (size, self.k), kind))
        return arrays.concatenate(parts)


class KeptFolder:
    """Keeps the temporary folder of a graph while a Dask array reads from it."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[type[KeptFolder], tuple[()]]:  # the workers need only its files
        return KeptFolder, ()


def read_graph_file(path: str, _: KeptFolder) -> Array:
    """Read a file of a graph; runs on workers."""
    return np.asarray(np.load(path))


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
        As in `nearlabel.neighbor_graph`, except for search indexes of other libraries and
        metric="precomputed".
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
        own = tempfile.TemporaryDirectory(prefix="nearlabel-")
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
    """Refuse an unknown metric, and one that does not compute distances from vectors."""
    check_metric(metric)
    if is_precomputed(metric):
        raise ValueError(
            "metric must not be 'precomputed' on a cluster, which computes distances from X"
        )


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
    if callable(metric):
        check_function(place.client, metric, "metric")
    lists = lists_for(place, blocks, metric, search)
    target = _graph_folder(place, blocks, k, queries, metric, lists)
    stored = target / "graph.json"
    if not stored.exists():
        with alone_in(target):
            if lists is None:
                graph = _compared(place, blocks, k, queries, metric, target, progress)
            else:
                assert isinstance(metric, str)  # lists are for some of those with names
                graph = _listed(place, blocks, k, queries, metric, lists, target, progress)
            record = {**asdict(graph), "files": None}  # the folder may be moved
            with replacing(stored) as file:
                file.write(json.dumps(record).encode())
    elif progress is not None:
        n = len(blocks if queries is None else queries)
        progress(n, n)
    tree = json.loads(stored.read_bytes())
    recall = None if tree["recall"] is None else Recall(**tree["recall"])
    files = files_of(target, len(tree["sizes"]))
    return BlockGraph(files, tuple(tree["sizes"]), tree["n_base"], tree["k"], recall)


def _graph_folder(
    place: Workspace,
    blocks: VectorBlocks,
    k: int,
    queries: VectorBlocks | None,
    metric: Metric,
    lists: InvertedLists | None,
) -> Path:
    # Whether a function computes the same as in an earlier run cannot be known.
    name = metric if isinstance(metric, str) else secrets.token_hex(16)
    asked = None if queries is None else data_mark(queries)
    return place.part("graph", data_mark(blocks), asked, k, name, repr(lists))


def _listed(
    place: Workspace,
    blocks: VectorBlocks,
    k: int,
    queries: VectorBlocks | None,
    metric: str,
    lists: InvertedLists,
    target: Path,
    progress: Progress | None,
) -> BlockGraph:
    """The graph by inverted lists, with its recall."""

    def exact(rows: Array, planned: int) -> NeighborGraph:
        sample = place.vectors(blocks[rows])
        graph = graph_of(place, blocks, planned + 1, sample, metric, "exact", None)
        return graph.load().without(rows)

    search = ListSearch(place, blocks, metric, lists, exact)
    if queries is None:
        files, recall = search.among(k, target, progress)
    else:
        files, recall = search.answers(queries, k, target, progress)
    sizes = tuple(block.rows for block in (blocks if queries is None else queries).blocks)
    return BlockGraph(files, sizes, len(blocks), k, recall)


def _compared(
    place: Workspace,
    blocks: VectorBlocks,
    k: int,
    queries: VectorBlocks | None,
    metric: Metric,
    target: Path,
    progress: Progress | None,
) -> BlockGraph:
    """The exact graph: pairs of blocks are compared, and the lists of each block merged."""
    base, asking = blocks.blocks, (blocks if queries is None else queries).blocks
    how = Comparing(k, metric, len(blocks), len(base))
    lists = [str(target / f"lists-{number:06}") for number in range(len(asking))]
    files = files_of(target, len(asking))
    n = sum(block.rows for block in asking)
    remaining = progress
    for _ in range(3):  # a late call may replace what another has written
        known = np.array([seen_blocks(path, len(base)) for path in lists])
        if queries is None:
            _compare_all(place, blocks, lists, known, how, remaining)
        else:
            _ask_all(place, blocks, queries, lists, known, how, remaining)
        remaining = None  # progress does not restart
        calls = [(path, *pair) for path, pair in zip(lists, files, strict=True)]
        if all(run_calls(place.client, finish, calls)):
            break
    else:
        raise ClusterError(f"folder: another process writes to {target} at the same time")
    for path in lists:
        Path(path).unlink()
    if progress is not None:
        progress(n, n)
    return BlockGraph(files, tuple(block.rows for block in asking), len(blocks), k)


def _compare_all(
    place: Workspace,
    blocks: VectorBlocks,
    lists: list[str],
    known: Array,
    how: Comparing,
    progress: Progress | None,
) -> None:
    """Compare each block with itself, and each pair of blocks once, unless already done."""
    rows, count = [block.rows for block in blocks.blocks], len(blocks.blocks)
    sides = [Side(number, path) for number, path in enumerate(lists)]
    alone = [number for number in range(count) if not known[number, number]]
    pairs = [(a, b) for a, b in _rounds(count) if not (known[a, b] and known[b, a])]
    within = [rows[a] ** 2 for a in alone]
    between = [2 * rows[a] * rows[b] for a, b in pairs]
    n = len(blocks)
    stages = Stages(progress, n)
    first = n * sum(within) // max(1, sum(within) + sum(between))
    run_calls(
        place.client,
        compare_within,
        [(sides[a], blocks.of([a]), how) for a in alone],
        sizes=within,
        progress=stages.next(first),
    )
    run_calls(
        place.client,
        compare_between,
        [((sides[a], sides[b]), blocks.of([a, b]), how) for a, b in pairs],
        uses=pairs,
        sizes=between,
        progress=stages.next(n - first),
    )


def _rounds(count: int) -> list[tuple[int, int]]:
    """All pairs of blocks, with pairs that can be compared at the same time next to each other."""
    even = count + count % 2
    pairs = []
    for turn in range(even - 1):
        ring = [0, *((turn + place) % (even - 1) + 1 for place in range(even - 1))]
        for place in range(even // 2):
            a, b = sorted((ring[place], ring[even - 1 - place]))
            if b < count:
                pairs.append((a, b))
    return pairs


def _ask_all(
    place: Workspace,
    blocks: VectorBlocks,
    queries: VectorBlocks,
    lists: list[str],
    known: Array,
    how: Comparing,
    progress: Progress | None,
) -> None:
    """Compare each block of queries with each base block, unless already done."""
    base, asking = blocks.blocks, queries.blocks
    kind = np.result_type(blocks.dtype, queries.dtype)
    pairs = [(a, b) for b in range(len(base)) for a in range(len(asking)) if not known[a, b]]
    run_calls(
        place.client,
        compare_between,
        [
            (
                (Side(-1, lists[a]), Side(b, None)),
                VectorBlocks((asking[a], base[b]), blocks.width, kind),
                how,
            )
            for a, b in pairs
        ],
        uses=[(a,) for a, _ in pairs],
        sizes=[asking[a].rows * base[b].rows for a, b in pairs],
        progress=Stages(progress, len(queries)).next(len(queries)),
    )
