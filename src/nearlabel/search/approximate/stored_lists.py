"""Lists in model files: what is written, and how it is checked when read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.validation import check_integer, check_real
from nearlabel.graph import index_type, stored_recall
from nearlabel.search.approximate.partition import Lists
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.exact.byte_bounds import MOST_FEATURES, RATIOS
from nearlabel.search.exact.packed_bounds import DenseBounds, is_ordinary
from nearlabel.search.exact.row_arithmetic import METRICS, points_of
from nearlabel.search.reordered_rows import RowsFromFile


def listed_tree(listed: ListedRows) -> Tree:
    """Lists, and the bounds of their rows, which take a pass over all rows to compute."""
    lists, bounds = listed.lists, listed.bounds
    tree = {"centers": lists.centers, "order": lists.order, "starts": lists.starts}
    if bounds is None:
        return {**tree, "bounds": None}
    how = {"by_list": bounds.centers is not None, "byte_share": listed.byte_share}
    return {**tree, "bounds": {"center": bounds.center, "reach": bounds.reach, **how}}


def listed_from(tree: Tree, rows: Array, metric: str) -> ListedRows:
    """The lists of a file over rows in their order; ValueError if they are not valid.

    The rows are not read. Any finite bounds give correct answers: poor ones only cost time.
    """
    n, d = rows.shape
    if metric not in METRICS or n >= 2**31:
        raise ValueError(f"{n} rows with the metric {metric!r} cannot have lists")
    starts = _array(tree, "starts", "iu", 1).astype(np.int64)
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != n or np.any(np.diff(starts) < 0):
        raise ValueError(f"the starts of its lists do not increase from 0 to {n}")
    order = _array(tree, "order", "iu", 1)
    if order.shape != (n,) or not _is_permutation(order):
        raise ValueError(f"the order of its rows is not a permutation of {n} rows")
    centers = _array(tree, "centers", "f", 2)
    if centers.shape != (len(starts) - 1, d) or not np.isfinite(centers).all():
        raise ValueError(f"its centers must be {len(starts) - 1} rows of {d} finite numbers")
    bounds, byte_share, stored = None, None, tree["bounds"]
    if stored is not None:
        center = _array(stored, "center", "f", 1).astype(np.float64)
        if center.shape != (d,) or not np.isfinite(center).all():
            raise ValueError(f"its center must have {d} finite numbers")
        reach = check_real(stored["reach"], "reach", low=0)
        if not is_ordinary(reach):
            raise ValueError(f"its reach, {reach}, is not valid")
        bounds = DenseBounds(metric, center, reach)
        if stored["by_list"]:
            bounds = bounds.centered_at(points_of(centers, metric))
        elif stored.get("byte_share") is not None:  # files of version 1.0 have none
            if d > MOST_FEATURES:
                raise ValueError(f"its rows have {d} features, too many for bytes")
            low, high = RATIOS
            byte_share = check_real(stored["byte_share"], "byte_share", low=low, high=high)
    lists = Lists(centers, order.astype(index_type(n)), starts)
    return ListedRows(lists, RowsFromFile(rows, starts), metric, bounds, byte_share)


def plan_trees(plans: Mapping[int, QueryPlan]) -> list[Tree]:
    """The plans for queries, by number of neighbors."""
    return [
        {
            "k": k,
            "probes": plan.probes.most,
            "margin": None if plan.probes.margin == np.inf else plan.probes.margin,
            "recall": plan.recall and asdict(plan.recall),
        }
        for k, plan in sorted(plans.items())
    ]


def plans_from(trees: object, listed: ListedRows) -> dict[int, QueryPlan]:
    """The plans of a file; ValueError if they are not valid."""
    if not isinstance(trees, list):
        raise TypeError("its plans must be a list")
    plans = {}
    for tree in trees:
        k = check_integer(tree["k"], "k", low=1, high=len(listed) - 1)
        probes = check_integer(tree["probes"], "probes", low=1, high=len(listed.lists))
        recall = None if tree["recall"] is None else stored_recall(tree["recall"])
        rule = Probes.fixed(probes)
        if tree.get("margin") is not None:  # files of version 1.0 have none
            rule = Probes(probes, check_real(tree["margin"], "margin", low=0), probes)
        plans[k] = QueryPlan(rule, recall)
    return plans


def _array(tree: Tree, key: str, kinds: str, dimensions: int) -> Array:
    array = tree[key]
    if (
        not isinstance(array, np.ndarray)
        or array.ndim != dimensions
        or array.dtype.kind not in kinds
    ):
        raise TypeError(f"its {key} must be a {dimensions}-d array of numbers")
    return np.asarray(array[:])  # checks the blocks of a mapped array


def _is_permutation(order: Array) -> bool:
    n = len(order)
    if not n or order.min() < 0 or order.max() >= n:
        return False
    is_there = np.zeros(n, bool)
    is_there[order] = True
    return bool(is_there.all())
