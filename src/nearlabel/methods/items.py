"""The training items of a model: labels, vectors, and the search among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.progress import Progress
from nearlabel.common.tag_lists import TagForm
from nearlabel.common.validation import check_dense_size, check_integer
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.search import Index, VectorStore, build_index, check_search, is_precomputed

_BYTES_A_NEIGHBOR = 12  # a row and its distance


class Training(NamedTuple):
    """What a method learns from.

    Attributes
    ----------
    graph : NeighborGraph
        The k neighbors of the training rows `rows`, each left out of its own.
    Y : csr_array, shape (n, q)
        The labels of all training rows.
    X : vectors of all training rows, or None where the model is fitted from a graph alone
    rows : ndarray of int
    n_jobs : int
        Threads.
    progress : callable or None
        Called with (steps done, steps in all) where learning takes long.
    """

    graph: NeighborGraph
    Y: Csr
    X: Any
    rows: Array
    n_jobs: int
    progress: Progress | None


@dataclass
class Items:
    """What a fitted model keeps of its training items, whatever a method learns from them.

    Attributes
    ----------
    labels : csr_array, shape (n, q)
        The label sets.
    sparse_output : bool
        Whether the labels were given as a sparse matrix.
    tags : TagForm or None
        How the labels were given where they were tags.
    metric, search
        As given to the estimator when it was fitted.
    store : VectorStore or None
        Vectors and ids; None where the model was fitted from a graph alone.
    index : Index or None
        The vectors ready to be searched; built when something is first searched.
    """

    labels: Csr
    sparse_output: bool
    tags: TagForm | None
    metric: Any
    search: Any
    store: VectorStore | None
    index: Index | None = None

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    @property
    def vectors(self) -> Any:
        """The vectors of all items, or None; those of a mapped file are checked when asked for."""
        return None if self.store is None else checked(self.store.vectors)

    @cached_property
    def totals(self) -> Array:
        """How many items carry each label, shape (q,)."""
        return label_totals(self.labels)

    @cached_property
    def by_label(self) -> Csr:
        """Which items carry each label; kept, for it takes long with many items."""
        return self.labels.tocsc()

    def ids(self, rows: Any) -> Array:
        """The ids of some items."""
        assert self.store is not None
        return np.asarray(self.store.ids[rows])

    def search_with(self, search: Any) -> None:
        """Search in another way from now on."""
        check_search(search)
        self.search, self.index = search, None

    def neighbors(
        self, X: Any, k: int | None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest items of checked queries; of the items themselves where X is None."""
        n = self.labels.shape[0]
        asked, most = (n, n - 1) if X is None else (X.shape[0], n)
        k = check_integer(k, "n_neighbors", low=1, high=most)
        instead = "rank or predict, which search block by block"
        check_dense_size("the neighbors of all rows", (asked, k), _BYTES_A_NEIGHBOR, instead)
        return self._ready().graph(k, X, **_how(n_jobs, progress))

    def left_out_neighbors(
        self, rows: Array | None, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest items of some items, all if None, each left out of its own neighbors."""
        n = self.labels.shape[0]
        asked = n if rows is None else len(rows)
        what = "the neighbors of the training rows"
        check_dense_size(what, (asked, k), _BYTES_A_NEIGHBOR, "fewer n_neighbors")
        index, how = self._ready(), _how(n_jobs, progress)
        if rows is None:
            return index.graph(k, **how)
        if not len(rows):
            return NeighborGraph.unchecked(np.empty((0, k), np.int32), np.empty((0, k)), n)
        if is_precomputed(self.metric):  # it may hold no distance of a row to itself
            return index.graph(k, **how).take(rows)
        return index.graph(k + 1, self.vectors[rows], **how).without(rows)

    def _ready(self) -> Index:
        if self.store is None:
            raise ValueError(
                "this model was fitted from a graph without X and cannot search; "
                "give X to fit_graph, or use scores_from_graph"
            )
        if self.index is None:
            self.index = build_index(self.vectors, self.metric, self.search)
        return self.index


def _how(n_jobs: int, progress: Progress | None) -> dict[str, Any]:
    """How to search: a search from outside need not know progress that nobody asks for."""
    return {"n_jobs": n_jobs} if progress is None else {"n_jobs": n_jobs, "progress": progress}
