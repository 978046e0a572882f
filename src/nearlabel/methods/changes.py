"""Changes of the training rows: adding, forgetting and relabelling, with immediate effect.

A change is made to a copy of the model that nobody else sees: its next state. Counts that a method
has learned are updated by the rows whose neighbors or labels have changed. What cannot be updated
is learned again when it is next used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.growing import GrownCsr
from nearlabel.common.progress import Progress
from nearlabel.common.validation import ArgumentError, LabelClasses, check_n_jobs, label_classes
from nearlabel.graph import NeighborGraph
from nearlabel.labels.count_changes import CountChanges, count_changes
from nearlabel.methods.fitted_model import (
    FittedModel,
    Training,
    follows_changes,
    keeps_neighbors,
    next_state,
)
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.items import Items
from nearlabel.methods.learned_counts import LearnedCounts, RowChange
from nearlabel.search import HeadChanges, KeptNeighbors, VectorStore, is_precomputed

_Model = TypeVar("_Model", bound=FittedModel)


def with_rows(
    model: _Model,
    X: Matrix,
    labels: FurtherLabels,
    ids: object,
    progress: Progress | None = None,
) -> _Model:
    """A model with further training rows."""
    before, store, n_jobs = model.items_, _changeable_rows(model), check_n_jobs(model.n_jobs)
    m, first, store = labels.matrix.shape[0], before.n_places, store.added(X, ids)
    grown = (before.grown or GrownCsr(before.labels)).added(labels.matrix)
    model = _with_items(model, grown, store, added=labels)
    model.history_ = replace(model.history_, added=model.history_.added + m)
    after = model.items_
    if before.index is not None:
        after.index = before.living_index().over(store)
    lists = _neighbors_to_change(model, before)
    if lists is None:
        return _without_neighbors(model, before, progress)
    arrivals = after.living_index().arrivals(
        first, lists.width, lists.limits(), n_jobs=n_jobs, progress=progress
    )
    counts: list[CountChanges] = []

    def count(heads: HeadChanges) -> None:
        counts.extend(count_changes(*heads, before.labels, after.labels))

    lists.add(arrivals, count, n_jobs=n_jobs)
    places, near = np.arange(first, first + m), arrivals.neighbors.indices[:, : lists.k]
    counts += count_changes(places, None, near, before.labels, after.labels, n_jobs=n_jobs)
    return _following(model, lists, RowChange(before, after, counts))


def without_rows(model: _Model, places: Array, progress: Progress | None = None) -> _Model:
    """A model without some of its training rows."""
    before, store, n_jobs = model.items_, _changeable_rows(model), check_n_jobs(model.n_jobs)
    if len(before) - len(places) < 2:
        message = (
            f"ids has {len(places)} of {len(before)} rows; at least 2 must remain, as neighbors"
        )
        raise ArgumentError(message, "ids")
    store = store.removed(places)
    model = _with_items(model, before.grown, store, removed=places)
    history = model.history_
    model.history_ = replace(history, forgotten=history.forgotten + len(places))
    after, labels = model.items_, before.labels
    if before.index is not None:
        after.index = before.living_index().over(store)
    lists = _neighbors_to_change(model, before)
    if lists is None:
        return _without_neighbors(model, before, progress)
    index, width, own = after.living_index(), lists.width, lists.head(places).indices.copy()
    heads = lists.remove(
        places, lambda rows: index.left_out(rows, width, n_jobs=n_jobs), n_jobs=n_jobs
    )
    counts = [
        *count_changes(*heads, labels, labels, n_jobs=n_jobs),
        *count_changes(places, own, None, labels, labels, n_jobs=n_jobs),
    ]
    return _following(model, lists, RowChange(before, after, counts))


def with_labels(
    model: _Model, places: Array, labels: FurtherLabels, progress: Progress | None = None
) -> _Model:
    """A model with other labels of some training rows."""
    before, n_jobs = model.items_, check_n_jobs(model.n_jobs)
    grown = (before.grown or GrownCsr(before.labels)).replaced(places, labels.matrix)
    model = _with_items(model, grown, before.store, added=labels, removed=places)
    history, after = model.history_, model.items_
    model.history_ = replace(history, relabelled=history.relabelled + len(places))
    lists = _neighbors_to_change(model, before)
    if lists is None:
        return _without_neighbors(model, before, progress)
    pointing = np.union1d(lists.pointing_at(places, n_jobs=n_jobs), places)
    near = lists.head(pointing).indices
    counts = count_changes(
        pointing, near, near, before.labels, after.labels, relabelled=places, n_jobs=n_jobs
    )
    return _following(model, lists, RowChange(before, after, counts))


def learned_again(
    model: _Model,
    *,
    anew: bool = False,
    search: bool = False,
    progress: Progress | None = None,
) -> _Model:
    """A model that has learned from all rows again.

    What only `refresh` learns, such as centers, stays unless `anew`. Stored neighbors are not
    searched again unless `search`.
    """
    model = next_state(model)
    items, n_jobs = model.items_, check_n_jobs(model.n_jobs)
    n, k, known_k = len(items), items.neighbors_of_a_query, model.n_neighbors_
    alive = items.alive
    model.items_, model.n_neighbors_ = items if alive is None else items.compacted(k), k
    model.__dict__.pop("_is_outdated", None)
    X = model.items_.vectors
    rows = model._rows_to_learn_from(model.items_.labels, X)
    keeps = rows is None and keeps_neighbors(model)
    seen = items.known_neighbors(min(k, n - 1)) if keeps and k == known_k and not search else None
    if seen is None:
        where = None if rows is None else items.places[rows]
        seen = items.left_out_neighbors(where, k, n_jobs=n_jobs, progress=progress)
        model.search_recall_ = seen.recall
        graph = lists = None
        if keeps and alive is None:
            graph = seen
        elif keeps:
            lists = KeptNeighbors.of(seen, min(k, n - 1), alive)
        totals = items.totals
        items = replace(items, graph=graph, lists=lists, version=0)
        items.totals = totals
    if alive is not None:  # number rows as a fit would
        number = np.cumsum(alive) - 1
        near = number[seen.indices].astype(seen.indices.dtype)
        seen = NeighborGraph.unchecked(near, seen.distances, n, seen.recall)
    training = Training(seen, model.items_.labels, X, rows, n_jobs, None)
    model._learn_from(training, on=not anew)
    model._replace_items(items)
    return model


def compacted(model: _Model) -> _Model:
    """A model without the places of forgotten rows, and without its index.

    The index is then built as after a fit.
    """
    model = next_state(model)
    model._replace_items(model.items_.compacted(model.n_neighbors_))
    for field in model.stored:
        if isinstance(field, LearnedCounts):
            field.compact(model)
    return model


def at_rest(model: _Model) -> _Model:
    """A snapshot of the model, unaffected by later changes from other threads."""
    state, lists = next_state(model), model.items_.lists
    if lists is not None:
        state._replace_items(replace(state.items_, lists=lists.copy()))
    return state


def _changeable_rows(model: FittedModel) -> VectorStore:
    """The vectors and ids, or an error if rows cannot be added or removed."""
    items = model.items_
    if items.store is None:
        raise ValueError(
            "this model was fitted from a graph without X; rows cannot be added or forgotten"
        )
    if is_precomputed(items.metric):
        raise ValueError(
            "metric='precomputed': rows cannot be added to or forgotten from precomputed distances"
        )
    return items.store


def _with_items(
    model: _Model,
    grown: GrownCsr | None,
    store: VectorStore | None,
    *,
    added: FurtherLabels | None = None,
    removed: Array | None = None,
) -> _Model:
    """A model with other items, from which it has not learned yet.

    It counts how many items have each label from the labels that were `added`, and the places of
    which labels were `removed`.
    """
    model, before = next_state(model), model.items_
    labels = before.labels if grown is None else grown.array
    after = replace(before, labels=labels, store=store, grown=grown, lists=None, version=0)
    model._replace_items(after)
    totals = np.zeros(model.items_.n_labels, np.int64)
    totals[: len(before.totals)] = before.totals
    if added is not None:
        np.add.at(totals, added.matrix.indices, 1)
        model.label_names_ = added.names
        if isinstance(model.classes_, LabelClasses):
            model.classes_ = label_classes(len(totals))
    if removed is not None:
        np.subtract.at(totals, before.labels[removed].indices, 1)
    model.items_.totals = totals
    return model


def _neighbors_to_change(model: FittedModel, before: Items) -> KeptNeighbors | None:
    """The stored neighbors with which the counts are updated; None if unavailable."""
    k, after = model.n_neighbors_, model.items_
    if not keeps_neighbors(model) or after.neighbors_of_a_query != k:
        return None
    lists = before.neighbors_to_change(min(k, len(before) - 1))
    if lists is None or min(len(before), len(after)) <= lists.width + 1:
        return None
    after.graph = None
    return lists


def _without_neighbors(model: _Model, before: Items, progress: Progress | None) -> _Model:
    """A model with changed items, whose counts need not or cannot be updated."""
    model.items_.graph = None  # it does not match the changed rows
    if model.needs.counts and follows_changes(model):
        return learned_again(model, progress=progress)
    model.n_neighbors_ = model.items_.neighbors_of_a_query
    if not follows_changes(model):
        model.__dict__["_is_outdated"] = True
    elif not model._follow(RowChange(before, model.items_, None)):
        return learned_again(model)
    return model


def _following(model: _Model, lists: KeptNeighbors, change: RowChange) -> _Model:
    """A model with changed items and neighbors, after its counts are updated."""
    items = model.items_
    items.lists, items.version = lists, lists.version
    if not model._follow(change):
        model = learned_again(model)
    before, after = change.before.index, model.items_.index
    if before is not None and after is not None and after is not before:
        recall = after.recall(model.n_neighbors_)
        if recall != before.recall(model.n_neighbors_):  # measured again
            model.search_recall_ = recall
    return model
