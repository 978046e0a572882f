"""What a collection has learned: a living model of its decided items, and its index file.

The store is authoritative; the model is derived and can always be rebuilt. A row of the model is an
item with a decision. Its id in the model is the item's `learned` number, which the store assigns in
increasing order each time an item becomes a row or gets another vector. So rows are in the order of
a fresh fit, and a row whose number differs from the store is out of date. Column l of the labels is
tag number l: ties between scores are ordered by tag, regardless of history, and no name is in the
index file.

An index file holds neighbors, counts and labels. Vectors are read from the store, except where the
search uses lists (`nearlabel.InvertedLists`), which have a copy in the order of the lists.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import sparse

from nearlabel.collection.folder_checks import index_path
from nearlabel.collection.index_file import read_index, said_again, write_index
from nearlabel.collection.learning_methods import estimator, for_rows
from nearlabel.collection.records import FEWEST_UNSAVED, MOST_TAGS, Rows
from nearlabel.collection.tag_answers import State
from nearlabel.common.arrays import Array, Csr, Matrix, csr_of_known
from nearlabel.common.files import NONSENSE, FileError
from nearlabel.common.growing import Grown
from nearlabel.common.progress import Progress
from nearlabel.methods.changes import at_rest
from nearlabel.methods.fitted_model import state_of
from nearlabel.methods.model_trees import model_tree
from nearlabel.methods.verification import Verification
from nearlabel.search import takes_lists

if TYPE_CHECKING:
    from nearlabel.methods.base import NeighborClassifier
    from nearlabel.methods.items import Items
    from nearlabel.search.exact.distances import Metric
    from nearlabel.search.vector_store import VectorStore


class TrainingItems(Protocol):
    """The part of the store that the learner reads."""

    def rows(self, ids: Sequence[int] | None = None) -> Rows:
        """The items with decisions: some by their ids, or all; in their order."""

    def vectors(self, ids: Sequence[int]) -> Matrix:
        """The current vectors of items; zeros for removed items."""

    def tag_names(self, tags: Sequence[int]) -> Mapping[int, str]:
        """The names of tags by their numbers."""


class Learner:
    """The living model of a collection.

    One thread at a time changes it. Each of its states stays as it is, so that others may query it
    meanwhile.

    Parameters
    ----------
    folder : Path
        Where the index files are.
    method : mapping
        The `name` of the method, and its parameters.
    source : TrainingItems

    Attributes
    ----------
    state : State or None
        The current state; None if there are too few rows to learn from.
    unsaved : int
        Rows changed since the index file was written.
    """

    def __init__(self, folder: Path, method: Mapping[str, object], source: TrainingItems) -> None:
        self._folder, self._source = Path(folder), source
        self._method = estimator(method)
        self._model: NeighborClassifier | None = None
        self._items = Grown(np.empty(0, np.int64))
        self.state: State | None = None
        self._fitted_rows = 0  # at the last full fit
        self._behind: set[int] = set()  # items left out of date by a failed change
        self.unsaved = 0

    def __len__(self) -> int:
        """The number of rows of the model; 0 if there are too few to learn from."""
        return 0 if self.state is None else len(self.state.rows)

    @property
    def metric(self) -> Metric:
        """The metric of its method."""
        metric: Metric = self._method.metric
        return metric

    @property
    def _rows(self) -> Items:
        """The rows of the model."""
        assert self._model is not None
        return self._model.items_

    @property
    def _store(self) -> VectorStore:
        """The vectors of the model."""
        assert self._rows.store is not None
        return self._rows.store

    # Following the store.

    def opened(
        self, saved: int | None, digest: str | None = None, *, progress: Progress | None = None
    ) -> list[str]:
        """Load the index file of change `saved`, or learn from all rows.

        Returns messages about what had to be rebuilt. `follow` does the changes since `saved`.
        """
        notes = []
        if saved is not None:
            path = index_path(self._folder, saved)
            try:
                self._load(path, saved, digest)
                return []
            except (OSError, *NONSENSE) as error:
                notes.append(said_again(path, error))
        self.learn_all(progress)
        return notes

    def follow(self, touched: Iterable[int]) -> None:
        """Learn the changes of some items, however many each had."""
        ids = self._behind.union(touched)
        if not ids:
            return
        self._behind = ids
        if not self._followed(np.array(sorted(ids), np.int64)):
            self.learn_all()
        self._behind = set()
        self.unsaved += len(ids)

    def _followed(self, touched: Array) -> bool:
        """Apply the net change of some items, if the model can follow it."""
        model = self._model
        if model is None or len(self._items) != self._rows.n_places:  # it was interrupted
            return False
        items, store = self._rows, self._store
        places = np.flatnonzero(np.isin(self._items.array, touched))
        places = places if items.alive is None else places[items.alive[places]]
        held, rows = items.ids(places), self._source.rows(touched.tolist())
        is_new, is_gone = ~np.isin(rows.learned, held), ~np.isin(held, rows.learned)
        new, known = np.flatnonzero(is_new), np.flatnonzero(~is_new)
        n = len(items) + len(new) - int(np.count_nonzero(is_gone))
        wanted = for_rows(n, self._method)
        if n < 2 or type(model) is not type(wanted) or model.n_neighbors != wanted.n_neighbors:
            return False
        if len(new):
            if rows.learned[new[0]] <= store.ids[-1]:  # rows would be out of order
                return False
            ids, y = rows.ids[new], label_rows(rows, items.labels.shape[1], new)
            model.partial_fit(self._source.vectors(ids.tolist()), y, ids=rows.learned[new])
            self._items = self._items.added(ids)
        if is_gone.any():
            model.forget(held[is_gone])
        if len(known):
            items, order = self._rows, rows.learned[known]
            y = label_rows(rows, items.labels.shape[1], known)
            differ = _differ(items.labels[items.places_of(order)], y)
            if differ.any():
                model.relabel(order[differ], y[differ])
        self._show()
        return True

    def learn_all(self, progress: Progress | None = None) -> None:
        """Learn from all rows; no model if there are fewer than two."""
        rows = self._source.rows(None)
        n = len(rows.ids)
        self._model, self._items = None, Grown(np.asarray(rows.ids, np.int64))
        if n > 1:
            model = for_rows(n, self._method)
            model.n_jobs = -1
            vectors = self._source.vectors(rows.ids.tolist())
            model.fit(vectors, label_rows(rows, 1), ids=rows.learned, progress=progress)
            model.n_jobs = None
            self._model = model
            self._prepare()
        self.unsaved = self._fitted_rows = n
        self._show()

    def _show(self) -> None:
        """Publish the current model to queries."""
        model = self._model
        self.state = None if model is None else State(state_of(model), self._items.array)

    def _prepare(self) -> None:
        """Do the work that the first query and the first change would have to do."""
        assert self._model is not None
        self._rows.search_index().recall(self._model.n_neighbors_)
        self._rows.prepare_changes(self._model.n_neighbors_)

    # The index file.

    def is_worth_saving(self, *, closing: bool = False) -> bool:
        """Whether so much has changed that the next opening would take long without a new file."""
        most = max(FEWEST_UNSAVED, len(self) // 32)
        return self.unsaved > (most // 8 if closing else most)

    def at_rest(self) -> Learner:
        """A learner of the current state to save, whatever this one follows meanwhile."""
        still = copy.copy(self)
        if self._model is not None:
            still._model = at_rest(self._model)
        return still

    def save(self, change: int) -> str | None:
        """Write the index file of the state after a change; None if there is no model.

        Returns its checksum. Forgotten rows are not in the file, but stay in memory until it is
        loaded. If others follow changes meanwhile, call this on a learner `at_rest`.
        """
        if self._model is None:
            return None
        tree = model_tree(self._model)
        if tree["lists"] is None and self._are_for_lists():
            self.learn_all()
            tree = model_tree(self._model)
        present = self._items.array[self._rows.places]
        path = index_path(self._folder, change)
        return write_index(path, change, present, tree, self._fitted_rows)

    def saved(self, still: Learner) -> bool:
        """Record that a state of this learner is in a file; returns whether to load it from there.

        That pays if rows were forgotten, or everything was learned again for the file.
        """
        self.unsaved = max(0, self.unsaved - still.unsaved)
        has_gaps = self._model is not None and self._rows.alive is not None
        return has_gaps or self._fitted_rows != still._fitted_rows

    def compact(self) -> None:
        """Rebuild all rows as a fresh fit would, without gaps of forgotten ones."""
        if self._model is None:
            return
        if self._are_for_lists():
            self.learn_all()
            return
        present = self._items.array[self._rows.places]
        self._model.compact()
        self._items = Grown(present)
        self.unsaved += len(present)
        self._show()

    def _are_for_lists(self) -> bool:
        """Whether a fit would search the rows by lists now, but did not at the last fit.

        Some vectors cannot be searched by lists, however many there are.
        """
        assert self._model is not None
        items, d = self._rows, self._model.n_features_in_
        if items.search != "auto" or sparse.issparse(self._store.take(slice(0, 1))):
            return False
        before, now = (takes_lists((n, d)) for n in (self._fitted_rows, len(items)))
        return now and not before

    def _load(self, path: Path, change: int, digest: str | None) -> None:
        stored = read_index(path, change, digest, self._method, self._source.vectors)
        self._model, self._fitted_rows = stored.model, stored.fitted_rows
        self._items = Grown(stored.items)
        self._prepare()
        self.unsaved = 0
        self._show()

    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Compare the model with the store, and with a full search and count."""
        rows, model = self._source.rows(None), self._model
        if model is None:
            return Verification(0, (), ("the model is missing",) if len(rows.ids) > 1 else ())
        items, differences = self._rows, []
        places = items.places
        if not np.array_equal(self._items.array[places], rows.ids):
            differences.append("the items are not those of the collection")
        elif not np.array_equal(items.ids(places), rows.learned):
            differences.append("the items are not in the order of the collection")
        else:
            if _differ(items.labels[places], label_rows(rows, items.labels.shape[1])).any():
                differences.append("the tags are not those of the collection")
            if self._other_vectors(rows.ids, places):
                differences.append("the vectors are not those of the collection")
        check = model.verify(progress=progress)
        compared = ("items", "tags", *check.compared)
        return Verification(len(items), compared, (*differences, *check.differences))

    def _other_vectors(self, ids: Array, places: Array) -> bool:
        """Whether a vector of the model differs from that of its item."""
        store = self._store
        step = 2**14
        for start in range(0, len(ids), step):
            rows = slice(start, start + step)
            own, stored = store.take(places[rows]), self._source.vectors(ids[rows].tolist())
            is_same = (own != stored).nnz == 0 if sparse.issparse(own) else (own == stored).all()
            if not is_same:
                return True
        return False


def label_rows(rows: Rows, n_columns: int, which: Array | None = None) -> Csr:
    """The tags of some rows, all by default, as a 0/1 matrix: column l for tag number l."""
    starts, ends = rows.indptr[:-1], rows.indptr[1:]
    if which is not None:
        starts, ends = starts[which], ends[which]
    sizes = ends - starts
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    columns = rows.tags[np.repeat(starts - indptr[:-1], sizes) + np.arange(indptr[-1])]
    q = max(n_columns, int(columns.max(initial=0)) + 1)
    if q > MOST_TAGS or columns.min(initial=0) < 0:
        raise FileError(f"is damaged: tag numbers must be from 0 to {MOST_TAGS - 1:,}")
    shape = len(sizes), q
    return csr_of_known(np.ones(len(columns), np.int8), columns, indptr, shape)


def _differ(before: Csr, after: Csr) -> Array:
    """Which rows of two label matrices differ; the second may have more columns."""
    if before.shape[1] < after.shape[1]:
        before = before.copy()
        before.resize(after.shape)
    return np.asarray(abs(before - after).sum(axis=1)).ravel() > 0
