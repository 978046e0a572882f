"""Counts of training rows that methods learn: in files, and after changes of the rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Tree, canonical_csr
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import check_n_jobs
from nearlabel.labels.count_changes import CountChanges
from nearlabel.labels.counts import group_totals
from nearlabel.labels.histograms import CountedRows, LabelHistograms
from nearlabel.labels.living_histograms import LivingHistograms
from nearlabel.methods.fields import Field, stored_array
from nearlabel.methods.items import Items


class RowChange(NamedTuple):
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


@dataclass(frozen=True)
class LearnedCounts(Field):
    """Counts of all training rows: after a change, only the rows that it concerns are counted."""

    @abstractmethod
    def follow(self, model: Any, change: RowChange) -> None:
        """Bring the counts up to date after a change of the training rows."""

    def compact(self, model: object) -> None:
        """Bring the counts into the form in which they were learned."""


@dataclass(frozen=True)
class Histograms(LearnedCounts):
    """Rows by label and number of neighbors: a table, or one per cluster.

    `clusters` is the attribute with the cluster of each row, from 0 up; empty for one table.
    """

    key: str = "with_label"
    attribute: str = "_counted"
    clusters: str | None = None

    def write(self, model: object, learned: Tree) -> None:
        counted = getattr(model, self.attribute).compacted()
        learned["with_label"] = counted.with_label
        learned["without_label"] = counted.without_label

    def read(self, model: Any, learned: Tree, sizes: dict[str, int]) -> None:
        cells = [stored_array(learned[key], key, "i", 1) for key in ("with_label", "without_label")]
        if any(part.size and part.min() < 0 for part in cells):
            raise ValueError("its counts must not be negative")
        group, groups = None, 1
        if self.clusters is not None:
            group, groups = getattr(model, self.clusters), sizes["m"]
        k = min(model.n_neighbors_, sizes["n"] - 1)
        totals = group_totals(model.items_.labels, group, groups)
        counted = LabelHistograms.of_totals(*totals, k, (cells[0], cells[1]))
        setattr(model, self.attribute, counted)

    def follow(self, model: Any, change: RowChange) -> None:
        assert change.counts is not None
        tables = living(getattr(model, self.attribute), model.n_neighbors_)
        n, n_jobs = np.array([len(change.after)]), check_n_jobs(model.n_jobs)
        changed = tables.changed(change.counts, n, change.after.n_labels, n_jobs=n_jobs)
        setattr(model, self.attribute, changed)

    def compact(self, model: object) -> None:
        setattr(model, self.attribute, getattr(model, self.attribute).compacted())


@dataclass(frozen=True)
class NeighborCounts(LearnedCounts):
    """How many neighbors of each training row have each label, a sparse matrix."""

    key: str = "counts"
    attribute: str = "_counts"

    def write(self, model: object, learned: Tree) -> None:
        learned[self.key] = csr_tree(getattr(model, self.attribute))

    def read(self, model: Any, learned: Tree, sizes: dict[str, int]) -> None:
        counts = csr_from(learned[self.key], self.key)
        if counts.shape != (sizes["n"], sizes["q"]):
            raise ValueError("its counts do not match its labels")
        most = np.minimum(model.items_.totals, model.n_neighbors_)
        wrong = (counts.data < 1) | (counts.data > most[counts.indices])
        if counts.dtype.kind != "i" or np.any(wrong):
            raise ValueError("its counts must be integers from 1 to the number of neighbors")
        setattr(model, self.attribute, counts.astype(np.int32))

    def follow(self, model: Any, change: RowChange) -> None:
        assert change.counts is not None
        after, changes = change.after, CountChanges.joined(change.counts)
        number = np.full(after.n_places, -1)
        number[after.places] = np.arange(len(after))
        row = number[changes.row]
        is_alive = row >= 0
        entries = (changes.count * changes.change)[is_alive]
        places = row[is_alive], changes.label[is_alive]
        counts = getattr(model, self.attribute)[change.stayed]
        counts.resize(len(after), after.n_labels)
        counts = canonical_csr(counts + sparse.csr_array((entries, places), shape=counts.shape))
        counts.eliminate_zeros()
        setattr(model, self.attribute, counts.astype(np.int32))


def living(counted: CountedRows, k: int) -> LivingHistograms:
    """Tables of rows with k neighbors, in the form from which changed ones are made."""
    if isinstance(counted, LabelHistograms):
        return LivingHistograms.of(counted, counted.q, k, counted.groups)
    assert isinstance(counted, LivingHistograms)
    return counted
