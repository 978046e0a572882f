"""Changes of the training rows: adding, forgetting and relabelling, with immediate effect.

Each function takes a model and returns its next state; the model itself is unchanged. Counts that a
method has learned are updated by the rows whose neighbors or labels have changed. What cannot be
updated is learned again when it is next used.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, check_n_jobs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.count_changes import CountChanges, count_changes
from nearlabel.labels.label_rows import LabelRows
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.items import Items
from nearlabel.methods.learned_counts import LearnedCounts
from nearlabel.methods.states import next_state
from nearlabel.search import (
    HeadChanges,
    KeptNeighbors,
    VectorStore,
    is_plugged,
    is_precomputed,
)

_MEASURED_EVERY = 10  # recall is measured again when one row in ten has changed
_NOWHERE = np.empty(0, np.int64)


@dataclass(frozen=True)
class History:
    """How many rows were added, forgotten and relabelled since a model was fitted."""

    added: int = 0
    forgotten: int = 0
    relabelled: int = 0

    def tree(self) -> dict[str, int]:
        """The counts as plain values."""
        return asdict(self)


class Change(NamedTuple):
    """A change of the training rows, as a method sees it.

    Attributes
    ----------
    before, after : Items
        The items before the change, and those of the model now.
    counts : list of CountChanges or None
        Changes of the training rows by label and number of neighbors with it, for a method that
        needs counts.
    """

    before: Items
    after: Items
    counts: list[CountChanges] | None

    @property
    def stayed(self) -> Array:
        """Which of the items before are still there, in the order of arrival."""
        alive = self.after.alive
        return np.ones(len(self.before), bool) if alive is None else alive[self.before.places]


def add(
    model: Any, X: Any, labels: FurtherLabels, ids: Any, progress: Progress | None = None
) -> Any:
    """The model with further training rows."""
    before = _searchable(model)
    assert before.store is not None
    store = before.store.added(X, ids)
    rows = before.label_rows.added(labels.matrix)
    m, first = labels.matrix.shape[0], before.n_places
    after = _items(before, rows, store=store)
    _note_totals(after, before, labels.matrix, +1)
    new = _named(model, after, labels)
    new.history_ = replace(model.history_, added=model.history_.added + m)
    n_jobs = check_n_jobs(model.n_jobs)
    if before.index is not None:
        after.index = before.living_index().added(store)
    kept = _followed_by(new, before)
    if kept is None:
        return _not_followed(new, before, progress)
    arrivals = after.living_index().arrivals(
        first, kept.width, kept.limits(), n_jobs=n_jobs, progress=progress
    )
    both: tuple[Csr, Csr] = (before.labels, after.labels)
    counts: list[CountChanges] = []

    def count(heads: HeadChanges) -> None:
        counts.extend(count_changes(*heads, *both, relabelled=_NOWHERE))

    kept.add(arrivals, count, n_jobs=n_jobs)
    after.version = kept.version
    places, near = np.arange(first, first + m), arrivals.neighbors.indices[:, : kept.k]
    counts += count_changes(places, None, near, *both, n_jobs=n_jobs)
    return _measured(_follow(new, Change(before, after, counts)), m, n_jobs)


def forget(model: Any, places: Array, progress: Progress | None = None) -> Any:
    """The model without some of its training rows."""
    before = _searchable(model)
    if len(before) - len(places) < 2:
        message = (
            f"ids has {len(places)} of {len(before)} rows; at least 2 must remain, as neighbors"
        )
        raise ArgumentError(message, "ids")
    assert before.store is not None
    after = _items(before, before.label_rows, store=before.store.removed(places))
    _note_totals(after, before, before.labels[places], -1)
    new = _named(model, after)
    history = model.history_
    new.history_ = replace(history, forgotten=history.forgotten + len(places))
    n_jobs = check_n_jobs(model.n_jobs)
    if before.index is not None:
        after.index = before.living_index().removed(places)
    kept = _followed_by(new, before)
    if kept is None:
        return _not_followed(new, before, progress)
    index, width = after.living_index(), kept.width
    own = kept.head(places).indices.copy()
    heads = kept.remove(
        places, lambda rows: index.left_out(rows, width, n_jobs=n_jobs), n_jobs=n_jobs
    )
    after.version = kept.version
    labels = before.labels
    counts = [
        *count_changes(*heads, labels, labels, n_jobs=n_jobs),
        *count_changes(places, own, None, labels, labels, n_jobs=n_jobs),
    ]
    return _measured(_follow(new, Change(before, after, counts)), len(places), n_jobs)


def relabel(
    model: Any, places: Array, labels: FurtherLabels, progress: Progress | None = None
) -> Any:
    """The model with other labels of some of its training rows."""
    before: Items = model._items
    after = _items(before, before.label_rows.replaced(places, labels.matrix))
    _note_totals(after, before, before.labels[places], -1, labels.matrix, +1)
    new = _named(model, after, labels)
    history = model.history_
    new.history_ = replace(history, relabelled=history.relabelled + len(places))
    n_jobs = check_n_jobs(model.n_jobs)
    kept = _followed_by(new, before)
    if kept is None:
        return _not_followed(new, before, progress)
    rows = np.union1d(kept.pointing_at(places, n_jobs=n_jobs), places)
    near = kept.head(rows).indices
    counts = count_changes(
        rows, near, near, before.labels, after.labels, relabelled=places, n_jobs=n_jobs
    )
    return _follow(new, Change(before, after, counts))


def learn_again(
    model: Any, *, anew: bool = False, search: bool = False, progress: Progress | None = None
) -> Any:
    """The model after learning from all of its rows.

    What only `refresh` learns, such as centers, stays unless `anew`. Stored neighbors are not
    searched again unless `search`.
    """
    items: Items = model._items
    new, n_jobs = next_state(model), check_n_jobs(model.n_jobs)
    new.__dict__.pop("_is_outdated", None)
    learner = next_state(new)
    learner._items = compact = items.compacted()
    learner.n_neighbors_ = k = _neighbors_among(items)
    n = len(items)
    rows = learner._rows_to_learn_from(compact.labels, compact.vectors)
    keeps = keeps_neighbors(model, items) and rows is None
    is_known = keeps and k == model.n_neighbors_ and not search
    seen = items.known_neighbors(min(k, n - 1)) if is_known else None
    known: dict[str, Any] = {"graph": items.graph, "kept": items.kept, "version": items.version}
    if seen is None:
        where = None if rows is None else items.places[rows]
        seen = items.left_out_neighbors(where, min(k, n - 1), n_jobs=n_jobs, progress=progress)
        new.search_recall_ = seen.recall
        known = {"graph": None, "kept": None, "version": 0}
        if keeps and items.alive is None:
            known["graph"] = seen
        elif keeps:
            known["kept"] = KeptNeighbors.of(seen, min(k, n - 1), items.alive)
    if items.alive is not None:  # number rows as a fit would
        number = np.cumsum(items.alive) - 1
        near = number[seen.indices].astype(seen.indices.dtype)
        seen = NeighborGraph.unchecked(near, seen.distances, n, seen.recall)
    learner._learn_from(seen, rows, n_jobs, None, on=not anew)
    own = ("_items", "search_recall_")
    new.__dict__.update({name: value for name, value in vars(learner).items() if name not in own})
    after = _items(items, items.label_rows, **known)
    after.__dict__["totals"] = items.totals
    new._have(after)
    return new


def compacted(model: Any) -> Any:
    """The model without the places of forgotten rows, and with its index as after a fit."""
    items: Items = model._items
    new, store = next_state(model), items.compacted().store
    if store is not None and items.alive is None:  # contiguous already
        store = VectorStore(store.vectors, store.ids, next_id=store.next_id)
    after = replace(
        items,
        labels=items.labels[items.places],
        rows=None,
        store=store,
        index=None,
        graph=_renumbered(items, model.n_neighbors_),
        kept=None,
        version=0,
    )
    after.__dict__["totals"] = items.totals
    new._have(after)
    for field in new.stored:
        if isinstance(field, LearnedCounts):
            field.compact(new)
    return new


def searching_with(model: Any, search: Any) -> Any:
    """The model with another way to search its rows."""
    new = next_state(model)
    new._have(replace(model._items, search=search, index=None))
    return new


def at_rest(model: Any) -> Any:
    """A snapshot of the model, unaffected by later changes from other threads."""
    items: Items = model._items
    state = next_state(model)
    if items.kept is not None:
        state._have(replace(items, kept=items.kept.copy()))
    return state


def in_one_piece(model: Any) -> Any:
    """The model as saved to a file: without forgotten rows, and with contiguous rows."""
    items: Items = model._items
    if items.rows is not None or items.alive is not None:
        return compacted(model)
    return model


def keeps_neighbors(model: Any, items: Items) -> bool:
    """Whether a model updates its counts after changes, for which it stores all neighbors.

    Not with an external search, which may not find spare neighbors.
    """
    return bool(model.needs.counts and follows(model) and not is_plugged(items.search))


def follows(model: Any) -> bool:
    """Whether what a model has learned, if anything, is updated after a change of the rows."""
    from nearlabel.methods.base import NeighborClassifier  # circular at module level

    has_hook = type(model)._follow is not NeighborClassifier._follow
    return has_hook or all(isinstance(field, LearnedCounts) for field in model.stored)


def _searchable(model: Any) -> Items:
    """The items of a model, or an error if its rows cannot change."""
    items: Items = model._items
    if items.store is None:
        raise ValueError(
            "this model was fitted from a graph without X; rows cannot be added or forgotten"
        )
    if is_precomputed(items.metric):
        raise ValueError(
            "metric='precomputed': rows cannot be added to or forgotten from precomputed distances"
        )
    return items


def _items(before: Items, rows: LabelRows, **changed: Any) -> Items:
    return replace(before, labels=rows.matrix, rows=rows, **changed)


def _note_totals(after: Items, before: Items, *changes: Any) -> None:
    """Update how many items have each label: `changes` are label sets, each with a sign."""
    totals = np.zeros(after.labels.shape[1], np.int64)
    totals[: len(before.totals)] = before.totals
    for labels, sign in zip(changes[::2], changes[1::2], strict=True):
        np.add.at(totals, labels.indices, sign)
    after.__dict__["totals"] = totals


def _named(model: Any, after: Items, labels: FurtherLabels | None = None) -> Any:
    """The next state of a model, with other items and the names of all labels."""
    new = next_state(model)
    new._have(after)
    if labels is not None:
        new.label_names_, new.classes_ = labels.names, labels.classes
    return new


def _followed_by(new: Any, before: Items) -> KeptNeighbors | None:
    """The stored neighbors with which the counts of a model are updated; None if unavailable."""
    k, after = new.n_neighbors_, new._items
    if not keeps_neighbors(new, after) or _neighbors_among(after) != k:
        return None
    kept = before.neighbors_to_change(min(k, len(before) - 1))
    if kept is None or min(len(before), len(after)) <= kept.width + 1:
        return None
    after.graph, after.kept, after.version = None, kept, kept.version
    return kept


def _neighbors_among(items: Items) -> int:
    """Neighbors of a query among the current items."""
    n = len(items)
    if items.asked is None:
        return n
    return min(items.asked, n - 1)


def _not_followed(new: Any, before: Items, progress: Progress | None) -> Any:
    """The next state of a model whose counts need not or cannot be updated."""
    new._items.graph = new._items.kept = None  # they do not match the changed rows
    if new.needs.counts and follows(new):
        return learn_again(new, progress=progress)
    new.n_neighbors_ = _neighbors_among(new._items)
    if follows(new):
        return _follow(new, Change(before, new._items, None))
    new._is_outdated = True
    return new


def _follow(new: Any, change: Change) -> Any:
    """The next state of a model, updated after a change, or fitted again if that is impossible."""
    return new if new._follow(change) else learn_again(new)


def _measured(new: Any, changed: int, n_jobs: int) -> Any:
    """Measure recall again if a tenth of the rows has changed since it was measured."""
    items: Items = new._items
    items.unmeasured += changed
    if new.search_recall_ is not None and items.unmeasured * _MEASURED_EVERY >= len(items):
        index = items.living_index().measured(new.n_neighbors_, n_jobs=n_jobs)
        items.index, items.unmeasured, new.search_recall_ = index, 0, index.recall
    return new


def _renumbered(items: Items, k: int) -> NeighborGraph | None:
    """The known neighbors of all items, numbered without the places of forgotten ones."""
    known = items.known_neighbors(min(k, len(items) - 1))
    if known is None:
        return None
    number = np.full(items.n_places, -1, np.int32)
    number[items.places] = np.arange(len(items))
    return NeighborGraph.unchecked(number[known.indices], known.distances.copy(), len(items))
