"""A fitted `LabelSpace` in model files."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from nearlabel.blend.joined_space import Joining
from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge import KERNELS
from nearlabel.common.mapped_arrays import checked_tree
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.methods.fields import stored_names

_CHOSEN = ("kernel", "alpha", "spread", "weight", "metric")


def tree_of(space: Any) -> dict[str, Any]:
    """A fitted `LabelSpace` as plain values and arrays."""
    parameters = space.get_params()
    del parameters["n_jobs"]  # of the machine, not of the model
    if not isinstance(space.random_state, numbers.Integral):
        parameters["random_state"] = None
    names = getattr(space, "feature_names_in_", None)
    return {
        "class": type(space).__name__,
        "parameters": parameters,
        "features": space.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "chosen": {key: getattr(space, f"{key}_") for key in _CHOSEN},
        "kernel_scores": space.kernel_scores_,
        "candidates": space.candidates_,
        "projection": space._projection.tree(),
        "factors": [space._joining.learned, space._joining.plain],
    }


def filled(kind: Any, tree: Mapping[str, Any]) -> Any:
    """From the stored form, of the class `kind`; a ValueError or the like if it is not valid."""
    tree = checked_tree(tree)
    made, chosen = kind(**tree["parameters"]), kind(**tree["chosen"])
    made._options()
    made._ridge()
    check_integer(made.n_components, "n_components", low=1)
    made.n_features_in_ = check_integer(tree["features"], "features", low=1)
    names = stored_names(tree["feature_names"], made.n_features_in_)
    if names is not None:
        made.feature_names_in_ = names.astype(object)
    (made.spread_,), (made.weight_,), (made.metric_,) = chosen._options()
    ridge = chosen._ridge()
    made.kernel_ = check_choice(ridge.kernel, "kernel", KERNELS)
    made.alpha_ = check_real(ridge.alpha, "alpha", low=0)
    made.kernel_scores_, made.candidates_ = tree["kernel_scores"], tree["candidates"]
    made._projection = Projection.from_tree(tree["projection"], made.n_features_in_)
    learned, plain = (check_real(one, "factors", low=0) for one in tree["factors"])
    made._joining = Joining(learned, plain, made.metric_)
    return made
