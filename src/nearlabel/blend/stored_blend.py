"""The fitted state of a blend in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearlabel.blend.decision_cuts import OBJECTIVES, LabelDecision
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.learned_blend import LearnedBlend
from nearlabel.blend.pooled_logistic import CrossFitted, PooledLogistic
from nearlabel.blend.projections import finite_arrays
from nearlabel.blend.ridge import KERNELS
from nearlabel.blend.ridge_scores import RidgeWeights
from nearlabel.blend.voting_forest import VotingForest
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.methods.fields import Field
from nearlabel.methods.items import Items
from nearlabel.methods.model_trees import learned_tree, read_learned, vector_tree, vectors_of
from nearlabel.search import VectorStore


class StoredBlend(Field):
    """The methods, the learned rows, the regressions and their weights."""

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        blend: LearnedBlend = getattr(model, self.attribute)
        assert blend.logistic is not None
        strength = blend.logistic.strength
        learned[self.key] = {
            "plain": [_reading_tree(one) for one in blend.plain],
            "learned": [_reading_tree(one) for one in blend.learned],
            "space": None if blend.space is None else blend.space._tree(),
            "rows": None if blend.rows is None else vector_tree(blend.rows.vectors),
            "regressions": {key: one.tree() for key, one in blend.regressions.items()},
            "forest": None if blend.forest is None else blend.forest.tree(),
            "logistic": [one._asdict() for one in (blend.logistic.whole, *blend.logistic.folds)],
            "missed": blend.missed,
            "strength": strength if np.isfinite(strength) else None,
        }

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        tree = learned[self.key]
        n, d = sizes["n"], sizes["d"]
        readings, items = model._readings(), model._items
        rows = None
        if tree["rows"] is not None:
            store = VectorStore(vectors_of(tree["rows"], n))
            rows = Items(items.labels, True, None, "euclidean", items.search, store)
        plain = [_read(model, *one, items) for one in zip(readings, tree["plain"], strict=True)]
        blend = LearnedBlend(plain, totals=items.totals, n=n)
        space = None if tree["space"] is None else LabelSpace._from_tree(tree["space"], 0)
        if (rows is None) != (space is None):
            raise ValueError("it has a learned distance without rows, or the reverse")
        if rows is not None and space is not None:
            pairs = zip(readings, tree["learned"], strict=True)
            blend.learned = [_read(model, *one, rows) for one in pairs]
            blend.rows, blend.space = rows, space
            if (space.n_features_in_, space._n_features_out) != (d, rows.vectors.shape[1]):
                raise ValueError("its learned rows do not match its features")
        blend.regressions = {
            check_choice(kernel, "kernel", KERNELS): RidgeWeights.from_tree(part, sizes)
            for kernel, part in tree["regressions"].items()
        }
        if tree.get("forest") is not None:  # older files have none
            blend.forest = VotingForest.from_tree(tree["forest"], items.labels, d)
        sizes = {"q": sizes["q"], "f": len(blend.names), "w": len(blend.names) + 1}
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

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        learned[self.key] = getattr(model, self.attribute)._asdict()

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        tree = learned[self.key]
        (cuts,) = finite_arrays(tree, {"cuts": "c"}, {})
        if len(cuts) not in (1, sizes["q"]):
            raise ValueError("its cuts do not match its labels")
        objective = check_choice(tree["objective"], "objective", OBJECTIVES)
        setattr(model, self.attribute, LabelDecision(objective, cuts))


def _reading_tree(model: Any) -> dict[str, Any]:
    return {"neighbors": model.n_neighbors_, "learned": learned_tree(model)}


def _read(model: Any, reading: Any, tree: Mapping[str, Any], items: Items) -> Any:
    k = check_integer(tree["neighbors"], "neighbors", low=1, high=len(items) - 1)
    inner = model._unlearned(reading, items, k)
    read_learned(inner, tree["learned"])
    return inner


def _logistic(tree: Mapping[str, Any], sizes: dict[str, int]) -> PooledLogistic:
    shapes = {"mean": "f", "scale": "f", "weights": "w"}
    if tree["own"] is not None:
        shapes["own"] = "qw"
    mean, scale, weights, *own = finite_arrays(tree, shapes, sizes)
    if not (scale > 0).all():
        raise ValueError("its scales must be above 0")
    return PooledLogistic(mean, scale, weights, own[0] if own else None)
