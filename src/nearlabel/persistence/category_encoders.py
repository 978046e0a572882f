"""scikit-learn's OneHotEncoder and OrdinalEncoder in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import Tree, as_stored, check_length, from_stored

_LARGEST_SAMPLE = 2**26  # cells


def encoder_tree(encoder: Any) -> Tree:
    """What an encoder learned: the categories of each column, and which are infrequent."""
    rare = getattr(encoder, "infrequent_categories_", None)
    infrequent = None
    if rare is not None:  # it was asked to look for some
        infrequent = [
            np.empty(0, np.int64) if some is None else _places(some, everything)
            for some, everything in zip(rare, encoder.categories_, strict=True)
        ]
        _frequent(encoder.categories_, infrequent)
    categories = [as_stored(one, "categories_") for one in encoder.categories_]
    return {"categories": categories, "infrequent": infrequent}


def encoder_from(made: Any, parameters: Tree, tree: Tree) -> Any:
    """The encoder of a tree, fitted to a sample in which the right categories are frequent."""
    categories = from_stored(tree["categories"])
    check_length(categories, tree["features"], "categories")
    for one in categories:
        if not isinstance(one, np.ndarray) or one.ndim != 1 or not one.size:
            raise ValueError("its categories are not arrays")
    unknown: Tree = {"handle_unknown": "ignore"}
    if made.__name__ == "OrdinalEncoder":
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    frequencies: Tree = {}
    sample = np.full((1, len(categories)), _Unknown(), object)
    if tree["infrequent"] is not None:
        check_length(tree["infrequent"], len(categories), "infrequent categories")
        frequent = _frequent(categories, tree["infrequent"])
        sample = np.full((max(1, *map(len, frequent)), len(categories)), _Unknown(), object)
        for column, some in enumerate(frequent):
            sample[: len(some), column] = some
        frequencies = {"min_frequency": 1, "max_categories": None}  # all that is not in the sample
    encoder = made(**parameters)
    encoder.set_params(
        categories=[one.astype(object) for one in categories], **unknown, **frequencies
    )
    encoder.fit(sample)
    usual = made().get_params()
    changed = ("categories", *unknown, *frequencies)
    encoder.set_params(**{key: parameters.get(key, usual[key]) for key in changed})
    encoder.categories_ = categories
    return encoder


def _frequent(categories: list[Array], infrequent: list[Array]) -> list[list[Any]]:
    """The categories of each column that are not infrequent."""
    frequent = [
        np.delete(all_of.astype(object), stored_array(rare, "infrequent", "i", 1)).tolist()
        for all_of, rare in zip(categories, infrequent, strict=True)
    ]
    if max(map(len, frequent)) * len(frequent) > _LARGEST_SAMPLE:
        raise ValueError(
            f"an encoder of {len(frequent)} columns, one with {max(map(len, frequent))} frequent "
            "categories, is too large for a file; encode that column by itself"
        )
    return frequent


def _places(some: Array, everything: Array) -> Array:
    """Where the values of one array stand in another; any two NaN count as equal."""
    place = {_key(one): at for at, one in enumerate(everything.tolist())}
    return np.array([place[_key(one)] for one in some.tolist()], np.int64)


def _key(value: Any) -> Any:
    return (value,) if value == value else None


class _Unknown(str):
    """A category that is none of those that were learned."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other
