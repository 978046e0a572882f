"""The file of what a collection has learned, from which the next opening takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nearlabel.collection.learning_methods import estimator_of
from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError, read_stored, remove_parts, write_tree
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.validation import check_integer
from nearlabel.methods.model_trees import model_from, vector_tree
from nearlabel.methods.registry import method

_MARK = "nearlabel collection index"


class StoredModel(NamedTuple):
    """A model of a file, the item of each row, and how many rows all was last learned from."""

    model: Any
    items: Array
    fitted_rows: int


def write_index(
    path: Path, change: int, items: Array, tree: Mapping[str, Any], fitted_rows: int
) -> str:
    """Write a model, as a tree, as it was after a change; returns the checksum of the file.

    Its vectors are left out, as the collection has them, but for those in the order of lists.
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
    settings: Mapping[str, Any],
    vectors: Callable[[Sequence[int]], Any],
) -> StoredModel:
    """Read what `write_index` wrote, mapped; an OSError, a FileError or the like if it is not that.

    It must be of the method in `settings`. `vectors` gives those of items.
    """
    if path.is_symlink() or not path.is_file():
        raise FileNotFoundError(2, "is missing", path.name)
    stored = read_stored(path, mmap=True)
    tree = stored.tree
    if digest is not None and stored.digest != digest:
        raise FileError("is another one than was saved")
    if tree["kind"] != _MARK or tree["change"] != change:
        raise FileError("is no index of this collection")
    items = checked(tree["items"])
    inner = dict(tree["model"])
    if items.dtype != np.int64 or items.ndim != 1:
        raise FileError("is damaged: it does not name its items")
    asked = estimator_of(len(items), settings)
    if inner["class"] != type(asked).__name__:
        raise FileError("is of another method")
    if inner["vectors"] is None:
        inner["vectors"] = vector_tree(vectors(items.tolist()))
    model = model_from(method(inner["class"]), inner, stored.version)
    wanted, own = asked.get_params(), model.get_params()
    if any(own[name] != value for name, value in wanted.items() if name != "n_jobs"):
        raise FileError("is of other parameters of the method")
    if len(items) != len(model._items) or model._items.store.ids.dtype.kind != "i":
        raise FileError("is damaged: it does not name its items")
    return StoredModel(model, items, check_integer(tree["fitted_rows"], "fitted_rows", low=0))


def said_again(path: Any, error: Exception) -> str:
    """That all was learned anew, since an index file could not be used."""
    name, why = Path(path).name, str(error)
    if isinstance(error, FileError):
        why = why.removeprefix(f"{error.path} ")
    elif isinstance(error, OSError):
        why = error.strerror or "cannot be read"
    elif isinstance(error, KeyError):
        why = f"is damaged: it lacks {why}"
    return f"what was learned was learned again from all items: {name} {why}"
