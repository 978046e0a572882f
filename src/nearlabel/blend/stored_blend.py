"""The fitted state of a blend in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.blend.decision_cuts import OBJECTIVES, LabelDecision
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.learned_blend import LearnedBlend
from nearlabel.blend.pooled_logistic import CrossFitted, PooledLogistic
from nearlabel.blend.projections import finite_arrays
from nearlabel.blend.readings import MethodReadings, RidgeReading
from nearlabel.blend.ridge import KERNELS
from nearlabel.blend.ridge_scores import RidgeWeights
from nearlabel.blend.voting_forest import VotingForest
from nearlabel.common.arrays import Tree
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.brknn import BRkNN
from nearlabel.methods.fields import Field
from nearlabel.methods.inner_methods import unlearned
from nearlabel.methods.items import Items
from nearlabel.methods.mlknn import MLkNN
from nearlabel.methods.model_trees import learned_tree, read_learned, vector_tree, vectors_of
from nearlabel.methods.positiveknn import PositivekNN
from nearlabel.search import VectorStore

if TYPE_CHECKING:
    from nearlabel.blend.blended_neighbors import BlendedNeighbors


class StoredBlend(Field):
    """The methods, the learned rows, the regressions and their weights."""

    def write(self, model: BlendedNeighbors, learned: Tree) -> None:
        blend: LearnedBlend = getattr(model, self.attribute)
        learned_methods, logistic = blend.learned, blend.logistic
        learned[self.key] = {
            "plain": _method_trees(blend.plain),
            "learned": [],
            "space": None,
            "rows": None,
            "regressions": {part.kernel: part.weights.tree() for part in blend.regressions},
            "forest": None if blend.forest is None else blend.forest.tree(),
            "logistic": [vars(part) for part in (logistic.whole, *logistic.folds)],
            "missed": blend.missed,
            "strength": logistic.strength if np.isfinite(logistic.strength) else None,
        }
        if learned_methods is not None and learned_methods.space is not None:
            learned[self.key] |= {
                "learned": _method_trees(learned_methods),
                "space": learned_methods.space._tree(),
                "rows": vector_tree(learned_methods.items.vectors),
            }

    def read(
        self, model: BlendedNeighbors, learned: Mapping[str, Tree], sizes: dict[str, int]
    ) -> None:
        tree, items = learned[self.key], model.items_
        n, d = sizes["n"], sizes["d"]
        plain = MethodReadings(_methods(model, tree["plain"], items), items)
        blend = LearnedBlend(plain, items.totals, n)
        if (tree["rows"] is None) != (tree["space"] is None):
            raise ValueError("it has a learned distance without rows, or the reverse")
        if tree["space"] is not None:
            space = LabelSpace._from_tree(tree["space"], 0)
            store = VectorStore(vectors_of(tree["rows"], n))
            rows = Items(items.labels, "euclidean", items.search, store)
            blend.learned = MethodReadings(_methods(model, tree["learned"], rows), rows, space)
            if (space.n_features_in_, space._n_features_out) != (d, rows.vectors.shape[1]):
                raise ValueError("its learned rows do not match its features")
        for kernel, part in tree["regressions"].items():
            weights = RidgeWeights.from_tree(part, sizes)
            kernel = check_choice(kernel, "kernel", KERNELS)
            blend.regressions.append(RidgeReading(kernel, weights, not blend.is_dense))
        if tree.get("forest") is not None:  # older files have none
            blend.forest = VotingForest.from_tree(tree["forest"], items.labels, d)
        f = len(blend.names)
        sizes = {"q": sizes["q"], "f": f, "w": f + 1}
        whole, *folds = (_logistic(part, sizes) for part in tree["logistic"])
        strength = np.inf
        if tree["strength"] is not None:
            strength = check_real(tree["strength"], "strength", low=0)
        blend.missed = check_real(tree["missed"], "missed", low=0, high=1)
        if not folds:
            raise ValueError("it has no cross-fitted weights")
        blend.logistic = CrossFitted(whole, tuple(folds), strength)
        setattr(model, self.attribute, blend)


class StoredDecision(Field):
    """The decision of a blend."""

    def write(self, model: BlendedNeighbors, learned: Tree) -> None:
        decision: LabelDecision = getattr(model, self.attribute)
        learned[self.key] = {"objective": decision.objective, "cuts": decision.cuts}

    def read(
        self, model: BlendedNeighbors, learned: Mapping[str, Tree], sizes: dict[str, int]
    ) -> None:
        tree = learned[self.key]
        (cuts,) = finite_arrays(tree, {"cuts": "c"}, {})
        if len(cuts) not in (1, sizes["q"]):
            raise ValueError("its cuts do not match its labels")
        objective = check_choice(tree["objective"], "objective", OBJECTIVES)
        setattr(model, self.attribute, LabelDecision(objective, cuts))


def chosen_methods(model: BlendedNeighbors) -> list[NeighborClassifier]:
    """The unfitted methods of a blend; the default ones with at most n_neighbors neighbors."""
    if model.readings is None:
        k10, k30, k40 = (min(k, model.n_neighbors or k) for k in (10, 30, 40))
        counting = [MLkNN(k) for k in sorted({k10, k30})]
        return [*counting, BRkNN(k30, weights="distance"), PositivekNN(k40, random_state=0)]
    if not isinstance(model.readings, list | tuple):
        raise TypeError(f"readings must be a list of methods; got {model.readings!r}")
    return list(model.readings)


def _method_trees(readings: MethodReadings) -> list[Tree]:
    """What methods on one graph have learned."""
    return [
        {"neighbors": method.n_neighbors_, "learned": learned_tree(method)}
        for method in readings.methods
    ]


def _methods(model: BlendedNeighbors, trees: list[Tree], items: Items) -> list[NeighborClassifier]:
    """The methods of a blend with what they have learned from items."""
    methods = []
    for reading, tree in zip(chosen_methods(model), trees, strict=True):
        k = check_integer(tree["neighbors"], "neighbors", low=1, high=len(items) - 1)
        methods.append(unlearned(reading, model, items, k))
        read_learned(methods[-1], tree["learned"])
    return methods


def _logistic(tree: Tree, sizes: dict[str, int]) -> PooledLogistic:
    shapes = {"mean": "f", "scale": "f", "weights": "w"}
    if tree["own"] is not None:
        shapes["own"] = "qw"
    mean, scale, weights, *own = finite_arrays(tree, shapes, sizes)
    if not (scale > 0).all():
        raise ValueError("its scales must be above 0")
    return PooledLogistic(mean, scale, weights, own[0] if own else None)
