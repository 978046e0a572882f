"""C4.5 grows a tree of nodes top down, and prunes it bottom up by estimates of errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nearlabel.baselines.c45_splits import (
    TOLERANCE,
    Columns,
    Entries,
    Split,
    best_split,
    errors,
    estimated_errors,
    majority,
)
from nearlabel.common.arrays import Array, Floats

_MARGIN = 0.1  # by which a smaller tree may be worse


class WeightedRows(NamedTuple):
    """Rows with weights: a row whose value is missing goes down several branches in parts."""

    rows: Array
    weights: Floats


@dataclass(eq=False, slots=True)
class Node:
    """A node that is still being worked on; a leaf where it has no split."""

    sample: WeightedRows
    counts: Floats  # (C,): weights of the classes
    split: Split | None = None
    children: list[Node] = field(default_factory=list)
    estimate: float = 0.0  # errors to expect of new rows, while it is pruned

    def cut_off(self) -> None:
        """Become a leaf."""
        self.split, self.children = None, []


class GrowingData(NamedTuple):
    """Training rows with classes 0 to C - 1, and what the tree is grown by."""

    columns: Columns
    entries: Entries
    classes: Array
    n_classes: int
    min_leaf: int
    actual_cuts: bool

    def counts(self, sample: WeightedRows) -> Floats:
        """Weights of the classes of rows."""
        counts = np.bincount(self.classes[sample.rows], sample.weights, self.n_classes)
        return np.asarray(counts, np.float64)  # NumPy counts no rows in integers

    def parts(self, split: Split, sample: WeightedRows) -> list[WeightedRows]:
        """The rows of each branch of a split."""
        taken = self.columns.branches(*split, sample.rows)
        size = int(self.columns.n_values[split.feature]) or 2
        order = np.argsort(taken, kind="stable")
        ends = np.cumsum(np.bincount(taken + 1, minlength=size + 1))
        gaps, *known = np.split(order, ends[:-1])
        parts = [WeightedRows(sample.rows[at], sample.weights[at]) for at in known]
        if not len(gaps):
            return parts
        total = np.array([part.weights.sum() for part in parts])
        share = total / total.sum() if total.sum() >= TOLERANCE else np.full(size, 1 / size)
        gap_rows, gap_weights = sample.rows[gaps], sample.weights[gaps]
        return [
            WeightedRows(
                np.concatenate([part.rows, gap_rows]),
                np.concatenate([part.weights, gap_weights * own]),
            )
            if own > TOLERANCE
            else part
            for part, own in zip(parts, share, strict=True)
        ]


def grown_tree(data: GrowingData) -> Node:
    """The whole tree, neither collapsed nor pruned."""
    n = data.columns.n
    sample = WeightedRows(np.arange(n), np.ones(n))
    root = Node(sample, data.counts(sample))
    waiting = [(root, data.entries)]
    while waiting:
        node, entries = waiting.pop()
        if _is_done(node, data.min_leaf):
            continue
        entries = entries.varying(data.columns.d)
        of_class = np.zeros((data.n_classes, n + 1))
        of_class[data.classes[node.sample.rows], node.sample.rows] = node.sample.weights
        split = best_split(
            entries,
            of_class,
            node.counts,
            len(node.sample.rows),
            data.columns.n_values,
            data.min_leaf,
        )
        if split is None:
            continue
        if data.actual_cuts and not np.isnan(split.cut):
            split = Split(split.feature, data.entries.largest_value(*split))
        node.split = split
        node.children = [Node(part, data.counts(part)) for part in data.parts(split, node.sample)]
        for child in node.children:
            if not _is_done(child, data.min_leaf):
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


def collapse(root: Node) -> None:
    """Make leaves of nodes below which the training rows are told apart no better."""
    wrong: dict[Node, float] = {}
    nodes = _from_the_root(root)
    for node in reversed(nodes):
        below = [wrong[child] for child in node.children]
        wrong[node] = sum(below) if node.children else errors(node.counts)
    for node in nodes:
        if node.split is not None and wrong[node] >= errors(node.counts) - 1e-3:
            node.cut_off()


def prune(root: Node, data: GrowingData, confidence: float) -> None:
    """Replace subtrees by leaves, or by their largest branch, where no more errors are expected.

    A branch that is raised gets all rows of the node, and is pruned once more with them.
    """
    waiting = [(root, False)]
    while waiting:
        node, is_below_done = waiting.pop()
        if node.split is None:
            node.estimate = estimated_errors(node.counts, confidence)
        elif not is_below_done:
            waiting.append((node, True))
            waiting.extend((child, False) for child in node.children)
        elif _is_raised(node, data, confidence):
            waiting.append((node, False))


def _is_raised(node: Node, data: GrowingData, confidence: float) -> bool:
    """Prune a node whose children are; whether a branch has taken its place."""
    branch = largest_branch(node.children)
    as_leaf = estimated_errors(node.counts, confidence)
    as_branch = _errors_of(branch, node.sample, data, confidence)
    node.estimate = sum(child.estimate for child in node.children)
    if min(node.estimate, as_branch) + _MARGIN - as_leaf > -TOLERANCE:
        node.cut_off()
        node.estimate = as_leaf
        return False
    if node.estimate + _MARGIN - as_branch <= -TOLERANCE:
        return False
    node.split, node.children = branch.split, branch.children
    for below in _from_the_root(node):  # the rows go down again
        if below.split is not None:
            parts = data.parts(below.split, below.sample)
            for child, part in zip(below.children, parts, strict=True):
                child.sample, child.counts = part, data.counts(part)
    return True


def largest_branch(children: list[Node]) -> Node:
    """The child of most weight; of several the last one."""
    best = children[0]
    for child in children[1:]:
        if best.counts.sum() - child.counts.sum() < TOLERANCE:
            best = child
    return best


def _errors_of(branch: Node, sample: WeightedRows, data: GrowingData, confidence: float) -> float:
    """Errors to expect of a branch that has the rows of its parent."""
    expected, waiting = 0.0, [(branch, sample)]
    while waiting:
        node, rows = waiting.pop()
        if node.split is None:
            expected += estimated_errors(data.counts(rows), confidence)
        else:
            waiting.extend(zip(node.children, data.parts(node.split, rows), strict=True))
    return expected


def _from_the_root(root: Node) -> list[Node]:
    """All nodes, parents before their children."""
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children)
    return nodes
