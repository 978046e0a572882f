"""Changes of the training rows: adding, forgetting and relabelling, with immediate effect.

A change is made to a copy of the model that nobody else sees: its next state. Counts that a method
has learned are updated by the rows whose neighbors or labels have changed. What cannot be updated
is learned again when it is next used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from nearlabel.common.arrays import Array, Csr, Matrix
from nearlabel.common.growing import GrownCsr
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, check_n_jobs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.count_changes import CountChanges, count_changes
from nearlabel.methods.fitted_model import FittedModel, next_state
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.items import Items, LivingParts
from nearlabel.methods.learned_counts import LearnedCounts, RowChange
from nearlabel.search import HeadChanges, KeptNeighbors, VectorStore, is_precomputed

_MEASURED_EVERY = 10  # recall is measured again when one row in ten has changed
_Model = TypeVar("_Model", bound=FittedModel)


class NextState(Generic[_Model]):
    """The next state of a model: a copy, which nobody else sees while changes are made to it.

    Attributes
    ----------
    model : the copy
    """

    def __init__(self, model: _Model) -> None:
        self.model = next_state(model)

    def add(
        self, X: Matrix, labels: FurtherLabels, ids: object, progress: Progress | None = None
    ) -> None:
        """Have further training rows."""
        before, n_jobs = self._changeable_items(), check_n_jobs(self.model.n_jobs)
        assert before.store is not None
        store = before.store.added(X, ids)
        m, first = labels.matrix.shape[0], before.n_places
        after = self._change_items(_rows(before).added(labels.matrix), labels, store)
        self._change_totals(before, added=labels.matrix)
        self.model.history_ = replace(self.model.history_, added=self.model.history_.added + m)
        if before.index is not None:
            after.index = before.living_index().added(store)
        lists = self._neighbors_to_change(before)
        if lists is None:
            self._learn_without_neighbors(before, progress)
            return
        arrivals = after.living_index().arrivals(
            first, lists.width, lists.limits(), n_jobs=n_jobs, progress=progress
        )
        matrices: tuple[Csr, Csr] = (before.labels, after.labels)
        counts: list[CountChanges] = []

        def count(heads: HeadChanges) -> None:
            counts.extend(count_changes(*heads, *matrices))

        lists.add(arrivals, count, n_jobs=n_jobs)
        self._note_version(lists)
        places, near = np.arange(first, first + m), arrivals.neighbors.indices[:, : lists.k]
        counts += count_changes(places, None, near, *matrices, n_jobs=n_jobs)
        self._follow_or_learn(RowChange(before, after, counts))
        self._measure_recall(m, n_jobs)

    def remove(self, places: Array, progress: Progress | None = None) -> None:
        """Have some training rows no longer."""
        before, n_jobs = self._changeable_items(), check_n_jobs(self.model.n_jobs)
        if len(before) - len(places) < 2:
            message = (
                f"ids has {len(places)} of {len(before)} rows; at least 2 must remain, as neighbors"
            )
            raise ArgumentError(message, "ids")
        assert before.store is not None
        after = self._change_items(_rows(before), store=before.store.removed(places))
        self._change_totals(before, removed=before.labels[places])
        history = self.model.history_
        self.model.history_ = replace(history, forgotten=history.forgotten + len(places))
        if before.index is not None:
            after.index = before.living_index().removed(places)
        lists = self._neighbors_to_change(before)
        if lists is None:
            self._learn_without_neighbors(before, progress)
            return
        index, width, labels = after.living_index(), lists.width, before.labels
        own = lists.head(places).indices.copy()
        heads = lists.remove(
            places, lambda rows: index.left_out(rows, width, n_jobs=n_jobs), n_jobs=n_jobs
        )
        self._note_version(lists)
        counts = [
            *count_changes(*heads, labels, labels, n_jobs=n_jobs),
            *count_changes(places, own, None, labels, labels, n_jobs=n_jobs),
        ]
        self._follow_or_learn(RowChange(before, after, counts))
        self._measure_recall(len(places), n_jobs)

    def replace_labels(
        self, places: Array, labels: FurtherLabels, progress: Progress | None = None
    ) -> None:
        """Have other labels of some training rows."""
        before, n_jobs = self.model.items_, check_n_jobs(self.model.n_jobs)
        after = self._change_items(_rows(before).replaced(places, labels.matrix), labels)
        self._change_totals(before, removed=before.labels[places], added=labels.matrix)
        history = self.model.history_
        self.model.history_ = replace(history, relabelled=history.relabelled + len(places))
        lists = self._neighbors_to_change(before)
        if lists is None:
            self._learn_without_neighbors(before, progress)
            return
        rows = np.union1d(lists.pointing_at(places, n_jobs=n_jobs), places)
        near = lists.head(rows).indices
        counts = count_changes(
            rows, near, near, before.labels, after.labels, relabelled=places, n_jobs=n_jobs
        )
        self._follow_or_learn(RowChange(before, after, counts))

    def learn_again(
        self, *, anew: bool = False, search: bool = False, progress: Progress | None = None
    ) -> None:
        """Learn from all rows.

        What only `refresh` learns, such as centers, stays unless `anew`. Stored neighbors are not
        searched again unless `search`.
        """
        items, n_jobs = self.model.items_, check_n_jobs(self.model.n_jobs)
        n, k = len(items), items.neighbors_of_a_query
        known_k = self.model.n_neighbors_
        self.model.items_, self.model.n_neighbors_ = items.compacted(), k
        self.model.__dict__.pop("_is_outdated", None)
        X = self.model.items_.vectors
        rows = self.model._rows_to_learn_from(self.model.items_.labels, X)
        keeps = rows is None and self.model.keeps_neighbors
        graph, living = items.graph, items.living
        seen = None
        if keeps and k == known_k and not search:
            seen = items.known_neighbors(min(k, n - 1))
        if seen is None:
            where = None if rows is None else items.places[rows]
            seen = items.left_out_neighbors(where, min(k, n - 1), n_jobs=n_jobs, progress=progress)
            self.model.search_recall_ = seen.recall
            graph = seen if keeps and items.alive is None else None
            lists = None
            if keeps and items.alive is not None:
                lists = KeptNeighbors.of(seen, min(k, n - 1), items.alive)
            if living is not None:
                living = replace(living, neighbors=lists, version=0)
        if items.alive is not None:  # number rows as a fit would
            number = np.cumsum(items.alive) - 1
            near = number[seen.indices].astype(seen.indices.dtype)
            seen = NeighborGraph.unchecked(near, seen.distances, n, seen.recall)
        self.model._learn_from(seen, X, rows, n_jobs, None, on=not anew)
        self.model.replace_items(replace(items, graph=graph, living=living))
        self.model.items_.totals = items.totals

    def compact(self) -> None:
        """Drop the places of forgotten rows, and the index, which is then built as after a fit."""
        items = self.model.items_
        store = items.compacted().store
        if store is not None and items.alive is None:  # contiguous already
            store = VectorStore(store.vectors, store.ids, next_id=store.next_id)
        labels = items.labels[items.places]
        graph = items.renumbered_neighbors(self.model.n_neighbors_)
        self.model.replace_items(
            replace(items, labels=labels, store=store, index=None, graph=graph, living=None)
        )
        self.model.items_.totals = items.totals
        for field in self.model.stored:
            if isinstance(field, LearnedCounts):
                field.compact(self.model)

    def _changeable_items(self) -> Items:
        """The items, or an error if rows cannot be added to or removed from them."""
        items = self.model.items_
        if items.store is None:
            raise ValueError(
                "this model was fitted from a graph without X; rows cannot be added or forgotten"
            )
        if is_precomputed(items.metric):
            raise ValueError(
                "metric='precomputed': rows cannot be added to or forgotten from precomputed "
                "distances"
            )
        return items

    def _change_items(
        self,
        rows: GrownCsr,
        labels: FurtherLabels | None = None,
        store: VectorStore | None = None,
    ) -> Items:
        """Have other items, and the names of all labels."""
        items = self.model.items_
        store = items.store if store is None else store
        living = LivingParts(
            rows, unmeasured=0 if items.living is None else items.living.unmeasured
        )
        self.model.replace_items(replace(items, labels=rows.array, store=store, living=living))
        if labels is not None:
            self.model.label_names_, self.model.classes_ = labels.names, labels.classes
        return self.model.items_

    def _change_totals(
        self, before: Items, added: Csr | None = None, removed: Csr | None = None
    ) -> None:
        """Update how many items have each label."""
        totals = np.zeros(self.model.items_.n_labels, np.int64)
        totals[: len(before.totals)] = before.totals
        for labels, sign in ((added, 1), (removed, -1)):
            if labels is not None:
                np.add.at(totals, labels.indices, sign)
        self.model.items_.totals = totals

    def _neighbors_to_change(self, before: Items) -> KeptNeighbors | None:
        """The stored neighbors with which the counts are updated; None if unavailable."""
        k, after = self.model.n_neighbors_, self.model.items_
        if not self.model.keeps_neighbors or after.neighbors_of_a_query != k:
            return None
        lists = before.neighbors_to_change(min(k, len(before) - 1))
        if lists is None or min(len(before), len(after)) <= lists.width + 1:
            return None
        after.graph = None
        self._note_version(lists)
        return lists

    def _note_version(self, lists: KeptNeighbors) -> None:
        """Have the stored neighbors as they are now."""
        assert self.model.items_.living is not None
        self.model.items_.living.neighbors, self.model.items_.living.version = lists, lists.version

    def _learn_without_neighbors(self, before: Items, progress: Progress | None) -> None:
        """Bring up to date a model whose counts need not or cannot be updated."""
        self.model.items_.graph = None  # it does not match the changed rows
        if self.model.needs.counts and self.model.follows():
            self.learn_again(progress=progress)
            return
        self.model.n_neighbors_ = self.model.items_.neighbors_of_a_query
        if self.model.follows():
            self._follow_or_learn(RowChange(before, self.model.items_, None))
        else:
            self.model.__dict__["_is_outdated"] = True

    def _follow_or_learn(self, change: RowChange) -> None:
        """Update what was learned, or learn again if that is impossible."""
        if not self.model._follow(change):
            self.learn_again()

    def _measure_recall(self, changed: int, n_jobs: int) -> None:
        """Measure recall again if a tenth of the rows has changed since it was measured."""
        items, living = self.model.items_, self.model.items_.living
        assert living is not None
        living.unmeasured += changed
        is_due = living.unmeasured * _MEASURED_EVERY >= len(items)
        if self.model.search_recall_ is not None and is_due:
            index = items.living_index().measured(self.model.n_neighbors_, n_jobs=n_jobs)
            items.index, living.unmeasured, self.model.search_recall_ = index, 0, index.recall


def _rows(items: Items) -> GrownCsr:
    """The labels of items in a form to which rows can be added."""
    rows = None if items.living is None else items.living.rows
    return GrownCsr(items.labels) if rows is None else rows


def at_rest(model: _Model) -> _Model:
    """A snapshot of the model, unaffected by later changes from other threads."""
    state, living = next_state(model), model.items_.living
    if living is not None and living.neighbors is not None:
        living = replace(living, neighbors=living.neighbors.copy())
        state.replace_items(replace(state.items_, living=living))
    return state
