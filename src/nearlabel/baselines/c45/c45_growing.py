"""C4.5 grows a tree of nodes, top down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nearlabel.baselines.c45.c45_columns import Columns, Entries
from nearlabel.baselines.c45.c45_criteria import TOLERANCE, majority
from nearlabel.baselines.c45.c45_splits import Split, best_split
from nearlabel.common.arrays import Array, Floats


class Sample(NamedTuple):
    """Rows with weights: a row whose value is missing goes down several branches in parts."""

    rows: Array
    weights: Floats


@dataclass(eq=False, slots=True)
class Node:
    """A node that is still being worked on; a leaf where it has no split."""

    sample: Sample
    counts: Floats  # (C,): weights of the classes
    split: Split | None = None
    children: list[Node] = field(default_factory=list)
    estimate: float = 0.0  # errors to expect of new rows, while it is pruned

    def cut_off(self) -> None:
        """Become a leaf."""
        self.split, self.children = None, []


class Training(NamedTuple):
    """Training rows with classes 0 to C - 1, and what the tree is grown by."""

    columns: Columns
    entries: Entries
    classes: Array
    n_classes: int
    min_leaf: int
    actual_cuts: bool

    def counts(self, sample: Sample) -> Floats:
        """Weights of the classes of rows."""
        counts: Any = np.bincount(self.classes[sample.rows], sample.weights, self.n_classes)
        return np.asarray(counts, np.float64)  # NumPy counts no rows in integers

    def parts(self, split: Split, sample: Sample) -> list[Sample]:
        """The rows of each branch of a split."""
        taken = self.columns.branches(*split, sample.rows)
        size = int(self.columns.n_values[split.feature]) or 2
        order = np.argsort(taken, kind="stable")
        ends = np.cumsum(np.bincount(taken + 1, minlength=size + 1))
        gaps, *known = np.split(order, ends[:-1])
        parts = [Sample(sample.rows[at], sample.weights[at]) for at in known]
        if not len(gaps):
            return parts
        total = np.array([part.weights.sum() for part in parts])
        share = total / total.sum() if total.sum() >= TOLERANCE else np.full(size, 1 / size)
        gap_rows, gap_weights = sample.rows[gaps], sample.weights[gaps]
        return [
            Sample(
                np.concatenate([part.rows, gap_rows]),
                np.concatenate([part.weights, gap_weights * own]),
            )
            if own > TOLERANCE
            else part
            for part, own in zip(parts, share, strict=True)
        ]

    def node(self, sample: Sample) -> Node:
        """A leaf of rows."""
        return Node(sample, self.counts(sample))


def grown_tree(training: Training) -> Node:
    """The whole tree, neither collapsed nor pruned."""
    n = training.columns.n
    root = training.node(Sample(np.arange(n), np.ones(n)))
    waiting = [(root, training.entries)]
    while waiting:
        node, entries = waiting.pop()
        if _is_done(node, training.min_leaf):
            continue
        entries = _varying(entries, training.columns.d)
        of_class = np.zeros((training.n_classes, n + 1))
        of_class[training.classes[node.sample.rows], node.sample.rows] = node.sample.weights
        split = best_split(
            entries,
            of_class,
            node.counts,
            len(node.sample.rows),
            training.columns.n_values,
            training.min_leaf,
        )
        if split is None:
            continue
        if training.actual_cuts and not np.isnan(split.cut):
            split = split._replace(cut=training.entries.largest_value(*split))
        node.split = split
        node.children = [training.node(part) for part in training.parts(split, node.sample)]
        for child in node.children:
            if not _is_done(child, training.min_leaf):
                is_inside = np.zeros(n + 1, bool)
                is_inside[child.sample.rows] = is_inside[n] = True
                waiting.append((child, entries.of_rows(is_inside)))
    return root


def _is_done(node: Node, min_leaf: int) -> bool:
    """Whether a node is too small to be split, or of one class."""
    total = float(node.counts.sum())
    return (
        total < 2 * min_leaf - TOLERANCE
        or abs(total - node.counts[majority(node.counts)]) < TOLERANCE
    )


def _varying(entries: Entries, d: int) -> Entries:
    """The entries of columns with two values at least: the others cannot split any node below."""
    is_wanted = np.zeros(d, bool)
    changes = (entries.column[1:] == entries.column[:-1]) & (entries.value[1:] > entries.value[:-1])
    is_wanted[entries.column[1:][changes]] = True
    return entries.of_columns(is_wanted)
