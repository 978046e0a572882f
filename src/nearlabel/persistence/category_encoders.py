"""scikit-learn's OneHotEncoder and OrdinalEncoder in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import Tree, as_stored, check_length, from_stored

_LARGEST_SAMPLE = 2**22  # cells; more only if a file has that many categories
_UNKNOWN = object()  # a category that was not learned


def encoder_tree(encoder: Any) -> Tree:
    """The fitted state of an encoder: each column's categories, and which are infrequent."""
    infrequent = _infrequent(encoder)
    if infrequent is not None:
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
    sample = _unknown_sample(1, len(categories))
    if tree["infrequent"] is not None:
        check_length(tree["infrequent"], len(categories), "infrequent categories")
        frequent = _frequent(categories, tree["infrequent"])
        sample = _unknown_sample(max(1, *map(len, frequent)), len(categories))
        for column, some in enumerate(frequent):
            sample[: len(some), column] = some
        # So exactly the categories that are not in the sample are infrequent.
        frequencies = {"min_frequency": 1, "max_categories": None}
    encoder = made(**parameters)
    encoder.set_params(
        categories=[one.astype(object) for one in categories], **unknown, **frequencies
    )
    encoder.fit(sample)
    usual = made().get_params()
    changed = ("categories", *unknown, *frequencies)
    encoder.set_params(**{key: parameters.get(key, usual[key]) for key in changed})
    encoder.categories_ = categories
    _check_infrequent(_infrequent(encoder), tree["infrequent"])
    return encoder


def _unknown_sample(rows: int, columns: int) -> Array:
    """Cells without any known category."""
    sample = np.empty((rows, columns), object)
    sample.fill(_UNKNOWN)
    return sample


def _check_infrequent(made: list[Array] | None, stored: list[Array] | None) -> None:
    """Raise an error if a file's infrequent categories are not those that scikit-learn finds."""
    if made is None or stored is None:
        are_same = made is stored
    else:
        pairs = zip(made, stored, strict=True)
        are_same = all(np.array_equal(ours, np.sort(theirs)) for ours, theirs in pairs)
    if not are_same:
        raise ValueError("its infrequent categories do not match its parameters")


def _infrequent(encoder: Any) -> list[Array] | None:
    """The indices of the infrequent categories per column; None if these are not distinguished."""
    rare = getattr(encoder, "infrequent_categories_", None)
    if rare is None:
        return None
    return [
        np.empty(0, np.int64) if some is None else np.sort(_places(some, everything))
        for some, everything in zip(rare, encoder.categories_, strict=True)
    ]


def _frequent(categories: list[Array], infrequent: list[Array]) -> list[list[Any]]:
    """The categories of each column that are not infrequent."""
    frequent = [
        np.delete(all_of.astype(object), stored_array(rare, "infrequent", "i", 1)).tolist()
        for all_of, rare in zip(categories, infrequent, strict=True)
    ]
    cells, in_all = max(map(len, frequent)) * len(frequent), sum(map(len, frequent))
    if cells > max(_LARGEST_SAMPLE, 4 * in_all):  # it would take more memory than the file
        raise ValueError(
            f"an encoder of {len(frequent)} columns, one of them with "
            f"{max(map(len, frequent))} frequent categories, is too large for a model file; "
            "encode that column separately"
        )
    return frequent


def _places(some: Array, everything: Array) -> Array:
    """The positions of one array's values in another; any two NaN count as equal."""
    place = {_key(one): at for at, one in enumerate(everything.tolist())}
    return np.array([place[_key(one)] for one in some.tolist()], np.int64)


def _key(value: Any) -> Any:
    return (value,) if value == value else None
