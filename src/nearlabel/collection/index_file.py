"""The index file: what a collection has learned, loaded the next time it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection.learning_methods import for_rows
from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.files import FileError, read_stored, remove_parts, write_tree
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.validation import check_integer
from nearlabel.methods.model_trees import model_from, parameter_tree, vector_tree

if TYPE_CHECKING:
    from nearlabel.methods.base import NeighborClassifier

_MARK = "nearlabel collection index"


class StoredModel(NamedTuple):
    """A model from a file, the item of each row, and the number of rows of the last full fit."""

    model: NeighborClassifier
    items: Array
    fitted_rows: int


def write_index(path: Path, change: int, items: Array, tree: Tree, fitted_rows: int) -> str:
    """Write a model, as a tree, as of a change; returns the checksum of the file.

    Vectors are left out, as the collection stores them, except copies in the order of lists.
    """
    content = {
        "kind": _MARK,
        "change": change,
        "fitted_rows": fitted_rows,
        "items": items,
        "model": {**tree, "vectors": None} if tree["lists"] is None else tree,
    }
    remove_parts(path)
    return write_tree(path, content)


def read_index(
    path: Path,
    change: int,
    digest: str | None,
    chosen: NeighborClassifier,
    vectors: Callable[[Sequence[int]], Matrix],
) -> StoredModel:
    """Read a file of `write_index`, memory-mapped; raises OSError or FileError if it is not valid.

    It must be of the chosen method. `vectors` returns the vectors of items.
    """
    if path.is_symlink() or not path.is_file():
        raise FileNotFoundError(2, "is missing", path.name)
    stored = read_stored(path, mmap=True)
    tree = stored.tree
    if digest is not None and stored.digest != digest:
        raise FileError("is not the file that was saved")
    if tree["kind"] != _MARK or tree["change"] != change:
        raise FileError("is not an index of this collection")
    items = checked(tree["items"])
    inner = dict(tree["model"])
    if items.dtype != np.int64 or items.ndim != 1:
        raise FileError("is damaged: it does not name its items")
    asked = for_rows(len(items), chosen)
    if inner["class"] != type(asked).__name__:
        raise FileError("belongs to another method")
    if inner["vectors"] is None:
        inner["vectors"] = vector_tree(vectors(items.tolist()))
    wanted, own = parameter_tree(asked), inner["parameters"]
    if any(own[name] != wanted.get(name) for name in own.keys() - {"n_jobs"}):
        raise FileError("belongs to other parameters of the method")
    model = model_from(asked, inner, stored.version)
    rows = model.items_
    if len(items) != len(rows) or rows.store is None or rows.store.ids.dtype.kind != "i":
        raise FileError("is damaged: it does not name its items")
    return StoredModel(model, items, check_integer(tree["fitted_rows"], "fitted_rows", low=0))


def said_again(path: str | os.PathLike[str], error: Exception) -> str:
    """The message that everything was learned again because an index file could not be used."""
    name, why = Path(path).name, str(error)
    if isinstance(error, FileError):
        why = error.reason
    elif isinstance(error, OSError):
        why = error.strerror or "cannot be read"
    elif isinstance(error, KeyError):
        why = f"is damaged: it lacks {why}"
    return f"the model was learned again from all items: {name} {why}"
