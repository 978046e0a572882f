"""scikit-learn's OneHotEncoder and OrdinalEncoder in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import Tree, as_stored, check_length, from_stored

_LARGEST_SAMPLE = 2**22  # cells; more only where a file has as many categories
_UNKNOWN = object()  # a category that is none of those that were learned


def encoder_tree(encoder: Any) -> Tree:
    """What an encoder learned: the categories of each column, and which are infrequent."""
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
    _check_infrequent(_infrequent(encoder), tree["infrequent"])
    return encoder


def _unknown_sample(rows: int, columns: int) -> Array:
    """Cells of which none is a known category."""
    sample = np.empty((rows, columns), object)
    sample.fill(_UNKNOWN)  # np.full would make copies of a text, of a type of NumPy's
    return sample


def _check_infrequent(made: list[Array] | None, stored: list[Array] | None) -> None:
    """Refuse a file whose infrequent categories are not those that scikit-learn makes of it."""
    if made is None or stored is None:
        are_same = made is stored
    else:
        pairs = zip(made, stored, strict=True)
        are_same = all(np.array_equal(ours, np.sort(theirs)) for ours, theirs in pairs)
    if not are_same:
        raise ValueError("its infrequent categories are not those of its parameters")


def _infrequent(encoder: Any) -> list[Array] | None:
    """The places of the infrequent categories of each column; None if it did not look for some."""
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
