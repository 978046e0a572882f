"""The training items of a model: labels, vectors, and the search among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, csr_of_known
from nearlabel.common.growing import GrownCsr
from nearlabel.common.mapped_arrays import MappedArray
from nearlabel.common.messages import first_twice
from nearlabel.common.progress import Progress
from nearlabel.common.threads import ForkSafeLock
from nearlabel.common.validation import ArgumentError, check_dense_size, check_integer
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.search import (
    Index,
    InvertedLists,
    KeptNeighbors,
    LivingIndex,
    Metric,
    VectorStore,
    build_index,
    is_precomputed,
    pair_distances,
)

_BYTES_A_NEIGHBOR = 12  # a row and its distance


@dataclass
class Items:
    """The training items of a fitted model, whatever a method learns from them.

    A row is identified by its place: 0, 1, 2 … in the order of arrival. Forgotten rows leave their
    places empty; no search finds them. Items are immutable: a change makes new ones, which share
    most of their memory.

    Attributes
    ----------
    labels : csr_array, shape (n_places, q)
        The label sets. Those of forgotten rows are still there, but are not counted.
    metric, search
        As given to the estimator when it was fitted.
    store : VectorStore or None
        Vectors and ids; None if the model was fitted from a graph alone.
    index : Index or None
        The search index; built on the first search.
    asked : int or None
        `n_neighbors` as given.
    graph : NeighborGraph or None
        The neighbors of all rows as found in fit or stored in a file, from which the first change
        makes `lists`; it may have more columns than are read.
    lists : KeptNeighbors or None
        The neighbors of all rows after a change. They are changed in place: they belong to these
        items only if their version is `version`.
    version : int
    grown : GrownCsr or None
        The labels in a form to which rows can be added.
    columns : dict
        The column of each label by name, needed for changes; made on first use.
    lock : ForkSafeLock
        Held during changes; readers never wait for it.
    """

    labels: Csr
    metric: Metric
    search: Any
    store: VectorStore | None
    index: Index | None = None
    asked: int | None = None
    graph: NeighborGraph | None = None
    lists: KeptNeighbors | None = None
    version: int = 0
    grown: GrownCsr | None = None
    columns: dict[int | str, int] = field(default_factory=dict)
    lock: ForkSafeLock = field(default_factory=ForkSafeLock)

    def __getstate__(self) -> dict[str, object]:
        return vars(self).copy()  # a concurrent prediction may cache what it has computed

    def __len__(self) -> int:
        """The number of items; there are more places if some were forgotten."""
        return self._n_rows

    @cached_property
    def _n_rows(self) -> int:
        return self.n_places if self.alive is None else int(np.count_nonzero(self.alive))

    @property
    def alive(self) -> Array | None:
        """Which rows were not forgotten, shape (n_places,); None if none were."""
        return None if self.store is None else self.store.alive

    @property
    def n_places(self) -> int:
        """Rows of `labels` and of the index, forgotten ones included."""
        return int(self.labels.shape[0])

    @property
    def n_labels(self) -> int:
        """Labels."""
        return int(self.labels.shape[1])

    @cached_property
    def places(self) -> Array:
        """The places of the items, in order, shape (n,)."""
        return np.arange(self.n_places) if self.alive is None else np.flatnonzero(self.alive)

    @property
    def vectors(self) -> Matrix:
        """The vectors of all places, or None; those of a mapped file are checked on access."""
        vectors = None if self.store is None else self.store.vectors
        return vectors.checked() if isinstance(vectors, MappedArray) else vectors

    @cached_property
    def totals(self) -> Array:
        """How many items have each label, shape (q,)."""
        return label_totals(self.alive_labels)

    @cached_property
    def alive_labels(self) -> Csr:
        """The label sets without those of forgotten rows, shape (n_places, q)."""
        if self.alive is None:
            return self.labels
        sizes = np.diff(self.labels.indptr)
        stays = np.repeat(self.alive, sizes)
        ends = np.concatenate([[0], np.cumsum(np.where(self.alive, sizes, 0))])
        parts = self.labels.data[stays], self.labels.indices[stays], ends
        return csr_of_known(*parts, self.labels.shape)

    @cached_property
    def by_label(self) -> Csr:
        """Which items have each label; cached, since it takes long with many items."""
        return self.alive_labels.tocsc()

    def compacted(self, k: int) -> Items:
        """The same items as after a fit: without gaps, contiguous, and without an index.

        Of their neighbors, the first k stay, if they are known.
        """
        places, store, known = self.places, self.store, self.known_neighbors(min(k, len(self) - 1))
        if known is not None:
            number = np.full(self.n_places, -1, np.int32)
            number[places] = np.arange(len(places))
            graph = number[known.indices], known.distances.copy(), len(places)
            known = NeighborGraph.unchecked(*graph)
        if store is not None:
            vectors = store.vectors if self.alive is None else store.take(places)
            store = VectorStore(vectors, store.ids[places], next_id=store.next_id)
        items = Items(self.labels[places], self.metric, self.search, store, asked=self.asked)
        items.graph, items.columns, items.lock = known, self.columns, self.lock
        items.totals = self.totals
        return items

    def columns_of(self, names: Array) -> dict[int | str, int]:
        """The column of each label by its name."""
        if len(self.columns) != len(names):
            self.columns = {name: column for column, name in enumerate(names.tolist())}
        return self.columns

    def known_neighbors(self, k: int) -> NeighborGraph | None:
        """The first k neighbors of each item, by place; None if they are not known.

        Valid until the next change.
        """
        if self.lists is not None:
            return self.lists.head() if self.lists.version == self.version else None
        return None if self.graph is None else self.graph.head(k)

    def neighbors_to_change(self, k: int) -> KeptNeighbors | None:
        """The neighbors of each item in a form for changes; None if they are not known."""
        if self.lists is not None:
            return self.lists if self.lists.version == self.version else None
        return None if self.graph is None else KeptNeighbors.of(self.graph, k)

    def prepare_changes(self, k: int) -> None:
        """Do what the first change would do."""
        if self.lists is None:
            self.lists = self.neighbors_to_change(min(k, len(self) - 1))

    @property
    def neighbors_of_a_query(self) -> int:
        """How many neighbors a query has among the current items, as after a fit on them."""
        n = len(self)
        return n if self.asked is None else min(self.asked, n - 1)

    def ids(self, rows: Array) -> Array:
        """The ids of some items."""
        assert self.store is not None
        return np.asarray(self.store.ids[rows])

    def places_of(self, ids: Array) -> Array:
        """The places of the items with these ids; an error names one that does not exist."""
        if self.store is None:
            raise ValueError("this model was fitted from a graph without X and has no ids")
        try:
            return self.store.rows_of(ids)
        except KeyError as error:
            raise ArgumentError(f"ids: {error.args[0]}", "ids") from None

    def checked_places(self, ids: object) -> Array:
        """The same for what a user passes: an id, or several unique ones."""
        if isinstance(ids, Iterable) and not isinstance(ids, str | np.ndarray):
            ids = [*ids]  # a set, the keys of a dict, a generator
        given = np.atleast_1d(np.asarray(ids))
        if given.ndim != 1:
            raise ArgumentError(f"ids must be an id or a list of ids; got {ids!r}", "ids")
        if given.dtype == bool:
            message = "ids must be ids, not a mask of rows: pass model.ids_[mask]"
            raise ArgumentError(message, "ids")
        if given.size and (
            given.dtype.kind not in "iuUO"
            or (given.dtype == object and not all(isinstance(id, str | int) for id in given))
        ):
            raise ArgumentError(f"ids must be integers or strings; got {ids!r}", "ids")
        twice = first_twice(given.tolist())
        if twice is not None:
            raise ArgumentError(f"ids must be unique; got {twice!r} twice", "ids")
        return self.places_of(given)

    def rows_of(self, places: Array) -> tuple[Matrix, Array]:
        """Vectors that include those of `places`, of any shape; and the rows of these."""
        assert self.store is not None
        few, which = np.unique(places, return_inverse=True)
        return self.store.take(few), which.reshape(places.shape)

    def distances(self, X: Matrix, query: Array, place: Array) -> Floats:
        """Canonical distances of the pairs (query[i], place[i])."""
        if is_precomputed(self.metric):
            return pair_distances(self.vectors, self.metric, X, query, place)
        rows, which = self.rows_of(place)
        return pair_distances(rows, self.metric, X, query, which)

    def neighbors(
        self,
        X: Matrix,
        k: int | None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The k nearest items of checked queries; of the items themselves if X is None.

        Beyond `planned_for`, an approximate search makes no promise about its recall.
        """
        n = len(self)
        asked, most = (n, n - 1) if X is None else (X.shape[0], n)
        k = check_integer(k, "n_neighbors", low=1, high=most)
        instead = "rank or predict, which search in blocks"
        check_dense_size("the neighbors of all rows", (asked, k), _BYTES_A_NEIGHBOR, instead)
        planned_for = None if planned_for is None else min(k, planned_for)
        return self.search_index().graph(
            k, X, planned_for=planned_for, n_jobs=n_jobs, progress=progress
        )

    def left_out_neighbors(
        self,
        rows: Array | None,
        k: int,
        *,
        and_spare: bool = False,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The k nearest items of some items, all if None, each left out of its own neighbors.

        There are fewer if there are fewer other items. With `and_spare` and an exact search, there
        is one more: it takes the place of an item that is forgotten, so that few items have to be
        searched again.
        """
        n = len(self)
        asked, k = n if rows is None else len(rows), min(k, n - 1)
        what = "the neighbors of the training rows"
        check_dense_size(what, (asked, k), _BYTES_A_NEIGHBOR, "a smaller n_neighbors")
        index = self.search_index()
        if and_spare and index.is_exact:
            k = min(k + 1, n - 1)
        if rows is None:
            return index.graph(k, n_jobs=n_jobs, progress=progress)
        if not len(rows):
            empty = np.empty((0, k), np.int32), np.empty((0, k))
            return NeighborGraph.unchecked(*empty, self.n_places)
        return index.left_out(rows, k, n_jobs=n_jobs, progress=progress)

    def search_index(self) -> Index:
        """The search index, built now if there is none yet."""
        if self.store is None:
            raise ValueError(
                "this model was fitted from a graph without X and cannot search; "
                "pass X to fit_graph, or use scores_from_graph"
            )
        if self.index is None:
            has_gaps = self.alive is not None
            index = build_index(self.vectors, self.metric, self.search)
            self.index = self._living(index) if has_gaps else index
        return self.index

    @property
    def least_recall(self) -> float:
        """The requested recall of an approximate search."""
        search = self.search if isinstance(self.search, InvertedLists) else InvertedLists()
        return search.recall

    def living_index(self) -> LivingIndex:
        """The index in a form to which rows can be added and from which they can be removed."""
        return self._living(self.search_index())

    def _living(self, index: Index) -> LivingIndex:
        assert self.store is not None
        return LivingIndex.of(index, self.store, self.metric, self.asked)
