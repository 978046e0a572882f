"""Files of models: one safe file for a model, a pipeline around one, or a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import FeatureUnion
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.files import NONSENSE, FileError, read_tree, write_tree
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.filled_texts import FilledTexts
from nearlabel.methods.pipeline import Pipeline
from nearlabel.methods.registry import METHODS, method
from nearlabel.methods.thresholds import LabelThresholds
from nearlabel.persistence.column_transformers import (
    column_transformer_from,
    column_transformer_tree,
)
from nearlabel.persistence.preprocessing import KINDS, transformer_from, transformer_tree

_OWN: dict[str, Any] = {
    **{name: method(name) for name in METHODS},
    "LabelThresholds": LabelThresholds,
    "NeighborGraph": NeighborGraph,
    "FilledTexts": FilledTexts,
}
_STORABLE = ("Pipeline", "ColumnTransformer", "FeatureUnion", *KINDS)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, a pipeline that ends in one, or a neighbor graph to one file.

    The file holds arrays and JSON, nothing that is executed when it is read. It is written under
    another name and renamed when it is complete.

    Parameters
    ----------
    model : estimator of nearlabel, NeighborGraph, Pipeline or transformer
        The other steps of a pipeline may be scikit-learn's usual preprocessing: scalers,
        `SimpleImputer`, `OneHotEncoder`, `OrdinalEncoder`, `ColumnTransformer`, `CountVectorizer`,
        `TfidfVectorizer`, `TruncatedSVD`, `PCA`, `QuantileTransformer` and the like. The error
        about any other names all that can be stored.
    path : path of the file
    """
    write_tree(path, _tree(model))


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path of the file
    mmap : bool, default=False
        Leave the arrays on the disk, mapped into memory and read-only: nothing is copied, and
        processes that load the same file share its memory.

    Returns
    -------
    estimator, Pipeline, transformer or NeighborGraph

    Raises
    ------
    FileError
        A ValueError, with the reason: a file of another kind, cut off, altered, or newer.

    Examples
    --------
    >>> import tempfile
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nl.MLkNN(n_neighbors=3).fit(X, y).save(f"{folder}/few.model")
    ...     model = nl.load(f"{folder}/few.model")
    >>> model.predict([[2.2, 0.4]])
    array([[1, 0]])
    """
    tree, version = read_tree(path, mmap=mmap)
    try:
        return _model(tree, version)
    except FileError as error:
        raise FileError(f"{path} {error}") from None
    except (*NONSENSE, RecursionError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise FileError(f"{path} is damaged: {reason}") from None


def _tree(model: Any) -> Any:
    """A model, or a part of one, as a tree."""
    if isinstance(model, NeighborClassifier | NeighborGraph | FilledTexts):
        return model._tree()
    name, is_sklearns = type(model).__name__, type(model).__module__.startswith("sklearn.")
    if type(model) in (Pipeline, SklearnPipeline):
        return {"class": "Pipeline", "steps": [[step, _step(part)] for step, part in model.steps]}
    if type(model) is FeatureUnion:
        steps = [[step, _step(part)] for step, part in model.transformer_list]
        return {"class": "FeatureUnion", "steps": steps, "weights": model.transformer_weights}
    if is_sklearns and name in _STORABLE:
        check_is_fitted(model)
        return (
            column_transformer_tree(model, _tree) if name not in KINDS else transformer_tree(model)
        )
    raise TypeError(
        f"a {name} cannot be written to a file; estimators and graphs of nearlabel can, and "
        f"scikit-learn's {', '.join(_STORABLE)} around them (joblib or pickle keep any object)"
    )


def _step(part: Any) -> Any:
    """A step of a pipeline as a tree; "passthrough" and the like as they are."""
    return part if part is None or isinstance(part, str) else _tree(part)


def _model(tree: Mapping[str, Any], version: int) -> Any:
    name = tree["class"]
    if name in _OWN:
        return _OWN[name]._from_tree(tree, version)
    if name in KINDS:
        return transformer_from(tree)
    if name == "ColumnTransformer":
        return column_transformer_from(tree, lambda part: _transformer(part, version))
    if name == "FeatureUnion":
        return FeatureUnion(_steps(tree, version), transformer_weights=tree["weights"])
    if name == "Pipeline":
        *first, (last, part) = tree["steps"]
        steps = _steps({"steps": first}, version)
        return Pipeline([*steps, (str(last), _passed_or(part, version, _model))])
    raise FileError(f"holds a {name!r}, which this version of nearlabel does not know")


def _steps(tree: Mapping[str, Any], version: int) -> list[tuple[str, Any]]:
    steps = tree["steps"]
    return [(str(step), _passed_or(part, version, _transformer)) for step, part in steps]


def _passed_or(part: Any, version: int, made: Any) -> Any:
    return part if part in (None, "passthrough", "drop") else made(part, version)


def _transformer(tree: Any, version: int) -> Any:
    part = _model(tree, version)
    if not hasattr(part, "transform"):
        raise ValueError(f"a {type(part).__name__} stands where only a transformer can")
    return part
